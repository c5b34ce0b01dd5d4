"""``/v1/audits``: begin audits, decide about them, and see where they stand."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse

from equipoise._json import plain
from equipoise.cells import Cells
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history import History
from equipoise.ledger import LiveAudit, Status, inputs
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command
from equipoise.ledger.store import AuditRow
from equipoise.question import Costs, Question
from equipoise.service import models
from equipoise.service.access import Caller, caller_of, decoded
from equipoise.service.desk import Desk
from equipoise.service.forecast import forecast_of
from equipoise.service.problems import Problem
from equipoise.service.tokens import READERS, Role
from equipoise.service.visit import (
    Approving,
    Auditing,
    Reading,
    Rejecting,
    Visit,
    problems,
)

__all__ = ["create_audit", "router"]

router = APIRouter(prefix="/v1/audits", responses=problems(), tags=["audits"])

ProposalNumber = Annotated[int, Path(ge=0, lt=2**53)]


async def may_create(request: Request) -> Caller:
    """Let in auditors whose scope holds the new name."""
    caller, name = caller_of(request), decoded(request.path_params["audit"])
    if caller.role is not Role.AUDITOR or not caller.may_see(name, name):
        raise Problem("forbidden")
    return caller


Creating = Annotated[Caller, Depends(may_create)]


@router.get("", response_model=models.AuditsPage)
async def audits(request: Request) -> JSONResponse:
    """Return the audits that the token opens."""
    caller, desk = caller_of(request), request.app.state.desk
    if caller.role not in READERS:
        raise Problem("forbidden")
    rows = [row for row in await desk.rows() if caller.may_see(row.name, row.uid)]
    return JSONResponse({"audits": [_listed(row) for row in rows]})


@router.put("/{audit}", response_model=models.AuditModel)
async def create(caller: Creating, request: Request, body: models.NewAudit) -> JSONResponse:
    """Begin an audit; the same request again finds it begun."""
    desk: Desk = request.app.state.desk
    name = decoded(request.path_params["audit"])
    row = await desk.in_writer(lambda: create_audit(desk, name, body, caller.name))
    return JSONResponse(_listed(row))


@router.get("/{audit}", response_model=models.AuditModel)
async def audit(visit: Reading, request: Request) -> JSONResponse:
    """Return one audit as the list shows it."""
    (row,) = [r for r in await request.app.state.desk.rows() if r.uid == visit.desk.row.uid]
    return JSONResponse(_listed(row))


@router.get("/{audit}/status", response_model=Status)
async def status(visit: Reading) -> JSONResponse:
    """Return people, money, evidence and drift as of now."""
    found = await visit.desk.read(lambda live: live.status())
    return JSONResponse(found.to_dict())


@router.get("/{audit}/finding", response_model=models.FindingModel)
async def finding(visit: Reading) -> JSONResponse:
    """Return the verdict, and what is established by now."""
    final, so_far = await visit.desk.read(lambda _: visit.desk.weighing.finding())
    decided = None if final is None else final.to_dict()
    return JSONResponse({"finding": decided, "so_far": so_far.to_dict()})


@router.get("/{audit}/plan", response_model=models.Forecast)
async def plan(
    visit: Reading,
    rehearse: Annotated[int, Query(ge=0, le=40, description="Rehearsals per case.")] = 0,
) -> JSONResponse:
    """Say what the audit is expected to cost in all; rehearsals take seconds to minutes."""

    def look() -> dict[str, object]:
        return forecast_of(visit.desk.reader, rehearse=rehearse)

    made = visit.desk.in_turn(look) if rehearse else visit.desk.read(lambda _: look())
    return JSONResponse(await made)


@router.get("/{audit}/drift", response_model=models.DriftPage)
async def drift(visit: Reading) -> JSONResponse:
    """Say whether the present is like the past."""
    tests = (await visit.desk.read(lambda live: live.status())).drift
    return JSONResponse({"tests": plain(tests), "alarm": any(test.alarm for test in tests)})


@router.get("/{audit}/budget", response_model=models.Budget)
async def budget(visit: Reading) -> JSONResponse:
    """Return the money of the audit."""
    found = await visit.desk.read(lambda live: live.status())
    free = None if found.cap is None else found.cap - found.spent - found.reserved
    own = {name: getattr(found, name) for name in models.Budget.model_fields if name != "free"}
    return JSONResponse({**own, "free": free})


@router.put("/{audit}/budget", response_model=models.Decision)
async def set_budget(visit: Auditing, body: models.NewBudget) -> JSONResponse:
    """Change the cap: up freely, down to what is spent or held."""
    return await _decide(visit, do.SetBudget(body.budget, body.why))


@router.put("/{audit}/limits", response_model=models.Decision)
async def set_limits(visit: Auditing, body: models.NewLimits) -> JSONResponse:
    """Change how many requests may be without an outcome at once."""
    return await _decide(
        visit, do.SetLimits(body.max_in_flight, body.max_in_flight_groups, body.why)
    )


@router.post("/{audit}/pause", response_model=models.Decision)
async def pause(visit: Auditing, body: models.Reason) -> JSONResponse:
    """Ask nobody for now; outcomes are taken all the same."""
    await _require_going_on(visit)
    return await _decide(visit, do.Pause(body.why))


@router.post("/{audit}/resume", response_model=models.Decision)
async def resume(visit: Auditing, body: models.Reason) -> JSONResponse:
    """Ask again."""
    await _require_going_on(visit)
    return await _decide(visit, do.Resume(body.why))


@router.post("/{audit}/conclude", response_model=models.Decision)
async def conclude(visit: Auditing, body: models.Reason) -> JSONResponse:
    """Say that nobody else will come."""
    return await _decide(visit, do.Conclude(body.why))


@router.post("/{audit}/proposals/{proposal}/approval", response_model=models.Decision)
async def approve(visit: Approving, proposal: ProposalNumber) -> JSONResponse:
    """Carry out what somebody else proposed."""
    return await _decide(visit, do.Approve(proposal))


@router.post("/{audit}/proposals/{proposal}/rejection", response_model=models.Decision)
async def reject(visit: Rejecting, proposal: ProposalNumber, body: models.Reason) -> JSONResponse:
    """Drop a proposal."""
    return await _decide(visit, do.Reject(proposal, body.why))


def create_audit(desk: Desk, name: str, given: models.NewAudit, actor: str) -> AuditRow:
    """Begin an audit, or find it begun with the same settings."""
    data = given.model_dump()
    costs = data.pop("costs")
    groups = {group: Costs(**own) for group, own in costs.pop("groups").items()}
    cells, question = Cells.from_dict(data.pop("past")), data.pop("question")
    arguments = {
        "history": History.from_cells(cells),
        "question": Question(**question),
        "costs": Costs(**costs, groups=groups),
        **data,
    }
    ledger = desk.settings.ledger
    try:
        live = LiveAudit.create(ledger, name, **arguments, actor=actor)
    except InvalidInput:
        if (row := _known(ledger, name)) is None:
            raise
        return _same_audit(ledger, row, name, arguments, actor)
    live.close_ledger()
    return live.row


def _same_audit(
    ledger: str, row: AuditRow, name: str, arguments: dict[str, Any], actor: str
) -> AuditRow:
    """Compare what exists with what would be made, by making it where nobody sees it."""
    stored = LiveAudit.open(ledger, row.uid)
    wanted = LiveAudit.create("sqlite://", name, **arguments, actor=actor)
    chance = ("seed_hash", "software")
    one, other = (
        {k: v for k, v in plain(live.settings.to_data()).items() if k not in chance}
        for live in (stored, wanted)
    )
    stored.close_ledger()
    if one != other:
        raise Problem("audit-exists")
    return row


def _known(ledger: str, name: str) -> AuditRow | None:
    from equipoise.ledger import list_audits

    try:
        wanted = inputs.name("name", name)
        return next((row for row in list_audits(ledger) if row.name == wanted), None)
    except EquipoiseError:
        return None


async def _decide(visit: Visit, command: Command) -> JSONResponse:
    reply = await visit.do(command)
    names = models.Decision.model_fields
    return JSONResponse({name: getattr(reply, name) for name in names})


async def _require_going_on(visit: Visit) -> None:
    if (await visit.desk.read(lambda live: live.status())).concluded is not None:
        raise Problem("audit-concluded")


def _listed(row: AuditRow) -> dict[str, object]:
    return {
        "name": row.name,
        "id": row.uid,
        "events": row.seq,
        "time": row.time,
        "cap": row.cap,
        "spent": row.spent,
        "reserved": row.reserved,
        "overrun": row.overrun,
    }
