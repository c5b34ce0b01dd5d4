"""Who may do what: tokens, kept as hashes, with a role, a scope and an end; and what was proved.

A token is ``eqp_<id>_<secret>``. The id finds the row; the secret has 256 random bits, so a single
SHA-256 is as good as a slow hash, and it is compared in constant time. What the store holds opens
no door.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import inputs
from equipoise.ledger.database import Database
from equipoise.ledger.store import table_names
from equipoise.ledger.writer import stamp

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
LOGIN_LINK = "login link"  # how the names of tokens begin that a server makes for itself
VERIFICATIONS = ("running", "verified", "broken", "lost")  # kinds of marks


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

    @property
    def is_login_link(self) -> bool:
        """Whether a server made it at its start, for the link that it printed."""
        return self.name.startswith(LOGIN_LINK)


@dataclass(frozen=True)
class Mark(JsonValue):
    """A checkpoint that was handed out, or a verification.

    ``kind`` is ``checkpoint``, ``verified``, ``broken``, ``running`` or, if it did not come to an
    end, ``lost``; ``note`` says what is broken.
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
        with self._database.using() as connection:
            if "service_marks" not in table_names(connection):  # not every role may make them
                for statement in _TABLES:
                    connection.run(statement)

    def new(self, name: str, role: Role, audit: str | None = None, *, days: float = 90.0) -> str:
        """Make a token by hand and return it; it is never shown again.

        A name is given once and for ever: it is the actor in every event. Names that begin like
        those of login links are refused, because a server counts tokens that were made by hand.
        """
        if name.strip().startswith(LOGIN_LINK):
            raise InvalidInput(f"names that begin with {LOGIN_LINK!r} are taken by the server")
        return self._make(name, role, audit, days)

    def new_login_link(self, user: str) -> str:
        """Make an auditor's token for a day, for a first login, and return it."""
        made_at = datetime.now(UTC).isoformat()
        return self._make(f"{LOGIN_LINK} of {user}, {made_at}", Role.AUDITOR, None, days=1.0)

    def _make(self, name: str, role: Role, audit: str | None, days: float) -> str:
        if not 0 < days <= 3660:
            raise InvalidInput(f"'days' must be more than 0 and at most 3660; got {days!r}")
        name = inputs.name("name", name)
        scope = None if audit is None else inputs.name("audit", audit)
        number, secret, now = secrets.token_hex(8), secrets.token_urlsafe(32), datetime.now(UTC)
        if any(token.name == name for token in self.all()):
            raise InvalidInput(f"a token named {name!r} exists or existed; choose another name")
        row = (number, name, role.value, scope, stamp(now), stamp(now + timedelta(days=days)))
        columns = ("id", "name", "role", "audit", "created", "expires", "secret_hash")
        with self._database.using() as connection:
            connection.insert("service_tokens", columns, [(*row, _hash(secret))])
        return f"eqp_{number}_{secret}"

    def all(self) -> list[Token]:
        """Return every token ever made, oldest first."""
        return [token for token, _ in self._tokens("ORDER BY created, id")]

    def revoke(self, name: str) -> Token:
        """End a token; browsers that logged in with it are out as well."""
        known = {token.name: token for token in self.all()}
        if name not in known:
            raise UnknownName("token", name, known)
        now = known[name].revoked or stamp(datetime.now(UTC))
        with self._database.using() as connection:
            connection.run("UPDATE service_tokens SET revoked = ? WHERE name = ?", (now, name))
        return replace(known[name], revoked=now)

    def find(self, text: str) -> Token | None:
        """Return the living token that this is, None if it is none."""
        parts = text.split("_", 2)
        if len(text) > 200 or not text.isascii() or len(parts) != 3 or parts[0] != "eqp":
            return None
        token, own = self._living(parts[1])
        return token if hmac.compare_digest(own, _hash(parts[2])) else None

    def by_id(self, number: str) -> Token | None:
        """Return the living token of this id, for a caller who has proved to hold it."""
        return self._living(number)[0]

    def log_out(self, number: str) -> None:
        """End every browser's session of a token."""
        now = stamp(datetime.now(UTC))
        with self._database.using() as connection:
            connection.run("UPDATE service_tokens SET logged_out = ? WHERE id = ?", (now, number))

    # -- marks ------------------------------------------------------------------------------------

    def add_mark(self, audit: str, kind: str, seq: int, own: str, actor: str) -> Mark:
        """Remember a checkpoint, or that a verification began."""
        mark = Mark(secrets.token_hex(8), audit, kind, seq, own, stamp(datetime.now(UTC)), actor)
        with self._database.using() as connection:
            connection.insert("service_marks", list(vars(mark)), [tuple(vars(mark).values())])
        return mark

    def end_verification(self, mark: Mark) -> None:
        """Say what became of a verification."""
        sets = "kind = ?, seq = ?, hash = ?, note = ?, time = ?"
        values = (mark.kind, mark.seq, mark.hash, mark.note, stamp(datetime.now(UTC)), mark.id)
        with self._database.using() as connection:
            connection.run(f"UPDATE service_marks SET {sets} WHERE id = ?", values)

    def end_lost_verifications(self) -> None:
        """Say of verifications that a server left behind that they did not come to an end."""
        with self._database.using() as connection:
            connection.run("UPDATE service_marks SET kind = 'lost' WHERE kind = 'running'")

    def marks(self, audit: str, *kinds: str, limit: int = 100) -> list[Mark]:
        """Return the latest marks of an audit, the latest first."""
        query = (
            f"SELECT {_columns(Mark)} FROM service_marks WHERE audit = ? AND "
            f"kind IN ({', '.join('?' * len(kinds))}) "
            f"ORDER BY time DESC, seq DESC, id LIMIT {int(limit)}"
        )
        with self._database.using() as connection:
            return [Mark(*row) for row in connection.run(query, (audit, *kinds)).fetchall()]

    # -- helpers ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        self._database.close()

    def _tokens(self, rest: str, *values: str) -> list[tuple[Token, str]]:
        """Return tokens with the hashes of their secrets."""
        query = f"SELECT {_columns(Token)}, secret_hash FROM service_tokens {rest}"
        with self._database.using() as connection:
            rows = connection.run(query, values).fetchall()
        return [(replace(Token(*row), role=Role(row[2])), own) for *row, own in rows]

    def _living(self, number: str) -> tuple[Token | None, str]:
        now, found = datetime.now(UTC), self._tokens("WHERE id = ?", number)
        return next((own for own in found if own[0].lives(now)), (None, NOBODY))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _columns(kind: type[Token | Mark]) -> str:
    return ", ".join(field.name for field in fields(kind))
