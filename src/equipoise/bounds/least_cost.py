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
from typing import NamedTuple, Self

import numpy as np

from equipoise._arrays import Array
from equipoise.bounds.alternatives import GroupCurves, fair_set, unfair_set
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
        for group, labels in self.labels.items():
            lines.append(f"  {group}: {labels:,.3g} labels, {self.budget[group]:.0%} of the cost")
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
    right_verdicts = question.truth(world.gap(question.metric, question.comparison))
    prices = mean_prices(world, costs)
    proofs = [
        _cheapest_proof(verdict, world, question, prices) for verdict in sorted(right_verdicts)
    ]
    proof = min(proofs, key=lambda candidate: candidate.cost)
    budget = dict(zip(world.cells, proof.maximin.budget.tolist(), strict=True))
    labels = {}
    for group, price in zip(world.cells, prices.tolist(), strict=True):
        labels[group] = proof.cost * budget[group] / price if budget[group] else 0.0
    return LowerBound(
        proof.cost,
        proof.verdict,
        labels=labels,
        budget=budget,
        certificate=proof.maximin.relative_width,
        reference=len(right_verdicts) > 1,
    )


class _Proof(NamedTuple):
    """The least that it costs to reach a verdict, and the maximin behind it."""

    verdict: Verdict
    cost: float
    maximin: Maximin


def _cheapest_proof(verdict: Verdict, world: World, question: Question, prices: Array) -> _Proof:
    """Return the least that any audit pays on average before it gives a verdict that is right."""
    comparison = question.resolve(world.cells)
    rates = rate_curves(world, question)
    if verdict is Verdict.FAIR:
        wrong_worlds = [unfair_set(rates, question.threshold, comparison)]
    else:
        wrong_worlds = [
            fair_set(rates, question.gamma, block, comparison.scale) for block in comparison.blocks
        ]
    r = np.array([world.r[group] for group in world.cells])
    # Blocks share no group: information adds up, and goes furthest in one of them.
    candidates = [maximin(alternatives, r, prices) for alternatives in wrong_worlds]
    best = max(candidates, key=lambda candidate: candidate.upper)
    information = needed_information(question, verdict)
    if information == 0.0:
        cost = 0.0
    elif best.upper == 0.0:
        cost = math.inf  # worlds however near are not of this verdict
    else:
        cost = information / best.upper
    return _Proof(verdict, cost, best)


def needed_information(question: Question, verdict: Verdict) -> float:
    """Return the information (nats) that a verdict takes: kl(delta, 1 - delta).

    With separate error levels it is ``kl(1 - level of the other mistake, level of this one)``: the
    verdict comes with at least the first probability here, and with at most the second in a world
    where it is wrong. It is 0 where an audit may err so often that it can guess.
    """
    level = question.level_wrong_fair
    other_level = question.level_wrong_unfair
    if verdict is Verdict.UNFAIR:
        level, other_level = other_level, level
    if level + other_level >= 1.0:
        return 0.0
    return float(kl(other_level, 1.0 - level))


def rate_curves(world: World, question: Question) -> list[GroupCurves]:
    """Return the metric's rates, each with the curves of all groups, and whether it falls in r."""
    shares = [cells.shares for cells in world.cells.values()]
    rates = []
    for rate in METRICS[question.metric].rates:
        # A group without the people that a rate is about is not compared: any curve will do.
        curves = [rate.curve(*group_shares) or Curve(0.0) for group_shares in shares]
        rates.append((Curve.stack(curves), rate.trend < 0))
    return rates


def mean_prices(world: World, costs: Costs) -> Array:
    """Return what a label of each group costs on average; 1 where no label costs anything."""
    prices = []
    is_everything_free = True
    for group in world.cells:
        group_costs = costs.of(group)
        price_of_failure = np.array(group_costs.label)
        mean_price = group_costs.expected(world.r[group])
        if isinstance(world, TableWorld) and world.price is not None:
            denied = world.denied_rows(group)
            price = world.price[denied]
            price_of_failure = np.where(np.isnan(price), group_costs.label, price)
            if len(denied):
                failures = 1 - world.outcome[denied]
                mean_price = group_costs.feature + float(np.mean(price_of_failure * failures))
        prices.append(mean_price)
        if group_costs.feature or price_of_failure.any():
            is_everything_free = False
    return np.ones(len(prices)) if is_everything_free else np.array(prices)
