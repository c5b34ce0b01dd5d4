"""The decision-makers of the black-box experiments: five classifiers on two tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import MissingExtra, UnknownName
from equipoise.worlds import TableWorld
from equipoise.worlds.data import adult, encode, law_school

__all__ = ["CLASSIFIERS", "COMPLETE", "DATASETS", "People", "classify", "decide", "read_people"]

CLASSIFIERS = ("all_LR", "wo_A_LR", "fair", "random", "sense_attr")
DATASETS = ("adult", "adult complete", "law")
COMPLETE = "workclass <> '?' AND occupation <> '?' AND native_country <> '?'"
TRAINING_ROWS = {"adult": 100, "adult complete": 100, "law": 5000}
CLASSIFIER_SEED = 1

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

    def __len__(self) -> int:
        return len(self.outcome)


@cache  # several parts of one process ask for the same table
def read_people(dataset: str, law_path: str | None = None) -> People:
    """Return one of the tables, numbers scaled and words turned into indicators."""
    man: object
    good: object
    if dataset in ("adult", "adult complete"):
        table, group, outcome, man, good = adult(), "sex", "income", "Male", ">50K"
        table = table if dataset == "adult" else table.filter(COMPLETE)
    elif dataset == "law":
        table, group, outcome, man, good = law_school(law_path), "male", "pass_bar", 1, 1
    else:
        raise UnknownName("dataset", dataset, DATASETS)
    covariates = [c for c in table.columns if c not in (outcome, "part")]
    values = table.project(f"{group}, {outcome}").fetchnumpy()
    return People(
        dataset,
        (values[group] == man).astype(np.int8),
        (values[outcome] == good).astype(np.int8),
        encode(table, covariates),
        encode(table, [c for c in covariates if c != group]),
    )


@cache
def decide(people: People, classifier: str) -> Bits:
    """Train a classifier, freeze it, and return its decision on everybody."""
    rng = np.random.default_rng(CLASSIFIER_SEED)
    rows = rng.choice(len(people), TRAINING_ROWS[people.name], replace=False)
    makers: dict[str, Callable[[], NDArray[np.generic]]] = {
        "all_LR": lambda: _logistic(people.features, people.outcome, rows),
        "wo_A_LR": lambda: _logistic(people.blind, people.outcome, rows),
        "fair": lambda: _fair(people, rows),
        "random": lambda: np.random.default_rng([CLASSIFIER_SEED, 1]).integers(0, 2, len(people)),
        "sense_attr": lambda: people.protected,
    }
    if classifier not in makers:
        raise UnknownName("classifier", classifier, makers)
    return np.asarray(makers[classifier]()).astype(np.int8)


def classify(people: People, decision: Bits) -> TableWorld:
    """Return the table as a population with these decisions; the groups are female and male."""
    names = np.where(people.protected == 1, "male", "female")
    return TableWorld.from_frame(
        {"sex": names, "outcome": people.outcome},
        group="sex",
        outcome="outcome",
        decision=lambda _: decision,
    )


def _logistic(features: Floats, outcome: Bits, rows: NDArray[np.intp]) -> NDArray[np.generic]:
    model = _regression().fit(features[rows], outcome[rows])
    return np.asarray(model.predict(features))


def _regression() -> Any:  # scikit-learn has no types
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingExtra("scikit-learn", extra="ml", purpose="classifiers") from None
    return LogisticRegression(max_iter=1000)


def _fair(people: People, rows: NDArray[np.intp]) -> NDArray[np.generic]:
    """Exponentiated gradient under equalized odds; its coin tosses are drawn once."""
    try:
        from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    except ImportError:
        raise MissingExtra("fairlearn", extra="ml", purpose="fair classifiers") from None
    model = ExponentiatedGradient(_regression(), EqualizedOdds())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fairlearn's use of pandas
        model.fit(
            people.features[rows], people.outcome[rows], sensitive_features=people.protected[rows]
        )
    return np.asarray(model.predict(people.features, random_state=CLASSIFIER_SEED))
