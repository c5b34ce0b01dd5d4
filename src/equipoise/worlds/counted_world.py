"""A world read off a fully labelled table, by counting it where it is."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import BadData
from equipoise.history.coding import Columns
from equipoise.history.counting import tally
from equipoise.history.opening import open_source
from equipoise.history.row_kinds import Said
from equipoise.history.values import Meaning, is_missing
from equipoise.worlds.cells import COUNT_NAMES, CellWorld

__all__ = ["read_world"]


def read_world(
    source: object,
    *,
    group: str | Sequence[str],
    decision: str,
    outcome: str,
    positive: Meaning = None,
    negative: Meaning = None,
) -> CellWorld:
    """Return the world of a table in which the outcome of everybody, denied or not, is known.

    Parameters are those of :meth:`equipoise.History.read`; nothing but counts is read.

    Examples
    --------
    >>> import numpy as np
    >>> table = {"sex": np.array(["f", "f", "f", "m", "m"]), "hired": np.array([1, 0, 0, 1, 0]),
    ...          "good": np.array([1, 1, 0, 1, 1])}
    >>> read_world(table, group="sex", decision="hired", outcome="good").r
    {'f': 0.5, 'm': 1.0}
    """
    columns = Columns((group,) if isinstance(group, str) else tuple(group), decision, outcome)
    opened = open_source(source, columns.all)
    rows, coding, _ = tally(opened, columns, Said(positive, negative), lambda row: True)
    missing = sum(row.count for row in rows if is_missing(row.outcome))
    if missing:
        raise BadData(
            f"column {columns.outcome!r} lacks the outcome of {missing:,} people; a world "
            "needs everybody's. For past decisions with unknown outcomes use 'check' or 'plan'"
        )
    counts: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: row.name):
        good = coding.outcome.bit(row.outcome) == 1
        cell = f"{'approved' if row.bit else 'denied'}_{'positive' if good else 'negative'}"
        own = counts.setdefault(row.name, dict.fromkeys(COUNT_NAMES, 0.0))
        own[cell] += row.count
    if len(counts) < 2:
        raise BadData(
            f"column {', '.join(columns.groups)!r} must hold at least two groups to compare"
        )
    return CellWorld.from_counts(counts)
