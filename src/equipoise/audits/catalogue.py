"""Every audit in one table: its class, and the fast way to draw its runs.

The table names things by dotted references that are resolved when they are used, so that layers
above the audits (simulation) can be named here without being imported. Whatever lists
audits reads this table: the public names, simulations, plans, ledgers and the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.errors import UnknownName, require_kind

if TYPE_CHECKING:
    from equipoise.audits.base import Audit

__all__ = ["AUDITS", "Entry", "audit_class", "check_options", "options_of", "resolve"]


class Entry(NamedTuple):
    """An audit: its class, and a function that draws its runs at once.

    ``draws`` takes a simulation's setting and returns all its runs, or None where it does not cover
    the setting; left out, every run is made label by label.
    """

    audit: str
    draws: str | None = None


AUDITS: dict[str, Entry] = {
    "adaptive": Entry(audit="equipoise.audits.adaptive:AdaptiveAudit"),
    "baseline": Entry(
        audit="equipoise.audits.tau_audits:BaselineAudit",
        draws="equipoise.simulation.tau_audit_draws:draw",
    ),
    "exp": Entry(
        audit="equipoise.audits.exp:ExpAudit",
        draws="equipoise.simulation.exp_draws:draw",
    ),
    "rs": Entry(
        audit="equipoise.audits.tau_audits:RSAudit",
        draws="equipoise.simulation.tau_audit_draws:draw",
    ),
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


def options_of(audit: type[Audit]) -> tuple[str, ...]:
    """Return the options of an audit: what its constructor takes by keyword alone.

    Examples
    --------
    >>> options_of(audit_class("rs"))
    ('tau', 'reuse_labels', 'budget')
    """
    taken = signature(audit).parameters.values()
    return tuple(p.name for p in taken if p.kind is Parameter.KEYWORD_ONLY)


def check_options(
    audit: type[Audit], options: Mapping[str, object], *, without: Sequence[str] = ()
) -> None:
    """Raise unless the audit has these options; their values are checked by its constructor.

    Options named in ``without`` are given in another way here.

    Examples
    --------
    >>> check_options(audit_class("adaptive"), {"tau": 500})
    Traceback (most recent call last):
    equipoise.errors.UnknownName: unknown option of the audit 'adaptive': 'tau'. Known: budget,
    free_share, assist. These audits have it: baseline, exp, rs
    """
    known = [name for name in options_of(audit) if name not in without]
    for name in options:
        if name not in known:
            having = [kind for kind in AUDITS if name in options_of(audit_class(kind))]
            remedy = f"These audits have it: {', '.join(having)}" if having else ""
            if name in without:
                remedy = f"{name!r} is given by itself here, not as an option"
            raise UnknownName(f"option of the audit {audit.name!r}:", name, known, remedy=remedy)
