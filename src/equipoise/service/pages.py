"""The dashboard: log in, see all audits, watch one, do by hand what programs do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history.coding import ValueReader
from equipoise.ledger import LiveAudit, Reply, commands
from equipoise.ledger.commands import Command
from equipoise.ledger.verify import PersonState
from equipoise.protocol import Want
from equipoise.report.event_log import log_rows
from equipoise.service.access import COOKIE, Reader, count_failure, new_session
from equipoise.service.amounts import budget_of
from equipoise.service.api import After, as_file, export, people_page, report
from equipoise.service.checkpoints import VERIFICATIONS
from equipoise.service.context import AuditContext, Auditing, Reading
from equipoise.service.forms import Form, Sent, page, read_form
from equipoise.service.problems import HttpProblem, as_problem
from equipoise.service.tokens import READERS

router = APIRouter(include_in_schema=False)

PER_PAGE = 50
WORK = 300  # overrides on one list
PATIENCE = 2.0  # seconds that a page waits for the evidence
WANTED = {
    "NOTHING": "Nothing is wanted of this person.",
    "SCORE_ONLY": "The score of this person counts; nothing more is wanted.",
    "LABEL": "The outcome is wanted: override the refusal, and enter the outcome when it is known.",
}
FOR_EVER = {
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
IRREVERSIBLE = {"concluded": "conclude", "erased": "erase"}  # proposals -> commands


# -- logging in -----------------------------------------------------------------------------------


@router.get("/login")
def login(request: Request) -> Response:
    """Ask for a token."""
    if request.state.caller is not None:
        return RedirectResponse("/", 303)
    return page(None, "login.html", refused="")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session."""
    state, form = request.app.state, await read_form(request)
    token = await run_in_threadpool(state.store.find, form.word("token"))
    if token is None or token.role not in READERS:
        # whoever holds a token is let in, whatever others at this address try
        count_failure(request)
        words = "That is not a token that opens the dashboard, or it has expired."
        return page(None, "login.html", status=401, refused=words)
    answer = RedirectResponse("/", 303)
    cookie, https = new_session(state.settings, token), state.settings.https
    answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", path="/", secure=https)
    return answer


@router.post("/logout")
def log_out(request: Request, form: Sent) -> Response:
    """End every session of the caller's token."""
    request.app.state.store.log_out(request.state.caller.token)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


# -- looking --------------------------------------------------------------------------------------


@router.get("/")
def audits(caller: Reader, request: Request, after: After = 0) -> HTMLResponse:
    """List the audits."""
    known = request.app.state.audits
    every = known.ledger.audits()
    rows = [row for row in every if caller.may_see(row.name, row.uid) and row.id > after]
    shown = [(row, known.open(row.uid).reader.status()) for row in rows[:PER_PAGE]]
    more = rows[PER_PAGE - 1].id if len(rows) > PER_PAGE else None
    return page(caller, "audits.html", audits=shown, more=more)


@router.get("/audits/{audit}")
def audit(context: Reading, done: str = "", want: str = "") -> HTMLResponse:
    """Watch one audit."""
    return _audit_page(context, done=WANTED.get(want, done))


@router.get("/audits/{audit}/live")
def live(context: Reading) -> HTMLResponse:
    """Return what moves on the page of an audit; the page asks for it every five seconds."""
    return _audit_page(context, "live.html", patience=0.0)


@router.get("/audits/{audit}/people")
def people(
    context: Reading, state: PersonState | None = None, conflicted: bool = False, after: After = 0
) -> HTMLResponse:
    """List people by state, a page at a time."""
    states = () if state is None else (state,)
    rows, more = people_page(context.reader, states, conflicted, after, PER_PAGE)
    said = {"people": rows, "more": more, "state": state, "conflicted": conflicted}
    return _page(context, "people.html", **NOBODY | said)


@router.post("/audits/{audit}/people")
def find(context: Reading, form: Sent) -> HTMLResponse:
    """Find somebody by pseudonym; it is no part of an address, so no log has it."""
    found = context.reader.person(form.word("person"))
    said = {"people": [found] if found else [], "sought": form.word("person")}
    return _page(context, "people.html", **NOBODY | said)


@router.get("/audits/{audit}/log")
def log(
    context: Reading, before: Annotated[int | None, Query(ge=1, lt=2**53)] = None
) -> HTMLResponse:
    """Show who did what, the latest first."""
    end = context.reader.checkpoint().seq + 1 if before is None else before
    first = max(0, end - 1 - PER_PAGE)
    events = context.reader.events(after=first, limit=end - 1 - first)
    entries = log_rows(events, context.reader.settings)[::-1]
    return _page(context, "log.html", entries=entries, more=first + 1 if first else None)


router.get("/audits/{audit}/report")(report)
router.get("/audits/{audit}/export")(export)


# -- doing ----------------------------------------------------------------------------------------


@router.post("/audits/{audit}/do/checkpoint")
def checkpoint(context: Reading, form: Sent) -> Response:
    """Return a checkpoint as a file that ``equipoise audit verify --checkpoint`` reads."""
    point, _ = context.hand_out_checkpoint()
    headers = as_file(context, f"checkpoint-{point.seq}.jsonl")
    return Response(point.to_json() + "\n", media_type="application/jsonl", headers=headers)


@router.post("/audits/{audit}/do/verify")
def verify(context: Auditing, form: Sent) -> Response:
    """Begin a verification, whose result appears on the page."""
    context.begin_verification()
    return RedirectResponse(f"/audits/{context.audit.part}?done=verify", 303)


@router.post("/audits/{audit}/do/{what}")
def act(context: Reading, what: str, form: Sent) -> Response:
    """Carry out a form and show the page again; ask once more about what cannot be undone."""
    what = form.word("what") or what  # where one form offers several
    proposals = {one.number: one.command for one in context.reader.status().proposals}
    try:
        command = _command_of(form, what, context.reader)
        if isinstance(command, EquipoiseError):
            raise command
        final: str = command.command
        if isinstance(command, commands.Approve):
            final = IRREVERSIBLE.get(proposals.get(command.proposal, ""), "")
        may = context.caller.may_do(command.command)
        if may and final in FOR_EVER and form.word("sure") != "yes":
            return _page(context, "sure.html", what=what, words=FOR_EVER[final], form=form)
        (reply,) = context.results([command])
        if isinstance(reply, HttpProblem):
            raise reply
    except (HttpProblem, EquipoiseError) as error:
        problem = as_problem(error)
        return _audit_page(context, problem=problem, status=problem.status_code)
    says_more = reply.state == "PROPOSED" or what in ("pause", "resume")
    done = reply.state.lower() if says_more else what
    query = f"done={done}" + (f"&want={reply.want}" if what == "ask" else "")
    return RedirectResponse(f"/audits/{context.audit.part}?{query}", 303)


def _command_of(form: Form, what: str, live: LiveAudit) -> Command | InvalidInput:
    """Return the command that a form stands for."""
    said = {name: form.word(name) for name in form}
    if what == "set_budget":
        return commands.SetBudget(budget_of(form, live.settings.decimals), form.word("why"))
    if what == "decide":  # nothing is chosen for those who choose nothing
        what = form.word("choice")
        if what not in ("approve", "reject"):
            raise InvalidInput("choose whether to approve or to reject it")
        said["why"] = form.word("why") or "not approved"
    if what not in commands.COMMANDS:
        raise HttpProblem("not-found")
    return _understood(what, said, live.settings.values)


def _understood(tag: str, said: Mapping[str, str], values: ValueReader) -> Command | InvalidInput:
    """Return a command from the words of a form or of a table's row, or why it is none."""
    read: dict[str, Callable[[str], Any]] = {
        "group": values.read_group,
        "decision": partial(values.read_bit, "decision"),
        "outcome": partial(values.read_bit, "outcome"),
        "score": float,
        "price": float,
        "proposal": int,
    }
    names = [field.name for field in fields(commands.COMMANDS[tag]) if said.get(field.name)]
    try:
        own = {name: read.get(name, str)(said[name]) for name in names}
        return commands.read_command({**own, "command": tag})
    except ValueError as error:
        return InvalidInput(str(error))


@router.get("/audits/{audit}/work")
def work(context: Reading) -> HTMLResponse:
    """List the overrides that are to be carried out: today's, and those left over."""
    found = context.reader.people(states=("RESERVED",), limit=WORK)
    rows = [row for row in found if row.decision == 0]  # the approved need no override
    today = datetime.now(UTC).date().isoformat()
    lists = {
        "Today": [row for row in rows if row.asked >= today],
        "Left over": [row for row in rows if row.asked < today],
    }
    return _page(context, "work.html", lists=lists, more=len(found) == WORK)


@router.post("/audits/{audit}/work")
def confirm(context: Reading, form: Sent) -> Response:
    """Take what a credit officer ticked: carried out, or refused by the person."""
    carried, refused = ([*map(str, form.getlist(name))] for name in ("execute", "withdraw"))
    if both := sorted(set(carried) & set(refused)):
        raise InvalidInput(f"{both[0]!r} is ticked as carried out and as refused; choose one")
    asked: list[tuple[str, Command]] = [(person, commands.Execute(person)) for person in carried]
    asked += [(person, commands.Withdraw(person)) for person in refused]
    return _batch_page(context, "Overrides", asked)


@router.post("/audits/{audit}/upload")
async def upload(context: Reading, request: Request) -> Response:
    """Take a table of arrivals or of outcomes; what is wrong with a row holds up no other."""
    if not context.caller.may_do("ask"):
        raise HttpProblem("forbidden")
    uploads = request.app.state.uploads
    async with uploads.sent_by(request) as form:
        told = form.word("what") == "outcomes"
        needed = ("person", "outcome") if told else ("person", "group", "decision")
        seen = () if told else ("score", "price", "version")
        rows = await uploads.read(form.table, rows=needed, optional=seen)
    tag, title = ("tell", "Outcomes") if told else ("ask", "Arrivals")

    def carried_out() -> HTMLResponse:
        values = context.reader.settings.values
        asked = [(row["person"], _understood(tag, row, values)) for row in rows]
        return _batch_page(context, title, asked)

    return await run_in_threadpool(carried_out)


# -- pages ----------------------------------------------------------------------------------------


def _page(context: AuditContext, template: str, **more: Any) -> HTMLResponse:
    name, settings = context.audit.name, context.reader.settings
    return page(context.caller, template, name=name, settings=settings, **more)


def _audit_page(
    context: AuditContext, template: str = "audit.html", patience: float = PATIENCE, **more: Any
) -> HTMLResponse:
    """Return people and money as of now, and the evidence as far as it is reported."""
    store, audit = context.checkpoints, context.audit
    shown = {
        "seen": audit.reports.look(patience),
        "checkpoint": store.latest(audit.uid, "checkpoint"),
        "proof": store.latest(audit.uid, *VERIFICATIONS),
    }
    return _page(context, template, **{"done": "", "problem": None, **shown, **more})


def _batch_page(
    context: AuditContext, title: str, asked: Iterable[tuple[str, Command | InvalidInput]]
) -> HTMLResponse:
    """Carry out a command per person and say what came of them."""
    rows = list(asked)
    results = context.results([command for _, command in rows])
    done = [(*row, one) for row, one in zip(rows, results, strict=True)]
    taken = [(command, one) for _, command, one in done if isinstance(one, Reply)]
    repeated = sum(reply.repeated for _, reply in taken)
    return _page(
        context,
        "batch.html",
        title=title,
        rows=len(rows),
        new=len(taken) - repeated,
        repeated=repeated,
        wanted=[
            reply.person
            for command, reply in taken
            if isinstance(command, commands.Ask) and command.decision == 0 and not reply.repeated
            if reply.want is Want.LABEL
        ],
        refused=[(person, str(one)) for person, _, one in done if isinstance(one, HttpProblem)],
    )
