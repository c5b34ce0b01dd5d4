"""When audits end, and how likely a budget is enough."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.planning.time_and_money import chance_within, format_chance

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
