"""``/v1``, for programs: begin audits, send commands, see where they stand and prove it.

Pseudonyms travel in bodies, never in addresses, so that no log on the way holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from equipoise._json import plain
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.ledger import LiveAudit, Reply, Status, inputs, list_audits
from equipoise.ledger.commands import person_of, printable
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord, PersonState
from equipoise.planning import Plan
from equipoise.report import to_html
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
from equipoise.service.tokens import Mark

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


# -- commands and people --------------------------------------------------------------------------


@router.post("/{audit}/commands", response_model=models.Results)
def commands(context: Commanding, body: models.Commands) -> JSONResponse:
    """Carry out 1 to 1,000 commands in their order; one that is refused holds up no other.

    What is answered is on disk. Commands may be repeated: what was carried out before is answered
    as it was, with ``repeated`` true.
    """
    given = body.to_commands()
    return JSONResponse({"results": [
        {"person": printable(person_of(command)), "problem": one.to_dict()}
        if isinstance(one, HttpProblem) else vars(one)
        for command, one in zip(given, context.results(given), strict=True)
    ]})  # fmt: skip


@router.post("/{audit}/overdue", response_model=models.Results)
def mark_overdue(context: Auditing, body: models.Overdue) -> JSONResponse:
    """Mark the requests that are older than so many days (the audit's own number if null)."""
    replies: list[Reply] = context.writer.overdue(days=body.days)
    return JSONResponse({"results": [vars(reply) for reply in replies]})


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
    rows, more = page_of(
        context.reader, state or (), conflicted=conflicted, after=after, limit=limit
    )
    return JSONResponse({"people": [models.shown(row) for row in rows], "next": more})


@router.post("/{audit}/people", response_model=models.PeoplePage)
def find_people(context: Reading, body: models.Pseudonyms) -> JSONResponse:
    """Return those of the named people whom the audit was asked about."""
    found = [context.reader.person(person) for person in body.people]
    return JSONResponse(
        {"people": [models.shown(row) for row in found if row is not None], "next": None}
    )


@router.get("/{audit}/events", response_model=models.EventsPage)
def events(context: Reading, after: After = 0, limit: AtMost = 100) -> JSONResponse:
    """Return what happened, a page at a time."""
    head = context.reader.checkpoint().seq
    found = list(context.reader.events(after=after, limit=limit))
    return JSONResponse(
        {"events": found, "next": found[-1]["seq"] if found else after, "head": head}
    )


# -- audits ---------------------------------------------------------------------------------------


@router.get("", response_model=models.AuditsPage)
def audits(caller: Reader, request: Request) -> JSONResponse:
    """Return the audits that the token opens."""
    rows = request.app.state.audits.rows()
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
    audits = request.app.state.audits
    row = create_audit(audits, decoded(audit), body.to_arguments(), caller)
    return JSONResponse(models.shown(row))


@router.get("/{audit}", response_model=models.AuditModel)
def audit(context: Reading) -> JSONResponse:
    """Return one audit as the list shows it."""
    rows = context.audits.rows()
    return JSONResponse(next(models.shown(row) for row in rows if row.uid == context.audit.uid))


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
    found = context.store.mark(context.audit.uid, decoded(number))
    if found is None or found.kind == "checkpoint":
        raise HttpProblem("not-found")
    return JSONResponse(found.to_dict())


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
    made = context.audit.reports.report()
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
    text = request.app.state.metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


# -- helpers --------------------------------------------------------------------------------------


def create_audit(
    audits: OpenAudits, name: str, arguments: Mapping[str, Any], caller: Caller
) -> AuditRow:
    """Begin an audit in the caller's scope, or find it begun with the same settings."""
    if not caller.may_see(name, name):
        raise HttpProblem("forbidden")
    ledger, actor = audits.settings.ledger, caller.name
    try:
        live = LiveAudit.create(ledger, name, **arguments, actor=actor)
    except InvalidInput:
        if (row := _row_named(ledger, name)) is None:
            raise
        return _same_audit(ledger, row, name, arguments, actor)
    live.close_ledger()
    return live.row


def page_of(
    live: LiveAudit, states: Sequence[str], *, conflicted: bool, after: int, limit: int
) -> tuple[Sequence[PersonRecord], int | None]:
    """Return a page, and where the next one begins; nobody is looked for who cannot be there."""
    status = live.status()
    known = status.conflicts if conflicted else sum(status.states.get(s, 0) for s in states)
    some = conflicted or bool(states)
    if some and not known:
        return (), None
    most = min(limit, known) if some else limit
    rows = live.people(states=states, conflicted=conflicted, after=after, limit=most)
    return rows, rows[-1].number if len(rows) == most and most == limit else None


def _same_audit(
    ledger: str, row: AuditRow, name: str, arguments: Mapping[str, Any], actor: str
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
        raise HttpProblem("audit-exists")
    return row


def _row_named(ledger: str, name: str) -> AuditRow | None:
    try:
        wanted = inputs.name("name", name)
        return next((row for row in list_audits(ledger) if row.name == wanted), None)
    except EquipoiseError:
        return None
