"""Messages as Python shows them: arguments of a call, and the call that reads a table."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.messages.problem import Message, OpenChoice, ReadingProposal, list_choices_once
from equipoise.messages.texts import Placeholder, fill_in

TRIED = "This was tried and reads the table; check that it says what is true:"
TRIED_FIRST_CHOICES = (
    "This was tried with the first of each <choice> and reads the table; check that it says what "
    "is true:"
)
NO_FIX_LEFT = "The last of these has no remedy that could be tried. With the others said:"


class PythonSpelling:
    """Writes arguments as keywords of a call: ``unknown='bounds'``."""

    separator = ", "

    def argument(self, argument: str) -> str:
        """Return the name of an argument in quotes."""
        return repr(argument)

    def setting(self, argument: str, value: Any) -> str:
        """Return an argument with its value, as in a call."""
        # Not an argument of its own: the question's comparison takes it.
        if argument == "leave_out":
            names = value if isinstance(value, list | tuple) else [value]
            return f"Compare(leave_out=({', '.join(map(spell_value, names))},))"
        if argument == "confirm":
            return "confirm=True"
        return f"{argument}={spell_value(value)}"


PYTHON = PythonSpelling()


def describe(message: Message) -> str:
    """Return the text of a message for Python."""
    return fill_in(message, PYTHON)


def spell_value(value: Any) -> str:
    """Return a value as it is typed in Python; an open choice as ``<'x' | 'y'>``."""
    if isinstance(value, Placeholder):
        return value.word
    if isinstance(value, OpenChoice):
        return f"<{' | '.join(map(repr, value.choices))}>"
    if isinstance(value, Mapping):
        entries = (f"{name!r}: {spell_value(part)}" for name, part in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(spell_value, value)) + "]"
    # A date is written as text, so that the call needs no import.
    return repr(str(value) if isinstance(value, datetime.date) else value)


def call_of(proposal: ReadingProposal) -> str:
    """Return the call of ``History.read`` that a proposal stands for."""
    source = proposal.source_type
    if proposal.places:
        is_single = len(proposal.places) == 1
        source = repr(proposal.places[0] if is_single else list(proposal.places))
    arguments = list_choices_once(proposal.arguments, set())
    settings = [PYTHON.setting(name, value) for name, value in arguments.items()]
    return f"History.read({', '.join([source, *settings])})"


def describe_unread_table(problems: Sequence[Message], proposal: ReadingProposal | None) -> str:
    """Return all problems of a table and the call that reads it, for Python."""
    text = numbered([describe(problem) for problem in problems])
    if proposal is None:
        return text
    return f"{text}\n{ending_of(proposal)}\n  {call_of(proposal)}"


def numbered(texts: Sequence[str]) -> str:
    """Return one text as it is, and several with their numbers."""
    if len(texts) == 1:
        return texts[0]
    lines = [f"{number}. {text}" for number, text in enumerate(texts, start=1)]
    return "\n".join([f"{len(texts)} problems:", *lines])


def ending_of(proposal: ReadingProposal) -> str:
    """Return the line above a finished call or command."""
    if not proposal.reads_table:
        return NO_FIX_LEFT
    return TRIED_FIRST_CHOICES if proposal.has_open_choices else TRIED
