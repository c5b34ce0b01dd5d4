"""What Baseline and RS-Audit cost on average, exactly.

Waiting for tau people of share q takes tau/q arrivals on average, and by Wald's identity each
arrival is denied, or a failure, as often as any other: expected cost = tau/q times the cost rate.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.audits.tau_precision import outcomes_of, paper_tau
from equipoise.bounds.price import Array, Price, per_arrival, shares_of_outcomes
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

__all__ = ["baseline_expectation", "rs_expectation"]


def baseline_expectation(
    world: CellWorld,
    question: Question,
    costs: Costs,
    *,
    tau: int | None = None,
    reuse_labels: bool = False,
) -> Price:
    """Return the expected price of the Baseline (Algorithm 3).

    Without reuse it is ``sum over (y,a) of tau/q_{y,a}`` times the mean price of labelling an
    arrival, whatever its group.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(baseline_expectation(world, Question(), Costs(), tau=1000))
    13,056.2 for 15,232.2 labels and 0 feature vectors
    """
    tau = paper_tau(question, len(world.cells)) if tau is None else tau
    q = shares_of_outcomes(world)[list(outcomes_of(question))]
    arrivals = _arrivals(q.ravel(), tau, reuse_labels)
    return arrivals * sum(per_arrival(world, costs), Price())


def rs_expectation(
    world: CellWorld,
    question: Question,
    costs: Costs,
    *,
    tau: int | None = None,
    reuse_labels: bool = False,
) -> Price:
    """Return the expected price of RS-Audit (Algorithm 1).

    Without reuse it is ``sum over (y,a) of tau/q_{y|a}`` times the mean price of labelling
    somebody of group a.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(rs_expectation(world, Question(), Costs(), tau=1000))
    6,848.49 for 7,883.11 labels and 0 feature vectors
    """
    tau = paper_tau(question, len(world.cells)) if tau is None else tau
    q = shares_of_outcomes(world)[list(outcomes_of(question))]
    total = Price()
    for a, price in enumerate(per_arrival(world, costs)):
        # Arrivals of other groups are passed over: both q and the price are per arrival of
        # anybody, and the group's share cancels.
        total += _arrivals(q[:, a], tau, reuse_labels) * price
    return total


def _arrivals(shares: Array, tau: int, reuse_labels: bool) -> float:
    """Return the mean number of arrivals until tau of every share came, in turn or together."""
    if not len(shares):
        return 0.0
    if not np.all(shares > 0.0):
        return math.inf
    return _mean_of_last(shares, tau) if reuse_labels else float((tau / shares).sum())


def _mean_of_last(shares: Array, tau: int) -> float:
    """Return ``E[max_j T_j]`` for independent ``T_j ~ Gamma(tau) / share_j``.

    Let people arrive as a Poisson process of rate 1: then the kinds are independent, T_j is the
    time of the tau-th of kind j, and the mean number of arrivals by a stopping time is its mean.
    """
    from scipy.special import gammainc

    means, spread = tau / shares, math.sqrt(tau) / shares
    start = max(0.0, float((means - 12.0 * spread).max()))
    end = float((means + 12.0 * spread + 40.0 / shares).max())
    times = np.linspace(start, end, 8001)
    survival = 1.0 - np.prod([gammainc(tau, times * share) for share in shares], axis=0)
    steps = np.diff(times)
    return start + float((steps * (survival[1:] + survival[:-1])).sum() / 2.0)
