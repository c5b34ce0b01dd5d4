"""What people do on the page of an audit; each form is one command in their name."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command
from equipoise.service.api_proof import new_checkpoint, new_verification
from equipoise.service.pages import audit_page
from equipoise.service.pages_base import Form
from equipoise.service.problems import Problem
from equipoise.service.tokens import Role
from equipoise.service.visit import Reading, Visit

__all__ = ["ACTIONS", "DONE", "router"]

router = APIRouter(include_in_schema=False)

Fields = dict[str, str]


def _word(fields: Fields, name: str) -> str:
    return fields.get(name, "")


def _whole(fields: Fields, name: str) -> int:
    text = _word(fields, name).strip().replace(",", "")
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise InvalidInput(f"{name!r} must be a whole number; got {text[:40]!r}")
    return int(text)


def _budget(fields: Fields) -> Command:
    empty = not _word(fields, "budget").strip()
    return do.SetBudget(None if empty else _whole(fields, "budget"), _word(fields, "why"))


ACTIONS: dict[str, tuple[tuple[Role, ...], Callable[[Fields], Command]]] = {
    "ask": (
        (Role.AUDITOR,),
        lambda f: do.Ask(_word(f, "person"), _word(f, "group"), _whole(f, "decision")),
    ),
    "tell": ((Role.AUDITOR,), lambda f: do.Tell(_word(f, "person"), _whole(f, "outcome"))),
    "executed": ((Role.AUDITOR,), lambda f: do.Execute(_word(f, "person"))),
    "withdraw": ((Role.AUDITOR,), lambda f: do.Withdraw(_word(f, "person"))),
    "write-off": ((Role.AUDITOR,), lambda f: do.WriteOff(_word(f, "person"))),
    "correct": (
        (Role.AUDITOR,),
        lambda f: do.Correct(_word(f, "person"), _whole(f, "outcome"), _word(f, "why")),
    ),
    "pause": ((Role.AUDITOR,), lambda f: do.Pause(_word(f, "why"))),
    "resume": ((Role.AUDITOR,), lambda f: do.Resume(_word(f, "why"))),
    "conclude": ((Role.AUDITOR,), lambda f: do.Conclude(_word(f, "why"))),
    "budget": ((Role.AUDITOR,), _budget),
    "approve": ((Role.APPROVER,), lambda f: do.Approve(_whole(f, "proposal"))),
    "reject": (
        (Role.APPROVER, Role.AUDITOR),
        lambda f: do.Reject(_whole(f, "proposal"), _word(f, "why")),
    ),
}
"""Form -> who may send it, and the command that it stands for."""

DONE = (*ACTIONS, "checkpoint", "verify", "proposed")


@router.post("/audits/{audit}/do/{what}")
async def act(visit: Reading, request: Request, what: str, form: Form) -> Response:
    """Carry out a form and show the page again."""
    try:
        done = await _carry_out(visit, request, what, form)
    except Problem as problem:
        return await audit_page(visit, request, problem=problem)
    except EquipoiseError as error:
        shown = Problem("invalid-input", str(error))
        return await audit_page(visit, request, problem=shown)
    return RedirectResponse(f"/audits/{quote(visit.desk.name, safe='')}?done={done}", 303)


async def _carry_out(visit: Visit, request: Request, what: str, form: Fields) -> str:
    store = request.app.state.store
    if what == "checkpoint":
        await new_checkpoint(visit, store)
        return what
    if what == "verify" and visit.caller.role is Role.AUDITOR:
        await new_verification(visit, store)
        return what
    roles, command = ACTIONS.get(what, ((), _budget))
    if visit.caller.role not in roles:
        raise Problem("forbidden" if what in DONE else "not-found")
    reply = await visit.do(command(form))
    if reply.state == "PROPOSED":
        return "proposed"
    return f"ask&want={reply.want.value}" if what == "ask" else what
