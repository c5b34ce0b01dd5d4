"""What the page of an audit says of its costs to come."""

from __future__ import annotations

from dataclasses import replace

from equipoise import Costs, History, LiveAudit, Question
from equipoise.report import Report, to_html
from equipoise.service.access import Caller
from equipoise.service.forms import render_page
from equipoise.service.snapshot import Snapshot
from equipoise.service.tokens import Role

CELLS = {"approved_positive": 3000, "approved_negative": 500, "denied": 6500}
READER = Caller("anna", Role.REGULATOR)


def test_expected_in_all_is_at_least_what_is_spent_and_says_what_it_is() -> None:
    past, question = History.from_cells(dict.fromkeys("AB", CELLS)), Question("equal_opportunity")
    live = LiveAudit.create("sqlite://", "x", past, question, Costs(1, 100), currency="EUR")
    report = Report.of(live)
    status, forecast = report.status, report.forecast
    assert forecast is not None
    low, middle, high = forecast.range_in_all(status.spent)
    assert (low, middle, high) == tuple(forecast.cost.values())
    spent = round(2 * high)
    for paid, expected in ((round(middle - 1), middle), (spent, spent)):
        now = replace(status, spent=paid)
        assert forecast.range_in_all(paid)[1] == expected
        assert min(forecast.range_in_all(paid)) >= paid > low
        seen = Snapshot.take(live, now, report)
        facts = {"name": "x", "checkpoint": None, "proof": None, "settings": live.settings}
        words = render_page(READER, "live.html", snapshot=seen, **facts).body.decode()
        assert f"<b>{status.money(expected)}</b><span>expected in all" in words
        assert "given what was learnt" in words
        assert to_html(replace(report, status=now)).count("Expected in all") == 1
        assert ("already spent more than" in words) == (paid == spent)


def test_where_the_past_cannot_decide_nothing_is_expected() -> None:
    few = {group: {name: n // 100 for name, n in CELLS.items()} for group in "AB"}
    live = LiveAudit.create("sqlite://", "x", History.from_cells(few), Question(), Costs(1, 100))
    forecast = Report.of(live).forecast
    assert forecast is not None
    assert forecast.range_in_all(0) == ()
