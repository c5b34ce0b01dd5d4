"""The paper's theorems as functions, with the constants of their proofs.

Theorems 1, 2 and 4 bound what Baseline, RS-Audit and Exp-Audit spend, with probability at least
``1 - delta``; Theorem 3 bounds from below what any audit spends on its pair of instances.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.audits.tau_precision import level_of, outcomes_of
from equipoise.bounds.price import Price, per_arrival, shares_of_outcomes
from equipoise.errors import InvalidInput, require_in_open_unit
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

__all__ = ["baseline_bound", "exp_bound", "family_bound", "rs_bound"]


def baseline_bound(world: CellWorld, question: Question, costs: Costs) -> Price:
    """Return Theorem 1's upper bound.

    ``sum over (y,a) of 624 log(8K/delta) / (epsilon^2 q_{y,a})`` arrivals, each of which costs
    ``c_feat P[f=0] + c_lab P[f=0, Y=0]`` on average.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(baseline_bound(world, Question(epsilon=0.1), Costs()))
    4.69949e+06 for 5.48273e+06 labels and 0 feature vectors
    """
    q = shares_of_outcomes(world)[list(outcomes_of(question))]
    arrivals = _inverse_sum(q) * _numerator(question, len(world.cells))
    return arrivals * sum(per_arrival(world, costs), Price())


def rs_bound(world: CellWorld, question: Question, costs: Costs) -> Price:
    """Return Theorem 2's upper bound.

    As Theorem 1, within each group: ``624 log(8K/delta) / (epsilon^2 q_{y|a})`` people of group a,
    each of whom costs ``c_feat P[f=0|a] + c_lab P[f=0, Y=0|a]`` on average.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(rs_bound(world, Question(epsilon=0.1), Costs()))
    2.46507e+06 for 2.83747e+06 labels and 0 feature vectors
    """
    q = shares_of_outcomes(world)[list(outcomes_of(question))]
    total = Price()
    for a, price in enumerate(per_arrival(world, costs)):
        total += (_inverse_sum(q[:, a]) * _numerator(question, len(world.cells))) * price
    return total


def exp_bound(world: CellWorld, question: Question, costs: Costs) -> Price:
    """Return Theorem 4's upper bound for Exp-Audit, whose assumptions the world must meet.

    Per group: a coarse look (epsilon' = 1/10) that labels at most
    ``1.1 tau'/q_{y|a}`` people for each y, ``tau' = 400 log(14K/delta)``, and the features of
    ``R <= 1.1 * 3430 log(14K/delta) / (q_m epsilon^2)`` people, ``q_m = min_y q_{y|a}``.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(exp_bound(world, Question(epsilon=0.1), Costs()))
    19,068.2 for 21,948.9 labels and 1.4022e+07 feature vectors
    """
    outcomes_of(question, by_features=True)
    q = shares_of_outcomes(world)
    log_term = math.log(14.0 * len(world.cells) / level_of(question))
    total = Price()
    for a, (group, price) in enumerate(zip(world.groups, per_arrival(world, costs), strict=True)):
        total += (_inverse_sum(q[:, a]) * 440.0 * log_term) * price
        arrivals = _inverse_sum(q[:, a].min()) * 3773.0 * log_term / question.epsilon**2
        feature = Price(features=price.labels, cost=costs.of(group).feature * price.labels)
        total += arrivals * feature
    return total


def family_bound(
    epsilon: float, delta: float, p: float, q: float, costs: Costs | None = None
) -> Price:
    """Return Theorem 3's lower bound on the mean price of any audit, on its pair of instances.

    On either world of :func:`equipoise.worlds.lower_bound_pair`, with gamma = 0, any audit that
    errs with probability below delta requests on average more than
    ``(1 - (p+q)/2) log(1/(4 delta)) / (64 q epsilon^2)`` labels of the second group.

    Examples
    --------
    >>> print(family_bound(epsilon=0.05, delta=0.01, p=0.2, q=0.2))
    66.3893 for 80.4719 labels and 0 feature vectors
    """
    require_in_open_unit("delta", delta)
    for name, value, limit in (("epsilon", epsilon, 1 / 8), ("p", p, 1 / 3), ("q", q, 1 / 3)):
        if not 0.0 < value < limit:
            raise InvalidInput(f"{name!r} must be in (0, {limit:.4g}); got {value!r}")
    denied = 1.0 - (p + q) / 2.0
    labels = max(0.0, denied * math.log(1.0 / (4.0 * delta)) / (64.0 * q * epsilon**2))
    # The cheaper of the two worlds: more good people among the denied under UNFAIR.
    r = q / 2.0 * (1.0 + 8.0 * epsilon) / denied
    return Price(labels=labels, cost=labels * (costs or Costs()).expected(r))


def _numerator(question: Question, groups: int) -> float:
    return 624.0 * math.log(8.0 * groups / level_of(question)) / question.epsilon**2


def _inverse_sum(shares: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | np.float64) -> float:
    values = np.atleast_1d(shares)
    return float((1.0 / values).sum()) if np.all(values > 0.0) else math.inf
