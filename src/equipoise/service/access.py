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
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import unquote, urlsplit

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from equipoise.ledger import inputs
from equipoise.ledger.writer import stamp
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import READERS, Role, Token, TokenStore

COOKIE = "equipoise_session"
PROXY_SECRET = "x-equipoise-proxy-secret"
PUBLIC = ("/livez", "/readyz", "/openapi.json", "/static/")
PROGRAMS = ("/v1/", "/metrics")
SAFE = ("GET", "HEAD", "OPTIONS")
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

    def __init__(self, settings: ServiceSettings, store: TokenStore) -> None:
        self._key = settings.secret_key.get_secret_value().encode()
        self._signer = URLSafeTimedSerializer(self._key, salt="equipoise.session")
        self._store = store

    def begin(self, token: Token) -> str:
        """Return a cookie for the holder of a token."""
        return self._signer.dumps([token.id, stamp(datetime.now(UTC)), secrets.token_hex(8)])

    def caller(self, cookie: str) -> Caller | None:
        """Return who logged in; None unless we signed it and they did not log out since."""
        try:
            number, began, _ = self._signer.loads(cookie, max_age=SESSION)
        except BadData:
            return None
        token = self._store.by_id(number)
        if token is None or began <= token.logged_out:
            return None
        return Caller(token.name, token.role, token.audit, self.form_key(cookie), token.id)

    def form_key(self, text: str) -> str:
        """Return what a page of another site cannot know."""
        return hmac.new(self._key, f"form {text}".encode(), hashlib.sha256).hexdigest()


class Attempts:
    """Failed attempts per address; those who fail too often must wait."""

    def __init__(self) -> None:
        self._failed: deque[tuple[float, str]] = deque(maxlen=10_000)

    def failed(self, request: Request) -> None:
        """Count a failure; refuse an address that failed too often."""
        now, address = time.monotonic(), request.client.host if request.client else ""
        seen = self._failed.copy()  # other threads add to it meanwhile
        recent = [at for at, who in seen if who == address and at > now - WINDOW]
        if len(recent) >= FAILURES:
            wait = int(recent[0] + WINDOW - now) + 1
            raise HttpProblem("too-many-attempts", headers={"Retry-After": str(wait)})
        self._failed.append((now, address))


class Access:
    """Find out who is calling before anything else happens."""

    def __init__(
        self, app: ASGIApp, settings: ServiceSettings, sessions: Sessions, attempts: Attempts,
        store: TokenStore,
    ) -> None:  # fmt: skip
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._attempts = attempts
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, send a browser to the login, or refuse."""
        path, app = scope.get("path", ""), self._app
        if scope["type"] == "http" and not path.startswith(PUBLIC):
            request = Request(scope)
            caller = request.state.caller = await run_in_threadpool(self._caller, request)
            if caller is None and path != "/login":
                if path.startswith(PROGRAMS) or request.method not in SAFE:
                    raise HttpProblem("unauthenticated")
                app = RedirectResponse("/login", 303)
        await app(scope, receive, send)

    def _caller(self, request: Request) -> Caller | None:
        if request.scope["path"].startswith(PROGRAMS):
            return self._by_token(request)
        if request.method not in SAFE:
            _require_same_site(request)
        cookie = request.cookies.get(COOKIE, "")
        return self._by_proxy(request) or self._sessions.caller(cookie)

    def _by_token(self, request: Request) -> Caller | None:
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text:
            return None
        token = self._store.find(text)
        if token is None:  # others at the same address, with a token that is right, are let in
            self._attempts.failed(request)
            return None
        return Caller(token.name, token.role, token.audit)

    def _by_proxy(self, request: Request) -> Caller | None:
        """Return whom a trusted proxy names; refuse whoever only looks like one.

        Only the peer of the socket counts, whatever addresses the request says it was forwarded
        for, and only with the secret; then exactly one actor, who is in a group that has a role.
        """
        settings, headers = self._settings, request.headers
        if PROXY_SECRET not in headers:
            return None
        wanted = settings.proxy_secret.get_secret_value().encode()
        given = [value.encode("latin-1") for value in headers.getlist(PROXY_SECRET)]
        peer = request.state.peer
        listed = peer is not None and any(ip_address(peer) in net for net in settings.proxy_peers)
        right = len(given) == 1 and hmac.compare_digest(given[0], wanted)
        if not (wanted and listed and right):
            self._attempts.failed(request)
            raise HttpProblem("unauthenticated", "this is not the proxy that is trusted")
        actors = headers.getlist(settings.proxy_actor)
        groups = headers.getlist(settings.proxy_groups)
        if len(actors) != 1 or len(groups) > 1:
            raise HttpProblem("unauthenticated", "the proxy must name one actor, in one header")
        name = inputs.name("actor", _text(actors[0]))
        theirs = {one.strip() for one in _text("".join(groups)).split(",")}
        roles = [role for group, role in settings.proxy_roles.items() if group in theirs]
        if not roles:
            raise HttpProblem("forbidden", f"no group of {name} has a role here")
        return Caller(name, roles[0], None, self._sessions.form_key(f"proxy {name}"))


def _require_same_site(request: Request) -> None:
    """Refuse what another site's page sends: browsers say where a request comes from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    try:
        site = urlsplit(origin).netloc
    except ValueError:  # an address that is none
        site = ""
    if not site or site != request.headers.get("host", ""):
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


def caller_in(roles: Sequence[Role], request: Request) -> Caller:
    """Return who is calling, if they have one of these roles."""
    caller: Caller = request.state.caller
    if caller.role not in roles:
        raise HttpProblem("forbidden")
    return caller


Auditor = Annotated[Caller, Depends(partial(caller_in, (Role.AUDITOR,)))]
Reader = Annotated[Caller, Depends(partial(caller_in, READERS))]
