"""Past decisions whose counts travel with the forms of a page, because the server keeps nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from equipoise.cells import Decider
from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.ledger import inputs
from equipoise.messages import Note
from equipoise.messages.form import describe
from equipoise.service.forms import Form
from equipoise.service.wire import read_cells, read_coding

MAX_NOTES = 30  # of a table that are shown
MAX_LINES = 30  # of a message
MAX_LINE_CHARACTERS = 1000  # of a message, which may hold what a browser sent
MAX_SOURCE_CHARACTERS = 200
MAX_STEPS = 20  # from the rows that were read to those that count
DECIDERS_ADAPTER = TypeAdapter(tuple[tuple[Decider, ...], ...])
WATERFALL_ADAPTER = TypeAdapter(dict[str, int])


@dataclass(frozen=True)
class CountedPast:
    """Past decisions, where they come from, and from how many rows they were counted.

    ``waterfall`` leads from the rows that were read to those that count.
    """

    history: History
    source: str
    waterfall: Mapping[str, int]

    @classmethod
    def from_reader(cls, counts: Mapping[str, Any], source: str) -> CountedPast:
        """Return what the program that reads tables counted."""
        notes = [describe(Note.from_dict(note)) for note in counts["notes"]]
        deciders = json.dumps(counts["deciders"])
        history = _history(counts["cells"], notes, counts["coding"], deciders)
        return cls(history, source[:MAX_SOURCE_CHARACTERS], counts["waterfall"])

    @classmethod
    def from_form(cls, form: Form) -> CountedPast:
        """Return the past decisions whose counts a page sent back; it may have sent anything."""
        try:
            history = _history(
                json.loads(form.text("cells")),
                form.text("notes").splitlines(),
                form.text("coding"),
                form.text("decider_counts"),
            )
            steps = WATERFALL_ADAPTER.validate_json(form.text("waterfall") or "{}", strict=True)
        except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            raise InvalidInput(
                "choose a table of past decisions, of 2 to 200 groups, first"
            ) from None
        waterfall = dict(list(steps.items())[:MAX_STEPS])
        return cls(history, form.text("source")[:MAX_SOURCE_CHARACTERS], waterfall)

    def to_fields(self) -> dict[str, str]:
        """Return the hidden fields by which it travels with a form."""
        history = self.history
        fields = {
            "cells": json.dumps(history.cells.to_dict()),
            "coding": history.coding.to_json() if history.coding else "",
            "source": self.source,
            "notes": "\n".join(self.notes),
            "waterfall": json.dumps(dict(self.waterfall)) if self.waterfall else "",
        }
        if history.deciders:
            fields["decider_counts"] = json.dumps(history.deciders)
        return fields

    @property
    def notes(self) -> list[str]:
        """What is remarkable about the data, in sentences."""
        return [str(note) for note in self.history.notes]

    @property
    def has_strata(self) -> bool:
        """Whether groups are compared within strata."""
        coding = self.history.coding
        return coding is not None and coding.grouping.strata > 0


def cut_message(message: str) -> str:
    """Return the beginning of a message; it may hold what a browser sent."""
    lines = message.splitlines()[:MAX_LINES]
    return "\n".join(line[:MAX_LINE_CHARACTERS] for line in lines)


def _history(
    cells: Any, notes: Sequence[str], coding_json: str | None, deciders_json: str
) -> History:
    """Return past decisions from their counts, notes, coding and deciders ("" for none)."""
    shown_notes = tuple(Note.plain(cut_message(note)) for note in notes[:MAX_NOTES])
    history = replace(History.from_cells(read_cells(cells)), notes=shown_notes)
    inputs.group_names(history.cells)  # refuses names that no page can show and no audit would take
    if deciders_json:
        deciders = DECIDERS_ADAPTER.validate_json(deciders_json)
        if deciders and len(deciders) != len(history.cells):
            raise InvalidInput("'decider_counts' must have the deciders of every group")
        history = replace(history, deciders=deciders)
    if not coding_json:
        return history
    # The coding comes back from a browser, so it is checked like anything that is sent.
    coding = read_coding(json.loads(coding_json))
    return replace(history, coding=coding)
