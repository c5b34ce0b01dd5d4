"""What an adaptive audit will cost with the past as it is, at once: nothing is tried out.

Both wrong answers are cut into the audit's own null cells, from the bands of the finite past. Bets
against a cell are fixed, so at a stated r it is known how fast each grows, hence what the slowest
cell costs to refute at the best allocation of labels: the work. An audit costs that, and the pilot,
times a multiple that was measured on this same quantity (``python -m study forecast``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise._json import JsonValue
from equipoise.audits.adaptive import groups_in_order, wrong_answers
from equipoise.cells import Cells, GroupCells
from equipoise.evidence.allocation import FLOOR, Outlook, information, refute_all
from equipoise.evidence.evidence import PILOT
from equipoise.evidence.null_cells import NullCells, evidence
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.planning.cases import Scenario
from equipoise.question import Costs, Question, Verdict

__all__ = [
    "LEVELS",
    "Constants",
    "Forecast",
    "Forecaster",
    "Parts",
    "arrivals",
    "forecast",
    "median_of",
    "rounded",
]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

LEVELS = (0.1, 0.5, 0.9)  # quantiles of the cost that a forecast states


@dataclass(frozen=True)
class Constants:
    """The measured multiple and spread; ``python -m study forecast`` fits them.

    See :func:`median_of`; a spread is where 10% and 90% of audits end over the median, for verdicts
    that are an epsilon away and for nearer ones.
    """

    scale: Mapping[Verdict, float]
    pilot: float
    near: float
    grey: float
    spread: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]]


FITTED = Constants(
    scale={Verdict.FAIR: 0.74, Verdict.UNFAIR: 0.84},
    pilot=0.72,
    near=0.36,
    grey=0.15,
    spread={
        Verdict.FAIR: ((0.52, 1.8), (0.39, 2.29)),
        Verdict.UNFAIR: ((0.42, 1.95), (0.46, 1.82)),
    },
)
NEAR = 300  # cells of a cover that are looked at, those with the least information
NEAREST = 0.1  # epsilons; what is nearer to the wrong answer costs no less
SOME = 12  # … and so many of every pair of groups
ENOUGH = 2.0  # past rows are enough when the work is this many times that of an unlimited past
SCALES = 1.5 ** np.arange(1, 35)  # more past rows that are tried: up to a million times as many


@dataclass(frozen=True)
class Forecast(JsonValue):
    """What adaptive audits of one case cost.

    Attributes
    ----------
    scenario
        The case.
    cost
        "0.1", "0.5", "0.9" -> what that share of the audits stays below; None where fewer end with
        a verdict.
    labels
        Per group, the labels that half of the audits stay below.
    people
        How many people have to arrive, about, approved ones included: enough denied people of
        every group for the median's labels.
    rows
        Where this past probably cannot decide the case: about how many past rows like these would.
        None where more rows never do: the outcomes of too many approved people are unknown.
    trial_runs
        How many audits of the case were tried out; 0 if the figures are forecast at once.
    verdicts
        Of the trial runs, the share of each verdict, and "none" for those broken off.

    Examples
    --------
    >>> case = Scenario("the denied succeed as you say", {"A": 0.3}, 0.1, "FAIR")
    >>> cost = {"0.1": 50.0, "0.5": 110.0, "0.9": None}
    >>> seen = Forecast(case, cost, {"A": 150.0}, 400.0, None, 40, {"FAIR": 0.8, "none": 0.2})
    >>> seen.decides, seen.is_decidable
    (0.8, True)
    """

    scenario: Scenario
    cost: Mapping[str, float | None]
    labels: Mapping[str, float]
    people: float
    rows: float | None = None
    trial_runs: int = 0
    verdicts: Mapping[str, float] | None = None

    @property
    def median(self) -> float | None:
        """What half of the audits cost at most; None if fewer end with a verdict."""
        return self.cost["0.5"]

    @property
    def is_decidable(self) -> bool:
        """Whether at least half of the audits end with a verdict."""
        return self.median is not None

    @property
    def decides(self) -> float | None:
        """The share of the trial runs that ended with a verdict; None without trial runs."""
        if self.verdicts is None:
            return None
        return sum(self.verdicts.get(v.value, 0.0) for v in (Verdict.FAIR, Verdict.UNFAIR))

    @property
    def missing(self) -> str:
        """What is missing for a verdict; nothing where most audits reach one."""
        if self.is_decidable:
            return ""
        words = "the outcomes of too many approved people are unknown"
        if self.rows is not None:
            words = f"about {rounded(self.rows)} past rows like these would do"
        return f"cannot be decided with this past; {words}"

    def __str__(self) -> str:
        words = self.missing
        if self.is_decidable:
            shown = [f"{float(q):.0%} {_shown(cost)}" for q, cost in self.cost.items()]
            words = f"{self.scenario.expect}; cost {', '.join(shown)}"
            words += f"; about {self.people:,.0f} people must arrive"
        ended = "" if self.decides is None else f"; {self.decides:.0%} of trial runs decided"
        return f"if {self.scenario.name}: {words}{ended}"


def forecast(
    history: Past, question: Question, costs: Costs, cases: Sequence[Scenario]
) -> tuple[Forecast, ...]:
    """Return what adaptive audits of each case cost, with the past as it is.

    Examples
    --------
    >>> from equipoise.planning.cases import scenarios
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> question = Question("equal_opportunity", gamma=0.1, epsilon=0.1)
    >>> short, endless = world.past(300), world.past()
    >>> cases = scenarios(world.cells, question)
    >>> seen = forecast(endless, question, Costs(), cases)[0]
    >>> seen.cost["0.1"] < seen.median < seen.cost["0.9"]
    True
    >>> forecast(short, question, Costs(), cases)[0].is_decidable
    False
    """
    maker = Forecaster(history, question, costs)
    return tuple(maker.of(case) for case in cases)


def rounded(rows: float) -> str:
    """Return a number of rows to two digits: it is about so many."""
    return f"{float(f'{rows:.2g}'):,.0f}"


def arrivals(cells: Cells, labels: Array) -> float:
    """Return how many people have to arrive for so many labels of every group."""
    denied = np.array([c.denied for c in cells.values()]) / cells.total
    waits = [n / share for n, share in zip(labels, denied, strict=True) if n > 0.0 and share > 0.0]
    return float(max(waits, default=0.0))


@dataclass(frozen=True)
class Parts:
    """What the forecast of a case is made of.

    Attributes
    ----------
    verdict
        The one that takes less work.
    work, other
        What it costs if every label tells what it tells on average, and what the other one does.
    pilot
        What the labels cost with which every audit begins.
    far
        How far the gap is from the wrong answer, in epsilons, shortened by what the past hides.
    labels
        The work's labels of each group.
    """

    verdict: Verdict
    work: float
    other: float
    pilot: float
    far: float
    labels: Array


def median_of(parts: Parts, by: Constants = FITTED) -> float:
    """Return what half of the audits cost at most.

    ``(scale work + pilot's share) far^near exp(-grey work/other)``, far being at most 1: luck ends
    audits near the boundary sooner, and the other verdict those in the grey zone.
    """
    whole = by.scale[parts.verdict] * parts.work + by.pilot * parts.pilot
    near = min(max(parts.far, NEAREST), 1.0) ** by.near
    grey = np.exp(-by.grey * parts.work / parts.other) if parts.other > 0.0 else 1.0
    return float(whole * near * grey)


class Forecaster:
    """Forecasts of many cases for one past, question and price list."""

    def __init__(self, history: Past, question: Question, costs: Costs) -> None:
        self._past = Past(history.cells, history.exact)
        self._question, self._costs = question, costs
        self._now = _Nulls(self._past, question, costs)
        self._scaled: dict[int, _Nulls] = {}

    @cached_property
    def _unlimited(self) -> _Nulls:  # what is unknown stays unknown
        return _Nulls(Past(self._past.cells, exact=True), self._question, self._costs)

    def of(self, case: Scenario) -> Forecast:
        """Return the forecast of a case."""
        cells, parts = self._past.cells, self.parts(case)
        if not np.isfinite(parts.work):
            none = dict.fromkeys((f"{level:g}" for level in LEVELS), None)
            return Forecast(case, none, dict.fromkeys(cells, 0.0), 0.0, self._rows(case))
        median = median_of(parts)
        low, high = FITTED.spread[parts.verdict][parts.far < 1.0]
        spread = dict(zip(LEVELS, (low, 1.0, high), strict=True))
        each = np.maximum(parts.labels * median / max(parts.work, 1e-9), PILOT * self._now.reach)
        labels = dict(zip(self._now.groups, each.tolist(), strict=True))
        return Forecast(
            scenario=case,
            cost={f"{level:g}": share * median for level, share in spread.items()},
            labels=labels,
            people=arrivals(cells, np.array([labels[group] for group in cells])),
        )

    def parts(self, case: Scenario) -> Parts:
        """Return what the forecast of a case is made of."""
        work = self._now.work(case.r)
        verdict = min(work, key=lambda v: work[v].cost)
        own, question = work[verdict], self._question
        far = case.gap - question.gamma
        if verdict is Verdict.FAIR:
            far = question.threshold - case.gap
        far = max(far / question.epsilon, 0.0)
        if 0.0 < own.cost < np.inf:
            far *= min(self._unlimited.work(case.r)[verdict].cost / own.cost, 1.0) ** 0.5
        other = max(one.cost for one in work.values())
        pilot = self._now.pilot(case.r)
        return Parts(verdict, own.cost, other, pilot, far, own.labels)

    def _rows(self, case: Scenario) -> float | None:
        """Return how many past rows like these would be enough, by halving."""
        least = _least(self._unlimited.work(case.r))
        if not np.isfinite(least):
            return None
        most = ENOUGH * max(least, self._now.pilot(case.r))
        below, enough = -1, len(SCALES)
        while enough - below > 1:
            middle = (below + enough) // 2
            if middle not in self._scaled:
                past = Past(_times(self._past.cells, SCALES[middle]))
                self._scaled[middle] = _Nulls(past, self._question, self._costs)
            ok = _least(self._scaled[middle].work(case.r)) <= most
            below, enough = (below, middle) if ok else (middle, enough)
        return self._past.cells.total * float(SCALES[enough]) if enough < len(SCALES) else None


@dataclass(frozen=True)
class _Work:
    """What a verdict costs if every label tells what it tells on average, and labels per group."""

    cost: float
    labels: Array


def _least(work: Mapping[Verdict, _Work]) -> float:
    return min(one.cost for one in work.values())


class _Nulls:
    """The null cells of both wrong answers, as the audit makes them, and the bets against them."""

    def __init__(self, past: Past, question: Question, costs: Costs) -> None:
        cells, self.groups = past.cells, groups_in_order(past.cells)
        budget = ErrorBudget.of_audit(question, len(cells), exact=past.exact)
        wrong = wrong_answers(past, question, budget, self.groups)
        self._covers = {
            Verdict.FAIR: (wrong.unfair_covers(), wrong.level_fair),
            Verdict.UNFAIR: (wrong.fair_covers(), wrong.level_unfair),
        }
        self.reach = np.array(
            [
                cells[group].denied > 0 and any(rate[i].depends_on_r for rate in wrong.against_fair)
                for i, group in enumerate(self.groups)
            ]
        )
        self._start = np.array([cells[g].random_accepts or (0, 0, 0) for g in self.groups])
        self._start = self._start[:, [1, 0, 2]].astype(float)  # labels that are 0, 1 and unknown
        self._prices = np.array([(costs.of(g).feature, costs.of(g).label) for g in self.groups]).T

    def rates(self, r: Mapping[str, float]) -> Array:
        """Return every group's r, inside (0, 1)."""
        return np.clip([r[group] for group in self.groups], 1e-6, 1.0 - 1e-6)

    def prices(self, r: Mapping[str, float]) -> Array:
        """Return what a label of each group costs on average; labels count where none costs."""
        prices = self._prices[0] + self._prices[1] * (1.0 - self.rates(r))
        return np.maximum(prices, 1e-9) if prices.max() > 0.0 else np.ones_like(prices)

    def pilot(self, r: Mapping[str, float]) -> float:
        """Return what the labels cost with which every audit begins."""
        return PILOT * float(self.prices(r)[self.reach].sum())

    def work(self, r: Mapping[str, float]) -> dict[Verdict, _Work]:
        """Return what each verdict takes."""
        found = {}
        for verdict, (covers, level) in self._covers.items():
            bar = float(np.log(len(covers) / level))
            every = [self._refute(cover, self.rates(r), self.prices(r), bar) for cover in covers]
            found[verdict] = min(every, key=lambda one: one.cost)
        return found

    def _refute(self, cover: NullCells, r: Array, prices: Array, bar: float) -> _Work:
        nothing = np.zeros(len(r))
        info = information(cover.low, cover.high, r, nothing > 0.0) * self.reach
        cells = _slowest(cover, info @ (1.0 / prices))
        if not len(cells):
            return _Work(0.0, nothing)
        start = cover.log_wealth(self._start, cells)
        missing = bar - np.log(np.maximum(evidence(start), 1e-300))
        if missing.max() <= 0.0:
            return _Work(0.0, nothing)
        budget, _ = refute_all(Outlook(info[cells], np.maximum(missing, 0.0)), prices)
        shares = budget / prices * self.reach
        shares = (1.0 - FLOOR) * shares / shares.sum() + FLOOR * self.reach / self.reach.sum()
        label = np.stack([shares * (1.0 - r), shares * r, nothing], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # some bets have no stake
            growth = cover.log_wealth(label, cells) - cover.log_stake[cells]
            needed = np.where(growth > 1e-12, np.maximum(bar - start, 0.0) / growth, np.inf)
        number = float(np.where(missing > 0.0, needed.min(axis=1), 0.0).max())
        if not np.isfinite(number):
            return _Work(np.inf, nothing)
        return _Work(number * float(shares @ prices), number * shares)


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


def _times(cells: Cells, scale: float) -> Cells:
    """Return a past of so many times as many rows, alike in every share."""
    return Cells(
        {
            g: GroupCells(
                scale * c.approved_positive,
                scale * c.approved_negative,
                scale * c.denied,
                scale * c.approved_unknown,
                cohorts=tuple((scale * a, scale * b, scale * n) for a, b, n in c.cohorts),
                random_accepts=c.random_accepts,
            )
            for g, c in cells.items()
        }
    )


def _shown(cost: float | None) -> str:
    return "cannot be reached" if cost is None else f"{cost:,.4g}"
