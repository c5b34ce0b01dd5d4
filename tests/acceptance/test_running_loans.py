"""A bank's own table with loans that still run, from reading to proof, in each of three faces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.history import History
from equipoise.ledger import LiveAudit
from equipoise.question import Want
from tests.acceptance.shell import equipoise
from tests.support.serving import serving

COLUMNS = {
    "group": "race", "decision": "status", "outcome": "loan",
    "positive": {"decision": "Approved", "outcome": "Paid"},
    "undecided": "leave_out", "missing_values": ["Withdrawn", "Open"], "missing_group": "unsaid",
}  # fmt: skip
FLAGS = (
    *("-g", "race", "-d", "status", "-o", "loan", "--positive", "decision=Approved"),
    *("--positive", "outcome=Paid", "--missing-value", "Withdrawn", "--missing-value", "Open"),
    *("--undecided", "leave_out", "--missing-group", "unsaid", "--metric", "equal_opportunity"),
)
QUESTION = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.1)
PRICED = "if approved people of unknown outcome are like the known"

Unknown = Literal["bounds", "like_known"]
both = pytest.mark.parametrize("unknown", ["bounds", "like_known"])


@pytest.fixture(scope="module")
def book() -> pd.DataFrame:
    """Words, blanks, withdrawn applications; of every tenth loan nobody knows yet how it ends."""
    rng, size = np.random.default_rng(27), 4000
    race = rng.choice(["a", "b", ""], size, p=[0.5, 0.4, 0.1])
    granted = rng.random(size) < np.where(race == "a", 0.7, 0.5)
    status = np.where(granted, "Approved", "Declined ")
    loan = np.where(rng.random(size) < 0.8, "Paid", "default")
    loan = np.where(rng.random(size) < 0.9, loan, rng.choice(["Open", ""], size))
    withdrawn = rng.random(size) < 0.03
    return pd.DataFrame(
        {
            "race": race,
            "status": np.where(withdrawn, "Withdrawn", status),
            "loan": np.where(granted & ~withdrawn, loan, ""),
        }
    )


@both
def test_on_the_command_line(book: pd.DataFrame, unknown: Unknown, tmp_path: Path) -> None:
    table, ledger = tmp_path / "past.csv", tmp_path / "ledger.db"
    book.to_csv(table, index=False)
    read = (table, *FLAGS, "--unknown", unknown)
    for command in (
        ("check", *read, "--report", tmp_path / "check.html"),
        ("plan", *read),
        ("audit", "new", "loans", *read, "-l", ledger),
        ("audit", "ask", "loans", "p1", "b", "declined", "-l", ledger),
        ("audit", "tell", "loans", "p1", "Paid", "-l", ledger),
        ("audit", "report", "loans", "-l", ledger, "--to", tmp_path / "report.html"),
        ("audit", "verify", "loans", "-l", ledger),
    ):
        done = equipoise(*command)
        assert (done.returncode, done.stderr) == (0, ""), command
    assert PRICED in (tmp_path / "report.html").read_text("utf-8")
    made = json.loads(equipoise("audit", "report", "loans", "-l", ledger, "--json").stdout)
    running = int((book.status.eq("Approved") & book.loan.isin(["Open", ""])).sum())
    assert made["sensitivity"]["unknown"] == (running if unknown == "bounds" else 0)
    assert made["sensitivity"]["lower"] < made["sensitivity"]["upper"] or unknown == "like_known"


@both
def test_in_python(book: pd.DataFrame, unknown: Unknown, tmp_path: Path) -> None:
    reading = {**COLUMNS, "unknown": unknown}
    assert eq.check(book, "equal_opportunity", **reading).verdict == "INCONCLUSIVE"
    assert eq.plan(book, "equal_opportunity", **reading).cases
    past = History.read(book, **reading)
    live = LiveAudit.create("sqlite://", "loans", past, QUESTION, eq.Costs(label=100))
    memory = eq.AdaptiveAudit(past, QUESTION, eq.Costs(label=100))
    assert live.ask("p1", "b", 0).want is Want.LABEL
    live.tell("p1", 1)
    memory.tell(memory.ask("b", "Declined"), "Paid")
    for name, audit in {"live": live, "memory": memory}.items():
        page = eq.write_report(audit, tmp_path / f"{name}.html").read_text("utf-8")
        assert "NO VERDICT YET" in page
        assert "1 override" in page
    assert live.verify().seq == live.status().events


def test_over_http(book: pd.DataFrame, tmp_path: Path) -> None:
    past = History.read(book, **COLUMNS, unknown="bounds")
    with serving(str(tmp_path)) as served:
        served.create("loans", past=past.cells.to_dict(), audit="adaptive", options={})
        served.result("loans", "ask", "p1", group="b", decision=0)
        answer = served.as_("auditor").get("/v1/audits/loans/report")
        assert answer.status_code == 200, answer.text
        assert PRICED in answer.text
        assert served.verify("loans")["kind"] == "verified"
