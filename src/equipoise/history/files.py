"""Files and folders of past decisions, local or remote."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from equipoise.errors import BadData, EquipoiseError, InvalidInput, MissingExtra, UnknownName
from equipoise.history.database import DatabaseSource, engine_of, require_table
from equipoise.history.duck import DuckSource, connect, identifier
from equipoise.history.paths import CSV_ENDINGS, PARQUET_ENDINGS, all_end, find_files
from equipoise.history.source import Reading, Source, require_columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlalchemy import Engine

__all__ = ["open_connection", "open_delta", "open_files", "require_no_lake"]

EXCEL_ENDINGS = (".xlsx", ".xlsm")
REMOTE = (
    "http://",
    "https://",
    "s3://",
    "gs://",
    "gcs://",
    "az://",
    "abfss://",
    "hdfs://",
    "r2://",
)
LAKES = {"_delta_log": "Delta", ".hoodie": "Hudi"}


def open_files(
    patterns: Sequence[str],
    columns: Sequence[str],
    *,
    table: str | None = None,
    query: str | None = None,
    encoding: str | None = None,
) -> Source:
    """Open paths, globs, folders, database files or addresses."""
    if len(patterns) == 1:
        single = _open_single(patterns[0], columns, table, query)
        if single is not None:
            return single
    if table is not None or query is not None:
        raise InvalidInput(
            f"'table' and 'query' belong to databases and Excel files; {patterns[0]!r} is neither"
        )
    import duckdb

    files = find_files(patterns)
    paths = files.paths
    require_no_lake(paths)
    name = repr(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]!r} on"
    connection = connect()
    if all_end(paths, PARQUET_ENDINGS):
        reader, options = "read_parquet", ""
    elif all_end(paths, CSV_ENDINGS):
        with _Sniffing(name, duckdb.Error):
            reader, options = "read_csv", _csv_options(connection, paths, encoding)
    else:
        raise _neither(paths)

    def rows(hive: bool) -> str:
        return (
            f"FROM {reader}({_listed(paths)}, union_by_name = {len(paths) > 1}, "
            f"hive_partitioning = {hive}, hive_types_autocast = false{options})"
        )

    with _Sniffing(name, duckdb.Error):
        own = connection.from_query(rows(hive=False)).columns
    hive = files.partitioned(own, columns)
    if reader == "read_csv":
        if len(own) == 1 and len(columns) > 1 and not hive:
            raise BadData(
                f"cannot read {name}: it seems to have the single column {own[0]!r}; every line "
                "must have as many cells as the first, with the same separator"
            )
        _require_one_of_each(connection, paths, own, columns, options)
    return DuckSource(name, lambda: connection.from_query(rows(hive)), columns, notes=files.notes)


def open_connection(
    connection: DuckDBPyConnection,
    name: str,
    columns: Sequence[str],
    *,
    table: str | None,
    query: str | None,
) -> Source:
    """Open a table or a query of a DuckDB connection; no order of rows is taken for granted."""
    known = [
        row[0]
        for row in connection.execute(
            "SELECT table_name FROM information_schema.tables ORDER BY 1"
        ).fetchall()
    ]
    require_table(table, query, known)
    if query is not None:
        said = query
    else:
        assert table is not None
        parts = [table] if table in known else table.split(".")
        if parts[-1] not in known:
            raise UnknownName("table", table, known)
        said = f"FROM {'.'.join(identifier(part) for part in parts)}"
    return DuckSource(name, lambda: connection.from_query(said), columns, ordered=False)


def require_no_lake(paths: Sequence[str]) -> None:
    """Raise if files belong to a table format that says elsewhere which rows are still there."""
    seen: set[Path] = set()
    for path in paths:
        for folder in Path(os.path.abspath(path)).parents:
            if folder in seen:
                break
            seen.add(folder)
            kind = _lake(folder)
            if kind is not None:
                raise InvalidInput(
                    f"'source' {path!r} is a file of the {kind} table {str(folder)!r}; read alone "
                    f"it may hold deleted rows; name the table's folder instead"
                )


def _open_single(
    place: str, columns: Sequence[str], table: str | None, query: str | None
) -> Source | None:
    """Open what is not a set of CSV or Parquet files; None if it is one."""
    if place.startswith(REMOTE):
        return _open_remote(place, columns)
    if "://" in place and not place.startswith("file://"):
        return DatabaseSource(engine_of(place), columns, table=table, query=query)
    if os.path.isdir(place):
        return _open_lake(place, columns)
    if not os.path.isfile(place):
        return None
    start = _first_bytes(place)
    if start.startswith(b"SQLite format 3\0"):
        return DatabaseSource(_sqlite_engine(place), columns, table=table, query=query)
    if start[8:12] == b"DUCK":
        connection = connect(place, read_only=True)
        return open_connection(connection, repr(place), columns, table=table, query=query)
    if place.lower().endswith(EXCEL_ENDINGS):
        return _open_excel(place, columns, table)
    if place.lower().endswith(".xls"):
        raise InvalidInput(f"'source' {place!r} is an old Excel file; save it as .xlsx")
    return None


def _sqlite_engine(path: str) -> Engine:
    import sqlalchemy

    # SQLite takes the name for a URI, in which % ? and # have a meaning.
    name = f"file:{quote(os.path.abspath(path))}"
    url = sqlalchemy.URL.create("sqlite", database=name, query={"mode": "ro", "uri": "true"})
    return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)


def _first_bytes(path: str) -> bytes:
    if not os.access(path, os.R_OK):
        return b""
    with open(path, "rb") as file:
        return file.read(16)


def _open_remote(place: str, columns: Sequence[str]) -> Source:
    import duckdb

    connection = connect()
    file = place.partition("?")[0]
    reader = "read_parquet" if all_end([file], PARQUET_ENDINGS) else "read_csv"
    try:
        connection.execute("LOAD httpfs")
    except duckdb.Error:
        raise InvalidInput(
            f"'source' {place!r} is remote: DuckDB reads it with its extension httpfs, which is "
            "not installed; where the network may be used, duckdb.sql('INSTALL httpfs') fetches "
            "it once; or copy the file here"
        ) from None
    more = "" if reader == "read_parquet" else ", header = true, all_varchar = true, quote = '\"'"
    said = f"FROM {reader}({_literal(place)}{more})"
    return DuckSource(repr(place), lambda: connection.from_query(said), columns)


def _open_lake(folder: str, columns: Sequence[str]) -> Source | None:
    kind = _lake(Path(folder))
    if kind is None:
        return None
    if kind != "Delta":
        raise InvalidInput(
            f"'source' {folder!r} is {'an' if kind[0] == 'I' else 'a'} {kind} table, whose files "
            "may hold deleted rows; read it with Spark or its own library and give the frame or "
            "the record batches, for example pyiceberg's table.scan().to_arrow_batch_reader()"
        )
    if importlib.util.find_spec("deltalake") is None:
        raise MissingExtra("deltalake", extra="lake", purpose="Delta tables")
    import deltalake

    try:
        return open_delta(deltalake.DeltaTable(folder), repr(folder), columns)
    except deltalake.exceptions.DeltaError as error:
        raise BadData(f"cannot read the Delta table {folder!r}: {error}") from None


def open_delta(table: Any, name: str, columns: Sequence[str]) -> Source:
    """Open a Delta table as its own library reads it: without the rows that were deleted."""
    dataset, connection = table.to_pyarrow_dataset(), connect()
    return DuckSource(name, lambda: connection.from_arrow(dataset), columns)


def _lake(folder: Path) -> str | None:
    for mark, kind in LAKES.items():
        if (folder / mark).is_dir():
            return kind
    if next(folder.glob("metadata/*.metadata.json"), None) is not None:
        return "Iceberg"
    return None


def _open_excel(path: str, columns: Sequence[str], sheet: str | None) -> Source:
    if importlib.util.find_spec("openpyxl") is None:
        raise MissingExtra("openpyxl", extra="excel", purpose="Excel files")
    import numpy as np

    try:
        header, rows = _excel_rows(path, columns, sheet)
    except EquipoiseError:
        raise
    except Exception as error:  # whatever a broken file does to the library that reads it
        raise BadData(f"cannot read {path!r}: {type(error).__name__}: {error}") from None
    arrays = {
        name: np.array([row[at] for row in rows], dtype=object) for at, name in enumerate(header)
    }
    connection = connect()
    connection.register("arrays", arrays)
    return DuckSource(repr(path), lambda: connection.table("arrays"), columns)


def _excel_rows(
    path: str, columns: Sequence[str], sheet: str | None
) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Return the wanted columns' names and rows; a sheet may be wider than memory can hold."""
    import openpyxl

    with open(path, "rb") as file:  # a damaged book would leave it open
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        if sheet is None and len(book.sheetnames) > 1:
            raise InvalidInput(
                f"'source' {path!r} has several sheets; name one with 'table' (--table): "
                f"{', '.join(book.sheetnames)}"
            )
        if sheet is not None and sheet not in book.sheetnames:
            raise UnknownName("sheet", sheet, book.sheetnames)
        rows = book[sheet or book.sheetnames[0]].iter_rows(values_only=True)
        header = [str(cell).strip() if cell is not None else "" for cell in next(rows, ())]
        require_columns(columns, header)
        places = {name: at for at, name in enumerate(header) if name in columns}
        kept = [
            tuple(_cell(row, at) for at in places.values())
            for row in rows
            if any(cell is not None for cell in row)
        ]
        return list(places), kept


def _cell(row: Sequence[Any], at: int) -> str | None:
    value = row[at] if at < len(row) else None
    return None if value is None else str(value)


def _listed(paths: Sequence[str]) -> str:
    # Names are taken as they are: a bracket in one would be read as a pattern.
    return "[" + ", ".join(_quoted(path) for path in paths) + "]"


def _quoted(path: str) -> str:
    return _literal("".join(f"[{c}]" if c in "*?[" else c for c in path))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _Sniffing(Reading):
    """Say what a CSV file must be like where DuckDB says that it cannot tell."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self.kind) and "Error when sniffing" in str(error):
            raise BadData(
                f"cannot read {self.name}: it must have one separator and one kind of line end, "
                'and a cell that begins with a quote must end with one, those within it doubled: "'
                '""so-called"" bank"'
            ) from None
        super().__exit__(kind, error, trace)


def _csv_options(connection: DuckDBPyConnection, paths: Sequence[str], encoding: str | None) -> str:
    """Return how CSV files are read: as text, in an encoding, with one way to quote cells."""
    # A guessed type would fail on the first row that breaks the guess.
    options = ", header = true, all_varchar = true"
    if encoding is not None:
        options += f", encoding = {_literal(encoding)}"
    else:
        for path in paths:
            _require_utf8(path)
    # DuckDB looks at the first rows alone: where these have no quotes it would take those of later
    # rows for a part of their values.
    for path in paths:
        sniffed = f"SELECT Quote FROM sniff_csv({_quoted(path)}{options})"
        if connection.execute(sniffed).fetchall() == [("'",)]:
            return f"{options}, skip = 0"
    return f"{options}, skip = 0, quote = '\"'"


def _require_one_of_each(
    connection: DuckDBPyConnection,
    paths: Sequence[str],
    own: Sequence[str],
    columns: Sequence[str],
    options: str,
) -> None:
    """Raise if a header names a wanted column twice; DuckDB would call the second one ``_1``."""
    if not any(f"{column}_1" in own for column in columns):
        return
    options = options.replace("header = true", "header = false")
    for path in paths:
        first = f"FROM read_csv({_listed([path])}{options}) LIMIT 1"
        (header,) = connection.execute(first).fetchall()
        require_columns([column for column in columns if column in header], header)


def _neither(paths: Sequence[str]) -> InvalidInput:
    endings = ", ".join(sorted({Path(path).suffix or "no ending" for path in paths}))
    return InvalidInput(
        f"'source' must be CSV ({', '.join(CSV_ENDINGS[:3])}) or Parquet files "
        f"({', '.join(PARQUET_ENDINGS)}), one kind at a time, an Excel file (.xlsx), or a database "
        f"file (.sqlite, .duckdb); got {endings}"
    )


def _require_utf8(path: str) -> None:
    """Raise if the file's beginning is in another encoding, and say which."""
    if path.lower().endswith((".gz", ".zst")):
        return
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    text = head[: head.rfind(b"\n") + 1]
    if head.startswith(b"\xfe\xff") or head[::2].count(0) > len(head) // 4:
        said, way = "UTF-16 (big-endian)", _converted("UTF-16BE")
    elif head.startswith(b"\xff\xfe") or head[1::2].count(0) > len(head) // 4:
        said, way = "UTF-16", "encoding='utf-16' (--encoding utf-16) reads it"
    else:
        try:
            text.decode()
            return
        except UnicodeDecodeError:
            if any(0x80 <= byte < 0xA0 for byte in head):
                said, way = "not UTF-8, most likely Windows-1252", _converted("WINDOWS-1252")
            else:
                said = "not UTF-8, most likely Latin-1"
                way = "encoding='latin-1' (--encoding latin-1) reads it"
    raise BadData(f"cannot read {path!r}: it is {said}; {way}")


def _converted(code: str) -> str:
    return f"write it as UTF-8 first: iconv -f {code} -t UTF-8 FILE > NEW (or save it so)"
