"""Around every request: limits of size and time, headers, a log line, a count for the metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from equipoise.errors import EquipoiseError
from equipoise.service.problems import HttpProblem, as_problem, to_response
from equipoise.service.settings import ServiceSettings

log = logging.getLogger("equipoise.service")

UPLOAD_PATHS = re.compile("/check|/audits/[^/]+/upload")  # paths that take a table
UPLOAD_TIME_FACTOR = 30  # times as long to arrive as other requests
SECONDS_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
PATHS_WITH_NAMES = ("/v1/", "/audits/")  # how paths begin that hold names
COUNTED_METHODS = ("GET", "PUT", "POST", "HEAD")  # that are counted by name
MAX_PATH_BYTES = 4096
SENDER_LEFT_STATUS = (
    499  # the status, in log and metrics, of a request whose sender left before its end
)
DEFAULT_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer that does not say otherwise."""


class RequestLimits:
    """Limit, log and count."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: CollectorRegistry) -> None:
        self._app = app
        self._settings = settings
        labels = ("method", "route", "status")
        self._seconds = Histogram(
            "equipoise_request_seconds", "Time per request", labels, registry=metrics,
            buckets=SECONDS_BUCKETS,
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on within limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500
        # the socket's own peer, before anybody reads what the request says of where it comes from
        scope.setdefault("state", {})["peer"] = (scope.get("client") or [None])[0]

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in DEFAULT_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            _use_raw_path(scope)
            await self._app(scope, self._limited(scope, receive), with_headers)
        except (HttpProblem, EquipoiseError) as error:  # found before anything was answered
            problem = as_problem(error, may_see_details=False)
            await to_response(problem)(scope, receive, with_headers)
        except ClientDisconnect:
            status = SENDER_LEFT_STATUS
        except Exception:
            log.exception("failed", extra={"fields": {"route": _route(scope)}})
            await to_response(HttpProblem("internal"))(scope, receive, with_headers)
        finally:
            self._record(scope, status, time.perf_counter() - start)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return the body, cut off where it is too large or too slow."""
        settings = self._settings
        limit, seconds = settings.body_limit, settings.body_seconds
        if UPLOAD_PATHS.fullmatch(scope["path"]):
            limit, seconds = settings.upload_limit, UPLOAD_TIME_FACTOR * settings.body_seconds
        received_bytes, is_body_open, deadline = (
            0,
            True,
            asyncio.get_running_loop().time() + seconds,
        )

        async def limited() -> Message:
            nonlocal received_bytes, is_body_open
            if not is_body_open:
                return await receive()  # the client has gone, or nothing
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HttpProblem("too-slow") from None
            received_bytes += len(message.get("body", b""))
            is_body_open = message.get("more_body", False)
            if received_bytes > limit:
                raise HttpProblem("too-large", f"at most {limit:,} bytes")
            return message

        return limited

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        method, route, caller = scope["method"], _route(scope), scope["state"].get("caller")
        method_label = method if method in COUNTED_METHODS else "OTHER"
        self._seconds.labels(method_label, route, status).observe(seconds)
        fields = {"method": method, "route": route, "status": status}
        fields |= {"ms": round(1000 * seconds, 2), "actor": caller and caller.name}
        log.info("request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """One JSON object a line; a route is a pattern: no pseudonym and no token is in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _use_raw_path(scope: Scope) -> None:
    """Let paths with names be matched as they were sent, so that %2F stays inside a name.

    Whatever leads there is read in this one way: a beginning in disguise, as in ``/%761/``, would
    have its names decode_path_part twice.
    """
    raw = scope.get("raw_path") or scope["path"].encode()
    if len(raw) > MAX_PATH_BYTES:
        raise HttpProblem("malformed-request", "the path is too long")
    if scope["path"].startswith(PATHS_WITH_NAMES):
        if not raw.startswith(tuple(start.encode() for start in PATHS_WITH_NAMES)):
            raise HttpProblem("malformed-request", "only names in a path may be percent-encoded")
        scope["path"] = raw.decode("latin-1")


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "unmatched")
