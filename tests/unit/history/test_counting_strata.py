"""Strata: read, called by stratum and group, understood of people who arrive."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.errors import InvalidInput
from equipoise.history.coding import ValueReader
from tests.support.messages import refused

ROWS = [
    ("White", "car", 1, 1), ("White", "car", 0, None), ("Black", "car", 1, 0),
    ("Black", "car", 0, None), ("White", "home", 1, 1), ("Black", "home ", 0, None),
    ("White", "boat", 1, 1),
]  # fmt: skip
NAMES = ("race", "product", "ok", "paid")
HOW = {"group": "race", "decision": "ok", "outcome": "paid"}


def table(rows: list[tuple[object, ...]] | None = None) -> dict[str, list[object]]:
    columns = zip(*(rows or ROWS), strict=True)
    return {name: list(column) for name, column in zip(NAMES, columns, strict=True)}


def test_groups_are_read_within_strata() -> None:
    past = eq.History.read(table(), within="product", **HOW)
    assert [*past.cells] == [
        *("boat | White", "car | Black", "car | White", "home | Black", "home | White")
    ]
    assert past.coding is not None
    live = ValueReader(past.cells, past.coding)
    assert live.read_group(("CAR", "white ")) == "car | White"
    assert live.read_group("home | black") == "home | Black"
    assert past.summary is not None
    assert past.summary.columns["within"] == "product"
    both = eq.History.read(table(), within="product", **(HOW | {"group": ["race"]}))
    assert both.cells == past.cells
    arrays = table()
    same = eq.History.from_predictions(
        arrays["paid"], arrays["ok"], arrays["race"], control_features=arrays["product"]
    )
    assert same.cells == past.cells


def test_what_cannot_be_read_within_strata_is_refused() -> None:
    rows = [(race, "a | b" if p == "car" else p, *rest) for race, p, *rest in ROWS]
    with refused("group-names-clash", group="a | b | Black"):
        eq.History.read(table(rows), within="product", **HOW)
    with pytest.raises(InvalidInput, match="different columns; 'race' is named twice"):
        eq.History.read(table(), within="race", **HOW)
    with pytest.raises(InvalidInput, match="were read within strata"):
        eq.check(table(), "demographic_parity", within="product", **HOW)
    question = eq.Question("demographic_parity", compare=eq.Compare(within=True))
    found = eq.check(table(), question, within="product", **HOW)
    assert found.assumptions[0] == "not compared: boat | White"


def test_a_stratum_with_a_short_past_is_named_with_the_rows_that_it_lacks() -> None:
    many = {"approved_positive": 30_000, "approved_negative": 10_000, "denied": 20_000}
    few = {name: count // 1000 for name, count in many.items()}
    cells = {"x | A": many, "x | B": many, "y | A": few, "y | B": few}
    question = eq.Question("equal_opportunity", compare=eq.Compare(within=True))
    found = eq.check(eq.History.from_cells(cells), question)
    (line,) = [line for line in found.missing if "stratum" in line]
    assert "more past rows of the stratum 'y': with its 120 no number of labels" in line
    audit = eq.AdaptiveAudit(eq.History.from_cells(cells), question, eq.Costs())
    assert line.split(":")[1] in " ".join(audit.conclude().missing)
