"""The ends of a period, written as a column of dates can compare them.

A column may hold dates as text. Text compares as the dates do if every value has the year first
and one separator before the time, and the end is written as short as can be: 12:00:00 as 12, which
is no later than any way to write that moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from equipoise.errors import BadData, InvalidInput
from equipoise.history.source import Moment

__all__ = ["MOST_FORMS", "UTC_OFFSET", "DateText", "moment", "read_date_texts", "require_dates"]

MOST_FORMS = 100_000  # days, times the ways to write a time: no real column has as many
UTC_OFFSET = "+00:00"
TIME = re.compile(r"([T ])99:99(:99(\.9+)?)?([ZU]?)")


@dataclass(frozen=True)
class DateText:
    """How a column of text writes moments; no separator if it has days only."""

    separator: str = ""
    utc: bool = False

    def write(self, name: str, when: datetime) -> str:
        """Return the shortest text that is no later than any way to write this moment.

        Examples
        --------
        >>> noon = datetime(2024, 6, 15, 12)
        >>> DateText(" ").write("since", noon), DateText().write("since", noon)
        ('2024-06-15 12', '2024-06-15')
        """
        if when.tzinfo is not None and not self.utc:
            raise InvalidInput(
                f"{name!r} must have no time zone, as the column's dates have none; "
                f"got {when.isoformat()!r}"
            )
        if when.tzinfo is not None:
            when = when.astimezone(UTC).replace(tzinfo=None)
        day, _, time = when.isoformat().partition("T")
        if "." in time:
            time = time.rstrip("0")
        while time.endswith(":00"):
            time = time.removesuffix(":00")
        return day if not self.separator or time == "00" else f"{day}{self.separator}{time}"


def read_date_texts(
    column: str, found: Sequence[tuple[str | None, str | None, str, int]]
) -> DateText:
    """Return how a column writes moments, or raise if its text does not compare as dates do.

    Parameters
    ----------
    found
        For each first ten characters and each form of the rest (digits as 9, UTC's offset as U) a
        value and the number of rows.

    Examples
    --------
    >>> read_date_texts("day", [("2024-06-15", "T99:99Z", "2024-06-15T13:00Z", 7)])
    DateText(separator='T', utc=True)
    """
    times: dict[str, str] = {}
    for day, rest, value, count in found:
        if not _is_day(day) or (rest and not TIME.fullmatch(rest)):
            raise BadData(
                f"column {column!r} must hold a date such as '2024-01-31' or '2024-01-31 13:00:00' "
                f"in every row to be cut by since and until, year first, with no time zone but "
                f"UTC; found {value!r} in {count:,} row{'s' if count > 1 else ''}; rewrite it, or "
                "give a column of the engine's own type for dates"
            )
        if rest:
            times[rest] = value
    separators, zones = ({form[0] for form in times}, {form[-1] in "ZU" for form in times})
    # Z comes after a colon and a point, so that 12:00Z would be later than 12:00:30.
    if len(separators) > 1 or len(zones) > 1 or ("Z" in {f[-1] for f in times} and len(times) > 1):
        some = " and ".join(repr(value) for value in list(times.values())[:2])
        raise BadData(
            f"column {column!r} must write all times in one way to be cut by since and until; "
            f"found {some}; rewrite them, or give a column of the engine's own type for dates"
        )
    return DateText("".join(separators), utc=True in zones)


def _is_day(text: str | None) -> bool:
    try:
        return text is not None and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def moment(
    name: str, value: Moment | None, like: object, text: DateText | None = None
) -> str | date | None:
    """Return an end of a period as a column that holds values ``like`` this can compare it.

    Examples
    --------
    >>> moment("since", "2024-01-31", date(2020, 1, 1))
    datetime.date(2024, 1, 31)
    >>> moment("since", "20240131", "2020-01-01", DateText())
    '2024-01-31'
    """
    if value is None:
        return None
    try:
        when = datetime.fromisoformat(value if isinstance(value, str) else value.isoformat())
    except (ValueError, AttributeError):
        raise InvalidInput(f"{name!r} must be a date such as '2024-01-31'; got {value!r}") from None
    if text is not None:
        return text.write(name, when)
    if isinstance(like, datetime):
        if like.tzinfo is not None and when.tzinfo is None:
            return when.replace(tzinfo=like.tzinfo)
        return when
    return when.date()


def require_dates(column: str, like: object, without: int) -> None:
    """Raise unless a column holds a date in every row; ``without`` counts those that lack one."""
    if not isinstance(like, str | date):
        raise BadData(
            f"column {column!r} must hold dates such as '2024-01-31' to be cut by since and "
            f"until; found {like!r}"
        )
    if without:
        raise BadData(
            f"column {column!r} must hold a date such as '2024-01-31' in every row to be cut by "
            f"since and until; {without:,} rows have none; fill it in, year first"
        )
