"""The dashboard: log in, see all audits, watch one, and enter by hand what programs send."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from equipoise.ledger.settings import Settings
from equipoise.ledger.verify import PersonRecord, PersonState
from equipoise.messages.audit_words import (
    DONE_SENTENCES,
    IRREVERSIBLE_EFFECTS,
    WANT_SENTENCES,
)
from equipoise.people import (
    REQUIRED_ROLES,
    SCORE_ROLES,
    BatchResult,
    MissingColumn,
    RowReader,
    RowResult,
    carry_out,
    columns_to_read,
)
from equipoise.protocol import Want
from equipoise.report import Report
from equipoise.report.event_log import log_rows
from equipoise.report.write import to_html
from equipoise.service.access import SESSION_COOKIE, Reader, count_failed_attempt, new_session
from equipoise.service.amounts import budget_of
from equipoise.service.api import (
    REPORT_POLICY,
    After,
    download_headers,
    export,
    people_page,
    report,
)
from equipoise.service.audits import OpenAudits
from equipoise.service.checkpoints import VERIFICATIONS
from equipoise.service.context import AuditContext, AuditorContext, ReaderContext
from equipoise.service.forms import Form, SentForm, read_form, render_page
from equipoise.service.problems import HttpProblem, as_problem, describe_on_page
from equipoise.service.tokens import READERS, Role
from equipoise.service.uploads import explain_missing_column

router = APIRouter(include_in_schema=False)

ROWS_PER_PAGE = 50
MAX_OVERRIDES = 300  # on the list of those to carry out
EVIDENCE_WAIT_SECONDS = 2.0  # seconds that a page waits for the evidence
IRREVERSIBLE_PROPOSALS = {"concluded": "conclude", "erased": "erase"}  # proposals -> commands
OVERVIEW_ACTIONS = ("decide", "conclude")  # after which the overview is shown


# -- logging in -----------------------------------------------------------------------------------


@router.get("/login")
def login(request: Request) -> Response:
    """Ask for a token."""
    if request.state.caller is not None:  # logged in, or signed on by a proxy
        return RedirectResponse("/", 303)
    return render_page(None, "login.html", refused="")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session."""
    state = request.app.state
    form = await read_form(request)
    # The store asks a database, which must not hold up other requests.
    token = await run_in_threadpool(state.store.find, form.text("token"))
    if token is None or token.role not in READERS:
        # Only failures are counted: others at this address, with a valid token, are let in.
        count_failed_attempt(request)
        refusal = "That is not a token that opens the dashboard, or it has expired."
        return render_page(None, "login.html", status=401, refused=refusal)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        SESSION_COOKIE,
        new_session(state.settings, token),
        httponly=True,  # no script can read it
        samesite="strict",  # no other site's page can make the browser send it
        path="/",
        secure=state.settings.https,
    )
    return response


@router.post("/logout")
def log_out(request: Request, form: SentForm) -> Response:
    """End every session of the caller's token."""
    # A cookie is signed and nothing is stored about it. So one session cannot be ended alone.
    request.app.state.store.log_out(request.state.caller.token_id)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


# -- looking --------------------------------------------------------------------------------------


@router.get("/")
def audits(caller: Reader, request: Request, after: After = 0) -> HTMLResponse:
    """List the audits in the caller's scope, a page at a time."""
    open_audits: OpenAudits = request.app.state.audits
    rows = [
        row
        for row in open_audits.ledger.audits()
        if row.id > after and caller.may_see(row.name, row.uid)
    ]
    page_rows = rows[:ROWS_PER_PAGE]
    has_more = len(rows) > ROWS_PER_PAGE
    return render_page(
        caller,
        "audits.html",
        audits=[(row, open_audits.open(row.uid).reader.status()) for row in page_rows],
        next_after=page_rows[-1].id if has_more else None,
    )


@router.get("/audits/{audit}")
def audit(context: ReaderContext, done: str = "") -> HTMLResponse:
    """Watch one audit."""
    return _audit_page(context, done_sentence=DONE_SENTENCES.get(done, ""))


@router.get("/audits/{audit}/enter")
def enter(context: AuditorContext, done: str = "", want: str = "") -> HTMLResponse:
    """Show the forms to enter data, and what the last one did."""
    return _enter_page(
        context, done_sentence=WANT_SENTENCES.get(want) or DONE_SENTENCES.get(done, "")
    )


@router.get("/audits/{audit}/live")
def live(context: ReaderContext) -> HTMLResponse:
    """Return what moves on the page of an audit; the page asks for it every five seconds."""
    # Without a wait: evidence that is not ready now comes five seconds later.
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
    records, next_after = people_page(context.reader, states, conflicted, after, ROWS_PER_PAGE)
    return _people_page(
        context, people=records, next_after=next_after, state=state, conflicted=conflicted
    )


@router.post("/audits/{audit}/people")
def find(context: ReaderContext, form: SentForm) -> HTMLResponse:
    """Find a person by pseudonym, which travels in the form so that no log has it."""
    pseudonym = form.text("person")
    record = context.reader.person(pseudonym)
    return _people_page(context, people=[record] if record else [], sought=pseudonym)


def _people_page(
    context: AuditContext,
    *,
    people: Sequence[PersonRecord],
    next_after: int | None = None,
    state: PersonState | None = None,
    conflicted: bool = False,
    sought: str = "",
) -> HTMLResponse:
    """Return the page of people.

    ``next_after`` is the number after which the next page begins, ``sought`` the pseudonym looked
    for; ``state`` and ``conflicted`` are the filters.
    """
    return _page(
        context,
        "people.html",
        people=people,
        next_after=next_after,
        state=state,
        conflicted=conflicted,
        sought=sought,
    )


@router.get("/audits/{audit}/log")
def log(
    context: ReaderContext, before: Annotated[int | None, Query(ge=1, lt=2**53)] = None
) -> HTMLResponse:
    """Show who did what, the latest first; ``before`` is the event that a page ends in front of."""
    # Events are numbered without gaps, so a page is a range of numbers.
    last = context.reader.checkpoint().seq if before is None else before - 1
    n_skipped = max(0, last - ROWS_PER_PAGE)  # earlier events, which are on later pages
    events = context.reader.events(after=n_skipped, limit=last - n_skipped)
    entries = log_rows(events, context.reader.settings)[::-1]
    return _page(
        context, "log.html", entries=entries, next_before=n_skipped + 1 if n_skipped else None
    )


# The same functions as under /v1, here for a browser that logged in.
router.get("/audits/{audit}/report")(report)
router.get("/audits/{audit}/export")(export)


@router.get("/audits/{audit}/report/view")
def view_report(context: ReaderContext) -> HTMLResponse:
    """Show the report in the browser, which may run nothing in it."""
    text = to_html(Report.of(context.reader))
    return HTMLResponse(text, headers={"content-security-policy": REPORT_POLICY})


# -- doing ----------------------------------------------------------------------------------------


@router.post("/audits/{audit}/do/checkpoint")
def checkpoint(context: ReaderContext, form: SentForm) -> Response:
    """Return a checkpoint as a file that ``equipoise audit verify`` reads."""
    handed_out, _ = context.hand_out_checkpoint()
    headers = download_headers(context, f"checkpoint-{handed_out.seq}.jsonl")
    return Response(handed_out.to_json() + "\n", media_type="application/jsonl", headers=headers)


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
    action = form.text("what") or action  # where one form offers several actions
    try:
        command = _command_from_form(form, action, context.reader)
        warning = _irreversible_effect(command, context)
        # The page sends the same form again, with "sure", so that nothing has to be typed twice.
        if warning and form.text("sure") != "yes":
            return _page(context, "sure.html", action=action, warning=warning, form=form)
        (reply,) = context.run_commands([command])
        if isinstance(reply, HttpProblem):
            raise reply
    except (HttpProblem, EquipoiseError) as error:
        problem = as_problem(error)
        show_page = _enter_page if _is_entry(action, context) else _audit_page
        return show_page(context, problem=problem, status=problem.status_code)
    # A proposal waits for approval, and an audit that has ended is not paused: say that instead.
    is_state_news = reply.state == "PROPOSED" or action in ("pause", "resume")
    news = reply.state.lower() if is_state_news else command.command
    query = f"done={news}"
    if action == "ask":
        query += f"&want={reply.want}"
    page = "/enter" if _is_entry(action, context) else ""
    # A redirect, so that to load the page again does not send the form again. No pseudonym is in
    # the address, because logs keep addresses.
    return RedirectResponse(f"/audits/{context.audit.url_name}{page}?{query}", 303)


def _is_entry(action: str, context: AuditContext) -> bool:
    """Whether an action belongs to the page to enter data, which only auditors have."""
    return action not in OVERVIEW_ACTIONS and context.caller.role is Role.AUDITOR


def _irreversible_effect(command: Command, context: AuditContext) -> str:
    """Return what a command would do for ever; "" if it can be undone or is not allowed."""
    if not context.caller.may_do(command.command):  # it will be refused anyway
        return ""
    if not isinstance(command, commands.Approve):
        return IRREVERSIBLE_EFFECTS.get(command.command, "")
    # To approve a proposal does what was proposed.
    for proposal in context.reader.status().proposals:
        if proposal.number == command.proposal:
            approved_command = IRREVERSIBLE_PROPOSALS.get(proposal.command, "")
            return IRREVERSIBLE_EFFECTS.get(approved_command, "")
    return ""


def _command_from_form(form: Form, action: str, live: LiveAudit) -> Command:
    """Return the command that a form stands for, or raise why it is none."""
    # Its amount is written in euros, say, and not in cents as a program sends it.
    if action == "set_budget":
        return commands.SetBudget(budget_of(form, live.settings.decimals), form.text("why"))
    texts = {name: form.text(name) for name in form}
    tag = action
    if action == "decide":  # about a proposal; without a choice nothing is decided
        tag = form.text("choice")
        if tag not in ("approve", "reject"):
            raise InvalidInput("choose whether to approve or to reject it")
        texts["why"] = form.text("why") or "not approved"
    if tag in REQUIRED_ROLES:
        return _command_about_person(tag, texts, live.settings)
    if tag not in commands.COMMANDS:
        raise HttpProblem("not-found")
    return _command_from_fields(tag, texts, live.settings.values)


def _command_about_person(tag: str, texts: Mapping[str, str], settings: Settings) -> Command:
    """Return a command about a person who was typed, read like a row of a file.

    ``texts`` is field -> what was typed.

    Raises
    ------
    InvalidInput
        If a text cannot be read, or a field that the command needs is empty.
    """
    lacking = [repr(role) for role in REQUIRED_ROLES[tag] if not texts.get(role)]
    if lacking:
        raise InvalidInput(f"the command {tag!r} lacks {' and '.join(lacking)}")
    score_roles = [role for role in SCORE_ROLES if role in texts]
    columns = {role: role for role in (*REQUIRED_ROLES[tag], *score_roles)}
    return RowReader(settings, tag, None, columns).build_command(texts)


def _command_from_fields(tag: str, texts: Mapping[str, str], values: ValueReader) -> Command:
    """Return a command from the texts in the fields of a form.

    Parameters
    ----------
    tag
        The name of the command, as ``pause``.
    texts
        Field -> what was typed. Fields that the command does not have are ignored, and so are
        empty ones.
    values
        Reads outcomes in the words of the historical data.

    Raises
    ------
    InvalidInput
        If a text cannot be read, or a field that the command needs is empty.
    """
    readers: dict[str, Callable[[str], Any]] = {
        "outcome": partial(values.read_bit, "outcome"),
        "proposal": int,
    }
    arguments: dict[str, Any] = {"command": tag}
    try:
        for field in fields(commands.COMMANDS[tag]):
            if texts.get(field.name):
                read_text = readers.get(field.name, str)
                arguments[field.name] = read_text(texts[field.name])
        return commands.read_command(arguments)
    except ValueError as error:  # of int, whose errors the page would not show
        raise InvalidInput(str(error)) from error


@router.get("/audits/{audit}/work")
def work(context: ReaderContext) -> HTMLResponse:
    """List the overrides that are to be carried out: today's, and those left over."""
    reserved = context.reader.people(states=("RESERVED",), limit=MAX_OVERRIDES)
    # Moments are stored as texts in UTC, whose order is that of time.
    today = datetime.now(UTC).date().isoformat()
    lists: dict[str, list[PersonRecord]] = {"Today": [], "Left over": []}
    for record in reserved:
        if record.decision == 0:  # the approved need no override
            lists["Today" if record.asked >= today else "Left over"].append(record)
    return _page(context, "work.html", lists=lists, has_more=len(reserved) == MAX_OVERRIDES)


@router.post("/audits/{audit}/work")
def confirm(context: ReaderContext, form: SentForm) -> Response:
    """Take what a credit officer ticked: carried out, or refused by the person."""
    carried_out = [str(person) for person in form.getlist("execute")]
    refused = [str(person) for person in form.getlist("withdraw")]
    ticked_twice = sorted(set(carried_out) & set(refused))
    if ticked_twice:
        raise InvalidInput(
            f"{ticked_twice[0]!r} is ticked as carried out and as refused; choose one"
        )
    ticked: list[Command] = [commands.Execute(person) for person in carried_out]
    ticked += [commands.Withdraw(person) for person in refused]
    row_results = []
    for number, reply_or_problem in enumerate(context.run_commands(ticked), start=1):
        command = ticked[number - 1]
        row_results.append(
            RowResult(number, commands.person_of(command), command, reply_or_problem)
        )
    return _batch_page(context, "/work", "Overrides", row_results)


@router.post("/audits/{audit}/upload")
async def upload(context: ReaderContext, request: Request) -> Response:
    """Take a table of arrivals or of outcomes; a row that is refused does not delay the others."""
    # Before the table is received: reading it takes memory and time.
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

    # Storing many rows takes long, and this function runs where all requests take turns.
    def carry_out_rows() -> HTMLResponse:
        row_results = carry_out(table.rows, reader, context.run_commands)
        return _batch_page(context, "/enter", title, row_results)

    return await run_in_threadpool(carry_out_rows)


# -- pages ----------------------------------------------------------------------------------------


def _page(context: AuditContext, template: str, **variables: Any) -> HTMLResponse:
    """Return a page about the context's audit."""
    return render_page(
        context.caller,
        template,
        name=context.audit.name,
        settings=context.reader.settings,
        **variables,
    )


def _audit_page(
    context: AuditContext,
    template: str = "audit.html",
    *,
    wait_seconds: float = EVIDENCE_WAIT_SECONDS,
    done_sentence: str = "",
    problem: HttpProblem | None = None,
    status: int = 200,
) -> HTMLResponse:
    """Return people and money as of now, and the evidence as of the last report.

    ``done_sentence`` says what has just been done, ``problem`` why it was not.
    """
    audit = context.audit
    return _page(
        context,
        template,
        status=status,
        done_sentence=done_sentence,
        problem=problem,
        snapshot=audit.reports.current(wait_seconds),
        checkpoint=context.checkpoints.latest(audit.uid, "checkpoint"),
        proof=context.checkpoints.latest(audit.uid, *VERIFICATIONS),
    )


def _enter_page(
    context: AuditContext,
    *,
    done_sentence: str = "",
    problem: HttpProblem | None = None,
    status: int = 200,
) -> HTMLResponse:
    """Return the forms to enter data; the other arguments are those of :func:`_audit_page`."""
    return _page(
        context,
        "enter.html",
        status=status,
        done_sentence=done_sentence,
        problem=problem,
        audit_status=context.reader.status(),
        effects=IRREVERSIBLE_EFFECTS,
    )


def _batch_page(
    context: AuditContext, page_path: str, title: str, row_results: Iterable[RowResult]
) -> HTMLResponse:
    """Show what came of the rows of a table, or of the people on a list.

    ``page_path`` is the page that sent them, as its address ends.
    """
    batch = BatchResult()
    people_to_override: list[str] = []
    for row in row_results:
        batch.add(row, describe_on_page)
        if isinstance(row.result, Reply) and _is_new_override(row.command, row.result):
            people_to_override.append(row.person)
    return _page(
        context,
        "batch.html",
        page_path=page_path,
        title=title,
        batch=batch,
        people_to_override=people_to_override,
        waiting=context.reader.waiting(),
    )


def _is_new_override(command: object, reply: Reply) -> bool:
    """Whether a denial is to be overridden of a person who was not asked about before."""
    is_denied = isinstance(command, commands.Ask) and command.decision == 0
    return is_denied and not reply.repeated and reply.want is Want.LABEL
