"""Checks of messages by their codes, fields and fixes, whatever their words are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.messages import Message, Note, Problem


@contextmanager
def refused(code: str, /, **fields: Any) -> Iterator[pytest.ExceptionInfo[InvalidInput]]:
    """Expect an error that carries a problem with this code and these fields."""
    with pytest.raises(InvalidInput) as caught:
        yield caught
    require_fields(problem_of(caught.value, code), fields)


def problems_of(error: BaseException) -> tuple[Problem, ...]:
    """Return the problems that an error carries."""
    assert hasattr(error, "problems"), f"no problems: {error}"
    problems: tuple[Problem, ...] = error.problems
    return problems


def problem_of(error: BaseException, code: str) -> Problem:
    """Return the first problem of this code that an error carries."""
    problems = problems_of(error)
    codes = [problem.code for problem in problems]
    assert code in codes, f"{codes}: {error}"
    return problems[codes.index(code)]


def note_of(history: History, code: str) -> Note:
    """Return the first note of this code on a history."""
    codes = codes_of(history.notes)
    assert code in codes, codes
    return history.notes[codes.index(code)]


def codes_of(messages: Iterable[Message]) -> list[str]:
    """Return the codes of messages."""
    return [message.code for message in messages]


def require_fields(message: Message, fields: dict[str, Any]) -> None:
    """Hold the fields of a message against those expected; it may have more."""
    found = {name: message.fields[name] for name in fields}
    assert found == fields


def fixes_of(message: Message) -> dict[str, Any]:
    """Return the arguments that solve a problem."""
    return {fix.argument: fix.argument_value for fix in message.fixes}
