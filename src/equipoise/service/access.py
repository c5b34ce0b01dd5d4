"""Who is calling: a token for programs; for browsers a signed cookie or a trusted proxy.

This runs before a request's body is read. Programs (``/v1``, ``/metrics``) send a token in a header
and browsers do not send it by themselves, so a page of another site cannot act for its visitor. A
cookie carries the id of the token that its holder logged in with. The token is looked up at every
request, so a revoked token ends all of its sessions.
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
from equipoise.service.tokens import READERS, Role, Token, display_name

SESSION_COOKIE = "equipoise_session"
SESSION_SECONDS = 12 * 3600
PROXY_SECRET_HEADER = "x-equipoise-proxy-secret"
PUBLIC_PATHS = ("/livez", "/readyz", "/openapi.json", "/static/")  # how their paths begin
PROGRAM_PATHS = ("/v1/", "/metrics")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")  # which change nothing
WRITER_COMMANDS = ("ask", "tell", "execute", "withdraw")
MAX_FAILURES = 20  # failed attempts of one address within the window
FAILURE_WINDOW_SECONDS = 60.0


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
    def display_name(self) -> str:
        """The caller's name as pages show it."""
        return display_name(self.name)

    @property
    def may_see_details(self) -> bool:
        """Whether the caller may learn more than replies."""
        return self.role is not Role.WRITER

    def may_do(self, command: str) -> bool:
        """Whether the caller may send a command, given by its tag such as ``ask``."""
        if command in WRITER_COMMANDS:
            return self.role in (Role.WRITER, Role.AUDITOR)
        if command in ("approve", "upgrade"):
            return self.role is Role.APPROVER
        if command == "reject":
            return self.role in (Role.AUDITOR, Role.APPROVER)
        return self.role is Role.AUDITOR

    def may_see(self, name: str, uid: str) -> bool:
        """Whether an audit is in this caller's scope."""
        return self.audit is None or self.audit in (name, uid)


class Access:
    """Middleware that finds out who is calling before anything else happens."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, send a browser to the login page, or refuse."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path.startswith(PUBLIC_PATHS):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        # In a thread, because it asks the database.
        caller = await run_in_threadpool(_identify, request)
        request.state.caller = caller
        if caller is not None or path == "/login":
            await self._app(scope, receive, send)
        elif path.startswith(PROGRAM_PATHS) or request.method not in SAFE_METHODS:
            raise HttpProblem("unauthenticated")
        else:
            await RedirectResponse("/login", 303)(scope, receive, send)


def _identify(request: Request) -> Caller | None:
    """Return who is calling, None if the request does not show it."""
    if request.scope["path"].startswith(PROGRAM_PATHS):
        return _caller_by_token(request)
    if request.method not in SAFE_METHODS:
        _require_same_site(request)
    # A claim to be the proxy is refused if it is false, also where a valid cookie comes along.
    return _caller_by_proxy(request) or _caller_by_cookie(request)


def _caller_by_token(request: Request) -> Caller | None:
    """Return the holder of the token in the header ``Authorization: Bearer``."""
    scheme, _, token_text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token_text:
        return None
    token = request.app.state.store.find(token_text)
    if token is None:
        # Only failures are counted: others at the same address, with a valid token, are let in.
        count_failed_attempt(request)
        return None
    return Caller(token.name, token.role, token.audit)


def _caller_by_proxy(request: Request) -> Caller | None:
    """Return the actor whom a trusted proxy names, None if the request claims no proxy.

    Raises
    ------
    HttpProblem
        If the request claims to come from the proxy and does not, if the proxy does not name
        exactly one actor, or if no group of the actor has a role.
    """
    if PROXY_SECRET_HEADER not in request.headers:
        return None
    if not _is_trusted_proxy(request):
        count_failed_attempt(request)
        raise HttpProblem("unauthenticated", "this is not the proxy that is trusted")
    settings: ServiceSettings = request.app.state.settings
    actors = request.headers.getlist(settings.proxy_actor)
    group_lists = request.headers.getlist(settings.proxy_groups)
    if len(actors) != 1 or len(group_lists) > 1:
        raise HttpProblem("unauthenticated", "the proxy must name one actor, in one header")
    name = inputs.name("actor", _header_text(actors[0]))
    actor_groups = {group.strip() for group in _header_text("".join(group_lists)).split(",")}
    for group, role in settings.proxy_roles.items():
        if group in actor_groups:
            # A proxy's user has no cookie of ours, so the form key is bound to the name.
            return Caller(name, role, None, _form_key(settings, f"proxy {name}"))
    raise HttpProblem("forbidden", f"no group of {name} has a role here")


def _is_trusted_proxy(request: Request) -> bool:
    """Return whether the trusted proxy itself sent a request: by its address and its secret."""
    settings: ServiceSettings = request.app.state.settings
    # The peer of the socket, not the address that the request says it was forwarded for.
    peer = request.state.peer
    if peer is None or not any(ip_address(peer) in network for network in settings.proxy_peers):
        return False
    expected_secret = settings.proxy_secret.get_secret_value().encode()
    sent_secrets = request.headers.getlist(PROXY_SECRET_HEADER)
    if not expected_secret or len(sent_secrets) != 1:
        return False
    return hmac.compare_digest(sent_secrets[0].encode("latin-1"), expected_secret)


def _header_text(value: str) -> str:
    """Return a header's value, which proxies send in UTF-8 and the framework reads as Latin-1.

    Bytes that are not UTF-8 are refused: replaced by a mark they would make two people one actor.
    """
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise HttpProblem(
            "unauthenticated", "the proxy must name actor and groups in UTF-8"
        ) from None


def _caller_by_cookie(request: Request) -> Caller | None:
    """Return who logged in with a cookie that we signed, None if they have logged out since."""
    state = request.app.state
    cookie = request.cookies.get(SESSION_COOKIE, "")
    try:
        token_id, logged_in_at, _ = _signer(state.settings).loads(cookie, max_age=SESSION_SECONDS)
    except BadData:
        return None
    token = state.store.by_id(token_id)
    # The times are texts in one form, so they compare like times.
    if token is None or logged_in_at <= token.logged_out:
        return None
    form_key = _form_key(state.settings, cookie)
    return Caller(token.name, token.role, token.audit, form_key, token.id)


def new_session(settings: ServiceSettings, token: Token) -> str:
    """Return a signed cookie that says with which token, and when, a browser logged in."""
    logged_in_at = format_timestamp(datetime.now(UTC))
    nonce = secrets.token_hex(8)  # two logins in one moment get different form keys
    return _signer(settings).dumps([token.id, logged_in_at, nonce])


def _signer(settings: ServiceSettings) -> URLSafeTimedSerializer:
    secret_key = settings.secret_key.get_secret_value()
    return URLSafeTimedSerializer(secret_key, salt="equipoise.session")


def _form_key(settings: ServiceSettings, session: str) -> str:
    """Return the key that forms of a session must bring, which other sites cannot know."""
    secret_key = settings.secret_key.get_secret_value().encode()
    return hmac.new(secret_key, f"form {session}".encode(), hashlib.sha256).hexdigest()


def count_failed_attempt(request: Request) -> None:
    """Count a failed attempt to get in.

    Raises
    ------
    HttpProblem
        ``too-many-attempts``, if the address has failed ``MAX_FAILURES`` times in the last minute.
    """
    failures = request.app.state.failures
    address = request.client.host if request.client else ""
    current_time = time.monotonic()
    recent_times = []
    for attempt_time, attempt_address in failures.copy():  # other threads add to it meanwhile
        if attempt_address == address and attempt_time > current_time - FAILURE_WINDOW_SECONDS:
            recent_times.append(attempt_time)
    if len(recent_times) >= MAX_FAILURES:
        seconds_to_wait = int(recent_times[0] + FAILURE_WINDOW_SECONDS - current_time) + 1
        raise HttpProblem("too-many-attempts", headers={"Retry-After": str(seconds_to_wait)})
    failures.append((current_time, address))


def _require_same_site(request: Request) -> None:
    """Refuse what a page of another site sends: browsers say where a request comes from."""
    origin = request.headers.get("origin") or request.headers.get("referer", "")
    try:
        site = urlsplit(origin).netloc
    except ValueError:  # not an address
        site = ""
    if not site or site != request.headers.get("host", ""):
        raise HttpProblem("cross-site")


def decode_path_part(text: str) -> str:
    """Return a percent-encoded part of a path as text.

    Bytes that are not UTF-8 are refused: replaced by a mark they would make two names one.
    """
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
