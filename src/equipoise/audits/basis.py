"""What past data and question fix before the first label, and what labels add to it.

:class:`Basis` has the wrong answers that an adaptive audit must refute, and turns its evidence into
a finding. :class:`LabelWork` says how many labels refuting them takes, and at which cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence import null_cells
from equipoise.evidence.allocation import FLOOR, information, mean_costs, refute_all
from equipoise.evidence.evidence import PILOT, Evidence
from equipoise.evidence.null_cells import NullCells, WrongAnswers, fair_covers, unfair_covers
from equipoise.finding import Finding, Interval, gap_interval, separation
from equipoise.free_check import (
    assumptions_of,
    bands_from_past,
    gap_bounds,
    group_shares,
    rate_intervals,
    short_strata,
)
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import RATES, Bands

ASSUMES_STREAM = "denied people of a group arrive like any others of it, whatever their outcome"
TOO_FEW = 10  # labels of a group below which the number still needed is not forecast
NEAR = 300  # cells of a cover that count for its work, those with the least information
SOME = 12  # … and so many of every pair of groups


@dataclass(frozen=True)
class Basis:
    """What past data and question fix before the first label, and how a finding follows from it.

    No label changes any of it: where labels matter, the evidence is an argument.
    """

    history: Past
    question: Question

    @cached_property
    def budget(self) -> ErrorBudget:
        """How the error probability is divided."""
        past = self.history
        return ErrorBudget.of_audit(self.question, len(past.cells), exact=past.exact)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups in the order that evidence knows them by: that of their past counts.

        It depends on no name and on no label, so neither does any answer.
        """
        cells = self.history.cells

        def counts(group: str) -> tuple[object, ...]:
            own = cells[group]
            approved = (own.approved_positive, own.approved_negative, own.approved_unknown)
            return (own.denied, *approved, sorted(own.cohorts))

        return tuple(sorted(cells, key=counts))

    @cached_property
    def bands(self) -> Bands:
        """Every rate as a function of r, as far as the past data tell, for intervals."""
        return bands_from_past(self.history, self.question.metric, self.budget.past_intervals)

    @cached_property
    def reachable(self) -> Flags:
        """Which groups have denied people to label whose labels matter."""
        cells = self.history.cells
        left_out = self.question.compared(cells).left_out
        return np.array(
            [
                cells[group].denied > 0
                and group not in left_out
                and any(by_group[group].depends_on_r for by_group in self.bands.values())
                for group in self.groups
            ]
        )

    def wrong_answers(self) -> WrongAnswers:
        """Return the wrong answers that an audit on this past has to refute."""
        question, budget, groups = self.question, self.budget, self.groups
        for_fair = bands_from_past(self.history, question.metric, budget.past_fair)
        against_unfair, against_fair = (
            tuple(tuple(by_group[group] for group in groups) for by_group in bands.values())
            for bands in (for_fair, self.bands)
        )
        known = [self.history.cells[group].like_known for group in groups]
        return WrongAnswers(
            against_unfair,
            against_fair,
            gamma=question.gamma,
            epsilon=question.epsilon,
            level_fair=budget.evidence_fair,
            level_unfair=budget.evidence_unfair,
            compare=question.gap_scale,
            blocks=question.compared(groups).blocks,
            precision=tuple(c.approved_positive / max(c.approved, 1e-300) for c in known),
        )

    @cached_property
    def accepts(self) -> Mapping[str, Sequence[float]]:
        """Labels of a test programme in the past data: good, bad and unknown ones per group."""
        return {g: own.random_accepts or (0, 0, 0) for g, own in self.history.cells.items()}

    def counts_of(self, accepts: Mapping[str, Sequence[float]]) -> Array:
        """Return labels of a test programme as evidence counts them: 0, 1 and unknown per group."""
        return np.array([accepts[g] for g in self.groups], dtype=np.float64)[:, [1, 0, 2]]

    def prices(self, costs: Costs) -> Array:
        """Return what a request costs, and what a label of 0 costs besides, shape (2, groups)."""
        return np.array([(costs.of(g).feature, costs.of(g).label) for g in self.groups]).T

    # -- what labels say by now ------------------------------------------------------------------

    def r(self, evidence: Evidence | None) -> dict[str, Interval]:
        """Return where each group's r lies: anywhere in [0, 1] where there is no evidence."""
        if evidence is None:
            return dict.fromkeys(self.groups, Interval(0.0, 1.0))
        found = evidence.intervals(self.budget.label_interval)
        return dict(zip(self.groups, found, strict=True))

    def finding(
        self, evidence: Evidence | None, verdict: Verdict, reason: str, missing: tuple[str, ...]
    ) -> Finding:
        """Return the finding, without what it cost."""
        question, r = self.question, self.r(evidence)
        boxes = {group: (own.lower, own.upper) for group, own in r.items()}
        lower, upper = gap_bounds(self.bands, boxes, compare=question.comparison, tolerance=1e-4)
        if verdict is Verdict.FAIR:
            upper = min(upper, question.threshold)
        elif verdict is Verdict.UNFAIR:
            lower = max(lower, question.gamma)
        shares = group_shares(self.history, self.budget.past_table, r)
        rates = {
            rate: {g: own.guessing(shares[g].rate(RATES[rate]).estimate) for g, own in by.items()}
            for rate, by in rate_intervals(self.bands, boxes).items()
        }
        gap = Interval(min(lower, upper), max(lower, upper))
        return Finding(
            question=question,
            verdict=verdict,
            lower=gap.lower,
            upper=gap.upper,
            reason=reason,
            estimate=gap.guessing(gap_interval(rates, question.compare).estimate).estimate,
            rates=rates,
            decided_by=separation(rates, question.compare) if verdict is Verdict.UNFAIR else None,
            missing=missing,
            assumptions=(*assumptions_of(self.history, question), ASSUMES_STREAM),
            shares=shares,
        )

    def what_is_missing(self, evidence: Evidence, pending: int) -> tuple[str, ...]:
        """Say what would bring a verdict, so many outcomes being pending."""
        history, to_go = self.history, evidence.labels_to_go()
        if (evidence.told[self.reachable] < TOO_FEW).any():
            lacks = (
                f"more labels; after {TOO_FEW} of every group it can be said about how many, and "
                "plan forecasts what such audits need"
            )
        elif np.isfinite(to_go).all():
            wanted = [
                f"about {int(np.ceil(n)):,} of {g}"
                for g, n in zip(self.groups, to_go, strict=True)
                if n >= 0.5
            ]
            lacks = f"more labels, at the present estimates: {', '.join(wanted)}"
        elif history.cells.unknown:
            lacks = (
                f"outcomes of {history.cells.unknown:,g} approved people that are not known: at "
                "the present estimates no number of labels decides without them; or a larger "
                "epsilon"
            )
        elif not history.exact:
            middle, scale = dict.fromkeys(self.groups, (0.5, 0.5)), self.question.gap_scale
            by_rate = rate_intervals(self.bands, middle).values()
            widths = [scale.gap(own.lower, own.upper) for by in by_rate for own in by.values()]
            shrink = max(float(max(widths)) / (self.question.epsilon / 4.0), 2.0)
            lacks = (
                "more past rows: at the present estimates no number of labels decides with these; "
                f"try about {history.cells.total * shrink**2:,.0f} in all, or a larger epsilon"
            )
        else:
            lacks = "a larger epsilon: at the present estimates both answers stay possible"
        guesses = {group: own.estimate for group, own in self.r(evidence).items()}
        r = {group: 0.5 if guess is None else guess for group, guess in guesses.items()}
        strata = short_strata(history, self.question, self.budget, r)
        if not pending:
            return (lacks, *strata)
        waiting = f"{pending:,} outcomes that are still pending; ranges hold however they turn out"
        return (lacks, *strata, waiting)


@dataclass(frozen=True)
class Work:
    """What a verdict costs if every label tells what it tells on average, and labels per group."""

    cost: float
    labels: Array


class LabelWork:
    """The labels that a verdict takes, at the best allocation, if each tells as much as the mean.

    Both wrong answers are cut into the adaptive audit's own null cells, from the bands of the past.
    Bets against a cell are fixed, so for a given r it is known how fast each grows, and hence what
    it costs to refute the slowest cell: the work. The forecasts of a plan are multiples of the
    work, and Exp-Audit compares it with the price of features.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> work = LabelWork(world.past(), Question(epsilon=0.4), Costs())
    >>> work.of(Verdict.FAIR, world.r).cost < work.of(Verdict.UNFAIR, world.r).cost
    True
    """

    def __init__(self, past: Past, question: Question, costs: Costs) -> None:
        basis = Basis(past, question)
        self.groups, self.reachable = basis.groups, basis.reachable
        self._start, self._prices = basis.counts_of(basis.accepts), basis.prices(costs)
        wrong = basis.wrong_answers()
        fair, unfair = (unfair_covers, wrong.level_fair), (fair_covers, wrong.level_unfair)
        self._to_refute = {Verdict.FAIR: fair, Verdict.UNFAIR: unfair}
        self._covers = cache(lambda make: make(wrong))

    def pilot(self, r: Mapping[str, float]) -> float:
        """Return what the first labels of each group cost, with which every audit begins."""
        return PILOT * float(mean_costs(self._prices, self._rates(r))[self.reachable].sum())

    def of(self, verdict: Verdict, r: Mapping[str, float]) -> Work:
        """Return what a verdict takes, FAIR or UNFAIR."""
        make, level = self._to_refute[verdict]
        covers = self._covers(make)
        bar = float(np.log(len(covers) / level))
        every = [self._refute(cover, self._rates(r), bar) for cover in covers]
        return min(every, key=lambda one: one.cost)

    def _rates(self, r: Mapping[str, float]) -> Array:
        """Return every group's r, inside (0, 1)."""
        return np.clip([r[group] for group in self.groups], 1e-6, 1.0 - 1e-6)

    def _refute(self, cover: NullCells, r: Array, bar: float) -> Work:
        prices, nothing = mean_costs(self._prices, r), np.zeros(len(r))
        info = information(cover.low, cover.high, r, nothing > 0.0) * self.reachable
        cells = _slowest(cover, info @ (1.0 / prices))
        if not len(cells):
            return Work(0.0, nothing)
        start = cover.log_wealth(self._start, cells)
        missing = bar - np.log(np.maximum(null_cells.evidence(start), 1e-300))
        if missing.max() <= 0.0:
            return Work(0.0, nothing)
        budget, _ = refute_all(info[cells], np.maximum(missing, 0.0), prices)
        shares, even = budget / prices * self.reachable, FLOOR * self.reachable
        shares = (1.0 - FLOOR) * shares / shares.sum() + even / self.reachable.sum()
        label = np.stack([shares * (1.0 - r), shares * r, nothing], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # some bets have no stake
            growth = cover.log_wealth(label, cells) - cover.log_stake[cells]
            needed = np.where(growth > 1e-12, np.maximum(bar - start, 0.0) / growth, np.inf)
        number = float(np.where(missing > 0.0, needed.min(axis=1), 0.0).max())
        if not np.isfinite(number):
            return Work(np.inf, nothing)
        return Work(number * float(shares @ prices), number * shares)


def _slowest(cover: NullCells, gain: Array) -> Ints:
    """Return the cells about which labels tell least, some of every pair of groups."""
    order = np.argsort(gain, kind="stable")
    a, b = cover.groups
    if a.shape[1] > 1:  # boxes of all groups
        return order[:NEAR]
    pair = (a * cover.low.shape[1] + b)[order, 0]
    by_pair = np.argsort(pair, kind="stable")
    place = np.empty_like(order)
    place[by_pair] = np.arange(len(pair)) - np.searchsorted(pair[by_pair], pair[by_pair])
    return order[(place < SOME) | (np.arange(len(order)) < NEAR)]
