"""Columns beside group, decision and outcome: scores, and what shows whether a test was random.

A model's score is there for the denied too, though no outcome is; what it will do for an audit
depends on both. A test programme that prefers near misses shows in scores, one that ran for a
season in dates: within each group the accepted and the other denied are compared by the ranks of a
column's values (Mann-Whitney, with ties).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import BadData
from equipoise.history.values import is_missing, text_of

if TYPE_CHECKING:
    from equipoise.history.counting import CountedTable, Kind

Array = NDArray[np.float64]

ENOUGH = 200_000  # rows whose scores are read at most
LEVEL = 1e-3  # a programme that is random is refused once in a thousand files


def _by_value(
    counted: CountedTable, column: str, most_rows: int | None = None
) -> list[tuple[Kind, float, int]]:
    """Return the kinds of rows split by the values of one more column, with numbers of rows."""
    own = counted.options.columns
    columns = tuple(dict.fromkeys((*own, column)))
    table = counted.table if most_rows is None else counted.table.take(columns, most_rows)
    kinds, at = {tuple(kind.values.values()): kind for kind in counted.kinds}, columns.index(column)
    return [
        (kinds[texts], _number(column, row[at]), int(row[-1]))
        for row in table.count(columns)
        if not is_missing(row[at]) and (texts := tuple(map(text_of, row[: len(own)]))) in kinds
    ]


def _number(column: str, value: object) -> float:
    """Read a number, or a date as one: as text 10 would come before 9."""
    with suppress(ValueError):
        if isfinite(number := float(str(value))):
            return number
    with suppress(ValueError):
        when = datetime.fromisoformat(str(value).strip())
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    raise BadData(
        f"column {column!r} must hold numbers, or dates such as '2024-01-31'; found {value!r}; "
        "write numbers with a point and dates with the year first"
    )


# -- scores ----------------------------------------------------------------------------------------


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
    found: dict[str, list[tuple[float, ...]]] = {group: [] for group in counted.cells}
    for kind, score, n in _by_value(counted, column, ENOUGH):
        bit = counted.coding.outcome.bit(kind.outcome) if kind.labelled else None
        found[kind.group].append((score, kind.approved, -1 if bit is None else bit, n))
    return {group: _scores(own) for group, own in found.items()}


def _scores(rows: list[tuple[float, ...]]) -> Scores:
    table = np.array(sorted(rows, key=lambda row: row[2]), dtype=np.float64).reshape(-1, 4)
    score, approved, outcome = np.repeat(table[:, :3], table[:, 3].astype(np.intp), axis=0).T
    seen, labelled = ((outcome >= 0) & (approved == bit) for bit in (1, 0))
    known = score[seen], outcome[seen]
    return Scores(*known, score[approved == 0], score[labelled], outcome[labelled])


# -- was a test programme random? ------------------------------------------------------------------


def require_random(counted: CountedTable) -> str:
    """Return what other columns say about a test programme, or raise if it was not random."""
    mark, against = counted.options.random_accepts, counted.options.against
    same = "that everybody denied in a group had the same chance"
    if not against:
        return (
            f"Test programme {mark!r}: {same} is untested; random_accepts_against= "
            "(--random-accepts-against) names columns such as a score or a date to test it against."
        )
    tests: dict[tuple[str, str], float] = {}
    for column in against:
        values: dict[tuple[str, bool], list[Array]] = {}
        for kind, value, n in _by_value(counted, column):
            if not kind.approved:
                values.setdefault((kind.group, kind.random_accept), []).append(np.full(n, value))
        for group in counted.cells:
            accepted, others = (values.get((group, bit), [np.empty(0)]) for bit in (True, False))
            tests[column, group] = rank_test(np.concatenate(accepted), np.concatenate(others))
    (column, group), least = min(tests.items(), key=lambda item: item[1])
    if least < LEVEL / len(tests):
        raise BadData(
            f"column {mark!r} must mark people whom a test programme accepted at random: in group "
            f"{group!r} their {column!r} differs from that of the other denied (p = {least:.1g}). "
            "Mark only people drawn by lot; leave out programmes for near misses and overrides by "
            "judgement, or mark nobody"
        )
    return (
        f"Test programme {mark!r}: {same} was tested against {', '.join(against)}: no difference "
        f"found (least p = {least:.2g} of {len(tests)} tests)."
    )


def rank_test(accepted: Array, others: Array) -> float:
    """Return the p-value of Mann and Whitney's test, 1 if there is nothing to compare.

    Examples
    --------
    >>> few, many = np.repeat([1.0, 2.0], 5), np.arange(40.0)
    >>> round(rank_test(few, few), 2), rank_test(many, many + 40) < 1e-6, rank_test(few, few[:0])
    (1.0, True, 1.0)
    """
    from scipy.stats import mannwhitneyu

    if not (accepted.size and others.size):
        return 1.0
    found = mannwhitneyu(accepted, others, use_continuity=False, method="asymptotic")
    return float(np.nan_to_num(found.pvalue, nan=1.0))  # all values are the same
