"""What can go wrong over HTTP, as RFC 9457 problems with stable types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from equipoise.errors import Conflict, LedgerError, ProtocolError, UnknownName, UnknownPerson
from equipoise.ledger import commands

PROBLEM_MEDIA_TYPE = "application/problem+json"
RETRY_SOON = {"Retry-After": "2"}  # seconds
HEADERS_BY_STATUS = {
    401: {"WWW-Authenticate": "Bearer"},
    429: RETRY_SOON,
    503: RETRY_SOON,
}  # by status

PROBLEM_TYPES: Mapping[str, tuple[int, str]] = {
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
        status, self.title = PROBLEM_TYPES[kind]
        super().__init__(status, detail, {**HEADERS_BY_STATUS.get(status, {}), **(headers or {})})
        self.kind = kind

    def __str__(self) -> str:
        """Say it in words, for people."""
        return self.detail or self.title

    def to_dict(self) -> dict[str, Any]:
        """Return the members of RFC 9457."""
        members = {"title": self.title, "status": self.status_code, "detail": self.detail}
        present_members = {name: value for name, value in members.items() if value}
        return {"type": f"urn:equipoise:{self.kind}", **present_members}


def as_problem(
    error: Exception, command: object = None, *, may_see_details: bool = True
) -> HttpProblem:
    """Say what an error, of a command where one led to it, is over HTTP.

    With ``may_see_details`` false (writers) a conflict or a state is named, never described: its
    words would show what others told.
    """
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, RequestValidationError):
        return _validation_problem(error.errors())
    if isinstance(error, HTTPException):
        kinds_by_status = {404: "not-found", 405: "method-not-allowed"}
        kind = kinds_by_status.get(error.status_code, "malformed-request")
        detail_text = (
            error.detail if error.status_code == 400 else ""
        )  # of a form, what is wrong with it
        return HttpProblem(kind, detail_text, headers=error.headers)
    kind, detail = "invalid-input", str(error)
    if isinstance(error, LedgerError):
        kind = "storage-unavailable"
    elif isinstance(error, Conflict):
        kind = "person-conflict" if isinstance(command, commands.Ask) else "outcome-conflict"
    elif isinstance(error, ProtocolError):
        kind = "budget-committed" if isinstance(command, commands.SetBudget) else "wrong-state"
    elif isinstance(error, UnknownPerson):
        kind, detail = "unknown-person", ""
    elif isinstance(error, UnknownName) and isinstance(command, commands.Approve | commands.Reject):
        kind = "unknown-proposal"
    is_secret = isinstance(error, LedgerError | ProtocolError) and not may_see_details
    return HttpProblem(kind, "" if is_secret else detail)


def _validation_problem(errors: Sequence[Any]) -> HttpProblem:
    """Say what is wrong with a request's body, path or query."""
    if any(error["type"] == "json_invalid" for error in errors):
        return HttpProblem("malformed-request", "the body is not JSON")
    lines = []
    for error in errors[:10]:
        field_path = ".".join(str(part) for part in error["loc"][1:]) or "body"
        lines.append(f"{field_path}: {error['msg'].removeprefix('Value error, ')}")
    return HttpProblem("invalid-input", "; ".join(lines).encode("utf-8", "replace").decode()[:2000])


def to_response(problem: HttpProblem) -> JSONResponse:
    """Return a problem as an answer."""
    return JSONResponse(
        problem.to_dict(), problem.status_code, problem.headers, media_type=PROBLEM_MEDIA_TYPE
    )
