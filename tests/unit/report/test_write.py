"""What the report says, without looking at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.ledger import LiveAudit
from equipoise.metrics import METRICS
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.report import Report, to_html, write_report
from equipoise.report.drawing import round_ticks
from equipoise.report.event_log import log_rows
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.support.simulated import simulate_live

pytestmark = pytest.mark.slow

WORLD = CellWorld.from_shares(
    {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 0.7, "B": 0.3}
)
QUESTION = Question("equal_opportunity", gamma=0.05, epsilon=0.1)
COSTS = Costs(feature=5, label=1000)


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.of(simulate_live(WORLD, QUESTION, COSTS, currency="EUR", decimals=2))


def brief(live: LiveAudit) -> Report:
    """Return a report without how the evidence grew, which takes most of the time."""
    return Report.of(live, evidence=())


def test_its_json_can_be_read_back(report: Report) -> None:
    data = json.loads(report.to_json())
    assert data["finding"]["verdict"] == report.finding.verdict
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


def test_the_numbers_add_up(report: Report) -> None:
    status = report.status
    assert sum(g.spent for g in status.groups.values()) == status.spent
    ratios = [row.impact_ratio for row in report.selection if row.impact_ratio is not None]
    assert max(ratio.estimate or 0.0 for ratio in ratios) == 1.0
    assert all(ratio.estimate in ratio for ratio in ratios if ratio.estimate is not None)
    assert {row.group for row in report.selection if row.four_fifths == "below"} == {"B"}


def test_after_is_inside_before(report: Report) -> None:
    for group, after in report.finding.rates["true_positive_rate"].items():
        before = report.free.rates["true_positive_rate"][group]
        assert before.lower <= after.lower <= after.upper <= before.upper
    assert report.free.lower <= report.finding.lower <= report.finding.upper <= report.free.upper


def test_the_evidence_begins_with_the_free_range_and_ends_with_the_finding(report: Report) -> None:
    first, last = report.evidence[0], report.evidence[-1]
    assert first.answers == 0
    assert last.answers == report.finding.labels
    assert (last.lower, last.upper) == (report.finding.lower, report.finding.upper)


def test_published_audits_are_priced_with_the_paper(report: Report) -> None:
    assert list(report.published) == ["RS-Audit", "Baseline"]
    assert all(price.cost > 100 * report.status.spent for price in report.published.values())
    page = to_html(report)
    assert report.status.money(report.published["RS-Audit"].cost) not in page  # JSON has it


def test_the_seed_is_shown_once_nobody_can_be_drawn_by_it() -> None:
    """A verdict is no end: after a correction people are drawn again, by the same seed."""
    live = simulate_live(WORLD, QUESTION, COSTS, lottery=0.9)
    first = brief(live)
    assert first.status.finding is not None
    assert live.seed not in to_html(first)
    assert live.ask("p", "B", 0).want is Want.NOTHING
    _correct(live)
    assert any(live.ask(f"q{n}", "B", 0).want is Want.LABEL for n in range(20))
    assert live.seed not in to_html(brief(live))
    live.conclude("enough")
    assert live.seed in to_html(brief(live))
    _correct(live)
    assert live.ask("r", "B", 0).why == "concluded"


def test_a_verdict_that_a_correction_undid_is_mentioned() -> None:
    live = simulate_live(WORLD, QUESTION, COSTS)
    first = live.finding
    assert first is not None
    assert "taken back" not in to_html(brief(live))
    _correct(live)
    page = to_html(brief(live))
    assert "NO VERDICT YET" in page
    assert f"{first.verdict} was reached before and taken back" in page
    (last,) = [row for row in log_rows(live.events(), live.settings) if "took" in str(row["deed"])]
    assert last["deed"] == "took back the verdict"
    assert "in progress again; in place of event" in str(last["about"])


def _correct(live: LiveAudit) -> None:
    """Say of one good outcome after the other that it was bad, until there is no verdict."""
    for row in live.people(states=("REVEALED",)):
        if live.finding is not None and (row.group_name, row.decision, row.outcome) == ("B", 0, 1):
            live.correct(str(row.person), 0, "typing error")


def test_unknown_outcomes_widen_the_sensitivity_only() -> None:
    live = LiveAudit.create("sqlite://", "x", WORLD.past(20_000, 0), QUESTION, COSTS)
    for number, person in enumerate(WORLD.draw(60, 3)):
        reply = live.ask(f"p{number}", person.group, person.decision)
        if reply.want is Want.LABEL and number % 3:
            live.tell(reply.person, person.outcome)
        elif reply.want is Want.LABEL:
            live.withdraw(reply.person)
    made = brief(live)
    assert made.sensitivity.unknown == made.status.states["WITHDRAWN"] > 0
    assert made.sensitivity.lower < made.sensitivity.upper


def test_a_drift_is_a_warning_on_the_verdict() -> None:
    live = LiveAudit.create("sqlite://", "x", WORLD.past(20_000, 0), QUESTION, COSTS)
    moved = CellWorld.from_shares(
        {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.45, 0.15, 0.40, 0.3)}, shares={"A": 0.5, "B": 0.5}
    )
    drawn = list(moved.draw(2000, 0))
    replies = live.ask_many([(f"p{i}", p.group, p.decision) for i, p in enumerate(drawn)])
    live.tell_many(
        [(r.person, p.outcome) for r, p in zip(replies, drawn, strict=True) if r.want is Want.LABEL]
    )
    live.conclude()
    made = brief(live)
    assert any("approval rate of group 'B' has moved" in line for line in made.finding.warnings)
    assert len(set(made.finding.warnings)) == len(made.finding.warnings)
    assert "Approval rate of group &#39;B&#39; has moved" in to_html(made)
    assert "<b>Warning.</b>" in to_html(made)


def test_a_threshold_below_the_proof_is_not_called_proven() -> None:
    past, rng = WORLD.past(20_000, 0), np.random.default_rng(0)
    live = LiveAudit.create(
        "sqlite://", "x", past, QUESTION, COSTS, audit="rs", options={"tau": 10}
    )
    for number, person in enumerate(WORLD.draw(400, rng)):
        if live.ask(f"p{number}", person.group, person.decision).want is Want.LABEL:
            live.tell(f"p{number}", person.outcome)
    made = brief(live)
    assert made.status.finding is not None
    assert not made.finding.guaranteed
    assert "no error probability is proven" in to_html(made)


@pytest.mark.parametrize(
    ("metric", "compare"),
    [(m, ("difference", "ratio")[i % 2]) for i, m in enumerate(METRICS)][:: quick(3, full=1)],
)
def test_every_metric_has_a_report(metric: str, compare: Literal["difference", "ratio"]) -> None:
    question = Question(metric, gamma=0.05, epsilon=quick(0.3, full=0.1), compare=compare)
    live = LiveAudit.create(
        "sqlite://", "x", WORLD.past(quick(None, full=2000), 0), question, COSTS
    )
    html = to_html(brief(live))
    assert html.startswith("<!doctype html>")
    assert "script" not in html
    assert METRICS[metric].asks in html
    assert ("percent of the highest rate" in html) == (compare == "ratio")


def test_the_four_fifths_rule_is_settled_by_past_data(report: Report) -> None:
    """Approvals of 60% and 30%: many past rows settle it, a few leave it open."""
    assert 0.5 in report.four_fifths
    assert "of the highest: the four-fifths rule is broken" in to_html(report)
    past = LiveAudit.create("sqlite://", "exact", WORLD.past(), QUESTION, COSTS)
    assert "lowest approval rate is 50.0% of the highest" in to_html(Report.of(past))
    few = LiveAudit.create("sqlite://", "few", WORLD.past(40, 1), QUESTION, COSTS, confirm=True)
    assert "four-fifths rule is undecided" in to_html(Report.of(few))


@pytest.mark.parametrize("kind", [eq.AdaptiveAudit, eq.RSAudit])
def test_an_audit_in_memory_has_a_report(kind: type[eq.AdaptiveAudit], tmp_path: Path) -> None:
    audit = kind(WORLD.past(), QUESTION, COSTS)
    page = write_report(audit, tmp_path / "begun.html").read_text("utf-8")
    assert "NO VERDICT YET" in page
    for person in WORLD.draw(60, 3):
        ticket = audit.ask(person.group, person.decision)
        if ticket.want is Want.LABEL:
            audit.tell(ticket, person.outcome)
    found = audit.conclude()
    page = write_report(audit, tmp_path / "done.html").read_text("utf-8")
    assert f'<p class="word">{found.verdict}</p>' in page
    assert ">unlimited</td>" in page
    assert f"Spent so far: {found.cost:,.10g} for {found.labels:,} overrides" in page
    assert "script" not in page
    data = json.loads(write_report(audit, tmp_path / "done.json").read_text("utf-8"))
    assert (data["verdict"], data["lower"]) == (found.verdict, found.lower)


def test_a_live_audit_is_written_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    live = LiveAudit.create("sqlite://", "loans", WORLD.past(2000, 0), QUESTION, COSTS)
    assert write_report(live) == Path("loans.html")
    assert Path("loans.html").read_text("utf-8").startswith("<!doctype html>")


def test_ticks_are_round() -> None:
    assert round_ticks(1.0, 6) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert round_ticks(730.0, 6) == [0.0, 200.0, 400.0, 600.0]


def test_random_accepts_and_groups_left_out_count_in_the_sensitivity() -> None:
    """A group that nobody was asked about is known by its programme; others do not count."""
    cells = {
        "A": GroupCells(500, 100, 200, random_accepts=(40, 50, 10)),
        "B": GroupCells(300, 100, 400, random_accepts=(60, 100, 0)),
        "C": GroupCells(20, 5, 10, approved_unknown=5),
    }
    question = Question("equal_opportunity", 0.05, 0.05, compare=eq.Compare(leave_out=["C"]))
    live = LiveAudit.create(
        "sqlite://", "x", eq.History(Cells(cells)), question, COSTS, confirm=True
    )
    sensitivity = brief(live).sensitivity
    assert sensitivity.unknown == 10
    # Rates by hand: approved good ones over all good ones.
    rate_b = 300 / (300 + 400 * 60 / 160)
    gaps = [500 / (500 + 200 * good / 100) - rate_b for good in (40, 50)]
    assert sensitivity.lower == pytest.approx(min(gaps), abs=1e-5)
    assert sensitivity.upper == pytest.approx(max(gaps), abs=1e-5)
