"""The dashboard: log in, see all audits, watch one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from equipoise.ledger import LiveAudit
from equipoise.service.access import COOKIE, address_of, caller_of
from equipoise.service.api_people import State, page_of
from equipoise.service.api_proof import Form as ReportForm
from equipoise.service.api_proof import export_of, report_of
from equipoise.service.desk import AuditDesk
from equipoise.service.pages_base import Form, fragment, page, read_form
from equipoise.service.panels import apart, panels_of
from equipoise.service.problems import Problem
from equipoise.service.tokens import Role, TokenStore
from equipoise.service.visit import Reading, Visit

__all__ = ["live_part", "router"]

router = APIRouter(include_in_schema=False)

PER_PAGE = 50
WANTED = {
    "NOTHING": "Nothing is wanted of this person.",
    "SCORE_ONLY": "This person counts as seen; nothing more is wanted.",
    "LABEL": "The outcome is wanted: override the refusal, and tell it when it is known.",
    "FEATURES": "The features are wanted.",
}
PATIENCE = 0.1  # seconds that a page waits for the evidence
HEARTBEAT = 15.0  # seconds after which a silent stream says that it lives
STREAM = 10.0  # seconds after which a browser must ask again, and show that it still may
MEDIA = {"style.css": "text/css", "dashboard.js": "text/javascript"}


@router.get("/login")
async def login(request: Request) -> Response:
    """Ask for a token."""
    if request.app.state.settings.open:
        return RedirectResponse("/", 303)
    return page(request, "login.html", refused="")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session."""
    state, form = request.app.state, await read_form(request)
    text, store = form.words.get("token", "").strip(), request.app.state.store
    session = await state.desk.in_reader(lambda: store.log_in(text))
    if session is None:  # whoever holds a token is let in, whatever others at this address try
        state.attempts.failed(address_of(request.scope))
        words = "That is not a token that opens the dashboard, or it has expired."
        return page(request, "login.html", status=401, refused=words)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE, session.secret, httponly=True, samesite="strict", path="/",
        secure=state.settings.secure,
    )  # fmt: skip
    return answer


@router.post("/logout")
async def log_out(request: Request, form: Form) -> Response:
    """End a session."""
    session, store = caller_of(request).session, request.app.state.store
    if session is not None:
        await request.app.state.desk.in_reader(lambda: store.log_out(session.secret))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/")
    return answer


@router.get("/")
async def audits(
    request: Request, after: Annotated[int, Query(ge=0, lt=2**53)] = 0
) -> HTMLResponse:
    """List the audits."""
    caller, desk = caller_of(request), request.app.state.desk
    rows = [r for r in await desk.rows() if caller.may_see(r.name, r.uid) and r.id > after]
    shown = []
    for row in rows[:PER_PAGE]:
        one: AuditDesk = await desk.audit(row.uid)
        shown.append((row, await one.read(lambda live: live.status())))
    more = rows[PER_PAGE - 1].id if len(rows) > PER_PAGE else None
    return page(request, "audits.html", audits=shown, more=more)


@router.get("/audits/{audit}")
async def audit(visit: Reading, request: Request, done: str = "", want: str = "") -> HTMLResponse:
    """Watch one audit."""
    return await audit_page(visit, request, done=WANTED.get(want, done.rstrip(".")))


async def audit_page(
    visit: Visit, request: Request, *, done: str = "", problem: Problem | None = None
) -> HTMLResponse:
    """Return the page of an audit, with what came of a form."""
    part = await live_part(visit, request.app.state.store, patience=PATIENCE)
    settings = await visit.desk.read(lambda live: live.settings)
    return page(
        request,
        "audit.html",
        status=problem.status_code if problem else 200,
        caller=visit.caller,
        name=visit.desk.name,
        settings=settings,
        live=part,
        done=done,
        problem=problem,
    )


@router.get("/audits/{audit}/live")
async def live(visit: Reading, request: Request) -> HTMLResponse:
    """Return what moves on the page of an audit."""
    return HTMLResponse(await live_part(visit, request.app.state.store))


async def live_part(visit: Visit, store: TokenStore, *, patience: float = 0.0) -> str:
    """Return what moves: money and people as of now, evidence as of when it was weighed last."""
    desk, caller = visit.desk, visit.caller
    await desk.freshen(patience)
    weighed = desk.weighing.latest

    def look(reader: LiveAudit) -> str:
        status = reader.status()
        marks = {
            kind: next(iter(store.marks(desk.row.uid, kind, 1)), None)
            for kind in ("checkpoint", "verified", "broken")
        }
        panels = panels_of(reader, status)
        return fragment(
            "live.html",
            name=desk.name,
            status=status,
            settings=reader.settings,
            weighed=weighed,
            report=None if weighed is None else weighed.report,
            marks=marks,
            panels=panels,
            apart=apart,
            me=caller,
            Role=Role,
        )

    return await desk.read(look)


@router.get("/audits/{audit}/stream")
async def stream(visit: Reading, request: Request) -> Response:
    """Say that something happened, as server-sent events; what happened is fetched then."""
    state = request.app.state
    if state.watchers >= state.settings.watchers:
        raise Problem("busy")
    return StreamingResponse(
        _moments(visit, state), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _moments(visit: Visit, state: Any) -> AsyncIterator[str]:
    state.watchers += 1
    try:
        last, spoke, end = None, 0.0, time.monotonic() + STREAM
        while not state.ending and time.monotonic() < end:
            await visit.desk.freshen()
            weighed = visit.desk.weighing.latest
            moment = {"seq": await visit.desk.seen(), "weighed": weighed.seq if weighed else 0}
            if moment != last:
                yield f"data: {json.dumps(moment)}\nretry: 300\n\n"
                last, spoke = moment, time.monotonic()
            elif time.monotonic() - spoke > HEARTBEAT:
                yield ": still here\n\n"
                spoke = time.monotonic()
            await asyncio.sleep(1.0)
    finally:
        state.watchers -= 1


@router.get("/audits/{audit}/people")
async def people(
    visit: Reading,
    request: Request,
    state: State | None = None,
    conflicted: bool = False,
    after: Annotated[int, Query(ge=0, lt=2**53)] = 0,
) -> HTMLResponse:
    """List people by state, a page at a time."""
    states = () if state is None else (state,)
    rows, more = await visit.desk.read(
        lambda live: page_of(live, states, conflicted=conflicted, after=after, limit=PER_PAGE)
    )
    settings = await visit.desk.read(lambda live: live.settings)
    return page(
        request, "people.html", caller=visit.caller, name=visit.desk.name, people=rows, more=more,
        state=state, conflicted=conflicted, settings=settings, states=get_args(State),
    )  # fmt: skip


@router.get("/audits/{audit}/report/{form}")
async def report(visit: Reading, form: ReportForm) -> Response:
    """Download the report."""
    return await report_of(visit, form)


@router.get("/audits/{audit}/export")
async def export(visit: Reading) -> Response:
    """Download every event."""
    return await export_of(visit)


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """Return the style or the script."""
    if name not in MEDIA:
        raise Problem("not-found")
    here = files("equipoise.service") / "static"
    text = (here / name).read_text("utf-8")
    if name == "style.css":
        look = files("equipoise.report") / "templates" / "report.css"
        text = look.read_text("utf-8") + text
    headers = {"cache-control": "public, max-age=300"}
    return Response(text, media_type=f"{MEDIA[name]}; charset=utf-8", headers=headers)


@router.get("/favicon.ico")
async def favicon() -> Response:
    """Return nothing, without a fuss."""
    return Response(status_code=204)
