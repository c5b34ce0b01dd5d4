"""When audits end, and how likely a budget is enough."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pandas as pd
import pytest

import equipoise as eq
from equipoise.planning import Forecast, Plan
from equipoise.planning.case_rows import CASE_COLUMN, case_rows, time_and_money_rows
from equipoise.planning.scenarios import Scenario, ScenarioKind
from equipoise.planning.time_and_money import chance_within, estimate_budget, format_chance

COUNTS = {"approved_positive": 6300, "approved_negative": 700, "denied": 3000}
PAST = eq.History.from_cells({"A": COUNTS, "B": {**COUNTS, "denied": 6000}})
QUESTION = eq.Question("equal_opportunity")


def test_a_plan_has_a_calendar_and_the_chances_of_a_budget() -> None:
    plan = eq.plan(PAST, QUESTION, arrivals_per_day=200, outcome_after=180, budget=200)
    assert [time.case for time in plan.times] == [case.scenario.name for case in plan.cases]
    for case, time in zip(plan.cases, plan.times, strict=True):
        assert time.first_outcomes == 180
        assert case.is_decidable == (time.typical_end is not None)
        if time.typical_end is not None:
            assert time.typical_end == pytest.approx(180 + case.people / 200)
            assert time.earliest_end is not None
            assert time.earliest_end < time.typical_end
            assert time.latest_end is None or time.latest_end > time.typical_end
    assert plan.budget is not None
    for case in plan.cases:
        median = case.median
        enough = plan.budget.chances[case.scenario.name] >= 0.5
        assert enough == (median is not None and median <= 200)
    margin = plan.budget.smallest_margin
    assert margin is not None
    wider = eq.plan(PAST, eq.Question("equal_opportunity", epsilon=margin), budget=200)
    assert wider.budget is not None
    usual = next(case for case in wider.cases if case.scenario.ratio == 0.4)
    assert chance_within(usual, 200) >= 0.8
    assert "chance of a verdict within 200" in str(plan)
    assert "80% range" in str(plan)
    assert type(plan).from_json(plan.to_json()).times == plan.times


def dated(days: int) -> pd.DataFrame:
    """Return people of two groups who came on so many days, 40 on each."""
    rows = []
    for n in range(40 * days):
        day = date(2024, 1, 1) + timedelta(days=n // 40)
        approved = int(n % 10 < 6 + n % 2)
        good = n % 7 > 1 if approved else None
        rows.append((day.strftime("%d.%m.%Y"), "AB"[n % 2], approved, good))
    return pd.DataFrame(rows, columns=["day", "group", "approved", "good"])


COARSE = eq.Question("equal_opportunity", gamma=0.1, epsilon=0.4)


def test_arrivals_come_from_the_dates_of_the_table() -> None:
    reading: dict[str, Any] = {"group": "group", "decision": "approved", "outcome": "good"}
    plan = eq.plan(dated(100), COARSE, outcome_after=90, date="day", **reading)
    assert plan.arrivals is not None
    assert plan.arrivals.per_day == 40.0
    assert "as in the table, from 2024-01-01 to 2024-04-09" in str(plan)
    given = eq.plan(dated(100), COARSE, arrivals_per_day=80, date="day", **reading)
    assert given.arrivals is not None
    assert given.arrivals.per_day == 80
    assert "as you say" in str(given)
    shorter = eq.History.read(dated(100), date="day", until="2024-01-31", **reading)
    assert shorter.summary is not None
    assert shorter.summary.arrivals_per_day == 40.0
    few_days = eq.History.read(dated(5), date="day", **reading)
    assert few_days.summary is not None
    assert few_days.summary.arrivals_per_day is None
    assert eq.plan(dated(100), COARSE, **reading).times == ()


def test_a_plan_shows_what_is_requested_while_outcomes_are_awaited() -> None:
    plan = eq.plan(PAST, QUESTION, arrivals_per_day=200, outcome_after=180)
    requests = plan.requests_before_outcomes
    assert requests is not None
    usual = next(case for case in plan.cases if case.scenario.ratio == 0.4)
    assert requests.needed == math.ceil(sum(usual.labels.values()))
    per_person = sum(usual.labels.values()) / usual.people
    assert requests.requested == pytest.approx(36_000 * per_person, abs=1)
    assert f"max_in_flight={requests.needed}" in str(plan)
    soon = eq.plan(PAST, QUESTION, arrivals_per_day=1, outcome_after=1)
    assert soon.requests_before_outcomes is None


def test_a_plan_without_them_stays_as_it_was() -> None:
    plan = eq.plan(PAST, QUESTION)
    assert plan.times == ()
    assert plan.budget is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"outcome_after": 9}, "belongs to 'arrivals_per_day'"),
        ({"arrivals_per_day": 0}, "must be above 0"),
        ({"arrivals_per_day": 5, "outcome_after": -1}, "outcome_after"),
        ({"budget": -1}, "budget"),
    ],
)
def test_what_cannot_be_is_refused(arguments: dict[str, float], problem: str) -> None:
    with pytest.raises(eq.errors.InvalidInput, match=problem):
        eq.plan(PAST, QUESTION, **arguments)


def test_a_chance_is_never_certain() -> None:
    assert [format_chance(chance) for chance in (0.0, 0.5, 1.0)] == ["under 1%", "50%", "over 99%"]


CASE = Scenario(ScenarioKind.RATIO, {"A": 0.3, "B": 0.3}, 0.02, "FAIR", ratio=0.4)


def forecast_of(median: float, *, is_open: bool = False) -> Forecast:
    cost = {"0.1": 0.6 * median, "0.5": median, "0.9": None if is_open else 1.75 * median}
    return Forecast(CASE, cost, {"A": 36.2, "B": 36.2}, 400.0)


def test_an_open_cost_leaves_a_chance_open_and_no_margin_contradicts_it() -> None:
    """The chance was 50% for any budget, and halving took it for one that grows."""

    def at(question: eq.Question) -> Forecast:
        if question.epsilon < 0.08:
            return forecast_of(60.0)
        return forecast_of(12.0, is_open=0.1 <= question.epsilon < 0.14)

    smallest = {}
    for margin in (0.05, 0.08, 0.1, 0.13, 0.14):
        question = eq.Question("equal_opportunity", epsilon=margin)
        usual = at(question)
        chance = estimate_budget([usual], usual, question, 50, at)
        assert chance is not None
        smallest[margin] = chance.smallest_margin
        expected = {0.05: "32%", 0.1: "at least 50%", 0.13: "at least 50%"}
        assert chance.describe(CASE.name) == expected.get(margin, "over 99%")
        assert chance.chances[CASE.name] < 0.8 or margin >= chance.smallest_margin
    assert set(smallest.values()) == {0.08}
    assert chance_within(forecast_of(12.0, is_open=True), 9.0) < 0.5  # is known below the median


def test_one_number_and_one_word_for_the_same_thing() -> None:
    plan = eq.plan(PAST, QUESTION, arrivals_per_day=200, outcome_after=180)
    cases = (forecast_of(50.0, is_open=True),)
    times = (replace(plan.times[0], latest_end=None),)
    plan = replace(plan, cases=cases, times=times)
    (costs,) = case_rows(plan)
    assert costs[CASE_COLUMN] == "40%"
    assert costs["Overrides"] == 73  # as the sentence about overrides has it
    (calendar,) = time_and_money_rows(plan)
    assert str(costs["80% range"]).endswith(" to no limit")
    assert str(calendar["80% range"]).endswith(" to no limit")
    assert Plan.from_json(plan.to_json()) == plan
