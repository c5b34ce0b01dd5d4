"""Moments as text, in the one form in which ledgers and services store them."""

from __future__ import annotations

from datetime import UTC, datetime


def format_timestamp(moment: datetime) -> str:
    """Return a moment as text, in UTC with microseconds, so that text order is time order.

    Examples
    --------
    >>> format_timestamp(datetime(2026, 3, 1, 12, tzinfo=UTC))
    '2026-03-01T12:00:00.000000Z'
    """
    # The last six characters are the offset, +00:00.
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
