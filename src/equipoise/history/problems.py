"""What is wrong with a table, and how it is read with all remedies in place.

Rules raise a :class:`Problem` at the first thing that they cannot read. Where a remedy is clear,
the problem has the arguments that bring it, and :func:`read_with_fixes` tries again with them. So
one message has all problems of a table, and the call at its end was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from equipoise._json import to_plain_data
from equipoise.errors import BadData
from equipoise.history.options import ReadOptions, spelled

MAX_PROBLEMS = 30
T = TypeVar("T")


class Problem(BadData):
    """Something about a table that has to be said; ``fix`` are the arguments that say it.

    ``text`` leaves them out.
    """

    def __init__(self, text: str, **fix: Any) -> None:
        self.text, self.fix = text, fix
        arguments, flags = spelled(fix)
        text += f": {arguments}" if arguments else ""
        super().__init__(f"{text} ({flags})" if flags else text)


class UnreadTable(BadData):
    """A table that cannot be read as was said.

    ``problems`` are all that is to be said of it, without the arguments that say it; ``proposal``
    are the options that would read it, as plain data; where only a person can choose there are
    ``{"choices": [...]}``.
    """

    def __init__(self, text: str, problems: Sequence[str], proposal: Any = None) -> None:
        super().__init__(text)
        self.problems, self.proposal = problems, proposal or {}


def read_with_fixes(options: ReadOptions, source: object, step: Callable[[ReadOptions], T]) -> T:
    """Take a step; if it meets problems, follow their remedies and report all in one message.

    The call at the end of the message was made, and it reads the table.
    """
    problems: list[Problem] = []
    asked = options
    while True:
        try:
            done = step(options)
        except Problem as problem:
            problems.append(problem)
            better = options.corrected(problem.fix)
            if better != options and len(problems) < MAX_PROBLEMS:
                options = better
                continue
            if len(problems) == 1:
                raise
            ending = "The last of these has no remedy that could be tried. With the others said:"
        else:
            if options == asked:
                return done
            ending = "This was tried and reads the table; check that it says what is true:"
        call = options.call(source)
        if "<" in call:
            ending = ending.replace("was tried", "was tried with the first of each <choice>")
        text = str(problems[0])
        if len(problems) > 1:
            many = [f"{at}. {problem}" for at, problem in enumerate(problems, 1)]
            text = "\n".join([f"{len(many)} problems:", *many])
        message = f"{text}\n{ending}\n{call}"
        raise UnreadTable(
            message, [own.text for own in problems], to_plain_data(options.given)
        ) from None
