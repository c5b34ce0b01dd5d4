"""The application: what is served, and what stands in front of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware

from equipoise._version import __version__
from equipoise.service import (
    api_audits,
    api_people,
    api_proof,
    pages,
    pages_check,
    pages_forms,
    probes,
)
from equipoise.service.access import Access, Attempts
from equipoise.service.demonstration import demonstration
from equipoise.service.desk import Desk
from equipoise.service.guard import Guard
from equipoise.service.metrics import Metrics
from equipoise.service.models import Arrival, Outcome
from equipoise.service.problems import add_handlers
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import TokenStore
from equipoise.service.visit import NAMES

__all__ = ["create_app", "from_environment"]


def create_app(settings: ServiceSettings) -> FastAPI:
    """Return the application for an ASGI server."""
    store, attempts, metrics = TokenStore(settings.tokens), Attempts(), Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.desk = Desk(settings)
        _end_streams_on_signals(app)
        with demonstration(settings):
            yield
        app.state.ending = True
        app.state.desk.close()
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
            Middleware(Guard, settings=settings, metrics=metrics),
            Middleware(Access, settings=settings, store=store, attempts=attempts),
        ],
    )
    app.state.settings, app.state.store = settings, store
    app.state.watchers, app.state.ending = 0, False
    app.state.attempts, app.state.metrics = attempts, metrics
    app.openapi = partial(_documented, app)  # type: ignore[method-assign]
    add_handlers(app)
    app.router.routes.extend(api_people.quick_routes())
    for part in (probes, api_people, api_audits, api_proof, pages, pages_forms, pages_check):
        app.include_router(part.router)
    return app


def _documented(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document with the parts of paths that endpoints read themselves."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(title=app.title, version=app.version, summary=app.summary,
                                         routes=app.routes)  # fmt: skip
        for model in (Arrival, Outcome):  # read by hand, so nobody else declares them
            made = model.model_json_schema(ref_template="#/components/schemas/{model}")
            app.openapi_schema["components"]["schemas"].setdefault(model.__name__, made)
        text = {"type": "string", "minLength": 1, "maxLength": 200}
        for path, methods in app.openapi_schema["paths"].items():
            own = [
                {"name": name, "in": "path", "required": True, "schema": text, "description": words}
                for name, words in NAMES.items()
                if f"{{{name}}}" in path
            ]
            for operation in methods.values():
                operation["parameters"] = own + operation.get("parameters", [])
    return app.openapi_schema


def from_environment() -> FastAPI:
    """Return the application with the settings that the variables of the process name."""
    return create_app(ServiceSettings.from_environment())


def _end_streams_on_signals(app: FastAPI) -> None:
    """Let streams of events end as soon as the process is told to, not when they are cut off."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        if not callable(before):
            continue

        def end(sign: int, frame: FrameType | None, before: Callable[..., Any] = before) -> None:
            app.state.ending = True
            before(sign, frame)

        signal.signal(number, end)
