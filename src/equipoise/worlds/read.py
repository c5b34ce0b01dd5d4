"""A world read off a fully labelled table, by counting it where it is."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import BadData
from equipoise.history.counting import Columns, Counted, count_rows, is_one_of, name_of
from equipoise.history.source import TABLE, Source, identifier, open_source
from equipoise.history.yesno import MISSING, Positive, read_yes_no, require_positive
from equipoise.worlds.cells import CellWorld

__all__ = ["read_world"]


def read_world(
    source: object,
    *,
    group: str | Sequence[str],
    decision: str,
    outcome: str,
    positive: Positive = None,
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
    require_positive(positive)
    columns = Columns((group,) if isinstance(group, str) else tuple(group), decision, outcome)
    opened = open_source(source, columns.all)
    counted = count_rows(opened, columns, positive, ignore_denied_outcomes=True)
    good = _good_denied(opened, columns, counted, positive)
    return CellWorld.from_counts(
        {
            name: {
                "approved_positive": cells.approved_positive,
                "approved_negative": cells.approved_negative,
                "denied_positive": good.get(name, 0),
                "denied_negative": cells.denied - good.get(name, 0),
            }
            for name, cells in counted.cells.items()
        }
    )


def _good_denied(
    source: Source, columns: Columns, counted: Counted, positive: Positive
) -> dict[str, int]:
    """Return how many denied people of each group had outcome 1."""
    if not counted.decision.zeros:
        return {}
    names = ", ".join(identifier(name) for name in (*columns.groups, columns.outcome))
    texts = ", ".join(
        f"CAST({identifier(name)} AS VARCHAR)" for name in (*columns.groups, columns.outcome)
    )
    rows = source.fetch(
        f"SELECT {texts}, n FROM (SELECT {names}, COUNT(*) AS n FROM {TABLE} WHERE "
        f"{is_one_of(source, columns.decision, counted.decision.zeros)} GROUP BY {names}) AS denied"
    )
    missing = sum(n for *_, text, n in rows if text is None or text.strip() in MISSING)
    if missing:
        raise BadData(
            f"column {columns.outcome!r} lacks the outcome of {missing:,} denied people; a world "
            "needs everybody's. For past decisions with unknown outcomes use 'check' or 'plan'"
        )
    found = [text for *_, text, _ in rows] + list(counted.outcome.ones + counted.outcome.zeros)
    ones = read_yes_no("outcome", columns.outcome, found, positive).ones
    good: dict[str, int] = {}
    for *values, text, n in rows:
        if text in ones:
            name = name_of(values)
            good[name] = good.get(name, 0) + int(n)
    return good
