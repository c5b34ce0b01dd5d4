"""C*: the least that any audit can cost on average.

The alternatives are the worlds that an audit must tell from the true one
(:mod:`equipoise.bounds.alternatives`). C* is the information that the question's error levels ask
for, over the most that a unit of cost buys against every alternative
(:mod:`equipoise.bounds.maximin`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from equipoise._arrays import Array
from equipoise.bounds.alternatives import fair_set, unfair_set
from equipoise.bounds.maximin import Maximin, kl, maximin
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question, Verdict, require_question_and_costs
from equipoise.rates import Curve
from equipoise.worlds import TableWorld, World
from equipoise.worlds.world import require_world


@dataclass(frozen=True, eq=False, repr=False)
class LowerBound(float):
    """C* as a number, with the allocation that attains it and how well it is known.

    Attributes
    ----------
    cost
        C*, rounded down: no audit that keeps the question's error levels costs less on average.
    verdict
        The answer whose proof is the cheaper one; the only right one outside the grey zone.
    labels
        Expected labels per group at the optimum; 0 for a group whose labels cost nothing, which
        is taken as known.
    budget
        Each group's share of the cost.
    certificate
        Relative distance between this value and the cost of the allocation given, both certified;
        C* lies between them.
    reference
        True in the grey zone (the gap is above gamma and at most gamma + epsilon), where both
        answers are right and the value is an asymptotic reference, not a bound.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> bound = lower_bound(world, Question("demographic_parity"), Costs())
    >>> float(bound), bound.verdict.value
    (0.0, 'UNFAIR')
    """

    cost: float
    verdict: Verdict
    labels: Mapping[str, float]
    budget: Mapping[str, float]
    certificate: float
    reference: bool

    def __new__(cls, cost: float, *_: object, **__: object) -> Self:  # noqa: D102
        return super().__new__(cls, cost)

    def __str__(self) -> str:
        if self.cost == math.inf:
            return f"{self.verdict} is out of reach: worlds however near are not {self.verdict}"
        reference = "as an asymptotic reference (both answers are right)"
        kind = reference if self.reference else "at least"
        lines = [f"{self.verdict} costs {kind} {self.cost:,.4g} (within {self.certificate:.2%})"]
        lines += [
            f"  {group}: {labels:,.3g} labels, {self.budget[group]:.0%} of the cost"
            for group, labels in self.labels.items()
        ]
        return "\n".join(lines)


def lower_bound(world: World, question: Question, costs: Costs) -> LowerBound:
    """Return C*: no audit that keeps the question's error levels costs less on average.

    ``C* = kl(delta, 1-delta) / max_w inf_{lam in Alt} sum_a w_a kl(r_a, lam_a)`` with
    ``sum_a w_a c_a = 1`` and ``c_a = c_feat + c_lab (1 - r_a)``, where Alt holds the unknowns for
    which the true answer is wrong: a gap >= gamma + epsilon if the world is FAIR, one <= gamma
    if it is UNFAIR. It holds for audits with an unlimited past that use neither features nor
    scores (the change of measure of Garivier and Kaufmann, 2016, priced). With separate error
    levels the numerator is ``kl(1 - level of the other mistake, level of this one)``.

    Where people have prices of their own, ``c_a = c_feat + E[price (1 - Y)]`` over the denied.

    C* is 0 if past data decide, and infinite where no audit can: a ratio of rates that are 0 in
    every group is FAIR, and worlds however near to it are not. Where nothing costs anything,
    labels are counted instead.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({
    ...     "A": (0.026, 0.023, 0.951, 0.0875), "B": (0.0762, 0.0285, 0.8953, 0.2542),
    ... })
    >>> bound = lower_bound(world, Question(gamma=0.1, epsilon=0.05), Costs())
    >>> abs(bound - 192) < 2
    True
    >>> print(bound)
    FAIR costs at least 192.5 (within 0.10%)
      A: 146 labels, 69% of the cost
      B: 79.2 labels, 31% of the cost
    """
    require_world(world)
    require_question_and_costs(question, costs)
    right = question.truth(world.gap(question.metric, question.comparison))
    r, prices = np.array([world.r[group] for group in world.cells]), _mean_prices(world, costs)
    shares = [cells.shares for cells in world.cells.values()]
    rates = [  # a group without such people is not compared: any curve will do
        (Curve.stack([rate.curve(*own) or Curve(0.0) for own in shares]), rate.trend < 0)
        for rate in METRICS[question.metric].rates
    ]
    compare, found = question.resolve(world.cells), list[tuple[float, Verdict, Maximin]]()
    for verdict in sorted(right):
        wrong, other = question.level_wrong_fair, question.level_wrong_unfair
        if verdict is Verdict.FAIR:
            refuted = [unfair_set(rates, question.threshold, compare)]
        else:
            wrong, other = other, wrong
            refuted = [fair_set(rates, question.gamma, b, compare.scale) for b in compare.blocks]
        # Blocks share no group: information adds up, and goes furthest in one of them.
        best = max((maximin(one, r, prices) for one in refuted), key=lambda one: one.upper)
        # The verdict comes with probability at least 1 - other here, at most wrong where it is not.
        need = float(kl(other, 1.0 - wrong)) if wrong + other < 1.0 else 0.0
        out_of_reach = need > 0.0 and best.upper == 0.0
        found.append((math.inf if out_of_reach else need / (best.upper or 1.0), verdict, best))
    cost, verdict, best = min(found, key=lambda one: one[0])
    budget = dict(zip(world.cells, best.budget.tolist(), strict=True))
    each = zip(budget.items(), prices.tolist(), strict=True)
    return LowerBound(
        cost,
        verdict,
        labels={group: cost * share / price if share else 0.0 for (group, share), price in each},
        budget=budget,
        certificate=0.0 if best.lower == best.upper else 1.0 - best.lower / best.upper,
        reference=len(right) > 1,
    )


def _mean_prices(world: World, costs: Costs) -> Array:
    """Return what a label of each group costs on average; 1 where no label costs anything."""
    mean_prices, are_all_free = [], True
    for group in world.cells:
        group_costs = costs.of(group)
        price_of_failure, mean_price = (
            np.array(group_costs.label),
            group_costs.expected(world.r[group]),
        )
        if isinstance(world, TableWorld) and world.price is not None:
            rows = world.denied_rows(group)
            price_of_failure = np.where(
                np.isnan(world.price[rows]), group_costs.label, world.price[rows]
            )
            if len(rows):
                mean_price = group_costs.feature + float(
                    np.mean(price_of_failure * (1 - world.outcome[rows]))
                )
        mean_prices.append(mean_price)
        are_all_free &= not (group_costs.feature or price_of_failure.any())
    return np.ones(len(mean_prices)) if are_all_free else np.array(mean_prices)
