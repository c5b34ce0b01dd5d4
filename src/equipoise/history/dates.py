"""Periods cut out of a table by its column of dates, and texts read as days.

Rows are cut by day: dates of the engine's own type are compared by the engine; of text every way to
write a day is read once, and all of a column must be written in one way.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time

from equipoise.errors import BadData, InvalidInput
from equipoise.history.options import Moment, ReadOptions
from equipoise.history.tables import Day, Table
from equipoise.history.values import list_values, rows_text

DAY_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y")
TYPE_SAMPLE_ROWS = 100  # rows that show of what type a column is
MAX_DAYS = 100_000


def cut_period(table: Table, options: ReadOptions) -> Table:
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
    for value, _ in table.take([column], TYPE_SAMPLE_ROWS).count([column])[:1]:
        if isinstance(value, date):
            for holds, day in ends.items():
                start = datetime.combine(day, time(), getattr(value, "tzinfo", None))
                table = table.where(column, holds, start if isinstance(value, datetime) else day)
            return table
    found = {str(day): int(n) for day, n in table.count([Day(column)], MAX_DAYS)}
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
    read = {form: {text: _day(text, form) for text in found} for form in DAY_FORMATS}
    whole = [days for days in read.values() if None not in days.values()]
    if len(whole) == 1:
        return {text: day for text, day in whole[0].items() if day is not None}
    if whole:
        raise BadData(
            f"column {column!r}: {list_values(sorted(found), 2)} may have the day first or the "
            "month; write dates with the year first, as in '2024-01-31'"
        )
    best = max(read.values(), key=lambda days: sum(day is not None for day in days.values()))
    odd = {text: found[text] for text, day in best.items() if day is None}
    raise BadData(
        f"column {column!r} must hold dates such as '2024-01-31', all written in one way, to be "
        f"cut by since and until; found {list_values(odd, 3)} in {rows_text(sum(odd.values()))}; "
        "write all of them year first, or give a column of the engine's own type for dates"
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
