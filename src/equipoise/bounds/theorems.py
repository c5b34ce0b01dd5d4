"""What the paper's audits cost: on average, and at most by its theorems.

Waiting for tau people of share q takes tau/q arrivals on average, and by Wald's identity each
arrival is denied, or a failure, as often as any other: mean cost = tau/q times the cost of an
arrival. Theorems 1, 2 and 4 bound what Baseline, RS-Audit and Exp-Audit spend, with probability at
least ``1 - delta``, by the same sums with a larger tau; Theorem 3 bounds from below what any audit
spends on its pair of instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from operator import add
from typing import Any

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.audits.estimated_rates import arrivals_in_turn, outcomes_to_estimate, paper_tau
from equipoise.display import format_number
from equipoise.errors import InvalidInput, UnknownName, require_in_open_unit
from equipoise.levels import exp_event_level, tau_event_level
from equipoise.question import Costs, Question
from equipoise.worlds.world import CellWorld


@dataclass(frozen=True)
class Price(JsonValue):
    """Labels and feature vectors of denied people, and their cost; infinite if never reached.

    Examples
    --------
    >>> print(2 * Price(labels=50, cost=40.0) + Price(features=10, cost=1.0))
    81 for 100 labels and 10 feature vectors
    """

    labels: float = 0.0
    features: float = 0.0
    cost: float = 0.0

    def __add__(self, other: Price) -> Price:
        return Price(*map(add, astuple(self), astuple(other)))

    def __rmul__(self, factor: float) -> Price:
        # 0 times an infinite factor is 0 here: what costs nothing costs nothing for ever.
        return Price(*(factor * amount if amount else 0.0 for amount in astuple(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Price:
        """Build from what :meth:`to_dict` gave."""
        return super().from_dict({k: math.inf if v is None else v for k, v in data.items()})

    def __str__(self) -> str:
        labels = format_number(self.labels)
        features = format_number(self.features)
        return f"{format_number(self.cost)} for {labels} labels and {features} feature vectors"


def expectation(
    audit: str, world: CellWorld, question: Question, costs: Costs, *, tau: int | None = None
) -> Price:
    """Return what one of the paper's audits costs on average.

    - "baseline", Algorithm 3: ``sum over (y,a) of tau/q_{y,a}`` times the mean price of labelling
      an arrival, whatever its group.
    - "rs", Algorithm 1: ``sum over (y,a) of tau/q_{y|a}`` times the mean price of labelling
      somebody of group a.
    - "exp", Algorithm 2 as published: coarse labels, then the features of R people. Exp-Audit with
      its tests takes fewer features; where it finds the model wanting it goes over to labels, at
      RS-Audit's price on top.

    Parameters
    ----------
    tau
        Of Baseline and RS-Audit: another threshold than the paper's.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> print(expectation("baseline", world, Question(), Costs(), tau=1000))
    13,056.2 for 15,232.2 labels and 0 feature vectors
    >>> print(expectation("rs", world, Question(), Costs(), tau=1000))
    6,848.49 for 7,883.11 labels and 0 feature vectors
    >>> print(expectation("exp", world, Question(epsilon=0.1), Costs(feature=0.05)))
    640,176 for 19,960 labels and 12,436,800 feature vectors
    """
    groups = len(world.cells)
    if audit == "exp":
        # Its package loads solvers and integrals, which take longer than most commands.
        from equipoise.mixture.map_weights import ExpConstants

        constants = ExpConstants(question.epsilon, question.strictest_level, groups)
        features = partial(constants.map_features, events=12)
        return _price(audit, world, question, costs, constants.coarse_tau, features)
    tau = paper_tau(question, groups) if tau is None else tau
    return _price(audit, world, question, costs, tau)


def upper_bound(audit: str, world: CellWorld, question: Question, costs: Costs) -> Price:
    """Return what an audit spends at most, with probability 1 - delta: Theorems 1, 2 and 4.

    The sums are those of the expectations, with the longest waits that the proofs allow.

    - "baseline", Theorem 1: ``sum over (y,a) of 624 log(8K/delta) / (epsilon^2 q_{y,a})`` arrivals,
      each of which costs ``c_feat P[f=0] + c_lab P[f=0, Y=0]`` on average.
    - "rs", Theorem 2: the same within each group, ``624 log(8K/delta) / (epsilon^2 q_{y|a})``
      people of group a, each of whom costs ``c_feat P[f=0|a] + c_lab P[f=0, Y=0|a]``.
    - "exp", Theorem 4, where the world meets its assumptions. Per group: coarse weights (epsilon' =
      1/10) that labels at most ``1.1 tau'/q_{y|a}`` people for each y, ``tau' = 400
      log(14K/delta)``, and the features of ``R <= 1.1 * 3430 log(14K/delta) / (q_m epsilon^2)``
      people, ``q_m = min_y q_{y|a}``.

    Examples
    --------
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> for audit in ("baseline", "rs", "exp"):
    ...     print(upper_bound(audit, world, Question(epsilon=0.1), Costs()))
    4,699,490 for 5,482,730 labels and 0 feature vectors
    2,465,070 for 2,837,470 labels and 0 feature vectors
    19,068.2 for 21,948.9 labels and 14,022,000 feature vectors
    """
    groups = len(world.cells)
    epsilon_squared = question.epsilon**2
    if audit == "exp":
        log_term = -math.log(exp_event_level(question.strictest_level, groups))

        def most_features(rarer_share: float) -> float:
            return 3773.0 * log_term / (rarer_share * epsilon_squared)

        return _price(audit, world, question, costs, 440.0 * log_term, most_features)
    # 624 = 13/12 times the 576 of the paper's tau: no wait is longer than (1 + epsilon/12) tau/q
    longest_wait = -624.0 * math.log(tau_event_level(question, groups)) / epsilon_squared
    return _price(audit, world, question, costs, longest_wait)


def family_bound(
    epsilon: float,
    delta: float,
    p: float,
    q: float,
    costs: Costs | None = None,
    *,
    fair: bool = False,
) -> Price:
    """Return Theorem 3's lower bound on the mean price of any audit, on its family of instances.

    With gamma = 0 and an audit that errs with probability below delta. Everything free to see is
    the same in all instances; in the FAIR one the gap is 0, in an UNFAIR one a single group hides
    more good people among the denied and the gap is above epsilon. With
    ``b = (1 - (p+q)/2) log(1/(4 delta)) / (q epsilon^2)`` the audit requests on average

    - on the FAIR instance more than ``b/32`` labels of *each* of the two groups, since each has an
      UNFAIR alternative of its own: together ``b/16``;
    - on an UNFAIR instance more than ``b/64`` labels of the group that differs.

    The theorem is printed as a sum over outcomes y as well. On these instances that is the same up
    to a factor of 3/2, since ``1/q + 1/(1-q) <= 1.5/q`` for q below 1/3; the proof has one
    alternative per group, not one per outcome, so the terms of y are not added here.

    Parameters
    ----------
    epsilon, p, q
        Of the instance: epsilon in (0, 1/8), ``P[f=1, Y=0 | a] = p/2`` and ``P[f=1, Y=1 | a] =
        q/2`` with p and q in (0, 1/3).
    delta
        The audit's error; from 1/4 on the bound is 0.
    costs
        What a label costs; 1 for a failed override if left out.
    fair
        Whether the instance is the FAIR one.

    Examples
    --------
    >>> print(family_bound(epsilon=0.05, delta=0.01, p=0.2, q=0.2))
    66.3893 for 80.4719 labels and 0 feature vectors
    >>> print(family_bound(epsilon=0.05, delta=0.01, p=0.2, q=0.2, fair=True))
    281.652 for 321.888 labels and 0 feature vectors
    """
    require_in_open_unit("delta", delta)
    for name, value, limit in (("epsilon", epsilon, 1 / 8), ("p", p, 1 / 3), ("q", q, 1 / 3)):
        if not 0.0 < value < limit:
            raise InvalidInput(f"{name!r} must be in (0, {format_number(limit, 4)}); got {value!r}")
    denied = 1.0 - (p + q) / 2.0  # of each group, in every instance
    labels = max(0.0, denied * math.log(1.0 / (4.0 * delta)) / (q * epsilon**2))
    labels *= 2 / 32 if fair else 1 / 64
    # The shares of the instances are those of worlds.lower_bound_pair.
    r = q / 2.0 * (1.0 if fair else 1.0 + 8.0 * epsilon) / denied
    return Price(labels=labels, cost=labels * (costs or Costs()).expected(r))


def outcome_shares(world: CellWorld) -> Array:
    """Return ``q_{y,a} = P[Y=y, A=a]``, a row per outcome y = 0, 1 and a column per group."""
    joint = world.joint
    return np.stack([joint[:, 1] + joint[:, 3], joint[:, 0] + joint[:, 2]])


def _price(
    audit: str,
    world: CellWorld,
    question: Question,
    costs: Costs,
    tau: float,
    features_needed: Callable[[float], float] = lambda q: 0.0,
) -> Price:
    """Return the mean price of waiting for tau people of every outcome and group.

    RS-Audit and Exp-Audit pass over arrivals of other groups: both q and the price are per arrival
    of anybody, and the group's share cancels. Exp-Audit then asks for the features of
    ``features_needed(q_m)`` people of every group, ``q_m`` being the rarer outcome's share.
    """
    if audit not in ("baseline", "rs", "exp"):
        raise UnknownName("audit", audit, ("baseline", "rs", "exp"))
    outcomes = outcomes_to_estimate(question, by_features=audit == "exp")
    q = outcome_shares(world)
    prices = price_per_arrival(world, costs)
    # Exp-Audit's coarse weights need both outcomes, whatever rates the question is about.
    shares_waited_for = q if audit == "exp" else q[list(outcomes)]
    if audit == "baseline":
        return arrivals_in_turn(shares_waited_for.ravel().tolist(), tau) * sum(prices, Price())
    total = Price()
    for group_index, (group, price) in enumerate(zip(world.groups, prices, strict=True)):
        total += arrivals_in_turn(shares_waited_for[:, group_index].tolist(), tau) * price
        if audit == "exp":
            group_share = float(q[:, group_index].sum())
            rarer_share = float(q[:, group_index].min()) / group_share
            people_needed = features_needed(rarer_share) if rarer_share > 0.0 else math.inf
            # The price is per arrival of anybody, so it is brought back to people of the group.
            denied_share = price.labels / group_share
            feature_cost = denied_share * costs.of(group).feature
            total += people_needed * Price(features=denied_share, cost=feature_cost)
    return total


def price_per_arrival(world: CellWorld, costs: Costs) -> list[Price]:
    """Return, per group a, the mean price of labelling one arriving person: ``P[A=a, ...]`` terms.

    An arrival is of group a and denied with probability ``P[f=0, A=a]``; labelling it costs
    ``c_feat``, and ``c_lab`` more with probability ``P[f=0, Y=0, A=a]``.
    """
    prices = []
    for group, shares in zip(world.groups, world.joint.tolist(), strict=True):
        _, _, denied_good, denied_bad = shares
        denied = denied_good + denied_bad
        group_costs = costs.of(group)
        cost = group_costs.feature * denied + group_costs.label * denied_bad
        prices.append(Price(labels=denied, cost=cost))
    return prices
