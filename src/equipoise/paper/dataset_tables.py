"""The paper's Tables 4 and 5, what its columns hold, read off the data themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.bounds import baseline_expectation, rs_expectation
from equipoise.data import adult, law_school
from equipoise.paper.classifiers import CLASSIFIERS, COMPLETE, classify, decide, read_people
from equipoise.paper.kept_work import Record
from equipoise.question import Costs, Question

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["compare_rows", "describe_columns"]

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


def describe_columns(dataset: str, law_path: str | None, law_digest: str | None) -> list[Record]:
    """Return a record per column; ``law_digest`` only says which file was read."""
    table, said = (adult(), ADULT) if dataset == "adult" else (law_school(law_path), LAW)
    whole = table.filter(COMPLETE) if dataset == "adult" else None
    return [
        {
            "kind": "column",
            "dataset": dataset,
            "column": column,
            "paper": paper,
            "all": _holds(table, column, "[" in paper or " - " in paper),
            "complete": None if whole is None else _holds(whole, column, " - " in paper),
        }
        for column, paper in said.items()
    ]


def compare_rows() -> list[Record]:
    """Compare all rows of Adult with the complete ones: EOD and exact cost ratio by classifier."""
    costs, question = Costs(0.0, 1.0), Question(gamma=0.0, epsilon=0.05, delta=0.05)
    records: list[Record] = []
    for classifier in CLASSIFIERS:
        record: Record = {"kind": "complete", "dataset": "adult", "classifier": classifier}
        for name, dataset in (("all", "adult"), ("complete", "adult complete")):
            people = read_people(dataset)
            world = classify(people, decide(people, classifier)).as_cells
            rs, base = (
                price(world, question, costs, tau=1000).cost
                for price in (rs_expectation, baseline_expectation)
            )
            record |= {
                f"{name}_rows": len(people),
                f"{name}_eod": world.difference("equalized_odds"),
                f"{name}_ratio": rs / base,
            }
        records.append(record)
    return records


def _holds(table: DuckDBPyRelation, column: str, numeric: bool) -> str:
    """Return a column's range, or how many values it has, unknown ones aside."""
    if numeric:
        ((low, high),) = table.aggregate(f"min({column}), max({column})").fetchall()
        return f"[{low:,} - {high:,}]"
    known = table.filter(f"CAST({column} AS VARCHAR) <> '?'")
    ((values,),) = known.aggregate(f"count(DISTINCT {column})").fetchall()
    return str(values)
