"""Who may do what: tokens, kept as hashes, with a role, a scope and an end.

A token is ``eqp_<id>_<secret>``. The id finds the row; the secret has 256 random bits, so a single
SHA-256 is as good as a slow hash, and it is compared in constant time. What the store holds opens
no door. A browser that logged in holds a session of its own, kept in the same way.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import inputs
from equipoise.ledger.database import Connection, connect
from equipoise.ledger.failures import Explainer, driver_errors
from equipoise.ledger.writer import stamp

__all__ = ["READERS", "Role", "Session", "Token", "TokenStore"]

SESSION_HOURS = 12
NOBODY = hashlib.sha256(b"nobody").hexdigest()

_TABLES = (
    """CREATE TABLE IF NOT EXISTS service_tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, audit TEXT,
    secret_hash TEXT NOT NULL, created TEXT NOT NULL, expires TEXT NOT NULL, revoked TEXT)""",
    """CREATE TABLE IF NOT EXISTS service_sessions (
    secret_hash TEXT PRIMARY KEY, token_id TEXT NOT NULL, expires TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS service_marks (
    audit TEXT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL,
    time TEXT NOT NULL, actor TEXT NOT NULL, note TEXT NOT NULL)""",
)
COLUMNS = "id, name, role, audit, created, expires, revoked"


class Role(StrEnum):
    """What the holder of a token is to an audit."""

    WRITER = "writer"
    AUDITOR = "auditor"
    APPROVER = "approver"
    REGULATOR = "regulator"


READERS = (Role.AUDITOR, Role.APPROVER, Role.REGULATOR)


@dataclass(frozen=True)
class Token(JsonValue):
    """One token without its secret; ``audit`` is the only audit it opens, None for every one."""

    id: str
    name: str
    role: Role
    audit: str | None
    created: str
    expires: str
    revoked: str | None = None

    def lives(self, now: datetime) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and stamp(now) < self.expires


@dataclass(frozen=True)
class Session:
    """A browser that logged in: whose it is, and what its forms must bring along."""

    token: Token
    secret: str

    @property
    def form_key(self) -> str:
        """What a page of another site cannot know."""
        return hmac.new(self.secret.encode(), b"form", hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Mark(JsonValue):
    """A checkpoint that was handed out, or a verification that was made."""

    audit: str
    kind: str
    seq: int
    hash: str
    time: str
    actor: str
    note: str


class TokenStore:
    """Tokens, sessions and marks in a database; may be shared between threads.

    Examples
    --------
    >>> import tempfile
    >>> store = TokenStore(tempfile.mkdtemp() + "/tokens")
    >>> text = store.new("bank", Role.WRITER, "loans", days=30)
    >>> store.find(text).name
    'bank'
    >>> store.find(text + "x") is None
    True
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._held: Connection | None = None
        self._pid = os.getpid()
        self._explain = Explainer(url.rpartition("@")[2], 10.0)
        if "://" not in url and not Path(url).exists():
            Path(url).parent.mkdir(parents=True, exist_ok=True)
            Path(url).touch(mode=0o600)

    def new(self, name: str, role: Role, audit: str | None = None, *, days: float = 90.0) -> str:
        """Make a token and return it; it is never shown again.

        A name is given once and for ever: it is the actor in every event.
        """
        if not 0 < days <= 3660:
            raise InvalidInput(f"'days' must be more than 0 and at most 3660; got {days!r}")
        if role not in list(Role):
            raise UnknownName("role", role, Role)
        name = inputs.name("name", name)
        scope = None if audit is None else inputs.name("audit", audit)
        number, secret, now = secrets.token_hex(8), secrets.token_urlsafe(32), datetime.now(UTC)
        with self._using() as connection:
            if connection.run("SELECT 1 FROM service_tokens WHERE name = ?", (name,)).fetchone():
                raise InvalidInput(f"a token named {name!r} exists or existed; choose another name")
            connection.run(
                "INSERT INTO service_tokens (id, name, role, audit, secret_hash, created, expires) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, name, role.value, scope, _hash(secret), stamp(now),
                 stamp(now + timedelta(days=days))),
            )  # fmt: skip
        return f"eqp_{number}_{secret}"

    def all(self) -> list[Token]:
        """Return every token ever made, oldest first."""
        with self._using() as connection:
            query = f"SELECT {COLUMNS} FROM service_tokens ORDER BY created, id"
            return [_token(row) for row in connection.run(query).fetchall()]

    def revoke(self, name: str) -> Token:
        """End a token, and every session that began with it."""
        with self._using() as connection:
            query = f"SELECT {COLUMNS} FROM service_tokens WHERE name = ?"
            row = connection.run(query, (name,)).fetchone()
            if row is None:
                known = [r[0] for r in connection.run("SELECT name FROM service_tokens").fetchall()]
                raise UnknownName("token", name, known)
            now, token = stamp(datetime.now(UTC)), _token(row)
            connection.run(
                "UPDATE service_tokens SET revoked = ? WHERE id = ? AND revoked IS NULL",
                (now, token.id),
            )
            connection.run("DELETE FROM service_sessions WHERE token_id = ?", (token.id,))
        return _token((*row[:-1], row[-1] or now))

    def find(self, text: str) -> Token | None:
        """Return the living token that this is, None if it is none."""
        parts = text.split("_", 2)
        if len(text) > 200 or not text.isascii() or len(parts) != 3 or parts[0] != "eqp":
            return None
        with self._using() as connection:
            query = f"SELECT secret_hash, {COLUMNS} FROM service_tokens WHERE id = ?"
            row = connection.run(query, (parts[1],)).fetchone()
        right = hmac.compare_digest(NOBODY if row is None else row[0], _hash(parts[2]))
        if row is None or not right:
            return None
        token = _token(row[1:])
        return token if token.lives(datetime.now(UTC)) else None

    # -- browsers ---------------------------------------------------------------------------------

    def log_in(self, text: str, roles: Sequence[Role] = READERS) -> Session | None:
        """Begin a session for a token of some roles; None if it is none."""
        token = self.find(text)
        if token is None or token.role not in roles:
            return None
        secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
        end = min(stamp(now + timedelta(hours=SESSION_HOURS)), token.expires)
        with self._using() as connection:
            connection.run("DELETE FROM service_sessions WHERE expires < ?", (stamp(now),))
            connection.run(
                "INSERT INTO service_sessions (secret_hash, token_id, expires) VALUES (?, ?, ?)",
                (_hash(secret), token.id, end),
            )
        return Session(token, secret)

    def session(self, secret: str) -> Session | None:
        """Return the session that a cookie stands for."""
        if len(secret) > 200 or not secret.isascii():
            return None
        columns = ", ".join(f"t.{name}" for name in COLUMNS.split(", "))
        query = (
            f"SELECT {columns} FROM service_sessions s JOIN service_tokens t ON t.id = s.token_id "
            "WHERE s.secret_hash = ? AND s.expires > ?"
        )
        now = datetime.now(UTC)
        with self._using() as connection:
            row = connection.run(query, (_hash(secret), stamp(now))).fetchone()
        token = None if row is None else _token(row)
        return Session(token, secret) if token is not None and token.lives(now) else None

    def log_out(self, secret: str) -> None:
        """End a session."""
        with self._using() as connection:
            connection.run("DELETE FROM service_sessions WHERE secret_hash = ?", (_hash(secret),))

    # -- marks ------------------------------------------------------------------------------------

    def add_mark(self, mark: Mark) -> None:
        """Remember a checkpoint or a verification."""
        with self._using() as connection:
            connection.run(
                "INSERT INTO service_marks (audit, kind, seq, hash, time, actor, note) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (mark.audit, mark.kind, mark.seq, mark.hash, mark.time, mark.actor, mark.note),
            )

    def marks(self, audit: str, kind: str, limit: int = 100) -> list[Mark]:
        """Return the latest marks of an audit, the latest first."""
        query = (
            "SELECT audit, kind, seq, hash, time, actor, note FROM service_marks "
            f"WHERE audit = ? AND kind = ? ORDER BY time DESC, seq DESC LIMIT {int(limit)}"
        )
        with self._using() as connection:
            return [Mark(*row) for row in connection.run(query, (audit, kind)).fetchall()]

    # -- helpers ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        with self._lock:
            if self._held is not None and self._pid == os.getpid():
                self._held.close()
            self._held = None

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        with self._lock, self._explain:
            if self._held is None or self._pid != os.getpid():
                self._held, self._pid = connect(self.url, 10.0), os.getpid()
                _prepare(self._held)
            try:
                yield self._held
            except driver_errors():
                with_error, self._held = self._held, None
                with_error.close()
                raise


def _prepare(connection: Connection) -> None:
    """Make the tables, unless they are there: a role that may not make any can then use them."""
    try:
        connection.run("SELECT 1 FROM service_marks LIMIT 0")
    except driver_errors():
        for statement in _TABLES:
            connection.run(statement)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Sequence[Any]) -> Token:
    number, name, role, audit, created, expires, revoked = row
    return Token(number, name, Role(role), audit, created, expires, revoked)
