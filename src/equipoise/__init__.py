"""Equipoise: fairness audits of yes/no decisions when only the approved show their outcome.

Everything is imported when it is first used, so ``import equipoise`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__ as __version__
from equipoise.audits.catalogue import AUDITS as _AUDITS

if TYPE_CHECKING:
    from equipoise.audits.adaptive import AdaptiveAudit as AdaptiveAudit
    from equipoise.audits.base import Audit as Audit
    from equipoise.audits.baseline import BaselineAudit as BaselineAudit
    from equipoise.audits.exp import ExpAudit as ExpAudit
    from equipoise.audits.rs import RSAudit as RSAudit
    from equipoise.progress import Progress as Progress
    from equipoise.worlds import World as World

_NAMES = {
    "audits.base": "Audit",
    "bounds": "LowerBound Price lower_bound",
    "cells": "Cells GroupCells",
    "errors": "BadData Conflict EquipoiseError InvalidInput LedgerError MissingExtra ProtocolError "
    "UnknownName",
    "finding": "Finding Interval",
    "history": "History Past",
    "identify": "Check check",
    "ledger": "Checkpoint LiveAudit Reply Status list_audits",
    "planning": "Forecast Outlook Plan Variation plan what_if",
    "progress": "Progress",
    "question": "Costs Question Ticket Verdict Want",
    "report": "Report write_report",
    "simulation": "Simulation Summary run simulate",
    "worlds": "World",
}
_HOMES = {name: f"equipoise.{home}" for home, names in _NAMES.items() for name in names.split()}
_HOMES |= {name: home for home, _, name in (one.audit.partition(":") for one in _AUDITS.values())}
_MODULES = ("bounds", "data", "mixture", "worlds")

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"equipoise.{name}")
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
