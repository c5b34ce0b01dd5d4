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
        latest = "no limit" if self.latest_end is None else _days(self.latest_end)
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
        The smallest margin (epsilon) for which the forecast shows a chance of 80% in the usual
        case; None if it shows that for no margin up to 0.3.
    open_cases
        The names of the cases whose chance is at least the one given, and may be higher.
    """

    budget: float
    chances: dict[str, float]
    smallest_margin: float | None
    open_cases: tuple[str, ...] = ()

    def describe(self, case: str) -> str:
        """Return the chance in a case, by its name, in percent."""
        chance = format_chance(self.chances[case])
        return f"at least {chance}" if case in self.open_cases else chance

    @property
    def margin_clause(self) -> str:
        """The smallest margin in a clause."""
        if self.smallest_margin is None:
            return (
                "the forecast shows a chance of 80% in the usual case for no margin up to 30 points"
            )
        return (
            "the smallest margin for which the forecast shows a chance of 80% in the usual case is "
            f"{format_number(self.smallest_margin * 100)} points"
        )

    def __str__(self) -> str:
        chances = ", ".join(f"{self.describe(case)} if {case}" for case in self.chances)
        budget = format_count(self.budget)
        return f"chance of a verdict within {budget}: {chances}; {self.margin_clause}"


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
    forecast's 10% and 90% quantiles. Where the forecast has no such quantile, the share is at
    least the one returned (:func:`is_chance_open`).

    Examples
    --------
    >>> from equipoise.planning.scenarios import Scenario, ScenarioKind
    >>> case = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.3}, 0.1, "FAIR")
    >>> cost = {"0.1": 50.0, "0.5": 100.0, "0.9": 250.0}
    >>> forecast = Forecast(case, cost, {"A": 150.0}, 400.0)
    >>> [round(chance_within(forecast, budget), 3) for budget in (50, 100, 250)]
    [0.1, 0.5, 0.9]
    """
    median = case.cost["0.5"]
    if median is None:
        return 0.0
    if median <= 0.0:
        return 1.0
    if budget <= 0.0:
        return 0.0
    if is_chance_open(case, budget):
        return 0.5 if budget >= median else 0.1
    distance = math.log(budget / median)
    quantile = case.cost["0.1" if distance < 0.0 else "0.9"]
    assert quantile is not None  # or the chance would be open
    spread = abs(math.log(quantile / median)) / Z_80_RANGE
    if spread == 0.0:
        return 1.0 if distance >= 0.0 else 0.0
    return NormalDist().cdf(distance / spread)


def is_chance_open(case: Forecast, budget: float) -> bool:
    """Return whether no more is known of a chance than that it is at least the one given.

    It is so where the forecast has no figure that 90% of the audits stay below, from the typical
    cost on; and below the typical cost if one audit in ten costs nothing.

    Examples
    --------
    >>> from equipoise.planning.scenarios import Scenario, ScenarioKind
    >>> case = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.3}, 0.1, "FAIR")
    >>> forecast = Forecast(case, {"0.1": 50.0, "0.5": 100.0, "0.9": None}, {"A": 150.0}, 400.0)
    >>> [is_chance_open(forecast, budget) for budget in (50, 100, 1e6)]
    [False, True, True]
    """
    median = case.cost["0.5"]
    if median is None or median <= 0.0 or budget <= 0.0:
        return False
    quantile = case.cost["0.1" if budget < median else "0.9"]
    return quantile is None or quantile <= 0.0


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
    open_cases = [case.scenario.name for case in cases if is_chance_open(case, budget)]
    smallest = None
    # The chance need not grow with the margin, because a forecast may become open-ended. So every
    # margin is tried, and the one that was asked for is among them.
    for margin in sorted({*MARGINS, question.epsilon}):
        if margin == question.epsilon:
            forecast = usual_case
        elif question.gamma + margin < 1.0:
            forecast = forecast_usual(replace(question, epsilon=margin))
        else:
            break
        if chance_within(forecast, budget) >= WANTED_CHANCE:
            smallest = margin
            break
    return BudgetChance(budget, chances, smallest, tuple(open_cases))


def _days(days: float) -> str:
    rounded = round(days)
    return f"{rounded:,} day{'' if rounded == 1 else 's'}"


def format_chance(chance: float) -> str:
    """Return a chance in percent that is never rounded to 0% or 100%."""
    if chance < 0.01:
        return "under 1%"
    return "over 99%" if chance > 0.99 else f"{chance:.0%}"
