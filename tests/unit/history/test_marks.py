"""Denied people with outcomes: a yes/no column that marks them is proposed as a test programme."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import equipoise as eq
from equipoise.history.problems import UnreadTable
from equipoise.messages import shell
from tests.support.messages import problem_of

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


def test_outcomes_that_are_guessed_to_be_unknown_do_not_hide_the_mark(tmp_path: Path) -> None:
    """Of the pilot's loans most are current, which is proposed to mean that nothing is known."""
    data = table()
    words = {1.0: "current", 0.0: "default"}
    said = [words.get(outcome) for outcome in data.repaid]
    data = data.assign(repaid=["repaid" if n % 99 == 1 else word for n, word in enumerate(said)])
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(data, **READING)
    problem = problem_of(refused.value, "denied-with-outcome-marked")
    assert problem.fields["mark_column"] == "pilot_flag"
    assert refused.value.proposal is not None
    assert refused.value.proposal.arguments["random_accepts"] == "pilot_flag"
    assert "denied_outcomes" not in refused.value.proposal.arguments
    # The same if the outcomes come from another file.
    people = tmp_path / "people.csv"
    outcomes = tmp_path / "outcomes.csv"
    data.drop(columns="repaid").to_csv(people, index=False)
    data[["application_id", "repaid"]].dropna().to_csv(outcomes, index=False)
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(people, **READING, outcomes=outcomes, on="application_id")
    assert problem_of(refused.value, "denied-with-outcome-marked").fields["mark"] == "Y"


def test_a_word_for_no_loan_behind_every_denial_is_no_mark() -> None:
    data = table().drop(columns="pilot_flag")
    data["repaid"] = ["no loan" if outcome != outcome else str(outcome) for outcome in data.repaid]
    data["branch_open"] = ["YN"[n % 2] for n in range(600)]
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(data, **READING)
    codes = [problem.code for problem in refused.value.problems]
    assert "denied-with-outcome-marked" not in codes
