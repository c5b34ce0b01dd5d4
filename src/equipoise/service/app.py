"""The application: what is served, and what stands in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI
from starlette.middleware import Middleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from equipoise._version import __version__
from equipoise.service import api, pages, pages_check
from equipoise.service.access import Access, Attempts, Sessions
from equipoise.service.audits import OpenAudits
from equipoise.service.demonstration import demonstration
from equipoise.service.forms import Uploads
from equipoise.service.limits import Metrics, RequestLimits
from equipoise.service.problems import add_handlers
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import TokenStore

__all__ = ["create_app"]

THREADS = 64  # requests that are worked on at once


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the application for an ASGI server."""
    store, attempts, metrics = TokenStore(settings.token_store), Attempts(), Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        app.state.audits, app.state.uploads = OpenAudits(settings), Uploads(settings)
        with demonstration(settings):
            yield
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
        middleware=[
            Middleware(RequestLimits, settings=settings, metrics=metrics),
            Middleware(ProxyHeadersMiddleware, trusted_hosts=settings.forwarded_from),
            Middleware(Access, settings=settings, store=store, attempts=attempts),
        ],
    )
    app.state.settings, app.state.store = settings, store
    app.state.attempts, app.state.metrics = attempts, metrics
    app.state.sessions = Sessions(settings)
    add_handlers(app)
    for router in (api.router, api.probes, pages.router, pages_check.router):
        app.include_router(router)
    return app
