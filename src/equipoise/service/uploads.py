"""Uploaded tables, read in a process of their own whose memory and time are limited.

A file of a few kilobytes can hold billions of rows, so whoever reads it must be able to fail alone:
nothing of it is read in the process that answers requests. One table at a time is read, and a
person waits for their own to be finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import Request

from equipoise.errors import InvalidInput
from equipoise.service.access import caller_of
from equipoise.service.forms import Form, Upload, own_form
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings

__all__ = ["Uploads"]

SUFFIXES = (".csv", ".parquet", ".xlsx")
ANSWER = 64 << 20  # bytes that the reading process may answer


class Uploads:
    """Reads tables, one at a time, each in a process of its own."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._waiting: set[str] = set()

    @contextlib.asynccontextmanager
    async def sent_by(self, request: Request) -> AsyncIterator[Form]:
        """Yield a form with its table, unless the caller's earlier one is still sent or read."""
        caller = caller_of(request).name
        if caller in self._waiting:
            raise HttpProblem("busy", "your earlier table is still being read")
        self._waiting.add(caller)
        try:
            yield await own_form(request, table=True)
        finally:
            self._waiting.discard(caller)
            await request.close()

    async def counts(self, table: Upload, columns: Mapping[str, str], positive: str) -> Any:
        """Return the counts of past decisions in a table."""
        return await self._read(table, {"columns": dict(columns), "positive": positive or None})

    async def rows(self, table: Upload, columns: Sequence[str], optional: Sequence[str]) -> Any:
        """Return the rows of a table: the columns of these names, in this order, as text."""
        return await self._read(table, {"rows": list(columns), "optional": list(optional)})

    async def _read(self, table: Upload, job: Mapping[str, Any]) -> Any:
        suffix = Path(table.name).suffix.lower()
        if suffix not in SUFFIXES:
            kinds = ", ".join(SUFFIXES)
            raise InvalidInput(f"a table must be one of {kinds}; got {suffix or 'none'}")
        async with self._turn:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"table{suffix}"
                await asyncio.to_thread(_copy, table, path)
                found = await self._in_a_process({**job, "path": str(path), "folder": folder})
        if "error" in found:  # in the reader's words, not with the server's folders
            raise InvalidInput(found["error"].replace(str(path), table.name or "the table"))
        return found["found"]

    async def _in_a_process(self, job: Mapping[str, Any]) -> dict[str, Any]:
        settings = self._settings
        limits = {"memory": settings.read_memory, "seconds": settings.read_seconds}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", str(Path(__file__).with_name("table_reader.py")),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, limit=ANSWER,
        )  # fmt: skip
        try:
            async with asyncio.timeout(2 * settings.read_seconds):
                answer, _ = await process.communicate(json.dumps({**job, **limits}).encode())
        except TimeoutError:
            answer = b""
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        try:
            found: dict[str, Any] = json.loads(answer)
        except ValueError:
            memory, seconds = settings.read_memory >> 20, settings.read_seconds
            words = f"reading this table takes more than {memory:,} MB or {seconds} s"
            return {"error": f"{words}; send fewer rows or columns, or count it by Python"}
        return found


def _copy(table: Upload, path: Path) -> None:
    table.content.seek(0)
    with path.open("wb") as file:
        shutil.copyfileobj(table.content, file, 1 << 20)
