"""How pages are made: templates, forms that only our own pages can send, errors for people."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from equipoise.report import pictures, sentences
from equipoise.service.access import Caller, caller_of
from equipoise.service.problems import Problem

__all__ = ["Form", "FormWithTable", "Upload", "fragment", "page", "problem_page", "read_form"]

UTF8 = re.compile(r'charset=("?)utf-?8\1(?=[;\s]|$)')


@dataclass(frozen=True)
class Upload:
    """A file that came with a form."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Filled:
    """A form: its fields, and the table that came with it."""

    words: dict[str, str]
    table: Upload | None = None


@cache
def environment() -> Environment:
    """Return the templates; every word in them is escaped."""
    made = Environment(
        loader=PackageLoader("equipoise.service", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["percent"] = lambda share: f"{share * 100:.1f}%"
    made.filters["points"] = lambda share: f"{share * 100:.1f}"
    made.filters["count"] = lambda number: f"{number:,}"
    made.filters["part"] = lambda name: quote(name, safe="")
    made.filters["moment"] = lambda time: f"{time[:10]} {time[11:16]}" if time else "never"
    made.filters["event"] = lambda kind: kind.replace("_", " ").lower()
    made.globals.update(pictures=pictures, words=sentences)
    return made


def fragment(template: str, **values: Any) -> str:
    """Return part of a page."""
    return environment().get_template(template).render(**values)


def page(
    request: Request, template: str, *, status: int = 200, caller: Caller | None = None, **more: Any
) -> HTMLResponse:
    """Return a page as its caller sees it."""
    who = caller or getattr(request.state, "caller", None)
    text = fragment(template, me=who, open=request.app.state.settings.open, **more)
    return HTMLResponse(text, status)


def problem_page(request: Request, problem: Problem) -> HTMLResponse:
    """Return a refusal as people read it."""
    answer = page(request, "error.html", status=problem.status_code, problem=problem)
    answer.headers.update(problem.headers or {})
    return answer


async def read_form(request: Request, *, table: bool = False) -> Filled:
    """Return what was sent: words in UTF-8, and one table where a page takes one."""
    if "charset" in UTF8.sub("", request.headers.get("content-type", "").lower()):
        raise Problem("malformed-request", "a form must be in UTF-8")
    words, upload = {}, None
    async with request.form(max_files=int(table), max_fields=100) as sent:
        for name, field in sent.items():
            if isinstance(field, str):
                words[name] = field
            elif name == "table":
                upload = Upload(field.filename or "", await field.read())
            else:
                raise Problem("invalid-input", f"{name[:40]!r} must be words, not a file")
    return Filled(words, upload)


async def _own(request: Request, *, table: bool = False) -> Filled:
    """Return a form that one of our own pages sent in this session."""
    caller, form = caller_of(request), await read_form(request, table=table)
    key = form.words.pop("form_key", "")
    if not hmac.compare_digest(key.encode(), caller.form_key.encode()):
        raise Problem("cross-site")
    return form


async def _words(request: Request) -> dict[str, str]:
    return (await _own(request)).words


async def _with_table(request: Request) -> Filled:
    return await _own(request, table=True)


Form = Annotated[dict[str, str], Depends(_words)]
FormWithTable = Annotated[Filled, Depends(_with_table)]
