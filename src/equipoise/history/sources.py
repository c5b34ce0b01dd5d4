"""Sources of past decisions: files, folders, databases, frames and columns in memory.

Every source becomes a table that its own engine counts. Cells of CSV files are read as text, so
that no type is guessed.
"""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import duckdb
import narwhals as nw
import numpy as np
import sqlalchemy as sql
from duckdb import DuckDBPyConnection, DuckDBPyRelation
from sqlalchemy import FromClause
from sqlalchemy.exc import ArgumentError

from equipoise.database_url import check_database_url, display_path, display_url
from equipoise.errors import BadData, InvalidInput, MissingExtra, UnknownName
from equipoise.history.options import ReadOptions, places_of
from equipoise.history.problems import InvalidReading
from equipoise.history.tables import (
    LazyTable,
    Query,
    Rows,
    SqlTable,
    Table,
    as_bad_data,
    duckdb_table,
    duckdb_text,
    require_once,
    shared_connection,
)
from equipoise.history.values import require_single_values
from equipoise.messages import Problem

LAZY_PACKAGES = ("polars", "ibis", "pyspark", "dask", "dask_expr", "sqlframe")
REMOTE_SCHEMES = ("http", "https", "s3", "gs", "gcs", "az", "abfss", "hdfs", "r2", "file")
CSV = tuple(f".{kind}{end}" for kind in ("csv", "tsv", "txt") for end in ("", ".gz", ".zst"))
PARQUET = (".parquet", ".pq")
LAKE_FORMATS = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata/*.metadata.json": "Iceberg"}


def open_table(source: Any, options: ReadOptions) -> Table:
    """Open a source of any kind; an unknown kind is refused."""
    paths = places_of(source)
    if isinstance(source, list | tuple) and len(paths) != max(1, len(source)):
        raise InvalidInput(
            "'source' as a list must hold one or more paths; "
            f"got {type(source).__name__} of length {len(source)}. If the second table has the "
            "outcomes, give it as 'outcomes'"
        )
    if len(paths) == 1 and (table := _open_place(paths[0], options)) is not None:
        return table
    # A connection is asked through its engine: the table is read in a transaction of its own.
    if isinstance(source, sql.Engine | sql.Connection):
        return _open_database(source.engine, options)
    if isinstance(source, DuckDBPyConnection):
        return _open_duckdb("the DuckDB connection", source, options)
    if options.table is not None or options.query is not None:
        raise InvalidInput("'table' and 'query' belong to databases and Excel files")
    if paths:
        return _open_files(paths, options)
    if isinstance(source, DuckDBPyRelation):
        return duckdb_table("the DuckDB relation", source)
    if isinstance(source, Mapping):
        return duckdb_table("the columns", _scan_columns(source))
    # By the package's name, so that no package is imported only to ask whether it is this one.
    package = type(source).__module__.partition(".")[0]
    if package in LAZY_PACKAGES:
        return _open_lazy(source, package)
    return _open_in_memory(source, package, options)


# -- files and folders -----------------------------------------------------------------------------


def files_of(source: Any) -> list[str]:
    """Return the CSV or Parquet files that a source names; none if it is something else."""
    paths: list[str] = []
    for pattern in places_of(source):
        is_remote = "://" in pattern and not pattern.startswith("file://")
        if is_remote or _lake(Path(pattern)) is not None:
            return []
        paths += _files_of(pattern)[0]
    return paths if _all_end(paths, CSV) or _all_end(paths, PARQUET) else []


def _open_files(patterns: Sequence[str], options: ReadOptions) -> SqlTable:
    """Open paths, globs, folders and addresses of CSV or Parquet files."""
    paths: list[str] = []
    n_ignored = 0
    for pattern in patterns:
        pattern_paths, n_other_files = _files_of(pattern)
        paths += pattern_paths
        n_ignored += n_other_files
    _require_different_files(paths)
    _require_no_lake(paths)
    name = repr(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]!r} on"
    if n_ignored:
        name += f" (without {n_ignored:,} that are neither CSV nor Parquet)"
    if _all_end(paths, PARQUET):
        with as_bad_data(name):
            rows = _scan_files(connect(), "read_parquet", paths, "", options.used)
            return duckdb_table(name, rows)
    if _all_end(paths, CSV):
        return _open_csv(name, paths, options)
    endings = ", ".join(sorted({Path(path).suffix or "no ending" for path in paths}))
    raise InvalidInput(
        f"'source' must be CSV ({', '.join(CSV)}) or Parquet files ({', '.join(PARQUET)}), "
        "one kind at a time, an Excel file (.xlsx), or a database file (.sqlite, .duckdb); got "
        f"{endings}"
    )


def _require_different_files(paths: Sequence[str]) -> None:
    """Raise if a file is there twice, perhaps by another path."""
    path_of_file: dict[str, str] = {}
    # By the real path: a link and its file are one file, whose people would count twice.
    for path in paths:
        first_path = path_of_file.setdefault(os.path.realpath(path), path)
        if first_path != path or paths.count(path) > 1:
            raise InvalidInput(f"'source' holds the file {path!r} twice; name every file once")


def _open_csv(name: str, paths: Sequence[str], options: ReadOptions) -> SqlTable:
    # DuckDB would guess from the first rows alone, and take later quotes for part of a value.
    encoding = duckdb_text(sql.literal(options.encoding or "utf-8"))
    settings = f", all_varchar = true, skip = 0, quote = '\"', encoding = {encoding}"
    connection = connect()
    with as_bad_data(name):
        settings_of_all = f", header = true{settings}"
        rows = _scan_files(connection, "read_csv", paths, settings_of_all, options.used)
        if len(rows.columns) == 1:
            raise BadData(
                f"cannot read {name}: it is empty, or seems to have the single column "
                f"{rows.columns[0]!r}; every line must have as many cells as the first, with the "
                "same separator"
            )
        # DuckDB calls the second of two columns of the same name _1. The file's own header decides,
        # because a column may have that name honestly.
        if any(f"{column}_1" in rows.columns for column in options.used):
            for path in paths:
                lines = _scan_files(connection, "read_csv", [path], f", header = false{settings}")
                require_once(options.used, lines.limit(1).fetchall()[0])
        return duckdb_table(name, rows)


def _scan_files(
    connection: DuckDBPyConnection,
    function: str,
    paths: Sequence[str],
    settings: str,
    used: Iterable[str] = (),
) -> DuckDBPyRelation:
    """Let a function of DuckDB, such as ``read_csv``, scan files and match columns by name.

    Folders such as ``year=2024`` are columns as well, unless the files have a column of that name.
    Files of which only some have such a column in ``used`` are refused.
    """
    # DuckDB would take a star in a file's name for a pattern.
    names = (path if "://" in path else glob.escape(path) for path in paths)
    files = ", ".join(duckdb_text(sql.literal(name)) for name in names)
    query = f"{function}([{files}]{settings}, union_by_name = true, hive_partitioning = false"
    rows = connection.from_query(f"FROM {query})")
    file_columns = {column.casefold() for column in rows.columns}
    require_folders_of_all(paths, [name for name in used if name.casefold() not in file_columns])
    folder_columns = [
        column for column in common_folder_columns(paths) if column.casefold() not in file_columns
    ]
    if not folder_columns:
        return rows
    # Not by DuckDB's own partitions: it insists on one spelling of a name, and lets a folder's
    # column go before that of the files.
    path_column = f"path {uuid4().hex}"
    values = ", ".join(_folder_value(column, paths, path_column) for column in folder_columns)
    return connection.from_query(
        f"SELECT * EXCLUDE (\"{path_column}\"), {values} FROM {query}, filename = '{path_column}')"
    )


def _folder_value(column: str, paths: Sequence[str], path_column: str) -> str:
    """Return what in SQL is the value that a folder of a file gives to a column."""
    pattern = duckdb_text(sql.literal(f"(?i)^(?:[^?]*/)?{re.escape(column)}=([^/?]*)/"))
    value = f'regexp_extract("{path_column}", {pattern}, 1)'
    # Only where needed: DuckDB takes these functions row by row, not file by file.
    if any("%" in path for path in paths):
        value = f"url_decode({value})"
    for no_value in ("", "__HIVE_DEFAULT_PARTITION__"):  # as Hive writes it
        if any(f"={no_value}/" in path for path in paths):
            value = f"nullif({value}, '{no_value}')"
    return f"{value} AS {duckdb_text(sql.column(column))}"


def _folder_columns(path: str) -> dict[str, str]:
    """Return the columns that a file's folders name, as in ``year=2024``: folded name -> name."""
    folders = path.partition("?")[0].split("/")[:-1]
    names = [folder.partition("=")[0] for folder in folders if "=" in folder[1:]]
    return {name.casefold(): name for name in names}


def common_folder_columns(paths: Sequence[str]) -> list[str]:
    """Return the columns that folders of every file name; small letters, if they differ in them."""
    columns = _folder_columns(paths[0])
    for path in paths[1:]:
        others = _folder_columns(path)
        columns = {
            folded: name if name == others[folded] else folded
            for folded, name in columns.items()
            if folded in others
        }
    return list(columns.values())


def require_folders_of_all(paths: Sequence[str], columns: Iterable[str]) -> None:
    """Refuse files of which only some lie in a folder that names a column that is needed.

    Raises
    ------
    InvalidInput
        If there is such a column; it names a file of each kind.
    """
    for column in columns:
        inside = [path for path in paths if column.casefold() in _folder_columns(path)]
        outside = [path for path in paths if path not in inside]
        if inside and outside:
            raise InvalidInput(
                f"the column {column!r} is a folder of {inside[0]!r}, and {outside[0]!r} is in no "
                f"such folder: move it into one, as {column}=..., or name only files that are in "
                "one"
            )


def _files_of(pattern: str) -> tuple[list[str], int]:
    """Return the files that a path, glob or folder stands for, and how many others are there."""
    pattern = pattern.removeprefix("file://")
    if os.path.isdir(pattern):
        return _files_in_folder(Path(pattern))
    if "://" in pattern or os.path.exists(pattern):
        return [pattern], 0
    paths = sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise InvalidInput(f"File not found: {display_path(pattern)}")
    return paths, 0


def _files_in_folder(folder: Path) -> tuple[list[str], int]:
    """Return the CSV and Parquet files below a folder, and how many other files are there."""
    files = []
    for path in sorted(folder.rglob("*"), key=str):
        # Engines mark what belongs to themselves, such as _SUCCESS, by the first character.
        is_internal = any(part[0] in "._" for part in path.relative_to(folder).parts)
        if path.is_file() and not is_internal:
            files.append(str(path))
    tables = [path for path in files if _all_end([path], (*PARQUET, *CSV))]
    if not tables:
        raise InvalidInput(f"There is no CSV or Parquet file in the folder {str(folder)!r}")
    return tables, len(files) - len(tables)


def _all_end(paths: Sequence[str], endings: tuple[str, ...]) -> bool:
    names = (path.partition("?")[0] if "://" in path else path for path in paths)
    return all(path.lower().endswith(endings) for path in names)


def _lake(folder: Path) -> str | None:
    """Return the name of the table format whose files a folder holds, None for plain files."""
    for marker, lake_format in LAKE_FORMATS.items():
        if any(folder.glob(marker)):
            return lake_format
    return None


def _require_no_lake(paths: Sequence[str]) -> None:
    """Raise if files belong to a table format that says elsewhere which rows are still there."""
    # Any folder above a file may be that of the table: partitions are folders below it.
    folders: set[Path] = set()
    for path in paths:
        folders.update(Path(os.path.abspath(path)).parents)
    for folder in folders:
        lake_format = _lake(folder)
        if lake_format is not None:
            raise InvalidInput(
                f"'source': files of the {lake_format} table {str(folder)!r} may hold deleted "
                "rows; name the folder of a Delta table; read another with Spark or its own "
                "library and give the frame or the record batches, as of pyiceberg's "
                "to_arrow_batch_reader()"
            )


def _open_excel(path: str, options: ReadOptions) -> SqlTable:
    """Open a sheet of an Excel file, without its empty rows."""
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise MissingExtra("openpyxl", extra="excel", purpose="Excel files") from None
    with as_bad_data(repr(path)), open(path, "rb") as file:  # a damaged book would leave it open
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        sheet = options.table
        if sheet is None and len(book.sheetnames) > 1:
            fields = {"file": path, "sheets": list(book.sheetnames)}
            raise InvalidReading(Problem("sheet-needed", fields))
        if sheet is not None and sheet not in book.sheetnames:
            raise UnknownName("sheet", sheet, book.sheetnames)
        cells = book[sheet or book.sheetnames[0]].iter_rows(values_only=True)
        header = [str(cell or "").strip() for cell in next(cells, ())]
        if not any(header):
            raise BadData(f"cannot read {path!r}: the sheet's first row must name the columns")
        require_once(options.used, header)
        rows = [row for row in cells if any(cell is not None for cell in row)]
    # Transposed. Cells may stick out beside the header, as remarks do, and have no column then.
    columns = {name: column for name, *column in zip_longest(header, *rows) if name}
    return duckdb_table(repr(path), _scan_columns(columns))


# -- frames and columns in memory, and frames with an engine of their own --------------------------


@contextmanager
def share_connection() -> Iterator[None]:
    """Let tables that are opened meanwhile use one connection, so that DuckDB can join them."""
    token = shared_connection.set(_new_connection(None))
    try:
        yield
    finally:
        shared_connection.reset(token)


def connect(path: str | None = None) -> DuckDBPyConnection:
    """Return a connection: the shared one if there is one and no path, else a new one."""
    shared = shared_connection.get()
    return shared if shared is not None and path is None else _new_connection(path)


def _new_connection(path: str | None) -> DuckDBPyConnection:
    """Return a quiet connection that fetches nothing from the network and counts days in UTC.

    Without a path it is in memory, and readings of one process share the engine, since to start one
    takes longer than to read a small table; they share nothing else.
    """
    connection = duckdb.connect(path or f":memory:{os.getpid()}", read_only=path is not None)
    for setting in (
        "enable_progress_bar = false",  # which a notebook without ipywidgets does not have
        "autoinstall_known_extensions = false",
        "pandas_analyze_sample = 0",  # objects are text: no type is guessed
        "TimeZone = 'UTC'",
    ):
        with suppress(duckdb.Error):
            connection.execute(f"SET {setting}")
    return connection


def _scan_columns(columns: Mapping[Any, Any]) -> DuckDBPyRelation:
    """Let DuckDB scan a mapping of names to lists, arrays or series; objects are read as text."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, column in columns.items():
        is_scannable = isinstance(column, np.ndarray) and column.dtype.kind != "U"
        arrays[str(name)] = column if is_scannable else np.array(column, dtype=object)
    shapes = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or () in shapes.values():
        lengths = ", ".join(f"{shape} in {name!r}" for name, shape in shapes.items()) or "no column"
        raise InvalidInput(
            "'source' as a mapping must hold columns: lists or arrays that are equally long; got "
            f"shapes {lengths}"
        )
    for name, array in arrays.items():
        require_single_values(name, array)
    # Registered tables of a shared connection need different names.
    connection = connect()
    name = "columns" if shared_connection.get() is None else f"columns {uuid4().hex}"
    connection.register(name, arrays)
    # As a statement: earlier versions of DuckDB take the quotes for a part of the name.
    return connection.sql(f'FROM "{name}"')


def _open_in_memory(source: Any, package: str, options: ReadOptions) -> SqlTable:
    """Let DuckDB scan a table in memory, or one that comes as record batches."""
    type_name = type(source).__name__
    name = f"the {package} {type_name}"
    if package == "pandas" and type_name == "DataFrame":
        require_once(options.used, [str(column) for column in source.columns])
        for column in options.used:
            if column in source.columns and source[column].dtype == object:
                require_single_values(column, source[column].to_numpy())
        return duckdb_table(name, connect().from_df(source))
    if package == "deltalake":
        source = source.to_pyarrow_dataset()  # without the rows that were deleted
    elif package == "pyarrow" and hasattr(source, "schema"):
        require_once(options.used, source.schema.names)
        _require_no_lake(getattr(source, "files", []) or [])
    elif not hasattr(source, "__arrow_c_stream__"):
        raise InvalidInput(
            "'source' must be a path, a list of paths, an address of a database, a pandas, polars, "
            "pyarrow, Spark or ibis table, a mapping of columns, a DuckDB connection or relation, "
            "a SQLAlchemy engine or connection (of a session: session.get_bind()) or a DeltaTable; "
            f"got {type(source).__module__}.{type_name}"
        )
    with as_bad_data(name):  # as where pyarrow is not there
        if type_name == "RecordBatchReader":  # which can be read once
            source = source.read_all()
        return duckdb_table(name, connect().from_arrow(source))


def _open_lazy(source: Any, package: str) -> LazyTable:
    """Open a frame that has an engine of its own; polars can do more than ibis on polars."""
    with warnings.catch_warnings(), as_bad_data("'source'"):
        warnings.simplefilter("ignore")
        engine = source.get_backend().name if package == "ibis" else ""
        if engine == "polars":
            source = source.get_backend().compile(source)
        rows: nw.LazyFrame[Any] = nw.from_native(source).lazy()
        columns = rows.collect_schema().names()
    engine = engine or str(rows.implementation.value)
    name = "the ibis table" if package == "ibis" else f"the {engine} frame"
    return LazyTable(name, engine, rows, columns)


# -- databases, and files by what they are ---------------------------------------------------------


def _open_place(place: str, options: ReadOptions) -> Table | None:
    """Open a database, an Excel file or a Delta table by its address; None: it is none of them."""
    scheme, separator, _ = place.partition("://")
    if separator and scheme not in REMOTE_SCHEMES:
        return _open_database(_engine_of(place), options)
    if place.lower().endswith((".xlsx", ".xlsm")):
        return _open_excel(place, options)
    if _lake(Path(place)) == "Delta":
        try:
            import deltalake
        except ModuleNotFoundError:
            raise MissingExtra("deltalake", extra="lake", purpose="Delta tables") from None
        with as_bad_data(f"the Delta table {place!r}"):
            rows = deltalake.DeltaTable(place).to_pyarrow_dataset()
            return duckdb_table(repr(place), connect().from_arrow(rows))
    if not os.path.isfile(place) or not os.access(place, os.R_OK):
        return None
    # Database files have all kinds of endings, so their first bytes decide.
    with open(place, "rb") as file:
        first_bytes = file.read(16)
    if first_bytes.startswith(b"SQLite format 3\0"):
        # The name is a URI, in which % ? and # have a meaning.
        uri = f"file:{quote(os.path.abspath(place))}"
        url = sql.URL.create("sqlite", database=uri, query={"mode": "ro", "uri": "true"})
        return _open_database(sql.create_engine(url, poolclass=sql.NullPool), options)
    if first_bytes[8:12] == b"DUCK":
        return _open_duckdb(repr(place), connect(place), options)
    return None


def _engine_of(url: str) -> sql.Engine:
    """Return an engine for an address such as ``postgresql://host/bank``."""
    check_database_url(url)  # its words quote no password, those of drivers may
    try:
        parsed = sql.make_url(url.replace("postgres://", "postgresql://", 1))
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        # No pool: a reading asks a few queries and must not keep a connection open.
        return sql.create_engine(parsed, poolclass=sql.NullPool)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"'source' {parsed.drivername}://… needs the Python package {error.name!r}; for "
            "PostgreSQL: pip install 'psycopg[binary]'"
        ) from None
    except (ArgumentError, ValueError):
        raise InvalidInput(
            "'source' is no address of files, and of no database with a SQLAlchemy dialect that "
            "is installed"
        ) from None


def _open_database(engine: sql.Engine, options: ReadOptions) -> SqlTable:
    address = engine.url.render_as_string(hide_password=False)
    with as_bad_data(f"the database {display_url(address)}", secret_of=address):
        table_names = sql.inspect(engine).get_table_names()
    name = "the query" if options.query is not None else f"the table {options.table!r}"
    rows = _from_clause(options, table_names)

    def run(query: Query) -> Rows:
        with as_bad_data(name, secret_of=address), engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    # The database names the columns of any table or query, without reading a row.
    no_rows = sql.select(sql.text("*")).select_from(rows).where(sql.text("1 = 0"))
    with as_bad_data(name, secret_of=address), engine.connect() as connection:
        columns = list(connection.execute(no_rows).keys())
    return SqlTable(name, engine.dialect.name, rows, columns, run)


def _open_duckdb(name: str, connection: DuckDBPyConnection, options: ReadOptions) -> SqlTable:
    with as_bad_data(name):
        listing = "SELECT table_name FROM information_schema.tables ORDER BY 1"
        table_names = [row[0] for row in connection.execute(listing).fetchall()]
        query = sql.select(sql.text("*")).select_from(_from_clause(options, table_names))
        return duckdb_table(name, connection.from_query(duckdb_text(query)))


def _from_clause(options: ReadOptions, table_names: Sequence[str]) -> FromClause:
    """Return the table or the query to read from; exactly one of the two must be named."""
    if (options.table is None) == (options.query is None):
        fields = {"tables": list(table_names[:20]) or ["none"]}
        raise InvalidReading(Problem("table-or-query-needed", fields))
    if options.query is not None:
        text = options.query.strip().rstrip(";").replace(":", "\\:")  # no colon names a parameter
        return sql.text(f"({text}) AS past")
    table = str(options.table)
    schema, _, table_name = table.rpartition(".") if table not in table_names else ("", "", table)
    # "database.schema.table" has a dot in its schema: quoted, it would be read as one name.
    quoted_schema = sql.quoted_name(schema, "." not in schema) if schema else None
    return sql.table(sql.quoted_name(table_name, True), schema=quoted_schema)
