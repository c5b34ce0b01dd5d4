"""Tables, notes and the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from pandas import DataFrame
from paper import notes
from paper.page import (
    Chapter,
    Claim,
    Settings,
    markdown_table,
    number,
    to_html,
    to_markdown,
    write_page,
)
from paper.pictures import to_svg

TABLE = DataFrame(
    [
        {"audit": "rs", "mean_cost": 1234567.8, "note": "a|b"},
        {"audit": "adaptive", "mean_cost": None, "note": None},
    ]
)


def draw() -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1.0, 2.0, 3.0], [1.0, 2.0, 1.0 / 3.0], marker="o")
    axes.set_yticks([0.025, 2.0])
    return figure


def chapter(**pictures: str) -> Chapter:
    claim = Claim("Figure 9", "RS-Audit is cheaper", "half", "0.43", "holds")
    words = "Costs {{ cost | n }}, {{ share | pct(1) }}.\n\n{{ table('costs') }}"
    facts = {"cost": 1234.5, "share": 0.125}
    tables, left_out = {"costs": TABLE}, "Law was left out."
    return Chapter("One", words, facts, tables, pictures, [claim], left_out=left_out)


def test_markdown_is_headed_by_the_names_of_the_columns() -> None:
    assert markdown_table(TABLE).splitlines() == [
        "| audit | mean cost | note |",
        "| --- | ---: | --- |",
        "| rs | 1,234,568 | a\\|b |",
        "| adaptive | – | – |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00098762, "0.0009876"),
        (4e-16, "0"),
        (float("nan"), "–"),
        (True, "yes"),
        (48842, "48,842"),
    ],
)
def test_numbers_are_readable(value: float, text: str) -> None:
    assert number(value) == text


def test_the_page_begins_with_the_claims_and_holds_the_words() -> None:
    page = to_markdown({"one": chapter()}, "python -m paper --quick")
    row = page.index("| Figure 9 | RS-Audit is cheaper | half | 0.43 | holds |")
    assert row < page.index("**Law was left out.**") < page.index("Costs 1,234, 12.5%.")
    assert "`python -m paper --quick --only one`" in page
    assert "<td>Figure 9</td>" in to_html(page)


def test_files_are_written_beside_the_page_and_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_page(
            {"one": chapter(costs=to_svg(draw))}, None, "make", out=tmp_path / folder, docs=tmp_path
        )
    svg = (tmp_path / "paper" / "one-costs.svg").read_text()
    assert svg == (tmp_path / "a" / "paper" / "one-costs.svg").read_text()
    assert svg == (tmp_path / "b" / "paper" / "one-costs.svg").read_text()
    assert len(svg) < 12_000
    assert ">0.025</text>" in svg  # letters, not their outlines, and all digits of a label
    csv = (tmp_path / "a" / "paper" / "one-costs.csv").read_text().splitlines()
    assert csv == ["audit,mean_cost,note", "rs,1234567.8,a|b", "adaptive,,"]


def test_notes_state_what_was_measured() -> None:
    page = " ".join(to_markdown({"notes": notes.run(Settings())}, "python -m paper").split())
    for words in (
        "says UNFAIR in 100% of 1000 runs, the rule of the text in 0%",
        "UNFAIR at no cost in 100%",
        "belongs to epsilon = 2.06",
        "adds up to 0.714 delta",
        "= 1,173. The printed one is 2.92 times",
        "Booked on the audit that asked",
        "exceeds 3.03 c_feat at epsilon = 0.1",
        "grow like epsilon^-2)",
        "|theta_1 - theta_0| is 2.33",
        "off by -42.8% at 1 sigma, -10.2% at 2 sigma",
        "they are n = 10^3.6, m = 10^",
        "Each of the four has 10 within reach",
        "gives 80 labels at delta = 0.01, 5.6 at 0.2, 0 at 0.3",
    ):
        assert words in page, words
