"""Equipoise: fairness audits of yes/no decisions when only the approved show their outcome.

Everything is imported when it is first used, so ``import equipoise`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise import data, mixture, worlds
    from equipoise.cells import Cells, GroupCells
    from equipoise.errors import EquipoiseError
    from equipoise.finding import Finding, Interval
    from equipoise.history import History
    from equipoise.identify import check
    from equipoise.question import Costs, Question, Ticket, Verdict, Want

__version__ = "0.1.0"

_HOMES = {
    "Cells": "equipoise.cells",
    "Costs": "equipoise.question",
    "EquipoiseError": "equipoise.errors",
    "Finding": "equipoise.finding",
    "GroupCells": "equipoise.cells",
    "History": "equipoise.history",
    "Interval": "equipoise.finding",
    "Question": "equipoise.question",
    "Ticket": "equipoise.question",
    "Verdict": "equipoise.question",
    "Want": "equipoise.question",
    "check": "equipoise.identify",
}
_MODULES = ("data", "mixture", "worlds")

__all__ = [
    "Cells",
    "Costs",
    "EquipoiseError",
    "Finding",
    "GroupCells",
    "History",
    "Interval",
    "Question",
    "Ticket",
    "Verdict",
    "Want",
    "check",
    "data",
    "mixture",
    "worlds",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"equipoise.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
