"""Codes that stand for none in one column and mean something in the other."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import equipoise as eq
from equipoise.errors import InvalidInput
from equipoise.history.coding import Coding, ValueReader
from equipoise.history.guided_reading import arguments_of
from equipoise.history.saved_readings import load_reading, save_reading
from equipoise.ledger.commands import Tell
from equipoise.messages.shell import describe_error
from equipoise.people import NumberedRow, RowReader, understand_command
from tests.support.messages import problem_of, refused

# 2 is a decision that was never taken, and a bad outcome.
CODED: dict[str, list[str]] = {
    "team": ["N", "S"] * 30,
    "status": ["1", "1", "3", "1", "1", "2"] * 10,
    "result": ["1", "2", "", "1", "1", ""] * 10,
}
COLUMNS: dict[str, Any] = {
    "group": "team",
    "decision": "status",
    "outcome": "result",
    "undecided": "leave_out",
}
MEANINGS: dict[str, Any] = {
    "positive": {"decision": "1", "outcome": "1"},
    "negative": {"decision": "3", "outcome": "2"},
}


@pytest.mark.parametrize(
    "missing_values",
    [
        ["2"],
        {"decision": "2"},
        {"status": ["2"]},
        ["decision=2"],
        "status=2",
        {"": ["2"]},
    ],
)
def test_a_meaning_in_its_own_column_goes_before_missing_values(missing_values: Any) -> None:
    history = eq.History.read(CODED, **COLUMNS, **MEANINGS, missing_values=missing_values)
    assert history.summary is not None
    assert history.summary.outcome["0"] == {"2": 10}
    assert history.summary.dropped == {"without a decision": 10}
    assert history.coding is not None
    words = ValueReader(history.cells.groups, history.coding)
    assert not words.is_missing("2", "outcome")
    assert words.is_missing("2", "decision")
    assert words.read_bit("outcome", "2") == 0
    told = understand_command(Tell("p1", "2"), words)  # type: ignore[arg-type]
    assert told == Tell("p1", 0)
    settings: Any = SimpleNamespace(values=words, assist=None)
    in_file = RowReader(settings, "tell", ("person", "result"))
    rows = [{"person": "p1", "result": "2"}, {"person": "p2", "result": ""}]
    assert [in_file.read_command(NumberedRow(1, row)) for row in rows] == [Tell("p1", 0), None]
    decisions = RowReader(settings, "ask", ("person", "team", "status"))
    undecided = NumberedRow(1, {"person": "p1", "team": "N", "status": "2"})
    assert decisions.read_command(undecided) is None
    assert Coding.from_json(history.coding.to_json()) == history.coding


def test_a_kept_coding_of_the_first_ledgers_reads_bad_outcomes() -> None:
    history = eq.History.read(CODED, **COLUMNS, **MEANINGS, missing_values=["2"])
    assert history.coding is not None
    data = history.coding.to_dict()
    assert data["missing_values"] == ["2"]
    assert "missing_by_role" not in data
    kept = Coding.from_dict(data)
    assert not kept.is_missing("outcome", "2")
    assert kept.read_bit("outcome", "2") == 0


def test_answers_about_values_hold_for_their_own_column(tmp_path: Path) -> None:
    meanings = {("decision", "1"): "approved", ("decision", "3"): "denied"}
    meanings |= {("decision", "2"): "no decision"}
    meanings |= {("outcome", "1"): "good", ("outcome", "2"): "bad"}
    arguments = {**COLUMNS, **arguments_of(meanings)}
    assert arguments["missing_values"] == {"decision": ["2"]}
    history = eq.History.read(CODED, **arguments)
    assert history.summary is not None
    assert history.summary.outcome["0"] == {"2": 10}
    kept = tmp_path / "coded.toml"
    save_reading(kept, tmp_path / "coded.csv", arguments)
    assert 'missing_values = {decision = ["2"]}' in kept.read_text()
    assert load_reading(kept, {})[1].missing_values == {"decision": ["2"]}


def test_a_word_such_as_none_may_be_an_outcome() -> None:
    table = {
        "g": ["a", "b"] * 20,
        "d": [1, 1, 1, 0] * 10,
        "fraud": ["none", "none", "fraud", ""] * 10,
    }
    said: dict[str, Any] = {"group": "g", "decision": "d", "outcome": "fraud"}
    history = eq.History.read(table, **said, positive={"outcome": "none"})
    assert history.summary is not None
    assert history.summary.outcome == {"1": {"none": 20}, "0": {"fraud": 10}, "none": {"": 10}}


def test_a_value_with_two_readings_in_one_column_is_refused() -> None:
    for missing_values in ({"outcome": "2"}, "result=2"):
        with pytest.raises(InvalidInput) as error:
            eq.History.read(CODED, **COLUMNS, **MEANINGS, missing_values=missing_values)
        problem = problem_of(error.value, "missing-and-explained")
        assert problem.fields == {"column": "result", "value": "2", "argument": "negative"}
    assert "Both --negative and --missing-value name it" in describe_error(error.value)
    with refused("missing-and-explained", value="gone"):  # it has a meaning in both columns
        eq.History.read(CODED, **COLUMNS, negative="gone", missing_values="gone")


def test_a_code_of_one_column_does_not_take_the_bad_outcomes_of_the_other() -> None:
    """Only what is good was said, so that 2 is bad by elimination, unless it is missing."""
    said = {**COLUMNS, "positive": MEANINGS["positive"], "negative": {"decision": "3"}}
    with refused("missing-code-without-column", column="result", values=["2"]) as error:
        eq.History.read(CODED, **said, missing_values=["2"], unknown="like_known")
    assert error.value.proposal is not None
    arguments = error.value.proposal.arguments
    assert arguments["missing_values"] == {"decision": ["2"]}
    read = eq.History.read(CODED, **arguments)
    assert read.summary is not None
    assert read.summary.outcome["0"] == {"2": 10}
    # Said of this column alone, it is believed.
    taken = {**said, "missing_values": {"decision": "2", "outcome": "2"}, "unknown": "bounds"}
    assert eq.History.read(CODED, **taken).cells.unknown == 10


def test_a_caller_goes_before_a_preset_and_a_file_role_by_role(tmp_path: Path) -> None:
    preset = tmp_path / "own.toml"
    preset.write_text(
        'positive = {decision = ["1"]}\nnegative = {decision = ["3"]}\n'
        'missing_values = {decision = ["2", "4"]}\nundecided = "leave_out"\n'
    )
    columns = {"group": "team", "decision": "status", "outcome": "result", "preset": str(preset)}
    outcomes = {"positive": {"outcome": "1"}, "negative": {"outcome": "2"}}
    _, options = load_reading(CODED, {**columns, **outcomes})
    assert options.missing_values == {"decision": ["2", "4"]}
    assert options.given_arguments == {**columns, **outcomes}  # nothing that the preset says
    pending = {**columns, **outcomes, "missing_values": {"outcome": ["pending"]}}
    _, options = load_reading(CODED, pending)
    assert options.missing_values == {"decision": ["2", "4"], "outcome": ["pending"]}
    assert options.given_arguments["missing_values"] == {"outcome": ["pending"]}
    _, options = load_reading(CODED, {**pending, "missing_values": ["pending", "open"]})
    assert options.given_arguments["missing_values"] == ["pending", "open"]
    assert options.missing_words("decision").include("4")
    approved = {**columns, **outcomes, "positive": {"decision": ["1", "2"], "outcome": "1"}}
    history = eq.History.read(CODED, **approved, unknown="bounds")
    assert history.summary is not None
    assert history.summary.decision["1"] == {"1": 40, "2": 10}


def test_registers_keep_bad_outcomes_that_have_the_code_of_a_decision() -> None:
    table = {
        "derived_race": ["White", "Asian"] * 30,
        "action_taken": ["1", "1", "3", "1", "1", "2"] * 10,
        "status": ["1", "2", "", "1", "1", ""] * 10,
    }
    history = eq.History.read(table, preset="hmda", outcome="status", positive="outcome=1")
    assert history.summary is not None
    assert history.summary.outcome["0"] == {"2": 10}
