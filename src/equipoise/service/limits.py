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
# The status, in log and metrics, of a request whose sender left before its end.
SENDER_LEFT_STATUS = 499
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
"""The headers of every answer that does not set them itself."""


class RequestLimits:
    """Middleware that limits, logs and counts requests and adds headers to answers."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: CollectorRegistry) -> None:
        self._app = app
        self._settings = settings
        self._seconds = Histogram(
            "equipoise_request_seconds",
            "Time per request",
            ("method", "route", "status"),
            registry=metrics,
            buckets=SECONDS_BUCKETS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on within limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500  # unless an answer begins
        # The peer of the socket, before other middleware believes what the request says of it.
        client = scope.get("client")
        scope.setdefault("state", {})["peer"] = client[0] if client else None

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in DEFAULT_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # The outermost middleware: what goes wrong anywhere inside is answered and logged here.
        try:
            _use_raw_path(scope)
            await self._app(scope, self._limit_body(scope, receive), send_with_headers)
        except (HttpProblem, EquipoiseError) as error:  # found before anything was answered
            problem = as_problem(error, may_see_details=False)
            await to_response(problem)(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = SENDER_LEFT_STATUS
        except Exception:
            log.exception("failed", extra={"fields": {"route": _route(scope)}})
            await to_response(HttpProblem("internal"))(scope, receive, send_with_headers)
        finally:
            self._record(scope, status, time.perf_counter() - start)

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        """Return what receives the body, and refuses one that is too large or too slow."""
        max_bytes = self._settings.body_limit
        max_seconds = self._settings.body_seconds
        if UPLOAD_PATHS.fullmatch(scope["path"]):
            max_bytes = self._settings.upload_limit
            max_seconds *= UPLOAD_TIME_FACTOR
        deadline = asyncio.get_running_loop().time() + max_seconds
        received_bytes = 0
        is_body_open = True

        async def receive_within_limits() -> Message:
            nonlocal received_bytes, is_body_open
            if not is_body_open:
                return await receive()  # that the client has gone, or nothing
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HttpProblem("too-slow") from None
            received_bytes += len(message.get("body", b""))
            is_body_open = message.get("more_body", False)
            if received_bytes > max_bytes:
                raise HttpProblem("too-large", f"at most {max_bytes:,} bytes")
            return message

        return receive_within_limits

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request in the metrics and write it to the log."""
        method = scope["method"]
        route = _route(scope)
        caller = scope["state"].get("caller")  # missing if the request was refused before
        method_label = method if method in COUNTED_METHODS else "OTHER"  # anybody may invent one
        self._seconds.labels(method_label, route, status).observe(seconds)
        fields = {
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 2),
            "actor": None if caller is None else caller.name,
        }
        log.info("request", extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Writes a JSON object per line. A route is a pattern, without pseudonyms and tokens."""

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

    The beginning of such a path must be sent plainly. Otherwise the names behind a disguised
    beginning, as in ``/%761/``, would be decoded twice.
    """
    raw_path = scope.get("raw_path") or scope["path"].encode()
    if len(raw_path) > MAX_PATH_BYTES:
        raise HttpProblem("malformed-request", "the path is too long")
    if scope["path"].startswith(PATHS_WITH_NAMES):
        if not raw_path.startswith(tuple(start.encode() for start in PATHS_WITH_NAMES)):
            raise HttpProblem("malformed-request", "only names in a path may be percent-encoded")
        scope["path"] = raw_path.decode("latin-1")


def _route(scope: Scope) -> str:
    """Return the pattern of the matched path, such as ``/v1/audits/{audit}/commands``."""
    return getattr(scope.get("route"), "path", "unmatched")
