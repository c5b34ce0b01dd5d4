"""What may be done to an audit, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.question import Want

__all__ = [
    "Ask",
    "Close",
    "Command",
    "Correct",
    "Erase",
    "Execute",
    "MarkOverdue",
    "Reply",
    "Tell",
    "Withdraw",
    "WriteOff",
]


@dataclass(frozen=True)
class Ask:
    """Somebody arrived."""

    person: str
    group: str
    decision: int


@dataclass(frozen=True)
class Tell:
    """An outcome, or features, became known."""

    person: str
    outcome: int | None = None
    features: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Execute:
    """An override was carried out."""

    person: str


@dataclass(frozen=True)
class Withdraw:
    """A person refused before the override was carried out."""

    person: str


@dataclass(frozen=True)
class MarkOverdue:
    """An outcome should have come by now."""

    person: str


@dataclass(frozen=True)
class WriteOff:
    """An overdue outcome is given up; its worst cost is posted."""

    person: str


@dataclass(frozen=True)
class Correct:
    """A known outcome was wrong."""

    person: str
    outcome: int
    why: str


@dataclass(frozen=True)
class Close:
    """Nobody else is to come."""

    why: str
    person: str = ""


@dataclass(frozen=True)
class Erase:
    """Delete every feature vector."""

    person: str = ""


Command = Ask | Tell | Execute | Withdraw | MarkOverdue | WriteOff | Correct | Close | Erase


@dataclass(frozen=True)
class Reply(JsonValue):
    """What came of one command.

    Attributes
    ----------
    want, hold, number
        The stored decision: what is wanted of the person, the most that it can cost in minor
        units, and the place in request order (None where the audit was not consulted).
    state, why
        The person's state, and why nothing is wanted where it is SKIPPED.
    repeated
        The command changed nothing: it was carried out before.
    problem
        In a batch: why this one was refused; None if it was not.
    """

    person: str
    state: str = ""
    want: Want = Want.NOTHING
    hold: int = 0
    number: int | None = None
    why: str = ""
    outcome: int | None = None
    repeated: bool = False
    problem: str | None = None
