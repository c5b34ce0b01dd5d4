"""Open whatever a person has: one line per kind of thing."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import narwhals as nw
import sqlalchemy as sql
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from sqlalchemy.exc import ArgumentError

from equipoise.errors import InvalidInput
from equipoise.history.files import connect, open_files, require_no_lake, scan_columns
from equipoise.history.options import ReadOptions
from equipoise.history.tables import (
    LazyTable,
    SqlTable,
    Table,
    database,
    duckdb_text,
    relation,
    require_once,
    translated,
)
from equipoise.history.values import require_plain

LAZY = ("polars", "ibis", "pyspark", "dask", "dask_expr", "sqlframe")
REMOTE = ("http", "https", "s3", "gs", "gcs", "az", "abfss", "hdfs", "r2", "file")


def open_table(source: Any, options: ReadOptions) -> Table:
    """Open a source of any kind.

    Raises
    ------
    InvalidInput
        If the source is of an unknown kind or cannot be opened.
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
        database = _open_database_at(paths[0], options) if len(paths) == 1 else None
        return database or open_files(paths, options)
    package, kind = type(source).__module__.partition(".")[0], type(source).__name__
    if isinstance(source, sql.Engine | sql.Connection):
        return _open_database(source.engine, options)
    if isinstance(source, DuckDBPyConnection):
        return _open_duckdb("the DuckDB connection", source, options)
    if options.table is not None or options.query is not None:
        raise InvalidInput("'table' and 'query' belong to databases and Excel files")
    if isinstance(source, DuckDBPyRelation):
        return relation("the DuckDB relation", source)
    if package in LAZY:
        return _open_lazy(source, package)
    name = f"the {package} {kind}" if package != "builtins" else "the columns"
    return relation(name, _scan(source, package, kind, options))


def _scan(source: Any, package: str, kind: str, options: ReadOptions) -> DuckDBPyRelation:
    """Let DuckDB scan what is in memory, or what comes as record batches."""
    if isinstance(source, Mapping):
        return scan_columns(source)
    connection = connect()
    if package == "pandas" and kind == "DataFrame":
        require_once(options.used, [str(name) for name in source.columns])
        for name in options.used:
            if name in source.columns and source[name].dtype == object:
                require_plain(name, source[name].to_numpy())
        return connection.from_df(source)
    if package == "deltalake":
        source = source.to_pyarrow_dataset()  # without the rows that were deleted
    elif package == "pyarrow" and hasattr(source, "schema"):
        require_once(options.used, source.schema.names)
        require_no_lake(getattr(source, "files", []) or [])
    elif not hasattr(source, "__arrow_c_stream__"):
        raise InvalidInput(
            "'source' must be a path, a list of paths, an address of a database, a pandas, polars, "
            "pyarrow, Spark or ibis table, a mapping of columns, a DuckDB connection or relation, "
            "a SQLAlchemy engine or connection (of a session: session.get_bind()) or a DeltaTable; "
            f"got {type(source).__module__}.{kind}"
        )
    if kind == "RecordBatchReader":  # which can be read once
        source = source.read_all()
    with translated(f"the {package} {kind}"):  # as where pyarrow is not there
        return connection.from_arrow(source)


def _open_lazy(source: Any, package: str) -> LazyTable:
    """Open a frame that has an engine of its own; polars can do more than ibis on polars."""
    with warnings.catch_warnings(), translated("'source'"):
        warnings.simplefilter("ignore")
        engine = source.get_backend().name if package == "ibis" else ""
        if engine == "polars":
            source = source.get_backend().compile(source)
        rows: nw.LazyFrame[Any] = nw.from_native(source).lazy()
    engine = engine or str(rows.implementation.value)
    return LazyTable("the ibis table" if package == "ibis" else f"the {engine} frame", engine, rows)


# -- databases -------------------------------------------------------------------------------------


def _open_database_at(place: str, options: ReadOptions) -> Table | None:
    """Open a database by its address or its file; None if it is neither."""
    scheme, mark, _ = place.partition("://")
    if mark and scheme not in REMOTE:
        return _open_database(_engine_of(place), options)
    if not os.path.isfile(place) or not os.access(place, os.R_OK):
        return None
    with open(place, "rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3\0"):
        # The name is a URI, in which % ? and # have a meaning.
        uri = f"file:{quote(os.path.abspath(place))}"
        url = sql.URL.create("sqlite", database=uri, query={"mode": "ro", "uri": "true"})
        return _open_database(sql.create_engine(url, poolclass=sql.NullPool), options)
    if start[8:12] == b"DUCK":
        return _open_duckdb(repr(place), connect(place, read_only=True), options)
    return None


def _engine_of(url: str) -> sql.Engine:
    """Return an engine for an address such as ``postgresql://host/bank``."""
    try:
        parsed = sql.make_url(url.replace("postgres://", "postgresql://", 1))
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        return sql.create_engine(parsed, poolclass=sql.NullPool)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"'source' {parsed.drivername}://… needs the Python package {error.name!r}; that of "
            "PostgreSQL comes with pip install 'equipoise[postgres]'"
        ) from None
    except ArgumentError:
        raise InvalidInput(
            "'source' is no address of files, and of no database with a SQLAlchemy dialect that "
            "is installed"
        ) from None


def _open_database(engine: sql.Engine, options: ReadOptions) -> SqlTable:
    with translated(f"the database {engine.url.render_as_string()}"):
        known = sql.inspect(engine).get_table_names()
    name = "the query" if options.query is not None else f"the table {options.table!r}"
    return database(name, engine, _rows(options, known))


def _open_duckdb(name: str, connection: DuckDBPyConnection, options: ReadOptions) -> SqlTable:
    with translated(name):
        listing = "SELECT table_name FROM information_schema.tables ORDER BY 1"
        known = [row[0] for row in connection.execute(listing).fetchall()]
        query = sql.select(sql.text("*")).select_from(_rows(options, known))
        return relation(name, connection.from_query(duckdb_text(query)))


def _rows(options: ReadOptions, known: Sequence[str]) -> sql.FromClause:
    """Return the table or the query that is named; exactly one of the two must be."""
    if (options.table is None) == (options.query is None):
        raise InvalidInput(
            "a database needs either 'table' (--table) or 'query' (--query); its tables are "
            f"{', '.join(known[:20]) or 'none'}"
        )
    if options.query is not None:
        text = options.query.strip().rstrip(";").replace(":", "\\:")  # no colon names a parameter
        return sql.text(f"({text}) AS past")
    table = str(options.table)
    schema, _, bare = table.rpartition(".") if table not in known else ("", "", table)
    named = sql.quoted_name(schema, "." not in schema) if schema else None
    return sql.table(sql.quoted_name(bare, True), schema=named)
