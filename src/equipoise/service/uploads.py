"""Uploaded tables, each read in a process of its own.

An uploaded file of a few kilobytes can hold billions of rows. So a table is read in a separate
process whose memory and time are limited, never in the one that answers requests. One table is read
at a time, and a caller must wait until the own earlier table is finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.datastructures import UploadFile

from equipoise.errors import InvalidInput
from equipoise.history.problems import UnreadTable
from equipoise.messages import Problem, ReadingProposal
from equipoise.people import MissingColumn, NumberedRow, PeopleTable
from equipoise.service.forms import Form, read_own_form
from equipoise.service.job_process import JobProcess
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings

TABLE_SUFFIXES = (".csv", ".parquet", ".xlsx")
COPY_BYTES = 1 << 20  # that are copied at a time
TABLE_READER = JobProcess(Path(__file__).with_name("table_reader.py"))  # one for this process

COLUMN_CONTENTS = {
    "person": "the pseudonyms of people",
    "group": "their groups",
    "decision": "the decisions about them",
    "outcome": "their outcomes",
}
"""Role of a column in a table of people -> what it holds."""


def explain_missing_column(error: MissingColumn) -> InvalidInput:
    """Return an error that says, for people who look at a form, which column a table lacks."""
    return InvalidInput(
        f"the table has no column {error.column!r}; it has {', '.join(error.header)}. Give the one "
        f"that holds {COLUMN_CONTENTS[error.role]} the name {error.role!r}, and send the table "
        "again"
    )


class Uploads:
    """Reads tables, one at a time, each in a process of its own."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._reading_turn = asyncio.Lock()
        self._busy_callers: set[str] = set()

    def close(self) -> None:
        """End the reading of a table."""
        TABLE_READER.end_jobs()

    @contextlib.asynccontextmanager
    async def receive_form(self, request: Request) -> AsyncIterator[Form]:
        """Yield a form with its table; refuse it while the caller's earlier one is being read."""
        caller = request.state.caller.name
        if caller in self._busy_callers:
            raise HttpProblem("busy", "your earlier table is still being read")
        # From here to the end, also while it is sent: a slow upload counts as well.
        self._busy_callers.add(caller)
        try:
            yield await read_own_form(request)
        finally:
            self._busy_callers.discard(caller)
            await request.close()

    async def read_people(self, table: UploadFile | None, columns: Sequence[str]) -> PeopleTable:
        """Return the rows of a table of people, with the columns that are asked for."""
        answer = await self.read(table, people=columns)
        rows = (
            NumberedRow(line, dict(zip(answer["columns"], cells, strict=True)), problem)
            for line, cells, problem in answer["rows"]
        )
        return PeopleTable(tuple(answer["header"]), rows)

    async def read(
        self, table: UploadFile | None, outcomes: UploadFile | None = None, **job: Any
    ) -> Any:
        """Return what the program that reads tables finds; see ``table_reader.py``.

        ``outcomes`` is a second table, which is joined by the option ``on``.

        Raises
        ------
        InvalidInput
            If there is no table, or its name has another suffix than those that are read.
        UnreadTable
            If the table cannot be read, with a proposal of how it could be.
        """
        if table is None or table.filename is None:
            raise InvalidInput("choose a table first")
        suffix = _table_suffix(table)
        async with self._reading_turn:  # each may take all the memory that is set aside
            with tempfile.TemporaryDirectory() as folder:
                # The suffix says how to read it. The rest of a sender's name stays out of paths.
                path = Path(folder) / f"table{suffix}"
                await asyncio.to_thread(_copy_upload, table, path)
                if outcomes is not None:
                    outcomes_path = Path(folder) / f"outcomes{_table_suffix(outcomes)}"
                    await asyncio.to_thread(_copy_upload, outcomes, outcomes_path)
                    job["options"] = {**job["options"], "outcomes": str(outcomes_path)}
                answer = await self._run_reader({**job, "path": str(path), "folder": folder})
        if outcomes is not None:  # messages name the file as its sender does, not the server's copy
            answer = _rename_file(answer, str(outcomes_path), str(outcomes.filename))
        if "error" in answer:
            raise _unread_table(answer, str(path), table.filename)
        return answer["found"]

    async def _run_reader(self, job: Mapping[str, Any]) -> Any:
        """Return the answer of the program that reads tables, or an error if it hits its limits."""
        memory = self._settings.read_memory
        seconds = self._settings.read_seconds
        limited_job = {**job, "memory": memory, "seconds": seconds}
        answer = await asyncio.to_thread(TABLE_READER.answer, limited_job)
        if answer is None:
            limit_text = f"reading this table takes more than {memory >> 20:,} MB or {seconds} s"
            return {"error": f"{limit_text}; send fewer rows or columns, or count it by Python"}
        return answer


def _copy_upload(upload: UploadFile, path: Path) -> None:
    """Copy an uploaded file, from its beginning: it may have been read before."""
    upload.file.seek(0)
    with path.open("wb") as file:
        shutil.copyfileobj(upload.file, file, COPY_BYTES)


def _table_suffix(table: UploadFile) -> str:
    """Return the ending of a table's name; raise if it is none that is read."""
    suffix = Path(table.filename or "").suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        known_suffixes = ", ".join(TABLE_SUFFIXES)
        raise InvalidInput(f"a table must be one of {known_suffixes}; got {suffix or 'none'}")
    return suffix


def _rename_file(value: Any, path: str, filename: str) -> Any:
    """Return plain data with the name of an uploaded file in place of the server's path."""
    if isinstance(value, str):
        return value.replace(path, filename)
    if isinstance(value, list):
        return [_rename_file(part, path, filename) for part in value]
    if isinstance(value, dict):
        return {name: _rename_file(part, path, filename) for name, part in value.items()}
    return value


def _unread_table(answer: Mapping[str, Any], path: str, filename: str) -> UnreadTable:
    """Return the reader's error, with the name of the uploaded file in place of the server's."""
    answer = _rename_file(answer, path, filename)
    plain = Problem("plain", {"text": answer["error"]})
    problems = answer.get("problems", [plain.to_dict()])
    proposal = answer.get("proposal")
    return UnreadTable(
        *(Problem.from_dict(problem) for problem in problems),
        proposal=None if proposal is None else ReadingProposal.from_dict(proposal),
    )
