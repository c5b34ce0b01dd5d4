"""What the page of an audit says of its costs to come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from equipoise import Costs, History, LiveAudit, Question
from equipoise.display import format_figures
from equipoise.report import Report, to_html
from equipoise.report.pictures import expected_total
from equipoise.report.sentences import describe_expected_cost
from equipoise.report.tables import cost_facts
from equipoise.service.access import Caller
from equipoise.service.forms import render_page
from equipoise.service.snapshot import Snapshot
from equipoise.service.tokens import Role

CELLS = {"approved_positive": 3000, "approved_negative": 500, "denied": 6500}
READER = Caller("anna", Role.REGULATOR)


def test_the_forecast_of_the_total_is_conditional_on_what_is_spent() -> None:
    past, question = History.from_cells(dict.fromkeys("AB", CELLS)), Question("equal_opportunity")
    live = LiveAudit.create("sqlite://", "x", past, question, Costs(1, 100), currency="EUR")
    report = Report.of(live)
    status, forecast = report.status, report.forecast
    assert forecast is not None
    low, middle, high = forecast.range_in_all(status.spent)
    assert (low, middle, high) == pytest.approx(tuple(forecast.cost.values()))
    for paid in (round(middle - 1), round(2 * high)):
        now = replace(status, spent=paid)
        amounts = forecast.range_in_all(paid)
        assert paid < amounts[0] < amounts[1] < amounts[2]
        seen = Snapshot.take(live, now, report)
        facts = {"name": "x", "checkpoint": None, "proof": None, "settings": live.settings}
        words = render_page(READER, "live.html", snapshot=seen, **facts).body.decode()
        assert "Assumes that denied people keep turning out well" in words
        page = to_html(replace(report, status=now))
        assert page.count("Estimated total cost") == 1
        assert f"{format_figures(amounts[1])} EUR (80% range" in page


def test_open_requests_are_part_of_the_expected_total() -> None:
    past, question = History.from_cells(dict.fromkeys("AB", CELLS)), Question("equal_opportunity")
    live = LiveAudit.create("sqlite://", "x", past, question, Costs(0, 100))
    for number in range(40):
        live.ask(f"p-{number}", "AB"[number % 2], 0)
    report = Report.of(live)
    assert report.forecast is not None
    held = report.status.held
    assert sum(held.values()) > 0
    r = report.forecast.scenario.r
    will_be_spent = sum(100 * amount * (1 - r[group]) for group, amount in held.items())
    hundredfold = {group: 100 * amount for group, amount in held.items()}
    amounts = report.forecast.range_in_all(0, hundredfold)
    assert min(amounts) >= will_be_spent - 1e-9
    assert report.forecast.range_in_all(0, {"A": 0, "B": 0}) == report.forecast.range_in_all(0)


def test_nothing_is_expected_while_open_requests_outweigh_the_forecast() -> None:
    """172 outcomes were open, none known: the range of the total was 88.8 to 88.8."""
    past, question = History.from_cells(dict.fromkeys("AB", CELLS)), Question("equal_opportunity")
    live = LiveAudit.create("sqlite://", "x", past, question, Costs(0, 100))
    report = Report.of(live, evidence=())
    assert report.forecast is not None
    assert "80% range" in describe_expected_cost(report.forecast, report.status)
    groups = {
        name: replace(group, reserved=1_000_000, states={"RESERVED": 10_000})
        for name, group in report.status.groups.items()
    }
    status = replace(report.status, groups=groups, reserved=2_000_000, spent=500)
    assert describe_expected_cost(report.forecast, status) == (
        "Estimated total cost: not known yet. 20,000 outcomes are awaited, and the overrides so "
        "far cost between 500 and 2,000,500 in all."
    )
    report = replace(report, status=status)
    assert ("Estimated total", "not known yet") in cost_facts(report)
    assert expected_total(report) is None


COARSE = Question("equal_opportunity", gamma=0.1, epsilon=0.1)


def test_where_the_past_cannot_decide_nothing_is_expected() -> None:
    few = {group: {name: n // 100 for name, n in CELLS.items()} for group in "AB"}
    live = LiveAudit.create(
        "sqlite://", "x", History.from_cells(few), COARSE, Costs(1, 100), confirm=True
    )
    forecast = Report.of(live, evidence=()).forecast
    assert forecast is not None
    assert forecast.range_in_all(0) == ()
