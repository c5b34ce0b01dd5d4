"""Denied people with outcomes: a yes/no column that marks them is proposed as a test programme."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import equipoise as eq
from equipoise.history.problems import UnreadTable
from equipoise.messages import shell

READING: dict[str, Any] = {"group": "race", "decision": "approved", "outcome": "repaid"}


def table(marks: tuple[str, str] = ("Y", "N")) -> pd.DataFrame:
    """Return people of whom every tenth denied one was accepted by a pilot, and has an outcome."""
    yes, no = marks
    rows = []
    for n in range(600):
        approved = int(n % 3 > 0)
        pilot = not approved and n % 10 == 0
        outcome = int(n % 7 > 1) if approved or pilot else None
        rows.append((n, "AB"[n % 2], approved, outcome, "cd"[n % 4 // 2], yes if pilot else no))
    names = ["application_id", "race", "approved", "repaid", "product", "pilot_flag"]
    return pd.DataFrame(rows, columns=names)


@pytest.mark.parametrize("marks", [("Y", "N"), ("1", "0"), ("pilot", "")])
def test_the_mark_is_proposed_and_the_advice_leads_to_a_check(marks: tuple[str, str]) -> None:
    data = table(marks)
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(data, **READING)
    (problem,) = refused.value.problems
    assert problem.code == "denied-with-outcome-marked"
    assert "--random-accepts pilot_flag" in shell.describe(problem)
    proposal = refused.value.proposal
    assert proposal is not None
    assert proposal.reads_table
    assert "denied_outcomes" not in proposal.arguments
    history = eq.History.read(data, **proposal.arguments)
    assert (
        sum(cells.denied - cells.denied_without_outcome for cells in history.cells.values()) == 20
    )
    free = eq.check(history, eq.Question("equal_opportunity"))
    ignored = eq.History.read(data, **READING, denied_outcomes="ignore")
    assert free.upper < eq.check(ignored, eq.Question("equal_opportunity")).upper


def test_a_column_that_does_not_coincide_is_no_mark() -> None:
    data = table().drop(columns="pilot_flag")
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(data, **READING)
    assert [problem.code for problem in refused.value.problems] == ["denied-with-outcome"]
    # Half of the denied people with an outcome are marked, and so are many others.
    data = table().assign(pilot_flag=["YN"[n % 2] for n in range(600)])
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(data, **READING)
    assert [problem.code for problem in refused.value.problems] == ["denied-with-outcome"]


def test_repeated_rows_do_not_hide_the_mark() -> None:
    data = pd.concat([table(), table()[:30]])
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(data, **READING, id="application_id")
    codes = [problem.code for problem in refused.value.problems]
    assert codes == ["people-repeated", "denied-with-outcome-marked"]
