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
from equipoise.service.forms import Form, own_form
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings

SUFFIXES = (".csv", ".parquet", ".xlsx")
READER = (sys.executable, "-P", str(Path(__file__).with_name("table_reader.py")))


class Uploads:
    """Reads tables, one at a time, each in a process of its own."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._waiting: set[str] = set()

    @contextlib.asynccontextmanager
    async def sent_by(self, request: Request) -> AsyncIterator[Form]:
        """Yield a form with its table, unless the caller's earlier one is still sent or read."""
        caller = request.state.caller.name
        if caller in self._waiting:
            raise HttpProblem("busy", "your earlier table is still being read")
        self._waiting.add(caller)
        try:
            yield await own_form(request)
        finally:
            self._waiting.discard(caller)
            await request.close()

    async def read(self, table: UploadFile | None, **job: Any) -> Any:
        """Return what the program that reads tables finds; see ``table_reader.py``."""
        if table is None or table.filename is None:
            raise InvalidInput("choose a table first")
        suffix, kinds = Path(table.filename).suffix.lower(), ", ".join(SUFFIXES)
        if suffix not in SUFFIXES:
            raise InvalidInput(f"a table must be one of {kinds}; got {suffix or 'none'}")
        async with self._turn:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"table{suffix}"
                with path.open("wb") as file:
                    await asyncio.to_thread(shutil.copyfileobj, table.file, file, 1 << 20)
                found = await self._in_a_process({**job, "path": str(path), "folder": folder})
        if "error" in found:  # in the reader's words, not with the server's folders
            words = found["error"].replace(str(path), table.filename)
            raise UnreadTable(words, words.splitlines(), found.get("proposal"))
        return found["found"]

    async def _in_a_process(self, job: Mapping[str, Any]) -> Any:
        memory, seconds = self._settings.read_memory, self._settings.read_seconds
        said = json.dumps({**job, "memory": memory, "seconds": seconds}).encode()
        try:
            done = await asyncio.to_thread(
                subprocess.run, READER, input=said, capture_output=True, timeout=2 * seconds
            )
            return json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            words = f"reading this table takes more than {memory >> 20:,} MB or {seconds} s"
            return {"error": f"{words}; send fewer rows or columns, or count it by Python"}
