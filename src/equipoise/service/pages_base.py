"""How pages are made: templates, forms that only our own pages can send, errors for people."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import UploadFile

from equipoise.report import pictures, sentences
from equipoise.service.access import Caller, caller_of
from equipoise.service.problems import Problem

__all__ = ["Form", "Upload", "fragment", "page", "problem_page"]


@dataclass(frozen=True)
class Upload:
    """A file that came with a form."""

    name: str
    content: bytes


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


async def filled_form(request: Request) -> dict[str, Any]:
    """Return a form that one of our own pages sent in this session."""
    caller = caller_of(request)
    async with request.form(max_files=1, max_fields=100) as sent:
        form = {name: await _value(one) for name, one in sent.items()}
    key = form.pop("form_key", "")
    if not isinstance(key, str) or not hmac.compare_digest(key.encode(), caller.form_key.encode()):
        raise Problem("cross-site")
    return form


async def _value(field: str | UploadFile) -> str | Upload:
    if isinstance(field, str):
        return field
    return Upload(field.filename or "", await field.read())


Form = Annotated[dict[str, Any], Depends(filled_form)]
