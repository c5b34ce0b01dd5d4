"""Uploaded tables, each read in a process of its own.

An uploaded file of a few kilobytes can hold billions of rows, so whoever reads it must be able to
fail alone: a table is read in a process of its own whose memory and time are limited, never in the
one that answers requests. One table at a time is read, and a person waits for their own to be
finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.datastructures import UploadFile

from equipoise.errors import InvalidInput
from equipoise.history.problems import UnreadTable
from equipoise.service.forms import Form, read_own_form
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings

TABLE_SUFFIXES = (".csv", ".parquet", ".xlsx")
READER_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("table_reader.py")))


class Uploads:
    """Reads tables, one at a time, each in a process of its own."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._reading_turn = asyncio.Lock()
        self._busy_callers: set[str] = set()

    @contextlib.asynccontextmanager
    async def receive_form(self, request: Request) -> AsyncIterator[Form]:
        """Yield a form with its table, unless the caller's earlier one is still sent or read."""
        caller = request.state.caller.name
        if caller in self._busy_callers:
            raise HttpProblem("busy", "your earlier table is still being read")
        self._busy_callers.add(caller)
        try:
            yield await read_own_form(request)
        finally:
            self._busy_callers.discard(caller)
            await request.close()

    async def read(self, table: UploadFile | None, **job: Any) -> Any:
        """Return what the program that reads tables finds; see ``table_reader.py``."""
        if table is None or table.filename is None:
            raise InvalidInput("choose a table first")
        suffix, known_suffixes = Path(table.filename).suffix.lower(), ", ".join(TABLE_SUFFIXES)
        if suffix not in TABLE_SUFFIXES:
            raise InvalidInput(f"a table must be one of {known_suffixes}; got {suffix or 'none'}")
        async with self._reading_turn:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"table{suffix}"
                with path.open("wb") as file:
                    await asyncio.to_thread(shutil.copyfileobj, table.file, file, 1 << 20)
                answer = await self._run_reader({**job, "path": str(path), "folder": folder})
        if "error" in answer:  # in the reader's words, not with the server's folders
            message = answer["error"].replace(str(path), table.filename)
            raise UnreadTable(message, message.splitlines(), answer.get("proposal"))
        return answer["found"]

    async def _run_reader(self, job: Mapping[str, Any]) -> Any:
        memory, seconds = self._settings.read_memory, self._settings.read_seconds
        job_text = json.dumps({**job, "memory": memory, "seconds": seconds}).encode()
        try:
            process = await asyncio.to_thread(
                subprocess.run,
                READER_COMMAND,
                input=job_text,
                capture_output=True,
                timeout=2 * seconds,
            )
            return json.loads(process.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            limit_text = f"reading this table takes more than {memory >> 20:,} MB or {seconds} s"
            return {"error": f"{limit_text}; send fewer rows or columns, or count it by Python"}
