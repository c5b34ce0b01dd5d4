"""Equipoise: fairness audits of yes/no decisions when only the approved show their outcome.

Everything is imported when it is first used, so ``import equipoise`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__ as __version__
from equipoise.audits.catalogue import AUDITS as _AUDITS

if TYPE_CHECKING:
    from equipoise import bounds as bounds, mixture as mixture, worlds as worlds
    from equipoise.assist import Assist as Assist
    from equipoise.assume import Assume as Assume
    from equipoise.audits.adaptive import AdaptiveAudit as AdaptiveAudit
    from equipoise.audits.base import Audit as Audit
    from equipoise.audits.tau_audits import BaselineAudit as BaselineAudit
    from equipoise.audits.exp import ExpAudit as ExpAudit
    from equipoise.audits.tau_audits import RSAudit as RSAudit
    from equipoise.bounds import (
        LowerBound as LowerBound,
        Price as Price,
        lower_bound as lower_bound,
    )
    from equipoise.cells import Cells as Cells, GroupCells as GroupCells
    from equipoise.errors import (
        BadData as BadData,
        Conflict as Conflict,
        EquipoiseError as EquipoiseError,
        InvalidInput as InvalidInput,
        LedgerError as LedgerError,
        MissingExtra as MissingExtra,
        ProtocolError as ProtocolError,
        UnknownName as UnknownName,
    )
    from equipoise.finding import Finding as Finding, Interval as Interval
    from equipoise.history import History as History, Past as Past
    from equipoise.free_check import Check as Check, check as check
    from equipoise.ledger import (
        Checkpoint as Checkpoint,
        LiveAudit as LiveAudit,
        Reply as Reply,
        Status as Status,
        list_audits as list_audits,
    )
    from equipoise.planning import (
        Affordable as Affordable,
        Forecast as Forecast,
        ScoreSavings as ScoreSavings,
        Plan as Plan,
        Rehearsal as Rehearsal,
        Scenario as Scenario,
        Variation as Variation,
        plan as plan,
        what_if as what_if,
    )
    from equipoise.display import Progress as Progress
    from equipoise.question import (
        Costs as Costs,
        ScoreRecord as ScoreRecord,
        Question as Question,
        Ticket as Ticket,
        Verdict as Verdict,
        Want as Want,
    )
    from equipoise.report import Report as Report, write_report as write_report
    from equipoise.simulation import (
        Simulation as Simulation,
        Summary as Summary,
        run as run,
        simulate as simulate,
    )
    from equipoise.worlds import World as World, data as data

_NAMES = {
    "assist": "Assist",
    "assume": "Assume",
    "audits.base": "Audit",
    "bounds": "LowerBound Price lower_bound",
    "cells": "Cells GroupCells",
    "errors": "BadData Conflict EquipoiseError InvalidInput LedgerError MissingExtra ProtocolError "
    "UnknownName",
    "finding": "Finding Interval",
    "history": "History Past",
    "free_check": "Check check",
    "ledger": "Checkpoint LiveAudit Reply Status list_audits",
    "planning": "Affordable Forecast ScoreSavings Plan Rehearsal Scenario Variation plan what_if",
    "display": "Progress",
    "question": "Costs ScoreRecord Question Ticket Verdict Want",
    "report": "Report write_report",
    "simulation": "Simulation Summary run simulate",
    "worlds": "World",
}
_HOMES = {name: f"equipoise.{home}" for home, names in _NAMES.items() for name in names.split()}
_HOMES |= {name: home for home, _, name in (one.audit.partition(":") for one in _AUDITS.values())}
_MODULES = {name: f"equipoise.{name}" for name in ("bounds", "mixture", "worlds")}
_MODULES["data"] = "equipoise.worlds.data"

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
