"""Tables of any kind behind one door: frames asked by narwhals, DuckDB and databases in SQL.

A table is asked how many rows have each combination of values, after a filter; it is counted where
it is, and nothing but the answer travels. Narwhals could ask DuckDB too, but DuckDB then writes
complaints when the program ends (about types that narwhals keeps, where numpy is there as well).
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from equipoise.errors import BadData, InvalidInput

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyRelation
    from sqlalchemy import ClauseElement, Engine, FromClause, Select

__all__ = [
    "Day",
    "LazyTable",
    "Rows",
    "SqlTable",
    "Table",
    "database",
    "duckdb_text",
    "relation",
    "require_once",
    "translated",
]

Rows = list[tuple[Any, ...]]
Sign = Literal[">=", "<", "in"]
COUNT = "equipoise count of rows"  # no column is called so


class Day(str):
    """A column of texts of which the first ten characters are compared."""


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn an engine's error into ours; its first line says what is wrong."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise BadData(f"cannot read {name}: {first or type(error).__name__}") from None


def require_once(wanted: Sequence[str], present: Sequence[str]) -> None:
    """Raise if a wanted column is there more than once."""
    for column in wanted:
        if present.count(column) > 1:
            raise BadData(
                f"column {column!r} must be there once; {present.count(column)} columns have that "
                "name: rename all but the one that is meant"
            )


@dataclass(frozen=True)
class LazyTable:
    """Whatever narwhals takes: lazy frames of polars, ibis, Spark, Dask.

    Attributes
    ----------
    name, engine
        What to call the table in a message, and where it is counted.
    rows
        The rows, which are read when they are counted.
    notes
        What was left out when the table was opened.
    """

    name: str
    engine: str
    rows: nw.LazyFrame[Any]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> Sequence[str]:
        """The columns' names."""
        with translated(self.name):
            return list(self.rows.collect_schema().names())

    def count(self, by: Sequence[str], most: int | None = None) -> Rows:
        """Return combinations of values with their numbers of rows, at most so many."""
        counted = self._counted(by)
        return self._fetch(counted if most is None else counted.head(most))

    def sizes(self, column: str) -> Rows:
        """Return (1 for no value, rows that share a value, how many such values there are)."""
        import narwhals as nw

        none = nw.when(nw.col(column).is_null()).then(nw.lit(1)).otherwise(nw.lit(0))
        sizes = self._counted([column]).select(none.alias("none"), nw.col(COUNT).alias("size"))
        return replace(self, rows=sizes).count(["none", "size"])

    def least(self, column: str) -> tuple[Any, int]:
        """Return the least value of a column, and how many rows have none."""
        import narwhals as nw

        at = nw.col(column)
        none = nw.when(at.is_null()).then(nw.lit(1)).otherwise(nw.lit(0)).sum().alias(COUNT)
        ((least, without),) = self._fetch(self.rows.select(at.min(), none))
        return least, int(without or 0)

    def where(self, column: str, sign: Sign, value: Any) -> LazyTable:
        """Return the rows whose value compares so."""
        at = _expression(column)
        rule = at.is_in(value) if sign == "in" else COMPARE[sign](at, value)
        return replace(self, rows=self.rows.filter(rule))

    def take(self, columns: Sequence[str], most: int | None = None) -> LazyTable:
        """Return columns of some rows, or of all without repetitions."""
        rows = self.rows.select(*columns)
        return replace(self, rows=rows.unique() if most is None else rows.head(most))

    def _counted(self, by: Sequence[str]) -> nw.LazyFrame[Any]:
        import narwhals as nw

        return self.rows.select(*map(_expression, by)).group_by(*by).agg(nw.len().alias(COUNT))

    def _fetch(self, frame: nw.LazyFrame[Any]) -> Rows:
        with warnings.catch_warnings(), translated(self.name):
            warnings.simplefilter("ignore")  # what an engine thinks of its own packages
            return [tuple(row) for row in frame.collect().rows()]


COMPARE = {">=": operator.ge, "<": operator.lt}


def _expression(column: str) -> nw.Expr:
    import narwhals as nw

    at = nw.col(str(column))
    return at.cast(nw.String).str.slice(0, 10) if isinstance(column, Day) else at


@dataclass(frozen=True)
class SqlTable:
    """A table that is asked in SQL, of DuckDB or of a database; asked like :class:`LazyTable`.

    Attributes
    ----------
    run
        Sends a query and returns the rows of its answer.
    zoned
        Columns of times with a zone, of which DuckDB could hand out no value without pytz.
    """

    name: str
    engine: str
    rows: FromClause
    columns: Sequence[str]
    run: Callable[[Select[Any]], Rows]
    notes: tuple[str, ...] = ()
    zoned: tuple[str, ...] = ()

    def count(self, by: Sequence[str], most: int | None = None) -> Rows:
        """Return combinations of values with their numbers of rows, at most so many."""
        import sqlalchemy as sql

        keys = [_column(name) for name in by]
        query = sql.select(*keys, sql.func.count()).select_from(self.rows).group_by(*keys)
        return self._fetch(query if most is None else query.limit(most))

    def sizes(self, column: str) -> Rows:
        """Return (1 for no value, rows that share a value, how many such values there are)."""
        import sqlalchemy as sql

        at = _column(column)
        none, size = sql.case((at.is_(None), 1), else_=0), sql.func.count()
        sizes = sql.select(none.label("none"), size.label("size")).select_from(self.rows)
        return replace(self, rows=sizes.group_by(at).subquery()).count(["none", "size"])

    def least(self, column: str) -> tuple[Any, int]:
        """Return the least value of a column, and how many rows have none."""
        import sqlalchemy as sql

        at, zoned = _column(column), column in self.zoned
        least = sql.null() if zoned else sql.func.min(at)
        query = sql.select(least, sql.func.count() - sql.func.count(at)).select_from(self.rows)
        ((found, without),) = self._fetch(query)
        return datetime.min.replace(tzinfo=UTC) if zoned else found, int(without)

    def where(self, column: str, sign: Sign, value: Any) -> SqlTable:
        """Return the rows whose value compares so."""
        at = _column(column)
        rule = at.in_(value) if sign == "in" else COMPARE[sign](at, value)
        return replace(self, rows=self._select(self.columns).where(rule).subquery())

    def take(self, columns: Sequence[str], most: int | None = None) -> SqlTable:
        """Return columns of some rows, or of all without repetitions."""
        rows = self._select(columns)
        rows = rows.distinct() if most is None else rows.limit(most)
        return replace(self, rows=rows.subquery(), columns=columns)

    def _select(self, columns: Sequence[str]) -> Select[Any]:
        import sqlalchemy as sql

        return sql.select(*map(_column, dict.fromkeys(columns))).select_from(self.rows)

    def _fetch(self, query: Select[Any]) -> Rows:
        with translated(self.name):
            return self.run(query)


Table = LazyTable | SqlTable


def relation(name: str, rows: DuckDBPyRelation, notes: tuple[str, ...] = ()) -> SqlTable:
    """Return a relation of DuckDB, which scans files, frames and arrays, as a table."""
    import sqlalchemy as sql

    past = "rows that equipoise counts"  # no table is called so

    def run(query: Select[Any]) -> Rows:
        found = rows.query(past, duckdb_text(query))
        return [] if found is None else found.fetchall()

    with translated(name):  # its connection may be closed
        types = zip(rows.columns, rows.types, strict=True)
    zoned = tuple(column for column, kind in types if str(kind).endswith("TIME ZONE"))
    return SqlTable(name, "DuckDB", sql.table(past), rows.columns, run, notes, zoned)


def duckdb_text(clause: ClauseElement) -> str:
    """Return a query, or a part of one, as DuckDB reads it."""
    from sqlalchemy.engine.default import DefaultDialect

    standard = DefaultDialect(paramstyle="named")
    return str(clause.compile(dialect=standard, compile_kwargs={"literal_binds": True}))


def database(name: str, engine: Engine, rows: FromClause) -> SqlTable:
    """Return a table or a query that SQLAlchemy reaches as a table."""
    import sqlalchemy as sql

    def run(query: Select[Any]) -> Rows:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    none = sql.select(sql.text("*")).select_from(rows).where(sql.text("1 = 0"))
    with translated(name), engine.connect() as connection:
        columns = list(connection.execute(none).keys())
    kind = str(engine.dialect.name)
    shown = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}.get(kind, kind)
    return SqlTable(name, shown, rows, columns, run)


def _column(name: str) -> Any:
    import sqlalchemy as sql

    column = sql.column(sql.quoted_name(str(name), True))
    if not isinstance(name, Day):
        return column
    first, ten = sql.literal_column("1"), sql.literal_column("10")  # a parameter is no GROUP BY key
    return sql.func.substr(sql.cast(column, sql.String), first, ten)
