"""How far one reads is counted of the same people as the cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from tests.unit.history.backends import Table, offer, options

KINDS = ("csv", "sqlite file", "polars lazy")


def read(kind: str, table: Table, folder: Path, **more: Any) -> eq.History:
    """Read a table with its rows in their order, whatever the engine says of it."""
    numbered = table | {"at": list(range(len(table["ok"])))}
    more = {"decision": "ok", "outcome": "paid", "order_by": "at"} | more
    return eq.History.read(offer(kind, numbered, folder), **options(kind), **more)


@pytest.mark.parametrize("kind", KINDS)
def test_folded_intersections_are_combinations_of_values(kind: str, tmp_path: Path) -> None:
    people = [("A", "F")] * 40 + [("B", "M")] * 40 + [("A", "M")] * 5 + [("B", "F")] * 5
    people = [people[at] for at in np.random.default_rng(1).permutation(len(people))]
    race, sex = (list(column) for column in zip(*people, strict=True))
    table = {"race": race, "sex": sex, "ok": [1] * 90, "paid": [1] * 90}
    history = read(kind, table, tmp_path, group=["race", "sex"], min_group=10)
    places = [at for at, who in enumerate(people, 1) if who in (("A", "M"), ("B", "F"))]
    for tau in (1, 3, 10):
        said = {"group": "other groups", "outcome": 1}
        assert history.rows_until(tau, **said) == tau
        assert history.rows_until(tau, **said, within_group=False) == places[tau - 1]


@pytest.mark.parametrize("kind", KINDS)
def test_people_of_a_test_programme_are_denied_ones(kind: str, tmp_path: Path) -> None:
    table = {
        "race": [*"aaaaaaa", *"bbb"],
        "ok": [1, 1, None, None, 0, 1, 1, 1, 0, 0],
        "paid": [1, 1, 1, None, None, 1, 1, 0, None, 0],
        "test": [1, 1, 1, 0, 0, 0, 0, 0, 0, 1],
    }
    more = {"group": "race", "random_accepts": "test", "undecided": "leave_out"}
    history = read(kind, table, tmp_path, **more)
    assert history.cells["a"].counts["approved_positive"] == 2
    assert history.cells["a"].total == 6  # the fourth withdrew, the third was accepted undecided
    assert history.rows_until(2, group="a", outcome=1) == 6
    assert history.rows_until(1, group="b", outcome=0, within_group=False) == 7


@pytest.mark.parametrize("kind", [*KINDS, "ibis"])
@pytest.mark.parametrize(
    ("places", "of_b"),
    [
        (["10", "9", "-1", "2.5", "100", "20"], [1, 4, 5, 6]),
        ([None, "10", "9", "z", " 2", "b"], [1, 2, 4, 6]),  # numbers, words, none
        (["2024-02", "2023-11", "2023-02", "2024-01", "2022-12", "2025-01"], [1, 2, 5, 6]),
    ],
)
def test_numbers_held_as_text_are_ordered_by_size_in_every_engine(
    kind: str, places: list[str | None], of_b: list[int], tmp_path: Path
) -> None:
    table: Table = {"race": [*"bababb"], "ok": [1] * 6, "paid": [1] * 6, "place": places}
    history = read(kind, table, tmp_path, group="race", order_by="place")
    said: Any = {"group": "b", "outcome": 1, "within_group": False}
    assert [history.rows_until(tau, **said) for tau in (1, 2, 3, 4)] == of_b
