"""The table of selection rates: counts, ratios, exact tests, small groups, people without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scipy.stats import hypergeom

import equipoise as eq
from equipoise.report import write_check
from equipoise.report.selection import selection_table

COUNTS = {"A": (60, 20, 20), "B": (20, 10, 70), "C": (1, 0, 2), "Unknown": (5, 5, 5)}
PAST = eq.History.from_cells(
    {
        group: {"approved_positive": good, "approved_negative": bad, "denied": denied}
        for group, (good, bad, denied) in COUNTS.items()
    }
)


def test_rows_have_counts_rates_ratios_and_fisher_s_p() -> None:
    rows, four_fifths = selection_table(PAST, eq.Question("equal_opportunity"))
    assert 0.3 / 0.8 in four_fifths
    by_group = {row.group: row for row in rows}
    b = by_group["B"]
    assert (b.people, b.approved, b.against, b.four_fifths) == (100, 30, "A", "below")
    assert b.impact_ratio is not None
    assert b.impact_ratio.estimate == pytest.approx(0.3 / 0.8)
    highest = max(row.rate.upper for row in rows if row is not b)
    assert b.impact_ratio.lower == pytest.approx(b.rate.lower / highest)
    law = hypergeom(200, 110, 100)  # of 110 approved among 200 people so many are among B's 100
    as_far = [k for k in range(10, 101) if law.pmf(k) <= law.pmf(30) * (1 + 1e-7)]
    assert b.p_value == pytest.approx(sum(law.pmf(k) for k in as_far))
    assert [row.group for row in rows if row.small] == ["C"]
    assert by_group["A"].against == "Unknown"  # the highest of the others
    assert by_group["A"].impact_ratio is not None
    assert by_group["A"].impact_ratio.upper == 1.0


def test_it_compares_as_the_question_does() -> None:
    compare = eq.Compare(against="B", leave_out=["Unknown"])
    rows, _ = selection_table(PAST, eq.Question("equal_opportunity", compare=compare))
    by_group = {row.group: row for row in rows}
    assert by_group["A"].against == "B"
    assert "Unknown" not in by_group  # counted, not compared
    unlimited, _ = selection_table(eq.history.Past(PAST.cells, exact=True), eq.Question())
    assert {row.p_value for row in unlimited} == {None}
    assert {row.people for row in unlimited} == {0}


def test_a_page_has_each_attribute_and_the_intersections_from_one_read(tmp_path: Path) -> None:
    rows = [("white", "man", 1, 1), ("white", "woman", 0, None), ("black", "man", 0, None)]
    rows += [("black", "woman", 1, 0), ("black", "woman", 1, 1), (None, "man", 1, 1)]
    columns = dict(zip(("race", "sex", "ok", "paid"), zip(*rows * 20, strict=True), strict=True))
    past = eq.History.read(
        {name: list(own) for name, own in columns.items()},
        group=["race", "sex"],
        decision="ok",
        outcome="paid",
        missing_group="not said",
    )
    assert past.attributes["race"]["black"].denied == 20
    assert past.attributes["race"]["not said"].total == 20
    assert past.attributes["sex"]["woman"].total == 60
    assert sum(own.total for own in past.attributes["sex"].values()) == past.cells.total
    page = write_check(past, [eq.check(past, "equalized_odds")], tmp_path / "p.html").read_text()
    labels = re.findall(r'<caption class="sr">(Selection rates by \w+)<', page)
    assert labels == [
        "Selection rates by group",
        *(f"Selection rates by {a}" for a in past.attributes),
    ]
    assert "People without a group are counted as “not said”: 20." in page
    single = eq.History.read(
        {name: list(own) for name, own in columns.items()},
        group="sex", decision="ok", outcome="paid",
    )  # fmt: skip
    assert single.attributes == {}
