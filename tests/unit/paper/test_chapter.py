"""Tables and words of the page."""

from __future__ import annotations

import csv
import io
import string
from dataclasses import dataclass
from typing import Any

import pytest
from paper import EXPERIMENTS
from paper.chapter import Table, number, words_of
from paper.checks import CHECKS
from paper.kept_work import Result


@dataclass(frozen=True)
class Noted(Result):
    audit: str
    cost: float
    note: str


@dataclass(frozen=True)
class Hidden(Result):
    audit: str
    cost: float | None
    hidden: float


TABLE = Table(
    "costs",
    "What it costs.",
    [Noted("rs", 1234567.8, "a|b"), Hidden("adaptive", None, 0.1234567)],
    {"audit": "audit", "cost": "cost", "note": "note"},
)


def test_csv_holds_everything_as_it_is() -> None:
    first, second = csv.DictReader(io.StringIO(TABLE.to_csv()))
    assert first == {"audit": "rs", "cost": "1234567.8", "note": "a|b", "hidden": ""}
    assert second["hidden"] == "0.1234567"


def test_markdown_holds_what_is_shown() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "| audit | cost | note |",
        "| --- | ---: | ---: |",
        "| rs | 1,234,568 | a\\|b |",
        "| adaptive | – | – |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00098765, "0.000988"), (4e-16, "0"), (float("nan"), "–"), (True, "yes"), (48842, "48,842")],
)
def test_numbers_are_readable(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_chapter_has_its_words(name: str) -> None:
    words = words_of(name)
    for key in ("title", "where", "setting", "paper", "differs", "found", "tables", "pictures"):
        assert key in words


def test_every_note_is_measured_or_says_where_to_look() -> None:
    notes: list[dict[str, Any]] = words_of("notes")["notes"]
    checks = [note["check"] for note in notes if "check" in note]
    assert sorted(checks) == sorted(CHECKS)
    for note in notes:
        assert ("check" in note) == ("measured" in note)
        assert "check" in note or note["command"]
        if "measured" in note:
            assert [field for _, field, _, _ in string.Formatter().parse(note["measured"]) if field]
