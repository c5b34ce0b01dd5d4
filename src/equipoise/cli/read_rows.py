"""Files of people: CSV, Parquet or JSON lines, row by row with the line that each came from."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from equipoise.errors import BadData, InvalidInput, UnknownName

__all__ = ["Row", "header_of", "read_rows"]

Row = tuple[int, Mapping[str, object] | str]
"""A line number with the row, or with what is wrong with it."""


def read_rows(path: Path, columns: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of a file.

    Parameters
    ----------
    path
        A file that ends in ``.csv``, ``.parquet``, ``.jsonl`` or ``.ndjson``.
    columns
        What a column means -> its name in the file.

    Raises
    ------
    InvalidInput
        Before the first row, if the file cannot be read at all or lacks a column.
    """
    readers = {
        ".csv": _csv,
        ".parquet": _parquet,
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
    }
    if path.suffix not in readers:
        raise UnknownName("kind of file", path.suffix or path.name, readers)
    if not path.is_file():
        raise InvalidInput(f"no such file: {path}")
    return readers[path.suffix](path, columns)


def header_of(path: Path) -> list[str]:
    """Return the names of a file's columns, none where it cannot be read."""
    if not path.is_file():
        return []
    if path.suffix == ".parquet":
        import duckdb

        with duckdb.connect() as database, suppress(duckdb.Error):
            answer = database.execute("SELECT * FROM read_parquet(?) LIMIT 0", [str(path)])
            return [column[0] for column in answer.description or ()]
        return []
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        if path.suffix == ".csv":
            return next(_csv_rows(file), [])
        with suppress(ValueError):
            return list(json.loads(file.readline()))
    return []


def _csv_rows(file: TextIO) -> Any:
    """Return a reader of a file whose header says what stands between its cells: , ; or a tab."""
    first = re.sub('"[^"]*"', "", file.readline())
    file.seek(0)
    return csv.reader(file, delimiter=max(",;\t", key=first.count))


def _csv(path: Path, columns: Mapping[str, str]) -> Iterator[Row]:
    # A byte that is no UTF-8 spoils its own row only: it becomes a character no pseudonym may have.
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = _csv_rows(file)
        header: list[str] = next(reader, [])
        _require_columns(path, columns, header)
        places = [(meaning, header.index(name)) for meaning, name in columns.items()]
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield reader.line_num, f"not CSV: {error}"
                continue
            if cells is None:
                return
            if len(cells) != len(header):
                if cells:
                    what = f"{len(cells)} cells where the header has {len(header)}"
                    yield reader.line_num, what
                continue
            yield reader.line_num, {meaning: cells[at] for meaning, at in places}


def _json_lines(path: Path, columns: Mapping[str, str]) -> Iterator[Row]:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                yield number, f"not JSON: {error}"
                continue
            missing = [n for n in columns.values() if not isinstance(row, dict) or n not in row]
            if missing:
                yield number, f"no {missing[0]!r} in this line (--column says what it is called)"
            else:
                yield number, {meaning: row[name] for meaning, name in columns.items()}


def _parquet(path: Path, columns: Mapping[str, str]) -> Iterator[Row]:
    import duckdb

    with duckdb.connect() as database:
        try:
            header = database.execute("SELECT * FROM read_parquet(?) LIMIT 0", [str(path)])
            _require_columns(path, columns, [column[0] for column in header.description or ()])
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise BadData(f"{path} is not a readable Parquet file: {first}") from error
        chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in columns.values())
        cursor = database.execute(f"SELECT {chosen} FROM read_parquet(?)", [str(path)])
        number = 0
        while part := cursor.fetchmany(10_000):
            for cells in part:
                number += 1
                yield number, dict(zip(columns, cells, strict=True))


def _require_columns(path: Path, columns: Mapping[str, str], header: Sequence[str]) -> None:
    for meaning, name in columns.items():
        if name not in header:
            unknown = UnknownName(f"column of {path.name}", name, header)
            raise BadData(f"{unknown}. Say which one it is: --column {meaning}=NAME")
