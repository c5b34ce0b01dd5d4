"""Verdicts that stop a pipeline, and an end that somebody must confirm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from equipoise.cli import app

# Group B is approved half as often; the denied may have been anything.
COUNTS = (("A", 600, 100, 300), ("B", 300, 50, 650))
ROWS = ["group,approved,repaid"] + [
    f"{group},{decision},{outcome}"
    for group, good, bad, denied in COUNTS
    for decision, outcome, n in ((1, 1, good), (1, 0, bad), (0, "", denied))
    for _ in range(n)
]
COLUMNS = ("-g", "group", "-d", "approved", "-o", "repaid")
OPEN = ("--metric", "equal_opportunity")

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    past = tmp_path / "past.csv"
    past.write_text("\n".join(ROWS) + "\n")
    places = {"PAST": str(past), "LEDGER": str(tmp_path / "ledger.db")}

    def invoke(*words: str, said: str = "") -> Any:
        return CliRunner().invoke(app, [places.get(word, word) for word in words], input=said)

    return invoke


@pytest.mark.parametrize("command", ["check", "plan"])
@pytest.mark.parametrize(
    ("metric", "fail_on", "code"),
    [
        ("demographic_parity", "UNFAIR", 3),
        ("demographic_parity", "FAIR,INCONCLUSIVE", 0),
        ("equal_opportunity", "UNFAIR, INCONCLUSIVE", 3),
        ("equal_opportunity", "UNFAIR", 0),
    ],
)
def test_a_verdict_stops_a_pipeline(
    run: Run, command: str, metric: str, fail_on: str, code: int
) -> None:
    words = (command, "PAST", *COLUMNS, "--metric", metric, "--epsilon", "0.3")
    words = (*words, "--fail-on", fail_on)
    assert run(*words).exit_code == code
    shown = run(*words, "--json")
    assert shown.exit_code == code
    assert json.loads(shown.stdout)


def test_one_of_several_questions_is_enough_and_a_typo_is_found_first(run: Run) -> None:
    several = ("--metric", "demographic_parity", "--metric", "equal_opportunity")
    assert run("check", "PAST", *COLUMNS, *several, "--fail-on", "UNFAIR").exit_code == 3
    wrong = run("check", "nowhere.csv", *COLUMNS, "--fail-on", "unfair")
    assert wrong.exit_code == 2
    assert "unknown verdict in '--fail-on' 'unfair'" in wrong.stderr


def test_conclude_is_confirmed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("audit", "new", "loans", "PAST", *COLUMNS, *OPEN, "-l", "LEDGER")
    conclude = ("audit", "conclude", "loans", "-l", "LEDGER")
    refused = run(*conclude)
    assert refused.exit_code == 2
    assert "Add --yes" in refused.stderr
    monkeypatch.setattr("equipoise.cli.audit_changes.can_ask", lambda: True)
    declined = run(*conclude, said="n\n")
    assert (declined.exit_code, "nothing was done" in declined.stdout) == (1, True)
    paused = run("audit", "resume", "loans", "--why", "by mistake", "-l", "LEDGER")
    assert paused.stdout == "nothing to resume\n"
    done = run(*conclude, "--fail-on", "INCONCLUSIVE", said="y\n")
    assert done.exit_code == 3
    assert "INCONCLUSIVE. The gap is between" in done.stdout
    assert "concluded ('nobody else is to come') before" in done.stdout
    assert run(*conclude).exit_code == 0  # there is nothing left to confirm
    status = run("audit", "status", "loans", "-l", "LEDGER", "--fail-on", "INCONCLUSIVE")
    assert status.exit_code == 3
    again = run("audit", "resume", "loans", "--why", "go on", "-l", "LEDGER")
    assert again.stdout == "concluded, as before: nobody is asked any more\n"


def test_one_person_s_error_keeps_its_type(run: Run) -> None:
    run("audit", "new", "loans", "PAST", *COLUMNS, *OPEN, "-l", "LEDGER")
    error = run("audit", "ask", "loans", "p1", "C", "0", "-l", "LEDGER", "--json").stderr
    assert json.loads(error)["error"] == "UnknownName"
    error = run("audit", "tell", "loans", "nobody", "1", "-l", "LEDGER", "--json").stderr
    assert json.loads(error)["error"] != "ProtocolError"
