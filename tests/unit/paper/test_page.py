"""Kept work, tables and the page."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from pandas import DataFrame
from paper import work
from paper.notes import NOTES
from paper.page import Chapter, Claim, Edition, Table, number, to_html, to_markdown
from paper.work import Done, Part, Settings, Tables, do_parts, join

TABLE = Table(
    "What it costs.",
    DataFrame(
        [
            {"audit": "rs", "cost": 1234567.8, "note": "a|b"},
            {"audit": "adaptive", "cost": None, "hidden": 0.1234567},
        ]
    ),
    {"audit": "audit", "cost": "cost", "note": "note"},
)


def square(number: int) -> Tables:
    return {"squares": [{"number": number, "square": number * number}]}


def part(number: int, name: str = "squares/one") -> Part:
    return Part(name, square, {"number": number})


def kept(done: dict[str, Done]) -> list[bool]:
    return [d.kept for d in done.values()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_run_redoes_only_what_changed(tmp_path: Path, jobs: int) -> None:
    first = [part(3), part(4, "squares/two")]
    done = do_parts(first, tmp_path, n_jobs=jobs)
    assert join(d.tables for d in done.values())["squares"].square.tolist() == [9, 16]
    assert kept(done) == [False, False]
    assert kept(do_parts(first, tmp_path)) == [True, True]
    assert kept(do_parts([part(3), part(5, "squares/two")], tmp_path)) == [True, False]


def test_other_code_makes_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    do_parts([part(3)], tmp_path)
    monkeypatch.setattr(work, "code_version", lambda: "another version")
    assert kept(do_parts([part(3)], tmp_path)) == [False]


def test_a_damaged_result_is_made_anew(tmp_path: Path) -> None:
    do_parts([part(3)], tmp_path)
    (place,) = tmp_path.rglob("output.pkl")
    place.write_bytes(b"not a result")
    done = do_parts([part(3)], tmp_path)
    assert done["squares/one"].tables == square(3)


def test_progress_is_told_the_share_of_parts_that_are_done(tmp_path: Path) -> None:
    seen: list[float] = []
    do_parts([part(3), part(4, "squares/two")], tmp_path, progress=seen.append)
    assert seen == [0.5, 1.0]


def test_csv_holds_everything_as_it_is() -> None:
    head, first, second = TABLE.to_csv().splitlines()
    assert head == "audit,cost,note,hidden"
    assert (first, second) == ("rs,1234567.8,a|b,", "adaptive,,,0.1234567")


def test_markdown_holds_what_is_shown() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "| audit | cost | note |",
        "| --- | ---: | --- |",
        "| rs | 1,234,568 | a\\|b |",
        "| adaptive | – | – |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00098765, "0.000988"), (4e-16, "0"), (float("nan"), "–"), (True, "yes"), (48842, "48,842")],
)
def test_numbers_are_readable(value: float, text: str) -> None:
    assert number(value) == text


def test_the_page_begins_with_the_claims_and_holds_the_words() -> None:
    claim = Claim("Figure 9", "RS-Audit is cheaper", "half", "0.43", "holds")
    words = "Costs {{ cost }}.\n\n{{ table('costs') }}"
    chapter = Chapter("one", "One", words, {"cost": 7}, {"costs": TABLE}, claims=[claim])
    edition = Edition([chapter], None, {"one": 1.0}, kept=0, parts=1, settings=Settings(quick=True))
    page = to_markdown(edition)
    row = page.index("| Figure 9 | RS-Audit is cheaper | half | 0.43 | holds |")
    assert row < page.index("Costs 7.")
    assert "`python -m paper --only one --quick`" in page
    assert "<td>Figure 9</td>" in to_html(page)


def test_every_note_is_measured_or_says_where_to_look() -> None:
    for note in NOTES:
        named = [field for _, field, _, _ in string.Formatter().parse(note.measured) if field]
        assert bool(named) == (note.check is not None)
        assert note.check or "--only notes" not in note.command
