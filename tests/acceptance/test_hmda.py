"""A lender's two files in the layout of US HMDA data, on their way to a verdict."""

from __future__ import annotations

import csv
import json
import os
import pty
import random
import subprocess
from itertools import islice
from pathlib import Path

import pytest

import equipoise as eq
from tests.acceptance.shell import BIN, equipoise
from tests.profiles import quick
from tests.support.hmda import Applicant, applicants, write_files

COUNTED = quick(
    "20,000 read - 988 without a decision = 19,012 counted",
    full="60,000 read - 3,083 without a decision = 56,917 counted",
)
METRIC = ("--metric", "equal_opportunity", "--gamma", 0.05, "--epsilon", 0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hmda")
    write_files(folder, rows=quick(20_000, full=60_000))
    return folder


def test_one_command_leads_from_two_files_to_the_first_check(folder: Path) -> None:
    done = equipoise(
        *("check", folder / "lar.csv", "--preset", "hmda"),
        *("--outcomes", folder / "performance.csv", "--on", "uli"),
        *("-o", "loan_status", "--positive", "outcome=Repaid", "--missing-group", "not stated"),
        *(*METRIC, "--save", folder / "loans.toml"),
    )
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert COUNTED in shown
    assert "25 rows of " in shown
    in_python = eq.check(
        folder / "lar.csv",
        eq.Question("equal_opportunity", 0.05, 0.1),
        preset="hmda",
        outcomes=folder / "performance.csv",
        on="uli",
        outcome="loan_status",
        positive={"outcome": "Repaid"},
        missing_group="not stated",
    )
    as_json = equipoise("check", folder / "loans.toml", "--json")
    assert json.loads(as_json.stdout)["upper"] == pytest.approx(in_python.upper, abs=1e-12)


def test_the_gate_names_the_group_and_the_advised_audit_reaches_a_verdict(folder: Path) -> None:
    kept = folder / "loans.toml"
    if not kept.exists():
        test_one_command_leads_from_two_files_to_the_first_check(folder)
    ledger = ("--ledger", folder / "ledger.db")
    refused = equipoise("audit", "new", "loans", kept, *ledger)
    assert refused.returncode == 2
    assert "'not stated' would keep this audit from ending" in refused.stderr
    assert "--leave-out 'not stated'" in refused.stderr
    begun = equipoise("audit", "new", "loans", kept, "--leave-out", "not stated", *ledger)
    assert begun.returncode == 0, begun.stderr
    chance = random.Random(11)
    arrivals = list(islice(applicants(chance), 3000))
    people = folder / "people.csv"
    with people.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("uli", "derived_race", "action_taken"))  # the columns of the reading
        rows.writerow(("withdrawn", "White", "4"))  # skipped, as in the past
        for number, person in enumerate(arrivals):
            race = person.race.upper() if number % 2 else person.race
            rows.writerow((f"p-{number}", race, "1" if person.approved else "3"))
    asked = equipoise("audit", "ask", "loans", "--file", people, *ledger, "--json")
    assert asked.returncode == 0, asked.stderr
    assert "withdrawn" not in asked.stdout
    typed = equipoise("audit", "ask", "loans", "p-3000", "asian", "3", *ledger, "--json")
    assert typed.returncode == 0, typed.stderr
    arrivals.append(Applicant("Asian", approved=False, good=True))
    live = eq.LiveAudit.open(str(folder / "ledger.db"), "loans")
    while live.finding is None:  # the file is asked again, as people come who are needed now
        waiting = live.people(states=("RESERVED",))
        names = [str(person.person) for person in waiting]
        live.tell_many((name, int(arrivals[int(name.removeprefix("p-"))].good)) for name in names)
        if live.finding is None:
            start = len(arrivals)
            arrivals += islice(applicants(chance), 500)
            live.ask_many(
                (f"p-{number}", applicant.race or "not stated", int(applicant.approved))
                for number, applicant in enumerate(arrivals[start:], start=start)
            )
        assert len(arrivals) < 40_000
    assert live.finding.verdict is eq.Verdict.UNFAIR


def test_questions_are_printed_as_json_without_a_terminal(folder: Path) -> None:
    done = equipoise("read", folder / "lar.csv", folder / "performance.csv")
    assert done.returncode == 2
    questions = json.loads(done.stdout)["questions"]
    proposals = {q["role"]: q["proposal"] for q in questions if not q["value"]}
    assert proposals == {
        "group": "derived_race",
        "decision": "action_taken",
        "outcome": "loan_status",
        "on": "uli",
    }
    values = {q["value"]: q["proposal"] for q in questions if q["column"] == "loan_status"}
    assert values == {"Repaid": "good", "Defaulted": "bad"}
    assert "hmda: " in equipoise("read", "--presets").stdout


def test_a_person_at_a_terminal_answers_by_numbers(tmp_path: Path) -> None:
    write_files(tmp_path, rows=1000)
    keyboard, terminal = pty.openpty()
    program = subprocess.Popen(
        [BIN / "equipoise", "read", "lar.csv", "performance.csv"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        env={**os.environ, "TERM": "dumb"},
    )
    columns = "\n\n\n\n"  # the proposals
    actions = "1\n2\n" + "3\n" * 5  # by size: 1 and 3 first
    outcomes = "\n\n"
    end = "\n" + "\n"  # blank groups join a value of the table, and the counts are right
    os.write(keyboard, (columns + actions + outcomes + end).encode())
    shown, _ = program.communicate(timeout=120)
    os.close(keyboard)
    os.close(terminal)
    assert program.returncode == 0, shown.decode()
    assert "wrote loans.toml" in shown.decode()
    history = eq.History.read(tmp_path / "loans.toml")
    assert history.cells["White"].denied > 0
