"""The registry of data sets and classifiers of the black-box experiments.

A new data set or classifier is one entry (:func:`register_csv`, :func:`register_classifier`). The
paper's are here: Adult, Law School, five classifiers.

Also what the paper's Tables 4 and 5 say of the columns, beside what the data hold.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput, UnknownName
from equipoise.worlds import TableWorld
from equipoise.worlds.data import adult, encode

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

COMPLETE = "workclass <> '?' AND occupation <> '?' AND native_country <> '?'"
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


# -- the registry of data sets ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set of the black-box experiments: where it comes from and what its columns mean.

    Attributes
    ----------
    title, figure
        Its name on the page, and the paper's figure that shows it.
    read
        From the path of the Law School file, which only that data set uses, to a table.
    group, first_group
        The column of A, and the value for which A = 1.
    outcome, good
        The column of Y, and the value for which Y = 1.
    training_rows
        How many random rows train a classifier.
    group_names
        The groups A = 0 and A = 1.
    """

    name: str
    title: str
    read: Callable[[Path | None], DuckDBPyRelation]
    group: str
    first_group: object
    outcome: str
    good: object
    training_rows: int
    figure: str = ""
    group_names: tuple[str, str] = ("female", "male")


DATASETS: dict[str, Dataset] = {}
"""Every data set by its name; :func:`register_dataset` and :func:`register_csv` add one."""


def register_dataset(dataset: Dataset) -> None:
    """Add a data set, or replace one of the same name."""
    DATASETS[dataset.name] = dataset
    read_people.cache_clear()


def register_csv(
    name: str,
    path: str | Path,
    *,
    group: str = "group",
    outcome: str = "outcome",
    training_rows: int = 1000,
) -> None:
    """Add a CSV file with two groups and outcomes 0 and 1; all other columns are features.

    A = 1 is the group whose name comes last in the alphabet.
    """
    table = _read_csv(Path(path), "the data set")
    for name_of_column in (group, outcome):
        if name_of_column not in table.columns:
            raise UnknownName(f"column of {str(path)!r}", name_of_column, table.columns)
    column = _quoted(group)
    groups = [str(row[0]) for row in table.project(column).distinct().order(column).fetchall()]
    if len(groups) != 2:
        raise InvalidInput(f"column {group!r} must hold two groups; got {len(groups)}")
    ((first_group,),) = table.aggregate(f"max({column})").fetchall()
    _require_outcomes(table, outcome)
    register_dataset(
        Dataset(
            name=name,
            title=name,
            read=lambda law_path: table,
            group=group,
            first_group=first_group,
            outcome=outcome,
            good=1,
            training_rows=training_rows,
            group_names=(groups[0], groups[1]),
        )
    )


def _require_outcomes(table: DuckDBPyRelation, outcome: str) -> None:
    """Raise unless a column holds both outcomes, as 0 and 1 or as booleans, and nothing else."""
    distinct = table.project(_quoted(outcome)).distinct().limit(50).fetchall()
    values = sorted((row[0] for row in distinct), key=str)
    is_number = not any(value is None or isinstance(value, str) for value in values)
    if is_number and len(values) == 2 and set(values) == {0, 1}:  # True == 1
        return
    shown = ", ".join("nothing" if value is None else repr(value) for value in values[:5])
    more = ", ..." if len(values) > 5 else ""
    raise InvalidInput(
        f"column {outcome!r} must hold the outcomes 0 and 1 (or false and true), both of them and "
        f"nothing else; it holds {shown}{more}; recode it, with 1 for the good outcome, and leave "
        "out people whose outcome is not known"
    )


def _quoted(column: str) -> str:
    """Return a column's name as SQL reads it, whatever word it is."""
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


@cache  # several chapters ask for the same table
def read_people(dataset: str, law_path: Path | None = None) -> People:
    """Return a table, numbers scaled and words turned into indicators."""
    if dataset not in DATASETS:
        raise UnknownName("data set", dataset, DATASETS)
    entry = DATASETS[dataset]
    table = entry.read(law_path)
    covariates = [c for c in table.columns if c not in (entry.outcome, "part")]
    values = table.project(f"{_quoted(entry.group)}, {_quoted(entry.outcome)}").fetchnumpy()
    return People(
        dataset,
        (values[entry.group] == entry.first_group).astype(np.int8),
        (values[entry.outcome] == entry.good).astype(np.int8),
        encode(table, covariates),
        encode(table, [c for c in covariates if c != entry.group]),
    )


def law_school(path: Path) -> DuckDBPyRelation:
    """Return the Law School admission table (20,798 rows by 12 columns), which is not shipped.

    Examples
    --------
    >>> law_school(Path("no-such-file.csv"))
    Traceback (most recent call last):
    equipoise.errors.InvalidInput: the Law School table: no file 'no-such-file.csv'
    """
    table = _read_csv(path, "the Law School table")
    for column in ("race", "pass_bar"):
        if column not in table.columns:
            raise UnknownName("column of the Law School table", column, table.columns)
    return table


def _read_csv(path: Path, what: str) -> DuckDBPyRelation:
    import duckdb

    if not path.is_file():
        raise InvalidInput(f"{what}: no file {str(path)!r}")
    try:
        return duckdb.connect().read_csv(str(path), header=True)
    except duckdb.Error as error:
        raise InvalidInput(f"{what}: {str(error).splitlines()[0]}") from None


def _read_law_school(law_path: Path | None) -> DuckDBPyRelation:
    assert law_path is not None
    return law_school(law_path)


# -- the registry of classifiers -------------------------------------------------------------------

Decide: TypeAlias = Callable[[People, NDArray[np.intp]], Bits]
"""From a table and its training rows to a decision on everybody."""

CLASSIFIERS: dict[str, Decide] = {}
"""Every classifier by its name; :func:`register_classifier` adds one."""


def register_classifier(name: str, make: Callable[[], Any]) -> None:
    """Add a classifier: ``make()`` returns something with scikit-learn's fit and predict.

    It is trained on all covariates, A among them.
    """

    def decide_by_estimator(people: People, rows: NDArray[np.intp]) -> Bits:
        model = make().fit(people.features[rows], people.outcome[rows])
        return np.asarray(model.predict(people.features)).astype(np.int8)

    CLASSIFIERS[name] = decide_by_estimator
    decide.cache_clear()


def load_classifier(place: str) -> str:
    """Register ``module:function`` of the command line, and return its name."""
    module, _, function = place.partition(":")
    if not function:
        raise InvalidInput(f"'--classifier' must be MODULE:FUNCTION, or a name; got {place!r}")
    sys.path.insert(0, str(Path.cwd()))  # modules beside the user, as python -m finds them
    try:
        make = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"'--classifier' {place!r} cannot be imported: {error}") from None
    register_classifier(function, make)
    return function


@cache
def decide(people: People, classifier: str) -> Bits:
    """Train a classifier, freeze it, and return its decision on everybody."""
    if classifier not in CLASSIFIERS:
        raise UnknownName("classifier", classifier, CLASSIFIERS)
    rng = np.random.default_rng(CLASSIFIER_SEED)
    n_rows = min(DATASETS[people.name].training_rows, len(people.outcome))
    rows = rng.choice(len(people.outcome), n_rows, replace=False)
    return CLASSIFIERS[classifier](people, rows)


def classify(people: People, classifier: str) -> TableWorld:
    """Return the table as a population decided by a classifier."""
    decision = decide(people, classifier)
    names = DATASETS[people.name].group_names
    return TableWorld(names, people.protected.astype(np.intp), decision, people.outcome)


def _decide_blindly(people: People, rows: NDArray[np.intp]) -> Bits:
    """Train a logistic regression on all covariates but A (wo_A_LR)."""
    model = regression().fit(people.blind[rows], people.outcome[rows])
    return np.asarray(model.predict(people.blind)).astype(np.int8)


def _toss_coins(people: People, rows: NDArray[np.intp]) -> Bits:
    """Approve with probability one half (random)."""
    del rows
    tosses = np.random.default_rng([CLASSIFIER_SEED, 1]).integers(0, 2, len(people.outcome))
    return tosses.astype(np.int8)


def _decide_by_group(people: People, rows: NDArray[np.intp]) -> Bits:
    """Approve everybody of A = 1 and nobody else (sense_attr)."""
    del rows
    return people.protected


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


register_classifier("all_LR", regression)
CLASSIFIERS |= {
    "wo_A_LR": _decide_blindly,
    "fair": _fair,
    "random": _toss_coins,
    "sense_attr": _decide_by_group,
}
PAPER_CLASSIFIERS = tuple(CLASSIFIERS)

register_dataset(
    Dataset(
        "adult", "Adult", lambda law_path: adult(), "sex", "Male", "income", ">50K", 100,
        "Figures 1 (top), 2",
    )
)  # fmt: skip
register_dataset(
    Dataset("law", "Law School", _read_law_school, "male", 1, "pass_bar", 1, 5000, "Figure 3")
)


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

NUMERICAL = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
NUMERICAL += ["decile1b", "decile3", "lsat", "ugpa", "zfygpa", "zgpa"]
BINARY = ["sex", "income", "fulltime", "male", "pass_bar"]
"""Feature types in the paper's tables; the other columns are categorical."""


def describe_columns(dataset: str, law_path: Path | None) -> list[dict[str, str]]:
    """Return what the paper says of every column, and what all rows and complete rows hold."""
    table, said = DATASETS[dataset].read(law_path), ADULT if dataset == "adult" else LAW
    kinds = {"all rows": table}
    if dataset == "adult":
        kinds["complete rows"] = table.filter(COMPLETE)
    rows = []
    for column, _, paper in (entry.strip().partition(" ") for entry in said.split(";")):
        holds = {name: _holds(kind, column, "-" in paper) for name, kind in kinds.items()}
        types = {"type_in_paper": _type_in_paper(column), "type_here": _type_of(table, column)}
        rows.append({"column": column, **types, "paper": paper, **holds})
    return rows


def _type_in_paper(column: str) -> str:
    if column in BINARY:
        return "binary"
    return "numerical" if column in NUMERICAL else "categorical"


def _type_of(table: DuckDBPyRelation, column: str) -> str:
    """Return a column's type by its values: two values, words or few whole numbers, or numbers."""
    kind = str(table.types[table.columns.index(column)])
    n_values = int(_holds(table, column, numeric=False))
    if n_values == 2:
        return "binary"
    is_code = "INT" in kind and n_values < 10
    if kind == "VARCHAR" or is_code:
        return "categorical"
    return "numerical"


def _holds(table: DuckDBPyRelation, column: str, numeric: bool) -> str:
    """Return a column's range, or how many values it has, unknown ones aside."""
    if numeric:
        ((low, high),) = table.aggregate(f"min({column}), max({column})").fetchall()
        return f"[{low:,} - {high:,}]"
    known = table.filter(f"CAST({column} AS VARCHAR) <> '?'")
    ((values,),) = known.aggregate(f"count(DISTINCT {column})").fetchall()
    return str(values)
