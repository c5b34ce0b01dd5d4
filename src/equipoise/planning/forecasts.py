"""What an adaptive audit of a case will cost on these historical data, without running one.

An audit costs a measured multiple (``python -m study forecast``) of what its verdict takes if every
label tells as much as the mean (:class:`~equipoise.audits.label_work.LabelWork`), and of its pilot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.audits.label_work import LabelWork
from equipoise.cells import Cells, GroupCells
from equipoise.display import format_number
from equipoise.evidence.label_plan import PILOT_LABELS
from equipoise.history.past import Past
from equipoise.planning.scenarios import Scenario
from equipoise.question import Costs, Question, Verdict

DECIDED_VERDICTS = (Verdict.FAIR, Verdict.UNFAIR)
COST_QUANTILES = (0.1, 0.5, 0.9)  # that a forecast states


class ForecastConstants(NamedTuple):
    """What ``python -m study forecast`` fits: the constants of :func:`median_cost`, and the spread.

    A spread has the 10% and 90% quantiles of the cost as multiples of the median: first where the
    wrong answer is an epsilon or more away, then where it is nearer. With each group after the
    second the 90% quantile grows by ``spread_per_group``: the more pairs of groups there are, the
    less a forecast knows of which of them will take longest.
    """

    work_scale: Mapping[Verdict, float] = {Verdict.FAIR: 0.62, Verdict.UNFAIR: 0.80}
    pilot_scale: float = 1.04
    distance_power: float = 0.30
    grey_zone_rate: float = 0.1
    spread: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
        Verdict.FAIR: ((0.6, 1.75), (0.37, 2.1)),
        Verdict.UNFAIR: ((0.5, 2.2), (0.5, 1.9)),
    }
    spread_per_group: float = 0.05


FITTED_CONSTANTS = ForecastConstants()
_NORMAL_QUANTILE = NormalDist().inv_cdf(COST_QUANTILES[-1])
LEAST_DISTANCE = 0.1  # epsilons; what is nearer to the wrong answer costs no less
ACCEPTABLE_WORK_FACTOR = 3.0  # rows are enough if the work is this many times an unlimited past's
# Where a finite past leaves less than so many epsilons between the gap and the wrong answer, luck
# decides when an audit ends: its cost has no upper figure.
OPEN_ENDED_DISTANCE = 0.3
# The same holds of every case in the grey zone with more groups than this: any of many pairs may
# bring the other answer.
MOST_GROUPS_WITH_RANGE = 4
# In the grey zone neither answer is favoured. There luck ends most audits if past rows know the gap
# to so many epsilons (a standard error), though no number of mean labels would.
MOST_PAST_ERROR = 0.06
PAST_FACTORS = [1.5**power for power in range(1, 35)]  # by which past rows are multiplied in turn


@dataclass(frozen=True)
class Forecast(JsonValue):
    """What adaptive audits of one case cost.

    Attributes
    ----------
    scenario
        The case.
    cost
        "0.1", "0.5", "0.9" -> what that share of the audits stays below; None where fewer end with
        a verdict, or where luck decides when they do (open-ended).
    labels
        Per group, the labels that half of the audits stay below.
    people
        How many people have to arrive, about, approved ones included: enough denied people of
        every group for the median's labels.
    rows
        Where this past probably cannot decide the case: about how many past rows like these would.
        None where more rows never do, for example because too many outcomes are unknown; and
        where the forecast expects a verdict that trial runs do not reach.
    trial_runs
        How many audits of the case were tried out; 0 if the figures are forecast at once.
    verdicts
        Of the trial runs, the share of each verdict, and "none" for those broken off.

    Examples
    --------
    >>> from equipoise.planning.scenarios import ScenarioKind
    >>> case = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.3}, 0.1, "FAIR")
    >>> cost = {"0.1": 50.0, "0.5": 110.0, "0.9": None}
    >>> verdicts = {"FAIR": 0.8, "none": 0.2}
    >>> tried = Forecast(case, cost, {"A": 150.0}, 400.0, trial_runs=40, verdicts=verdicts)
    >>> tried.decides, tried.is_decidable
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
    def is_open_ended(self) -> bool:
        """Whether a typical cost is known and no figure that 90% of the audits stay below."""
        return self.is_decidable and self.cost["0.9"] is None

    @property
    def decides(self) -> float | None:
        """The share of the trial runs that ended with a verdict; None without trial runs."""
        if self.verdicts is None:
            return None
        return sum(self.verdicts.get(verdict.value, 0.0) for verdict in DECIDED_VERDICTS)

    @property
    def missing(self) -> str:
        """What is missing for a verdict; nothing where most audits reach one."""
        if self.is_decidable:
            return ""
        return f"cannot be decided with these historical data; {describe_rows_needed([self])}"

    def range_in_all(
        self, spent: float, held: Mapping[str, float] | None = None
    ) -> tuple[float, ...]:
        """Return what an audit costs in all that has spent so much and goes on: low, middle, high.

        These are the quantiles of :attr:`cost` among the audits that cost more than ``spent``. In
        between and beyond them the logarithm of the cost is taken as normal, with one standard
        deviation below the median and one above it. ``held`` is the money of each group's open
        requests: the share of them that ends badly in this case will be spent, whatever the first
        outcomes say. The tuple is empty where this past cannot decide. Where the forecast is
        open-ended, the deviation above the median is taken to be that below it.

        Examples
        --------
        >>> from equipoise.planning.scenarios import ScenarioKind
        >>> case = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.3}, 0.1, "FAIR")
        >>> cost = {"0.1": 50.0, "0.5": 100.0, "0.9": 200.0}
        >>> forecast = Forecast(case, cost, {"A": 150.0}, 400.0)
        >>> [round(cost) for cost in forecast.range_in_all(0.0)]
        [50, 100, 200]
        >>> [round(cost) for cost in forecast.range_in_all(150.0)]
        [156, 192, 295]
        >>> [round(cost) for cost in forecast.range_in_all(0.0, {"A": 200.0})]
        [140, 140, 200]
        """
        if not self.is_decidable:
            return ()
        below = self._share_below(spent)
        committed = spent
        for group, amount in (held or {}).items():
            committed += amount * (1.0 - self.scenario.r.get(group, 0.0))
        return tuple(
            max(self._cost_of_share(below + quantile * (1.0 - below)), committed)
            for quantile in COST_QUANTILES
        )

    @property
    def _deviations(self) -> tuple[float, float]:
        """The standard deviations of the logarithm of the cost, below and above the median."""
        low = self.cost["0.1"]
        median = self.cost["0.5"]
        high = self.cost["0.9"]
        assert median is not None  # where audits are decided
        below = log(median / low) / _NORMAL_QUANTILE if low and median else 0.0
        above = log(high / median) / _NORMAL_QUANTILE if high and median else below
        return max(below, 1e-9), max(above, 1e-9)

    def _share_below(self, cost: float) -> float:
        """Return the share of the audits that cost at most so much."""
        if cost <= 0.0 or not self.median:
            return 0.0
        nats = log(cost / self.median)
        below, above = self._deviations
        share = NormalDist().cdf(nats / (below if nats < 0.0 else above))
        # In the far tail a share of 1 would leave nothing to divide.
        return min(share, 1.0 - 1e-12)

    def _cost_of_share(self, share: float) -> float:
        """Return what this share of the audits cost at most."""
        if not self.median:
            return 0.0
        below, above = self._deviations
        deviations = NormalDist().inv_cdf(min(share, 1.0 - 1e-13))
        return self.median * exp(deviations * (below if deviations < 0.0 else above))

    def __str__(self) -> str:
        text = f"if {self.scenario.name}: "
        if self.is_decidable:
            costs = []
            not_given = "cannot be reached" if self.trial_runs else "open-ended"
            for quantile, cost in self.cost.items():
                amount = not_given if cost is None else format_number(cost, 4)
                costs.append(f"{float(quantile):.0%} {amount}")
            text += f"{self.scenario.expect}; cost {', '.join(costs)}"
            text += f"; about {self.people:,.0f} people must arrive"
        else:
            text += self.missing
        if self.decides is not None:
            text += f"; {self.decides:.0%} of trial runs decided"
        return text


def forecast(
    history: Past, question: Question, costs: Costs, cases: Sequence[Scenario]
) -> tuple[Forecast, ...]:
    """Return what adaptive audits of each case cost with these historical data.

    Examples
    --------
    >>> from equipoise.planning.scenarios import scenarios
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> question = Question("equal_opportunity", gamma=0.1, epsilon=0.1)
    >>> short, unlimited = world.past(300), world.past()
    >>> cases = scenarios(world.cells, question)
    >>> first = forecast(unlimited, question, Costs(), cases)[0]
    >>> first.cost["0.1"] < first.median < first.cost["0.9"]
    True
    >>> forecast(short, question, Costs(), cases)[0].is_decidable
    False
    """
    return Forecaster(history, question, costs).forecast_cases(cases)


def describe_rows_needed(undecided: Sequence[Forecast]) -> str:
    """Say about how many past rows would decide cases, or why they are not decided."""
    rows_needed = [case.rows for case in undecided if case.rows is not None]
    if not rows_needed:
        if any(case.trial_runs for case in undecided):
            return "most trial runs ended without a verdict, or were broken off"
        return "more past rows like these would not be enough"
    fewest = min(rows_needed)
    most_rows = max(rows_needed)
    rows_text = _round_count(most_rows)
    if most_rows >= 1.05 * fewest:  # else both ends would be the same number, once rounded
        rows_text = f"{_round_count(fewest)} to {rows_text}"
    return f"about {rows_text} past rows like these would do"


def _round_count(count: float) -> str:
    """Return a count with two significant figures."""
    return f"{float(f'{count:.2g}'):,.0f}"


def arrivals_needed(cells: Cells, labels: Mapping[str, float]) -> float:
    """Return how many people have to arrive for so many labels of every group."""
    arrivals = 0.0
    for group, label_count in labels.items():
        denied_share = cells[group].denied / cells.total
        # People of all groups arrive at the same time, so the rarest group decides.
        if denied_share > 0.0:
            arrivals = max(arrivals, label_count / denied_share)
    return arrivals


class ForecastParts(NamedTuple):
    """What the forecast of a case is made of.

    Attributes
    ----------
    verdict
        The verdict that takes less work.
    work, other_work
        What this and the other verdict cost if every label tells what it tells on average.
    pilot_cost
        What the labels cost with which every audit begins.
    distance
        Epsilons between the gap and the wrong answer; fewer where a finite past costs precision.
    labels
        The labels of each group behind ``work``.
    is_open_ended
        Whether the past is finite and luck decides when an audit ends.
    """

    verdict: Verdict
    work: float
    other_work: float
    pilot_cost: float
    distance: float
    labels: Array
    is_open_ended: bool = False


def median_cost(parts: ForecastParts, constants: ForecastConstants = FITTED_CONSTANTS) -> float:
    """Return what half of the audits cost at most.

    What the work and the pilot cost. The work is multiplied by a power of the distance, at most 1,
    because luck ends audits near the boundary sooner, and by ``exp(-grey_zone_rate
    work/other_work)``, because the other verdict ends those in the grey zone.
    """
    distance_factor = min(max(parts.distance, LEAST_DISTANCE), 1.0) ** constants.distance_power
    grey_zone_factor = 1.0
    if parts.other_work > 0.0:
        grey_zone_factor = np.exp(-constants.grey_zone_rate * parts.work / parts.other_work)
    work_cost = constants.work_scale[parts.verdict] * parts.work
    pilot_cost = constants.pilot_scale * parts.pilot_cost  # it is paid wherever the gap lies
    return float(work_cost * distance_factor * grey_zone_factor + pilot_cost)


def range_factors(
    parts: ForecastParts, n_groups: int, constants: ForecastConstants = FITTED_CONSTANTS
) -> tuple[float, float]:
    """Return the 10% and 90% quantiles of a case's cost as multiples of the median."""
    is_near = parts.distance < 1.0
    low_factor, high_factor = constants.spread[parts.verdict][is_near]
    groups_after_second = max(n_groups - 2, 0)
    return low_factor, high_factor * (1.0 + constants.spread_per_group * groups_after_second)


class Forecaster:
    """Forecasts of many cases for one past, question and price list."""

    def __init__(self, history: Past, question: Question, costs: Costs) -> None:
        self._cells = history.cells
        self._question = question
        self._costs = costs
        self._is_past_exact = history.exact
        self._work_now = LabelWork(Past(history.cells, history.exact), question, costs)
        # Outcomes of approved people that are unknown stay unknown in an unlimited past.
        self._work_unlimited = LabelWork(Past(history.cells, exact=True), question, costs)

    def forecast_cases(self, cases: Sequence[Scenario]) -> tuple[Forecast, ...]:
        """Return the forecasts of cases, with the rows that those need which are not decided.

        Where this past cannot decide the cases, most of the time goes into the search for a number
        of rows that could.
        """
        forecasts = [self.forecast_case(case) for case in cases]
        undecided = [
            place for place, case_forecast in enumerate(forecasts) if not case_forecast.is_decidable
        ]
        rows_needed = self._rows_needed([cases[place] for place in undecided])
        for place, rows in zip(undecided, rows_needed, strict=True):
            forecasts[place] = replace(forecasts[place], rows=rows)
        return tuple(forecasts)

    def forecast_case(self, case: Scenario) -> Forecast:
        """Return the forecast of a case, without the rows that it needs if it is not decided."""
        parts = self.split_case(case)
        if not np.isfinite(parts.work):
            return Forecast(
                scenario=case,
                cost={f"{quantile:g}": None for quantile in COST_QUANTILES},
                labels=dict.fromkeys(self._cells, 0.0),
                people=0.0,
            )
        median = median_cost(parts)
        low_factor, high_factor = range_factors(parts, len(self._work_now.groups))
        low = low_factor * median
        high = None if parts.is_open_ended else high_factor * median
        label_counts = parts.labels * median / max(parts.work, 1e-9)
        label_counts = np.maximum(label_counts, PILOT_LABELS * self._work_now.reachable)
        labels = dict(zip(self._work_now.groups, label_counts.tolist(), strict=True))
        figures = zip(COST_QUANTILES, (low, median, high), strict=True)
        return Forecast(
            scenario=case,
            cost={f"{quantile:g}": figure for quantile, figure in figures},
            labels=labels,
            people=arrivals_needed(self._cells, labels),
        )

    def split_case(self, case: Scenario) -> ForecastParts:
        """Return what the forecast of a case is made of."""
        fair_work = self._work_now.for_verdict(Verdict.FAIR, case.r)
        unfair_work = self._work_now.for_verdict(Verdict.UNFAIR, case.r)
        if not np.isfinite(min(fair_work.cost, unfair_work.cost)):
            parts = self._split_by_luck(case)
            if parts is not None:
                return parts
        if fair_work.cost <= unfair_work.cost:
            verdict = Verdict.FAIR
            work = fair_work
            other_work = unfair_work
            gap_to_wrong_answer = self._question.threshold - case.gap
        else:
            verdict = Verdict.UNFAIR
            work = unfair_work
            other_work = fair_work
            gap_to_wrong_answer = case.gap - self._question.gamma
        distance = max(gap_to_wrong_answer / self._question.epsilon, 0.0)
        is_open_ended = False
        if 0.0 < work.cost < np.inf:
            # Work grows with the inverse square of the distance that the past leaves. So the root
            # of how much less work an unlimited past needs is the part that a finite one leaves.
            work_unlimited = self._work_unlimited.for_verdict(verdict, case.r)
            distance *= min(work_unlimited.cost / work.cost, 1.0) ** 0.5
            is_in_grey_zone = self._question.gamma < case.gap < self._question.threshold
            has_many_groups = len(self._work_now.groups) > MOST_GROUPS_WITH_RANGE
            is_open_ended = not self._is_past_exact and (
                distance < OPEN_ENDED_DISTANCE or (is_in_grey_zone and has_many_groups)
            )
        return ForecastParts(
            verdict=verdict,
            work=work.cost,
            other_work=other_work.cost,
            pilot_cost=self._work_now.pilot_cost(case.r),
            distance=distance,
            labels=work.labels,
            is_open_ended=is_open_ended,
        )

    def _split_by_luck(self, case: Scenario) -> ForecastParts | None:
        """Return what a case in the grey zone takes that luck ends; None if it hardly would.

        It goes by what an unlimited past takes for the verdict that takes less. Where that is
        nothing, past rows would have to decide, and there are too few of them.
        """
        error = self._work_now.past_error_of_gap(case.r)
        if error is None or error > MOST_PAST_ERROR * self._question.epsilon:
            return None
        works = {v: self._work_unlimited.for_verdict(v, case.r) for v in DECIDED_VERDICTS}
        verdict = min(DECIDED_VERDICTS, key=lambda v: works[v].cost)
        if not 0.0 < works[verdict].cost < np.inf:
            return None
        return ForecastParts(
            verdict=verdict,
            work=works[verdict].cost,
            other_work=np.inf,  # the other verdict's luck is counted in what was measured
            pilot_cost=self._work_now.pilot_cost(case.r),
            distance=1.0,
            labels=works[verdict].labels,
            is_open_ended=True,
        )

    def _rows_needed(self, cases: Sequence[Scenario]) -> list[float | None]:
        """Return how many past rows like these would be enough for each case; None if none are."""
        rows_needed: list[float | None] = [None] * len(cases)
        searched = []
        for place, case in enumerate(cases):
            acceptable = self._acceptable_work(case)
            if acceptable is not None:
                searched.append(_RowSearch(place, case, *acceptable))
        # Where no number is enough, one look at the largest tells it.
        last = len(PAST_FACTORS) - 1
        possible, _ = self._split_by_rows(searched, last)
        # All cases are halved together, because making the work of a past takes long and trying a
        # case on it does not. Only one past is kept at a time, for the memory.
        pending = [(0, last, possible)]
        while pending:
            first, enough, searches = pending.pop()
            if not searches:
                continue
            if first == enough:
                for search in searches:
                    rows_needed[search.place] = self._cells.total * PAST_FACTORS[first]
                continue
            middle = (first + enough) // 2
            decided, undecided = self._split_by_rows(searches, middle)
            pending += [(first, middle, decided), (middle + 1, enough, undecided)]
        return rows_needed

    def _acceptable_work(self, case: Scenario) -> tuple[float, tuple[Verdict, ...]] | None:
        """Return how much work is acceptable, and the verdicts that can take so little; or None."""
        least_work = {}
        for verdict in DECIDED_VERDICTS:
            least_work[verdict] = self._work_unlimited.for_verdict(verdict, case.r).cost
        cheapest = min(least_work.values())
        if not np.isfinite(cheapest):
            return None
        acceptable = ACCEPTABLE_WORK_FACTOR * max(cheapest, self._work_now.pilot_cost(case.r))
        verdicts = tuple(v for v in DECIDED_VERDICTS if least_work[v] <= acceptable)
        return acceptable, verdicts

    def _split_by_rows(
        self, searched: Sequence[_RowSearch], factor: int
    ) -> tuple[list[_RowSearch], list[_RowSearch]]:
        """Return the cases for which a past multiplied by a factor is enough, and the others."""
        enough: list[_RowSearch] = []
        not_enough: list[_RowSearch] = []
        if not searched:
            return enough, not_enough
        past = Past(multiply_rows(self._cells, PAST_FACTORS[factor]))
        work = LabelWork(past, self._question, self._costs)
        for search in searched:
            costs = (work.for_verdict(verdict, search.case.r).cost for verdict in search.verdicts)
            is_enough = any(cost <= search.acceptable for cost in costs)
            (enough if is_enough else not_enough).append(search)
        return enough, not_enough


class _RowSearch(NamedTuple):
    """A case for which a number of past rows is searched: its place, and what is enough."""

    place: int
    case: Scenario
    acceptable: float
    verdicts: tuple[Verdict, ...]


def multiply_rows(cells: Cells, factor: float) -> Cells:
    """Return the counts of a past of ``factor`` times the rows, with the same random accepts."""
    multiplied = {}
    for group, counts in cells.items():
        cohorts = [
            (factor * good, factor * bad, factor * unknown) for good, bad, unknown in counts.cohorts
        ]
        multiplied[group] = GroupCells(
            **{name: factor * count for name, count in counts.counts.items()},
            cohorts=tuple(cohorts),
            random_accepts=counts.random_accepts,
        )
    return Cells(multiplied)
