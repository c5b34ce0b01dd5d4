"""Reports, forecasts and pages of an audit whose labels are no fair sample."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise import Assist, Costs, History, LiveAudit, Question, Want
from equipoise.bounds import expectation
from equipoise.planning.scenarios import denied_rates_by_ratio
from equipoise.report import Report, to_html
from equipoise.report.content import estimate_denied_rates
from equipoise.service.snapshot import Snapshot
from equipoise.worlds import CellWorld

CELLS = {"approved_positive": 30_000, "approved_negative": 5_000, "denied": 65_000}
QUESTION = Question("equal_opportunity", gamma=0.03, epsilon=0.05)


@pytest.fixture(scope="module")
def looked() -> tuple[LiveAudit, str]:
    """Two groups alike; the score knows the outcomes of A, nobody those of B; one label is out."""
    live = LiveAudit.create(
        *("sqlite://", "x", History.from_cells(dict.fromkeys("AB", CELLS)), QUESTION),
        Costs(0, 5_000),
        options={"assist": Assist(max_price=40_000)},
        currency="EUR",
        decimals=2,
        seed="5e" * 32,
    )
    rng = np.random.default_rng(0)
    for batch in range(9):
        outcomes = (rng.random(100) < 0.3).astype(int).tolist()
        scores = [3.0 * y + rng.normal() if i % 2 == 0 else None for i, y in enumerate(outcomes)]
        names = [f"{batch}-{i}" for i in range(100)]
        rows = [(name, "AB"[i % 2], 0, scores[i]) for i, name in enumerate(names)]
        told = [
            (reply.person, y)
            for reply, y in zip(live.ask_many(rows), outcomes, strict=True)
            if reply.want is Want.LABEL
        ]
        last = told.pop()[0] if batch == 8 else ""
        live.tell_many(told)
    return live, last


Sampled = tuple[LiveAudit, str]


@pytest.fixture(scope="module")
def report(looked: Sampled) -> Report:
    live, _ = looked
    return Report.of(live, evidence=())  # how it grew takes long and is not asked here


def true_positive_rate(r: float) -> float:
    return CELLS["approved_positive"] / (CELLS["approved_positive"] + CELLS["denied"] * r)


def test_estimates_are_the_observations_means_not_shares_of_those_asked(
    looked: Sampled, report: Report
) -> None:
    live, _ = looked
    raw = {
        g: own.positive / (own.positive + own.negative) for g, own in report.status.groups.items()
    }
    assert raw["A"] > raw["B"] + 0.1  # those asked of A are the likely ones
    shares = {group: share.estimate for group, share in live.good_shares().items()}
    for group, one in report.finding.rates["true_positive_rate"].items():
        assert one.estimate == pytest.approx(true_positive_rate(shares[group]), abs=0.02)
    likely = abs(true_positive_rate(shares["A"]) - true_positive_rate(shares["B"]))
    assert report.sensitivity.lower - 0.01 < likely < report.sensitivity.upper + 0.01
    wrong = abs(true_positive_rate(raw["A"]) - true_positive_rate(raw["B"]))
    assert report.sensitivity.upper < wrong
    seen = {
        group: ((own.positive + own.negative) * shares[group] + 10 * usual)
        / (own.positive + own.negative + 10)
        for (group, own), usual in zip(
            report.status.groups.items(),
            denied_rates_by_ratio(live.settings.past.cells).values(),
            strict=True,
        )
    }
    assert estimate_denied_rates(live) == pytest.approx(seen)
    world = CellWorld(live.settings.past.cells, estimate_denied_rates(live))
    assert (
        report.published["RS-Audit"].cost == expectation("rs", world, QUESTION, report.costs).cost
    )


def test_the_report_says_that_the_audit_looks_and_of_whom_it_speaks(report: Report) -> None:
    status = report.status
    everybody = sum(group.scored for group in status.groups.values())
    assert everybody == status.people - status.states["SKIPPED"]
    asked = everybody - status.states["SCORE_ONLY"]
    page = to_html(report)
    assert f"{everybody} people were looked at and {asked} asked" in page
    assert "prices of their own, up to 400 EUR" in page
    assert "those who cost more turn out like the others" in page
    assert "What would decide" in page
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


def test_looked_at_is_not_asked_for(looked: Sampled) -> None:
    live, _ = looked
    funnel = {words: number for words, number, _ in Snapshot.take(live, live.status()).funnel}
    assert funnel["outcome requested"] == funnel["outcome known"] + 1 < funnel["looked at"]


def test_the_outcome_that_is_out_brings_one_end_of_what_was_said(looked: Sampled) -> None:
    live, last = looked
    before, row = live.good_shares(), live.person(last)
    assert row is not None
    live.tell(last, 0)
    after = live.good_shares()
    for group, share in before.items():
        assert (share.lower < share.upper) == (group == row.group_name)
        found = after[group]
        assert found.lower == pytest.approx(found.upper) == pytest.approx(share.lower)
