"""``/v1``, for programs: begin audits, send commands, see where they stand and prove it.

Pseudonyms travel in bodies, never in addresses, so that no log on the way holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Body, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import generate_latest
from pydantic import StringConstraints

from equipoise.finding import Finding
from equipoise.ledger import LiveAudit, Status
from equipoise.ledger.commands import person_of, printable, read_command
from equipoise.ledger.live import COMMANDS_OF_A_SINGLE
from equipoise.ledger.verify import PersonRecord, PersonState
from equipoise.people import understand_command
from equipoise.planning import Plan
from equipoise.report import Report, to_html
from equipoise.report.content import estimate_denied_rates
from equipoise.service.access import Auditor, Reader, decode_path_part
from equipoise.service.audit_metrics import describe_audits
from equipoise.service.audits import new_seed, require_name_in_scope
from equipoise.service.checkpoints import VERIFICATIONS, Mark
from equipoise.service.context import AuditContext, AuditorContext, CommandContext, ReaderContext
from equipoise.service.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPES, HttpProblem
from equipoise.service.wire import (
    AnyCommand,
    AuditRow,
    EventsPage,
    NewAudit,
    PeoplePage,
    ProblemModel,
    Results,
    audit_json,
    person_json,
    reply_json,
)

MAX_COMMANDS = 1000  # of one request
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Commands: Any = Annotated[
    list[AnyCommand],
    Body(embed=True, min_length=1, max_length=MAX_COMMANDS, description="In this order."),
]
Pseudonyms = Annotated[list[Name], Body(embed=True, min_length=1, max_length=MAX_COMMANDS)]

REFUSAL_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": title, "model": ProblemModel, "content": {PROBLEM_MEDIA_TYPE: {}}}
    # Backwards, so that of several titles of a status the first one stays.
    for status, title in reversed(list(PROBLEM_TYPES.values()))
    if status not in (405, 500)
}
"""The problems that every endpoint may answer, for the OpenAPI description."""
MEDIA_TYPES = {"html": "text/html", "json": "application/json", "jsonl": "application/jsonl"}
# A report is a single file with its style inside; no script in it may run.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

router = APIRouter(prefix="/v1/audits", responses=REFUSAL_RESPONSES)
probes = APIRouter()

After = Annotated[int, Query(ge=0, lt=2**53, description="Those with larger numbers.")]
PageSize = Annotated[int, Query(ge=1, le=1000)]
Days = Annotated[
    float | None, Body(embed=True, ge=0.0, le=36600.0, allow_inf_nan=False, strict=True)
]


# -- commands and people --------------------------------------------------------------------------


@router.post("/{audit}/commands", response_model=Results)
async def commands(context: CommandContext, commands: Commands, request: Request) -> JSONResponse:
    """Carry out 1 to 1,000 commands in their order; one that is refused holds up no other.

    What is answered is on disk. Commands may be repeated: what was carried out before is answered
    as it was, with ``repeated`` true. Groups, decisions and outcomes may be in the words of the
    historical data, if the audit knows them.
    """
    # Batches that wait for each other may not take the threads of single commands and probes.
    is_batch = len(commands) > COMMANDS_OF_A_SINGLE
    threads = request.app.state.batch_threads if is_batch else None
    return await to_thread.run_sync(_carry_out, context, commands, limiter=threads)


def _carry_out(context: AuditContext, commands: Commands) -> JSONResponse:
    sent_commands = [read_command(command.model_dump()) for command in commands]
    values = context.audit.values
    understood = [understand_command(command, values) for command in sent_commands]
    command_results = []
    for command, reply_or_problem in zip(
        sent_commands, context.run_commands(understood), strict=True
    ):
        if isinstance(reply_or_problem, HttpProblem):
            # What was sent as a pseudonym may be any text, also one that cannot be written.
            person = printable(person_of(command))
            command_results.append({"person": person, "problem": reply_or_problem.to_dict()})
        else:
            command_results.append(reply_json(reply_or_problem))
    answer: dict[str, Any] = {"results": command_results}
    if context.caller.may_see_details:  # which groups are needed is not for writers
        waiting = context.audit.writer.waiting()
        answer["waiting"] = [group.to_dict() | {"text": str(group)} for group in waiting]
    return JSONResponse(answer)


@router.post("/{audit}/overdue", response_model=Results)
def mark_overdue(context: AuditorContext, days: Days = None) -> JSONResponse:
    """Mark the requests that are older than so many days (the audit's own number if null)."""
    replies = context.writer.overdue(days=days)
    return JSONResponse({"results": [reply_json(reply) for reply in replies]})


@router.get("/{audit}/people", response_model=PeoplePage)
def people(
    context: ReaderContext,
    state: Annotated[
        list[PersonState] | None, Query(description="Any of these; all if left out.")
    ] = None,
    conflicted: Annotated[bool, Query(description="Contradicted outcomes only.")] = False,
    after: After = 0,
    limit: PageSize = 100,
) -> JSONResponse:
    """Return people in order of arrival, a page at a time."""
    records, next_after = people_page(context.reader, state or (), conflicted, after, limit)
    people_json = [person_json(record) for record in records]
    return JSONResponse({"people": people_json, "next": next_after})


@router.post("/{audit}/people", response_model=PeoplePage)
def find_people(context: ReaderContext, people: Pseudonyms) -> JSONResponse:
    """Return those of the named people whom the audit was asked about."""
    records = [context.reader.person(pseudonym) for pseudonym in people]
    people_json = [person_json(record) for record in records if record is not None]
    return JSONResponse({"people": people_json, "next": None})


@router.get("/{audit}/events", response_model=EventsPage)
def events(context: ReaderContext, after: After = 0, limit: PageSize = 100) -> JSONResponse:
    """Return what happened, a page at a time."""
    # Before the events, so that ``head`` is never ahead of what a later page can show.
    head = context.reader.checkpoint().seq
    page = list(context.reader.events(after=after, limit=limit))
    return JSONResponse({"events": page, "next": after + len(page), "head": head})


# -- audits ---------------------------------------------------------------------------------------


@router.get("", response_model=dict[str, list[AuditRow]])
def audits(caller: Reader, request: Request) -> JSONResponse:
    """Return the audits that the token opens."""
    rows = request.app.state.audits.ledger.audits()
    in_scope = [audit_json(row) for row in rows if caller.may_see(row.name, row.uid)]
    return JSONResponse({"audits": in_scope})


@router.put("/{audit}", response_model=AuditRow)
def create(
    caller: Auditor,
    request: Request,
    audit: Annotated[str, Path(min_length=1, description="The new name.")],
    body: NewAudit,
) -> JSONResponse:
    """Begin an audit; the same request again finds it begun."""
    # Scope first: a caller learns nothing about settings of audits outside of it.
    name = require_name_in_scope(decode_path_part(audit), caller)
    seed = new_seed()
    open_audits = request.app.state.audits
    settings = body.to_settings(name, seed)
    row = open_audits.begin(settings, seed, caller, confirm=body.confirm)
    return JSONResponse(audit_json(row))


@router.get("/{audit}", response_model=AuditRow)
def audit(context: ReaderContext) -> JSONResponse:
    """Return one audit as the list shows it."""
    row = context.audits.ledger.audit(context.audit.uid)
    return JSONResponse(audit_json(row))


@router.get("/{audit}/status", response_model=Status)
def status(context: ReaderContext) -> JSONResponse:
    """Return people, money, evidence and drift as of now."""
    return JSONResponse(context.reader.status().to_dict())


@router.get("/{audit}/finding", response_model=dict[str, Finding | None])
def finding(context: ReaderContext) -> JSONResponse:
    """Return the verdict, and what is established by now."""
    verdict = context.reader.finding
    so_far = context.reader.so_far()
    final = None if verdict is None else verdict.to_dict()
    return JSONResponse({"finding": final, "so_far": so_far.to_dict()})


@router.get("/{audit}/plan", response_model=Plan)
def plan(
    context: ReaderContext,
    trial_runs: Annotated[int, Query(ge=0, le=40, description="Simulated audits.")] = 0,
) -> JSONResponse:
    """Plan an audit like this one, from its first request, with what it learnt of the denied.

    It may have spent more than its plan says; the status tells. Trial runs take seconds to minutes.
    A plan has the memory and the time of an uploaded table.
    """
    settings = context.reader.settings
    data = context.audits.make_plan(
        *(settings.past, settings.question, settings.costs, context.caller),
        denied_rate=estimate_denied_rates(context.reader),
        trial_runs=trial_runs,
    )
    return JSONResponse(data)


# -- proof ----------------------------------------------------------------------------------------


@router.get(
    "/{audit}/report",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPES[form]: {} for form in ("html", "json")}}},
)
def report(context: ReaderContext, form: Literal["html", "json"] = "html") -> Response:
    """Return the report: HTML for people, JSON for programs."""
    report_content = Report.of(context.reader)
    text = report_content.to_json(indent=2) if form == "json" else to_html(report_content)
    headers = download_headers(context, f"report.{form}")
    return Response(text, media_type=f"{MEDIA_TYPES[form]}; charset=utf-8", headers=headers)


@router.get(
    "/{audit}/export",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPES["jsonl"]: {}}}},
)
def export(context: ReaderContext) -> Response:
    """Return every event as a file that anybody can check."""
    head = context.reader.checkpoint()
    # Read a few at a time, so that a slow client keeps no transaction open.
    lines = (f"{line}\n" for line in context.reader.lines(head.seq))
    headers = download_headers(context, "export.jsonl")
    return StreamingResponse(lines, media_type=MEDIA_TYPES["jsonl"], headers=headers)


@router.get("/{audit}/checkpoints", response_model=dict[str, list[Mark]])
def checkpoints(context: ReaderContext) -> JSONResponse:
    """Return the ends of the chain that were handed out, the latest first."""
    marks = context.checkpoints.marks(context.audit.uid, "checkpoint")
    return JSONResponse({"marks": [mark.to_dict() for mark in marks]})


@router.post("/{audit}/checkpoints", response_model=Mark)
def checkpoint(context: ReaderContext) -> JSONResponse:
    """Hand out the present end of the chain, to keep elsewhere."""
    _, mark = context.hand_out_checkpoint()
    return JSONResponse(mark.to_dict())


@router.post("/{audit}/verifications", response_model=Mark, status_code=202)
def verify(context: AuditorContext) -> JSONResponse:
    """Begin to check chain, money, tables and statistics; ask for it by its ``id`` until it ends.

    ``kind`` is then ``verified`` or ``broken``, with the reason in ``note``.
    """
    return JSONResponse(context.begin_verification().to_dict(), 202)


@router.get("/{audit}/verifications/{number}", response_model=Mark)
def verification(context: ReaderContext, number: str) -> JSONResponse:
    """Say how a verification goes, or went."""
    for mark in context.checkpoints.marks(context.audit.uid, *VERIFICATIONS):
        if mark.id == number:
            return JSONResponse(mark.to_dict())
    raise HttpProblem("not-found")


def download_headers(context: AuditContext, file_name: str) -> dict[str, str]:
    """Return the headers of a file to save, which is named after its audit."""
    return {
        "content-disposition": f"attachment; filename*=UTF-8''{context.audit.url_name}-{file_name}",
        "content-security-policy": REPORT_POLICY,
    }


# -- whether the server lives ---------------------------------------------------------------------


@probes.get("/livez", response_model=dict[str, str])
async def livez() -> JSONResponse:
    """Say that the process answers."""
    return JSONResponse({"status": "ok"})


@probes.get("/readyz", response_model=dict[str, str], responses={503: REFUSAL_RESPONSES[503]})
async def readyz(request: Request) -> JSONResponse:
    """Say whether the ledger can be written and still holds what was seen of it."""
    state = request.app.state
    try:
        await to_thread.run_sync(state.audits.require_ready, limiter=state.probe_threads)
    except Exception:  # whatever fails, this server should get no requests now
        raise HttpProblem("storage-unavailable") from None
    return JSONResponse({"status": "ok"})


@probes.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}},
        401: REFUSAL_RESPONSES[401],
        403: REFUSAL_RESPONSES[403],
    },
)
def metrics(caller: Reader, request: Request) -> Response:
    """Return what the server counts; a reader's token for every audit is needed."""
    if caller.audit is not None:  # the metrics are about all audits
        raise HttpProblem("forbidden")
    state = request.app.state
    text = generate_latest(state.metrics) + describe_audits(state.audits, state.checkpoints)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


# -- helpers --------------------------------------------------------------------------------------


def people_page(
    live: LiveAudit, states: Sequence[str], conflicted: bool, after: int, limit: int
) -> tuple[Sequence[PersonRecord], int | None]:
    """Return a page of people, and the number after which the next page begins (None: no more)."""
    records = live.people(states=states, conflicted=conflicted, after=after, limit=limit)
    has_more = len(records) == limit
    return records, records[-1].number if has_more else None
