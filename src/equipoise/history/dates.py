"""Periods cut out of a table by its column of dates, and texts read as days.

Rows are cut by day. Dates of the engine's own type are compared by the engine. Of text every way to
write a day is tried once, and all texts of a column must be written in one way.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time

from equipoise.errors import InvalidInput
from equipoise.history.options import Moment, ReadOptions
from equipoise.history.problems import UnreadTable
from equipoise.history.tables import DayOf, Table
from equipoise.messages import Problem

DAY_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y")
TYPE_SAMPLE_ROWS = 100  # rows that show of what type a column is
MAX_DAYS = 100_000


Days = tuple[date, date]
"""The first and the last day of some rows."""


def cut_period(table: Table, options: ReadOptions) -> tuple[Table, Days | None]:
    """Return the rows with ``since <= date < until``, and their first and last day.

    Without a column of dates these are all rows, and no days.

    Raises
    ------
    InvalidInput
        If ``since`` or ``until`` is not a day.
    UnreadTable
        If the column does not hold a date in every row, or no day of the period.
    """
    column = options.date
    if column is None:
        return table, None
    since = _read_end("since", options.since)
    until = _read_end("until", options.until)
    n_missing, _ = table.missing_and_repeated(column)
    # A row without a date is neither inside the period nor outside it.
    if n_missing:
        raise UnreadTable(Problem("date-missing", {"column": column, "rows": n_missing}))
    # No value is missing here, so any one shows of what type the column is.
    sample = table.take([column], TYPE_SAMPLE_ROWS).count([column])
    if sample and isinstance(sample[0][0], date):
        return _cut_dates(table, column, sample[0][0], since, until)
    return _cut_texts(table, column, since, until)


def _cut_dates(
    table: Table, column: str, example: date, since: date | None, until: date | None
) -> tuple[Table, Days | None]:
    """Cut a column of the engine's own dates; no days if no row is left."""
    table = _cut_by_engine(table, column, example, since, until)
    days = []
    for text, _ in table.count([DayOf(column)], MAX_DAYS):
        # An engine writes its own dates with the year first.
        day = _read_day(str(text), DAY_FORMATS[0])
        if day is not None:
            days.append(day)
    return table, (min(days), max(days)) if days else None


def _cut_texts(
    table: Table, column: str, since: date | None, until: date | None
) -> tuple[Table, Days]:
    """Cut a column of texts, each of which is read as a day here and chosen by its spelling."""
    counted_days = table.count([DayOf(column)], MAX_DAYS)
    row_counts = {str(text): int(count) for text, count in counted_days}
    days = read_days(column, row_counts)
    texts_of_period = [text for text, day in days.items() if _is_inside(day, since, until)]
    if not texts_of_period:  # most likely a mistyped year: show which days there are
        days_present = days.values()
        fields = {"column": column, "first": str(min(days_present)), "last": str(max(days_present))}
        raise UnreadTable(Problem("period-empty", fields))
    days_inside = [days[text] for text in texts_of_period]
    return table.where_in(DayOf(column), texts_of_period), (min(days_inside), max(days_inside))


def _is_inside(day: date, since: date | None, until: date | None) -> bool:
    """Whether a day lies in a period; None for an end that is open."""
    is_before = since is not None and day < since
    is_after = until is not None and day >= until
    return not (is_before or is_after)


def _cut_by_engine(
    table: Table, column: str, example: date, since: date | None, until: date | None
) -> Table:
    """Let the engine compare dates, or moments with the time zone of an example of them."""

    # Some engines refuse to compare a moment that has a time zone with one that has none.
    def start_of(day: date) -> date:
        if not isinstance(example, datetime):
            return day
        return datetime.combine(day, time(), example.tzinfo)

    if since is not None:
        table = table.where(column, operator.ge, start_of(since))
    if until is not None:
        table = table.where(column, operator.lt, start_of(until))
    return table


def read_days(column: str, row_counts: Mapping[str, int]) -> dict[str, date]:
    """Return the day that each text means, in the one format that all of them have.

    ``row_counts`` are the texts of a column with their numbers of rows.

    Raises
    ------
    UnreadTable
        If no format fits all texts, or if several formats do.
    """
    fitting_formats = []
    unreadable_by_format = []
    for day_format in DAY_FORMATS:
        unreadable = [text for text in row_counts if _read_day(text, day_format) is None]
        unreadable_by_format.append(unreadable)
        if not unreadable:
            fitting_formats.append(day_format)
    if len(fitting_formats) > 1:  # 01/02/2024 is a day in January, or in February
        fields = {"column": column, "examples": sorted(row_counts)}
        raise UnreadTable(Problem("day-or-month-first", fields))
    if not fitting_formats:
        # The format that most texts have is the one that was meant; the others are the mistake.
        odd = min(unreadable_by_format, key=len)
        n_rows = sum(row_counts[text] for text in odd)
        raise UnreadTable(Problem("not-dates", {"column": column, "odd": odd, "rows": n_rows}))
    days = {}
    for text in row_counts:
        day = _read_day(text, fitting_formats[0])
        assert day is not None
        days[text] = day
    return days


def _read_day(text: str, day_format: str) -> date | None:
    """Return the day of a text, without the time that may follow it; None if it is no day."""
    # A moment is written with a blank or a T before the time of day, as in 2024-01-31T09:00.
    day_text = text.strip().partition(" ")[0].partition("T")[0]
    try:
        return datetime.strptime(day_text, day_format).date()
    except ValueError:
        return None


def _read_end(argument: str, moment: Moment | None) -> date | None:
    """Return the day at which a period begins or ends."""
    if moment is None:
        return None
    with suppress(ValueError):
        start = datetime.fromisoformat(str(moment))
        # Rows are cut by day, so a time of day would be ignored without a word.
        if start.time() == time():
            return start.date()
    raise InvalidInput(f"{argument!r} must be a day such as '2024-01-31'; got {moment!r}")
