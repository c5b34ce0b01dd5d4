"""Columns beside group, decision and outcome: scores, and what shows whether a test was random.

A model's score is there for the denied too, though no outcome is; what it will do for an audit
depends on both. A test programme that prefers near misses shows in scores, one that ran for a
season in dates: within each group the accepted and the other denied are compared by the ranks of a
column's values (Mann-Whitney, with ties), from counts alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import BadData
from equipoise.history.values import is_missing, shown, text_of

if TYPE_CHECKING:
    from equipoise.history.counting import CountedTable, Kind

__all__ = ["Scores", "rank_test", "read_scores", "require_random"]

Array = NDArray[np.float64]

ENOUGH = 200_000  # rows whose scores are read at most
LEVEL = 1e-3  # a programme that is random is refused once in a thousand files
MOST_VALUES = 100_000

Tally = Mapping[Any, tuple[int, int]]
"""Value -> how many accepted and other denied people have it."""


def _by_value(
    counted: CountedTable, column: str, most_rows: int | None = None
) -> list[tuple[Kind, Any, int]]:
    """Return the kinds of rows split by the values of one more column, with numbers of rows."""
    columns = counted.options.columns
    if column in columns:
        found = [(kind, kind.values[column], kind.count) for kind in counted.kinds]
    else:
        columns = (*columns, column)
        table = counted.table if most_rows is None else counted.table.take(columns, most_rows)
        kinds = {tuple(kind.values.values()): kind for kind in counted.kinds}
        found = [
            (kinds[texts], value, int(n))
            for *values, value, n in table.count(columns)
            if (texts := tuple(map(text_of, values))) in kinds
        ]
    return [(kind, value, n) for kind, value, n in found if not is_missing(value)]


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
    found: dict[str, list[tuple[float, int, int, int]]] = {group: [] for group in counted.cells}
    for kind, value, n in _by_value(counted, column, ENOUGH):
        bit = counted.coding.outcome.bit(kind.outcome) if kind.labelled else None
        outcome = -1 if bit is None else bit
        found[kind.group].append((_score(column, value), kind.approved, outcome, n))
    return {group: _scores(own) for group, own in found.items()}


def _scores(rows: list[tuple[float, int, int, int]]) -> Scores:
    table = np.array(sorted(rows, key=lambda row: row[2]), dtype=np.float64).reshape(-1, 4)
    score, approved, outcome = np.repeat(table[:, :3], table[:, 3].astype(np.intp), axis=0).T
    seen, labelled = ((outcome >= 0) & (approved == bit) for bit in (1, 0))
    known = score[seen], outcome[seen]
    return Scores(*known, score[approved == 0], score[labelled], outcome[labelled])


def _score(column: str, value: object) -> float:
    number = np.nan
    with suppress(ValueError):
        number = float(str(value))
    if not np.isfinite(number):
        raise BadData(f"column {column!r} must hold numbers to be a score; found {value!r}")
    return number


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
    tests = {
        (column, group): rank_test(tally)
        for column in against
        for group, tally in _tallies(counted, column).items()
    }
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


def rank_test(tally: Tally) -> float:
    """Return the p-value of Mann and Whitney's test from counts, 1 if there is nothing to compare.

    Examples
    --------
    >>> round(rank_test({1: (5, 5), 2: (5, 5)}), 2), rank_test({1: (40, 0), 2: (0, 40)}) < 1e-6
    (1.0, True)
    """
    from scipy.stats import mannwhitneyu

    counts = np.array([tally[value] for value in sorted(tally)], dtype=np.intp).reshape(-1, 2)
    if len(counts) < 2 or not counts.sum(axis=0).all():
        return 1.0
    accepted, others = (np.repeat(np.arange(float(len(counts))), own) for own in counts.T)
    found = mannwhitneyu(accepted, others, use_continuity=False, method="asymptotic")
    return float(found.pvalue)


def _tallies(counted: CountedTable, column: str) -> dict[str, Tally]:
    """Return, per group, how many accepted and other denied people have each value."""
    denied = [
        (kind.group, kind.random_accept, value, n)
        for kind, value, n in _by_value(counted, column)
        if not kind.approved
    ]
    if len({value for _, _, value, _ in denied}) > MOST_VALUES:
        raise BadData(
            f"column {column!r} has more than {MOST_VALUES:,} different values, too many to test a "
            "programme against; round it"
        )
    sizes = _sizes(column, {value for _, _, value, _ in denied})
    found: dict[str, dict[Any, Counter[bool]]] = {}
    for group, accepted, value, n in denied:
        found.setdefault(group, {}).setdefault(sizes[value], Counter())[accepted] += n
    return {
        group: {size: (n[True], n[False]) for size, n in counts.items()}
        for group, counts in found.items()
    }


def _sizes(column: str, values: Iterable[Any]) -> Mapping[Any, float | datetime]:
    """Read numbers as numbers and dates as dates: as text 10 would come before 9."""
    values = sorted(values, key=str)
    numbers, dates = dict[Any, float](), dict[Any, datetime]()
    for value in values:
        with suppress(TypeError, ValueError):
            numbers[value] = float(value)
        with suppress(ValueError):
            when = datetime.fromisoformat(str(value).strip())
            dates[value] = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    for sizes in (numbers, dates):
        if len(sizes) == len(values):
            return sizes
    odd = [value for value in values if value not in numbers and value not in dates]
    raise BadData(
        f"column {column!r} must hold numbers, or dates such as '2024-01-31', for a test programme "
        f"to be tested against it; found {shown(map(str, odd or values), 2)}; write numbers with a "
        "point and dates with the year first"
    )
