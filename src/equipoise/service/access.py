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
from equipoise.ledger.timestamps import format_timestamp
from equipoise.service.problems import HttpProblem
from equipoise.service.settings import ServiceSettings
from equipoise.service.tokens import READERS, Role, Token

SESSION_COOKIE = "equipoise_session"
PROXY_SECRET_HEADER = "x-equipoise-proxy-secret"
PUBLIC_PATHS = ("/livez", "/readyz", "/openapi.json", "/static/")
PROGRAM_PATHS = ("/v1/", "/metrics")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
WRITER_COMMANDS = ("ask", "tell", "execute", "withdraw")
SESSION_SECONDS = 12 * 3600  # seconds
MAX_FAILURES, FAILURE_WINDOW_SECONDS = (
    20,
    60.0,
)  # failed attempts of one address, and in how many seconds


@dataclass(frozen=True)
class Caller:
    """Who is calling, as what, and for which audit (None: every one).

    ``form_key`` is what forms of a browser must bring along, ``token_id`` the id of the token that
    a browser logged in with.
    """

    name: str
    role: Role
    audit: str | None = None
    form_key: str = ""
    token_id: str = ""

    @property
    def may_see_details(self) -> bool:
        """Whether the caller may learn more than replies."""
        return self.role is not Role.WRITER

    def may_do(self, command: str) -> bool:
        """Whether the caller may send a command, known by its tag."""
        if command in WRITER_COMMANDS:
            return self.role in (Role.WRITER, Role.AUDITOR)
        if command in ("approve", "upgrade"):
            return self.role is Role.APPROVER
        return self.role is Role.AUDITOR or (self.role is Role.APPROVER and command == "reject")

    def may_see(self, name: str, uid: str) -> bool:
        """Whether an audit is in this caller's scope."""
        return self.audit is None or self.audit in (name, uid)


class Access:
    """Find out who is calling before anything else happens."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, send a browser to the login, or refuse."""
        path, app = scope.get("path", ""), self._app
        if scope["type"] == "http" and not path.startswith(PUBLIC_PATHS):
            request = Request(scope)
            caller = request.state.caller = await run_in_threadpool(_identify, request)
            if caller is None and path != "/login":
                if path.startswith(PROGRAM_PATHS) or request.method not in SAFE_METHODS:
                    raise HttpProblem("unauthenticated")
                app = RedirectResponse("/login", 303)
        await app(scope, receive, send)


def _identify(request: Request) -> Caller | None:
    if request.scope["path"].startswith(PROGRAM_PATHS):
        return _caller_by_token(request)
    if request.method not in SAFE_METHODS:
        _require_same_site(request)
    return _caller_by_proxy(request) or _caller_by_cookie(request)


def _caller_by_token(request: Request) -> Caller | None:
    scheme, _, token_text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token_text:
        return None
    token = request.app.state.store.find(token_text)
    if token is None:  # others at the same address, with a token that is right, are let in
        count_failed_attempt(request)
        return None
    return Caller(token.name, token.role, token.audit)


def _caller_by_proxy(request: Request) -> Caller | None:
    """Return whom a trusted proxy names; refuse whoever only looks like one.

    Only the peer of the socket counts, whatever addresses the request says it was forwarded for,
    and only with the secret; then exactly one actor, who is in a group that has a role.
    """
    settings, headers = request.app.state.settings, request.headers
    if PROXY_SECRET_HEADER not in headers:
        return None
    expected_secret = settings.proxy_secret.get_secret_value().encode()
    sent_secrets = [value.encode("latin-1") for value in headers.getlist(PROXY_SECRET_HEADER)]
    peer = request.state.peer
    is_listed = peer is not None and any(
        ip_address(peer) in network for network in settings.proxy_peers
    )
    is_right_secret = len(sent_secrets) == 1 and hmac.compare_digest(
        sent_secrets[0], expected_secret
    )
    if not (expected_secret and is_listed and is_right_secret):
        count_failed_attempt(request)
        raise HttpProblem("unauthenticated", "this is not the proxy that is trusted")
    actors, groups = map(headers.getlist, (settings.proxy_actor, settings.proxy_groups))
    if len(actors) != 1 or len(groups) > 1:
        raise HttpProblem("unauthenticated", "the proxy must name one actor, in one header")
    # Headers are UTF-8, which is what proxies send. Whatever is not would become the same
    # replacement character for different people, and so make them one actor.
    try:
        sent_actor = actors[0].encode("latin-1").decode("utf-8")
        sent_groups = "".join(groups).encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise HttpProblem(
            "unauthenticated", "the proxy must name actor and groups in UTF-8"
        ) from None
    name, actor_groups = (
        inputs.name("actor", sent_actor),
        {group_name.strip() for group_name in sent_groups.split(",")},
    )
    roles = [role for group, role in settings.proxy_roles.items() if group in actor_groups]
    if not roles:
        raise HttpProblem("forbidden", f"no group of {name} has a role here")
    return Caller(name, roles[0], None, _form_key(settings, f"proxy {name}"))


def _caller_by_cookie(request: Request) -> Caller | None:
    """Return who logged in; None unless we signed it and they did not log out since."""
    state, cookie = request.app.state, request.cookies.get(SESSION_COOKIE, "")
    try:
        token_id, logged_in_at, _ = _signer(state.settings).loads(cookie, max_age=SESSION_SECONDS)
    except BadData:
        return None
    token = state.store.by_id(token_id)
    if token is None or logged_in_at <= token.logged_out:
        return None
    form_key = _form_key(state.settings, cookie)
    return Caller(token.name, token.role, token.audit, form_key, token.id)


def new_session(settings: ServiceSettings, token: Token) -> str:
    """Return a cookie that says with which token, and when, a browser logged in."""
    return _signer(settings).dumps(
        [token.id, format_timestamp(datetime.now(UTC)), secrets.token_hex(8)]
    )


def _signer(settings: ServiceSettings) -> URLSafeTimedSerializer:
    secret_key = settings.secret_key.get_secret_value()
    return URLSafeTimedSerializer(secret_key, salt="equipoise.session")


def _form_key(settings: ServiceSettings, session: str) -> str:
    """Return what a page of another site cannot know."""
    secret_key = settings.secret_key.get_secret_value().encode()
    return hmac.new(secret_key, f"form {session}".encode(), hashlib.sha256).hexdigest()


def count_failed_attempt(request: Request) -> None:
    """Count a failed attempt; refuse an address that failed too often, which must wait."""
    failures, now = request.app.state.failures, time.monotonic()
    address = request.client.host if request.client else ""
    attempts = failures.copy()  # other threads add to it meanwhile
    recent_attempts = [
        attempt_time
        for attempt_time, attempt_address in attempts
        if attempt_address == address and attempt_time > now - FAILURE_WINDOW_SECONDS
    ]
    if len(recent_attempts) >= MAX_FAILURES:
        wait = int(recent_attempts[0] + FAILURE_WINDOW_SECONDS - now) + 1
        raise HttpProblem("too-many-attempts", headers={"Retry-After": str(wait)})
    failures.append((now, address))


def _require_same_site(request: Request) -> None:
    """Refuse what another site's page sends: browsers say where a request comes from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    try:
        site = urlsplit(origin).netloc
    except ValueError:  # an address that is none
        site = ""
    if not site or site != request.headers.get("host", ""):
        raise HttpProblem("cross-site")


def decode_path_part(text: str) -> str:
    """Return a part of a path as its sender meant it; two names must never become one."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise HttpProblem("malformed-request", "the path is not UTF-8") from None


def require_role(roles: Sequence[Role], request: Request) -> Caller:
    """Return who is calling, if they have one of these roles."""
    caller: Caller = request.state.caller
    if caller.role not in roles:
        raise HttpProblem("forbidden")
    return caller


Auditor = Annotated[Caller, Depends(partial(require_role, (Role.AUDITOR,)))]
Reader = Annotated[Caller, Depends(partial(require_role, READERS))]
