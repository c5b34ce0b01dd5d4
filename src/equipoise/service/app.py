"""The application: what is served, what stands in front of it, and a demonstration."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.staticfiles import StaticFiles
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from equipoise._version import __version__
from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Execute
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.service import api, pages, pages_check
from equipoise.service.access import PROGRAMS, PUBLIC, Access
from equipoise.service.audits import OpenAudits
from equipoise.service.forms import Uploads, page
from equipoise.service.limits import RequestLimits
from equipoise.service.problems import as_problem, to_response
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import TokenStore
from equipoise.worlds.data import fico_lender

THREADS = 64  # requests that are worked on at once
STATIC = (("equipoise.service", "static"), ("equipoise.report", "templates"))  # scripts and styles
DEMONSTRATION = "Demonstration: a lender"
PAUSE = 0.5  # seconds between arrivals
AT_ONCE = 12
LATE = 8  # arrivals until an outcome is known


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the application for an ASGI server."""
    store, metrics = TokenStore(settings.token_store), CollectorRegistry()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        app.state.audits, app.state.uploads = OpenAudits(settings), Uploads(settings)
        store.end_lost_verifications()
        stop = threading.Event()
        arriving = threading.Thread(target=_demonstrate, args=(settings.ledger, stop), daemon=True)
        if settings.demo:
            arriving.start()
        yield
        stop.set()
        if settings.demo:
            arriving.join(5.0)
        app.state.audits.close()
        store.close()

    app = FastAPI(
        title="Equipoise",
        version=__version__,
        summary="Live fairness audits: ask, tell, and prove it.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(
            (EquipoiseError, RequestValidationError, HTTPException), _refuse
        ),
        middleware=[
            Middleware(RequestLimits, settings, metrics),
            Middleware(ProxyHeadersMiddleware, settings.forwarded_from),
            Middleware(Access),
        ],
    )
    app.state.settings, app.state.store, app.state.metrics = settings, store, metrics
    app.state.failures = deque(maxlen=10_000)  # failed attempts: when, and from which address
    for router in (api.router, api.probes, pages.router, pages_check.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(packages=[*STATIC]))
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer every refusal as a problem: JSON for programs, a page for people."""
    caller = getattr(request.state, "caller", None)
    problem = as_problem(error, tell_all=caller is not None and caller.may_know)
    if request.scope["path"].startswith((*PUBLIC, *PROGRAMS, "/v1")):
        return to_response(problem)
    answer = page(caller, "error.html", status=problem.status_code, problem=problem)
    answer.headers.update(problem.headers or {})
    return answer


def _demonstrate(ledger: str, stop: threading.Event) -> None:
    """Let people arrive at the audit of a lender while the server runs, so that its page lives."""
    lender = fico_lender()
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    costs = Costs(feature=500, label=100_000)
    with suppress(EquipoiseError):  # an earlier start may have made it
        LiveAudit.create(
            ledger, DEMONSTRATION, lender.history(), question, costs, budget=100_000_000,
            currency="EUR", decimals=2, max_in_flight=150, overdue_after=30.0, simulated=True,
            actor="simulation",
        ).close_ledger()  # fmt: skip
    live = LiveAudit.open(ledger, DEMONSTRATION, actor="simulation")
    waiting: deque[list[tuple[str, int]]] = deque()
    while live.finding is None and not stop.wait(PAUSE):
        came = live.status().people
        drawn = lender.world.draw(AT_ONCE, came + 1)
        people = {f"applicant-{came + i}": person for i, person in enumerate(drawn, 1)}
        with suppress(EquipoiseError):  # the database is busy; people keep arriving
            replies = live.ask_many((name, p.group, p.decision) for name, p in people.items())
            wanted = [reply.person for reply in replies if reply.want is Want.LABEL]
            live.run(Execute(name) for name in wanted[1:])  # one of them is left over
            known = [name for name, p in people.items() if p.decision or name in wanted]
            waiting.append([(name, people[name].outcome) for name in known])
            live.tell_many(waiting.popleft() if len(waiting) > LATE else ())
    live.close_ledger()
