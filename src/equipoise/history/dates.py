"""Which rows of a table lie in a period.

Dates of the engine's own type are compared by the engine. Text is cut by day: every way to write a
day is read once, and all of a column must be written in one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time

from equipoise.errors import BadData, InvalidInput
from equipoise.history.options import Moment, ReadOptions
from equipoise.history.tables import COMPARE, Day, Sign, Table
from equipoise.history.values import is_missing, rows, shown

__all__ = ["cut", "read_days"]

FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y")
MOST_DAYS = 100_000


def cut(table: Table, options: ReadOptions) -> Table:
    """Keep the rows with ``since <= date < until``."""
    column = options.date
    if column is None:
        return table
    signs: dict[str, Sign] = {"since": ">=", "until": "<"}
    moments = {name: _moment(name, getattr(options, name)) for name in signs}
    ends = {name: end for name, end in moments.items() if end is not None}
    least, without = table.least(column)
    if isinstance(least, date):
        _require_dates(column, without)
        for name, end in ends.items():
            table = table.where(column, signs[name], _like(least, end))
        return table
    for name, end in ends.items():
        if end.time() != time():
            raise InvalidInput(
                f"{name!r} must be a day, as column {column!r} holds text, which is cut by day; "
                f"got {getattr(options, name)!r}; give a column of the engine's own type for times"
            )
    found = {str(day): int(n) for day, n in table.count([Day(column)], MOST_DAYS)}
    blank = sum(n for day, n in found.items() if is_missing(day) and day != "None")
    _require_dates(column, without + blank)
    days = read_days(column, found)
    kept = [
        text
        for text, day in days.items()
        if all(COMPARE[signs[name]](day, end.date()) for name, end in ends.items())
    ]
    if not kept:
        raise BadData(
            f"column {column!r} holds no day of that period; its days are from "
            f"{min(days.values())} to {max(days.values())}"
        )
    return table.where(Day(column), "in", kept)


def read_days(column: str, found: Mapping[str, int]) -> dict[str, date]:
    """Return what each text means, in the one form that all of them have.

    Examples
    --------
    >>> read_days("day", {"01/02/2024": 1, "31/01/2024": 1})["01/02/2024"]
    datetime.date(2024, 2, 1)
    """
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
    most = [text for text in best if text not in odd]
    beside = f" beside {shown(most, 1)}" if most else ""
    raise BadData(
        f"column {column!r} must hold dates such as '2024-01-31', all written in one way, to be "
        f"cut by since and until; found {shown(odd, 3)} in {rows(sum(odd.values()))}{beside}; "
        "write all of them year first, or give a column of the engine's own type for dates"
    )


def _day(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text.strip().partition(" ")[0].partition("T")[0], form).date()
    except ValueError:
        return None


def _require_dates(column: str, without: int) -> None:
    if without:
        raise BadData(
            f"column {column!r} must hold a date such as '2024-01-31' in every row to be cut by "
            f"since and until; {without:,} rows have none; fill it in, year first"
        )


def _like(least: date, end: datetime) -> date:
    """Return an end of a period as a column compares it."""
    if not isinstance(least, datetime):
        if end.time() != time():
            raise InvalidInput(f"a period must end at a day where a column holds days; got {end}")
        return end.date()
    if least.tzinfo is None and end.tzinfo is not None:
        raise InvalidInput(
            f"a period must end without a time zone, as the column's dates have none; got {end}"
        )
    if least.tzinfo is not None and end.tzinfo is None:
        return end.replace(tzinfo=least.tzinfo)
    return end


def _moment(name: str, value: Moment | None) -> datetime | None:
    try:
        return None if value is None else datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidInput(f"{name!r} must be a date such as '2024-01-31'; got {value!r}") from None
