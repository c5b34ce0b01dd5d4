"""Whether a test programme accepted denied people at random, by other columns of the table.

A test programme that prefers near misses shows in scores, one that ran for a season in dates:
within each group the accepted and the other denied are compared by the ranks of a column's values
(Mann-Whitney, with ties).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from equipoise._arrays import Array
from equipoise.errors import BadData
from equipoise.history.dates import read_days
from equipoise.history.values import is_missing, text_of

if TYPE_CHECKING:
    from equipoise.history.counting import CountedTable

REFUSAL_LEVEL = 1e-3  # a programme that is random is refused once in a thousand files


def require_random(counted: CountedTable) -> str:
    """Return what other columns say about a test programme, or raise if it was not random."""
    mark, against = counted.options.random_accepts, counted.options.against
    same = "that everybody denied in a group had the same chance"
    if not against:
        return (
            f"Test programme {mark!r}: {same} is untested; random_accepts_against= "
            "(--random-accepts-against) names columns such as a score or a date to test it against."
        )
    own, tests = counted.options.columns, dict[tuple[str, str], float]()
    width, kinds = len(own), {tuple(kind.values.values()): kind for kind in counted.kinds}
    for column in against:
        columns = tuple(dict.fromkeys((*own, column)))
        values: dict[tuple[str, bool], list[Array]] = {}
        found = [(tuple(map(text_of, row)), int(row[-1])) for row in counted.table.count(columns)]
        place = columns.index(column)
        written = {texts[place] for texts, _ in found if not is_missing(texts[place])}
        numbers = _numbers(column, sorted(written))
        for texts, n in found:
            kind, number = kinds.get(texts[:width]), numbers.get(texts[place])
            if kind is not None and number is not None and not kind.approved:
                people = np.full(n, number)
                values.setdefault((kind.group, kind.random_accept), []).append(people)
        for group in counted.past.cells:
            accepted, others = (values.get((group, bit), [np.empty(0)]) for bit in (True, False))
            tests[column, group] = rank_test(np.concatenate(accepted), np.concatenate(others))
    (column, group), least = min(tests.items(), key=lambda item: item[1])
    if least < REFUSAL_LEVEL / len(tests):
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


def _numbers(column: str, found: Collection[str]) -> dict[str, float]:
    """Read numbers, or dates as such: as text 10 would come before 9."""
    numbers = {text: number for text in found if (number := _number(text)) is not None}
    if odd := [text for text in found if text not in numbers]:
        with suppress(BadData):  # a column of days, all written in another way
            return {
                t: float(d.toordinal())
                for t, d in read_days(column, dict.fromkeys(found, 1)).items()
            }
        raise BadData(
            f"column {column!r} must hold numbers, or dates such as '2024-01-31'; found "
            f"{odd[0]!r}; write numbers with a point and dates with the year first"
        )
    return numbers


def _number(text: str) -> float | None:
    with suppress(ValueError):
        if isfinite(number := float(text)):
            return number
    with suppress(ValueError):
        when = datetime.fromisoformat(text.strip())
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    return None


def rank_test(accepted: Array, others: Array) -> float:
    """Return the p-value of Mann and Whitney's test, 1 if there is nothing to compare."""
    from scipy.stats import mannwhitneyu

    if not (accepted.size and others.size):
        return 1.0
    found = mannwhitneyu(accepted, others, use_continuity=False, method="asymptotic")
    return float(np.nan_to_num(found.pvalue, nan=1.0))  # all values are the same
