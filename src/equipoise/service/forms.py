"""How pages are made: templates, forms that only our own pages can send, errors for people."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from equipoise.errors import InvalidInput
from equipoise.report import pictures, sentences
from equipoise.service.access import Caller, caller_of
from equipoise.service.problems import HttpProblem

__all__ = ["Form", "Sent", "Upload", "fragment", "own_form", "page", "problem_page", "read_form"]

UTF8 = re.compile(r'charset=("?)utf-?8\1(?=[;\s]|$)')
FIELDS = 1000  # as many as a list of people to confirm has


@dataclass(frozen=True)
class Upload:
    """A file that came with a form."""

    name: str
    content: BinaryIO


@dataclass(frozen=True)
class Form:
    """What was sent: the values of each field in their order, and a table where one came along."""

    values: dict[str, list[str]] = field(default_factory=dict)
    table: Upload | None = None

    def word(self, name: str, default: str = "") -> str:
        """Return a field without outer spaces."""
        return self.values.get(name, [default])[-1].strip()

    def whole(self, name: str) -> int:
        """Return a whole number."""
        text = self.word(name).replace(",", "")
        if not re.fullmatch(r"-?[0-9]{1,19}", text):
            raise InvalidInput(f"{name!r} must be a whole number; got {text[:40]!r}")
        return int(text)

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        text = self.word(name)
        try:
            return float(text) if text else default
        except ValueError:
            raise InvalidInput(f"{name!r} must be a number; got {text[:40]!r}") from None


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
    made.filters["points"] = lambda share: f"{share * 100:.1f}"
    made.filters["percent"] = lambda share: f"{share * 100:.1f}%"
    made.filters["count"] = lambda number: f"{number:,.0f}"
    made.filters["part"] = lambda name: quote(name, safe="")
    made.filters["moment"] = lambda time: f"{time[:10]} {time[11:16]}" if time else "never"
    made.filters["plain"] = lambda words: str(words).replace("_", " ").lower()
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
    return HTMLResponse(fragment(template, me=who, **more), status)


def problem_page(request: Request, problem: HttpProblem) -> HTMLResponse:
    """Return a refusal as people read it."""
    answer = page(request, "error.html", status=problem.status_code, problem=problem)
    answer.headers.update(problem.headers or {})
    return answer


async def read_form(request: Request, *, table: bool = False) -> Form:
    """Return what was sent: words in UTF-8, and one table where a page takes one."""
    if "charset" in UTF8.sub("", request.headers.get("content-type", "").lower()):
        raise HttpProblem("malformed-request", "a form must be in UTF-8")
    values: dict[str, list[str]] = {}
    upload = None
    sent = await request.form(max_files=int(table), max_fields=FIELDS)
    for name, value in sent.multi_items():
        if isinstance(value, str):
            values.setdefault(name, []).append(value)
        elif name == "table":
            upload = Upload(value.filename or "", value.file)
        else:
            raise HttpProblem("invalid-input", f"{name[:40]!r} must be words, not a file")
    return Form(values, upload)


async def own_form(request: Request, *, table: bool = False) -> Form:
    """Return a form that one of our own pages sent in this session."""
    caller, form = caller_of(request), await read_form(request, table=table)
    key = (form.values.pop("form_key", None) or [""])[-1]
    if not caller.form_key or not hmac.compare_digest(key.encode(), caller.form_key.encode()):
        raise HttpProblem("cross-site")
    return form


async def _words(request: Request) -> Form:
    return await own_form(request)


Sent = Annotated[Form, Depends(_words)]
