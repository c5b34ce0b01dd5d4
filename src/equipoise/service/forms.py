"""Pages and the forms that they send back; only our own pages can send one."""

from __future__ import annotations

import hmac
import re
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import FormData, UploadFile

from equipoise.errors import InvalidInput
from equipoise.report.write import template_environment
from equipoise.service.access import Caller
from equipoise.service.limits import UPLOADS
from equipoise.service.problems import HttpProblem

UTF8 = re.compile(r'charset=("?)utf-?8\1(?=[;\s]|$)')
FIELDS = 1000  # as many as a list of people to confirm has


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


async def own_form(request: Request) -> Form:
    """Return a form that one of our own pages sent in this session."""
    caller, form = request.state.caller, await read_form(request)
    key, own = form.word("form_key").encode(), caller.form_key.encode()
    if not own or not hmac.compare_digest(key, own):
        raise HttpProblem("cross-site")
    return form


Sent = Annotated[Form, Depends(own_form)]
