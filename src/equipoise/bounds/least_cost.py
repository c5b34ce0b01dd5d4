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
from equipoise.bounds.alternatives import Alternatives, GroupCurves, fair_set, unfair_set
from equipoise.bounds.finite_history import least_cost_with_history, past_information
from equipoise.bounds.maximin import kl, maximin
from equipoise.bounds.nearest_population import GroupPopulation
from equipoise.display import format_number
from equipoise.errors import require_in_unit, require_kind, require_whole
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question, Verdict, require_question_and_costs
from equipoise.rates import Curve
from equipoise.worlds import TableWorld, World
from equipoise.worlds.world import require_world


@dataclass(frozen=True, eq=False, repr=False)
class LowerBound(float):
    """C* or C*_n as a number, with the allocation that attains it and how well it is known.

    Attributes
    ----------
    cost
        Rounded down: no audit that keeps the question's error levels costs less on average.
    verdict
        The answer whose proof is the cheaper one; the only right one outside the grey zone.
    labels
        Expected labels per group at the optimum; 0 for a group whose labels cost nothing, which
        is taken as known.
    budget
        Each group's share of the cost.
    certificate
        For C*, the relative distance between this value and the cost of the allocation given, both
        certified; C* lies between them. For C*_n, the share of the needed information that the
        allocation given may miss.
    reference
        True in the grey zone (the gap is above gamma and at most gamma + epsilon), where both
        answers are right and the value is an asymptotic reference, not a bound.
    history_size
        The past rows n of C*_n; None for C*, with an unlimited past.

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
    history_size: int | None = None

    def __new__(cls, cost: float, *_: object, **__: object) -> Self:  # noqa: D102
        return super().__new__(cls, cost)

    def __str__(self) -> str:
        if self.cost == math.inf:
            reason = f"worlds however near are not {self.verdict}"
            if self.history_size is not None:
                reason = f"{self.history_size:,} past rows do not tell it from others"
            return f"{self.verdict} is out of reach: {reason}"
        reference = "as an asymptotic reference (both answers are right)"
        kind = reference if self.reference else "at least"
        lines = [
            f"{self.verdict} costs {kind} {format_number(self.cost, 4)} (within "
            f"{self.certificate:.2%})"
        ]
        for group, labels in self.labels.items():
            share = f"{self.budget[group]:.0%}"
            lines.append(f"  {group}: {format_number(labels, 3)} labels, {share} of the cost")
        return "\n".join(lines)


def lower_bound(
    world: World,
    question: Question,
    costs: Costs,
    *,
    history_size: int | None = None,
    decided: float | None = None,
) -> LowerBound:
    """Return C* or C*_n: no audit that keeps the question's error levels costs less on average.

    ``C* = I / max_w inf_{lam in Alt} sum_a w_a kl(r_a, lam_a)`` with ``sum_a w_a c_a = 1`` and
    ``c_a = c_feat + c_lab (1 - r_a)``, where Alt holds the unknowns for which the true answer is
    wrong: a gap >= gamma + epsilon if the world is FAIR, one <= gamma if it is UNFAIR. It holds for
    audits with an unlimited past (the change of measure of Garivier and Kaufmann, 2016, priced).
    With n past rows the shares p of the past data are known only so well, and C*_n is the least
    cost with ``n KL(p, p') + sum_a N_a kl(r_a, r'_a) >= I`` for every alternative (p', r').

    The needed information is ``I = kl(delta, 1-delta)``; with separate error levels it is
    ``kl(1 - level of the other mistake, level of this one)``.

    It bounds no audit with features, scores, random accepts, or arrivals whose decisions count as
    further past rows: each of them sees more than is counted here.

    Where people have prices of their own, ``c_a = c_feat + E[price (1 - Y)]`` over the denied.

    C* is 0 if past data decide, and infinite where no audit can: a ratio of rates that are 0 in
    every group is FAIR, and worlds however near to it are not. C*_n is infinite as well if the past
    has fewer than :func:`least_history_size` rows. Where nothing costs anything, labels are counted
    instead.

    Parameters
    ----------
    world
        The population, whose truth is known.
    question, costs
        What is asked, and what labels cost.
    history_size
        n: the past rows of all groups together; unlimited if None.
    decided
        The probability of a right verdict, for audits that may say INCONCLUSIVE. They need less:
        ``I = kl(decided, delta)``. If None an audit always answers.

    Raises
    ------
    InvalidInput
        If ``history_size`` is no positive whole number, or ``decided`` is not in [0, 1].

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({
    ...     "A": (0.026, 0.023, 0.951, 0.0875), "B": (0.0762, 0.0285, 0.8953, 0.2542),
    ... })
    >>> question = Question(gamma=0.1, epsilon=0.05)
    >>> bound = lower_bound(world, question, Costs())
    >>> abs(bound - 192) < 2
    True
    >>> print(bound)
    FAIR costs at least 192.5 (within 0.10%)
      A: 146 labels, 69% of the cost
      B: 79.2 labels, 31% of the cost
    >>> lower_bound(world, question, Costs(), history_size=50_000) > bound
    True
    >>> lower_bound(world, question, Costs(), decided=0.5) < bound
    True
    """
    require_world(world)
    require_question_and_costs(question, costs)
    require_whole("history_size", history_size)
    if decided is not None:
        require_in_unit("decided", decided)
    right_verdicts = question.truth(world.gap(question.metric, question.comparison))
    prices = mean_prices(world, costs)
    proofs = []
    for verdict in sorted(right_verdicts):
        information = needed_information(question, verdict, decided)
        proof = _cheapest_proof(verdict, world, question, prices, information)
        if history_size is not None and proof.cost < math.inf:
            proof = _add_history(proof, world, question, prices, information, history_size)
        proofs.append(proof)
    # In the grey zone both verdicts are right, and an audit may take the cheaper proof.
    best = min(proofs, key=lambda proof: proof.cost)
    return LowerBound(
        best.cost,
        best.verdict,
        labels=dict(zip(world.cells, best.labels.tolist(), strict=True)),
        budget=dict(zip(world.cells, best.budget.tolist(), strict=True)),
        certificate=best.certificate,
        reference=len(right_verdicts) > 1,
        history_size=history_size,
    )


def least_history_size(world: World, question: Question, *, decided: float | None = None) -> float:
    """Return how many past rows an audit needs at least, whatever it pays for labels.

    With fewer rows C*_n is infinite: past data with known r do not tell the world from one in which
    the answer is wrong. In the grey zone it is the number for the verdict that needs fewer rows.

    Parameters
    ----------
    world, question
        The population, whose truth is known, and what is asked.
    decided
        The probability of a right verdict, as in :func:`lower_bound`.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.2)})
    >>> question = Question("equal_opportunity", gamma=0.2, epsilon=0.1)
    >>> rows = least_history_size(world, question)
    >>> lower_bound(world, question, Costs(), history_size=int(0.9 * rows))
    inf
    >>> 0.0 < lower_bound(world, question, Costs(), history_size=int(1.1 * rows)) < float("inf")
    True
    """
    require_world(world)
    require_kind("question", question, Question, "a Question")
    if decided is not None:
        require_in_unit("decided", decided)
    # Past information grows in proportion to the rows, so that of one row is all that it takes.
    rows_needed = []
    for verdict in question.truth(world.gap(question.metric, question.comparison)):
        information = needed_information(question, verdict, decided)
        populations = _group_populations(world, question, history_size=1.0)
        per_row = past_information(_wrong_worlds(verdict, world, question), populations)
        rows_needed.append(information / per_row if per_row > 0.0 else math.inf)
    return min(rows_needed)


class _Proof(NamedTuple):
    """The least that it costs to reach a verdict; arrays have an entry per group."""

    verdict: Verdict
    cost: float
    labels: Array
    budget: Array
    certificate: float


def _cheapest_proof(
    verdict: Verdict, world: World, question: Question, prices: Array, information: float
) -> _Proof:
    """Return the least that any audit with an unlimited past pays for a verdict that is right."""
    r = np.array([world.r[group] for group in world.cells])
    # Blocks share no group: information adds up, and goes furthest in one of them.
    candidates = [
        maximin(alternatives, r, prices) for alternatives in _wrong_worlds(verdict, world, question)
    ]
    best = max(candidates, key=lambda candidate: candidate.upper)
    if information == 0.0:
        cost = 0.0
    elif best.upper == 0.0:
        cost = math.inf  # worlds however near are not of this verdict
    else:
        cost = information / best.upper
    # A group whose labels cost nothing gets no budget, and its price of 0 must not divide.
    is_bought = best.budget > 0.0
    labels = np.zeros(len(prices))
    labels[is_bought] = cost * best.budget[is_bought] / prices[is_bought]
    return _Proof(verdict, cost, labels, best.budget, best.relative_width)


def _add_history(
    unlimited: _Proof,
    world: World,
    question: Question,
    prices: Array,
    information: float,
    history_size: int,
) -> _Proof:
    """Return the least cost of a verdict with n past rows, from that with an unlimited past."""
    if information == 0.0:
        return unlimited
    bound = least_cost_with_history(
        _wrong_worlds(unlimited.verdict, world, question),
        _group_populations(world, question, history_size),
        prices,
        information,
        start=unlimited.labels,
    )
    spent = bound.labels * prices
    budget = spent / spent.sum() if spent.any() else np.zeros(len(prices))
    return _Proof(unlimited.verdict, bound.cost, bound.labels, budget, bound.certificate)


def _wrong_worlds(verdict: Verdict, world: World, question: Question) -> list[Alternatives]:
    """Return the alternatives for which a verdict is wrong; a set per block if it is UNFAIR."""
    comparison = question.resolve(world.cells)
    rates = rate_curves(world, question)
    if verdict is Verdict.FAIR:
        return [unfair_set(rates, question.threshold, comparison)]
    return [fair_set(rates, question.gamma, block, comparison.scale) for block in comparison.blocks]


def _group_populations(
    world: World, question: Question, history_size: float
) -> list[GroupPopulation]:
    """Return the groups of a world, each with its share of the past rows."""
    rates = METRICS[question.metric].rates
    populations = []
    for group, counts in world.cells.items():
        rows = history_size * counts.total / world.cells.total
        populations.append(GroupPopulation(counts.shares, world.r[group], rows, rates))
    return populations


def needed_information(question: Question, verdict: Verdict, decided: float | None = None) -> float:
    """Return the information (nats) that a verdict takes: kl(delta, 1 - delta).

    The verdict comes with a high probability here, and with at most its error level in a world
    where it is wrong. The high probability is ``decided`` for an audit that may say INCONCLUSIVE,
    else 1 less the level of the other mistake. The information is 0 where the high probability is
    not above the error level, because an audit can then guess.
    """
    if verdict is Verdict.FAIR:
        level = question.level_wrong_fair
        other_level = question.level_wrong_unfair
    else:
        level = question.level_wrong_unfair
        other_level = question.level_wrong_fair
    probability = 1.0 - other_level if decided is None else decided
    if probability <= level:
        return 0.0
    return float(kl(1.0 - probability, 1.0 - level))


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
        # Price and outcome may go together, so the mean of their product is taken over people.
        if isinstance(world, TableWorld) and world.price is not None:
            denied = world.denied_rows(group)
            price = world.price[denied]
            price_of_failure = np.where(np.isnan(price), group_costs.label, price)
            if len(denied):
                failures = 1 - world.outcome[denied]
                mean_price = group_costs.feature + float(np.mean(price_of_failure * failures))
        prices.append(mean_price)
        # A group may cost nothing on average only because all of its denied succeed.
        if group_costs.feature or price_of_failure.any():
            is_everything_free = False
    return np.ones(len(prices)) if is_everything_free else np.array(prices)
