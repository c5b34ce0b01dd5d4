"""Who is calling: bearer tokens for programs, a session cookie for browsers, roles for both.

This runs before a request's body is read. Programs (``/v1``, ``/metrics``) show a token in a header
and nothing else opens them, so no page of another site can act for somebody; browsers show a
cookie and nothing else opens the pages.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from equipoise.errors import EquipoiseError
from equipoise.ledger import inputs
from equipoise.service.problems import Problem, problem_of, to_response
from equipoise.service.settings import LOOPBACK, ServiceSettings
from equipoise.service.tokens import Role, Session, Token, TokenStore

__all__ = ["COOKIE", "Access", "Attempts", "Caller", "address_of", "caller_of", "decoded"]

COOKIE = "equipoise_session"
PUBLIC = ("/livez", "/readyz", "/openapi.json", "/login", "/favicon.ico")
PROGRAMS = ("/v1/", "/metrics")
SAFE = ("GET", "HEAD", "OPTIONS")
REMEMBERED = 2.0  # seconds until a revoked token is refused
FAILURES, WINDOW = 20, 60.0  # failed attempts of one address, and in how many seconds


@dataclass(frozen=True)
class Caller:
    """Who is calling, as what, and for which audit (None: every one)."""

    name: str
    role: Role
    audit: str | None = None
    session: Session | None = None

    @property
    def may_know(self) -> bool:
        """Whether the caller may learn more than replies."""
        return self.role is not Role.WRITER

    @property
    def form_key(self) -> str:
        """What forms must bring along; empty where no log-in is needed."""
        return "" if self.session is None else self.session.form_key

    def may_see(self, name: str, uid: str) -> bool:
        """Whether an audit is in this caller's scope."""
        return self.audit is None or self.audit in (name, uid)


class Attempts:
    """Failed attempts per address; those who fail too often must wait."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    def failed(self, address: str) -> None:
        """Count a failure; refuse an address that failed too often."""
        now, times = self._clock(), self._failed.setdefault(address, deque())
        self._failed.move_to_end(address)
        if len(self._failed) > 10_000:
            self._failed.popitem(last=False)
        while times and times[0] < now - WINDOW:
            times.popleft()
        if len(times) >= FAILURES:
            wait = int(times[0] + WINDOW - now) + 1
            raise Problem("too-many-attempts", headers={"Retry-After": str(wait)})
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
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()
        self._closed, self._looked = False, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._enter(scope)
        except Problem as problem:
            answer = to_response(problem)
        except EquipoiseError as error:
            answer = to_response(problem_of(error, tell_all=False))
        await (self._app if answer is None else answer)(scope, receive, send)

    async def _enter(self, scope: Scope) -> Response | None:
        path, headers = scope["path"], Headers(scope=scope)
        scope.setdefault("state", {})["caller"] = None
        if path in PUBLIC or path.startswith("/static/"):
            if path == "/login" and scope["method"] not in SAFE:
                self._require_same_site(headers)
            return None
        if await self._is_open(scope):
            _require_loopback_name(headers)
            if scope["method"] not in SAFE and ("origin" in headers or "referer" in headers):
                self._require_same_site(headers)
            scope["state"]["caller"] = Caller(inputs.system_user(), Role.AUDITOR)
            return None
        if path.startswith(PROGRAMS):
            scope["state"]["caller"] = await self._by_token(scope, headers)
            return None
        return await self._by_cookie(scope, headers)

    async def _is_open(self, scope: Scope) -> bool:
        """Whether nobody needs a token; the first one that is made closes the door."""
        if self._settings.open and not self._closed and time.monotonic() >= self._looked:
            found = await scope["app"].state.desk.in_reader(self._store.all)
            self._closed, self._looked = bool(found), time.monotonic() + REMEMBERED
        return self._settings.open and not self._closed

    async def _by_token(self, scope: Scope, headers: Headers) -> Caller:
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text:
            raise Problem("unauthenticated")
        key, now = hashlib.sha256(text.encode("latin-1")).digest(), time.monotonic()
        known = self._known.get(key)
        if known is not None and now < known[0]:
            return known[1]
        token = await scope["app"].state.desk.in_reader(lambda: self._store.find(text))
        if token is None:  # others at the same address, with a token that is right, are let in
            self._known.pop(key, None)
            self._attempts.failed(address_of(scope))
            raise Problem("unauthenticated")
        caller = _caller(token)
        self._known[key] = (now + REMEMBERED, caller)
        self._known.move_to_end(key)
        if len(self._known) > 10_000:
            self._known.popitem(last=False)
        return caller

    async def _by_cookie(self, scope: Scope, headers: Headers) -> Response | None:
        secret = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        session = None
        if secret:
            find = self._store.session
            session = await scope["app"].state.desk.in_reader(lambda: find(secret))
        if session is None:
            if scope["method"] in SAFE:
                return RedirectResponse("/login", 303)
            raise Problem("unauthenticated")
        if scope["method"] not in SAFE:
            self._require_same_site(headers)
        scope["state"]["caller"] = _caller(session.token, session)
        return None

    def _require_same_site(self, headers: Headers) -> None:
        """Refuse what another site's page sends: browsers say where a request comes from."""
        origin = headers.get("origin") or headers.get("referer", "")
        if urlsplit(origin).netloc != headers.get("host", "") or not origin:
            raise Problem("cross-site")


def _require_loopback_name(headers: Headers) -> None:
    """Refuse other names where nobody logs in: a page elsewhere could point one at this machine."""
    name = urlsplit(f"//{headers.get('host', '')}").hostname or ""
    if name not in LOOPBACK and not name.startswith("127."):
        raise Problem("wrong-host", "without tokens the server answers to localhost only")


def _caller(token: Token, session: Session | None = None) -> Caller:
    return Caller(token.name, token.role, token.audit, session)


def address_of(scope: Scope) -> str:
    """Return where a request comes from."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def decoded(text: str) -> str:
    """Return a part of a path as its sender meant it; two names must never become one."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise Problem("malformed-request", "the path is not UTF-8") from None


def caller_of(request: Request) -> Caller:
    """Return who is calling."""
    caller: Caller | None = request.state.caller
    if caller is None:
        raise Problem("unauthenticated")
    return caller
