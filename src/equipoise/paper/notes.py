"""Where the paper's text, theorems or published numbers do not hold or can be read two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.paper.chapter import Chapter, make_chapter, words_of
from equipoise.paper.checks import CHECKS
from equipoise.paper.kept_work import Part, Record
from equipoise.paper.settings import Settings

__all__ = ["Note", "notes", "parts", "run_check", "tell"]

NAME = "notes"


@dataclass(frozen=True)
class Note:
    """One place in the paper: what it says, what is the case, and how to see it.

    Attributes
    ----------
    check
        The function of :mod:`equipoise.paper.checks` that measures it, if it is measured here.
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
    command: str = "equipoise paper --only notes"


def parts(settings: Settings) -> list[Part]:
    """Return one part per check."""
    return [Part(f"{NAME}/{name}", run_check, {"name": name}) for name in CHECKS]


def run_check(name: str) -> list[Record]:
    """Run one check."""
    return [{"check": name, **CHECKS[name]()}]


def notes(records: Sequence[Record]) -> list[Note]:
    """Return every note with what its check measured."""
    found = {r["check"]: r for r in records}
    made = []
    for entry in words_of(NAME)["notes"]:
        note = dict(entry)
        if "check" in note:
            note["measured"] = note["measured"].format(**found[note["check"]])
        made.append(Note(**note))
    return made


def tell(records: Sequence[Record], settings: Settings) -> Chapter:
    """Return the chapter."""
    made = notes(records)
    rows: list[Record] = [
        {
            "topic": note.topic,
            "where": note.where,
            "says": note.says,
            "holds": note.holds,
            "measured": note.measured,
            "command": note.command,
        }
        for note in made
    ]
    return make_chapter(
        NAME,
        values={},
        found=[f"{note.topic}: {note.measured}." for note in made if note.measured is not None],
        records={"places": rows},
    )
