"""Messages as the shell shows them: options of the command line, and a finished command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.messages import refusals
from equipoise.messages.audit_words import OUTCOME_WORDS
from equipoise.messages.problem import Message, OpenChoice, ReadingProposal, list_choices_once
from equipoise.messages.python import ending_of, numbered
from equipoise.messages.refusals import Refusal
from equipoise.messages.texts import Placeholder, fill_in

READING_OPTIONS: Mapping[str, str | None] = {
    "group": "--group",
    "within": "--within",
    "decision": "--decision",
    "outcome": "--outcome",
    "positive": "--positive",
    "negative": "--negative",
    "missing_values": "--missing-value",
    "missing_group": "--missing-group",
    "merge_groups": "--merge-groups",
    "max_groups": "--max-groups",
    "denied_outcomes": "--denied-outcomes",
    "undecided": "--undecided",
    "unknown": "--unknown",
    "cohort": "--cohort",
    "random_accepts": "--random-accepts",
    "random_accepts_against": "--random-accepts-against",
    "decider": "--decider",
    "min_cases": "--min-cases",
    "id": "--id",
    "repeated": "--repeated",
    "date": "--date",
    "since": "--since",
    "until": "--until",
    "seed": None,  # is for Python alone
    "table": "--table",
    "query": "--query",
    "encoding": "--encoding",
    "outcomes": "--outcomes",
    "on": "--on",
    "latest": "--latest",
    "preset": "--preset",
}
"""Argument of ``History.read`` -> its option, None if there is none."""
OPTIONS: Mapping[str, str | None] = {
    **READING_OPTIONS,
    "leave_out": "--leave-out",
    "confirm": "--yes",
}
"""The same, with arguments of a comparison and of a new audit that messages mention."""

MORE_TO_RUN: Mapping[str, str] = {"no-ledger": "equipoise audit new"}
"""Code of a refusal -> the command that helps, where it is not one of an audit."""


class ShellSpelling:
    """Writes arguments as options of the command line: ``--unknown bounds``."""

    separator = " "

    def argument(self, argument: str) -> str | None:
        """Return the option of an argument."""
        return OPTIONS[argument]

    def setting(self, argument: str, value: Any) -> str | None:
        """Return the option with its value, once for each of several values."""
        option = OPTIONS[argument]  # an argument that is missing there is a mistake of ours
        if option is None or argument == "confirm":
            return option
        # A plain value is treated as that of a single role without a name.
        by_role = value if isinstance(value, Mapping) else {"": value}
        typed_options = []
        for role, role_values in by_role.items():
            for part in role_values if isinstance(role_values, list | tuple) else [role_values]:
                text = spell_value(part)
                typed_options.append(f"{option} {_quote(f'{role}={text}' if role else text)}")
        return " ".join(typed_options)


SHELL = ShellSpelling()


def describe(message: Message) -> str:
    """Return the text of a message for the shell."""
    return fill_in(message, SHELL)


def spell_value(value: Any) -> str:
    """Return a value as it is typed in the shell, without quotes; an open choice as ``<x | y>``."""
    if isinstance(value, Placeholder):
        return value.word
    if isinstance(value, OpenChoice):
        return f"<{' | '.join(value.choices)}>"
    return str(value)


def finished_command(
    proposal: ReadingProposal, command: Sequence[str] = ("check",), more_options: Sequence[str] = ()
) -> str:
    """Return the command that reads a table as a proposal says.

    ``command`` is the command with what stands before the table, and ``more_options`` are options
    that have nothing to do with reading. Both are words as the shell takes them, unquoted.
    """
    arguments = list_choices_once(proposal.arguments, set())
    options = [SHELL.setting(name, value) for name, value in arguments.items()]
    # The options are quoted already. shlex.join would quote them once more, as one word each.
    command_words = [
        "equipoise",
        *map(_quote, (*command, *proposal.places)),
        *(option for option in options if option is not None),
        *map(_quote, more_options),
    ]
    return " ".join(command_words)


def describe_unread_table(
    problems: Sequence[Message],
    proposal: ReadingProposal | None,
    command: Sequence[str] = ("check",),
    more_options: Sequence[str] = (),
    remark: str = "",
) -> str:
    """Return all problems of a table and the command that reads it, for the shell.

    ``remark`` is a line that stands between the two.
    """
    text = numbered([describe(problem) for problem in problems])
    if remark:
        text = f"{text}\n{remark}"
    # A table in memory has no place that a command could name.
    if proposal is None or not proposal.places:
        return text
    finished = finished_command(proposal, command, more_options)
    return f"{text}\n{ending_of(proposal)}\n  {finished}"


def describe_error(error: Exception) -> str:
    """Return the text of an error for the shell: of its refusal or problems if it carries any."""
    refusal: Refusal | None = getattr(error, "refusal", None)
    if refusal is not None:
        return describe_refusal(refusal)
    problems: Sequence[Message] = getattr(error, "problems", ())
    if not problems:
        return str(error)
    return describe_unread_table(problems, getattr(error, "proposal", None))


def describe_refusal(refusal: Refusal) -> str:
    """Return why an audit refuses a command, with the command of the shell that helps."""
    fix = refusal.fix
    if fix is None:
        text = refusals.fill_in(refusal, "")
        more = MORE_TO_RUN.get(refusal.code)
        return text if more is None else f"{text}: {more}"
    arguments = [_spell_argument(name, value) for name, value in fix.arguments.items()]
    command = shlex.join(["equipoise", "audit", fix.method, refusal.audit, *arguments])
    # Only the person knows the reason, so it stays a placeholder.
    return refusals.fill_in(refusal, f"{command} --why REASON")


def _spell_argument(name: str, value: Any) -> str:
    return OUTCOME_WORDS[value] if name == "outcome" else str(value)


def _quote(word: str) -> str:
    return shlex.quote(word)
