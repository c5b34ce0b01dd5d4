"""A program that reads tables, each in a process with limits of memory and time of its own.

It waits for jobs on standard input, a line of JSON each, and forks a process for every one. So a
hostile file can only stop that process, and the libraries that read tables are loaded once. The
process leaves its answer, in JSON, in the folder of the job. No answer, or half of one, means that
the limits were reached.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history.problems import InvalidReading, UnreadTable

MAX_PEOPLE = 100_000  # people in one upload
MAX_ANSWER_CHARACTERS = 64 << 20  # that the service is ready to read
MAX_COLUMNS = 500  # of a table and its outcomes that are listed
MAX_VALUE_CHARACTERS = 200  # of a value that is listed
ANSWER_NAME = "answer.json"  # of the file in the folder of a job
# What the two files are called in a list of columns.
TABLE = "table"
OUTCOMES = "outcomes"
ADDRESS_SPACE_HEADROOM = 3 << 30  # bytes that engines reserve without using them


def _main() -> None:
    """Do the jobs on standard input in turn, until it ends; say on standard output that one ended.

    Nothing here may start a thread, because a process with threads cannot be forked safely.
    """
    import equipoise.history.counting
    import equipoise.history.guided_reading
    import equipoise.people  # noqa: F401

    for line in sys.stdin.buffer:
        process = os.fork()
        if process == 0:
            _do_job(json.loads(line))
        os.waitpid(process, 0)
        sys.stdout.write("ended\n")
        sys.stdout.flush()


def _do_job(job: Mapping[str, Any]) -> NoReturn:
    """Read a table as the job says, leave the answer in its folder, and end this process."""
    try:
        with open(os.devnull, "r+") as nothing:  # what a library prints is no answer
            os.dup2(nothing.fileno(), sys.stdin.fileno())
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        signal.alarm(2 * job["seconds"])  # the limit of processor time ends most jobs before
        _limit(job["memory"], job["seconds"], job["folder"])
        answer_text = json.dumps(_answer(job), default=str)
        if len(answer_text) <= MAX_ANSWER_CHARACTERS:
            Path(job["folder"], ANSWER_NAME).write_text(answer_text, "utf-8")
    finally:
        os._exit(0)  # what was loaded before the fork is not this process's to tidy up


def _answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is found in a table, or why it cannot be read."""
    try:
        _require_table(job["path"])
        return {"found": _find(job)}
    except MemoryError:
        raise
    except Exception as error:  # a broken file may raise anything in the library that reads it
        if "Out of Memory" in str(error):  # of the engine, whose limit is smaller
            raise
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


def _limit(memory: int, seconds: int, folder: str) -> None:
    """Limit this process, and the engine in it, which writes to ``folder`` only.

    The engine would otherwise take what the machine has.
    """
    limit_resources(memory, seconds)
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


def limit_resources(memory: int, seconds: int) -> None:
    """Limit this process to so many bytes of memory and seconds of processor time."""
    for resource_kind, limit in (
        (resource.RLIMIT_AS, memory + ADDRESS_SPACE_HEADROOM),
        (resource.RLIMIT_DATA, 2 * memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 2 * memory),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(resource_kind, (limit, limit))


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
