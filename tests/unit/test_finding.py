"""Every rate and metric from three shares per group, and questions of several metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.cli.app import app
from equipoise.errors import UnknownName
from equipoise.finding import Finding, GroupShares, Interval
from equipoise.metrics import METRICS, gap_given_r, rates_given_r
from equipoise.rates import RATES, Rate, good_share

CELLS = {"A": GroupCells(600, 200, 200), "B": GroupCells(300, 200, 500)}
PAST = eq.History.from_cells(Cells(CELLS))


@pytest.mark.parametrize("rate", [*RATES.values()], ids=[*RATES])
def test_a_rate_lies_in_its_interval_wherever_the_shares_are(rate: Rate) -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        ends = np.sort(rng.choice([0.0, 1.0, *rng.random(4)], size=(3, 2)), axis=1)
        shares = GroupShares(*(Interval(*map(float, low_and_high)) for low_and_high in ends))
        interval = shares.rate(rate)
        for s, g, r in rng.uniform(ends[:, 0], ends[:, 1], size=(50, 3)):
            numerator, denominator = rate.fraction(
                (1 - s) * g, (1 - s) * (1 - g), s * r, s * (1 - r)
            )
            if denominator > 1e-9:
                assert interval.lower - 1e-9 <= numerator / denominator <= interval.upper + 1e-9


def test_rounding_leaves_every_rate_a_share() -> None:
    rng = np.random.default_rng(3)
    for s in rng.random(200).tolist():
        shares = GroupShares(Interval(0.0, s), Interval(0.5, 1.0 - 2.0**-53), Interval(0.0, 1.0))
        for rate in RATES.values():
            interval = shares.rate(rate)
            assert 0.0 <= interval.lower <= interval.upper <= 1.0


def test_an_unlimited_past_and_known_unknowns_give_the_rates_themselves() -> None:
    past = eq.history.Past(Cells(CELLS), exact=True)
    r = {"A": 0.3, "B": 0.2}
    exactly = eq.Assume(r_at_most=r, r_at_least=r)
    finding = eq.check(past, eq.Question(compare=eq.Compare(against="A")), assume=exactly)
    for name, gap in finding.all_metrics().items():
        true_gap = gap_given_r(past.cells, r, name, finding.question.compare)
        assert (gap.lower, gap.upper) == pytest.approx((true_gap, true_gap)), name
        for rate, by_group in rates_given_r(past.cells, r, name).items():
            for group, value in by_group.items():
                interval = finding.all_rates()[rate][group]
                assert (interval.lower, interval.upper) == pytest.approx((value, value))


def test_unknown_outcomes_widen_the_precision() -> None:
    counts = GroupCells(60, 20, 20, approved_unknown=10)
    alike = GroupCells(60, 20, 20, approved_unknown=10, cohorts=((60, 20, 10),))
    without_assumption = good_share(counts, 0.01)
    assert without_assumption[0] < 60 / 90
    assert without_assumption[1] > 70 / 90
    assert good_share(alike, 0.01)[1] < without_assumption[1]
    assert good_share(alike, None) == (0.75, 0.75)


def test_a_finding_keeps_them_and_the_command_line_and_reports_show_them(tmp_path: Path) -> None:
    audit = eq.AdaptiveAudit(PAST, eq.Question("equal_opportunity", epsilon=0.3), eq.Costs())
    for i in range(30):
        for group in "AB":
            if audit.finding is None and (t := audit.ask(group, 0)).want is eq.Want.LABEL:
                audit.tell(t, i % 2)
    finding = audit.so_far()
    assert finding.all_rates().keys() == RATES.keys()
    assert finding.all_metrics().keys() == METRICS.keys()
    assert Finding.from_json(finding.to_json()) == finding
    assert replace(finding, shares={}).all_rates() == {}
    page = eq.write_report(audit, tmp_path / "report.html").read_text()
    assert "Every rate by group" in page
    assert "These ranges and the verdict hold together (error probability at most 5%)" in page
    assert finding.all_rates()["accuracy"]["A"].percent in page
    report = json.loads(eq.write_report(audit, tmp_path / "report.json").read_text())
    assert (
        report["all_metrics"]["accuracy_parity"]["upper"]
        == finding.all_metrics()["accuracy_parity"].upper
    )
    rows = ["race,ok,paid", *["a,1,1", "a,0,", "b,1,0", "b,1,1", "b,0,"] * 20]
    (tmp_path / "loans.csv").write_text("\n".join(rows))
    command = [
        "check",
        str(tmp_path / "loans.csv"),
        "-g",
        "race",
        "-d",
        "ok",
        "-o",
        "paid",
        "--json",
    ]
    printed = json.loads(CliRunner().invoke(app, command).stdout)
    assert printed["all_rates"]["precision"]["a"]["upper"] == 1.0


def test_several_metrics_are_one_question() -> None:
    both = eq.Question(("equal_opportunity", "demographic_parity"))  # type: ignore[arg-type]
    assert both == eq.Question("equal_opportunity+demographic_parity")
    assert eq.Question.from_json(both.to_json()) == both
    assert [rate.name for rate in METRICS[both.metric].rates] == [
        *("true_positive_rate", "selection_rate")
    ]
    assert both.metric not in list(METRICS)
    findings = [eq.check(PAST, name) for name in both.metric.split("+")]
    finding_of_both = eq.check(PAST, both)
    assert finding_of_both.lower >= max(finding.lower for finding in findings) - 0.05
    assert finding_of_both.upper >= max(finding.upper for finding in findings)
    r = {"A": 0.3, "B": 0.2}
    separate = [gap_given_r(PAST.cells, r, name) for name in both.metric.split("+")]
    assert gap_given_r(PAST.cells, r, both.metric) == max(separate)
    with pytest.raises(UnknownName, match="'nonsense'"):
        eq.Question("equal_opportunity+nonsense")
    audit = eq.AdaptiveAudit(eq.history.Past(Cells(CELLS), exact=True), both, eq.Costs())
    assert audit.finding is not None
    assert audit.finding.verdict is eq.Verdict.UNFAIR  # selection rates alone say so
