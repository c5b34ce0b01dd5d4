"""Files and folders of past decisions, local or remote: CSV, Parquet, Excel, Delta.

DuckDB scans CSV and Parquet where they are; cells of CSV are text, so that no type is guessed.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from equipoise.errors import BadData, InvalidInput, MissingExtra, UnknownName
from equipoise.history.options import ReadOptions
from equipoise.history.tables import SqlTable, relation, require_once, translated
from equipoise.history.values import require_plain

CSV = tuple(f".{kind}{end}" for kind in ("csv", "tsv", "txt") for end in ("", ".gz", ".zst"))
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
LAKES = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata/*.metadata.json": "Iceberg"}


def open_files(patterns: Sequence[str], options: ReadOptions) -> SqlTable:
    """Open paths, globs, folders and addresses of files."""
    first = patterns[0]
    if len(patterns) == 1 and _lake(Path(first)) == "Delta":
        return _open_delta(first)
    if len(patterns) == 1 and first.lower().endswith(EXCEL):
        return _open_excel(first, options)
    if options.table is not None or options.query is not None:
        raise InvalidInput(
            f"'table' and 'query' belong to databases and Excel files; {first!r} is neither"
        )
    notes: list[str] = []
    paths = [path for pattern in patterns for path in _found(pattern, notes)]
    _require_each_once(paths)
    require_no_lake(paths)
    name = repr(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]!r} on"
    if _all_end(paths, PARQUET):
        scan, how = "read_parquet", ""
    elif _all_end(paths, CSV):
        # DuckDB would guess from the first rows alone, and take later quotes for part of a value.
        scan, how = "read_csv", ", header = true, all_varchar = true, skip = 0, quote = '\"'"
        how += f", encoding = {_literal(options.encoding)}" if options.encoding else ""
    else:
        endings = ", ".join(sorted({Path(path).suffix or "no ending" for path in paths}))
        raise InvalidInput(
            f"'source' must be CSV ({', '.join(CSV)}) or Parquet files ({', '.join(PARQUET)}), "
            "one kind at a time, an Excel file (.xlsx), or a database file (.sqlite, .duckdb); got "
            f"{endings}"
        )
    connection = connect()

    def rows(how: str, paths: Sequence[str]) -> duckdb.DuckDBPyRelation:
        files = f"[{', '.join(map(_quoted, paths))}], union_by_name = {len(paths) > 1}"
        return connection.from_query(f"FROM {scan}({files}{how})")

    with translated(name):
        own = rows(f"{how}, hive_partitioning = false", paths).columns
        hive = _are_columns(paths, own, options.used)
        if scan == "read_csv" and len(own) == 1 and not hive:
            raise BadData(
                f"cannot read {name}: it is empty, or seems to have the single column {own[0]!r}; "
                "every line must have as many cells as the first, with the same separator"
            )
        if scan == "read_csv" and any(f"{column}_1" in own for column in options.used):
            bare = how.replace("header = true", "header = false")
            for path in paths:  # DuckDB calls the second of two columns _1
                require_once(options.used, rows(bare, [path]).limit(1).fetchall()[0])
        how += f", hive_partitioning = {hive}, hive_types_autocast = false"
        return relation(name, rows(how, paths), tuple(notes))


def connect(path: str | None = None, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a quiet connection that fetches nothing from the network and counts days in UTC.

    Without a path it is to the memory of this process: readings at the same time share the engine,
    whose start takes longer than a small table, and nothing else.
    """
    connection = duckdb.connect(path or f":memory:{os.getpid()}", read_only=read_only)
    for setting in (
        "enable_progress_bar = false",  # which a notebook without ipywidgets does not have
        "autoinstall_known_extensions = false",
        "pandas_analyze_sample = 0",  # objects are text: no type is guessed
        "TimeZone = 'UTC'",
    ):
        with suppress(duckdb.Error):
            connection.execute(f"SET {setting}")
    return connection


def scan_columns(columns: Mapping[Any, Any]) -> duckdb.DuckDBPyRelation:
    """Let DuckDB scan a mapping of names to lists, arrays or series; objects are read as text."""
    arrays = {
        str(name): column
        if isinstance(column, np.ndarray) and column.dtype.kind != "U"
        else np.array(column, dtype=object)
        for name, column in columns.items()
    }
    shapes = {name: array.shape[:1] for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or () in shapes.values():
        found = ", ".join(f"{shape} in {name!r}" for name, shape in shapes.items()) or "no column"
        raise InvalidInput(
            "'source' as a mapping must hold columns: lists or arrays that are equally long; got "
            f"shapes {found}"
        )
    for name, array in arrays.items():
        require_plain(name, array)
    connection = connect()
    connection.register("columns", arrays)
    return connection.table("columns")


def require_no_lake(paths: Sequence[str]) -> None:
    """Raise if files belong to a table format that says elsewhere which rows are still there."""
    for folder in {folder for path in paths for folder in Path(os.path.abspath(path)).parents}:
        if kind := _lake(folder):
            raise InvalidInput(
                f"'source': files of the {kind} table {str(folder)!r} may hold deleted rows; name "
                "the folder of a Delta table; read another with Spark or its own library and give "
                "the frame or the record batches, as of pyiceberg's to_arrow_batch_reader()"
            )


# -- which files a path, a glob or a folder means --------------------------------------------------


def _found(pattern: str, notes: list[str]) -> list[str]:
    """Return the files that are meant; note those of a folder that are left out."""
    pattern = pattern.removeprefix("file://")
    if os.path.isdir(pattern):
        files = [
            str(path)
            for path in sorted(Path(pattern).rglob("*"), key=str)
            if path.is_file() and not any(p[0] in "._" for p in path.relative_to(pattern).parts)
        ]
        paths = [path for path in files if _all_end([path], (*PARQUET, *CSV))]
        if left := len(files) - len(paths):
            notes.append(
                f"Folder {pattern!r}: {left:,} of {len(files):,} files were left out, as neither "
                "CSV nor Parquet."
            )
    elif "://" in pattern or os.path.exists(pattern):
        paths = [pattern]
    else:
        paths = sorted(glob.glob(pattern, recursive=True))
    if not paths:
        kind = "CSV or Parquet file in the folder" if os.path.isdir(pattern) else "file"
        raise InvalidInput(f"'source': no {kind} {pattern!r}")
    return paths


def _require_each_once(paths: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        if seen.setdefault(os.path.realpath(path), path) != path or paths.count(path) > 1:
            raise InvalidInput(
                f"'source' holds the file {path!r} twice; its people would count twice: name every "
                "file once"
            )


def _are_columns(paths: Sequence[str], own: Sequence[str], used: Sequence[str]) -> bool:
    """Return whether folders ``name=value`` are columns: where files lack one that is wanted."""
    parts = {part for path in paths for part in Path(path).parts[:-1] if "=" in part}
    names, folders = {column.lower() for column in own}, {p.partition("=")[0] for p in parts}
    if not folders or all(column.lower() in names for column in used):
        return False
    for name in sorted(folders):
        if name.lower() in names:
            raise InvalidInput(
                f"'source': {name!r} is a column of the files and also the name of a folder "
                f"'{name}=…'; rename the folders to read the column, or take the column out of "
                "the files to read the folders' names"
            )
    return True


def _all_end(paths: Sequence[str], endings: tuple[str, ...]) -> bool:
    bare = (path.partition("?")[0] if "://" in path else path for path in paths)
    return all(path.lower().endswith(endings) for path in bare)


def _quoted(path: str) -> str:
    """Return a file's name as SQL: DuckDB would take a star in it for a pattern."""
    return _literal("".join(f"[{c}]" if c in "*?[" and "://" not in path else c for c in path))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# -- files of other kinds --------------------------------------------------------------------------


def _lake(folder: Path) -> str | None:
    return next((kind for mark, kind in LAKES.items() if any(folder.glob(mark))), None)


def _open_delta(folder: str) -> SqlTable:
    try:
        import deltalake
    except ModuleNotFoundError:
        raise MissingExtra("deltalake", extra="lake", purpose="Delta tables") from None
    with translated(f"the Delta table {folder!r}"):
        dataset = deltalake.DeltaTable(folder).to_pyarrow_dataset()
    return relation(repr(folder), connect().from_arrow(dataset))


def _open_excel(path: str, options: ReadOptions) -> SqlTable:
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise MissingExtra("openpyxl", extra="excel", purpose="Excel files") from None
    with translated(repr(path)), open(path, "rb") as file:  # a damaged book would leave it open
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        return relation(repr(path), scan_columns(_sheet(book, path, options)))


def _sheet(book: Any, path: str, options: ReadOptions) -> dict[str, list[Any]]:
    """Return the columns of a sheet, without empty rows."""
    sheet = options.table
    if sheet is None and len(book.sheetnames) > 1:
        raise InvalidInput(
            f"'source' {path!r} has several sheets; name one with 'table' (--table): "
            f"{', '.join(book.sheetnames)}"
        )
    if sheet is not None and sheet not in book.sheetnames:
        raise UnknownName("sheet", sheet, book.sheetnames)
    cells = book[sheet or book.sheetnames[0]].iter_rows(values_only=True)
    header = [str(cell or "").strip() for cell in next(cells, ())]
    if not any(header):
        raise BadData(f"cannot read {path!r}: the sheet's first row must name the columns")
    require_once(options.used, header)
    rows = [row for row in cells if any(cell is not None for cell in row)]
    return {
        name: [row[at] if at < len(row) else None for row in rows]
        for at, name in enumerate(header)
        if name
    }
