"""Tables that DuckDB scans where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput
from equipoise.history.dates import (
    MOST_FORMS,
    UTC_OFFSET,
    DateText,
    moment,
    read_date_texts,
    require_dates,
)
from equipoise.history.source import (
    Block,
    Condition,
    Moment,
    Reading,
    require_columns,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["DuckSource", "connect", "identifier"]

TABLE = "equipoise_past"


def connect(path: str = ":memory:", *, read_only: bool = False) -> DuckDBPyConnection:
    """Return a connection that keeps quiet and fetches nothing from the network by itself."""
    import duckdb

    connection = duckdb.connect(path, read_only=read_only)
    # A bar would be written among our answers. In a notebook without ipywidgets there is none, and
    # DuckDB refuses to switch it off.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET autoinstall_known_extensions = false")
    return connection


class DuckSource:
    """A relation, made anew for every question: a frame or a file may be scanned many times."""

    engine = "DuckDB"

    def __init__(
        self,
        name: str,
        relation: Callable[[], DuckDBPyRelation],
        columns: Sequence[str],
        *,
        ordered: bool = True,
        once: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        import duckdb

        self.name, self.ordered, self.once = name, ordered and not once, once
        self.notes = tuple(notes)
        self._relation = relation
        self._error = duckdb.Error
        if not once:
            with Reading(name, duckdb.Error):
                require_columns(columns, relation().columns)

    def count(self, columns: Sequence[str], first: int | None = None) -> list[tuple[Any, ...]]:
        """Return every combination of values with its number of rows."""
        names = ", ".join(identifier(column) for column in columns)
        table = TABLE if first is None else f"(SELECT {names} FROM {TABLE} LIMIT {first}) AS head"
        return self._fetch(f"SELECT {names}, COUNT(*) FROM {table} GROUP BY {names}")

    def numbers(self, where: Condition, most: int) -> list[int]:
        """Return the numbers of the first rows for which a condition holds."""
        # Names are given outside, where they cannot be taken for columns of the table.
        rows = self._fetch(
            f"SELECT number FROM (SELECT ROW_NUMBER() OVER (), {_sql(where)} FROM {TABLE}) "
            f"AS numbered(number, is_hit) WHERE is_hit LIMIT {most}"
        )
        return [int(number) for (number,) in rows]

    def place(self, tau: int, read: Condition, hit: Condition) -> int:
        """Return how many of the rows to be read come until the tau-th hit.

        Number the rows as they stream by, keep the hits, take the tau-th. Nothing is sorted or
        held, and the scan ends there; ``python -m bench history`` compares other ways.
        """
        ((place,),) = self._fetch(
            f"SELECT number FROM (SELECT ROW_NUMBER() OVER (), {_sql(hit)} FROM {TABLE} "
            f"WHERE {_sql(read)}) AS numbered(number, is_hit) WHERE is_hit "
            f"LIMIT 1 OFFSET {tau - 1}"
        )
        return int(place)

    def block(self, order_by: str, tau: int, read: Condition, hit: Condition) -> Block:
        """Return the people at the value of the order that holds the tau-th hit."""
        at = identifier(order_by)
        # Numbers in a CSV file are text, where 10 would come before 9.
        by = "TRY_CAST(CAST(place AS VARCHAR) AS DOUBLE) NULLS LAST, place NULLS LAST"
        ((people_before, hits_before, people, hits),) = self._fetch(
            f"""
            WITH places(place, people, hits) AS (
                SELECT {at}, COUNT(*) FILTER (WHERE {_sql(read)}),
                       COUNT(*) FILTER (WHERE {_sql(hit)})
                FROM {TABLE} GROUP BY {at}
            ), sums AS (
                SELECT people, hits, SUM(people) OVER (ORDER BY {by}) AS people_until,
                       SUM(hits) OVER (ORDER BY {by}) AS hits_until FROM places
            )
            SELECT people_until - people, hits_until - hits, people, hits FROM sums
            WHERE hits_until >= {tau} AND hits_until - hits < {tau}
            """
        )
        return Block(int(people_before), int(hits_before), int(people), int(hits))

    def between(self, column: str, since: Moment | None, until: Moment | None) -> DuckSource:
        """Return the rows of a period."""
        if self.once:
            raise InvalidInput(f"{self.name} can be read once only: cut it before")
        require_columns([column], self._relation().columns)
        at = identifier(column)
        ((like, without),) = self._fetch(
            f"SELECT ANY_VALUE({at}), SUM(CAST({at} IS NULL AS INT)) FROM {TABLE}"
        )
        require_dates(column, like, int(without or 0))
        text = self._date_texts(column) if isinstance(like, str) else None
        ends = (
            (">=", moment("since", since, like, text)),
            ("<", moment("until", until, like, text)),
        )
        rule = " AND ".join(f"{at} {sign} {_literal(end)}" for sign, end in ends if end is not None)
        return DuckSource(
            self.name,
            lambda: self._relation().filter(rule),
            [column],
            ordered=self.ordered,
            notes=self.notes,
        )

    def _date_texts(self, column: str) -> DateText:
        at = identifier(column)
        rest = f"REPLACE(SUBSTR({at}, 11), '{UTC_OFFSET}', 'U')"
        found = self._fetch(
            f"SELECT SUBSTR({at}, 1, 10), REGEXP_REPLACE({rest}, '[0-9]', '9', 'g'), MIN({at}), "
            f"COUNT(*) FROM {TABLE} GROUP BY 1, 2 LIMIT {MOST_FORMS}"
        )
        return read_date_texts(column, found)

    def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        with Reading(self.name, self._error):
            answer = self._relation().query(TABLE, sql)
            return [] if answer is None else answer.fetchall()


def identifier(name: str) -> str:
    """Return a column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    # DuckDB turns the text into the column's type, once.
    return "'" + str(value).replace("'", "''") + "'"


def _sql(condition: Condition) -> str:
    return f"({' OR '.join(_sql_of(values) for values in condition) or 'FALSE'})"


def _sql_of(wanted: Mapping[str, Sequence[object]]) -> str:
    parts = []
    for column, values in wanted.items():
        name = identifier(column)
        known = ", ".join(_literal(value) for value in values if value is not None)
        tests = [f"{name} IN ({known})"] if known else []
        if None in values:
            tests.append(f"{name} IS NULL")
        parts.append(f"({' OR '.join(tests) or 'FALSE'})")
    return " AND ".join(parts) or "TRUE"
