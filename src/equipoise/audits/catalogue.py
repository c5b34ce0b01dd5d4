"""Every audit in one table: its class, its forecast, and the fast way to draw its runs.

The table names things by dotted references that are resolved when they are used, so that layers
above the audits (planning, simulation) can be named here without being imported. Whatever lists
audits reads this table: the public names, simulations, plans, ledgers and the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from equipoise.errors import InvalidInput, UnknownName, require_kind

if TYPE_CHECKING:
    from equipoise.audits.base import Audit

__all__ = ["AUDITS", "Entry", "audit_class", "check_options", "options_of", "resolve"]


@dataclass(frozen=True)
class Entry:
    """An audit of the catalogue.

    Attributes
    ----------
    audit
        Its class; what its constructor takes besides history, question and costs are its options.
    forecast
        A function of history, question, costs and a progress that returns a
        :class:`~equipoise.planning.Forecast`, or None if the audit cannot answer the metric.
    draws
        A function of a simulation's setting that returns all its runs at once, or None where it
        does not cover the setting; left out, every run is made label by label.
    """

    audit: str
    forecast: str | None = None
    draws: str | None = None


AUDITS: dict[str, Entry] = {
    "adaptive": Entry(
        audit="equipoise.audits.adaptive:AdaptiveAudit",
        forecast="equipoise.planning.adaptive_forecast:forecast_adaptive",
    ),
    "baseline": Entry(
        audit="equipoise.audits.baseline:BaselineAudit",
        forecast="equipoise.planning.tau_audit_forecast:forecast_baseline",
        draws="equipoise.simulation.tau_audit_draws:draw",
    ),
    "exp": Entry(
        audit="equipoise.audits.exp:ExpAudit",
        forecast="equipoise.planning.exp_forecast:forecast_exp",
        draws="equipoise.simulation.exp_draws:draw",
    ),
    "rs": Entry(
        audit="equipoise.audits.rs:RSAudit",
        forecast="equipoise.planning.tau_audit_forecast:forecast_rs",
        draws="equipoise.simulation.tau_audit_draws:draw",
    ),
}

_WORDS: dict[type, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
}


def resolve(reference: str) -> Any:
    """Return what a dotted reference ``package.module:name`` stands for."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def audit_class(audit: str | type[Audit]) -> type[Audit]:
    """Return the audit of a name; a class of your own is one as it is.

    Examples
    --------
    >>> audit_class("rs").__name__
    'RSAudit'
    >>> audit_class("rss")
    Traceback (most recent call last):
    equipoise.errors.UnknownName: unknown audit 'rss'. Did you mean 'rs'? Known: adaptive,
    baseline, exp, rs
    """
    from equipoise.audits.base import Audit

    if isinstance(audit, type) and issubclass(audit, Audit):
        return audit
    require_kind("audit", audit, str, "the name of an audit, or an audit's class")
    if audit not in AUDITS:
        raise UnknownName("audit", audit, AUDITS)
    found: type[Audit] = resolve(AUDITS[audit].audit)
    return found


@cache
def options_of(audit: type[Audit]) -> Mapping[str, Any]:
    """Return the options of an audit and their types.

    Examples
    --------
    >>> list(options_of(audit_class("rs")))
    ['tau', 'reuse_labels', 'budget']
    """
    try:
        found = signature(audit, eval_str=True).parameters.values()
    except NameError:  # a type that only a type checker imports
        found = signature(audit).parameters.values()
    return {p.name: p.annotation for p in found if p.kind is Parameter.KEYWORD_ONLY}


def check_options(
    audit: type[Audit], options: Mapping[str, object], *, without: Sequence[str] = ()
) -> None:
    """Raise unless the audit has these options and takes such values.

    Parameters
    ----------
    without
        Options that are given in another way here.

    Examples
    --------
    >>> check_options(audit_class("adaptive"), {"tau": 500})
    Traceback (most recent call last):
    equipoise.errors.UnknownName: unknown option of the audit 'adaptive': 'tau'. Known: budget,
    free_share, assist. These audits have it: baseline, exp, rs
    """
    known = {name: hint for name, hint in options_of(audit).items() if name not in without}
    for name, value in options.items():
        if name not in known:
            having = [kind for kind in AUDITS if name in options_of(audit_class(kind))]
            remedy = f"These audits have it: {', '.join(having)}" if having else ""
            if name in without:
                remedy = f"{name!r} is given by itself here, not as an option"
            kind = f"option of the audit {audit.name!r}:"
            raise UnknownName(kind, name, known, remedy=remedy)
        if (wanted := _misfit(known[name], value)) is not None:
            raise InvalidInput(
                f"option {name!r} of the audit {audit.name!r} must be {wanted}; got {value!r}"
            )


def _misfit(hint: Any, value: object) -> str | None:
    """Return what a type asks for if the value is nothing of the kind."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if value is None and NoneType in kinds:
        return None
    kind = next(k for k in kinds if k is not NoneType)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return None if value in choices else f"one of {', '.join(map(str, choices))}"
    if kind not in _WORDS:
        return None  # a value of the audit's own making, which it checks itself
    allowed, words = _WORDS[kind]
    wrong = not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool)
    return words if wrong else None
