"""Layouts that many lenders share, and values that need no explanation in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import equipoise as eq
from equipoise.errors import BadData, UnknownName
from equipoise.history.presets import load_preset, preset_names
from equipoise.history.problems import UnreadTable
from tests.support.hmda import write_files

OUTCOME: dict[str, Any] = {
    "preset": "hmda",
    "outcome": "loan_status",
    "positive": {"outcome": "Repaid"},
    "on": "uli",
}


def test_hmda_reads_a_register_with_its_performance_file(tmp_path: Path) -> None:
    lar, performance = write_files(tmp_path, rows=4000)
    history = eq.History.read(lar, outcomes=performance, **OUTCOME)
    table = pd.read_csv(lar, dtype=str, keep_default_na=False)
    decided = table[table.action_taken.isin(["1", "3", "7"])]
    assert history.cells.total == len(decided)
    white = decided[decided.derived_race == "White"]
    assert history.cells["White"].denied == (white.action_taken != "1").sum()
    assert "Race Not Available" in history.cells
    by_sex = eq.History.read(
        lar, outcomes=performance, **OUTCOME, group="derived_sex", missing_group="refuse"
    )
    assert set(by_sex.cells) == {"Male", "Female", "Joint"}


def test_hmda_gives_every_code_of_an_action_a_meaning() -> None:
    """The codes of the filing guide are 1 to 8."""
    preset = load_preset("hmda")
    codes = [*preset["positive"]["decision"], *preset["negative"]["decision"]]
    codes += preset["missing_values"]["decision"]
    assert sorted(codes) == list("12345678")


def test_blank_groups_join_an_existing_value(tmp_path: Path) -> None:
    lar, performance = write_files(tmp_path, rows=4000)
    history = eq.History.read(lar, outcomes=performance, **OUTCOME, missing_group="asian ")
    assert set(history.cells) == {"White", "Black or African American", "Asian"}
    (note,) = [note for note in history.notes if note.code == "missing-group-joined"]
    assert note.fields["rows"] > 0


def test_the_note_on_blank_groups_counts_what_the_waterfall_counts() -> None:
    table = {
        "g": ["a", "b", "", "", "", "a"] * 5,
        "d": ["1", "1", "1", "3", "4", "3"] * 5,  # the fifth withdrew, and has no group either
        "o": ["1", "0", "1", "", "", ""] * 5,
    }
    said: dict[str, Any] = {"group": "g", "decision": "d", "outcome": "o"}
    said |= {"positive": {"decision": "1"}, "negative": {"decision": "3"}}
    said |= {"missing_values": {"decision": "4"}, "undecided": "leave_out"}
    history = eq.History.read(table, **said, missing_group="not stated")
    (note,) = [note for note in history.notes if note.code == "missing-group-named"]
    assert history.summary is not None
    assert note.fields["rows"] == history.summary.without_group == 10


def test_a_preset_of_ones_own_is_a_path(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('group = "g"\ndecision = "d"\noutcome = "o"\npositive = {decision = ["ja"]}\n')
    table = {"g": ["a", "b"] * 9, "d": ["ja", "nein", "ja"] * 6, "o": [1, None, 0] * 6}
    assert eq.History.read(table, preset=str(own)).cells.total == 18
    own.write_text('grupe = "g"\n')
    with pytest.raises(UnknownName, match="entry in the preset"):
        eq.History.read(table, preset=str(own))
    with pytest.raises(BadData, match="cannot read the preset"):
        load_preset(str(tmp_path / "none.toml"))


def test_presets_are_listed() -> None:
    assert "HMDA" in preset_names()["hmda"]
    with pytest.raises(UnknownName, match="unknown preset 'hdma'"):
        load_preset("hdma")


MARKED = {
    "g": ["a", "b"] * 60,
    "d": [1, 0, 1] * 40,
    "o": [1, None, 0, 1, 1, 0] * 20,
    "pilot": ["N", "N", "N", "N", "Y", "N"] * 20,
}
READING: dict[str, Any] = {"group": "g", "decision": "d", "outcome": "o"}


def test_random_accepts_may_be_marked_by_any_word() -> None:
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(MARKED, **READING, random_accepts="pilot")
    assert refused.value.problems[0].code == "random-accepts-not-bits"
    assert refused.value.proposal is not None
    assert refused.value.proposal.reads_table
    for positive in ({"pilot": "Y"}, "pilot=Y"):
        history = eq.History.read(MARKED, **READING, random_accepts="pilot", positive=positive)
        accepts = [cells.random_accepts for cells in history.cells.values()]
        assert sum(sum(counts) for counts in accepts if counts) == 20


def test_a_waterfall_of_rows_adds_up(tmp_path: Path) -> None:
    lar, performance = write_files(tmp_path, rows=4000)
    summary = eq.History.read(lar, outcomes=performance, **OUTCOME).summary
    assert summary is not None
    steps = summary.waterfall
    assert steps["read"] == 4000
    assert steps["read"] == sum(summary.dropped.values()) + steps["counted"]
    assert steps["without a decision"] > 100
    assert "4,000 read - " in str(summary)
    table = {
        "who": ["a", "a", "b", "c", "d"],
        "day": ["2024-01-01"] * 4 + ["2023-01-01"],
        "g": ["x", "x", "y", "x", "y"],
        "d": [1, 1, 1, 0, 1],
        "o": [1, 1, 0, None, 1],
    }
    summary = eq.History.read(
        table, **READING, id="who", repeated="count_once", date="day", since="2024-01-01"
    ).summary
    assert summary is not None
    assert summary.waterfall == {"read": 5, "outside the period": 1, "repeated": 1, "counted": 3}
