"""The application: what is served, and what stands in front of it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import CapacityLimiter, to_thread
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
from equipoise.service import api, pages, pages_api, pages_check
from equipoise.service.access import PROGRAM_PATHS, PUBLIC_PATHS, Access
from equipoise.service.audits import OpenAudits
from equipoise.service.checkpoints import CheckpointLog
from equipoise.service.demonstration import demonstrate
from equipoise.service.examples import with_examples
from equipoise.service.forms import render_page
from equipoise.service.limits import RequestLimits
from equipoise.service.problems import as_problem, to_response
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import TokenStore
from equipoise.service.uploads import Uploads
from equipoise.service.wire import with_schema_names

MAX_WORKER_THREADS = 64  # requests that are worked on at once, besides batches and probes
MAX_BATCH_THREADS = 8  # batches of commands that are worked on at once
MAX_PROBE_THREADS = 2
STATIC_FOLDERS = (
    ("equipoise.service", "static"),
    ("equipoise.report", "templates"),
)  # scripts and styles


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the application for an ASGI server."""
    metrics = CollectorRegistry()
    app = Service(
        title="Equipoise",
        version=__version__,
        summary="Live fairness audits: ask, tell, and prove it.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # one address per page
        exception_handlers=dict.fromkeys(
            (EquipoiseError, RequestValidationError, HTTPException), _refuse
        ),
        middleware=[  # from the outside inwards
            Middleware(RequestLimits, settings, metrics),
            Middleware(ProxyHeadersMiddleware, settings.forwarded_from),
            Middleware(Access),
        ],
    )
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.store = TokenStore(settings.token_store)
    app.state.checkpoints = CheckpointLog(settings.token_store)
    app.state.failures = deque(maxlen=10_000)  # failed attempts: when, and from which address
    for router in (api.router, api.probes, pages.router, pages_check.router, pages_api.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(packages=[*STATIC_FOLDERS]))
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the ledger, and run the demonstration if it is wanted, while the server runs."""
    settings: ServiceSettings = app.state.settings
    to_thread.current_default_thread_limiter().total_tokens = MAX_WORKER_THREADS
    app.state.batch_threads = CapacityLimiter(MAX_BATCH_THREADS)
    app.state.probe_threads = CapacityLimiter(MAX_PROBE_THREADS)
    app.state.audits = OpenAudits(settings)
    app.state.audits.start()
    app.state.uploads = Uploads(settings)
    # A server that was killed left its verifications running; they will not end by themselves.
    app.state.checkpoints.end_lost_verifications()
    stop = threading.Event()
    arrivals = threading.Thread(target=demonstrate, args=(settings.ledger, stop), daemon=True)
    if settings.demo:
        arrivals.start()
    yield
    # What is still at work stops before the databases that it writes to are closed.
    stop.set()
    if settings.demo:
        arrivals.join(5.0)
    app.state.uploads.close()
    app.state.audits.close()
    app.state.store.close()
    app.state.checkpoints.close()


class Service(FastAPI):
    """A FastAPI application whose description has examples and keeps the API's names."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        if self.openapi_schema is None:
            self.openapi_schema = with_examples(with_schema_names(super().openapi()))
        return self.openapi_schema


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer every refusal as a problem: JSON for programs, a page for people."""
    caller = getattr(request.state, "caller", None)
    problem = as_problem(error, may_see_details=caller is not None and caller.may_see_details)
    if request.scope["path"].startswith((*PUBLIC_PATHS, *PROGRAM_PATHS, "/v1")):
        return to_response(problem)
    answer = render_page(caller, "error.html", status=problem.status_code, problem=problem)
    answer.headers.update(problem.headers or {})
    return answer
