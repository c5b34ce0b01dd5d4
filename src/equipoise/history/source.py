"""Tables of any kind behind one door: SQL in, a few rows out.

Files, frames and arrays are scanned in place by DuckDB, an ibis table runs the same SQL in its own
database. Only the columns a query names are read, and nothing but its answer is held in memory.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from equipoise.errors import BadData, InvalidInput, UnknownName

if TYPE_CHECKING:
    import ibis
    import polars
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["TABLE", "Source", "identifier", "literal", "open_source"]

TABLE = "equipoise_past"
"""The name under which a query finds the table."""

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.zst", ".tsv.zst")
PARQUET_ENDINGS = (".parquet", ".pq")


class Source(Protocol):
    """A table that answers queries on :data:`TABLE`, written in DuckDB's SQL."""

    @property
    def name(self) -> str:
        """What to call the table in a message."""
        ...

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        ...

    def comparable(self, column: str) -> str:
        """Return the SQL for a column's value that compares equal to its text as a literal."""
        ...


def open_source(source: object, columns: Sequence[str]) -> Source:
    """Open a file, several, a frame, a relation or a database table that has the columns.

    Raises
    ------
    InvalidInput
        If the source is of an unknown kind or cannot be opened.
    UnknownName
        If a column is missing.
    """
    if isinstance(source, str | os.PathLike):
        return _open_files([os.fspath(source)], columns)
    if isinstance(source, Sequence) and not isinstance(source, str):
        if not source or not all(isinstance(part, str | os.PathLike) for part in source):
            raise InvalidInput(
                "'source' as a list must hold one or more paths; "
                f"got {type(source).__name__} of length {len(source)}"
            )
        return _open_files([os.fspath(part) for part in source], columns)
    package = type(source).__module__.partition(".")[0]
    if package == "ibis":
        return _Ibis(source, columns)
    return _open_frame(source, package, columns)


def identifier(name: str) -> str:
    """Return a column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


class _DuckDB:
    """Anything DuckDB can scan; ``relation`` opens it anew for every query."""

    def __init__(
        self, name: str, relation: Callable[[], DuckDBPyRelation], columns: Sequence[str]
    ) -> None:
        import duckdb

        self.name = name
        self._relation = relation
        self._error = duckdb.Error
        with _Reading(self.name, self._error):
            _require_columns(columns, relation().columns)

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        with _Reading(self.name, self._error):
            answer = self._relation().query(TABLE, sql)
            return [] if answer is None else answer.fetchall()

    def comparable(self, column: str) -> str:
        return identifier(column)  # DuckDB turns the literal into the column's type, once


class _Ibis:
    """A table that stays in its database; the SQL is translated to that database's dialect."""

    def __init__(self, table: Any, columns: Sequence[str]) -> None:
        import ibis
        import sqlglot
        from ibis.common.exceptions import IbisError

        if not isinstance(table, ibis.Table):
            raise InvalidInput(f"'source' must be an ibis table; got {type(table).__name__}")
        self.name = "the ibis table"
        try:
            backend = table.get_backend()
            self._select = str(ibis.to_sql(table, dialect=backend.name))
        except IbisError as error:
            raise InvalidInput(f"cannot open {self.name}: {error}") from None
        _require_columns(columns, table.columns)
        self._backend: ibis.BaseBackend = backend
        self._transpile = sqlglot.transpile

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        (query,) = self._transpile(sql, read="duckdb", write=self._backend.name)
        with _Reading(self.name, Exception):  # every database has its own kind of error
            cursor = self._backend.raw_sql(f"WITH {TABLE} AS ({self._select}) {query}")
            return [tuple(row) for row in cursor.fetchall()]

    def comparable(self, column: str) -> str:
        return f"CAST({identifier(column)} AS VARCHAR)"


class _Reading:
    """Turn an engine's error into ours; its first line says what is wrong."""

    def __init__(self, name: str, kind: type[Exception]) -> None:
        self.name, self.kind = name, kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self.kind) and not isinstance(error, InvalidInput):
            first = str(error).strip().partition("\n")[0]
            raise BadData(f"cannot read {self.name}: {first or type(error).__name__}") from None


def _open_files(patterns: Sequence[str], columns: Sequence[str]) -> Source:

    paths = [path for pattern in patterns for path in _matches(pattern)]
    name = repr(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]!r} on"
    if all(path.lower().endswith(PARQUET_ENDINGS) for path in paths):
        connection = _connect()
        return _DuckDB(
            name, lambda: connection.read_parquet(paths, union_by_name=len(paths) > 1), columns
        )
    if all(path.lower().endswith(CSV_ENDINGS) for path in paths):
        connection = _connect()
        # Values stay text: a guessed type would fail on the first row that breaks the guess.
        return _DuckDB(
            name,
            lambda: connection.read_csv(
                paths,  # type: ignore[arg-type]
                header=True,
                all_varchar=True,
                union_by_name=len(paths) > 1,
            ),
            columns,
        )
    endings = ", ".join(sorted({Path(path).suffix or "no ending" for path in paths}))
    raise InvalidInput(
        f"'source' must be CSV ({', '.join(CSV_ENDINGS[:3])}) or Parquet files "
        f"({', '.join(PARQUET_ENDINGS)}), one kind at a time; got {endings}"
    )


def _connect() -> DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")  # it would be written among our answers
    return connection


def _matches(pattern: str) -> list[str]:
    paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise InvalidInput(f"'source': no file {pattern!r}")
    for path in paths:
        if os.path.isdir(path):
            raise InvalidInput(
                f"'source' {path!r} is a directory; name its files, for example "
                f"{os.path.join(path, '*.parquet')!r}"
            )
        if not os.access(path, os.R_OK):
            raise InvalidInput(f"'source' {path!r} may not be read: permission denied")
        if os.path.getsize(path) == 0:
            raise BadData(f"'source' {path!r} is an empty file")
    return paths


def _open_frame(source: object, package: str, columns: Sequence[str]) -> Source:
    import duckdb

    kind = type(source).__name__
    if isinstance(source, duckdb.DuckDBPyRelation):
        return _DuckDB("the DuckDB relation", lambda: source, columns)
    connection = _connect()
    if isinstance(source, Mapping):
        connection.register("arrays", source)
        return _DuckDB("the arrays", lambda: connection.table("arrays"), columns)
    if package == "pandas" and kind == "DataFrame":
        # Objects are read as text: DuckDB would guess a type from the first thousand rows.
        connection.execute("SET pandas_analyze_sample = 0")
        return _DuckDB("the pandas frame", lambda: connection.from_df(source), columns)  # type: ignore[arg-type]
    if package == "polars" and kind == "LazyFrame":
        return _open_lazy(source, columns)
    if kind != "RecordBatchReader" and (
        hasattr(source, "__arrow_c_stream__") or package == "pyarrow"
    ):
        return _DuckDB(f"the {package} table", lambda: connection.from_arrow(source), columns)
    raise InvalidInput(
        "'source' must be a path, a list of paths, a pandas, polars or pyarrow table, a mapping "
        f"of arrays, a DuckDB relation or an ibis table; got {type(source).__module__}.{kind}"
    )


def _open_lazy(source: object, columns: Sequence[str]) -> Source:
    import polars
    import pyarrow

    frame: polars.LazyFrame = source  # type: ignore[assignment]
    name = "the polars query"
    with _Reading(name, polars.exceptions.PolarsError):
        _require_columns(columns, frame.collect_schema().names())
    narrow = frame.select(columns)
    schema = narrow.head(0).collect().to_arrow().schema
    connection = _connect()

    def stream() -> DuckDBPyRelation:
        batches = (
            batch
            for part in narrow.collect_batches(maintain_order=True)
            for batch in part.to_arrow().cast(schema).to_batches()
        )
        return connection.from_arrow(pyarrow.RecordBatchReader.from_batches(schema, batches))

    return _DuckDB(name, stream, columns)


def _require_columns(wanted: Sequence[str], present: Sequence[str]) -> None:
    for column in wanted:
        if column not in present:
            raise UnknownName("column", column, present)
