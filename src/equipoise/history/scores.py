"""Scores in past data: of the approved with their outcomes, of the denied, of denied with a label.

Who was denied has a score too, though no outcome; what a score will do for an audit depends on
both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import BadData
from equipoise.history.counting import CountedTable, Kind, by_value
from equipoise.history.values import is_missing

__all__ = ["Scores", "read_scores"]

Array = NDArray[np.float64]

ENOUGH = 200_000  # rows that are read at most


@dataclass(frozen=True, eq=False)
class Scores:
    """One group's scores, and outcomes of those whose outcome is known.

    Attributes
    ----------
    approved, outcomes
        Of approved people whose outcome is known.
    denied
        Of all denied people.
    labelled, labels
        Of denied people whose outcome is known all the same.
    """

    approved: Array
    outcomes: Array
    denied: Array
    labelled: Array
    labels: Array


def read_scores(counted: CountedTable, column: str) -> dict[str, Scores]:
    """Return the scores of every group, of some rows if there are very many."""
    found: dict[str, list[tuple[Kind, float, int]]] = {group: [] for group in counted.cells}
    for kind, value, n in by_value(counted, column, ENOUGH):
        if not is_missing(value):
            found[kind.group].append((kind, _number(column, value), n))
    outcome = counted.coding.outcome
    also = counted.coding.missing_values

    def of(own: list[tuple[Kind, float, int]], approved: bool, good: int | None) -> Array:
        rows = [
            (score, n)
            for kind, score, n in own
            if kind.approved == approved
            and (None if is_missing(kind.outcome, also) else outcome.bit(kind.outcome)) == good
        ]
        values = np.array(rows, dtype=np.float64).reshape(-1, 2)
        return np.repeat(values[:, 0], values[:, 1].astype(np.intp))

    def known(own: list[tuple[Kind, float, int]], approved: bool) -> tuple[Array, Array]:
        bad, good = of(own, approved, 0), of(own, approved, 1)
        return np.concatenate([bad, good]), np.repeat([0.0, 1.0], [len(bad), len(good)])

    return {
        group: Scores(
            *known(own, approved=True),
            np.concatenate([of(own, False, good) for good in (None, 0, 1)]),
            *known(own, approved=False),
        )
        for group, own in found.items()
    }


def _number(column: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise BadData(f"column {column!r} must hold numbers to be a score; found {value!r}")
    return number
