"""Open whatever a person has: one function, one line per kind of thing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput
from equipoise.history.database import DatabaseSource
from equipoise.history.duck import DuckSource, connect
from equipoise.history.files import open_connection, open_delta, open_files, require_no_lake
from equipoise.history.lazy import LazySource
from equipoise.history.source import Source, require_columns

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["open_source"]


def open_source(
    source: object,
    columns: Sequence[str],
    *,
    table: str | None = None,
    query: str | None = None,
    encoding: str | None = None,
) -> Source:
    """Open a source that has the columns.

    Raises
    ------
    InvalidInput
        If the source is of an unknown kind or cannot be opened.
    UnknownName
        If a column is missing.
    """
    if isinstance(source, str | os.PathLike):
        source = [source]
    if isinstance(source, Sequence):
        if not source or not all(isinstance(part, str | os.PathLike) for part in source):
            raise InvalidInput(
                "'source' as a list must hold one or more paths; "
                f"got {type(source).__name__} of length {len(source)}"
            )
        paths = [os.fspath(part) for part in source]
        return open_files(paths, columns, table=table, query=query, encoding=encoding)
    package, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if package == "sqlalchemy":
        engine = _engine(source, kind)
        return DatabaseSource(engine, columns, table=table, query=query)
    if kind == "DuckDBPyConnection":
        connection: Any = source
        return open_connection(
            connection, "the DuckDB connection", columns, table=table, query=query
        )
    if table is not None or query is not None:
        raise InvalidInput("'table' and 'query' belong to databases and Excel files")
    if kind == "DuckDBPyRelation":
        relation: Any = source
        return DuckSource("the DuckDB relation", lambda: relation, columns, ordered=False)
    if package in ("ibis", "pyspark", "dask", "dask_expr", "sqlframe") or kind == "LazyFrame":
        return LazySource(source, columns)
    return _open_frame(source, package, kind, columns)


def _engine(source: Any, kind: str) -> Engine:
    import sqlalchemy

    if not isinstance(source, sqlalchemy.Engine | sqlalchemy.Connection):
        raise InvalidInput(
            f"'source' must be an engine or a connection of SQLAlchemy; got its {kind} (the engine "
            "of a session is session.get_bind())"
        )
    return source.engine


def _open_frame(source: Any, package: str, kind: str, columns: Sequence[str]) -> Source:
    """Let DuckDB scan what is in memory, or what comes as record batches."""
    connection = connect()
    if isinstance(source, Mapping):
        connection.register("arrays", source)
        return DuckSource("the arrays", lambda: connection.table("arrays"), columns)
    if package == "pandas" and kind == "DataFrame":
        require_columns(columns, [str(name) for name in source.columns])
        # Objects are read as text: DuckDB would guess a type from the first thousand rows.
        connection.execute("SET pandas_analyze_sample = 0")
        return DuckSource("the pandas frame", lambda: connection.from_df(source), columns)
    if package == "deltalake":
        return open_delta(source, "the Delta table", columns)
    if kind == "RecordBatchReader":
        require_columns(columns, source.schema.names)
        name = "the record batches"
        return DuckSource(name, lambda: connection.from_arrow(source), columns, once=True)
    if hasattr(source, "__arrow_c_stream__") or package == "pyarrow":
        if package == "pyarrow" and hasattr(source, "schema"):
            require_columns(columns, source.schema.names)
        require_no_lake(getattr(source, "files", []) or [])
        return DuckSource(f"the {package} table", lambda: connection.from_arrow(source), columns)
    raise InvalidInput(
        "'source' must be a path, a list of paths, an address of a database, a pandas, polars, "
        "pyarrow, Spark or ibis table, a mapping of arrays, a DuckDB connection or relation, a "
        f"SQLAlchemy engine or a DeltaTable; got {type(source).__module__}.{kind}"
    )
