"""Who may do what: tokens, kept as hashes, with a role, a scope and an end.

A token is ``eqp_<id>_<secret>``. The id finds the row; the secret has 256 random bits, so a single
SHA-256 is as good as a slow hash, and it is compared in constant time. What the store holds opens
no door.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName
from equipoise.ledger import inputs
from equipoise.ledger.timestamps import format_timestamp
from equipoise.service.database import open_service_database

NO_TOKEN_HASH = hashlib.sha256(b"nobody").hexdigest()
"""What a secret is compared with where no valid token has the id."""
TOKEN_COLUMNS = (
    "id", "name", "role", "audit", "secret_hash", "created", "expires", "revoked", "logged_out"
)  # fmt: skip
"""The columns of ``service_tokens``; ``database.py`` makes the table."""
MAX_DAYS = 3660  # of validity
MAX_TOKEN_CHARACTERS = 200
LOGIN_LINK = "login link"  # how the names of tokens begin that a server makes for itself


class Role(StrEnum):
    """What the holder of a token may do with an audit; ``Caller.may_do`` has the rules."""

    WRITER = "writer"
    AUDITOR = "auditor"
    APPROVER = "approver"
    REGULATOR = "regulator"


READERS = (Role.AUDITOR, Role.APPROVER, Role.REGULATOR)
"""The roles that may see an audit; writers learn only what their commands are answered."""


@dataclass(frozen=True)
class Token(JsonValue):
    """One token without its secret. Times are UTC, in the ledger's form.

    Attributes
    ----------
    id
        The part of the token by which it is found.
    name
        Who holds it: the actor in every event.
    audit
        The only audit that it opens, None for every audit.
    revoked
        When it was revoked, None if it was not.
    logged_out
        When its holder last logged out: sessions that began before are over.
    """

    id: str
    name: str
    role: Role
    audit: str | None
    created: str
    expires: str
    revoked: str | None = None
    logged_out: str = ""

    def lives(self, moment: datetime) -> bool:
        """Whether the token is neither revoked nor expired."""
        return self.revoked is None and format_timestamp(moment) < self.expires

    @property
    def is_login_link(self) -> bool:
        """Whether a server made it at its start, for the link that it printed."""
        return self.name.startswith(LOGIN_LINK)


def display_name(name: str) -> str:
    """Return the name of a token as pages show it: of a login link its user.

    Examples
    --------
    >>> display_name("login link of root, 2026-11-18T10:54:00+00:00")
    'root'
    """
    if not name.startswith(f"{LOGIN_LINK} of "):
        return name
    return name.removeprefix(f"{LOGIN_LINK} of ").rpartition(", ")[0]


class TokenStore:
    """Tokens in a database; may be shared between threads.

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
        self._database = open_service_database(url)

    def new(self, name: str, role: Role, audit: str | None = None, *, days: float = 90.0) -> str:
        """Make a token by hand and return it; it is never shown again.

        A name is given once and for ever: it is the actor in every event. Names that begin like
        those of login links are refused, because a server counts tokens that were made by hand.
        """
        if name.strip().startswith(LOGIN_LINK):
            raise InvalidInput(f"names that begin with {LOGIN_LINK!r} are taken by the server")
        return self._make(name, role, audit, days)

    def new_login_link(self, user: str, role: Role = Role.AUDITOR) -> str:
        """Make a token for a day, for a first login, and return it."""
        creation_time = datetime.now(UTC).isoformat()
        return self._make(f"{LOGIN_LINK} of {user}, {creation_time}", role, None, days=1.0)

    def _make(self, name: str, role: Role, audit: str | None, days: float) -> str:
        """Store a new token and return its text."""
        if not 0 < days <= MAX_DAYS:  # also refuses what is not a number
            raise InvalidInput(f"'days' must be more than 0 and at most {MAX_DAYS}; got {days!r}")
        checked_name = inputs.name("name", name)
        scope = None if audit is None else inputs.name("audit", audit)
        # Revoked and expired ones count too: two people must never be one actor in the events.
        if any(token.name == checked_name for token in self.all()):
            raise InvalidInput(
                f"a token named {checked_name!r} exists or existed; choose another name"
            )
        token_id = secrets.token_hex(8)
        secret = secrets.token_urlsafe(32)
        created = datetime.now(UTC)
        expires = created + timedelta(days=days)
        row = (
            token_id, checked_name, role.value, scope, _hash(secret), format_timestamp(created),
            format_timestamp(expires), None, "",
        )  # fmt: skip
        with self._database.using() as connection:
            connection.insert("service_tokens", TOKEN_COLUMNS, [row])
        return f"eqp_{token_id}_{secret}"

    def all(self) -> list[Token]:
        """Return every token ever made, oldest first."""
        return [token for token, _ in self._select("ORDER BY created, id")]

    def revoke(self, name: str) -> Token:
        """End a token; browsers that logged in with it are out as well."""
        tokens = {token.name: token for token in self.all()}  # a name is never given twice
        if name not in tokens:
            raise UnknownName("token", name, tokens)
        # Revoking twice keeps the first time.
        revoked_at = tokens[name].revoked or format_timestamp(datetime.now(UTC))
        with self._database.using() as connection:
            connection.run(
                "UPDATE service_tokens SET revoked = ? WHERE name = ?", (revoked_at, name)
            )
        return replace(tokens[name], revoked=revoked_at)

    def find(self, text: str) -> Token | None:
        """Return the valid token that has this text (``eqp_ID_SECRET``), None if there is none."""
        parts = text.split("_", 2)  # a secret may contain an underscore
        has_token_form = len(parts) == 3 and parts[0] == "eqp"
        if len(text) > MAX_TOKEN_CHARACTERS or not text.isascii() or not has_token_form:
            return None
        _, token_id, secret = parts
        token, secret_hash = self._valid_token(token_id)
        # The hash is compared even if there is no such token. Otherwise the time that an answer
        # takes would tell which ids exist.
        return token if hmac.compare_digest(secret_hash, _hash(secret)) else None

    def by_id(self, token_id: str) -> Token | None:
        """Return the valid token of this id, for a caller who has proved to hold it."""
        token, _ = self._valid_token(token_id)
        return token

    def log_out(self, token_id: str) -> None:
        """End every browser's session of a token."""
        logout_time = format_timestamp(datetime.now(UTC))
        with self._database.using() as connection:
            connection.run(
                "UPDATE service_tokens SET logged_out = ? WHERE id = ?", (logout_time, token_id)
            )

    # -- helpers ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the connection; it is opened again when needed."""
        self._database.close()

    def _select(self, condition: str, *values: str) -> list[tuple[Token, str]]:
        """Return tokens, each with the hash of its secret; ``condition`` follows the table."""
        query = f"SELECT {', '.join(TOKEN_COLUMNS)} FROM service_tokens {condition}"
        with self._database.using() as connection:
            rows = connection.run(query, values).fetchall()
        return [_token_from_row(row) for row in rows]

    def _valid_token(self, token_id: str) -> tuple[Token | None, str]:
        """Return the valid token of this id and its secret's hash, or None and no token's hash."""
        current_time = datetime.now(UTC)
        for token, secret_hash in self._select("WHERE id = ?", token_id):
            if token.lives(current_time):
                return token, secret_hash
        return None, NO_TOKEN_HASH


def _token_from_row(row: Sequence[Any]) -> tuple[Token, str]:
    """Return a token and the hash of its secret from a row in the order of ``TOKEN_COLUMNS``."""
    token_id, name, role, audit, secret_hash, created, expires, revoked, logged_out = row
    token = Token(
        id=token_id,
        name=name,
        role=Role(role),
        audit=audit,
        created=created,
        expires=expires,
        revoked=revoked,
        logged_out=logged_out,
    )
    return token, secret_hash


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
