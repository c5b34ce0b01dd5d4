"""The paper's Tables 4 and 5, what its columns hold, read off the data themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.bounds import baseline_expectation, rs_expectation
from equipoise.question import Costs, Question
from equipoise.worlds.data import adult, law_school
from paper.classifiers import COMPLETE, classify, decide, read_people
from paper.kept_work import Result

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["Column", "CompleteRows", "compare_rows", "describe_columns"]

ADULT = {
    "age": "[17 - 90]",
    "workclass": "7",
    "fnlwgt": "[13,492 - 1,490,400]",
    "education": "16",
    "education_num": "1 - 16",
    "marital_status": "7",
    "occupation": "14",
    "relationship": "6",
    "race": "5",
    "sex": "2",
    "capital_gain": "[0 - 99,999]",
    "capital_loss": "[0 - 4,356]",
    "hours_per_week": "[1 - 99]",
    "native_country": "41",
    "income": "2",
}
LAW = {
    "decile1b": "[1.0 - 10.0]",
    "decile3": "[1.0 - 10.0]",
    "lsat": "[11.0 - 48.0]",
    "ugpa": "[1.5 - 4.0]",
    "zfygpa": "[-3.35 - 3.48]",
    "zgpa": "[-6.44 - 4.01]",
    "fulltime": "2",
    "fam_inc": "5",
    "male": "2",
    "tier": "6",
    "race": "6",
    "pass_bar": "2",
}
"""Column -> what the paper's table says: a range, or how many values."""


@dataclass(frozen=True)
class Column(Result):
    """What one column of a table holds, by the paper, in all rows and in the complete ones."""

    dataset: str
    column: str
    paper: str
    all: str
    complete: str | None


@dataclass(frozen=True)
class CompleteRows(Result):
    """A classifier on all rows of Adult and on the complete ones: EOD and exact cost ratio."""

    classifier: str
    all_rows: int
    all_eod: float
    all_ratio: float
    complete_rows: int
    complete_eod: float
    complete_ratio: float


def describe_columns(dataset: str, law_path: str | None, law_digest: str | None) -> list[Column]:
    """Describe every column; ``law_digest`` only says which file was read."""
    table, said = (adult(), ADULT) if dataset == "adult" else (law_school(law_path), LAW)
    whole = table.filter(COMPLETE) if dataset == "adult" else None
    return [
        Column(
            dataset,
            column,
            paper,
            _holds(table, column, "[" in paper or " - " in paper),
            None if whole is None else _holds(whole, column, " - " in paper),
        )
        for column, paper in said.items()
    ]


def compare_rows(classifiers: Sequence[str]) -> list[CompleteRows]:
    """Compare all rows of Adult with the complete ones."""
    return [
        CompleteRows(c, *_figures("adult", c), *_figures("adult complete", c)) for c in classifiers
    ]


def _figures(dataset: str, classifier: str) -> tuple[int, float, float]:
    people = read_people(dataset)
    world = classify(people, decide(people, classifier)).as_cells
    question = Question(gamma=0.0, epsilon=0.05, delta=0.05)
    rs, base = (
        price(world, question, Costs(0.0, 1.0), tau=1000).cost
        for price in (rs_expectation, baseline_expectation)
    )
    return len(people), world.difference("equalized_odds"), rs / base


def _holds(table: DuckDBPyRelation, column: str, numeric: bool) -> str:
    """Return a column's range, or how many values it has, unknown ones aside."""
    if numeric:
        ((low, high),) = table.aggregate(f"min({column}), max({column})").fetchall()
        return f"[{low:,} - {high:,}]"
    known = table.filter(f"CAST({column} AS VARCHAR) <> '?'")
    ((values,),) = known.aggregate(f"count(DISTINCT {column})").fetchall()
    return str(values)
