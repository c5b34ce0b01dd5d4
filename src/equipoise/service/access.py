"""Who is calling: tokens for programs; for browsers a signed cookie, or a proxy that is trusted.

This runs before a request's body is read. Programs (``/v1``, ``/metrics``) show a token in a header
and nothing else opens them, so no page of another site can act for somebody. A cookie carries the
id of the token that somebody logged in with; the token is looked up at every request, so whoever is
revoked is out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import unquote, urlsplit

from fastapi import Depends
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from equipoise.errors import EquipoiseError
from equipoise.ledger import inputs
from equipoise.ledger.writer import stamp
from equipoise.service.problems import HttpProblem, problem_of, to_response
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import READERS, Role, Token, TokenStore

__all__ = [
    "COOKIE",
    "Access",
    "Attempts",
    "Auditor",
    "Caller",
    "Reader",
    "Sessions",
    "caller_of",
    "decoded",
]

COOKIE = "equipoise_session"
PROXY_SECRET = "x-equipoise-proxy-secret"
PUBLIC = ("/livez", "/readyz", "/openapi.json")
PROGRAMS = ("/v1/", "/metrics")
SAFE = ("GET", "HEAD", "OPTIONS")
REMEMBERED = 2.0  # seconds until a revoked token is refused
SESSION = 12 * 3600  # seconds
FAILURES, WINDOW = 20, 60.0  # failed attempts of one address, and in how many seconds


@dataclass(frozen=True)
class Caller:
    """Who is calling, as what, and for which audit (None: every one).

    ``form_key`` is what forms of a browser must bring along, ``token`` the id of the token that a
    browser logged in with.
    """

    name: str
    role: Role
    audit: str | None = None
    form_key: str = ""
    token: str = ""

    @property
    def may_know(self) -> bool:
        """Whether the caller may learn more than replies."""
        return self.role is not Role.WRITER

    def may_see(self, name: str, uid: str) -> bool:
        """Whether an audit is in this caller's scope."""
        return self.audit is None or self.audit in (name, uid)


class Sessions:
    """Cookies that say with which token, and when, a browser logged in."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._key = settings.secret_key.get_secret_value().encode()
        self._signer = URLSafeTimedSerializer(self._key, salt="equipoise.session")

    def begin(self, token: Token) -> str:
        """Return a cookie for the holder of a token."""
        return self._signer.dumps([token.id, stamp(datetime.now(UTC)), secrets.token_hex(8)])

    def read(self, cookie: str) -> tuple[str, str] | None:
        """Return the token's id and when the session began; None unless we signed it."""
        try:
            number, began, _ = self._signer.loads(cookie, max_age=SESSION)
        except BadData:
            return None
        return number, began

    def form_key(self, text: str) -> str:
        """Return what a page of another site cannot know."""
        return hmac.new(self._key, f"form {text}".encode(), hashlib.sha256).hexdigest()


class Attempts:
    """Failed attempts per address; those who fail too often must wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    def failed(self, scope: Scope) -> None:
        """Count a failure; refuse an address that failed too often."""
        address = (scope.get("client") or ["unknown"])[0]
        now, times = self._clock(), self._failed.setdefault(address, deque())
        self._failed.move_to_end(address)
        if len(self._failed) > 10_000:
            self._failed.popitem(last=False)
        while times and times[0] < now - WINDOW:
            times.popleft()
        if len(times) >= FAILURES:
            wait = int(times[0] + WINDOW - now) + 1
            raise HttpProblem("too-many-attempts", headers={"Retry-After": str(wait)})
        times.append(now)


class Access:
    """Find out who is calling before anything else happens."""

    def __init__(
        self, app: ASGIApp, settings: ServiceSettings, store: TokenStore, attempts: Attempts
    ) -> None:
        self._app = app
        self._settings = settings
        self._store = store
        self._attempts = attempts
        self._sessions = Sessions(settings)
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._enter(scope)
        except HttpProblem as problem:
            answer = to_response(problem)
        except EquipoiseError as error:
            answer = to_response(problem_of(error, tell_all=False))
        await (self._app if answer is None else answer)(scope, receive, send)

    async def _enter(self, scope: Scope) -> Response | None:
        path, headers = scope["path"], Headers(scope=scope)
        scope["state"]["caller"] = None
        if path in PUBLIC or path.startswith("/static/"):
            return None
        if path.startswith(PROGRAMS):
            scope["state"]["caller"] = await self._by_token(scope, headers)
            return None
        if scope["method"] not in SAFE:
            _require_same_site(headers)
        caller = self._by_proxy(scope, headers) or await self._by_cookie(headers)
        scope["state"]["caller"] = caller
        if caller is not None or path == "/login":
            return None
        if scope["method"] in SAFE:
            return RedirectResponse("/login", 303)
        raise HttpProblem("unauthenticated")

    async def _by_token(self, scope: Scope, headers: Headers) -> Caller:
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text:
            raise HttpProblem("unauthenticated")
        key, now = hashlib.sha256(text.encode("latin-1")).digest(), time.monotonic()
        known = self._known.get(key)
        if known is not None and now < known[0]:
            return known[1]
        token = await run_in_threadpool(self._store.find, text)
        if token is None:  # others at the same address, with a token that is right, are let in
            self._known.pop(key, None)
            self._attempts.failed(scope)
            raise HttpProblem("unauthenticated")
        caller = Caller(token.name, token.role, token.audit)
        self._known[key] = (now + REMEMBERED, caller)
        self._known.move_to_end(key)
        if len(self._known) > 10_000:
            self._known.popitem(last=False)
        return caller

    async def _by_cookie(self, headers: Headers) -> Caller | None:
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        session = self._sessions.read(cookie) if cookie else None
        token = None if session is None else await run_in_threadpool(self._store.by_id, session[0])
        if session is None or token is None or session[1] <= token.logged_out:
            return None
        key = self._sessions.form_key(cookie)
        return Caller(token.name, token.role, token.audit, key, token.id)

    def _by_proxy(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return whom a trusted proxy names; refuse whoever only looks like one.

        Only the peer of the socket counts, whatever addresses the request says it was forwarded
        for, and only with the secret; then exactly one actor, who is in a group that has a role.
        """
        settings = self._settings
        if PROXY_SECRET not in headers:
            return None
        wanted = settings.proxy_secret.get_secret_value().encode()
        given = [value.encode("latin-1") for value in headers.getlist(PROXY_SECRET)]
        peer = scope["state"]["peer"]
        listed = peer is not None and any(ip_address(peer) in net for net in settings.proxy_peers)
        right = len(given) == 1 and hmac.compare_digest(given[0], wanted)
        if not (wanted and listed and right):
            self._attempts.failed(scope)
            raise HttpProblem("unauthenticated", "this is not the proxy that is trusted")
        actors = headers.getlist(settings.proxy_actor)
        groups = headers.getlist(settings.proxy_groups)
        if len(actors) != 1 or len(groups) > 1:
            raise HttpProblem("unauthenticated", "the proxy must name one actor, in one header")
        name = inputs.name("actor", _text(actors[0]))
        theirs = {one.strip() for one in _text(groups[0] if groups else "").split(",")}
        roles = [role for group, role in settings.proxy_roles.items() if group in theirs]
        if not roles:
            raise HttpProblem("forbidden", f"no group of {name} has a role here")
        return Caller(name, roles[0], None, self._sessions.form_key(f"proxy {name}"))


def _require_same_site(headers: Headers) -> None:
    """Refuse what another site's page sends: browsers say where a request comes from."""
    origin = headers.get("origin") or headers.get("referer", "")
    if urlsplit(origin).netloc != headers.get("host", "") or not origin:
        raise HttpProblem("cross-site")


def _text(header: str) -> str:
    """Return a header as UTF-8, which is what proxies send."""
    return header.encode("latin-1").decode("utf-8", "replace")


def decoded(text: str) -> str:
    """Return a part of a path as its sender meant it; two names must never become one."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise HttpProblem("malformed-request", "the path is not UTF-8") from None


def caller_of(request: Request) -> Caller:
    """Return who is calling."""
    caller: Caller | None = request.state.caller
    if caller is None:
        raise HttpProblem("unauthenticated")
    return caller


def caller_as(*roles: Role) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that lets these roles in."""

    async def let_in(request: Request) -> Caller:
        caller = caller_of(request)
        if caller.role not in roles:
            raise HttpProblem("forbidden")
        return caller

    return let_in


Auditor = Annotated[Caller, Depends(caller_as(Role.AUDITOR))]
Reader = Annotated[Caller, Depends(caller_as(*READERS))]
