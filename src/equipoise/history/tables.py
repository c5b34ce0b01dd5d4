"""A table is asked where it is, and nothing but the answer travels.

It is asked how many rows have each combination of values, after a filter. Narwhals asks frames; SQL
asks databases and DuckDB, which scans files where they are. (Narwhals could ask DuckDB too, but
DuckDB then writes complaints when the program ends, about types that narwhals keeps, where numpy is
there as well.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import narwhals as nw
import sqlalchemy as sql
from duckdb import DuckDBPyRelation
from sqlalchemy import ClauseElement, FromClause, Select
from sqlalchemy.engine.default import DefaultDialect

from equipoise.database_url import hide_secrets
from equipoise.errors import BadData, InvalidInput

Rows = list[tuple[Any, ...]]
Compares = Callable[[Any, Any], Any]
COUNT_COLUMN = "equipoise count of rows"  # no column is called so
ERROR_HINTS = {  # where the first line of DuckDB's complaint does not help
    "when sniffing": "a CSV file must have one separator and one kind of line end, and a cell that "
    'begins with a quote must end with one, those within it doubled: """so-called"" bank"; '
    "of a file in UTF-16 say so: encoding='utf-16' (--encoding utf-16)",
    "not utf-8": "it is not UTF-8; encoding='latin-1' or 'utf-16' (--encoding) may read it; else "
    "write it as UTF-8 first, as by iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW",
    "not latin-1": "it is not latin-1; write it as UTF-8 first, as by "
    "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW",
    "httpfs": "DuckDB reads addresses of files with its extension httpfs, which is not installed; "
    "duckdb.sql('INSTALL httpfs') fetches it once; or copy the file here",
}


class Day(str):
    """A column that is read as text, of which the first ten characters count: a day."""


@dataclass(frozen=True)
class LazyTable:
    """A table that is asked by narwhals: lazy frames of polars, ibis, Spark, Dask."""

    name: str  # in messages
    engine: str  # where the rows are counted
    rows: nw.LazyFrame[Any]
    columns: Sequence[str]

    def count(self, by: Sequence[str], limit: int | None = None) -> Rows:
        """Return combinations of values with their numbers of rows, at most so many."""
        keys = map(_expression, by)
        counted = self.rows.select(*keys).group_by(*by).agg(nw.len().alias(COUNT_COLUMN))
        return self._fetch(counted if limit is None else counted.head(limit))

    def missing_and_repeated(self, column: str) -> tuple[int, int]:
        """Return how many rows have no value in a column, and how many repeat another row's."""
        column_values = nw.col(column)
        sums = (
            nw.len().alias("rows"),
            column_values.count().alias("known"),
            column_values.n_unique().alias("different"),
        )
        ((n_rows, n_known, n_different),) = self._fetch(self.rows.select(*sums))
        return int(n_rows - n_known), int(
            n_known - n_different + (n_rows > n_known)
        )  # none is one more

    def where(self, column: str, compares: Compares | None, value: Any) -> LazyTable:
        """Return the rows with ``holds(own value, value)``; None: whose own is one of ``value``."""
        column_values = _expression(column)
        condition = (
            column_values.is_in(value) if compares is None else compares(column_values, value)
        )
        return replace(self, rows=self.rows.filter(condition))

    def take(self, columns: Sequence[str], limit: int | None = None) -> LazyTable:
        """Return columns of at most so many rows; without a limit, of all rows that differ."""
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
    run: Callable[[Select[Any]], Rows]  # sends a query, returns the rows of its answer

    def count(self, by: Sequence[str], limit: int | None = None) -> Rows:
        """Return combinations of values with their numbers of rows, at most so many."""
        keys = [_column(name) for name in by]
        query = sql.select(*keys, sql.func.count()).select_from(self.rows).group_by(*keys)
        return self.run(query if limit is None else query.limit(limit))

    def missing_and_repeated(self, column: str) -> tuple[int, int]:
        """Return how many rows have no value in a column, and how many repeat another row's."""
        column_values, count = _column(column), sql.func.count
        sums = (
            count() - count(column_values),
            count(column_values) - count(sql.distinct(column_values)),
        )
        ((n_missing, n_repeated),) = self.run(sql.select(*sums).select_from(self.rows))
        return int(n_missing), int(n_repeated)

    def where(self, column: str, compares: Compares | None, value: Any) -> SqlTable:
        """Return the rows with ``holds(own value, value)``; None: whose own is one of ``value``."""
        column_values = _column(column)
        condition = column_values.in_(value) if compares is None else compares(column_values, value)
        return replace(self, rows=self._select(self.columns).where(condition).subquery())

    def take(self, columns: Sequence[str], limit: int | None = None) -> SqlTable:
        """Return columns of at most so many rows; without a limit, of all rows that differ."""
        rows = self._select(columns)
        rows = rows.distinct() if limit is None else rows.limit(limit)
        return replace(self, rows=rows.subquery(), columns=columns)

    def _select(self, columns: Sequence[str]) -> Select[Any]:
        return sql.select(*map(_column, dict.fromkeys(columns))).select_from(self.rows)


Table = LazyTable | SqlTable


def duckdb_table(name: str, rows: DuckDBPyRelation) -> SqlTable:
    """Return a DuckDB relation, which may scan files, frames or arrays, as a table."""
    table_name = "rows that equipoise counts"  # no table is called so
    with as_bad_data(name):  # its connection may be closed
        types = zip(rows.columns, rows.types, strict=True)
        zoned_columns = [
            column
            for column, column_type in types
            if str(column_type) == "TIMESTAMP WITH TIME ZONE"
        ]
        if zoned_columns:  # DuckDB would hand out none of them without pytz
            without_zone = (
                duckdb.ColumnExpression(column).cast("TIMESTAMP").alias(column)
                for column in zoned_columns
            )
            rows = rows.select(duckdb.StarExpression(exclude=zoned_columns), *without_zone)

    def run(query: Select[Any]) -> Rows:
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
        hints = (hint for mark, hint in ERROR_HINTS.items() if mark in error_text)
        raise BadData(f"cannot read {name}: {next(hints, error_text.splitlines()[0])}") from None


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
    dialect = DefaultDialect(paramstyle="named")
    return str(clause.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def _column(name: str) -> Any:
    column = sql.column(sql.quoted_name(str(name), True))
    if not isinstance(name, Day):
        return column
    start, length = (
        sql.literal_column("1"),
        sql.literal_column("10"),
    )  # a parameter is no GROUP BY key
    return sql.func.substr(sql.cast(column, sql.String), start, length)


def _expression(column: str) -> nw.Expr:
    column_values = nw.col(str(column))
    return (
        column_values.cast(nw.String).str.slice(0, 10) if isinstance(column, Day) else column_values
    )
