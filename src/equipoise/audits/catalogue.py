"""Every audit in one table: names to classes, which are imported when they are used.

Whatever lists audits reads this table: the public names, simulations, ledgers and the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING

from equipoise.errors import UnknownName, require_kind

if TYPE_CHECKING:
    from equipoise.audits.base import Audit

AUDITS = {
    "adaptive": "equipoise.audits.adaptive:AdaptiveAudit",
    "baseline": "equipoise.audits.baseline:BaselineAudit",
    "exp": "equipoise.audits.exp_audit:ExpAudit",
    "rs": "equipoise.audits.rs_audit:RSAudit",
}


def audit_class(audit: str | type[Audit]) -> type[Audit]:
    """Return the class of an audit by its name; a class is returned as it is.

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
    module, _, name = AUDITS[audit].partition(":")
    named_class: type[Audit] = getattr(import_module(module), name)
    return named_class


def options_of(audit: type[Audit]) -> tuple[str, ...]:
    """Return the options of an audit: what its constructor takes by keyword alone.

    Examples
    --------
    >>> options_of(audit_class("rs"))
    ('tau', 'reuse_labels', 'budget')
    """
    parameters = signature(audit).parameters.values()
    return tuple(p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY)


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
    assist, give_up. These audits have it: baseline, exp, rs
    """
    allowed = [name for name in options_of(audit) if name not in without]
    for name in options:
        if name in allowed:
            continue
        remedy = ""
        audits_with_option = [kind for kind in AUDITS if name in options_of(audit_class(kind))]
        if name in without:
            remedy = f"{name!r} is given by itself here, not as an option"
        elif audits_with_option:
            remedy = f"These audits have it: {', '.join(audits_with_option)}"
        raise UnknownName(f"option of the audit {audit.name!r}:", name, allowed, remedy=remedy)
