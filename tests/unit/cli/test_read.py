"""Guided reading: every question is asked on its own, and an answer may be changed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli import app
from equipoise.cli import read as reading


@pytest.fixture(autouse=True)
def at_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "can_ask", lambda: True)
    monkeypatch.chdir(tmp_path)


def write(name: str, header: str, rows: list[str]) -> None:
    Path(name).write_text("\n".join([header, *rows, ""]))


def answer(*command: str, keys: str) -> Result:
    """Run the command; the keys are one line per answer."""
    typed = "".join(f"{key}\n" for key in keys.split())
    # An underscore is an answer that takes the proposal.
    return CliRunner().invoke(app, ["read", *command], input=typed.replace("_", ""))


def kept(name: str = "loans.toml") -> dict[str, Any]:
    return tomllib.loads(Path(name).read_text())


def write_codes() -> None:
    """Write a table in which 2 is a decision that was never taken, and a bad outcome."""
    rows = ["N,1,1", "N,1,2", "S,1,1", "S,1,2", "N,3,", "S,3,", "S,2,"] * 12
    write("coded.csv", "app_id,team,status,result", [f"A{n},{row}" for n, row in enumerate(rows)])


def test_one_answer_is_changed_and_codes_hold_for_their_column() -> None:
    write_codes()
    columns = "\x1b[A 1 1 1 _"  # an arrow key first; the last one is the proposed id
    meanings = "1 3 3 1 2"  # of 1, 3 and 2, then of the outcomes 1 and 2
    done = answer("coded.csv", keys=f"{columns} {meanings} n 6 2 y")
    assert done.exit_code == 0, done.output
    assert done.output.index("'1' (48)") < done.output.index("Which column holds the group?")
    assert "Type a number from 1 to 3, and press Enter." in done.output
    entries = kept()
    assert entries["id"] == "app_id"
    assert entries["negative"] == {"decision": "3", "outcome": "2"}
    assert entries["missing_values"] == {"decision": ["2"]}
    history = eq.History.read("loans.toml")
    assert history.summary is not None
    assert history.summary.outcome["0"] == {"2": 24}
    assert history.coding is not None
    assert history.coding.columns["person"] == ("app_id",)


def test_nothing_is_kept_if_a_person_stops() -> None:
    write_codes()
    done = answer("coded.csv", keys="1 1 1 _ 1 2 3 1 2 n 10")
    assert done.exit_code == 2
    assert not Path("loans.toml").exists()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no rows"),
        ([f"{n},{n}" for n in range(99)], "has no column left that can hold the group"),
        ([f"{n},{n % 2}" for n in range(99)], "has no column left that can hold the decision"),
    ],
)
def test_a_file_without_a_choice_ends_with_code_2(rows: list[str], message: str) -> None:
    write("table.csv", "a,b", rows)
    done = answer("table.csv", keys="1 1 1")
    assert done.exit_code == 2
    assert message in done.stderr


def write_register() -> None:
    """Write a register with blank groups, a repeated row and a pilot, and its loans."""
    people = []
    loans = []
    for n in range(120):
        action = "14131"[n % 5]
        pilot = action == "3" and n % 2 == 0
        race = ["White", "Asian", ""][n % 3]
        people.append(f"u{n},{race},{action},{'Y' if pilot else 'N'}")
        if action == "1" or pilot:
            loans.append(f"u{n},{'12'[n % 7 == 0]}")
    write("lar.csv", "uli,derived_race,action_taken,pilot_flag", [*people, people[0]])
    write("loans.csv", "uli,state", loans)


def test_a_preset_leaves_few_questions_and_each_is_asked_alone() -> None:
    write_register()
    # The outcome, what joins, two values; then people who are repeated, the pilot, the counts.
    done = answer("lar.csv", "loans.csv", "--preset", "hmda", keys="1 _ 1 2 _ 1 y")
    assert done.exit_code == 0, done.output
    assert "Which column holds the group?" not in done.output
    assert "what does '4'" not in done.output
    for question in ("What is to be done?", "How were these people chosen?"):
        assert done.output.count(question) == 1
    assert "--id" not in done.output
    entries = kept()
    assert entries["preset"] == "hmda"
    assert entries["random_accepts"] == "pilot_flag"
    assert (entries["id"], entries["repeated"]) == ("uli", "count_once")
    assert "group" not in entries


def test_a_problem_that_no_answer_solves_leads_back_to_the_answers() -> None:
    write_register()
    keys = "1 _ 1 2 2 4 1 _ 2 y"  # "none of these" leads back: then 2 is good as well
    done = answer("lar.csv", "loans.csv", "--preset", "hmda", keys=keys)
    assert "Which answer shall be changed?" in done.output
    assert done.exit_code == 0, done.output
    assert kept()["positive"]["outcome"] == ["1", "2"]


def test_without_a_terminal_a_preset_leaves_the_same_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "can_ask", lambda: False)
    write_register()
    done = answer("lar.csv", "loans.csv", "--preset", "hmda", keys="")
    assert done.exit_code == 2
    questions = json.loads(done.stdout)["questions"]
    assert {question["role"] for question in questions} <= {"outcome", "on"}
