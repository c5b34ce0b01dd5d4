"""Where the paper's text, theorems or published numbers do not hold or can be read two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paper.chapter import Chapter, make_chapter, words_of
from paper.checks import CHECKS, Values
from paper.kept_work import Part, Result, of_kind
from paper.settings import Settings

__all__ = ["Measured", "Note", "notes", "parts", "run_check", "tell"]

NAME = "notes"


@dataclass(frozen=True)
class Measured(Result):
    """What a check measured."""

    check: str
    found: Values


@dataclass(frozen=True)
class Note(Result):
    """One place in the paper: what it says, what is the case, and how to see it.

    Attributes
    ----------
    check
        The function of :mod:`paper.checks` that measures it, if it is measured here.
    measured
        What was measured, in words; before that, their frame.
    command
        Another way to see it, or the only one.
    """

    topic: str
    where: str
    says: str
    holds: str
    check: str | None = None
    measured: str | None = None
    command: str = "python -m paper --only notes"


def parts(settings: Settings) -> list[Part]:
    """Return one part per check."""
    return [Part(f"{NAME}/{name}", run_check, {"name": name}, (Measured,)) for name in CHECKS]


def run_check(name: str) -> list[Measured]:
    """Run one check."""
    return [Measured(name, CHECKS[name]())]


def notes(results: Sequence[Result]) -> list[Note]:
    """Return every note with what its check measured."""
    found = {measured.check: measured.found for measured in of_kind(results, Measured)}
    made = []
    for entry in words_of(NAME)["notes"]:
        note = dict(entry)
        if "check" in note:
            note["measured"] = note["measured"].format(**found[note["check"]])
        made.append(Note(**note))
    return made


def tell(results: Sequence[Result], settings: Settings) -> Chapter:
    """Return the chapter."""
    made = notes(results)
    return make_chapter(
        NAME,
        values={},
        found=[f"{note.topic}: {note.measured}." for note in made if note.measured is not None],
        tables={"places": made},
    )
