"""What may be done to an audit, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from equipoise._json import JsonValue
from equipoise.errors import EquipoiseError, InvalidInput, require_finite, require_kind
from equipoise.ledger import inputs
from equipoise.question import Want

__all__ = [
    "Approve",
    "Ask",
    "Command",
    "Conclude",
    "Correct",
    "Erase",
    "EraseFeatures",
    "Execute",
    "MarkOverdue",
    "Pause",
    "Reject",
    "Reply",
    "Resume",
    "SetBudget",
    "SetLimits",
    "Tell",
    "Withdraw",
    "WriteOff",
    "checked",
    "checked_or_refused",
    "made",
    "shown",
]


@dataclass(frozen=True)
class Ask:
    """Somebody arrived; with a score, of a version, and a price for audits that look."""

    person: str
    group: str
    decision: int
    score: float | None = None
    price: int | None = None
    version: str = ""


@dataclass(frozen=True)
class Tell:
    """An outcome, or features, became known."""

    person: str
    outcome: int | None = None
    features: tuple[float, ...] | None = None


@dataclass(frozen=True)
class OfPerson:
    """Something that happens to a person and needs no more words."""

    person: str


class Execute(OfPerson):
    """An override was carried out."""


class Withdraw(OfPerson):
    """A person refused before the override was carried out."""


class MarkOverdue(OfPerson):
    """An outcome should have come by now."""


class WriteOff(OfPerson):
    """An overdue outcome is given up; its worst cost is posted."""


class Erase(OfPerson):
    """Forget a person: pseudonym, key and features."""


@dataclass(frozen=True)
class Correct:
    """A known outcome was wrong."""

    person: str
    outcome: int
    why: str


@dataclass(frozen=True)
class Conclude:
    """Nobody else is to come."""

    why: str
    person: str = ""


@dataclass(frozen=True)
class Pause:
    """Ask nobody for now."""

    why: str
    person: str = ""


@dataclass(frozen=True)
class Resume:
    """Ask again."""

    why: str
    person: str = ""


@dataclass(frozen=True)
class SetBudget:
    """Another cap, or none."""

    budget: int | None
    why: str
    person: str = ""


@dataclass(frozen=True)
class SetLimits:
    """Other limits of what is in flight."""

    max_in_flight: int | None
    max_in_flight_groups: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    person: str = ""


@dataclass(frozen=True)
class Approve:
    """Carry out what somebody else proposed."""

    proposal: int
    person: str = ""


@dataclass(frozen=True)
class Reject:
    """Drop a proposal."""

    proposal: int
    why: str
    person: str = ""


@dataclass(frozen=True)
class EraseFeatures:
    """Delete every feature vector."""

    person: str = ""


Command = (
    Ask
    | Tell
    | Execute
    | Withdraw
    | MarkOverdue
    | WriteOff
    | Correct
    | Erase
    | Conclude
    | Pause
    | Resume
    | SetBudget
    | SetLimits
    | Approve
    | Reject
    | EraseFeatures
)

ABOUT_PEOPLE = (Ask, Tell, OfPerson, Correct)


def checked(command: Command) -> Command:
    """Return the command with everything in it in stored form, or refuse it.

    Raises
    ------
    InvalidInput
        Here, in the caller's own thread: nobody who shares the transaction hears of it.
    """
    if not isinstance(command, Command):
        raise InvalidInput(f"a command is needed, as in Ask('p1', 'A', 0); got {command!r}")
    if isinstance(command, ABOUT_PEOPLE):
        command = replace(command, person=inputs.name("person", command.person))
    if isinstance(command, Ask):
        group, decision = inputs.name("group", command.group), command.decision
        require_finite("score", command.score)
        return replace(
            command,
            group=group,
            decision=inputs.binary("decision", decision),
            score=None if command.score is None else float(command.score),
            price=None if command.price is None else inputs.whole("price", command.price),
            version=inputs.text("version", command.version),
        )
    if isinstance(command, Tell):
        vector = inputs.vector(command.person, command.features)
        if command.outcome is None and vector is not None:
            return Tell(command.person, None, vector)
        return Tell(command.person, inputs.binary("outcome", command.outcome), vector)
    if isinstance(command, Correct):
        command = replace(command, outcome=inputs.binary("outcome", command.outcome))
    if isinstance(command, SetBudget) and command.budget is not None:
        command = replace(command, budget=inputs.whole("budget", command.budget))
    if isinstance(command, Approve | Reject):
        command = replace(command, proposal=inputs.count("proposal", command.proposal))
    if isinstance(command, SetLimits):
        require_kind("max_in_flight_groups", command.max_in_flight_groups, Mapping, "GROUP: N")
    if isinstance(command, Correct | Conclude | Pause | Resume | SetBudget | SetLimits | Reject):
        command = replace(command, why=inputs.text("why", command.why))
    return command


def made(kind: type[Ask | Tell], row: Any, names: str) -> Command | EquipoiseError:
    """Return a row as a command, or why it is none."""
    try:
        needed = len(names.split(", "))
        if needed <= len(row) <= (len(fields(Ask)) if kind is Ask else needed):
            return kind(*row)
    except TypeError:
        pass
    return InvalidInput(f"a row must be ({names}); got {row!a}")


def checked_or_refused(command: Command | EquipoiseError) -> Command | EquipoiseError:
    """Return the command in stored form, or why not: in a batch nobody waits for the others."""
    try:
        return command if isinstance(command, EquipoiseError) else checked(command)
    except EquipoiseError as error:
        return error


def in_batches(
    commands: Iterable[Command | EquipoiseError],
    size: int,
    run: Callable[[Sequence[Command]], Iterable[Reply | EquipoiseError]],
) -> list[Reply]:
    """Carry out commands, so many at once; a refused one has its ``problem`` set."""
    everything, replies = list(commands), list[Reply]()
    for start in range(0, len(everything), size):
        batch = everything[start : start + size]
        part = [checked_or_refused(command) for command in batch]
        results = iter(run([c for c in part if not isinstance(c, EquipoiseError)]))
        for given, command in zip(batch, part, strict=True):
            result = command if isinstance(command, EquipoiseError) else next(results)
            if isinstance(result, EquipoiseError):
                result = Reply(shown(getattr(given, "person", "")), problem=str(result))
            replies.append(result)
    return replies


def shown(person: object) -> str:
    """Return what a caller gave as something that can be printed."""
    return person if isinstance(person, str) and person.isprintable() else ascii(person)


@dataclass(frozen=True)
class Reply(JsonValue):
    """What came of one command.

    Attributes
    ----------
    want, hold, request
        The stored decision: what is wanted of the person, the most that it can cost in minor
        units, and the place in request order (None where the audit was not consulted).
    number
        The person's number in order of arrival, which stands for them in the chain; of a
        proposal, what to approve it by.
    state, why
        The person's state, and why nothing is wanted where it is SKIPPED: ``approved``, ``budget``,
        ``concluded``, ``decided``, ``in_flight``, ``lottery``, ``not_wanted`` or ``paused``.
    repeated
        The command changed nothing: it was carried out before.
    problem
        In a batch: why this one was refused; None if it was not.

    Examples
    --------
    >>> Reply("p-17", state="RESERVED", want=Want.LABEL, hold=100).to_dict()["want"]
    'LABEL'
    """

    person: str
    state: str = ""
    want: Want = Want.NOTHING
    hold: int = 0
    number: int | None = None
    request: int | None = None
    why: str = ""
    outcome: int | None = None
    repeated: bool = False
    problem: str | None = None
