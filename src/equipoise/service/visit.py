"""What an endpoint is given: who calls, and the audit that they may touch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from equipoise.errors import EquipoiseError
from equipoise.ledger import Reply, inputs
from equipoise.ledger.commands import Command
from equipoise.service.access import Caller, caller_of, decoded
from equipoise.service.desk import AuditDesk, Desk
from equipoise.service.models import ProblemModel
from equipoise.service.problems import MEDIA, Problem, problem_of
from equipoise.service.tokens import READERS, Role

__all__ = [
    "NAMES",
    "Approving",
    "Auditing",
    "Reading",
    "Rejecting",
    "Visit",
    "Writing",
    "enter",
    "problems",
    "read_body",
    "takes",
    "write",
]

M = TypeVar("M", bound=BaseModel)

NAMES = {"audit": "The audit's name or id.", "person": "A pseudonym."}
"""Parts of a path that are read here, as they were sent, rather than by the framework."""


@dataclass(frozen=True)
class Visit:
    """One caller at one audit; ``person`` is the one whom the path names."""

    caller: Caller
    desk: AuditDesk
    person: str = ""

    async def do(self, command: Command) -> Reply:
        """Carry out a command in the caller's name."""
        result = await self.desk.do(self.caller.name, command)
        if isinstance(result, EquipoiseError):
            raise self.problem(result, command)
        if result.state == "ERASED":  # by whoever proposed it or approved it
            await self.desk.write(self.desk.scrub)
        return result

    def problem(self, error: EquipoiseError, command: Command) -> Problem:
        """Say what went wrong, as far as the caller may know."""
        return problem_of(error, command, tell_all=self.caller.may_know)

    def reply(self, reply: Reply) -> dict[str, Any]:
        """Return what the caller may know of a reply."""
        own = {
            "person": reply.person,
            "state": reply.state,
            "want": reply.want.value,
            "repeated": reply.repeated,
        }
        if not self.caller.may_know:
            return own
        return own | {
            "hold": reply.hold,
            "number": reply.number,
            "request": reply.request,
            "why": reply.why,
            "outcome": reply.outcome,
        }


async def enter(desk: Desk, caller: Caller, name: str) -> AuditDesk:
    """Return an audit that the caller may see; whether others exist is not said."""
    try:
        audit = await desk.audit(name)
    except Problem:
        if caller.audit is None:
            raise
        raise Problem("forbidden") from None
    if not caller.may_see(audit.name, audit.row.uid):
        raise Problem("forbidden")
    return audit


def visit(*roles: Role) -> Callable[..., Awaitable[Visit]]:
    """Return a dependency that lets these roles in, and says the same to everybody else."""

    async def let_in(request: Request) -> Visit:
        caller, names = caller_of(request), request.path_params
        if caller.role not in roles:
            raise Problem("forbidden")
        if request.scope["query_string"]:
            _require_known_query(request)
        try:
            name = inputs.name("audit", decoded(names["audit"]))
        except EquipoiseError:
            raise Problem("unknown-audit" if caller.audit is None else "forbidden") from None
        audit = await enter(request.app.state.desk, caller, name)
        return Visit(caller, audit, decoded(names.get("person", "")))

    return let_in


def _require_known_query(request: Request) -> None:
    """Refuse what would be ignored: somebody who mistypes a limit shall hear of it."""
    known = getattr(request.scope.get("route"), "dependant", None)
    names = set() if known is None else {field.alias for field in known.query_params}
    for name in request.query_params:
        if name not in names:
            raise Problem("invalid-input", f"there is no query parameter {name[:40]!a} here")


async def read_body(request: Request, model: type[M]) -> M:
    """Return what was sent, as the framework would, in a fraction of its time."""
    if "json" not in request.headers.get("content-type", ""):
        raise Problem("invalid-input", "the content type must be application/json")
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """Return the part of the OpenAPI document that says what :func:`read_body` takes."""
    place = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    return {"requestBody": {"required": True, "content": {"application/json": place}}}


write = visit(Role.WRITER, Role.AUDITOR)
Writing = Annotated[Visit, Depends(write)]
Auditing = Annotated[Visit, Depends(visit(Role.AUDITOR))]
Approving = Annotated[Visit, Depends(visit(Role.APPROVER))]
Rejecting = Annotated[Visit, Depends(visit(Role.APPROVER, Role.AUDITOR))]
Reading = Annotated[Visit, Depends(visit(*READERS))]

_WORDS = {
    400: "The request cannot be read",
    401: "No valid token",
    403: "Not for this token",
    404: "Nothing here",
    408: "The request took too long to arrive",
    409: "Not in the present state",
    413: "Too large",
    422: "A value breaks a rule",
    429: "Too many failed attempts",
    503: "Try again later",
}


def problems() -> dict[int | str, dict[str, Any]]:
    """Return what every endpoint may answer instead."""
    content = {MEDIA: {"schema": {"$ref": f"#/components/schemas/{ProblemModel.__name__}"}}}
    return {code: {"description": text, "content": content} for code, text in _WORDS.items()}
