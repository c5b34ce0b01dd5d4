"""Pages and what they send back: templates, forms that only our own pages can send, and tables.

An uploaded file of a few kilobytes can hold billions of rows, so whoever reads it must be able to
fail alone: a table is read in a process of its own whose memory and time are limited, never in the
one that answers requests. One table at a time is read, and a person waits for their own to be
finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import FormData, UploadFile

from equipoise.errors import InvalidInput
from equipoise.history.problems import UnreadTable
from equipoise.report.write import template_environment
from equipoise.service.access import Caller
from equipoise.service.limits import UPLOADS
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings

UTF8 = re.compile(r'charset=("?)utf-?8\1(?=[;\s]|$)')
FIELDS = 1000  # as many as a list of people to confirm has
SUFFIXES = (".csv", ".parquet", ".xlsx")
READER = (sys.executable, "-P", str(Path(__file__).with_name("table_reader.py")))


class Form(FormData):
    """What was sent: words, and a table where one came along."""

    @property
    def table(self) -> UploadFile | None:
        """The table, None where nobody chose one."""
        found = self.get("table")
        return found if isinstance(found, UploadFile) and found.filename else None

    def word(self, name: str, default: str = "") -> str:
        """Return a field without outer spaces."""
        return str(self.get(name, default)).strip()

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        text = self.word(name)
        try:
            return float(text) if text else default
        except ValueError:
            raise InvalidInput(f"{name!r} must be a number; got {text[:40]!r}") from None


def page(caller: Caller | None, template: str, *, status: int = 200, **more: Any) -> HTMLResponse:
    """Return a page as its caller sees it."""
    text = (
        template_environment("equipoise.service").get_template(template).render(me=caller, **more)
    )
    return HTMLResponse(text, status)


async def read_form(request: Request) -> Form:
    """Return what was sent: words in UTF-8, and one table where the path takes one."""
    if "charset" in UTF8.sub("", request.headers.get("content-type", "").lower()):
        raise HttpProblem("malformed-request", "a form must be in UTF-8")
    files = 1 if UPLOADS.fullmatch(request.scope["path"]) else 0
    form = Form(await request.form(max_files=files, max_fields=FIELDS))
    for name, value in form.multi_items():
        if name != "table" and not isinstance(value, str):
            raise HttpProblem("invalid-input", f"{name[:40]!r} must be words, not a file")
    return form


async def _own_form(request: Request) -> Form:
    """Return a form that one of our own pages sent in this session."""
    caller, form = request.state.caller, await read_form(request)
    key, own = form.word("form_key").encode(), caller.form_key.encode()
    if not own or not hmac.compare_digest(key, own):
        raise HttpProblem("cross-site")
    return form


Sent = Annotated[Form, Depends(_own_form)]


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
            yield await _own_form(request)
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
