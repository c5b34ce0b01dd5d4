"""Scores and prices as they stand in files."""

from __future__ import annotations

import pandas as pd
import pytest

from equipoise.cli.people_files import PeopleColumns, number
from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.history.coding import ValueReader

PAST = pd.DataFrame(
    {"g": ["A", "B"] * 3, "d": [1, 1, 0, 0, 1, 1], "y": ["1", "0", "?", "?", "0", "-1"]}
)


@pytest.mark.parametrize("value", [None, "", " ", "NA", "NaN", "nan", "null", float("nan"), "?"])
def test_what_is_missing_is_none(value: object) -> None:
    assert number("--score", value, values()) is None


def test_what_is_a_number_is_never_missing() -> None:
    """Though -1 stands for no outcome in the past: as a score it is one like any other."""
    assert [number("--score", value, values()) for value in ("-1", -1.0, "0.5")] == [-1, -1, 0.5]
    with pytest.raises(InvalidInput, match="must be a number; got 'high'"):
        number("--score", "high", values())


def test_a_past_read_the_other_way_round_makes_bare_bits_ambiguous() -> None:
    frame = PAST.assign(y=["0", "1", None, None, "0", "1"])
    past = History.read(frame, group="g", decision="d", outcome="y", positive={"outcome": 0})
    assert past.coding is not None
    turned = ValueReader(past.cells.groups, past.coding)
    with pytest.raises(InvalidInput, match=r"may mean either.*say 'good' or 'bad'"):
        turned.read_bit("outcome", "0")
    assert (turned.read_bit("outcome", "Good "), turned.read_bit("outcome", "bad")) == (1, 0)
    assert (turned.read_bit("decision", "1"), turned.read_bit("decision", "denied")) == (1, 0)
    named = PeopleColumns(turned, ("outcome",), {"outcome": "y"}, ("who", "y"))
    assert named.value("outcome", {"y": "0"}) == 1  # as the past's own column
    other = PeopleColumns(turned, ("outcome",), {"outcome": "result"}, ("who", "result"))
    assert other.value("outcome", {"result": "good"}) == 1
    with pytest.raises(InvalidInput, match="may mean either"):
        PeopleColumns(turned, ("outcome",), {}).value("outcome", {"outcome": "0"})


def values() -> ValueReader:
    past = History.read(
        PAST, group="g", decision="d", outcome="y", missing_values=["?", "-1"], unknown="bounds"
    )
    assert past.coding is not None
    return ValueReader(past.cells.groups, past.coding)
