"""The tables and decision-makers of the black-box experiments: Adult, Law School, five classifiers.

Also what the paper's Tables 4 and 5 say of the columns, beside what the data hold.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput, UnknownName
from equipoise.worlds import TableWorld
from equipoise.worlds.data import adult, encode

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

CLASSIFIERS = ("all_LR", "wo_A_LR", "fair", "random", "sense_attr")
COMPLETE = "workclass <> '?' AND occupation <> '?' AND native_country <> '?'"
TRAINING_ROWS = {"adult": 100, "law": 5000}
CLASSIFIER_SEED = 1
LAW_SCHOOL = "EQUIPOISE_LAW_SCHOOL"

Bits = NDArray[np.int8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class People:
    """A table, encoded once for training and deciding alike.

    ``protected`` is A (1 for men), ``features`` all covariates with A, ``blind`` without it.
    """

    name: str
    protected: Bits
    outcome: Bits
    features: Floats
    blind: Floats


COLUMNS = {"adult": ("sex", "Male", "income", ">50K"), "law": ("male", 1, "pass_bar", 1)}
"""The column of sex and its value for men, the column of outcomes and the good one."""


@cache  # several chapters ask for the same table
def read_people(dataset: str, law_path: Path | None = None) -> People:
    """Return a table, numbers scaled and words turned into indicators."""
    group, man, outcome, good = COLUMNS[dataset]
    table = read_table(dataset, law_path)
    covariates = [c for c in table.columns if c not in (outcome, "part")]
    values = table.project(f"{group}, {outcome}").fetchnumpy()
    return People(
        dataset,
        (values[group] == man).astype(np.int8),
        (values[outcome] == good).astype(np.int8),
        encode(table, covariates),
        encode(table, [c for c in covariates if c != group]),
    )


def read_table(dataset: str, law_path: Path | None) -> DuckDBPyRelation:
    """Return "adult" (shipped) or "law" (from its file)."""
    if dataset == "adult":
        return adult()
    assert law_path is not None
    return law_school(law_path)


def law_school(path: Path) -> DuckDBPyRelation:
    """Return the Law School admission table (20,798 rows by 12 columns), which is not shipped.

    Examples
    --------
    >>> law_school(Path("no-such-file.csv"))
    Traceback (most recent call last):
    equipoise.errors.InvalidInput: the Law School table: no file 'no-such-file.csv'
    """
    import duckdb

    if not path.is_file():
        raise InvalidInput(f"the Law School table: no file {str(path)!r}")
    try:
        table = duckdb.connect().read_csv(str(path), header=True)
    except duckdb.Error as error:
        raise InvalidInput(f"the Law School table: {str(error).splitlines()[0]}") from None
    for column in ("race", "pass_bar"):
        if column not in table.columns:
            raise UnknownName("column of the Law School table", column, table.columns)
    return table


@cache
def decide(people: People, classifier: str) -> Bits:
    """Train a classifier, freeze it, and return its decision on everybody."""
    rng = np.random.default_rng(CLASSIFIER_SEED)
    rows = rng.choice(len(people.outcome), TRAINING_ROWS[people.name], replace=False)
    if classifier == "sense_attr":
        return people.protected
    if classifier == "random":
        tosses = np.random.default_rng([CLASSIFIER_SEED, 1]).integers(0, 2, len(people.outcome))
        return tosses.astype(np.int8)
    if classifier == "fair":
        return _fair(people, rows)
    features = {"all_LR": people.features, "wo_A_LR": people.blind}[classifier]
    model = regression().fit(features[rows], people.outcome[rows])
    return np.asarray(model.predict(features)).astype(np.int8)


def classify(people: People, classifier: str) -> TableWorld:
    """Return the table as a population decided by a classifier; the groups are female and male."""
    decision = decide(people, classifier)
    return TableWorld(
        ("female", "male"), people.protected.astype(np.intp), decision, people.outcome
    )


def regression() -> Any:  # scikit-learn has no types
    """Return the logistic regression that every experiment trains."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _fair(people: People, rows: NDArray[np.intp]) -> Bits:
    """Exponentiated gradient under equalized odds; its coin tosses are drawn once."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    model = ExponentiatedGradient(regression(), EqualizedOdds())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fairlearn's use of pandas
        groups = people.protected[rows]
        model.fit(people.features[rows], people.outcome[rows], sensitive_features=groups)
    tossed = model.predict(people.features, random_state=CLASSIFIER_SEED)
    return np.asarray(tossed).astype(np.int8)


# -- Tables 4 and 5 --------------------------------------------------------------------------------

ADULT = """
age [17 - 90]; workclass 7; fnlwgt [13,492 - 1,490,400]; education 16; education_num [1 - 16];
marital_status 7; occupation 14; relationship 6; race 5; sex 2; capital_gain [0 - 99,999];
capital_loss [0 - 4,356]; hours_per_week [1 - 99]; native_country 41; income 2
"""
LAW = """
decile1b [1.0 - 10.0]; decile3 [1.0 - 10.0]; lsat [11.0 - 48.0]; ugpa [1.5 - 4.0];
zfygpa [-3.35 - 3.48]; zgpa [-6.44 - 4.01]; fulltime 2; fam_inc 5; male 2; tier 6; race 6;
pass_bar 2
"""
"""What the paper's tables say of each column: a range, or how many values."""


def describe_columns(dataset: str, law_path: Path | None) -> list[dict[str, str]]:
    """Return what the paper says of every column, and what all rows and complete rows hold."""
    table, said = read_table(dataset, law_path), ADULT if dataset == "adult" else LAW
    kinds = {"all rows": table}
    if dataset == "adult":
        kinds["complete rows"] = table.filter(COMPLETE)
    rows = []
    for column, _, paper in (entry.strip().partition(" ") for entry in said.split(";")):
        holds = {name: _holds(kind, column, "-" in paper) for name, kind in kinds.items()}
        rows.append({"column": column, "paper": paper, **holds})
    return rows


def _holds(table: DuckDBPyRelation, column: str, numeric: bool) -> str:
    """Return a column's range, or how many values it has, unknown ones aside."""
    if numeric:
        ((low, high),) = table.aggregate(f"min({column}), max({column})").fetchall()
        return f"[{low:,} - {high:,}]"
    known = table.filter(f"CAST({column} AS VARCHAR) <> '?'")
    ((values,),) = known.aggregate(f"count(DISTINCT {column})").fetchall()
    return str(values)
