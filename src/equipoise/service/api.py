"""``/v1``, for programs: begin audits, send commands, see where they stand and prove it.

Pseudonyms travel in bodies, never in addresses, so that no log on the way holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, fields
from functools import reduce
from inspect import signature
from operator import or_
from typing import Annotated, Any, Literal, get_type_hints

from fastapi import APIRouter, Body, Path, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import generate_latest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, create_model

from equipoise._json import to_plain_data
from equipoise.cells import Cells, GroupCells
from equipoise.errors import InvalidInput
from equipoise.finding import Finding
from equipoise.history import History
from equipoise.ledger import LiveAudit, Reply, Status, inputs
from equipoise.ledger.commands import COMMANDS, person_of, printable, read_command
from equipoise.ledger.store import AuditRow
from equipoise.ledger.verify import PersonRecord, PersonState
from equipoise.planning import Plan
from equipoise.question import Costs, Question
from equipoise.report import Report, to_html
from equipoise.report.content import plan_similar_audit
from equipoise.service.access import Auditor, Reader, decoded
from equipoise.service.checkpoints import VERIFICATIONS, Mark
from equipoise.service.context import AuditContext, Auditing, Commanding, Reading
from equipoise.service.problems import MEDIA as PROBLEM
from equipoise.service.problems import TYPES, HttpProblem

# -- what is taken and given ----------------------------------------------------------------------

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
BATCH = 1000
SETTINGS = ("audit", "options", "budget", "max_in_flight", "max_in_flight_groups", "lottery",
            "overdue_after", "stream", "currency", "decimals", "approvals")  # fmt: skip
"""What may be said of a new audit over HTTP; the rest of ``LiveAudit.create`` is the server's."""
SECRET = ("salt", "seed", "who", "place")  # columns that nobody is shown


class Model(BaseModel):
    """What is not named here, or of another type, is refused: not ignored, not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _by(make: Callable[[Any], Any]) -> BeforeValidator:
    """Return what builds a value from JSON by its own rules, and refuses what it cannot."""

    def built(given: Any) -> Any:
        try:
            return make(given)
        except (TypeError, AttributeError, ArithmeticError):
            raise InvalidInput(f"cannot be read: {given!a}"[:200]) from None

    return BeforeValidator(built)


def cells_from(given: Any) -> Cells:
    """Return the counts of 2 to 200 groups, as JSON holds them."""
    cells = Cells.from_dict(given)
    if not 2 <= len(cells) <= 200:
        raise InvalidInput(f"there must be 2 to 200 groups; got {len(cells)}")
    if cells.total > inputs.LIMIT:
        raise InvalidInput(f"counts must add up to at most 2**53; got {cells.total:g}")
    return cells


def _model_of(kind: type, without: Sequence[str] = (), **own: Any) -> Any:
    """Return the shape of a record; what its values may be is the ledger's rule."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        made = field.default_factory
        default = field.default if made is MISSING else made()
        if field.name not in (*own, *without):
            own[field.name] = (hints[field.name], ... if default is MISSING else default)
    return create_model(kind.__name__, __base__=Model, __doc__=kind.__doc__, **own)


_SHAPES = [_model_of(kind, command=(Literal[tag], ...)) for tag, kind in COMMANDS.items()]
AnyCommand: Any = Annotated[reduce(or_, _SHAPES), Field(discriminator="command")]
Commands: Any = Annotated[
    list[AnyCommand], Body(embed=True, min_length=1, max_length=BATCH, description="In this order.")
]
Pseudonyms = Annotated[list[Name], Body(embed=True, min_length=1, max_length=BATCH)]


class ProblemModel(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str | None = None


class Refusal(Model):
    """A command that was not carried out."""

    person: str
    problem: ProblemModel


class Results(Model):
    """A result for each command, in their order; writers learn what is wanted and no more."""

    results: list[Reply | Refusal]


def shown(row: Any) -> dict[str, Any]:
    """Return a stored row without what is secret."""
    return {f.name: getattr(row, f.name) for f in fields(row) if f.name not in SECRET}


PersonModel: Any = _model_of(PersonRecord, SECRET)
AuditModel: Any = _model_of(AuditRow, SECRET)


class PeoplePage(Model):
    """People in order of arrival; ``next`` is what to pass as ``after``, null at the end."""

    people: list[PersonModel]
    next: int | None = None


class EventsPage(Model):
    """Events in order; ``next`` is what to pass as ``after``, ``head`` the number of the last."""

    events: list[dict[str, Any]]
    next: int
    head: int


_TAKEN, _HINTS = signature(LiveAudit.create).parameters, get_type_hints(LiveAudit.create)
_FIELDS: dict[str, Any] = {
    **{name: (_HINTS[name], _TAKEN[name].default) for name in SETTINGS},
    "past": (Annotated[Mapping[str, GroupCells], _by(cells_from)], ...),
    "question": (Annotated[Question, _by(Question.from_dict)], Question()),
    "costs": (Annotated[Costs, _by(Costs.from_dict)], Costs()),
    "__doc__": "An audit that begins; see ``LiveAudit.create``.",
}
NewAudit: Any = create_model("NewAudit", __base__=Model, **_FIELDS)


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": title, "model": ProblemModel, "content": {PROBLEM: {}}}
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


@router.post("/{audit}/commands", response_model=Results)
def commands(context: Commanding, commands: Commands) -> JSONResponse:
    """Carry out 1 to 1,000 commands in their order; one that is refused holds up no other.

    What is answered is on disk. Commands may be repeated: what was carried out before is answered
    as it was, with ``repeated`` true.
    """
    given = [read_command(vars(one)) for one in commands]
    return JSONResponse({"results": [
        {"person": printable(person_of(command)), "problem": one.to_dict()}
        if isinstance(one, HttpProblem) else vars(one)
        for command, one in zip(given, context.results(given), strict=True)
    ]})  # fmt: skip


@router.post("/{audit}/overdue", response_model=Results)
def mark_overdue(context: Auditing, days: Days = None) -> JSONResponse:
    """Mark the requests that are older than so many days (the audit's own number if null)."""
    return JSONResponse({"results": [vars(one) for one in context.writer.overdue(days=days)]})


@router.get("/{audit}/people", response_model=PeoplePage)
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
    return JSONResponse({"people": [shown(row) for row in rows], "next": more})


@router.post("/{audit}/people", response_model=PeoplePage)
def find_people(context: Reading, people: Pseudonyms) -> JSONResponse:
    """Return those of the named people whom the audit was asked about."""
    found = [context.reader.person(person) for person in people]
    return JSONResponse({"people": [shown(row) for row in found if row], "next": None})


@router.get("/{audit}/events", response_model=EventsPage)
def events(context: Reading, after: After = 0, limit: AtMost = 100) -> JSONResponse:
    """Return what happened, a page at a time."""
    head = context.reader.checkpoint().seq
    found = list(context.reader.events(after=after, limit=limit))
    return JSONResponse({"events": found, "next": after + len(found), "head": head})


# -- audits ---------------------------------------------------------------------------------------


@router.get("", response_model=dict[str, list[AuditModel]])
def audits(caller: Reader, request: Request) -> JSONResponse:
    """Return the audits that the token opens."""
    rows = request.app.state.audits.ledger.audits()
    seen = [shown(row) for row in rows if caller.may_see(row.name, row.uid)]
    return JSONResponse({"audits": seen})


@router.put("/{audit}", response_model=AuditModel)
def create(
    caller: Auditor,
    request: Request,
    audit: Annotated[str, Path(min_length=1, description="The new name.")],
    body: NewAudit,
) -> JSONResponse:
    """Begin an audit; the same request again finds it begun."""
    given = dict(body)
    given["history"] = History.from_cells(Cells(given.pop("past")))
    made = request.app.state.audits.create(decoded(audit), given, caller)
    return JSONResponse(shown(made))


@router.get("/{audit}", response_model=AuditModel)
def audit(context: Reading) -> JSONResponse:
    """Return one audit as the list shows it."""
    return JSONResponse(shown(context.audits.ledger.audit(context.audit.uid)))


@router.get("/{audit}/status", response_model=Status)
def status(context: Reading) -> JSONResponse:
    """Return people, money, evidence and drift as of now."""
    return JSONResponse(context.reader.status().to_dict())


@router.get("/{audit}/finding", response_model=dict[str, Finding | None])
def finding(context: Reading) -> JSONResponse:
    """Return the verdict, and what is established by now."""
    final, so_far = context.reader.finding, context.reader.so_far()
    return JSONResponse({"finding": to_plain_data(final), "so_far": so_far.to_dict()})


@router.get("/{audit}/plan", response_model=Plan)
def plan(
    context: Reading,
    trial_runs: Annotated[int, Query(ge=0, le=40, description="Simulated audits.")] = 0,
) -> JSONResponse:
    """Plan an audit like this one, from its first request, with what it learnt of the denied.

    It may have spent more than its plan says; the status tells. Trial runs take seconds to minutes.
    """
    with context.audits.long_work() if trial_runs else nullcontext():
        return JSONResponse(plan_similar_audit(context.reader, trial_runs=trial_runs).to_dict())


# -- proof ----------------------------------------------------------------------------------------


@router.get(
    "/{audit}/report",
    response_class=Response,
    responses={200: {"content": {FORMS[form]: {} for form in ("html", "json")}}},
)
def report(context: Reading, form: Literal["html", "json"] = "html") -> Response:
    """Return the report: HTML for people, JSON for programs."""
    made = Report.of(context.reader)
    text = made.to_json(indent=2) if form == "json" else to_html(made)
    headers = as_file(context, f"report.{form}")
    return Response(text, media_type=f"{FORMS[form]}; charset=utf-8", headers=headers)


@router.get(
    "/{audit}/export",
    response_class=StreamingResponse,
    responses={200: {"content": {FORMS["jsonl"]: {}}}},
)
def export(context: Reading) -> Response:
    """Return every event as a file that anybody can check."""
    # a few events at a time: nobody waits for a slow reader
    lines = (f"{line}\n" for line in context.reader.lines(context.reader.checkpoint().seq))
    headers = as_file(context, "export.jsonl")
    return StreamingResponse(lines, media_type=FORMS["jsonl"], headers=headers)


@router.get("/{audit}/checkpoints", response_model=dict[str, list[Mark]])
def checkpoints(context: Reading) -> JSONResponse:
    """Return the ends of the chain that were handed out, the latest first."""
    return JSONResponse(
        {"marks": to_plain_data(context.checkpoints.marks(context.audit.uid, "checkpoint"))}
    )


@router.post("/{audit}/checkpoints", response_model=Mark)
def checkpoint(context: Reading) -> JSONResponse:
    """Hand out the present end of the chain, to keep elsewhere."""
    return JSONResponse(context.hand_out_checkpoint()[1].to_dict())


@router.post("/{audit}/verifications", response_model=Mark, status_code=202)
def verify(context: Auditing) -> JSONResponse:
    """Begin to check chain, money, tables and statistics; ask for it by its ``id`` until it ends.

    ``kind`` is then ``verified`` or ``broken``, with the reason in ``note``.
    """
    return JSONResponse(context.begin_verification().to_dict(), 202)


@router.get("/{audit}/verifications/{number}", response_model=Mark)
def verification(context: Reading, number: str) -> JSONResponse:
    """Say how a verification goes, or went."""
    for found in context.checkpoints.marks(context.audit.uid, *VERIFICATIONS):
        if found.id == number:
            return JSONResponse(found.to_dict())
    raise HttpProblem("not-found")


def as_file(context: AuditContext, name: str) -> dict[str, str]:
    """Return the headers of a file to keep, which is named after its audit."""
    return {
        "content-disposition": f"attachment; filename*=UTF-8''{context.audit.part}-{name}",
        "content-security-policy": REPORT_POLICY,
    }


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


def page_of(
    live: LiveAudit, states: Sequence[str], conflicted: bool, after: int, limit: int
) -> tuple[Sequence[PersonRecord], int | None]:
    """Return a page, and where the next one begins."""
    rows = live.people(states=states, conflicted=conflicted, after=after, limit=limit)
    return rows, rows[-1].number if len(rows) == limit else None
