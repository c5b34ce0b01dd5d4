"""Tables of any kind behind one door: frames by narwhals, databases by SQLAlchemy, DuckDB.

A table is asked how many rows have each combination of values, after a filter; it is counted where
it is, and nothing but the answer travels. Narwhals could ask DuckDB too, but DuckDB then writes
complaints when the program ends (about types that narwhals keeps, where numpy is there as well).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from equipoise.errors import BadData, InvalidInput

if TYPE_CHECKING:
    import narwhals as nw
    from duckdb import DuckDBPyRelation
    from sqlalchemy import Engine, FromClause, Select

__all__ = [
    "Database",
    "Frame",
    "Relation",
    "Rows",
    "Table",
    "identifier",
    "require_once",
    "translated",
]

Rows = list[tuple[Any, ...]]
COUNT = "equipoise count of rows"  # no column is called so


class translated:  # noqa: N801 - used like a function
    """Turn an engine's error into ours; its first line says what is wrong."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, InvalidInput):
            first = str(error).strip().partition("\n")[0]
            raise BadData(f"cannot read {self.name}: {first or type(error).__name__}") from None


def require_once(wanted: Sequence[str], present: Sequence[str]) -> None:
    """Raise if a wanted column is there more than once."""
    for column in wanted:
        if present.count(column) > 1:
            raise BadData(
                f"column {column!r} must be there once; {present.count(column)} columns have that "
                "name: rename all but the one that is meant"
            )


@dataclass(frozen=True)
class Frame:
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
        import narwhals as nw

        counted = self.rows.group_by(*by).agg(nw.len().alias(COUNT))
        return self._fetch(counted if most is None else counted.head(most))

    def head(self, columns: Sequence[str], most: int) -> Frame:
        """Return columns of some rows."""
        return replace(self, rows=self.rows.select(*columns).head(most))

    def distinct(self, columns: Sequence[str]) -> Frame:
        """Return columns of the rows without repetitions."""
        return replace(self, rows=self.rows.select(*columns).unique())

    def least(self, column: str) -> tuple[Any, int]:
        """Return the least value of a column, and how many rows have none."""
        import narwhals as nw

        at = nw.col(column)
        none = nw.when(at.is_null()).then(nw.lit(1)).otherwise(nw.lit(0)).sum().alias(COUNT)
        ((least, without),) = self._fetch(self.rows.select(at.min(), none))
        return least, int(without or 0)

    def between(self, column: str, since: Any, until: Any) -> Frame:
        """Return the rows with ``since <= column < until``; None is no end."""
        import narwhals as nw

        at, rows = nw.col(column), self.rows
        rows = rows if since is None else rows.filter(at >= since)
        return replace(self, rows=rows if until is None else rows.filter(at < until))

    def days(self, column: str, most: int) -> Rows:
        """Return the first ten characters of a column's texts with their numbers of rows."""
        return replace(self, rows=self.rows.select(_day(column).alias("day"))).count(["day"], most)

    def on_days(self, column: str, days: Sequence[str]) -> Frame:
        """Return the rows whose first ten characters are among these."""
        return replace(self, rows=self.rows.filter(_day(column).is_in(days)))

    def repeated(self, column: str) -> Rows:
        """Return (1 for no value, rows that share a value, number of such values) if repeated."""
        import narwhals as nw

        none = nw.when(nw.col(column).is_null()).then(nw.lit(1)).otherwise(nw.lit(0))
        sizes = self.rows.group_by(column).agg(nw.len().alias(COUNT))
        sizes = sizes.select(none.alias("none"), nw.col(COUNT).alias("size"))
        sizes = sizes.filter((nw.col("size") > 1) | (nw.col("none") == 1))
        return replace(self, rows=sizes).count(["none", "size"])

    def _fetch(self, frame: nw.LazyFrame[Any]) -> Rows:
        with warnings.catch_warnings(), translated(self.name):
            warnings.simplefilter("ignore")  # what an engine thinks of its own packages
            return [tuple(row) for row in frame.collect().rows()]


def _day(column: str) -> nw.Expr:
    import narwhals as nw

    return nw.col(column).cast(nw.String).str.slice(0, 10)


@dataclass(frozen=True)
class Relation:
    """A relation of DuckDB, which scans files, frames and arrays; asked like a :class:`Frame`."""

    name: str
    rows: DuckDBPyRelation
    notes: tuple[str, ...] = ()
    engine: ClassVar[str] = "DuckDB"

    @property
    def columns(self) -> Sequence[str]:
        """The columns' names."""
        return list(self.rows.columns)

    def count(self, by: Sequence[str], most: int | None = None) -> Rows:
        """Return combinations of values with their numbers of rows, at most so many."""
        keys = ", ".join(map(identifier, by))
        counted = self.rows.aggregate(f"{keys}, count(*)", keys)
        return self._fetch(counted if most is None else counted.limit(most))

    def head(self, columns: Sequence[str], most: int) -> Relation:
        """Return columns of some rows."""
        return replace(self, rows=self._project(columns).limit(most))

    def distinct(self, columns: Sequence[str]) -> Relation:
        """Return columns of the rows without repetitions."""
        return replace(self, rows=self._project(columns).distinct())

    def least(self, column: str) -> tuple[Any, int]:
        """Return the least value of a column, and how many rows have none."""
        at = identifier(column)
        zoned = str(self.rows.types[self.rows.columns.index(column)]).endswith("TIME ZONE")
        least = f"min({at})" if not zoned else "NULL"  # whose values would need pytz
        ((found, without),) = self._fetch(self.rows.aggregate(f"{least}, count(*) - count({at})"))
        return datetime.min.replace(tzinfo=UTC) if zoned else found, int(without)

    def between(self, column: str, since: Any, until: Any) -> Relation:
        """Return the rows with ``since <= column < until``; None is no end."""
        at = identifier(column)
        ends = [f"{at} {sign} '{end}'" for sign, end in ((">=", since), ("<", until)) if end]
        return replace(self, rows=self.rows.filter(" AND ".join(ends)))

    def days(self, column: str, most: int) -> Rows:
        """Return the first ten characters of a column's texts with their numbers of rows."""
        day = self.rows.project(f"{_duckdb_day(column)} AS day")
        return replace(self, rows=day).count(["day"], most)

    def on_days(self, column: str, days: Sequence[str]) -> Relation:
        """Return the rows whose first ten characters are among these."""
        texts = ", ".join("'" + day.replace("'", "''") + "'" for day in days)
        return replace(self, rows=self.rows.filter(f"{_duckdb_day(column)} IN ({texts})"))

    def repeated(self, column: str) -> Rows:
        """Return (1 for no value, rows that share a value, number of such values) if repeated."""
        at = identifier(column)
        sizes = self.rows.aggregate(f"CAST({at} IS NULL AS INT) AS none, count(*) AS size", at)
        return replace(self, rows=sizes.filter("size > 1 OR none = 1")).count(["none", "size"])

    def _project(self, columns: Sequence[str]) -> DuckDBPyRelation:
        return self.rows.project(", ".join(map(identifier, columns)))

    def _fetch(self, rows: DuckDBPyRelation) -> Rows:
        with translated(self.name):
            return rows.fetchall()


def identifier(name: str) -> str:
    """Return a column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def _duckdb_day(column: str) -> str:
    return f"substr(CAST({identifier(column)} AS VARCHAR), 1, 10)"


@dataclass(frozen=True)
class Database:
    """A table or a query that SQLAlchemy reaches; asked like a :class:`Frame`."""

    name: str
    connections: Engine
    rows: FromClause
    columns: Sequence[str]
    notes: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        """The kind of database."""
        name = str(self.connections.dialect.name)
        return {"postgresql": "PostgreSQL", "sqlite": "SQLite"}.get(name, name)

    def count(self, by: Sequence[str], most: int | None = None) -> Rows:
        """Return combinations of values with their numbers of rows, at most so many."""
        return self._count([_column(name) for name in by], most)

    def head(self, columns: Sequence[str], most: int) -> Database:
        """Return columns of some rows."""
        return self._of(lambda select: select.limit(most), columns)

    def distinct(self, columns: Sequence[str]) -> Database:
        """Return columns of the rows without repetitions."""
        return self._of(lambda select: select.distinct(), columns)

    def least(self, column: str) -> tuple[Any, int]:
        """Return the least value of a column, and how many rows have none."""
        import sqlalchemy as sql

        at = _column(column)
        query = sql.select(sql.func.min(at), sql.func.count() - sql.func.count(at))
        ((least, without),) = self._fetch(query.select_from(self.rows))
        return least, int(without)

    def between(self, column: str, since: Any, until: Any) -> Database:
        """Return the rows with ``since <= column < until``; None is no end."""
        at = _column(column)
        rules = [*([at >= since] if since else []), *([at < until] if until else [])]
        return self._of(lambda select: select.where(*rules), self.columns)

    def days(self, column: str, most: int) -> Rows:
        """Return the first ten characters of a column's texts with their numbers of rows."""
        return self._count([_sql_day(column)], most)

    def on_days(self, column: str, days: Sequence[str]) -> Database:
        """Return the rows whose first ten characters are among these."""
        return self._of(lambda select: select.where(_sql_day(column).in_(days)), self.columns)

    def repeated(self, column: str) -> Rows:
        """Return (1 for no value, rows that share a value, number of such values) if repeated."""
        import sqlalchemy as sql

        at, size = _column(column), sql.func.count()
        none = sql.case((at.is_(None), 1), else_=0)
        sizes = sql.select(none.label("none"), size.label("size")).select_from(self.rows)
        sizes = sizes.group_by(at).having(sql.or_(size > 1, at.is_(None)))
        return replace(self, rows=sizes.subquery()).count(["none", "size"])

    def _of(self, change: Callable[[Select[Any]], Select[Any]], columns: Sequence[str]) -> Database:
        import sqlalchemy as sql

        select = sql.select(*map(_column, dict.fromkeys(columns))).select_from(self.rows)
        return replace(self, rows=change(select).subquery(), columns=columns)

    def _count(self, keys: Sequence[Any], most: int | None) -> Rows:
        import sqlalchemy as sql

        query = sql.select(*keys, sql.func.count()).select_from(self.rows).group_by(*keys)
        return self._fetch(query if most is None else query.limit(most))

    def _fetch(self, query: Select[Any]) -> Rows:
        with translated(self.name), self.connections.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]


Table = Frame | Relation | Database


def _column(name: str) -> Any:
    import sqlalchemy as sql

    return sql.column(sql.quoted_name(name, True))


def _sql_day(column: str) -> Any:
    import sqlalchemy as sql

    first, ten = sql.literal_column("1"), sql.literal_column("10")  # a parameter is no GROUP BY key
    return sql.func.substr(sql.cast(_column(column), sql.String), first, ten)
