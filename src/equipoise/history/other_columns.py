"""Columns beside group, decision and outcome: dates, and whether a test programme was random.

Of a period the rows are cut by day: dates of the engine's own type are compared by the engine; of
text every way to write a day is read once, and all of a column must be written in one way.

A test programme that prefers near misses shows in scores, one that ran for a season in dates:
within each group the accepted and the other denied are compared by the ranks of a column's values
(Mann-Whitney, with ties).
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput
from equipoise.history.options import Moment, ReadOptions
from equipoise.history.tables import Day, Table
from equipoise.history.values import is_missing, rows, shown, text_of

if TYPE_CHECKING:
    from equipoise.history.counting import CountedTable

FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y")
SOME = 100  # rows that show of what type a column is
MOST_DAYS = 100_000
LEVEL = 1e-3  # a programme that is random is refused once in a thousand files


def cut(table: Table, options: ReadOptions) -> Table:
    """Keep the rows with ``since <= date < until``."""
    column = options.date
    if column is None:
        return table
    given = {operator.ge: _end("since", options.since), operator.lt: _end("until", options.until)}
    ends = {holds: end for holds, end in given.items() if end is not None}
    without, _ = table.missing_and_repeated(column)
    if without:
        raise BadData(
            f"column {column!r} must hold a date such as '2024-01-31' in every row to be cut by "
            f"since and until; {without:,} rows have none; fill it in, year first"
        )
    for value, _ in table.take([column], SOME).count([column])[:1]:
        if isinstance(value, date):
            for holds, day in ends.items():
                start = datetime.combine(day, time(), getattr(value, "tzinfo", None))
                table = table.where(column, holds, start if isinstance(value, datetime) else day)
            return table
    found = {str(day): int(n) for day, n in table.count([Day(column)], MOST_DAYS)}
    days = read_days(column, found)
    kept = [t for t, day in days.items() if all(holds(day, end) for holds, end in ends.items())]
    if not kept:
        raise BadData(
            f"column {column!r} holds no day of that period; its days are from "
            f"{min(days.values())} to {max(days.values())}"
        )
    return table.where(Day(column), None, kept)


def read_days(column: str, found: Mapping[str, int]) -> dict[str, date]:
    """Return what each text means, in the one form that all of them have."""
    read = {form: {text: _day(text, form) for text in found} for form in FORMS}
    whole = [days for days in read.values() if None not in days.values()]
    if len(whole) == 1:
        return {text: day for text, day in whole[0].items() if day is not None}
    if whole:
        raise BadData(
            f"column {column!r}: {shown(sorted(found), 2)} may have the day first or the month; "
            "write dates with the year first, as in '2024-01-31'"
        )
    best = max(read.values(), key=lambda days: sum(day is not None for day in days.values()))
    odd = {text: found[text] for text, day in best.items() if day is None}
    raise BadData(
        f"column {column!r} must hold dates such as '2024-01-31', all written in one way, to be "
        f"cut by since and until; found {shown(odd, 3)} in {rows(sum(odd.values()))}; write all of "
        "them year first, or give a column of the engine's own type for dates"
    )


def _day(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text.strip().partition(" ")[0].partition("T")[0], form).date()
    except ValueError:
        return None


def _end(name: str, value: Moment | None) -> date | None:
    if value is None:
        return None
    with suppress(ValueError):
        moment = datetime.fromisoformat(str(value))
        if moment.time() == time():
            return moment.date()
    raise InvalidInput(f"{name!r} must be a day such as '2024-01-31'; got {value!r}")


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
