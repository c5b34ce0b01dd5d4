"""The multiples that a forecast uses are the ones that were measured."""

from __future__ import annotations

import re
from pathlib import Path

from equipoise.service.forecast import MULTIPLES

STUDY = Path(__file__).parents[3] / "docs" / "study.md"


def test_multiples_are_those_of_the_study() -> None:
    page = STUDY.read_text(encoding="utf-8")
    for groups, words in ((2, "two groups"), (4, "four groups"), (8, "eight groups")):
        row = re.search(rf"\| {words}, outside the gap zone \|.*", page)
        assert row is not None
        middle, largest = (float(cell) for cell in row.group().split("|")[4:6])
        # Only a row outside the gap zone has a bound to be a multiple of.
        rows = re.findall(rf"^\|[^|]*\| {groups} \|.*\| (?:FAIR|UNFAIR) \|.*", page, re.MULTILINE)
        smallest = min(float(row.split("|")[10]) for row in rows)
        assert MULTIPLES[groups] == (smallest, middle, largest)
