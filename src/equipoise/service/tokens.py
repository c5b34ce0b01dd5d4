"""Who may do what: tokens, kept as hashes, with a role, a scope and an end; and what was proved.

A token is ``eqp_<id>_<secret>``. The id finds the row; the secret has 256 random bits, so a single
SHA-256 is as good as a slow hash, and it is compared in constant time. What the store holds opens
no door.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import inputs
from equipoise.ledger.database import Connection, Database
from equipoise.ledger.store import table_names
from equipoise.ledger.writer import stamp

__all__ = ["READERS", "Mark", "Role", "Token", "TokenStore"]

LOST = timedelta(seconds=60)  # a verification that gave no sign for so long is none
NOBODY = hashlib.sha256(b"nobody").hexdigest()

_TABLES = (
    """CREATE TABLE IF NOT EXISTS service_tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL, audit TEXT,
    secret_hash TEXT NOT NULL, created TEXT NOT NULL, expires TEXT NOT NULL, revoked TEXT,
    logged_out TEXT NOT NULL DEFAULT '')""",
    """CREATE TABLE IF NOT EXISTS service_marks (
    id TEXT PRIMARY KEY, audit TEXT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL,
    hash TEXT NOT NULL, time TEXT NOT NULL, actor TEXT NOT NULL, note TEXT NOT NULL)""",
)
COLUMNS = "id, name, role, audit, created, expires, revoked, logged_out"
MARK = "id, audit, kind, seq, hash, time, actor, note"


class Role(StrEnum):
    """What the holder of a token is to an audit."""

    WRITER = "writer"
    AUDITOR = "auditor"
    APPROVER = "approver"
    REGULATOR = "regulator"


READERS = (Role.AUDITOR, Role.APPROVER, Role.REGULATOR)


@dataclass(frozen=True)
class Token(JsonValue):
    """One token without its secret; ``audit`` is the only audit it opens, None for every one.

    ``logged_out`` is when its holder last logged out: browsers that logged in before are no longer
    let in.
    """

    id: str
    name: str
    role: Role
    audit: str | None
    created: str
    expires: str
    revoked: str | None = None
    logged_out: str = ""

    def lives(self, now: datetime) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and stamp(now) < self.expires


@dataclass(frozen=True)
class Mark(JsonValue):
    """A checkpoint that was handed out, or a verification.

    ``kind`` is ``checkpoint``, ``verified``, ``broken``, ``running`` or, if whoever ran it is gone,
    ``lost``; ``note`` says what is broken.
    """

    id: str
    audit: str
    kind: str
    seq: int
    hash: str
    time: str
    actor: str
    note: str = ""


class TokenStore:
    """Tokens and marks in a database; may be shared between threads.

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
        self._database = Database(url, create=True, timeout=10.0)
        self._prepared = False

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
        """End a token; browsers that logged in with it are out as well."""
        with self._using() as connection:
            query = f"SELECT {COLUMNS} FROM service_tokens WHERE name = ?"
            row = connection.run(query, (name,)).fetchone()
            if row is None:
                known = [r[0] for r in connection.run("SELECT name FROM service_tokens").fetchall()]
                raise UnknownName("token", name, known)
            token = _token(row)
            now = token.revoked or stamp(datetime.now(UTC))
            connection.run("UPDATE service_tokens SET revoked = ? WHERE id = ?", (now, token.id))
        return replace(token, revoked=now)

    def find(self, text: str) -> Token | None:
        """Return the living token that this is, None if it is none."""
        parts = text.split("_", 2)
        if len(text) > 200 or not text.isascii() or len(parts) != 3 or parts[0] != "eqp":
            return None
        row = self._row(parts[1])
        right = hmac.compare_digest(NOBODY if row is None else row[0], _hash(parts[2]))
        return _alive(row) if right else None

    def by_id(self, number: str) -> Token | None:
        """Return the living token of this id, for a caller who has proved to hold it."""
        return _alive(self._row(number))

    def log_out(self, number: str) -> None:
        """End every browser's session of a token."""
        now = stamp(datetime.now(UTC))
        with self._using() as connection:
            connection.run("UPDATE service_tokens SET logged_out = ? WHERE id = ?", (now, number))

    # -- marks ------------------------------------------------------------------------------------

    def add_mark(self, audit: str, kind: str, seq: int, own: str, actor: str) -> Mark:
        """Remember a checkpoint, or that a verification began."""
        mark = Mark(secrets.token_hex(8), audit, kind, seq, own, stamp(datetime.now(UTC)), actor)
        with self._using() as connection:
            connection.insert("service_marks", MARK.split(", "), [tuple(mark.to_dict().values())])
        return mark

    def change_mark(self, number: str, **changes: str | int) -> None:
        """Say what became of a verification, or that it goes on."""
        now = {"time": stamp(datetime.now(UTC)), **changes}
        sets = ", ".join(f"{name} = ?" for name in now)
        with self._using() as connection:
            query = f"UPDATE service_marks SET {sets} WHERE id = ?"
            connection.run(query, (*now.values(), number))

    def mark(self, audit: str, number: str) -> Mark | None:
        """Return a mark of an audit."""
        query = f"SELECT {MARK} FROM service_marks WHERE audit = ? AND id = ?"
        with self._using() as connection:
            row = connection.run(query, (audit, number)).fetchone()
        return None if row is None else _mark(row)

    def marks(self, audit: str, *kinds: str, limit: int = 100) -> list[Mark]:
        """Return the latest marks of an audit, the latest first."""
        query = (
            f"SELECT {MARK} FROM service_marks WHERE audit = ? AND "
            f"kind IN ({', '.join('?' * len(kinds))}) "
            f"ORDER BY time DESC, seq DESC, id LIMIT {int(limit)}"
        )
        with self._using() as connection:
            return [_mark(row) for row in connection.run(query, (audit, *kinds)).fetchall()]

    # -- helpers ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        self._database.close()

    def _row(self, number: str) -> Sequence[Any] | None:
        query = f"SELECT secret_hash, {COLUMNS} FROM service_tokens WHERE id = ?"
        with self._using() as connection:
            found: Sequence[Any] | None = connection.run(query, (number,)).fetchone()
        return found

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        """Yield the connection; make the tables unless they are there: not every role may."""
        with self._database.using() as connection:
            if not self._prepared and "service_marks" not in table_names(connection):
                for statement in _TABLES:
                    connection.run(statement)
            self._prepared = True
            yield connection


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Sequence[Any]) -> Token:
    number, name, role, *rest = row
    return Token(number, name, Role(role), *rest)


def _alive(row: Sequence[Any] | None) -> Token | None:
    token = None if row is None else _token(row[1:])
    return token if token is not None and token.lives(datetime.now(UTC)) else None


def _mark(row: Sequence[Any]) -> Mark:
    mark = Mark(*row)
    gone = mark.kind == "running" and mark.time < stamp(datetime.now(UTC) - LOST)
    return replace(mark, kind="lost") if gone else mark
