"""How long an audit takes, and how likely a budget is enough, from the forecast of its cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from equipoise._json import JsonValue
from equipoise.display import format_count, format_number
from equipoise.errors import InvalidInput, require_non_negative
from equipoise.planning.forecasts import Forecast
from equipoise.planning.scenarios import pick_usual_case
from equipoise.question import Question

Z_80_RANGE = NormalDist().inv_cdf(0.9)  # standard deviations from the median to the 90% quantile
WANTED_CHANCE = 0.8  # of a verdict within the budget, for the smallest margin
MARGINS = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3)


@dataclass(frozen=True)
class Arrivals(JsonValue):
    """How many people arrive on a day; ``first_day`` and ``last_day`` if a table's dates say so."""

    per_day: float | None
    first_day: str = ""
    last_day: str = ""

    def __str__(self) -> str:
        if self.per_day is None:
            return ""
        number = format_number(self.per_day, 3)
        source = "as you say"
        if self.first_day:
            source = f"as in the table, from {self.first_day} to {self.last_day}"
        return f"{number} people arrive on a day, {source}"


@dataclass(frozen=True)
class OpenRequests(JsonValue):
    """Overrides that an audit requests before their first outcome, in the usual case.

    Attributes
    ----------
    requested
        How many an audit without a limit requests until then.
    needed
        How many it typically needs: a limit on open requests keeps it near that number.
    days
        After how many days the first outcome comes.
    """

    requested: int
    needed: int
    days: float

    def __str__(self) -> str:
        return (
            f"an audit without a limit requests about {self.requested:,} overrides before the "
            f"first outcome, and {self.needed:,} are typically enough: max_in_flight={self.needed} "
            f"keeps to them, and each further {self.needed:,} then take {_days(self.days)} more"
        )


@dataclass(frozen=True)
class CaseTime(JsonValue):
    """When an audit of one case ends, in days from its beginning.

    Attributes
    ----------
    case
        The name of the case.
    first_outcomes
        When the first outcomes are known.
    typical_end
        When half of the audits have their verdict; None if this past cannot decide the case.
    earliest_end, latest_end
        The 80% range of the end; None where fewer audits end with a verdict.
    """

    case: str
    first_outcomes: float
    typical_end: float | None
    earliest_end: float | None
    latest_end: float | None

    def __str__(self) -> str:
        start = f"if {self.case}: first outcomes after {_days(self.first_outcomes)}"
        if self.typical_end is None:
            return f"{start}; cannot be decided with these historical data"
        latest = "open" if self.latest_end is None else _days(self.latest_end)
        return (
            f"{start}; typical end after {_days(self.typical_end)} "
            f"(80% range {_days(self.earliest_end or 0.0)} to {latest})"
        )


@dataclass(frozen=True)
class BudgetChance(JsonValue):
    """How likely a budget brings a verdict.

    Attributes
    ----------
    budget
        The most that may be spent.
    chances
        Name of the case -> the chance of a verdict within the budget.
    smallest_margin
        The smallest margin (epsilon) with which that chance is 80% in the usual case; None if it
        is not with any margin up to 0.3.
    """

    budget: float
    chances: dict[str, float]
    smallest_margin: float | None

    def __str__(self) -> str:
        margin = "no margin up to 30 points gives a chance of 80% in the usual case"
        if self.smallest_margin is not None:
            margin = (
                f"a margin of {format_number(self.smallest_margin * 100)} points gives a chance "
                "of 80% in the usual case"
            )
        chances = ", ".join(
            f"{format_chance(chance)} if {case}" for case, chance in self.chances.items()
        )
        return f"chance of a verdict within {format_count(self.budget)}: {chances}; {margin}"


def estimate_times(
    cases: Sequence[Forecast], arrivals_per_day: float | None, outcome_after: float | None
) -> tuple[CaseTime, ...]:
    """Return when audits end; nothing without ``arrivals_per_day``.

    An audit's people arrive evenly, and the last outcome is known ``outcome_after`` days after its
    override. Labels, and so people, vary as the cost does.

    Raises
    ------
    InvalidInput
        If a number is not positive, or ``outcome_after`` is given alone.
    """
    if arrivals_per_day is None:
        if outcome_after is not None:
            raise InvalidInput("'outcome_after' belongs to 'arrivals_per_day', which is missing")
        return ()
    require_non_negative("arrivals_per_day", arrivals_per_day)
    if arrivals_per_day == 0.0:
        raise InvalidInput("'arrivals_per_day' must be above 0")
    delay = 0.0 if outcome_after is None else outcome_after
    require_non_negative("outcome_after", delay)
    return tuple(_time_of(case, arrivals_per_day, delay) for case in cases)


def requests_before_outcomes(
    cases: Sequence[Forecast], arrivals_per_day: float | None, outcome_after: float | None
) -> OpenRequests | None:
    """Return how many overrides are requested before an outcome; None if an audit needs as many.

    An audit that waits for outcomes goes on asking. What it requests meanwhile it pays for, even
    if the first outcomes decide.

    Examples
    --------
    >>> from equipoise.planning.scenarios import Scenario, ScenarioKind
    >>> case = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.3}, 0.1, "FAIR")
    >>> cost = {"0.1": 50.0, "0.5": 100.0, "0.9": 250.0}
    >>> forecast = Forecast(case, cost, {"A": 150.0}, 400.0)
    >>> requests_before_outcomes([forecast], 20, 180).requested
    1350
    """
    decidable = [case for case in cases if case.is_decidable and case.people > 0.0]
    if not decidable or not arrivals_per_day or not outcome_after:
        return None
    usual_scenario = pick_usual_case([case.scenario for case in decidable])
    usual = next(case for case in decidable if case.scenario == usual_scenario)
    needed = sum(usual.labels.values())
    requested = arrivals_per_day * outcome_after * needed / usual.people
    if requested <= needed:
        return None
    return OpenRequests(round(requested), math.ceil(needed), outcome_after)


def _time_of(case: Forecast, arrivals_per_day: float, delay: float) -> CaseTime:
    median = case.median
    ends: list[float | None] = []
    for cost in (case.cost["0.1"], median, case.cost["0.9"]):
        if cost is None or median is None:
            ends.append(None)
            continue
        share = cost / median if median > 0.0 else 1.0
        ends.append(case.people * share / arrivals_per_day + delay)
    earliest, typical, latest = ends
    return CaseTime(case.scenario.name, delay, typical, earliest, latest)


def chance_within(case: Forecast, budget: float) -> float:
    """Return the share of audits of a case that reach their verdict within a budget.

    The logarithm of the cost is taken to be normal on either side of its median, with the
    forecast's 10% and 90% quantiles.

    Examples
    --------
    >>> from equipoise.planning.scenarios import Scenario, ScenarioKind
    >>> case = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.3}, 0.1, "FAIR")
    >>> cost = {"0.1": 50.0, "0.5": 100.0, "0.9": 250.0}
    >>> forecast = Forecast(case, cost, {"A": 150.0}, 400.0)
    >>> [round(chance_within(forecast, budget), 3) for budget in (50, 100, 250)]
    [0.1, 0.5, 0.9]
    """
    low = case.cost["0.1"]
    median = case.cost["0.5"]
    high = case.cost["0.9"]
    if median is None:
        return 0.0
    if median <= 0.0:
        return 1.0
    if budget <= 0.0:
        return 0.0
    distance = math.log(budget / median)
    quantile = low if distance < 0.0 else high
    if quantile is None or quantile <= 0.0:  # fewer than 90% of the audits end with a verdict
        return 0.5
    spread = abs(math.log(quantile / median)) / Z_80_RANGE
    if spread == 0.0:
        return 1.0 if distance >= 0.0 else 0.0
    return NormalDist().cdf(distance / spread)


def estimate_budget(
    cases: Sequence[Forecast],
    usual_case: Forecast,
    question: Question,
    budget: float | None,
    forecast_usual: Callable[[Question], Forecast],
) -> BudgetChance | None:
    """Return how likely a budget is enough; None without one.

    ``forecast_usual`` forecasts the usual case for the same question with another margin.
    """
    if budget is None:
        return None
    require_non_negative("budget", budget)
    chances = {case.scenario.name: chance_within(case, budget) for case in cases}
    if chance_within(usual_case, budget) >= WANTED_CHANCE:
        margins = [margin for margin in MARGINS if margin < question.epsilon]
        smallest = question.epsilon
    else:
        margins = [margin for margin in MARGINS if margin > question.epsilon]
        smallest = None
    # The chance grows with the margin, so the smallest margin is found by halving the list.
    low = 0
    high = len(margins)
    while low < high:
        middle = (low + high) // 2
        margin = margins[middle]
        is_within_scale = question.gamma + margin < 1.0
        wider = replace(question, epsilon=margin) if is_within_scale else question
        if is_within_scale and chance_within(forecast_usual(wider), budget) >= WANTED_CHANCE:
            high = middle
            smallest = margin
        else:
            low = middle + 1
    return BudgetChance(budget, chances, smallest)


def _days(days: float) -> str:
    rounded = round(days)
    return f"{rounded:,} day{'' if rounded == 1 else 's'}"


def format_chance(chance: float) -> str:
    """Return a chance in percent that is never rounded to 0% or 100%."""
    if chance < 0.01:
        return "under 1%"
    return "over 99%" if chance > 0.99 else f"{chance:.0%}"
