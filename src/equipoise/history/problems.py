"""Errors that carry what is wrong with a table, and reading with all fixes in place.

A rule that cannot read a table raises :class:`UnreadTable` with one problem. If the problem has
fixes, :func:`read_with_fixes` tries again with them. So one error has all problems of a table, and
the call that it proposes was tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from equipoise.database_url import display_url
from equipoise.errors import BadData, InvalidInput
from equipoise.messages import Problem, ReadingProposal
from equipoise.messages.python import describe_unread_table
from equipoise.messages.texts import Placeholder

if TYPE_CHECKING:
    from equipoise.history.options import ReadOptions

MAX_PROBLEMS = 30
T = TypeVar("T")


class InvalidReading(InvalidInput):
    """An argument of :meth:`equipoise.History.read` that is not what it must be.

    Attributes
    ----------
    problems
        What is wrong with it, and what else is wrong with the table once that is mended, as data.
        ``str(error)`` is the text for Python.
    proposal
        The arguments with all fixes in place. None if no fix could be tried.
    """

    def __init__(self, *problems: Problem, proposal: ReadingProposal | None = None) -> None:
        self.problems = problems
        self.proposal = proposal
        super().__init__(describe_unread_table(problems, proposal))


class UnreadTable(BadData):
    """A table that cannot be read as was said.

    Attributes
    ----------
    problems
        All that is wrong, as data. ``str(error)`` is the text for Python.
    proposal
        The arguments with all fixes in place. None if no fix could be tried.
    """

    def __init__(self, *problems: Problem, proposal: ReadingProposal | None = None) -> None:
        self.problems = problems
        self.proposal = proposal
        super().__init__(describe_unread_table(problems, proposal))


def read_with_fixes(options: ReadOptions, source: object, step: Callable[[ReadOptions], T]) -> T:
    """Take a step; if it meets problems, follow their fixes and report all problems at once.

    Parameters
    ----------
    options
        What the caller said.
    source
        Where the table is, for the call that the error proposes.
    step
        Reads the table with given options, or raises :class:`UnreadTable` with one problem.

    Raises
    ------
    UnreadTable
        If there is a problem, whether or not fixes solve it: a person has to confirm them.
    """
    problems: list[Problem] = []
    current = options
    while True:
        try:
            table = step(current)
        except UnreadTable as error:
            problem = error.problems[0]
            problems.append(problem)
            fixed = current.with_fixes(problem.fixes)
            # Fixes that change nothing would lead to the same problem for ever.
            if fixed != current and len(problems) < MAX_PROBLEMS:
                current = fixed
                continue
            if len(problems) == 1:
                raise
            # No fix helps against the last problem, so the proposal solves those before it.
            raise UnreadTable(*problems, proposal=propose_reading(current, source)) from None
        if not problems:
            return table
        # The table can be read by the fixes, but they are guesses until a person confirms them.
        raise UnreadTable(*problems, proposal=propose_reading(current, source, reads_table=True))


def propose_reading(
    options: ReadOptions, source: object, *, reads_table: bool = False
) -> ReadingProposal:
    """Return the call that reads a source with these options, for an error to propose."""
    from equipoise.history.options import places_of  # which imports this module

    arguments = options.given_arguments
    # A frame cannot be written into a call; a name for it can.
    if "outcomes" in arguments and not places_of(options.outcomes):
        arguments["outcomes"] = Placeholder(type(options.outcomes).__name__.lower())
    return ReadingProposal(
        arguments=arguments,
        places=tuple(map(display_url, places_of(source))),
        source_type=type(source).__name__.lower(),
        reads_table=reads_table,
    )
