"""An employer's two files, read for the first time by somebody who knows the help texts only."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import shlex
import subprocess
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput
from equipoise.history.problems import UnreadTable
from tests.acceptance.shell import BIN, equipoise
from tests.profiles import FULL, only_in_full, quick
from tests.support.hiring import applicants, write_files

COLUMNS = ("-g", "Gender", "-d", "Stage", "-o", "rating", "--metric", "equal_opportunity")
MEANINGS = {
    "outcome=<Exceeds>": "outcome=Below",
    "outcome=<every other one>": "",
}
"""Placeholder of the proposed command -> what a person writes there."""
COUNTED = quick(
    "6,150 read - 150 repeated - 227 without a decision = 5,773 counted",
    full="24,150 read - 150 repeated - 936 without a decision = 23,064 counted",
)
RATINGS = ("--positive", "outcome=Exceeds", "--negative", "outcome=Left in probation")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hiring")
    write_files(folder, rows=quick(6_000, full=24_000))
    return folder


def follow(command: str) -> list[str]:
    """Return the words of a proposed command, its placeholders filled in."""
    words: list[str] = []
    for word in shlex.split(command)[1:]:
        filled = re.sub(r"<[^<>]+ \| [^<>]+>", "Meets", word)  # one of several
        for placeholder, value in MEANINGS.items():
            filled = filled.replace(placeholder, value)
        if filled:
            words.append(filled)
        else:
            words.pop()  # the option in front of a value that is none
    return [*words, *RATINGS]


def test_the_first_message_leads_to_the_check_plan_and_audit(folder: Path) -> None:
    both = (folder / "applications.csv", folder / "reviews.csv")
    not_utf8 = equipoise("check", *both, *COLUMNS)
    assert "--encoding latin-1" in not_utf8.stderr
    refused = equipoise("check", *both, *COLUMNS, "--encoding", "latin-1")
    assert refused.returncode == 2
    for option in (
        "--on 'Application No=personnel_no'",
        "--latest review_date",
        "--repeated count_once",
        "--missing-group 'Prefer not to say'",
        "--random-accepts 'Trial year' --positive random_accepts=yes",
    ):
        assert option in refused.stderr
    proposed = refused.stderr.strip().splitlines()[-1]
    kept = folder / "hiring.toml"
    checked = equipoise(*follow(proposed), "--save", kept)
    assert checked.returncode == 0, checked.stderr
    shown = " ".join(checked.stdout.split())
    assert COUNTED in shown
    assert "40 rows of " in shown
    ledger = ("--ledger", folder / "ledger.db")
    # Small groups make an audit longer. They do not keep it from ending, so nothing stops it here.
    advised = ("--leave-out", "Non-binary", "--leave-out", "Prefer not to say")
    begun = equipoise("audit", "new", "hiring", kept, *advised, "--max-in-flight", 200, *ledger)
    assert begun.returncode == 0, begun.stderr
    arrivals = list(islice(applicants(random.Random(99)), 1200))
    people = folder / "new.csv"
    rows = [
        (f"N{n}", p.group or "n/a", "Hired" if p.hired else "Not selected")
        for n, p in enumerate(arrivals)
    ]
    rows.append(("gone", "Men", "On hold"))
    header = ["Application No", "Gender", "Stage"]
    pd.DataFrame(rows, columns=header).to_csv(people, index=False, sep=";")
    reviews = folder / "later.csv"
    for _ in range(quick(1, full=3)):
        asked = equipoise("audit", "ask", "hiring", "--file", people, *ledger)
        assert asked.returncode == 0, asked.stderr
        live = eq.LiveAudit.open(str(folder / "ledger.db"), "hiring")
        waiting = [str(person.person) for person in live.people(states=("RESERVED",))]
        told = [(name, "Meets" if arrivals[int(name[1:])].good else "Below") for name in waiting]
        # The columns of the personnel system, as in the past.
        table = pd.DataFrame(told, columns=["personnel_no", "rating"])
        table.to_csv(reviews, index=False)
        brought = equipoise("audit", "tell", "hiring", "--file", reviews, *ledger)
        assert brought.returncode == 0, brought.stderr
        if eq.LiveAudit.open(str(folder / "ledger.db"), "hiring").finding is not None:
            break
    status = equipoise("audit", "status", "hiring", *ledger)
    assert status.returncode == 0, status.stderr
    if FULL:
        assert status.stdout.startswith("UNFAIR")
        report = folder / "hiring.html"
        assert equipoise("audit", "report", "hiring", "--to", report, *ledger).returncode == 0
        assert report.stat().st_size > 0


def test_pandas_reads_the_same_and_proposes_the_same(folder: Path) -> None:
    people = pd.read_csv(folder / "applications.csv", sep=";", encoding="latin-1")
    reviews = pd.read_csv(folder / "reviews.csv")
    columns: dict[str, Any] = {"group": "Gender", "decision": "Stage", "outcome": "rating"}
    with pytest.raises(InvalidInput, match="give it as 'outcomes'"):
        eq.History.read([people, reviews], **columns)
    with pytest.raises(InvalidInput, match="join that table by 'outcomes' and 'on'"):
        eq.History.read(people, **columns)
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(people, outcomes=reviews, on="Application No=personnel_no", **columns)
    assert refused.value.proposal is not None
    arguments = dict(refused.value.proposal.arguments)
    arguments["positive"] = {**arguments["positive"], "outcome": ["Meets", "Exceeds"]}
    arguments["negative"] = {**arguments["negative"], "outcome": ["Below", "Left in probation"]}
    missing_values = arguments["missing_values"]
    arguments["missing_values"] = {
        role: [value for value in values if isinstance(value, str)]
        for role, values in missing_values.items()
    }
    history = eq.History.read(people, **{**arguments, "outcomes": reviews})
    assert history.summary is not None
    assert history.summary.waterfall["counted"] == quick(5_773, full=23_064)


@only_in_full  # the register of a lender is read at a terminal in every run
def test_a_person_at_a_terminal_is_asked_for_keys_and_the_latest_row(tmp_path: Path) -> None:
    write_files(tmp_path, rows=3000)
    options = ["--encoding", "latin-1", "--save", "hiring.toml"]
    keyboard, terminal = pty.openpty()
    program = subprocess.Popen(
        [BIN / "equipoise", "read", "applications.csv", "reviews.csv", *options],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        env={**os.environ, "TERM": "dumb"},
    )
    columns = "\n" * 6  # the proposals: group, decision, outcome, two keys, the latest row
    stages = "\n" * 7  # proposed by their words
    ratings = "1\n2\n\n1\n2\n"  # Meets, Below, Not rated yet, Exceeds, Left in probation
    end = "\n\n1\n\n"  # rows that say the same, blank groups, the mark of the lot, keep it
    os.write(keyboard, (columns + stages + ratings + end).encode())
    shown, _ = program.communicate(timeout=120)
    os.close(keyboard)
    os.close(terminal)
    assert program.returncode == 0, shown.decode()
    history = eq.History.read(tmp_path / "hiring.toml")
    assert history.coding is not None
    assert sum(c.denied - c.denied_without_outcome for c in history.cells.values()) > 0
    assert set(history.cells) == {"Men", "Women", "Non-binary", "Prefer not to say"}


def test_without_a_terminal_the_same_questions_are_data(folder: Path) -> None:
    both = (folder / "applications.csv", folder / "reviews.csv")
    asked = equipoise("read", *both, "--encoding", "latin-1")
    assert asked.returncode == 2
    questions = json.loads(asked.stdout)["questions"]
    proposals = {q["role"]: q["proposal"] for q in questions if not q["value"]}
    assert proposals == {
        "group": "Gender",
        "decision": "Stage",
        "outcome": "rating",
        "on": "Application No",
        "on_outcomes": "personnel_no",
        "latest": "review_date",
    }
    stages = [q["value"] for q in questions if q["column"] == "Stage"]
    assert "hired" in stages
    assert "Hired" not in stages  # a value is asked for once, however it is spelled
