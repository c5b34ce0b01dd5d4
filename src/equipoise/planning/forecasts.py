"""What an adaptive audit of a case will cost on these historical data, without running one.

An audit costs a measured multiple (``python -m study forecast``) of what its verdict takes if every
label tells as much as the mean (:class:`~equipoise.audits.label_work.LabelWork`), and of its pilot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.audits.label_work import LabelWork
from equipoise.cells import Cells, GroupCells
from equipoise.evidence.evidence import PILOT_LABELS
from equipoise.history.past import Past
from equipoise.planning.scenarios import Scenario
from equipoise.question import Costs, Question, Verdict

DECIDED = (Verdict.FAIR, Verdict.UNFAIR)
LEVELS = (0.1, 0.5, 0.9)  # quantiles of the cost that a forecast states


class Constants(NamedTuple):
    """What ``python -m study forecast`` fits: the constants of :func:`median_of`, and the spread.

    A spread has the 10% and 90% quantiles of the cost as multiples of the median: first where the
    wrong answer is an epsilon or more away, then where it is nearer.
    """

    scale: Mapping[Verdict, float] = {Verdict.FAIR: 0.74, Verdict.UNFAIR: 0.84}
    pilot: float = 0.72
    near: float = 0.36
    grey: float = 0.15
    spread: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
        Verdict.FAIR: ((0.52, 1.8), (0.39, 2.29)),
        Verdict.UNFAIR: ((0.42, 1.95), (0.46, 1.82)),
    }


FITTED = Constants()
NEAREST = 0.1  # epsilons; what is nearer to the wrong answer costs no less
ENOUGH = 2.0  # past rows are enough if the work is at most this many times an unlimited past's
SCALES = [1.5**k for k in range(1, 35)]  # how many times the past rows are tried: to a million


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
        None where more rows never do: the outcomes of too many approved people are unknown; and
        where the forecast expects a verdict that trial runs do not reach.
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
        return sum(self.verdicts.get(v.value, 0.0) for v in DECIDED)

    @property
    def missing(self) -> str:
        """What is missing for a verdict; nothing where most audits reach one."""
        if self.is_decidable:
            return ""
        return f"cannot be decided with this past; {rows_wanted([self])}"

    def in_all(self, spent: float) -> tuple[float, ...]:
        """Return what an audit that has spent so much comes to: low, expected, high.

        Never less than what is spent; nothing where this past cannot decide.
        """
        return tuple(max(c or 0.0, spent) for c in self.cost.values() if self.is_decidable)

    def __str__(self) -> str:
        words = self.missing
        if self.is_decidable:
            shown = [
                f"{float(q):.0%} " + ("cannot be reached" if cost is None else f"{cost:,.4g}")
                for q, cost in self.cost.items()
            ]
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
    >>> from equipoise.planning.scenarios import scenarios
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> question = Question("equal_opportunity", gamma=0.1, epsilon=0.1)
    >>> short, unlimited = world.past(300), world.past()
    >>> cases = scenarios(world.cells, question)
    >>> seen = forecast(unlimited, question, Costs(), cases)[0]
    >>> seen.cost["0.1"] < seen.median < seen.cost["0.9"]
    True
    >>> forecast(short, question, Costs(), cases)[0].is_decidable
    False
    """
    maker = Forecaster(history, question, costs)
    return tuple(maker.of(case) for case in cases)


def rows_wanted(undecided: Sequence[Forecast]) -> str:
    """Say about how many past rows would decide cases, or why they are not decided."""
    known = [seen.rows for seen in undecided if seen.rows is not None]
    if not known and any(seen.trial_runs for seen in undecided):
        return "most trial runs ended without a verdict, or were broken off"
    if not known:
        return "the outcomes of too many approved people are unknown"
    least, most = (f"{float(f'{n:.2g}'):,.0f}" for n in (min(known), max(known)))
    many = most if max(known) < 1.05 * min(known) else f"{least} to {most}"
    return f"about {many} past rows like these would do"


def arrivals(cells: Cells, labels: Mapping[str, float]) -> float:
    """Return how many people have to arrive for so many labels of every group."""
    shares = {group: c.denied / cells.total for group, c in cells.items()}
    return max((n / shares[group] for group, n in labels.items() if shares[group]), default=0.0)


class Parts(NamedTuple):
    """What the forecast of a case is made of."""

    verdict: Verdict  # the one that takes less work
    work: float  # what it costs if every label tells what it tells on average
    other: float  # what the other verdict costs then
    pilot: float  # what the labels cost with which every audit begins
    far: float  # epsilons between gap and wrong answer, fewer where a finite past costs precision
    labels: Array  # of each group, behind the work


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
        self._cells, self._question = history.cells, question
        self._work_on = cache(lambda past: LabelWork(past, question, costs))
        self._now = self._work_on(Past(history.cells, history.exact))
        # Of an unlimited past what is unknown stays unknown.
        self._unlimited = self._work_on(Past(history.cells, exact=True))

    def of(self, case: Scenario) -> Forecast:
        """Return the forecast of a case."""
        cells, parts = self._cells, self.parts(case)
        if not np.isfinite(parts.work):
            none = dict.fromkeys((f"{level:g}" for level in LEVELS), None)
            return Forecast(case, none, dict.fromkeys(cells, 0.0), 0.0, self._rows(case))
        median = median_of(parts)
        low, high = FITTED.spread[parts.verdict][parts.far < 1.0]
        spread = zip(LEVELS, (low, 1.0, high), strict=True)
        each = parts.labels * median / max(parts.work, 1e-9)
        each = np.maximum(each, PILOT_LABELS * self._now.reachable)
        labels = dict(zip(self._now.groups, each.tolist(), strict=True))
        return Forecast(
            scenario=case,
            cost={f"{level:g}": share * median for level, share in spread},
            labels=labels,
            people=arrivals(cells, labels),
        )

    def parts(self, case: Scenario) -> Parts:
        """Return what the forecast of a case is made of."""
        work = {verdict: self._now.for_verdict(verdict, case.r) for verdict in DECIDED}
        verdict, other = sorted(work, key=lambda v: work[v].cost)
        own, question = work[verdict], self._question
        fair = verdict is Verdict.FAIR
        far = question.threshold - case.gap if fair else case.gap - question.gamma
        far = max(far / question.epsilon, 0.0)
        if 0.0 < own.cost < np.inf:
            far *= min(self._unlimited.for_verdict(verdict, case.r).cost / own.cost, 1.0) ** 0.5
        pilot = self._now.pilot_cost(case.r)
        return Parts(verdict, own.cost, work[other].cost, pilot, far, own.labels)

    def _rows(self, case: Scenario) -> float | None:
        """Return how many past rows like these would be enough; None if no number is."""
        least = {verdict: self._unlimited.for_verdict(verdict, case.r).cost for verdict in DECIDED}
        if not np.isfinite(min(least.values())):
            return None
        most = ENOUGH * max(min(least.values()), self._now.pilot_cost(case.r))
        within = [verdict for verdict in DECIDED if least[verdict] <= most]

        def enough(scale: float) -> bool:
            more = {
                group: GroupCells(
                    **{name: scale * count for name, count in c.counts.items()},
                    cohorts=tuple((scale * a, scale * b, scale * n) for a, b, n in c.cohorts),
                    random_accepts=c.random_accepts,
                )
                for group, c in self._cells.items()
            }
            work = self._work_on(Past(Cells(more)))
            return any(work.for_verdict(verdict, case.r).cost <= most for verdict in within)

        at = bisect_left(SCALES, True, key=enough)
        return self._cells.total * SCALES[at] if at < len(SCALES) else None
