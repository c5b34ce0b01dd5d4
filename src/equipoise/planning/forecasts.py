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

DECIDED_VERDICTS = (Verdict.FAIR, Verdict.UNFAIR)
COST_QUANTILES = (0.1, 0.5, 0.9)  # quantiles of the cost that a forecast states


class ForecastConstants(NamedTuple):
    """What ``python -m study forecast`` fits: the constants of :func:`median_of`, and the spread.

    A spread has the 10% and 90% quantiles of the cost as multiples of the median: first where the
    wrong answer is an epsilon or more away, then where it is nearer.
    """

    work_scale: Mapping[Verdict, float] = {Verdict.FAIR: 0.74, Verdict.UNFAIR: 0.84}
    pilot_scale: float = 0.72
    distance_power: float = 0.36
    grey_zone_rate: float = 0.15
    spread: Mapping[Verdict, tuple[tuple[float, float], tuple[float, float]]] = {
        Verdict.FAIR: ((0.52, 1.8), (0.39, 2.29)),
        Verdict.UNFAIR: ((0.42, 1.95), (0.46, 1.82)),
    }


FITTED_CONSTANTS = ForecastConstants()
LEAST_DISTANCE = 0.1  # epsilons; what is nearer to the wrong answer costs no less
ACCEPTABLE_WORK_FACTOR = (
    2.0  # past rows are enough if the work is at most this many times an unlimited past's
)
PAST_FACTORS = [
    1.5**k for k in range(1, 35)
]  # how many times the past rows are tried: to a million


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
        return sum(self.verdicts.get(v.value, 0.0) for v in DECIDED_VERDICTS)

    @property
    def missing(self) -> str:
        """What is missing for a verdict; nothing where most audits reach one."""
        if self.is_decidable:
            return ""
        return f"cannot be decided with this past; {describe_rows_needed([self])}"

    def range_in_all(self, spent: float) -> tuple[float, ...]:
        """Return what an audit that has spent so much comes to: low, expected, high.

        Never less than what is spent; nothing where this past cannot decide.
        """
        return tuple(
            max(quantile or 0.0, spent) for quantile in self.cost.values() if self.is_decidable
        )

    def __str__(self) -> str:
        outcome = self.missing
        if self.is_decidable:
            costs = [
                f"{float(level):.0%} " + ("cannot be reached" if cost is None else f"{cost:,.4g}")
                for level, cost in self.cost.items()
            ]
            outcome = f"{self.scenario.expect}; cost {', '.join(costs)}"
            outcome += f"; about {self.people:,.0f} people must arrive"
        decided_share = (
            "" if self.decides is None else f"; {self.decides:.0%} of trial runs decided"
        )
        return f"if {self.scenario.name}: {outcome}{decided_share}"


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
    return tuple(maker.forecast_case(case) for case in cases)


def describe_rows_needed(undecided: Sequence[Forecast]) -> str:
    """Say about how many past rows would decide cases, or why they are not decided."""
    row_counts = [
        case_forecast.rows for case_forecast in undecided if case_forecast.rows is not None
    ]
    if not row_counts and any(case_forecast.trial_runs for case_forecast in undecided):
        return "most trial runs ended without a verdict, or were broken off"
    if not row_counts:
        return "the outcomes of too many approved people are unknown"
    smallest, largest = (
        f"{float(f'{rows:.2g}'):,.0f}" for rows in (min(row_counts), max(row_counts))
    )
    rows_range = largest if max(row_counts) < 1.05 * min(row_counts) else f"{smallest} to {largest}"
    return f"about {rows_range} past rows like these would do"


def arrivals_needed(cells: Cells, labels: Mapping[str, float]) -> float:
    """Return how many people have to arrive for so many labels of every group."""
    denied_shares = {group: counts.denied / cells.total for group, counts in cells.items()}
    return max(
        (
            label_count / denied_shares[group]
            for group, label_count in labels.items()
            if denied_shares[group]
        ),
        default=0.0,
    )


class ForecastParts(NamedTuple):
    """What the forecast of a case is made of."""

    verdict: Verdict  # the one that takes less work
    work: float  # what it costs if every label tells what it tells on average
    other_work: float  # what the other verdict costs then
    pilot_cost: float  # what the labels cost with which every audit begins
    distance: (
        float  # epsilons between gap and wrong answer, fewer where a finite past costs precision
    )
    labels: Array  # of each group, behind the work


def median_cost(parts: ForecastParts, constants: ForecastConstants = FITTED_CONSTANTS) -> float:
    """Return what half of the audits cost at most.

    ``(scale work + pilot's share) far^near exp(-grey work/other)``, far being at most 1: luck ends
    audits near the boundary sooner, and the other verdict those in the grey zone.
    """
    base_cost = (
        constants.work_scale[parts.verdict] * parts.work + constants.pilot_scale * parts.pilot_cost
    )
    distance_factor = min(max(parts.distance, LEAST_DISTANCE), 1.0) ** constants.distance_power
    grey_zone_factor = (
        np.exp(-constants.grey_zone_rate * parts.work / parts.other_work)
        if parts.other_work > 0.0
        else 1.0
    )
    return float(base_cost * distance_factor * grey_zone_factor)


class Forecaster:
    """Forecasts of many cases for one past, question and price list."""

    def __init__(self, history: Past, question: Question, costs: Costs) -> None:
        self._cells, self._question = history.cells, question
        self._label_work = cache(lambda past: LabelWork(past, question, costs))
        self._work_now = self._label_work(Past(history.cells, history.exact))
        # Of an unlimited past what is unknown stays unknown.
        self._work_unlimited = self._label_work(Past(history.cells, exact=True))

    def forecast_case(self, case: Scenario) -> Forecast:
        """Return the forecast of a case."""
        cells, parts = self._cells, self.split_case(case)
        if not np.isfinite(parts.work):
            no_cost = dict.fromkeys((f"{quantile:g}" for quantile in COST_QUANTILES), None)
            return Forecast(case, no_cost, dict.fromkeys(cells, 0.0), 0.0, self._rows_needed(case))
        median = median_cost(parts)
        low, high = FITTED_CONSTANTS.spread[parts.verdict][parts.distance < 1.0]
        factors = zip(COST_QUANTILES, (low, 1.0, high), strict=True)
        labels_by_group = parts.labels * median / max(parts.work, 1e-9)
        labels_by_group = np.maximum(labels_by_group, PILOT_LABELS * self._work_now.reachable)
        labels = dict(zip(self._work_now.groups, labels_by_group.tolist(), strict=True))
        return Forecast(
            scenario=case,
            cost={f"{quantile:g}": factor * median for quantile, factor in factors},
            labels=labels,
            people=arrivals_needed(cells, labels),
        )

    def split_case(self, case: Scenario) -> ForecastParts:
        """Return what the forecast of a case is made of."""
        work_by_verdict = {
            verdict: self._work_now.for_verdict(verdict, case.r) for verdict in DECIDED_VERDICTS
        }
        verdict, other_verdict = sorted(
            work_by_verdict, key=lambda candidate: work_by_verdict[candidate].cost
        )
        verdict_work, question = work_by_verdict[verdict], self._question
        is_fair = verdict is Verdict.FAIR
        distance = question.threshold - case.gap if is_fair else case.gap - question.gamma
        distance = max(distance / question.epsilon, 0.0)
        if 0.0 < verdict_work.cost < np.inf:
            distance *= (
                min(
                    self._work_unlimited.for_verdict(verdict, case.r).cost / verdict_work.cost,
                    1.0,
                )
                ** 0.5
            )
        pilot_cost = self._work_now.pilot_cost(case.r)
        return ForecastParts(
            verdict,
            verdict_work.cost,
            work_by_verdict[other_verdict].cost,
            pilot_cost,
            distance,
            verdict_work.labels,
        )

    def _rows_needed(self, case: Scenario) -> float | None:
        """Return how many past rows like these would be enough; None if no number is."""
        least_work = {
            verdict: self._work_unlimited.for_verdict(verdict, case.r).cost
            for verdict in DECIDED_VERDICTS
        }
        if not np.isfinite(min(least_work.values())):
            return None
        acceptable_work = ACCEPTABLE_WORK_FACTOR * max(
            min(least_work.values()), self._work_now.pilot_cost(case.r)
        )
        reachable_verdicts = [
            verdict for verdict in DECIDED_VERDICTS if least_work[verdict] <= acceptable_work
        ]

        def is_enough(factor: float) -> bool:
            more_rows = {
                group: GroupCells(
                    **{name: factor * count for name, count in counts.counts.items()},
                    cohorts=tuple(
                        (factor * good, factor * bad, factor * unknown)
                        for good, bad, unknown in counts.cohorts
                    ),
                    random_accepts=counts.random_accepts,
                )
                for group, counts in self._cells.items()
            }
            work = self._label_work(Past(Cells(more_rows)))
            return any(
                work.for_verdict(verdict, case.r).cost <= acceptable_work
                for verdict in reachable_verdicts
            )

        first_enough = bisect_left(PAST_FACTORS, True, key=is_enough)
        return (
            self._cells.total * PAST_FACTORS[first_enough]
            if first_enough < len(PAST_FACTORS)
            else None
        )
