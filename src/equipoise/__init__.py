"""Equipoise: fairness audits of yes/no decisions when only the approved show their outcome.

Everything is imported when it is first used, so ``import equipoise`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__ as __version__

if TYPE_CHECKING:
    from equipoise import bounds, data, mixture, worlds
    from equipoise.audits.adaptive import AdaptiveAudit
    from equipoise.audits.baseline import BaselineAudit
    from equipoise.audits.exp import ExpAudit
    from equipoise.audits.rs import RSAudit
    from equipoise.bounds import LowerBound, lower_bound
    from equipoise.cells import Cells, GroupCells
    from equipoise.errors import EquipoiseError
    from equipoise.finding import Finding, Interval
    from equipoise.history import History
    from equipoise.identify import check
    from equipoise.ledger import LiveAudit
    from equipoise.planning import Plan, plan
    from equipoise.question import Costs, Question, Ticket, Verdict, Want
    from equipoise.report import Report
    from equipoise.simulation import Simulation, simulate

_HOMES = {
    "AdaptiveAudit": "equipoise.audits.adaptive",
    "BaselineAudit": "equipoise.audits.baseline",
    "Cells": "equipoise.cells",
    "Costs": "equipoise.question",
    "EquipoiseError": "equipoise.errors",
    "ExpAudit": "equipoise.audits.exp",
    "Finding": "equipoise.finding",
    "GroupCells": "equipoise.cells",
    "History": "equipoise.history",
    "Interval": "equipoise.finding",
    "LiveAudit": "equipoise.ledger",
    "LowerBound": "equipoise.bounds",
    "Plan": "equipoise.planning",
    "Question": "equipoise.question",
    "RSAudit": "equipoise.audits.rs",
    "Report": "equipoise.report",
    "Simulation": "equipoise.simulation",
    "Ticket": "equipoise.question",
    "Verdict": "equipoise.question",
    "Want": "equipoise.question",
    "check": "equipoise.identify",
    "lower_bound": "equipoise.bounds",
    "plan": "equipoise.planning",
    "simulate": "equipoise.simulation",
}
_MODULES = ("bounds", "data", "mixture", "worlds")

__all__ = [
    "AdaptiveAudit",
    "BaselineAudit",
    "Cells",
    "Costs",
    "EquipoiseError",
    "ExpAudit",
    "Finding",
    "GroupCells",
    "History",
    "Interval",
    "LiveAudit",
    "LowerBound",
    "Plan",
    "Question",
    "RSAudit",
    "Report",
    "Simulation",
    "Ticket",
    "Verdict",
    "Want",
    "bounds",
    "check",
    "data",
    "lower_bound",
    "mixture",
    "plan",
    "simulate",
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
