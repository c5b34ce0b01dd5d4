"""A world read off a fully labelled table, by counting it where it is."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import BadData
from equipoise.history.counting import count_table
from equipoise.history.options import Meaning, ReadOptions
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
    options = ReadOptions(group, decision, outcome, positive, negative)
    counted = count_table(source, options, everybody=True)
    missing = sum(kind.count for kind in counted.kinds if kind.good is None)
    if missing:
        raise BadData(
            f"column {outcome!r} lacks the outcome of {missing:,} people; a world "
            "needs everybody's. For past decisions with unknown outcomes use 'check' or 'plan'"
        )
    counts: dict[str, dict[str, float]] = {}
    for kind in sorted(counted.kinds, key=lambda kind: kind.group):
        came_out = "positive" if kind.good else "negative"
        cell = f"{'approved' if kind.approved else 'denied'}_{came_out}"
        own = counts.setdefault(kind.group, dict.fromkeys(COUNT_NAMES, 0.0))
        own[cell] += kind.count
    if len(counts) < 2:
        raise BadData(
            f"column {', '.join(options.groups)!r} must hold at least two groups to compare"
        )
    return CellWorld.from_counts(counts)
