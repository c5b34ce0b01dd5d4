"""A program that reads tables, each in a process with limits of memory and time of its own.

A hostile file can only stop that process, and the libraries that read tables are loaded once
(``job_program.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise._job_program import serve_jobs
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history.problems import InvalidReading, UnreadTable

MAX_PEOPLE = 100_000  # people in one upload
MAX_COLUMNS = 500  # of a table and its outcomes that are listed
MAX_VALUE_CHARACTERS = 200  # of a value that is listed
# What the two files are called in a list of columns.
TABLE = "table"
OUTCOMES = "outcomes"


def _main() -> None:
    import equipoise.history.counting
    import equipoise.history.guided_reading
    import equipoise.people  # noqa: F401

    serve_jobs(_answer)


def _answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is found in a table, or why it cannot be read."""
    _limit_engine(job["memory"], job["folder"])
    try:
        _require_table(job["path"])
        return {"found": _find(job)}
    except MemoryError:
        raise
    except Exception as error:  # a broken file may raise anything in the library that reads it
        if "Out of Memory" in str(error):  # of the engine, whose limit is smaller
            raise MemoryError from None
        return _refusal(error)


def _refusal(error: Exception) -> dict[str, Any]:
    """Return why the table cannot be read, with its problems and a proposal if there are any."""
    is_our_message = isinstance(error, EquipoiseError)
    refusal: dict[str, Any] = {
        "error": str(error) if is_our_message else f"cannot read the table: {error}"
    }
    if isinstance(error, UnreadTable | InvalidReading):
        refusal["problems"] = [problem.to_dict() for problem in error.problems]
    if isinstance(error, UnreadTable) and error.proposal is not None:
        refusal["proposal"] = error.proposal.to_dict()
    return refusal


def _limit_engine(memory: int, folder: str) -> None:
    """Limit the engine in this process, and let it write to ``folder`` only.

    It would otherwise take what the machine has.
    """
    import duckdb

    connect = duckdb.connect

    # Replaced in the module, because the reader opens connections in several places.
    def connect_within_limits(*args: Any, **kwargs: Any) -> duckdb.DuckDBPyConnection:
        connection = connect(*args, **kwargs)
        # The other half is for what Python makes of the rows.
        connection.execute(f"SET memory_limit = '{memory // 2}B'")
        connection.execute("SET threads = 2")
        connection.execute("SET temp_directory = ?", [folder])
        return connection

    duckdb.connect = connect_within_limits


def _find(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the job asks for: rows about people, the columns, or counts."""
    if "people" in job:
        return _people(job)
    return _columns(job) if job.get("columns") else _counts(job)


def _columns(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a table, and of its table of outcomes, with their values."""
    from equipoise.history.guided_reading import profile_columns

    options = dict(job["options"])
    outcomes = options.pop("outcomes", None)
    # The paths are copies in a folder of the server, so the answer has other names for them.
    names = {job["path"]: TABLE, outcomes: OUTCOMES}
    places = [job["path"]] if outcomes is None else [job["path"], outcomes]
    profiles = []
    for profile in profile_columns(places, **options)[:MAX_COLUMNS]:
        values = dict(profile.values)
        if any(len(value) > MAX_VALUE_CHARACTERS for value in values):
            values = {}  # texts, which are no groups
        profiles.append({"file": names[profile.file], "column": profile.column, "values": values})
    return {"columns": profiles}


def _counts(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of a table of past decisions, its notes and the meaning of its values."""
    from equipoise.history import History

    history = History.read(job["path"], **job["options"])
    summary = history.summary
    return {
        "cells": history.cells.to_dict(),
        "notes": [note.to_dict() for note in history.notes],
        "waterfall": summary.waterfall if summary else {},
        "coding": history.coding and history.coding.to_json(),
        "deciders": history.deciders,
    }


def _people(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a table of people, and of every row the line, cells and problem.

    The cells are those of ``columns``, in that order: the columns that the job asks for.
    """
    from equipoise.people import read_people

    table = read_people(Path(job["path"]))
    columns = [column for column in table.header if column in job["people"]]
    rows: list[tuple[int, list[Any], str]] = []
    for row in table.rows:
        if len(rows) == MAX_PEOPLE:
            raise InvalidInput(f"a table may hold at most {MAX_PEOPLE:,} people; send it in parts")
        rows.append((row.line, [row.cells.get(column) for column in columns], row.problem))
    return {"header": table.header, "columns": columns, "rows": rows}


def _require_table(path: str) -> None:
    """Refuse databases in disguise."""
    with Path(path).open("rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3") or start[8:12] == b"DUCK":
        raise InvalidInput("a table must be a CSV, Parquet or Excel file; got a database")


if __name__ == "__main__":
    _main()
