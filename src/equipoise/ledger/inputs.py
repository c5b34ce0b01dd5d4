"""What callers may hand in, checked before it meets anybody else's transaction.

Pseudonyms, groups and actors are compared after Unicode NFC and without outer spaces, so that two
spellings of one name are one person. Amounts are whole minor units below 2**53, which every program
that reads JSON can hold.
"""

from __future__ import annotations

import getpass
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np

from equipoise.errors import InvalidInput, require_finite, require_kind

LIMIT = 2**53
LONGEST = 200


def name(what: str, value: object) -> str:
    r"""Return an identifier in the one form in which it is stored.

    Examples
    --------
    >>> name("person", " Zoe\u0308 ") == "Zo\u00eb"
    True
    """
    return _words(what, value, least=1, most=LONGEST, breaks="")


def text(what: str, value: object) -> str:
    """Return a reason: what a person wrote, as long as it can be stored."""
    return _words(what, value, least=0, most=10 * LONGEST, breaks="\n\t")


def _words(what: str, value: object, *, least: int, most: int, breaks: str) -> str:
    if isinstance(value, str):
        found = unicodedata.normalize("NFC", value.strip())
        printable = found.isprintable() or all(c.isprintable() or c in breaks for c in found)
        if least <= len(found) <= most and printable:
            return found
    raise InvalidInput(
        f"{what!r} must be {least} to {most} printable characters; got {_shown(value)}"
    )


def reason(what: str, value: object) -> str:
    """Return why somebody decides something, which must be said."""
    if found := text(what, value):
        return found
    raise InvalidInput(f"{what!r} is needed: say why in a few words")


def binary(what: str, value: object) -> int:
    """Return 0 or 1."""
    if not isinstance(value, int | np.integer | np.bool_) or value not in (0, 1):
        raise InvalidInput(f"{what!r} must be 0 or 1; got {_shown(value)}")
    return int(value)


def whole(what: str, amount: object) -> int:
    """Return an amount of money as whole minor units.

    Examples
    --------
    >>> whole("budget", 5e3)
    5000
    """
    number = isinstance(amount, int | float | np.integer | np.floating)
    if isinstance(amount, bool) or not number or not 0 <= amount < LIMIT or amount % 1:  # type: ignore[operator]
        raise InvalidInput(
            f"{what!r} must be a whole number of minor units (cents), at least 0 and below 2**53, "
            f"so that no rounding can exceed a cap; got {_shown(amount)}"
        )
    return int(amount)  # type: ignore[call-overload, no-any-return]


def count(what: str, value: object) -> int:
    """Return a number of something, at least 1."""
    if type(value) is not int or not 1 <= value < LIMIT:
        raise InvalidInput(f"{what!r} must be a whole number >= 1; got {_shown(value)}")
    return value


def number(what: str, value: object) -> float:
    """Return a finite number."""
    require_finite(what, value)
    return float(value)  # type: ignore[arg-type]


def mapping(what: str, value: object) -> Mapping[str, object]:
    """Return values by group."""
    require_kind(what, value, Mapping, "GROUP: N")
    return value  # type: ignore[return-value]


def group_names(groups: Iterable[str]) -> dict[str, str]:
    """Return stored form -> the past data's own name; refuse two names that would be one."""
    found: dict[str, str] = {}
    for group in groups:
        if (key := name("group", group)) in found:
            raise InvalidInput(
                f"groups {found[key]!r} and {group!r} differ in form only; rename one"
            )
        found[key] = group
    return found


def file_name(audit_name: str, ending: str) -> str:
    """Return the name of a file about an audit; it never leads to another folder.

    Letters, digits, spaces and ``.-_`` of the audit's name stay. A name with anything else, such as
    ``../loans``, gets a few digits of its hash, so that two audits never share a file.

    Examples
    --------
    >>> file_name("loans 2026", ".html"), file_name("../loans", ".html")
    ('loans 2026.html', 'loans-704ba83d.html')
    """
    stem = re.sub(r"[^\w. -]+", "-", audit_name)[:80].strip(".- ")
    if stem != audit_name:
        digits = hashlib.sha256(audit_name.encode()).hexdigest()[:8]
        stem = f"{stem or 'audit'}-{digits}"
    return stem + ending


def system_user() -> str:
    """Return who runs this program, as far as the system knows."""
    try:
        return name("actor", getpass.getuser())
    except (ImportError, KeyError, OSError, InvalidInput):
        return "unknown"


def _shown(value: object) -> str:
    words = ascii(value)
    return words if len(words) <= 80 else words[:77] + "…"
