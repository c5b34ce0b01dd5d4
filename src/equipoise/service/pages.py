"""The dashboard: log in, see all audits, watch one, and enter by hand what programs send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history.coding import ValueReader
from equipoise.ledger import LiveAudit, Reply, commands
from equipoise.ledger.commands import Command
from equipoise.ledger.verify import PersonState
from equipoise.people import (
    BatchResult,
    MissingColumn,
    RowReader,
    RowResult,
    carry_out,
    columns_to_read,
)
from equipoise.protocol import Want
from equipoise.report.event_log import log_rows
from equipoise.service.access import SESSION_COOKIE, Reader, count_failed_attempt, new_session
from equipoise.service.amounts import budget_of
from equipoise.service.api import After, download_headers, export, people_page, report
from equipoise.service.checkpoints import VERIFICATIONS
from equipoise.service.context import AuditContext, AuditorContext, ReaderContext
from equipoise.service.forms import Form, SentForm, read_form, render_page
from equipoise.service.problems import HttpProblem, as_problem
from equipoise.service.tokens import READERS
from equipoise.service.uploads import explain_missing_column

router = APIRouter(include_in_schema=False)

ROWS_PER_PAGE = 50
MAX_OVERRIDES = 300  # overrides on one list
EVIDENCE_WAIT_SECONDS = 2.0  # seconds that a page waits for the evidence
WANT_SENTENCES = {
    "NOTHING": "Nothing is wanted of this person.",
    "SCORE_ONLY": "The score of this person counts; nothing more is wanted.",
    "LABEL": "The outcome is wanted: override the refusal, and enter the outcome when it is known.",
}
IRREVERSIBLE_EFFECTS = {
    "conclude": "The audit ends here, with the answer that the evidence supports by now. Nobody "
    "else will be asked, and it cannot be begun again.",
    "write_off": "The outcome of this person is given up. Its highest cost is booked as spent, and "
    "the outcome counts as unknown for ever, even if it comes later.",
    "erase": "The pseudonym of this person is deleted. Nobody will be able to tell who it was, and "
    "no outcome can be entered for them any more.",
}
"""Command -> what cannot be undone."""
NOBODY: dict[str, Any] = {"people": (), "more": None, "state": None, "conflicted": False,
                          "sought": "", "states": list(PersonState)}  # fmt: skip
"""What the page of people shows if nobody is looked for."""
IRREVERSIBLE_PROPOSALS = {"concluded": "conclude", "erased": "erase"}  # proposals -> commands


# -- logging in -----------------------------------------------------------------------------------


@router.get("/login")
def login(request: Request) -> Response:
    """Ask for a token."""
    if request.state.caller is not None:
        return RedirectResponse("/", 303)
    return render_page(None, "login.html", refused="")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session."""
    state, form = request.app.state, await read_form(request)
    token = await run_in_threadpool(state.store.find, form.text("token"))
    if token is None or token.role not in READERS:
        # whoever holds a token is let in, whatever others at this address try
        count_failed_attempt(request)
        refusal = "That is not a token that opens the dashboard, or it has expired."
        return render_page(None, "login.html", status=401, refused=refusal)
    answer = RedirectResponse("/", 303)
    cookie, https = new_session(state.settings, token), state.settings.https
    answer.set_cookie(
        SESSION_COOKIE, cookie, httponly=True, samesite="strict", path="/", secure=https
    )
    return answer


@router.post("/logout")
def log_out(request: Request, form: SentForm) -> Response:
    """End every session of the caller's token."""
    request.app.state.store.log_out(request.state.caller.token_id)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(SESSION_COOKIE, path="/")
    return answer


# -- looking --------------------------------------------------------------------------------------


@router.get("/")
def audits(caller: Reader, request: Request, after: After = 0) -> HTMLResponse:
    """List the audits."""
    open_audits = request.app.state.audits
    rows_of_ledger = open_audits.ledger.audits()
    rows = [row for row in rows_of_ledger if caller.may_see(row.name, row.uid) and row.id > after]
    page_rows = [(row, open_audits.open(row.uid).reader.status()) for row in rows[:ROWS_PER_PAGE]]
    next_after = rows[ROWS_PER_PAGE - 1].id if len(rows) > ROWS_PER_PAGE else None
    return render_page(caller, "audits.html", audits=page_rows, more=next_after)


@router.get("/audits/{audit}")
def audit(context: ReaderContext, done: str = "", want: str = "") -> HTMLResponse:
    """Watch one audit."""
    return _audit_page(context, done=WANT_SENTENCES.get(want, done))


@router.get("/audits/{audit}/live")
def live(context: ReaderContext) -> HTMLResponse:
    """Return what moves on the page of an audit; the page asks for it every five seconds."""
    return _audit_page(context, "live.html", wait_seconds=0.0)


@router.get("/audits/{audit}/people")
def people(
    context: ReaderContext,
    state: PersonState | None = None,
    conflicted: bool = False,
    after: After = 0,
) -> HTMLResponse:
    """List people by state, a page at a time."""
    states = () if state is None else (state,)
    rows, next_after = people_page(context.reader, states, conflicted, after, ROWS_PER_PAGE)
    variables = {"people": rows, "more": next_after, "state": state, "conflicted": conflicted}
    return _page(context, "people.html", **NOBODY | variables)


@router.post("/audits/{audit}/people")
def find(context: ReaderContext, form: SentForm) -> HTMLResponse:
    """Find somebody by pseudonym; it is no part of an address, so no log has it."""
    record = context.reader.person(form.text("person"))
    variables = {"people": [record] if record else [], "sought": form.text("person")}
    return _page(context, "people.html", **NOBODY | variables)


@router.get("/audits/{audit}/log")
def log(
    context: ReaderContext, before: Annotated[int | None, Query(ge=1, lt=2**53)] = None
) -> HTMLResponse:
    """Show who did what, the latest first."""
    end = context.reader.checkpoint().seq + 1 if before is None else before
    first = max(0, end - 1 - ROWS_PER_PAGE)
    events = context.reader.events(after=first, limit=end - 1 - first)
    entries = log_rows(events, context.reader.settings)[::-1]
    return _page(context, "log.html", entries=entries, more=first + 1 if first else None)


router.get("/audits/{audit}/report")(report)
router.get("/audits/{audit}/export")(export)


# -- doing ----------------------------------------------------------------------------------------


@router.post("/audits/{audit}/do/checkpoint")
def checkpoint(context: ReaderContext, form: SentForm) -> Response:
    """Return a checkpoint as a file that ``equipoise audit verify --checkpoint`` reads."""
    point, _ = context.hand_out_checkpoint()
    headers = download_headers(context, f"checkpoint-{point.seq}.jsonl")
    return Response(point.to_json() + "\n", media_type="application/jsonl", headers=headers)


@router.post("/audits/{audit}/do/verify")
def verify(context: AuditorContext, form: SentForm) -> Response:
    """Begin a verification, whose result appears on the page."""
    context.begin_verification()
    return RedirectResponse(f"/audits/{context.audit.url_name}?done=verify", 303)


@router.post("/audits/{audit}/do/{what}")
def act(
    context: ReaderContext, action: Annotated[str, Path(alias="what")], form: SentForm
) -> Response:
    """Carry out a form and show the page again; ask once more about what cannot be undone."""
    action = form.text("what") or action  # where one form offers several
    proposals = {
        proposal.number: proposal.command for proposal in context.reader.status().proposals
    }
    try:
        command = _command_from_form(form, action, context.reader)
        if isinstance(command, EquipoiseError):
            raise command
        effect: str = command.command
        if isinstance(command, commands.Approve):
            effect = IRREVERSIBLE_PROPOSALS.get(proposals.get(command.proposal, ""), "")
        is_allowed = context.caller.may_do(command.command)
        if is_allowed and effect in IRREVERSIBLE_EFFECTS and form.text("sure") != "yes":
            return _page(
                context, "sure.html", what=action, words=IRREVERSIBLE_EFFECTS[effect], form=form
            )
        (reply,) = context.results([command])
        if isinstance(reply, HttpProblem):
            raise reply
    except (HttpProblem, EquipoiseError) as error:
        problem = as_problem(error)
        return _audit_page(context, problem=problem, status=problem.status_code)
    is_state_news = reply.state == "PROPOSED" or action in ("pause", "resume")
    done = reply.state.lower() if is_state_news else action
    query = f"done={done}" + (f"&want={reply.want}" if action == "ask" else "")
    return RedirectResponse(f"/audits/{context.audit.url_name}?{query}", 303)


def _command_from_form(form: Form, action: str, live: LiveAudit) -> Command | InvalidInput:
    """Return the command that a form stands for."""
    fields_sent = {name: form.text(name) for name in form}
    if action == "set_budget":
        return commands.SetBudget(budget_of(form, live.settings.decimals), form.text("why"))
    if action == "decide":  # nothing is chosen for those who choose nothing
        action = form.text("choice")
        if action not in ("approve", "reject"):
            raise InvalidInput("choose whether to approve or to reject it")
        fields_sent["why"] = form.text("why") or "not approved"
    if action not in commands.COMMANDS:
        raise HttpProblem("not-found")
    return _command_from_words(action, fields_sent, live.settings.values)


def _command_from_words(
    tag: str, words: Mapping[str, str], values: ValueReader
) -> Command | InvalidInput:
    """Return a command from the words of a form, or why it is none."""
    readers: dict[str, Callable[[str], Any]] = {
        "group": values.read_group,
        "decision": partial(values.read_bit, "decision"),
        "outcome": partial(values.read_bit, "outcome"),
        "score": float,
        "price": float,
        "proposal": int,
    }
    field_names = [field.name for field in fields(commands.COMMANDS[tag]) if words.get(field.name)]
    try:
        values_read = {name: readers.get(name, str)(words[name]) for name in field_names}
        return commands.read_command({**values_read, "command": tag})
    except ValueError as error:
        return InvalidInput(str(error))


@router.get("/audits/{audit}/work")
def work(context: ReaderContext) -> HTMLResponse:
    """List the overrides that are to be carried out: today's, and those left over."""
    reserved = context.reader.people(states=("RESERVED",), limit=MAX_OVERRIDES)
    rows = [row for row in reserved if row.decision == 0]  # the approved need no override
    today = datetime.now(UTC).date().isoformat()
    lists = {
        "Today": [row for row in rows if row.asked >= today],
        "Left over": [row for row in rows if row.asked < today],
    }
    return _page(context, "work.html", lists=lists, more=len(reserved) == MAX_OVERRIDES)


@router.post("/audits/{audit}/work")
def confirm(context: ReaderContext, form: SentForm) -> Response:
    """Take what a credit officer ticked: carried out, or refused by the person."""
    carried_out, refused = ([*map(str, form.getlist(name))] for name in ("execute", "withdraw"))
    if both := sorted(set(carried_out) & set(refused)):
        raise InvalidInput(f"{both[0]!r} is ticked as carried out and as refused; choose one")
    ticked: list[Command] = [commands.Execute(person) for person in carried_out]
    ticked += [commands.Withdraw(person) for person in refused]
    row_results = [
        RowResult(number, commands.person_of(command), command, result)
        for number, (command, result) in enumerate(
            zip(ticked, context.results(ticked), strict=True), start=1
        )
    ]
    return _batch_page(context, "Overrides", row_results)


@router.post("/audits/{audit}/upload")
async def upload(context: ReaderContext, request: Request) -> Response:
    """Take a table of arrivals or of outcomes; what is wrong with a row holds up no other."""
    if not context.caller.may_do("ask"):
        raise HttpProblem("forbidden")
    uploads = request.app.state.uploads
    settings = context.reader.settings
    async with uploads.receive_form(request) as form:
        are_outcomes = form.text("what") == "outcomes"
        verb = "tell" if are_outcomes else "ask"
        columns = columns_to_read(settings, verb)
        table = await uploads.read_people(form.table, columns)
    try:
        reader = RowReader(settings, verb, table.header)
    except MissingColumn as error:
        raise explain_missing_column(error) from None
    title = "Outcomes" if are_outcomes else "Arrivals"

    def carry_out_rows() -> HTMLResponse:
        return _batch_page(context, title, carry_out(table.rows, reader, context.results))

    return await run_in_threadpool(carry_out_rows)


# -- pages ----------------------------------------------------------------------------------------


def _page(context: AuditContext, template: str, **variables: Any) -> HTMLResponse:
    name, settings = context.audit.name, context.reader.settings
    return render_page(context.caller, template, name=name, settings=settings, **variables)


def _audit_page(
    context: AuditContext,
    template: str = "audit.html",
    wait_seconds: float = EVIDENCE_WAIT_SECONDS,
    **variables: Any,
) -> HTMLResponse:
    """Return people and money as of now, and the evidence as far as it is reported."""
    store, audit = context.checkpoints, context.audit
    audit_variables = {
        "snapshot": audit.reports.current(wait_seconds),
        "checkpoint": store.latest(audit.uid, "checkpoint"),
        "proof": store.latest(audit.uid, *VERIFICATIONS),
    }
    return _page(context, template, **{"done": "", "problem": None, **audit_variables, **variables})


def _batch_page(
    context: AuditContext, title: str, row_results: Iterable[RowResult]
) -> HTMLResponse:
    """Show what came of the rows of a table, or of the people on a list."""
    batch = BatchResult()
    wanted: list[str] = []
    for row in row_results:
        batch.add(row)
        if isinstance(row.result, Reply) and _is_new_override(row.command, row.result):
            wanted.append(row.person)
    return _page(context, "batch.html", title=title, batch=batch, wanted=wanted)


def _is_new_override(command: object, reply: Reply) -> bool:
    """Whether a denial is to be overridden of a person who was not asked about before."""
    is_denied = isinstance(command, commands.Ask) and command.decision == 0
    return is_denied and not reply.repeated and reply.want is Want.LABEL
