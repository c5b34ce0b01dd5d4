"""C*: the least that any audit can cost on average, and the labels that attain it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from equipoise.assist import Assist
from equipoise.bounds.assisted import Efficient, efficient_sampling
from equipoise.bounds.maximin import GroupCurves, Maximin, fair_set, maximin, unfair_set
from equipoise.cells import Cells
from equipoise.question import Costs, Question, Verdict, require_asked
from equipoise.rates import METRICS, Curve
from equipoise.worlds import World
from equipoise.worlds.world import require_world

Array = NDArray[np.float64]


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
    shares
        Each group's share of the labels.
    budget
        Each group's share of the cost.
    certificate
        Relative distance between this value and the cost of the allocation given, both certified;
        C* lies between them.
    reference
        True in the grey zone (the gap is above gamma and at most gamma + epsilon), where both
        answers are right and the value is an asymptotic reference, not a bound.
    people_per_label
        People whose score is read per label, per group, in an audit with scores; empty otherwise.

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
    labels: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    certificate: float = 0.0
    reference: bool = False
    people_per_label: Mapping[str, float] = field(default_factory=dict)

    def __new__(cls, cost: float, *_: object, **__: object) -> Self:  # noqa: D102
        return super().__new__(cls, cost)

    def __str__(self) -> str:
        if self.cost == math.inf:
            return (
                f"{self.verdict} is out of reach: worlds as near as you like are not {self.verdict}"
            )
        kind = "at least"
        if self.reference:
            kind = "as an asymptotic reference (both answers are right)"
        elif self.people_per_label:
            kind = "with help, for small differences, at least"
        lines = [f"{self.verdict} costs {kind} {self.cost:,.4g} (within {self.certificate:.2%})"]
        lines += [
            f"  {group}: {labels:,.3g} labels, {self.budget[group]:.0%} of the cost"
            for group, labels in self.labels.items()
        ]
        return "\n".join(lines)


def lower_bound(
    world: World, question: Question, costs: Costs, *, assist: Assist | None = None
) -> LowerBound:
    """Return C*, below which no audit that keeps the question's error levels can cost on average.

    ``C* = kl(delta, 1-delta) / max_w inf_{lam in Alt} sum_a w_a kl(r_a, lam_a)`` with
    ``sum_a w_a c_a = 1`` and ``c_a = c_feat + c_lab (1 - r_a)``, where Alt holds the unknowns for
    which the true answer is wrong: a gap >= gamma + epsilon if the world is FAIR, one <= gamma
    if it is UNFAIR. It holds for audits that know the past without limit and do not use
    features (the change of measure of Garivier and Kaufmann, 2016, priced). With separate error
    levels the numerator is ``kl(1 - level of the other mistake, level of this one)``.

    Where people of a table have prices of their own, ``c_a = c_feat + E[price (1 - Y)]``, over the
    group's denied.

    C* is 0 if past data decide, and infinite where no audit can: a ratio of rates that are 0 in
    every group is FAIR, and worlds as near as you like are not. Where nothing costs anything,
    labels are counted instead.

    Parameters
    ----------
    assist
        Let the score or the prices of a :class:`~equipoise.worlds.TableWorld` decide whom to ask:
        then c_a is the least price of as much information as one label holds, over all chances of
        asking by score and price, were the rates behind them known
        (:mod:`equipoise.bounds.assisted`). Information is measured for small differences, so this
        is an efficiency bound: exact in the limit of small gamma and epsilon.

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
    require_asked(question, costs)
    right = question.truth(world.gap(question.metric, question.compare))
    r = np.array([world.r[group] for group in world.cells])
    sampled = efficient_sampling(world, costs, assist)
    prices = np.array([one.price for one in sampled])
    rates = _rates(world.cells, question.metric)
    compare = question.compared(world.cells)
    bounds = []
    for verdict in sorted(right):
        if verdict is Verdict.FAIR:
            best = maximin(unfair_set(rates, question.threshold, compare), r, prices)
        else:  # blocks share no group: information adds up, and goes furthest in one of them
            best = max(
                (
                    maximin(fair_set(rates, question.gamma, block, compare.scale), r, prices)
                    for block in compare.blocks
                ),
                key=lambda found: found.upper,
            )
        need = _information_needed(question, verdict)
        bounds.append(_lower_bound(world, verdict, best, need, sampled))
    least = min(bounds)
    pairs = zip(world.cells, sampled, strict=True)
    people = {} if assist is None else {group: 1.0 / one.asked for group, one in pairs}
    return replace(least, reference=len(right) > 1, people_per_label=people)


def _rates(cells: Cells, metric: str) -> list[GroupCurves]:
    # A group without such people is not compared: any curve will do.
    return [
        (Curve.stack([rate.curve(*c.shares) or Curve(0.0) for c in cells.values()]), rate.falls)
        for rate in METRICS[metric].rates
    ]


def _information_needed(question: Question, verdict: Verdict) -> float:
    """Return the nats between a right answer and the same answer where it is wrong.

    The verdict comes with probability at least ``1 - other`` here and at most ``wrong`` there.
    """
    wrong, other = question.level_wrong_fair, question.level_wrong_unfair
    if verdict is Verdict.UNFAIR:
        wrong, other = other, wrong
    if wrong + other >= 1.0:
        return 0.0
    return other * math.log(other / (1.0 - wrong)) + (1.0 - other) * math.log((1.0 - other) / wrong)


def _lower_bound(
    world: World, verdict: Verdict, best: Maximin, need: float, sampled: Sequence[Efficient]
) -> LowerBound:
    out_of_reach = need > 0.0 and best.upper == 0.0
    cost = math.inf if out_of_reach else need / (best.upper or 1.0)
    prices, paid = np.array([one.per_person / one.asked for one in sampled]), best.budget > 0.0
    bought = np.divide(best.budget, prices, out=np.zeros(len(prices)), where=paid)
    labels = np.multiply(bought, cost, out=np.zeros(len(prices)), where=paid)

    def by_group(values: Array) -> dict[str, float]:
        return dict(zip(world.cells, values.tolist(), strict=True))

    return LowerBound(
        cost,
        verdict,
        labels=by_group(labels),
        shares=by_group(bought / max(bought.sum(), 1e-300)),
        budget=by_group(best.budget),
        certificate=0.0 if best.lower == best.upper else 1.0 - best.lower / best.upper,
    )
