"""Where the service keeps things and how much it takes from strangers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.errors import InvalidInput

__all__ = ["ServiceSettings", "is_loopback", "tokens_beside"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServiceSettings:
    """What one server runs with.

    Attributes
    ----------
    ledger, tokens
        Databases: a file (SQLite) or ``postgresql://…``; the tokens' beside the ledger's if empty.
    open
        Let everybody in without a token; only ever on a loopback address.
    demo
        Let simulated people arrive at a demonstration audit.
    secure
        The browser reaches the server by https, so cookies may insist on it.
    body_limit, upload_limit
        Most bytes of a request, and of an uploaded table of past decisions.
    body_seconds
        How long a request may take to arrive.
    wait_seconds
        How long a write waits for other writers of the database.
    watchers
        Most open streams of events for the dashboard, per worker.
    """

    ledger: str
    tokens: str = ""
    open: bool = False
    demo: bool = False
    secure: bool = False
    body_limit: int = 1 << 20
    upload_limit: int = 32 << 20
    body_seconds: float = 20.0
    wait_seconds: float = 10.0
    watchers: int = 200

    def __post_init__(self) -> None:
        if self.ledger in ("sqlite://", "sqlite:///:memory:", ":memory:"):
            raise InvalidInput("a service needs a ledger that several connections share: a file")
        if not self.tokens:
            object.__setattr__(self, "tokens", tokens_beside(self.ledger))

    def to_environment(self) -> dict[str, str]:
        """Return the variables from which worker processes read the same settings."""
        flags = {"OPEN": self.open, "DEMO": self.demo, "SECURE": self.secure}
        return {
            "EQUIPOISE_LEDGER": self.ledger,
            "EQUIPOISE_TOKENS": self.tokens,
            **{f"EQUIPOISE_SERVE_{name}": "1" if on else "" for name, on in flags.items()},
        }

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> ServiceSettings:
        """Read what :meth:`to_environment` gave.

        Examples
        --------
        >>> settings = ServiceSettings("audits.db", open=True)
        >>> ServiceSettings.from_environment(settings.to_environment()) == settings
        True
        """
        if not variables.get("EQUIPOISE_LEDGER"):
            raise InvalidInput("EQUIPOISE_LEDGER must name the ledger: a file or postgresql://…")
        return cls(
            ledger=variables["EQUIPOISE_LEDGER"],
            tokens=variables.get("EQUIPOISE_TOKENS", ""),
            open=bool(variables.get("EQUIPOISE_SERVE_OPEN")),
            demo=bool(variables.get("EQUIPOISE_SERVE_DEMO")),
            secure=bool(variables.get("EQUIPOISE_SERVE_SECURE")),
        )


def tokens_beside(ledger: str) -> str:
    """Return where tokens are kept if nobody says: a file of their own, or the same PostgreSQL.

    Examples
    --------
    >>> tokens_beside("audits.db")
    'audits.db.tokens'
    """
    return ledger if ledger.startswith("postgres") else f"{ledger}.tokens"


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach an address."""
    return host in LOOPBACK or host.startswith("127.")
