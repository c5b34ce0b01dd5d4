"""Refusals of an audit as data: a code, the facts, and what may be done instead.

The ledger refuses a command with a :class:`Refusal`, which the raised error carries as
``error.refusal``. Programs look at ``code`` and ``facts``. People read a sentence:
:func:`to_python` makes that of the error's message, and
:func:`equipoise.messages.shell.describe_refusal` that of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SENTENCES: Mapping[str, str] = {
    "key-used": (
        "'key' {key!r} was used for another command, event {event} ({event_type}); give every "
        "command a key of its own"
    ),
    "person-conflict": (
        "person {person!r} was asked about as group {stored_group!r}, decision {stored_decision}; "
        "got {group!r}, {decision!r}"
    ),
    "outcome-conflict": (
        "outcome {stored_outcome} ({stored_word}) of person {person!r} is stored; got {outcome} "
        "({word}). The conflict is recorded and the stored outcome stands; if {word} is right: "
        "{fix}"
    ),
    "nothing-to-execute": "nothing to carry out for {person!r}: {state}",
    "wrong-state": ("person {person!r} is {state}; a request must be {states} to be {action}"),
    "no-outcome-yet": "no outcome of person {person!r} is known; tell it instead",
    "request-open": "person {person!r} is {state}; settle the request first: {ways}",
    "unknown-person": (
        "person {person!r} is unknown to audit {audit!r}: nobody has asked about them yet"
    ),
    "budget-committed": "'budget' must be at least what is spent or held, {least}; got {budget}",
    "own-proposal": "proposal {proposal} is {actor!r}'s own; another person must approve",
    "proposal-is-noop": ("proposal {proposal} would change nothing, it is so by now; reject it"),
    "proposal-decided": "proposal {proposal} was {decision} before",
    "proposal-of-erased-person": "person {number} was erased since; reject the proposal",
    "other-edition": (
        "audit {audit!r} is weighed by edition {edition} of the statistics (equipoise {software}), "
        "this program has edition {program_edition}: it can be read, and its chain, books and "
        "money verified, but not continued. Use that version, or let an approver weigh what is "
        "recorded by the present edition: {fix}"
    ),
}
"""Code -> the sentence, in which names in braces are facts."""

WAYS_TO_SETTLE: Mapping[str, str] = {
    "RESERVED": "withdraw it, or tell the outcome",
    "EXECUTED": "tell the outcome, or mark it overdue and write it off",
    "OVERDUE": "tell the outcome, or write it off",
}
"""State of an open request -> how it can be settled."""


@dataclass(frozen=True)
class SuggestedCommand:
    """A command of an audit that helps.

    Attributes
    ----------
    method
        Its name in Python.
    arguments
        The values of its arguments, in order.
    shell_arguments
        The same as the command line takes them.
    needs_reason
        Whether somebody must add why.
    """

    method: str
    arguments: tuple[Any, ...] = ()
    shell_arguments: tuple[str, ...] = ()
    needs_reason: bool = False


@dataclass(frozen=True)
class Refusal:
    """Why an audit does not carry out a command.

    Attributes
    ----------
    code
        One of :data:`SENTENCES`.
    facts
        What the sentence is about: a person, what is stored, what came.
    audit
        The name of the audit.
    fix
        A command that helps; None if there is none.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    audit: str = ""
    fix: SuggestedCommand | None = None


def to_python(refusal: Refusal) -> str:
    """Return the sentence with the fix as a call of the audit's method.

    Examples
    --------
    >>> to_python(Refusal("no-outcome-yet", {"person": "p-17"}))
    "no outcome of person 'p-17' is known; tell it instead"
    """
    return fill_in(refusal, "" if refusal.fix is None else _as_call(refusal.fix))


def fill_in(refusal: Refusal, fix: str) -> str:
    """Return the sentence of a refusal with its facts and the fix, as somebody spelled it."""
    return SENTENCES[refusal.code].format(**refusal.facts, audit=refusal.audit, fix=fix)


def _as_call(fix: SuggestedCommand) -> str:
    arguments = [repr(argument) for argument in fix.arguments]
    if fix.needs_reason:
        arguments.append("why")  # without quotes: the caller puts a reason in its place
    return f"{fix.method}({', '.join(arguments)})"
