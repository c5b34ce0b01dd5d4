"""Files and folders of past decisions, local or remote: CSV, Parquet, Excel, Delta.

DuckDB scans CSV and Parquet where they are; cells of CSV are text, so that no type is guessed.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.errors import BadData, EquipoiseError, InvalidInput, MissingExtra, UnknownName
from equipoise.history.options import Problem, ReadOptions
from equipoise.history.tables import SqlTable, relation, require_once, translated
from equipoise.history.values import require_plain

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from numpy.typing import NDArray

__all__ = ["connect", "open_files", "require_no_lake", "scan_columns"]

CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".csv.zst", ".tsv.zst")
PARQUET = (".parquet", ".pq")
EXCEL = (".xlsx", ".xlsm")
LAKES = {"_delta_log": "Delta", ".hoodie": "Hudi"}


def open_files(patterns: Sequence[str], options: ReadOptions) -> SqlTable:
    """Open paths, globs, folders and addresses of files."""
    first = patterns[0]
    if len(patterns) == 1 and os.path.isdir(first) and (kind := _lake(Path(first))):
        return _open_lake(first, kind)
    if len(patterns) == 1 and first.lower().endswith(".xls"):
        raise InvalidInput(f"'source' {first!r} is an old Excel file; save it as .xlsx")
    if len(patterns) == 1 and first.lower().endswith(EXCEL):
        return _open_excel(_matches(first)[0], options)
    if options.table is not None or options.query is not None:
        raise InvalidInput(
            f"'table' and 'query' belong to databases and Excel files; {first!r} is neither"
        )
    if "://" in first and not first.startswith("file://"):
        return _open_remote(first)
    paths, below, notes = _find(patterns)
    require_no_lake(paths)
    name = repr(paths[0])
    if len(paths) > 1:
        name = f"{len(paths)} files from {name} on"
    connection = connect()
    if _all_end(paths, PARQUET):
        scan, more = "read_parquet", ""
    elif _all_end(paths, CSV):
        with _sniffing(name):
            scan, more = "read_csv", _csv_options(connection, paths, options)
    else:
        endings = ", ".join(sorted({Path(path).suffix or "no ending" for path in paths}))
        raise InvalidInput(
            f"'source' must be CSV ({', '.join(CSV[:3])}) or Parquet files ({', '.join(PARQUET)}), "
            "one kind at a time, an Excel file (.xlsx), or a database file (.sqlite, .duckdb); got "
            f"{endings}"
        )
    many = f"[{', '.join(map(_quoted, paths))}], union_by_name = {len(paths) > 1}"

    def rows(hive: bool) -> DuckDBPyRelation:
        how = f"hive_types_autocast = false, hive_partitioning = {hive}"
        return connection.from_query(f"FROM {scan}({many}{more}, {how})")

    with _sniffing(name):
        own = rows(hive=False).columns
        above = set().union(*(_partitions(Path(path)) for path in paths)) - below
        hive = _are_columns(below, above, own, options.used)
        if scan == "read_csv":
            _require_single(connection, paths, more, own, options.used)
            if len(own) == 1 and not hive:
                raise BadData(
                    f"cannot read {name}: it seems to have the single column {own[0]!r}; every "
                    "line must have as many cells as the first, with the same separator"
                )
        return relation(name, rows(hive), notes)


def connect(path: str = ":memory:", *, read_only: bool = False) -> DuckDBPyConnection:
    """Return a quiet connection that fetches nothing from the network and counts days in UTC."""
    import duckdb

    connection = duckdb.connect(path, read_only=read_only)
    # A bar would stand among our answers; a notebook without ipywidgets has none to switch off.
    with suppress(duckdb.Error):
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET pandas_analyze_sample = 0")  # objects are text: no type is guessed
    with suppress(duckdb.Error):
        connection.execute("SET TimeZone = 'UTC'")
    return connection


def scan_columns(columns: Mapping[Any, Any]) -> DuckDBPyRelation:
    """Let DuckDB scan a mapping of names to lists, arrays or series; objects are read as text."""
    import numpy as np

    arrays: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        array = column if isinstance(column, np.ndarray) else np.array(column, dtype=object)
        if array.ndim == 0:
            raise InvalidInput(
                f"'source' as a mapping must hold columns: {name!r} must be a list or an array of "
                f"values; got {column!r}"
            )
        require_plain(str(name), array)
        if array.dtype.kind in "OU":
            texts = [None if value is None else str(value) for value in array]
            array = np.array(texts, dtype=object)
        arrays[str(name)] = array
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) != 1:
        found = ", ".join(f"{n} in {name!r}" for name, n in sizes.items()) or "no column"
        raise InvalidInput(f"the columns of 'source' must be equally long; got {found}")
    connection = connect()
    connection.register("columns", arrays)
    return connection.table("columns")


def require_no_lake(paths: Sequence[str]) -> None:
    """Raise if files belong to a table format that says elsewhere which rows are still there."""
    seen: set[Path] = set()
    for path in paths:
        for folder in Path(os.path.abspath(path)).parents:
            if folder in seen:
                break
            seen.add(folder)
            if kind := _lake(folder):
                raise InvalidInput(
                    f"'source' {path!r} is a file of the {kind} table {str(folder)!r}; read alone "
                    "it may hold deleted rows; name the table's folder instead"
                )


# -- which files a path, a glob or a folder means --------------------------------------------------


def _find(patterns: Sequence[str]) -> tuple[list[str], set[str], tuple[str, ...]]:
    """Return files, names of folders ``name=value`` below what was given, and what was left out."""
    paths: dict[str, str] = {}
    below: set[str] = set()
    notes: list[str] = []
    for pattern in (pattern.removeprefix("file://") for pattern in patterns):
        for path in _inside(pattern, notes) if os.path.isdir(pattern) else _matches(pattern):
            real = os.path.realpath(path)
            if real in paths:
                again = "" if paths[real] == path else f", once as {path!r}"
                raise InvalidInput(
                    f"'source' holds the file {paths[real]!r} twice{again}; its people would count "
                    "twice: name every file once"
                )
            paths[real] = path
            below |= _partitions(Path(path).relative_to(_root(pattern)))
    return [*paths.values()], below, tuple(notes)


def _are_columns(
    below: set[str], above: set[str], own: Sequence[str], wanted: Sequence[str]
) -> bool:
    """Return whether folders ``name=value`` are columns, beside the files' own ones.

    Those below what was given are, as Hive and Spark write them; those above only if a column is
    wanted that the files do not have.
    """
    names = {column.lower() for column in own}
    if not below and not above & {column for column in wanted if column.lower() not in names}:
        return False
    for name in sorted(below | above):
        if name.lower() in names:
            raise InvalidInput(
                f"'source': {name!r} is a column of the files and also the name of a folder "
                f"'{name}=…'; rename the folders to read the column, or take the column out of "
                "the files to read the folders' names"
            )
    return True


def _matches(pattern: str) -> list[str]:
    paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise InvalidInput(f"'source': no file {pattern!r}")
    for path in paths:
        if os.path.isdir(path):
            raise InvalidInput(f"'source' {pattern!r} matches the folder {path!r}; name files")
        if not os.access(path, os.R_OK):
            raise InvalidInput(f"'source' {path!r} may not be read: permission denied")
        if os.path.getsize(path) == 0:
            raise BadData(f"'source' {path!r} is an empty file")
    return paths


def _inside(folder: str, notes: list[str]) -> list[str]:
    """Return the data files of a folder and of those in it by name; note the others."""
    files = [
        str(path)
        for path in sorted(Path(folder).rglob("*"), key=str)
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(folder).parts)
    ]
    paths = [path for path in files if _all_end([path], (*PARQUET, *CSV))]
    if not paths:
        raise InvalidInput(f"'source' {folder!r} is a folder without CSV or Parquet files")
    rest = [path for path in files if path not in set(paths)]
    others = Counter(Path(path).suffix or "no ending" for path in rest)
    if others:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in others.most_common(5))
        notes.append(
            f"Folder {folder!r}: {others.total():,} of {len(files):,} files were left out, as "
            f"neither CSV nor Parquet: {kinds}{', …' if len(others) > 5 else ''}."
        )
    return paths


def _root(pattern: str) -> Path:
    """Return the folder that was given: above a file, or above the first star of a glob."""
    path = Path(pattern)
    if path.exists():
        return path if path.is_dir() else path.parent
    parts = path.parts
    first = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:first])


def _partitions(path: Path) -> set[str]:
    parts = (part.partition("=") for part in path.parent.parts)
    return {name for name, sign, _ in parts if sign and name}


def _all_end(paths: Sequence[str], endings: tuple[str, ...]) -> bool:
    return all(path.lower().endswith(endings) for path in paths)


# -- CSV -------------------------------------------------------------------------------------------


@contextmanager
def _sniffing(name: str) -> Iterator[None]:
    """Say what a CSV file must be like where DuckDB says that it cannot tell."""
    try:
        with translated(name):
            yield
    except BadData as error:
        if "Error when sniffing" not in str(error):
            raise
        raise BadData(
            f"cannot read {name}: it must have one separator and one kind of line end, and a cell "
            'that begins with a quote must end with one, those within it doubled: "'
            '""so-called"" bank"'
        ) from None


def _csv_options(connection: DuckDBPyConnection, paths: Sequence[str], options: ReadOptions) -> str:
    """Return how CSV files are read: as text, in an encoding, with one way to quote cells."""
    said = ", header = true, all_varchar = true"
    if options.encoding is not None:
        said += f", encoding = {_literal(options.encoding)}"
    else:
        for path in paths:
            _require_utf8(path)
    # DuckDB looks at the first rows alone: where these have no quotes it would take those of later
    # rows for a part of their values.
    for path in paths:
        sniffed = f"SELECT Quote FROM sniff_csv({_quoted(path)}{said})"
        if connection.execute(sniffed).fetchall() == [("'",)]:
            return f"{said}, skip = 0"
    return f"{said}, skip = 0, quote = '\"'"


def _require_single(
    connection: DuckDBPyConnection,
    paths: Sequence[str],
    said: str,
    own: Sequence[str],
    used: Sequence[str],
) -> None:
    """Raise if a wanted column is there twice: DuckDB calls the second ``_1``."""
    if any(f"{column}_1" in own for column in used):
        first = said.replace("header = true", "header = false")
        for path in paths:
            query = f"FROM read_csv({_quoted(path)}{first}) LIMIT 1"
            require_once(used, connection.execute(query).fetchall()[0])


def _require_utf8(path: str) -> None:
    """Raise if the file's beginning is in another encoding, and say which."""
    if path.lower().endswith((".gz", ".zst")):
        return
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    way = "write it as UTF-8 first: iconv -f {} -t UTF-8 FILE > NEW (or save it so)"
    if head.startswith(b"\xfe\xff") or head[::2].count(0) > len(head) // 4:
        way = way.format("UTF-16BE")
        raise BadData(f"cannot read {path!r}: it is UTF-16 (big-endian); {way}")
    if head.startswith(b"\xff\xfe") or head[1::2].count(0) > len(head) // 4:
        raise Problem(f"cannot read {path!r}: it is UTF-16; say so", encoding="utf-16")
    try:
        head[: head.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        said = f"cannot read {path!r}: it is not UTF-8, most likely"
        if any(0x80 <= byte < 0xA0 for byte in head):
            raise BadData(f"{said} Windows-1252; {way.format('WINDOWS-1252')}") from None
        raise Problem(f"{said} Latin-1; say so", encoding="latin-1") from None


def _quoted(path: str) -> str:
    """Return a file's name as SQL: DuckDB would take a star in it for a pattern."""
    return _literal("".join(f"[{c}]" if c in "*?[" else c for c in path))


def _literal(text: str) -> str:
    """Return a text as DuckDB writes it."""
    return "'" + text.replace("'", "''") + "'"


# -- files of other kinds --------------------------------------------------------------------------


def _open_remote(place: str) -> SqlTable:
    import duckdb

    connection = connect()
    try:
        connection.execute("LOAD httpfs")
    except duckdb.Error:
        raise InvalidInput(
            f"'source' {place!r} is remote: DuckDB reads it with its extension httpfs, which is "
            "not installed; where the network may be used, duckdb.sql('INSTALL httpfs') fetches "
            "it once; or copy the file here"
        ) from None
    scan, more = "read_csv", ", header = true, all_varchar = true, quote = '\"'"
    if _all_end([place.partition("?")[0]], PARQUET):
        scan, more = "read_parquet", ""
    with translated(repr(place)):
        rows = connection.from_query(f"FROM {scan}({_literal(place)}{more})")
        return relation(repr(place), rows)


def _lake(folder: Path) -> str | None:
    for mark, kind in LAKES.items():
        if (folder / mark).is_dir():
            return kind
    if next(folder.glob("metadata/*.metadata.json"), None) is not None:
        return "Iceberg"
    return None


def _open_lake(folder: str, kind: str) -> SqlTable:
    if kind != "Delta":
        raise InvalidInput(
            f"'source' {folder!r} is {'an' if kind[0] == 'I' else 'a'} {kind} table, whose files "
            "may hold deleted rows; read it with Spark or its own library and give the frame or "
            "the record batches, for example pyiceberg's table.scan().to_arrow_batch_reader()"
        )
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
    try:
        with open(path, "rb") as file:  # a damaged book would leave it open
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            header, rows = _sheet(book, path, options)
    except EquipoiseError:
        raise
    except Exception as error:  # whatever a broken file does to the library that reads it
        raise BadData(f"cannot read {path!r}: {type(error).__name__}: {error}") from None
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    return relation(repr(path), scan_columns(dict(zip(header, columns, strict=True))))


def _sheet(
    book: Any, path: str, options: ReadOptions
) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """Return the columns' names and rows of a sheet, all of them text."""
    sheet = options.table
    if sheet is None and len(book.sheetnames) > 1:
        raise InvalidInput(
            f"'source' {path!r} has several sheets; name one with 'table' (--table): "
            f"{', '.join(book.sheetnames)}"
        )
    if sheet is not None and sheet not in book.sheetnames:
        raise UnknownName("sheet", sheet, book.sheetnames)
    rows = book[sheet or book.sheetnames[0]].iter_rows(values_only=True)
    header = [str(cell).strip() if cell is not None else "" for cell in next(rows, ())]
    require_once(options.used, header)
    named = {name: at for at, name in enumerate(header) if name}
    kept = [
        tuple(None if at >= len(row) or row[at] is None else str(row[at]) for at in named.values())
        for row in rows
        if any(cell is not None for cell in row)
    ]
    return list(named), kept
