"""``/v1/audits/{audit}/people``: ask, tell, and everything else that happens to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from starlette.routing import Match, Route
from starlette.types import Scope

from equipoise.errors import EquipoiseError, LedgerError
from equipoise.ledger import LiveAudit
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command
from equipoise.ledger.schema import PersonRow
from equipoise.service import models
from equipoise.service.problems import Problem
from equipoise.service.visit import (
    Auditing,
    Reading,
    Visit,
    Writing,
    problems,
    read_body,
    takes,
    write,
)

__all__ = ["page_of", "quick_routes", "router"]

router = APIRouter(prefix="/v1/audits/{audit}", responses=problems(), tags=["people"])

Reply = models.FullReply | models.WriterReply
State = Literal[
    "SKIPPED", "SCORE_ONLY", "RESERVED", "EXECUTED", "REVEALED", "DESCRIBED", "CORRECTED",
    "WITHDRAWN", "OVERDUE", "WRITTEN_OFF",
]  # fmt: skip


@router.put("/people/{person}", response_model=Reply, openapi_extra=takes(models.Arrival))
async def ask(request: Request) -> JSONResponse:
    """Say what is wanted of somebody who arrived; the same for ever after."""
    visit, body = await write(request), await read_body(request, models.Arrival)
    return await _one(visit, _ask(visit.person, body))


@router.put("/people/{person}/execution", response_model=Reply)
async def executed(visit: Writing) -> JSONResponse:
    """Say that the override was carried out."""
    return await _one(visit, do.Execute(visit.person))


@router.put("/people/{person}/withdrawal", response_model=Reply)
async def withdraw(visit: Writing) -> JSONResponse:
    """Say that the person refused: the hold is released, the outcome stays unknown."""
    return await _one(visit, do.Withdraw(visit.person))


@router.put("/people/{person}/outcome", response_model=Reply, openapi_extra=takes(models.Outcome))
async def tell(request: Request) -> JSONResponse:
    """Bring an outcome in any order, at any time."""
    visit, body = await write(request), await read_body(request, models.Outcome)
    return await _one(visit, _tell(visit.person, body))


@router.put("/people/{person}/correction", response_model=models.FullReply)
async def correct(visit: Auditing, body: models.Correction) -> JSONResponse:
    """Replace a known outcome by the right one; the old event stays."""
    return await _one(visit, do.Correct(visit.person, body.outcome, body.why))


@router.put("/people/{person}/overdue", response_model=models.FullReply)
async def overdue(visit: Auditing) -> JSONResponse:
    """Mark a request whose outcome should have come by now."""
    return await _one(visit, do.MarkOverdue(visit.person))


@router.put("/people/{person}/write-off", response_model=models.FullReply)
async def write_off(visit: Auditing) -> JSONResponse:
    """Give up an overdue outcome: its worst cost is posted, it stays unknown."""
    return await _one(visit, do.WriteOff(visit.person))


@router.delete("/people/{person}", response_model=models.FullReply)
async def erase(visit: Auditing) -> JSONResponse:
    """Forget a person: pseudonym and key are gone, chain and money stay provable."""
    return await _one(visit, do.Erase(visit.person))


@router.post("/people", response_model=models.Results)
async def ask_many(visit: Writing, body: models.Arrivals) -> JSONResponse:
    """Ask about many; a refused one has its problem and holds up nobody."""
    return await _many(visit, [_ask(one.person, one) for one in body.people])


@router.post("/outcomes", response_model=models.Results)
async def tell_many(visit: Writing, body: models.Outcomes) -> JSONResponse:
    """Bring many outcomes; a refused one has its problem and holds up nobody."""
    return await _many(visit, [_tell(one.person, one) for one in body.outcomes])


@router.post("/executions", response_model=models.Results)
async def executed_many(visit: Writing, body: models.People) -> JSONResponse:
    """Say that many overrides were carried out."""
    return await _many(visit, [do.Execute(person) for person in body.people])


@router.post("/withdrawals", response_model=models.Results)
async def withdraw_many(visit: Writing, body: models.People) -> JSONResponse:
    """Say that many refused."""
    return await _many(visit, [do.Withdraw(person) for person in body.people])


@router.post("/overdue", response_model=models.Results)
async def mark_overdue(visit: Auditing, body: models.Overdue) -> JSONResponse:
    """Mark the requests that are older than so many days (the audit's own number if null)."""
    live = visit.desk.as_actor(visit.caller.name)
    replies = await visit.desk.write(lambda: live.overdue(days=body.days))
    return JSONResponse({"results": [visit.reply(reply) for reply in replies]})


@router.get("/people", response_model=models.PeoplePage)
async def people(
    visit: Reading,
    state: Annotated[
        list[State] | None, Query(description="Any of these; all if left out.")
    ] = None,
    conflicted: Annotated[bool, Query(description="Contradicted outcomes only.")] = False,
    after: Annotated[int, Query(ge=0, lt=2**53, description="Those with larger numbers.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JSONResponse:
    """Return people in order of arrival, a page at a time."""
    rows, more = await visit.desk.read(
        lambda live: page_of(live, state or (), conflicted=conflicted, after=after, limit=limit)
    )
    return JSONResponse({"people": [_shown(row) for row in rows], "next": more})


@router.get("/people/{person}", response_model=models.PersonModel)
async def person_(visit: Reading) -> JSONResponse:
    """Return what is stored about a person."""
    row = await visit.desk.read(lambda live: live.person(visit.person))
    if row is None:
        raise Problem("unknown-person")
    return JSONResponse(_shown(row))


class QuickRoute(Route):
    """A route that logs and metrics know by its pattern, as they know the framework's."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Say whether a request is for this route."""
        match, found = super().matches(scope)
        return match, {**found, "route": self} if match is not Match.NONE else found


def quick_routes() -> list[QuickRoute]:
    """Return the two calls that every decision makes, without the framework's detours.

    The router above documents the same functions; it takes several times as long to find them.
    """
    one = f"{router.prefix}/people/{{person}}"
    return [QuickRoute(one, ask, methods=["PUT"]),
            QuickRoute(f"{one}/outcome", tell, methods=["PUT"])]  # fmt: skip


def page_of(
    live: LiveAudit, states: Sequence[str], *, conflicted: bool, after: int, limit: int
) -> tuple[Sequence[PersonRow], int | None]:
    """Return a page, and where the next one begins; nobody is looked for who cannot be there."""
    status = live.status()
    known = status.conflicts if conflicted else sum(status.states.get(s, 0) for s in states)
    some = conflicted or bool(states)
    if some and not known:
        return (), None
    most = min(limit, known) if some else limit
    rows = live.people(states=states, conflicted=conflicted, after=after, limit=most)
    return rows, rows[-1].number if len(rows) == most and most == limit else None


async def _one(visit: Visit, command: Command) -> JSONResponse:
    return JSONResponse(visit.reply(await visit.do(command)))


async def _many(visit: Visit, commands: Sequence[Command]) -> JSONResponse:
    results = await visit.desk.do_all(visit.caller.name, list(commands))
    for result in results:
        if isinstance(result, LedgerError):  # nothing of the batch was stored
            raise visit.problem(result, commands[0])
    found = [
        {"person": do.person_of(command), "problem": visit.problem(result, command).to_dict()}
        if isinstance(result, EquipoiseError)
        else visit.reply(result)
        for command, result in zip(commands, results, strict=True)
    ]
    return JSONResponse({"results": found})


def _ask(person: str, seen: models.Arrival) -> do.Ask:
    return do.Ask(person, seen.group, seen.decision, seen.score, seen.price, seen.version)


def _tell(person: str, told: models.Outcome) -> do.Tell:
    return do.Tell(person, told.outcome)


def _shown(row: PersonRow) -> dict[str, object]:
    return {
        "number": row.number,
        "person": row.person,
        "group": row.group_name,
        "decision": row.decision,
        "want": row.want,
        "state": row.state,
        "why": row.why,
        "request": row.request,
        "hold": row.hold,
        "paid": row.paid,
        "overrun": row.overrun,
        "outcome": row.outcome,
        "asked": row.asked,
        "executed": bool(row.executed),
        "conflicted": bool(row.conflicted),
    }
