"""Tables of any kind behind one door: a few questions in, a few rows out.

Files, frames and arrays are scanned in place by DuckDB; a database, Spark, polars' lazy frames and
ibis tables count in their own engine. Only the columns that are asked for are read, and nothing
but the answer is held in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from equipoise.errors import BadData, InvalidInput, UnknownName

__all__ = [
    "Block",
    "Condition",
    "Moment",
    "Reading",
    "Source",
    "require_columns",
]

Condition = Sequence[Mapping[str, Sequence[object]]]
"""Alternatives, one of which must hold: column -> the values one of which it must have.

None is among the values for a missing one.
"""

Moment = str | date | datetime


@dataclass(frozen=True)
class Block:
    """People who stand at one place of an order, and how many stand before them.

    ``people`` are those who are read, ``hits`` those of them who are looked for.
    """

    people_before: int
    hits_before: int
    people: int
    hits: int


class Source(Protocol):
    """A table that can be counted.

    Attributes
    ----------
    name
        What to call the table in a message.
    engine
        Where it is counted.
    ordered
        Whether rows have an order that is the same at every reading.
    once
        Whether the table can be read a single time.
    notes
        What was left out when it was opened.
    """

    name: str
    engine: str
    ordered: bool
    once: bool
    notes: tuple[str, ...]

    def count(self, columns: Sequence[str], first: int | None = None) -> list[tuple[Any, ...]]:
        """Return every combination of values with its number of rows, of the first rows only."""
        ...

    def numbers(self, where: Condition, most: int) -> list[int]:
        """Return the numbers of the first rows for which a condition holds, from 1."""
        ...

    def place(self, tau: int, read: Condition, hit: Condition) -> int:
        """Return how many of the rows to be read come until the tau-th hit, in table order."""
        ...

    def block(self, order_by: str, tau: int, read: Condition, hit: Condition) -> Block:
        """Return the people at the value of the ``order_by`` column that holds the tau-th hit."""
        ...

    def between(self, column: str, since: Moment | None, until: Moment | None) -> Source:
        """Return the rows with ``since <= column < until``."""
        ...


def require_columns(wanted: Sequence[str], present: Sequence[str]) -> None:
    """Raise unless all columns are there, each of them once."""
    for column in wanted:
        if column not in present:
            raise UnknownName("column", column, present)
        if present.count(column) > 1:
            raise BadData(
                f"column {column!r} must be there once; {present.count(column)} columns have that "
                "name: rename all but the one that is meant"
            )


class Reading:
    """Turn an engine's error into ours; its first line says what is wrong."""

    def __init__(self, name: str, kind: type[Exception] | tuple[type[Exception], ...]) -> None:
        self.name, self.kind = name, kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self.kind) and not isinstance(error, InvalidInput):
            first = str(error).strip().partition("\n")[0]
            raise BadData(f"cannot read {self.name}: {first or type(error).__name__}") from None
