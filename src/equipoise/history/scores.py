"""Scores in past data: of the approved with their outcomes, of the denied, of denied with a label.

Who was denied has a score too, though no outcome; what a score will do for an audit depends on
both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import BadData
from equipoise.history.row_kinds import Counted
from equipoise.history.source import Source
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


def read_scores(source: Source, counted: Counted, column: str) -> dict[str, Scores]:
    """Return the scores of every group, of the first rows if there are very many."""
    coding, columns = counted.coding, counted.coding.columns
    names = (*columns.groups, columns.decision, columns.outcome, column)
    marks = {row.random_accepts for row in counted.rows if row.random_accept}
    if columns.random_accepts is not None:
        names = (*names, columns.random_accepts)
    k, found = len(columns.groups), dict[str, dict[tuple[bool, int | None], list[Any]]]()
    for *values, count in source.count(names, ENOUGH):
        decision, outcome, score, *mark = values[k:]
        random_accept = bool(mark) and mark[0] in marks
        undecided = not random_accept and is_missing(decision, coding.missing_values)
        if is_missing(score) or undecided:
            continue
        known = not is_missing(outcome, coding.missing_values)
        approved = coding.decision.bit(decision) == 1 and not random_accept
        kind = (approved, coding.outcome.bit(outcome) if known else None)
        group = coding.grouping.name(values[:k])
        found.setdefault(group, {}).setdefault(kind, []).append((_number(column, score), count))
    return {group: _scores(found.get(group, {})) for group in counted.cells}


def _scores(found: dict[tuple[bool, int | None], list[Any]]) -> Scores:
    def of(approved: bool, *outcomes: int | None) -> list[Array]:
        parts = [found.get((approved, outcome), []) for outcome in outcomes]
        rows = [np.array(part, dtype=np.float64).reshape(-1, 2) for part in parts]
        return [np.repeat(row[:, 0], row[:, 1].astype(np.intp)) for row in rows]

    def known(approved: bool) -> tuple[Array, Array]:
        bad, good = of(approved, 0, 1)
        return np.concatenate([bad, good]), np.repeat([0.0, 1.0], [len(bad), len(good)])

    return Scores(*known(True), np.concatenate(of(False, None, 0, 1)), *known(False))


def _number(column: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise BadData(f"column {column!r} must hold numbers to be a score; found {value!r}")
    return number
