"""Tables whose columns nobody named: they are listed, and a proposal is tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import equipoise as eq
from equipoise.cli import app
from equipoise.errors import InvalidInput
from equipoise.history.problems import InvalidReading
from equipoise.messages import OpenChoice
from tests.support.hmda import write_files
from tests.support.messages import codes_of, problem_of, problems_of, refused


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_files(tmp_path_factory.mktemp("register"), rows=600)


def arguments_of(error: InvalidInput) -> dict[str, Any]:
    """Return what the error proposes, once it was tried and read the table."""
    assert isinstance(error, InvalidReading)
    assert error.proposal is not None
    assert error.proposal.reads_table
    return dict(error.proposal.arguments)


def test_the_outcome_of_a_preset_is_proposed_with_its_meaning(register: tuple[Path, Path]) -> None:
    lar, performance = register
    with refused("column-not-named", role="outcome", candidates=["loan_status"]) as caught:
        eq.History.read(lar, preset="hmda", outcomes=performance, on="uli")
    arguments = arguments_of(caught.value)
    assert arguments["outcome"] == "loan_status"
    assert arguments["positive"] == {"outcome": "Repaid"}
    done = CliRunner().invoke(
        app, ["plan", str(lar), "--preset", "hmda", "--outcomes", str(performance), "--on", "uli"]
    )
    assert done.exit_code == 2
    command = done.output.splitlines()[-1]
    assert command.startswith(f"  equipoise plan {lar} ")
    assert "--outcome loan_status --positive outcome=Repaid" in command
    assert f"equipoise read {lar} {performance}" in done.output


def test_what_joins_two_files_is_proposed(register: tuple[Path, Path], tmp_path: Path) -> None:
    lar, performance = register
    said: dict[str, Any] = {"preset": "hmda", "outcome": "loan_status"}
    with refused("outcomes-without-key", shared=["uli"]) as caught:
        eq.History.read(lar, **said, outcomes=performance)
    assert arguments_of(caught.value)["on"] == "uli"
    loans = pd.read_csv(performance).rename(columns={"uli": "account_id"})
    loans["branch_no"] = loans.index % 7
    loans.to_csv(tmp_path / "loans.csv", index=False)
    with refused("outcomes-without-key") as caught:  # by values, because two are called like ids
        eq.History.read(lar, **said, outcomes=tmp_path / "loans.csv")
    problem = problem_of(caught.value, "outcomes-without-key")
    assert [fix.argument_value for fix in problem.fixes] == ["uli=account_id"]


def test_two_files_without_a_word_are_joined_in_the_proposal(register: tuple[Path, Path]) -> None:
    lar, performance = register
    with pytest.raises(InvalidReading) as caught:
        eq.History.read([str(lar), str(performance)])
    codes = codes_of(problems_of(caught.value))
    assert codes[:4] == [*["column-not-named"] * 3, "files-to-join"]
    assert "lacks columns 'derived_race' and 'action_taken'" in str(caught.value)
    arguments = arguments_of(caught.value)
    assert arguments["group"] == OpenChoice(("derived_race", "derived_sex"))
    assert (arguments["outcomes"], arguments["on"]) == (str(performance), "uli")
    with pytest.raises(InvalidInput, match=r"replace <derived_race .* by the one"):
        eq.History.read(lar, **{**arguments, "group": "<derived_race | derived_sex>"})


def test_columns_are_listed_where_nothing_can_be_proposed(tmp_path: Path) -> None:
    table = {"who": ["a", "b"], "x": [1, 2], "y": [3, 4]}
    for source in (table, pl.LazyFrame(table)):
        with refused("column-not-named", role="group", columns=["who", "x", "y"]) as caught:
            eq.History.read(source)
        assert caught.value.proposal is None
        assert len(problems_of(caught.value)) == 3
    with pytest.raises(InvalidInput, match="File not found"):
        eq.History.read(tmp_path / "none.csv")
