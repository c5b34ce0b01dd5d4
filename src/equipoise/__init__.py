"""Equipoise: fairness audits of yes/no decisions when only the approved show their outcome.

The names that people type are here, and what audits and checks return. Everything is imported when
it is first used, so that ``import equipoise`` takes a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__ as __version__
from equipoise.audits.catalogue import AUDITS as _AUDITS

if TYPE_CHECKING:
    from equipoise import bounds as bounds, errors as errors, mixture as mixture, worlds as worlds
    from equipoise.audits.adaptive import AdaptiveAudit as AdaptiveAudit
    from equipoise.audits.baseline import BaselineAudit as BaselineAudit
    from equipoise.audits.exp_audit import ExpAudit as ExpAudit
    from equipoise.audits.rs_audit import RSAudit as RSAudit
    from equipoise.audits.scores import Assist as Assist
    from equipoise.bounds import lower_bound as lower_bound
    from equipoise.comparison import Compare as Compare
    from equipoise.errors import EquipoiseError as EquipoiseError
    from equipoise.finding import Finding as Finding
    from equipoise.free_check import Assume as Assume, check as check
    from equipoise.history import History as History
    from equipoise.ledger import LiveAudit as LiveAudit, list_audits as list_audits
    from equipoise.planning import plan as plan
    from equipoise.protocol import Want as Want
    from equipoise.question import Costs as Costs, Question as Question, Verdict as Verdict
    from equipoise.report import write_report as write_report
    from equipoise.simulation import run as run, simulate as simulate, sweep as sweep
    from equipoise.worlds import data as data

_NAMES_BY_MODULE = {
    "audits.scores": ("Assist",),
    "bounds": ("lower_bound",),
    "comparison": ("Compare",),
    "errors": ("EquipoiseError",),
    "finding": ("Finding",),
    "free_check": ("Assume", "check"),
    "history": ("History",),
    "ledger": ("LiveAudit", "list_audits"),
    "planning": ("plan",),
    "protocol": ("Want",),
    "question": ("Costs", "Question", "Verdict"),
    "report": ("write_report",),
    "simulation": ("run", "simulate", "sweep"),
}
_MODULES = {  # those that are themselves names of the package
    "bounds": "equipoise.bounds",
    "data": "equipoise.worlds.data",
    "errors": "equipoise.errors",
    "mixture": "equipoise.mixture",
    "worlds": "equipoise.worlds",
}


def _find_homes() -> dict[str, str]:
    """Return the module of every class and function that the package offers."""
    homes = {}
    for module, names in _NAMES_BY_MODULE.items():
        for name in names:
            homes[name] = f"equipoise.{module}"
    for audit in _AUDITS.values():  # "module:class"
        module, _, name = audit.partition(":")
        homes[name] = module
    return homes


_HOMES = _find_homes()

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
