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
from equipoise.service.limits import UPLOAD_PATHS
from equipoise.service.problems import HttpProblem

# With or without quotes, at the end or in front of another parameter.
UTF8_CHARSET = re.compile(r'charset=("?)utf-?8\1(?=[;\s]|$)')
FILE_FIELDS = ("table", "outcomes_table")
MAX_FIELDS = 1000  # as many as the list of overrides to confirm has


class Form(FormData):
    """What a page sent: texts, and at most one table with a second one of outcomes."""

    @property
    def table(self) -> UploadFile | None:
        """The uploaded table, None if no file was chosen."""
        upload = self.get("table")
        return upload if isinstance(upload, UploadFile) and upload.filename else None

    @property
    def outcomes_table(self) -> UploadFile | None:
        """The uploaded table of outcomes, None if no file was chosen."""
        upload = self.get("outcomes_table")
        return upload if isinstance(upload, UploadFile) and upload.filename else None

    def text(self, name: str, default: str = "") -> str:
        """Return a field without outer spaces."""
        return str(self.get(name, default)).strip()

    def number(self, name: str, default: float) -> float:
        """Return a field as a number, ``default`` if it is empty."""
        text = self.text(name)
        try:
            return float(text) if text else default
        except ValueError:
            raise InvalidInput(f"{name!r} must be a number; got {text[:40]!r}") from None


def render_page(
    caller: Caller | None, template_name: str, *, status: int = 200, **variables: Any
) -> HTMLResponse:
    """Return a page as its caller sees it."""
    template = template_environment("equipoise.service").get_template(template_name)
    return HTMLResponse(template.render(me=caller, **variables), status)


async def read_form(request: Request) -> Form:
    """Return what was sent: texts in UTF-8, and a table if the path takes one."""
    content_type = request.headers.get("content-type", "").lower()
    if "charset" in UTF8_CHARSET.sub("", content_type):  # another one is named
        raise HttpProblem("malformed-request", "a form must be in UTF-8")
    # On all other paths files are refused, because each would be written to the disk.
    path = request.scope["path"]
    max_files = len(FILE_FIELDS) if UPLOAD_PATHS.fullmatch(path) else 0
    form = Form(await request.form(max_files=max_files, max_fields=MAX_FIELDS))
    for name, value in form.multi_items():
        if name not in FILE_FIELDS and not isinstance(value, str):
            raise HttpProblem("invalid-input", f"{name[:40]!r} must be words, not a file")
    return form


async def read_own_form(request: Request) -> Form:
    """Return a form that one of our own pages sent in this session, or refuse it."""
    form = await read_form(request)
    # A page of another site can send our cookie along, but cannot know this key.
    sent_key = form.text("form_key").encode()
    session_key = request.state.caller.form_key.encode()
    if not session_key or not hmac.compare_digest(sent_key, session_key):
        raise HttpProblem("cross-site")
    return form


SentForm = Annotated[Form, Depends(read_own_form)]
