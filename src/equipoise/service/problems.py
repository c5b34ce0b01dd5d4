"""What can go wrong over HTTP, as RFC 9457 problems with stable types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from equipoise.errors import (
    Conflict,
    EquipoiseError,
    LedgerError,
    ProtocolError,
    UnknownName,
    UnknownPerson,
)
from equipoise.ledger import commands as do

__all__ = ["HttpProblem", "add_handlers", "as_problem", "problem_of", "to_response"]

MEDIA = "application/problem+json"
FOR_PROGRAMS = ("/v1", "/livez", "/readyz", "/metrics", "/openapi.json")
RETRY_AFTER = 2  # seconds

TYPES: Mapping[str, tuple[int, str]] = {
    "malformed-request": (400, "The request cannot be read"),
    "unauthenticated": (401, "A valid token is needed"),
    "forbidden": (403, "This token may not do this"),
    "cross-site": (403, "The request came from another site"),
    "not-found": (404, "There is nothing here"),
    "unknown-audit": (404, "There is no such audit"),
    "unknown-person": (404, "The audit was never asked about this person"),
    "unknown-proposal": (404, "There is no such open proposal"),
    "method-not-allowed": (405, "This cannot be done here"),
    "too-slow": (408, "The request took too long to arrive"),
    "person-conflict": (409, "The person was asked about with other facts"),
    "outcome-conflict": (409, "Another outcome is stored, and stands"),
    "wrong-state": (409, "This cannot be done in the present state"),
    "audit-exists": (409, "An audit of this name exists with other settings"),
    "budget-committed": (409, "More than this is spent or held"),
    "too-large": (413, "The request is too large"),
    "invalid-input": (422, "A value breaks a rule"),
    "too-many-attempts": (429, "Too many failed attempts"),
    "internal": (500, "The server made a mistake"),
    "busy": (503, "The server has too much to do"),
    "storage-unavailable": (503, "The ledger cannot be reached or written"),
}
"""Type -> status and title; ``urn:equipoise:<type>`` is the URI."""


class HttpProblem(HTTPException):
    """A refusal, with its type and what the caller may know of it."""

    def __init__(
        self, kind: str, detail: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        status, self.title = TYPES[kind]
        own = {"Retry-After": str(RETRY_AFTER)} if status in (429, 503) else {}
        own |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        super().__init__(status, detail, {**own, **(headers or {})})
        self.kind = kind

    def __str__(self) -> str:
        """Say it in words, for people."""
        return self.detail or self.title

    def to_dict(self) -> dict[str, Any]:
        """Return the members of RFC 9457."""
        found = {"type": f"urn:equipoise:{self.kind}", "title": self.title}
        found |= {"status": self.status_code}  # type: ignore[dict-item]
        return {**found, "detail": self.detail} if self.detail else found


def problem_of(
    error: EquipoiseError, command: do.Command | None = None, *, tell_all: bool = True
) -> HttpProblem:
    """Say what an error of the product is over HTTP.

    With ``tell_all`` false (writers) a conflict or a state is named, never described: its words
    would show what others told.
    """
    detail = str(error)
    if isinstance(error, LedgerError):
        return HttpProblem("storage-unavailable", detail if tell_all else "")
    if isinstance(error, Conflict):
        kind = "person-conflict" if isinstance(command, do.Ask) else "outcome-conflict"
        return HttpProblem(kind, detail if tell_all else "")
    if isinstance(error, ProtocolError):
        kind = "budget-committed" if isinstance(command, do.SetBudget) else "wrong-state"
        return HttpProblem(kind, detail if tell_all else "")
    if isinstance(error, UnknownPerson):
        return HttpProblem("unknown-person")
    if isinstance(error, UnknownName) and isinstance(command, do.Approve | do.Reject):
        return HttpProblem("unknown-proposal", detail)
    return HttpProblem("invalid-input", detail)


def to_response(problem: HttpProblem) -> JSONResponse:
    """Return a problem as an answer."""
    return JSONResponse(problem.to_dict(), problem.status_code, problem.headers, media_type=MEDIA)


def add_handlers(app: FastAPI) -> None:
    """Answer every refusal as a problem: JSON for programs, a page for people."""

    async def refuse(request: Request, error: Exception) -> Response:
        caller = getattr(request.state, "caller", None)
        problem = as_problem(error, tell_all=caller is not None and caller.may_know)
        from equipoise.service.forms import problem_page

        if request.scope["path"].startswith(FOR_PROGRAMS):
            return to_response(problem)
        return problem_page(caller, problem)

    for kind in (HttpProblem, EquipoiseError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, refuse)


def as_problem(error: Exception, *, tell_all: bool = True) -> HttpProblem:
    """Return whatever was raised as a problem."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, EquipoiseError):
        return problem_of(error, tell_all=tell_all)
    if isinstance(error, RequestValidationError):
        found = error.errors()
        if any(one["type"] == "json_invalid" for one in found):
            return HttpProblem("malformed-request", "the body is not JSON")
        said = [one["msg"].removeprefix("Value error, ") for one in found[:10]]
        lines = [f"{_place(one['loc'])}: {words}" for one, words in zip(found, said, strict=False)]
        return HttpProblem("invalid-input", _printable("; ".join(lines)))
    assert isinstance(error, HTTPException)
    kinds = {404: "not-found", 405: "method-not-allowed"}
    return HttpProblem(kinds.get(error.status_code, "malformed-request"), headers=error.headers)


def _place(where: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in where if part not in ("body", "query", "path")) or "body"


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:2000]
