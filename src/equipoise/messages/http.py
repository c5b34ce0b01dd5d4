"""Messages as programs that talk HTTP see them: the members of a JSON body."""

from __future__ import annotations

import json
from typing import Any

from equipoise.messages import refusals
from equipoise.messages.problem import Message
from equipoise.messages.refusals import Refusal
from equipoise.messages.texts import Placeholder, fill_in


class JsonSpelling:
    """Writes arguments as members of a JSON object: ``"confirm": true``."""

    separator = ", "

    def argument(self, argument: str) -> str:
        """Return the name of a member in quotes."""
        return json.dumps(argument)

    def setting(self, argument: str, value: Any) -> str:
        """Return a member with its value."""
        if isinstance(value, Placeholder):
            return f"{json.dumps(argument)}: {value.word.lower()}"
        if argument == "leave_out":  # not a member of its own: the question's comparison takes it
            groups = value if isinstance(value, list | tuple) else [value]
            return f'"question": {{"compare": {{"leave_out": {_to_json(groups)}}}}}'
        return f"{json.dumps(argument)}: {_to_json(value)}"


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


JSON = JsonSpelling()


def describe_refusal(refusal: Refusal) -> str:
    """Return why an audit refuses a command, with the command to send that helps."""
    fix = refusal.fix
    if fix is None:
        return refusals.fill_in(refusal, "")
    command = {"command": fix.method, **fix.arguments, "why": Placeholder("REASON")}
    members = ", ".join(JSON.setting(name, value) for name, value in command.items())
    return refusals.fill_in(refusal, f"{{{members}}}")


def describe(message: Message) -> str:
    """Return the text of a message for programs that talk HTTP."""
    return fill_in(message, JSON)
