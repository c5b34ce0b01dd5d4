"""Tables that are counted by their own engine, so that no rows travel.

An engine is asked how many rows have each combination of values, after a filter. Narwhals asks
frames. SQL asks databases and DuckDB, which scans files where they are. (Narwhals could ask DuckDB
too. But DuckDB then writes complaints when the program ends, about types that narwhals keeps.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from uuid import uuid4

import duckdb
import narwhals as nw
import sqlalchemy as sql
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from sqlalchemy import ClauseElement, FromClause, Select, TextClause
from sqlalchemy.engine.default import DefaultDialect

from equipoise.database_url import hide_secrets
from equipoise.errors import BadData, InvalidInput
from equipoise.history.problems import UnreadTable
from equipoise.messages import Problem

Rows = list[tuple[Any, ...]]
Query: TypeAlias = Select[Any] | TextClause
Comparator = Callable[[Any, Any], Any]  # such as operator.lt
COUNT_COLUMN = "equipoise count of rows"  # no column is called so
PROBLEM_OF_ERROR = {
    "when sniffing": "csv-not-understood",
    "not utf-8": "not-utf8",
    "not latin-1": "not-latin1",
    "httpfs": "httpfs-missing",
}
"""Words in a complaint of DuckDB -> the problem, where its first line does not help."""


@dataclass(frozen=True)
class DayOf:
    """A column that is read as text, of which the first ten characters count: a day."""

    column: str


ColumnKey = str | DayOf
"""What rows are counted or chosen by: the values of a column, or their days."""


@dataclass(frozen=True)
class LazyTable:
    """A table that is asked by narwhals: lazy frames of polars, ibis, Spark, Dask."""

    name: str  # in messages
    engine: str  # where the rows are counted
    rows: nw.LazyFrame[Any]
    columns: Sequence[str]

    def count(self, columns: Sequence[ColumnKey], limit: int | None = None) -> Rows:
        """Return at most ``limit`` combinations of values, each with its number of rows."""
        keys = self.rows.select(*map(_expression, columns))
        counted = keys.group_by(*map(_column_name, columns)).agg(nw.len().alias(COUNT_COLUMN))
        return self._fetch(counted if limit is None else counted.head(limit))

    def missing_and_repeated(self, column: str) -> tuple[int, int]:
        """Return how many rows have no value in a column, and how many repeat another row's."""
        column_values = nw.col(column)
        answer = self.rows.select(
            nw.len().alias("rows"),
            column_values.count().alias("known"),
            column_values.n_unique().alias("different"),
        )
        ((n_rows, n_known, n_different),) = self._fetch(answer)
        n_missing = n_rows - n_known
        if n_missing:
            n_different -= 1  # n_unique counts a missing value as one more
        return int(n_missing), int(n_known - n_different)

    def where(self, column: str, compare: Comparator, value: Any) -> LazyTable:
        """Return the rows whose value in a column compares with ``value``, as operator.ge does."""
        return replace(self, rows=self.rows.filter(compare(nw.col(column), value)))

    def where_in(self, key: ColumnKey, values: Sequence[Any]) -> LazyTable:
        """Return the rows whose value in a column, or its day, is one of ``values``."""
        return replace(self, rows=self.rows.filter(_expression(key).is_in(values)))

    def take(self, columns: Sequence[str], limit: int | None = None) -> LazyTable:
        """Return columns of the first ``limit`` rows; without a limit, of all rows that differ."""
        rows = self.rows.select(*columns)
        rows = rows.unique() if limit is None else rows.head(limit)
        return replace(self, rows=rows, columns=columns)

    def _fetch(self, frame: nw.LazyFrame[Any]) -> Rows:
        with warnings.catch_warnings(), as_bad_data(self.name):
            warnings.simplefilter("ignore")  # what an engine thinks of its own packages
            return [tuple(row) for row in frame.collect().rows()]


@dataclass(frozen=True)
class SqlTable:
    """A table that is asked in SQL, of DuckDB or a database, with the methods of LazyTable."""

    name: str
    engine: str
    rows: FromClause
    columns: Sequence[str]
    run: Callable[[Query], Rows]  # sends a query, returns the rows of its answer

    def count(self, columns: Sequence[ColumnKey], limit: int | None = None) -> Rows:
        """Return at most ``limit`` combinations of values, each with its number of rows."""
        keys = [_column(key) for key in columns]
        query = sql.select(*keys, sql.func.count()).select_from(self.rows).group_by(*keys)
        return self.run(query if limit is None else query.limit(limit))

    def missing_and_repeated(self, column: str) -> tuple[int, int]:
        """Return how many rows have no value in a column, and how many repeat another row's."""
        column_values = _column(column)
        count = sql.func.count
        n_known = count(column_values)
        # count(column) leaves out missing values, and so does count(DISTINCT column).
        sums = sql.select(count() - n_known, n_known - count(sql.distinct(column_values)))
        ((n_missing, n_repeated),) = self.run(sums.select_from(self.rows))
        return int(n_missing), int(n_repeated)

    def where(self, column: str, compare: Comparator, value: Any) -> SqlTable:
        """Return the rows whose value in a column compares with ``value``, as operator.ge does."""
        return self._filter(compare(_column(column), value))

    def where_in(self, key: ColumnKey, values: Sequence[Any]) -> SqlTable:
        """Return the rows whose value in a column, or its day, is one of ``values``."""
        return self._filter(_column(key).in_(values))

    def take(self, columns: Sequence[str], limit: int | None = None) -> SqlTable:
        """Return columns of the first ``limit`` rows; without a limit, of all rows that differ."""
        rows = self._select(columns)
        rows = rows.distinct() if limit is None else rows.limit(limit)
        # A subquery, so that whatever is asked next is asked of these rows.
        return replace(self, rows=rows.subquery(), columns=columns)

    def _filter(self, condition: Any) -> SqlTable:
        rows = self._select(self.columns).where(condition)
        return replace(self, rows=rows.subquery())

    def _select(self, columns: Sequence[str]) -> Select[Any]:
        return sql.select(*map(_column, dict.fromkeys(columns))).select_from(self.rows)


Table = LazyTable | SqlTable


shared_connection: ContextVar[DuckDBPyConnection | None] = ContextVar("shared", default=None)
"""The connection of tables that will be joined; None for tables that are read alone."""


def duckdb_table(name: str, rows: DuckDBPyRelation) -> SqlTable:
    """Return a DuckDB relation, which may scan files, frames or arrays, as a table."""
    table_name = "rows that equipoise counts"  # no table is called so
    # Readings of one process share an engine, so that each view in it needs a name of its own.
    is_shared = shared_connection.get() is not None
    if is_shared:
        table_name += f" {uuid4().hex}"
    with as_bad_data(name):  # its connection may be closed
        zoned_columns = []
        for column, column_type in zip(rows.columns, rows.types, strict=True):
            if str(column_type) == "TIMESTAMP WITH TIME ZONE":
                zoned_columns.append(column)
        if zoned_columns:  # DuckDB would hand out none of them without pytz
            without_zone = (
                duckdb.ColumnExpression(column).cast("TIMESTAMP").alias(column)
                for column in zoned_columns
            )
            rows = rows.select(duckdb.StarExpression(exclude=zoned_columns), *without_zone)
        if is_shared:
            rows.create_view(table_name)  # so that a query to another table can name it

    def run(query: Query) -> Rows:
        with as_bad_data(name):
            answer = rows.query(table_name, duckdb_text(query))
            return [] if answer is None else answer.fetchall()

    return SqlTable(name, "DuckDB", sql.table(table_name), rows.columns, run)


@contextmanager
def as_bad_data(name: str, secret_of: str = "") -> Iterator[None]:
    """Raise an engine's error as :class:`BadData` about the table of this name.

    ``secret_of`` is the address of a database whose password must not be in the message.
    """
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        error_text = hide_secrets(str(error).strip(), secret_of) or type(error).__name__
        # By words of the message: the type of an error says less.
        for phrase, code in PROBLEM_OF_ERROR.items():
            if phrase in error_text:
                raise UnreadTable(Problem(code, {"table": name})) from None
        raise BadData(f"cannot read {name}: {error_text.splitlines()[0]}") from None


def require_once(used_columns: Sequence[str], present_columns: Sequence[str]) -> None:
    """Raise if a wanted column is there more than once."""
    for column in used_columns:
        if present_columns.count(column) > 1:
            raise BadData(
                f"column {column!r} must be there once; {present_columns.count(column)} columns "
                "have that name: rename all but the one that is meant"
            )


def duckdb_text(clause: ClauseElement) -> str:
    """Return a query, or a part of one, as DuckDB reads it."""
    # Values are written into the text, since the query of a relation takes no parameters.
    dialect = DefaultDialect(paramstyle="named")
    return str(clause.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def _column_name(key: ColumnKey) -> str:
    return key.column if isinstance(key, DayOf) else key


def quoted_column(name: str) -> Any:
    """Return a column for SQL, by its exact name."""
    return _column(name)


def _column(key: ColumnKey) -> Any:
    """Return a column, or its days, for SQL."""
    # Quoted: SQL would fold the case of a bare name, and read "order" as a word of its own.
    column = sql.column(sql.quoted_name(_column_name(key), True))
    if not isinstance(key, DayOf):
        return column
    # The first ten characters are the day of 2024-01-31 09:00, however long the text is.
    # Written into the query: a parameter cannot be part of a GROUP BY key.
    start = sql.literal_column("1")
    length = sql.literal_column("10")
    return sql.func.substr(sql.cast(column, sql.String), start, length)


def _expression(key: ColumnKey) -> nw.Expr:
    """Return a column, or its days, for narwhals."""
    column_values = nw.col(_column_name(key))
    if not isinstance(key, DayOf):
        return column_values
    return column_values.cast(nw.String).str.slice(0, 10)
