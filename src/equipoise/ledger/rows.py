"""Rows of the ledger's tables as values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

__all__ = ["OPEN", "Head", "PersonRow", "fields_of"]

OPEN = ("RESERVED", "EXECUTED", "OVERDUE")  # states in which money is held


@dataclass(slots=True)
class Head:
    """Where an audit's chain ends and what its balance is."""

    seq: int
    hash: str
    time: str
    revised: int  # the last event that changed an answer which statistics had seen
    cap: int | None
    spent: int
    reserved: int
    overrun: int


@dataclass(slots=True)
class PersonRow:
    """The present state of one person."""

    person: str
    group_name: str
    decision: int
    want: str
    state: str
    why: str
    number: int | None  # place in request order, None if the audit was not consulted
    place: int | None  # place among the group's approved people
    hold: int
    paid: int
    overrun: int
    outcome: int | None
    asked: str
    executed: int
    conflicted: int

    @property
    def open(self) -> bool:
        """Whether money is held for this person."""
        return self.state in OPEN


@cache
def fields_of(cls: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields."""
    return tuple(f.name for f in fields(cls))
