"""Refusals of an audit as data: a code, the facts, and what may be done instead.

The ledger refuses a command with a :class:`Refusal`, which the raised error carries as
``error.refusal``. Programs look at ``code`` and ``facts``, which are codes and numbers. People read
a sentence: :func:`to_python` makes that of the error's message, and ``describe_refusal`` in
:mod:`equipoise.messages.shell`, ``http`` and ``form`` those of the command line, of HTTP and of the
pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.display import format_money
from equipoise.messages.audit_words import (
    DECISION_WORDS,
    MOVE_WORDS,
    OUTCOME_WORDS,
    PERSON_STATE_WORDS,
)

SENTENCES: Mapping[str, str] = {
    "no-ledger": "no ledger at {ledger}; begin an audit there first",
    "key-used": (
        "'key' {key!r} was used for another command, event {event} ({event_type}); give every "
        "command a key of its own"
    ),
    "person-conflict": (
        "person {person!r} was asked about as group {stored_group!r}, {stored_decision}; got "
        "{group!r}, {decision}"
    ),
    "outcome-conflict": (
        "outcome {stored_outcome} of person {person!r} is stored; got {outcome}. The conflict is "
        "recorded and the stored outcome stands; if {outcome} is right: {fix}"
    ),
    "nothing-to-execute": "no override of person {person!r} is to be carried out: {state}",
    "wrong-state": (
        "the request about person {person!r} cannot be {action}: its state is {state}, and must be "
        "{states}"
    ),
    "no-outcome-yet": "no outcome of person {person!r} is known; tell it instead",
    "request-open": (
        "the request about person {person!r} is open ({state}); settle the request first: {ways}"
    ),
    "unknown-person": (
        "person {person!r} is unknown to audit {audit!r}: nobody has asked about them yet"
    ),
    "budget-committed": "'budget' must be at least what is spent or held, {least}; got {budget}",
    "own-proposal": "proposal {proposal} is {actor!r}'s own; another person must approve",
    "proposal-is-noop": ("proposal {proposal} would change nothing, it is so by now; reject it"),
    "proposal-decided": "proposal {proposal} was {earlier} before",
    "proposal-of-erased-person": "person {number} was erased since; reject the proposal",
    "other-edition": (
        "audit {audit!r} is weighed by edition {edition} of the statistics (equipoise {software}), "
        "this program has edition {program_edition}: it can be read, and its chain, books and "
        "money verified, but not continued. Use that version, or let an approver weigh what is "
        "recorded by the present edition: {fix}"
    ),
}
"""Code -> the sentence. Names in braces are facts, or texts of :data:`FACT_TEXTS`."""

WAYS_TO_SETTLE: Mapping[str, str] = {
    "RESERVED": "withdraw it, or tell the outcome",
    "EXECUTED": "tell the outcome, or mark it overdue and write it off",
    "OVERDUE": "tell the outcome, or write it off",
}
"""State of an open request -> how it can be settled."""


def _spell_state(state: str) -> str:
    return repr(PERSON_STATE_WORDS[state])


def _spell_outcome(outcome: int) -> str:
    return f"{outcome} ({OUTCOME_WORDS[outcome]})"


def _spell_money(facts: Mapping[str, Any], name: str) -> str:
    return format_money(facts[name], facts["currency"], facts["decimals"])


FACT_TEXTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "state": lambda facts: _spell_state(facts["state"]),
    "states": lambda facts: " or ".join(map(_spell_state, facts["states"])),
    "ways": lambda facts: WAYS_TO_SETTLE[facts["state"]],
    "action": lambda facts: MOVE_WORDS[facts["action"]],
    "decision": lambda facts: DECISION_WORDS[facts["decision"]],
    "stored_decision": lambda facts: DECISION_WORDS[facts["stored_decision"]],
    "outcome": lambda facts: _spell_outcome(facts["outcome"]),
    "stored_outcome": lambda facts: _spell_outcome(facts["stored_outcome"]),
    "least": lambda facts: _spell_money(facts, "least"),
    "budget": lambda facts: _spell_money(facts, "budget"),
}
"""Name in a sentence -> its text, made of the facts. All other facts stand as they are."""


@dataclass(frozen=True)
class SuggestedCommand:
    """A command of an audit that helps, once somebody adds why.

    Attributes
    ----------
    method
        Its name, in Python as well as in JSON.
    arguments
        Its arguments by name, in the order of the method's.
    """

    method: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


FIXES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "outcome-conflict": ("correct", ("person", "outcome")),
    "other-edition": ("upgrade", ()),
}
"""Code -> the command that helps, and which facts are its arguments."""


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
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    audit: str = ""

    @property
    def fix(self) -> SuggestedCommand | None:
        """A command that helps; None if there is none."""
        if self.code not in FIXES:
            return None
        method, names = FIXES[self.code]
        return SuggestedCommand(method, {name: self.facts[name] for name in names})


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
    return SENTENCES[refusal.code].format_map(_Texts(refusal, fix))


class _Texts(dict[str, Any]):
    """What stands for the names in a sentence; a text is made only if the sentence has its name."""

    def __init__(self, refusal: Refusal, fix: str) -> None:
        super().__init__(audit=refusal.audit, fix=fix)
        self._facts = refusal.facts

    def __missing__(self, name: str) -> Any:
        if name in FACT_TEXTS:
            return FACT_TEXTS[name](self._facts)
        return self._facts[name]


def _as_call(fix: SuggestedCommand) -> str:
    # "why" without quotes: the caller puts a reason in its place.
    arguments = [*map(repr, fix.arguments.values()), "why"]
    return f"{fix.method}({', '.join(arguments)})"
