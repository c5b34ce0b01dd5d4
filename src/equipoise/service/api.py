"""``/v1``, for programs: begin audits, send commands, see where they stand and prove it.

Pseudonyms travel in bodies, never in addresses, so that no log on the way holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Body, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import generate_latest

from equipoise._json import plain
from equipoise.cells import Cells
from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.commands import COMMANDS, person_of, printable
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord, PersonState
from equipoise.planning import Plan
from equipoise.report import Report, to_html
from equipoise.report.content import plan_of
from equipoise.service import models
from equipoise.service.access import Auditor, Caller, Reader, decoded
from equipoise.service.audits import (
    AuditContext,
    Auditing,
    Commanding,
    OpenAudits,
    Reading,
    begin_verification,
    hand_out_checkpoint,
)
from equipoise.service.problems import MEDIA as PROBLEM
from equipoise.service.problems import TYPES, HttpProblem
from equipoise.service.tokens import VERIFICATIONS, Mark

__all__ = ["create_audit", "export", "page_of", "probes", "report", "router"]

REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": title, "model": models.ProblemModel, "content": {PROBLEM: {}}}
    for code, title in [*TYPES.values()][::-1]  # of several titles the first
    if code not in (405, 500)
}
FORMS = {"html": "text/html", "json": "application/json", "jsonl": "application/jsonl"}
# A report is a file of its own, with its style inside; nothing in it may run.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

router = APIRouter(prefix="/v1/audits", responses=REFUSALS)
probes = APIRouter()

After = Annotated[int, Query(ge=0, lt=2**53, description="Those with larger numbers.")]
AtMost = Annotated[int, Query(ge=1, le=1000)]
Days = Annotated[
    float | None, Body(embed=True, ge=0.0, le=36600.0, allow_inf_nan=False, strict=True)
]


# -- commands and people --------------------------------------------------------------------------


@router.post("/{audit}/commands", response_model=models.Results)
def commands(context: Commanding, commands: models.Commands) -> JSONResponse:
    """Carry out 1 to 1,000 commands in their order; one that is refused holds up no other.

    What is answered is on disk. Commands may be repeated: what was carried out before is answered
    as it was, with ``repeated`` true.
    """
    given = [COMMANDS[one.command](**vars(one)) for one in commands]
    return JSONResponse({"results": [
        {"person": printable(person_of(command)), "problem": one.to_dict()}
        if isinstance(one, HttpProblem) else vars(one)
        for command, one in zip(given, context.results(given), strict=True)
    ]})  # fmt: skip


@router.post("/{audit}/overdue", response_model=models.Results)
def mark_overdue(context: Auditing, days: Days = None) -> JSONResponse:
    """Mark the requests that are older than so many days (the audit's own number if null)."""
    return JSONResponse({"results": [vars(one) for one in context.writer.overdue(days=days)]})


@router.get("/{audit}/people", response_model=models.PeoplePage)
def people(
    context: Reading,
    state: Annotated[
        list[PersonState] | None, Query(description="Any of these; all if left out.")
    ] = None,
    conflicted: Annotated[bool, Query(description="Contradicted outcomes only.")] = False,
    after: After = 0,
    limit: AtMost = 100,
) -> JSONResponse:
    """Return people in order of arrival, a page at a time."""
    rows, more = page_of(context.reader, state or (), conflicted, after, limit)
    return JSONResponse({"people": [models.shown(row) for row in rows], "next": more})


@router.post("/{audit}/people", response_model=models.PeoplePage)
def find_people(context: Reading, people: models.Pseudonyms) -> JSONResponse:
    """Return those of the named people whom the audit was asked about."""
    found = [context.reader.person(person) for person in people]
    return JSONResponse({"people": [models.shown(row) for row in found if row], "next": None})


@router.get("/{audit}/events", response_model=models.EventsPage)
def events(context: Reading, after: After = 0, limit: AtMost = 100) -> JSONResponse:
    """Return what happened, a page at a time."""
    head = context.reader.checkpoint().seq
    found = list(context.reader.events(after=after, limit=limit))
    return JSONResponse({"events": found, "next": after + len(found), "head": head})


# -- audits ---------------------------------------------------------------------------------------


@router.get("", response_model=models.AuditsPage)
def audits(caller: Reader, request: Request) -> JSONResponse:
    """Return the audits that the token opens."""
    rows = request.app.state.audits.ledger.audits()
    seen = [models.shown(row) for row in rows if caller.may_see(row.name, row.uid)]
    return JSONResponse({"audits": seen})


@router.put("/{audit}", response_model=models.AuditModel)
def create(
    caller: Auditor,
    request: Request,
    audit: Annotated[str, Path(min_length=1, description="The new name.")],
    body: models.NewAudit,
) -> JSONResponse:
    """Begin an audit; the same request again finds it begun."""
    given = dict(body)
    given["history"] = History.from_cells(Cells(given.pop("past")))
    made = create_audit(request.app.state.audits, decoded(audit), given, caller)
    return JSONResponse(models.shown(made))


@router.get("/{audit}", response_model=models.AuditModel)
def audit(context: Reading) -> JSONResponse:
    """Return one audit as the list shows it."""
    return JSONResponse(models.shown(context.audits.ledger.audit(context.audit.uid)))


@router.get("/{audit}/status", response_model=Status)
def status(context: Reading) -> JSONResponse:
    """Return people, money, evidence and drift as of now."""
    return JSONResponse(context.reader.status().to_dict())


@router.get("/{audit}/finding", response_model=models.FindingModel)
def finding(context: Reading) -> JSONResponse:
    """Return the verdict, and what is established by now."""
    final, so_far = context.reader.finding, context.reader.so_far()
    return JSONResponse({"finding": plain(final), "so_far": so_far.to_dict()})


@router.get("/{audit}/plan", response_model=Plan)
def plan(
    context: Reading,
    trial_runs: Annotated[int, Query(ge=0, le=40, description="Simulated audits.")] = 0,
) -> JSONResponse:
    """Plan an audit like this one, from its first request, with what it learnt of the denied.

    It may have spent more than its plan says; the status tells. Trial runs take seconds to minutes.
    """
    with context.audits.long_work() if trial_runs else nullcontext():
        return JSONResponse(plan_of(context.reader, trial_runs=trial_runs or None).to_dict())


# -- proof ----------------------------------------------------------------------------------------


@router.get(
    "/{audit}/report",
    response_class=Response,
    responses={200: {"content": {FORMS[form]: {} for form in ("html", "json")}}},
)
def report(context: Reading, form: Literal["html", "json"] = "html") -> Response:
    """Return the report: HTML for people, JSON for programs."""
    return download(context, form)


@router.get(
    "/{audit}/export",
    response_class=StreamingResponse,
    responses={200: {"content": {FORMS["jsonl"]: {}}}},
)
def export(context: Reading) -> Response:
    """Return every event as a file that anybody can check."""
    return download(context, "jsonl")


@router.get("/{audit}/checkpoints", response_model=models.MarksPage)
def checkpoints(context: Reading) -> JSONResponse:
    """Return the ends of the chain that were handed out, the latest first."""
    return JSONResponse({"marks": plain(context.store.marks(context.audit.uid, "checkpoint"))})


@router.post("/{audit}/checkpoints", response_model=Mark)
def checkpoint(context: Reading) -> JSONResponse:
    """Hand out the present end of the chain, to keep elsewhere."""
    return JSONResponse(hand_out_checkpoint(context)[1].to_dict())


@router.post("/{audit}/verifications", response_model=Mark, status_code=202)
def verify(context: Auditing) -> JSONResponse:
    """Begin to check chain, money, tables and statistics; ask for it by its ``id`` until it ends.

    ``kind`` is then ``verified`` or ``broken``, with the reason in ``note``.
    """
    return JSONResponse(begin_verification(context).to_dict(), 202)


@router.get("/{audit}/verifications/{number}", response_model=Mark)
def verification(context: Reading, number: str) -> JSONResponse:
    """Say how a verification goes, or went."""
    for found in context.store.marks(context.audit.uid, *VERIFICATIONS):
        if found.id == number:
            return JSONResponse(found.to_dict())
    raise HttpProblem("not-found")


def download(context: AuditContext, form: str) -> Response:
    """Return a report, or the export, as a file."""
    name = (
        f"{quote(context.audit.name, safe='')}-{'export' if form == 'jsonl' else 'report'}.{form}"
    )
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
        "content-security-policy": REPORT_POLICY,
    }
    if form == "jsonl":  # a few events at a time: nobody waits for a slow reader
        lines = (f"{line}\n" for line in context.reader.lines(context.reader.checkpoint().seq))
        return StreamingResponse(lines, media_type=FORMS[form], headers=headers)
    made = Report.of(context.reader)
    text = made.to_json(indent=2) if form == "json" else to_html(made)
    return Response(text, media_type=f"{FORMS[form]}; charset=utf-8", headers=headers)


# -- whether the server lives ---------------------------------------------------------------------


@probes.get("/livez", response_model=dict[str, str])
async def livez() -> JSONResponse:
    """Say that the process answers."""
    return JSONResponse({"status": "ok"})


@probes.get("/readyz", response_model=dict[str, str], responses={503: REFUSALS[503]})
def readyz(request: Request) -> JSONResponse:
    """Say whether the ledger can be written and still holds what was seen of it."""
    try:
        request.app.state.audits.require_ready()
    except Exception:
        raise HttpProblem("storage-unavailable") from None
    return JSONResponse({"status": "ok"})


@probes.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, 401: REFUSALS[401], 403: REFUSALS[403]},
)
def metrics(caller: Reader, request: Request) -> Response:
    """Return what the server counts; a reader's token for every audit is needed."""
    if caller.audit is not None:
        raise HttpProblem("forbidden")
    text = generate_latest(request.app.state.metrics)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


# -- helpers --------------------------------------------------------------------------------------


def create_audit(
    audits: OpenAudits, name: str, arguments: Mapping[str, Any], caller: Caller
) -> AuditRow:
    """Begin an audit in the caller's scope, or find it begun with the same settings."""
    if not caller.may_see(name, name):
        raise HttpProblem("forbidden")
    try:
        live = LiveAudit.create(audits.settings.ledger, name, **arguments, actor=caller.name)
    except InvalidInput as refused:
        # made where nobody sees it, to compare; refused again where it is wrong in itself
        wanted = _comparable(LiveAudit.create("sqlite://", name, **arguments))
        stored = _comparable(audits.open(name).reader)
        if stored["name"] != wanted["name"]:
            raise refused from None
        if stored != wanted:
            raise HttpProblem("audit-exists") from None
        return audits.ledger.audit(name)
    live.close_ledger()
    return live.row


def page_of(
    live: LiveAudit, states: Sequence[str], conflicted: bool, after: int, limit: int
) -> tuple[Sequence[PersonRecord], int | None]:
    """Return a page, and where the next one begins."""
    rows = live.people(states=states, conflicted=conflicted, after=after, limit=limit)
    return rows, rows[-1].number if len(rows) == limit else None


def _comparable(live: LiveAudit) -> dict[str, Any]:
    """Return what an audit was created with, except what differs each time."""
    data = plain(live.settings.to_data())
    return {name: v for name, v in data.items() if name not in ("seed_hash", "software")}
