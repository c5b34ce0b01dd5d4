"""One simulation's setting, and the catalogue of audits that can be named in it.

An audit kind may bring a fast way to draw its runs: a function of a :class:`Setting` that returns
:class:`~equipoise.simulation.result.Draws`, or None where it does not cover the setting. Everything
else is run audit by audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import signature

import numpy as np

from equipoise.audits.base import Audit
from equipoise.errors import InvalidInput, UnknownName
from equipoise.question import Costs, Question
from equipoise.simulation.result import Draws
from equipoise.worlds import World

__all__ = ["AUDITS", "FAST", "Delay", "FastDraw", "Setting", "audit_class", "fast_draw"]

Delay = Callable[[int, np.random.Generator], int | None]
"""After how many further arrivals an outcome is told; None: the person vanishes."""

AUDITS: Mapping[str, str] = {
    "adaptive": "equipoise.audits.adaptive:AdaptiveAudit",
    "baseline": "equipoise.audits.baseline:BaselineAudit",
    "exp": "equipoise.audits.exp:ExpAudit",
    "rs": "equipoise.audits.rs:RSAudit",
}

FAST: Mapping[str, str] = {
    "baseline": "equipoise.simulation.stopping:draw",
    "exp": "equipoise.simulation.exp:draw",
    "rs": "equipoise.simulation.stopping:draw",
}


_GIVEN = ("history", "question", "costs")


@dataclass(frozen=True)
class Setting:
    """Everything that defines a simulation; see :func:`equipoise.simulation.simulate`."""

    audit: type[Audit]
    world: World
    question: Question
    costs: Costs
    repeats: int = 200
    seed: int = 0
    history_size: int | None = None
    delay: Delay | None = None
    people: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("repeats", "history_size", "people"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInput(f"{name!r} must be at least 1; got {value!r}")
        if self.options:
            known = [p for p in _parameters(self.audit) if p not in _GIVEN]
            for name in self.options:
                if name not in known:
                    raise UnknownName(f"option of the audit {self.audit.name!r}", name, known)


FastDraw = Callable[[Setting], Draws | None]


@cache
def _parameters(audit: type[Audit]) -> tuple[str, ...]:
    return tuple(signature(audit).parameters)


def audit_class(audit: str | type[Audit]) -> type[Audit]:
    """Return the audit class of a name, or the class itself."""
    if isinstance(audit, type) and issubclass(audit, Audit):
        return audit
    if audit not in AUDITS:
        raise UnknownName("audit", audit, AUDITS)
    found: type[Audit] = _load(AUDITS[audit])
    return found


def fast_draw(audit: type[Audit]) -> FastDraw | None:
    """Return the fast way to draw runs of an audit, if its class is one of the catalogue."""
    name = audit.name
    if name not in FAST or audit is not audit_class(name):
        return None
    found: FastDraw = _load(FAST[name])
    return found


def _load(path: str):  # type: ignore[no-untyped-def]  # whatever the catalogue names
    module, name = path.split(":")
    return getattr(import_module(module), name)
