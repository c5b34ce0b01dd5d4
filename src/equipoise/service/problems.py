"""What can go wrong over HTTP, as RFC 9457 problems with stable types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from equipoise._json import to_plain_data
from equipoise.errors import (
    Conflict,
    EquipoiseError,
    LedgerError,
    ProtocolError,
    UnknownName,
    UnknownPerson,
)
from equipoise.ledger import commands
from equipoise.messages import form, http
from equipoise.messages.refusals import Refusal
from equipoise.planning.feasibility import NotFeasible

PROBLEM_MEDIA_TYPE = "application/problem+json"
MAX_ERRORS_SHOWN = 10  # of one request's body
MAX_DETAIL_CHARACTERS = 2000
RETRY_SOON = {"Retry-After": "2"}  # seconds
HEADERS_BY_STATUS = {401: {"WWW-Authenticate": "Bearer"}, 429: RETRY_SOON, 503: RETRY_SOON}

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
    "key-reused": (409, "The key belongs to another command"),
    "wrong-state": (409, "This cannot be done in the present state"),
    "audit-exists": (409, "An audit of this name exists with other settings"),
    "budget-committed": (409, "More than this is spent or held"),
    "too-large": (413, "The request is too large"),
    "invalid-input": (422, "A value breaks a rule"),
    "not-feasible": (422, "This audit would probably not reach a verdict"),
    "too-many-attempts": (429, "Too many failed attempts"),
    "internal": (500, "The server made a mistake"),
    "busy": (503, "The server has too much to do"),
    "storage-unavailable": (503, "The ledger cannot be reached or written"),
}
"""Type -> status and title; ``urn:equipoise:<type>`` is the URI."""


class HttpProblem(HTTPException):
    """A refusal, with its type and what the caller may know of it.

    ``page_detail`` is the detail in the words of the pages, where they differ from those for
    programs.
    """

    def __init__(
        self,
        kind: str,
        detail: str = "",
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
        page_detail: str = "",
    ) -> None:
        status, self.title = PROBLEM_TYPES[kind]
        # What is passed goes before the headers that every answer of this status has.
        super().__init__(status, detail, {**HEADERS_BY_STATUS.get(status, {}), **(headers or {})})
        self.kind = kind
        self.members = dict(members or {})
        self.page_detail = page_detail or detail

    def __str__(self) -> str:
        """Return the detail, or the title where there is none, for people."""
        return self.detail or self.title

    def to_dict(self) -> dict[str, Any]:
        """Return the members of RFC 9457 and those of this type; an empty detail is left out."""
        members: dict[str, Any] = {
            "type": f"urn:equipoise:{self.kind}",
            "title": self.title,
            "status": self.status_code,
        }
        if self.detail:
            members["detail"] = self.detail
        return {**members, **self.members}


def as_problem(
    error: Exception, command: object = None, *, may_see_details: bool = True
) -> HttpProblem:
    """Return an error as a problem over HTTP.

    Parameters
    ----------
    error
        What was raised.
    command
        The command that led to it, if one did: it tells two conflicts apart.
    may_see_details
        False for writers: a conflict or a state is then named and not described, because its words
        would show what others told.
    """
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, RequestValidationError):
        return _validation_problem(error.errors())
    if isinstance(error, HTTPException):
        return _framework_problem(error)
    if isinstance(error, NotFeasible):
        return _not_feasible_problem(error)
    kind = _problem_type(error, command)
    is_secret = isinstance(error, LedgerError | ProtocolError) and not may_see_details
    if is_secret or kind == "unknown-person":  # the title of the latter says all
        return HttpProblem(kind)
    if isinstance(error, EquipoiseError) and error.refusal is not None:
        return _refusal_problem(kind, error.refusal)
    return HttpProblem(kind, str(error))


def _not_feasible_problem(error: NotFeasible) -> HttpProblem:
    problem = error.obstacle.problem
    members = {
        "leave_out": list(error.obstacle.leave_out),
        "code": problem.code,
        "facts": to_plain_data(problem.fields),
    }
    return HttpProblem("not-feasible", http.describe(problem), members=members)


def _refusal_problem(kind: str, refusal: Refusal) -> HttpProblem:
    """Return why an audit refused a command: in words, and as the data that they were made of."""
    return HttpProblem(
        kind,
        http.describe_refusal(refusal),
        members={"code": refusal.code, "facts": to_plain_data(refusal.facts)},
        page_detail=form.describe_refusal(refusal),
    )


def describe_on_page(error: Exception) -> str:
    """Return why something was refused, in the words of the pages."""
    return (error.page_detail if isinstance(error, HttpProblem) else "") or str(error)


def _problem_type(error: Exception, command: object) -> str:
    """Return the type, a key of ``PROBLEM_TYPES``, of one of this package's errors."""
    if isinstance(error, LedgerError):
        return "storage-unavailable"
    # A conflict is a protocol error, too, so it is looked for first.
    if isinstance(error, Conflict):
        if error.refusal is not None and error.refusal.code == "key-used":
            return "key-reused"
        return "person-conflict" if isinstance(command, commands.Ask) else "outcome-conflict"
    if isinstance(error, ProtocolError):
        return "budget-committed" if isinstance(command, commands.SetBudget) else "wrong-state"
    if isinstance(error, UnknownPerson):
        return "unknown-person"
    if isinstance(error, UnknownName) and isinstance(command, commands.Approve | commands.Reject):
        return "unknown-proposal"
    return "invalid-input"


def _framework_problem(error: HTTPException) -> HttpProblem:
    """Return a refusal of the web framework itself as a problem."""
    types_by_status = {404: "not-found", 405: "method-not-allowed"}
    kind = types_by_status.get(error.status_code, "malformed-request")
    # At status 400 the detail says what is wrong with a form.
    detail = error.detail if error.status_code == 400 else ""
    return HttpProblem(kind, detail, headers=error.headers)


def _validation_problem(errors: Sequence[Any]) -> HttpProblem:
    """Return what is wrong with a request's body, path or query as a problem."""
    if any(error["type"] == "json_invalid" for error in errors):
        return HttpProblem("malformed-request", "the body is not JSON")
    lines = []
    for error in errors[:MAX_ERRORS_SHOWN]:
        # The first part of a place says body, path or query.
        field_path = ".".join(str(part) for part in error["loc"][1:]) or "body"
        lines.append(f"{field_path}: {error['msg'].removeprefix('Value error, ')}")
    detail = "; ".join(lines).encode("utf-8", "replace").decode()  # without lone surrogates
    return HttpProblem("invalid-input", detail[:MAX_DETAIL_CHARACTERS])


def to_response(problem: HttpProblem) -> JSONResponse:
    """Return a problem as an answer."""
    return JSONResponse(
        problem.to_dict(), problem.status_code, problem.headers, media_type=PROBLEM_MEDIA_TYPE
    )
