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

LIMIT = 2**53  # below it every whole number is exact as a float
LONGEST_NAME = 200  # characters
LONGEST_TEXT = 2000


def name(label: str, value: object) -> str:
    r"""Return an identifier in the one form in which it is stored.

    ``label`` is what messages call it; so in all functions here.

    Examples
    --------
    >>> name("person", " Zoe\u0308 ") == "Zo\u00eb"
    True
    """
    return _normal_text(label, value, shortest=1, longest=LONGEST_NAME, line_breaks="")


def text(label: str, value: object) -> str:
    """Return what a person wrote, a reason for example, if it can be stored; it may be empty."""
    return _normal_text(label, value, shortest=0, longest=LONGEST_TEXT, line_breaks="\n\t")


def _normal_text(
    label: str, value: object, *, shortest: int, longest: int, line_breaks: str
) -> str:
    if isinstance(value, str):
        normal = unicodedata.normalize("NFC", value.strip())
        is_printable = normal.isprintable() or all(
            character.isprintable() or character in line_breaks for character in normal
        )
        if shortest <= len(normal) <= longest and is_printable:
            return normal
    raise InvalidInput(
        f"{label!r} must be {shortest} to {longest} printable characters; got {_short(value)}"
    )


def reason(label: str, value: object) -> str:
    """Return why a person decides something, which must not be empty."""
    stated_reason = text(label, value)
    if not stated_reason:
        raise InvalidInput(f"{label!r} is needed: say why in a few words")
    return stated_reason


def binary(label: str, value: object) -> int:
    """Return 0 or 1."""
    if not isinstance(value, int | np.integer | np.bool_) or value not in (0, 1):
        raise InvalidInput(f"{label!r} must be 0 or 1; got {_short(value)}")
    return int(value)


def whole_amount(label: str, amount: object) -> int:
    """Return an amount of money as whole minor units.

    Examples
    --------
    >>> whole_amount("budget", 5e3)
    5000
    """
    is_number = isinstance(amount, int | float | np.integer | np.floating)
    if isinstance(amount, bool) or not is_number or not 0 <= amount < LIMIT or amount % 1:  # type: ignore[operator]
        raise InvalidInput(
            f"{label!r} must be a whole number of minor units (cents), at least 0 and below 2**53, "
            f"so that no rounding can exceed a cap; got {_short(amount)}"
        )
    return int(amount)  # type: ignore[call-overload, no-any-return]


def count(label: str, value: object) -> int:
    """Return a number of something, at least 1."""
    # Not isinstance: True is a whole number to Python.
    if type(value) is not int or not 1 <= value < LIMIT:
        raise InvalidInput(f"{label!r} must be a whole number >= 1; got {_short(value)}")
    return value


def number(label: str, value: object) -> float:
    """Return a finite number."""
    require_finite(label, value)
    return float(value)  # type: ignore[arg-type]


def mapping(label: str, value: object) -> Mapping[str, object]:
    """Return values by group."""
    require_kind(label, value, Mapping, "GROUP: N")
    return value  # type: ignore[return-value]


def group_names(groups: Iterable[str]) -> dict[str, str]:
    """Return stored form -> the past data's own name; refuse two names that would be one."""
    names: dict[str, str] = {}
    for group in groups:
        stored_form = name("group", group)
        if stored_form in names:
            raise InvalidInput(
                f"groups {names[stored_form]!r} and {group!r} differ in form only; rename one"
            )
        names[stored_form] = group
    return names


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


def _short(value: object) -> str:
    """Return a value for a message, cut to 80 characters."""
    # ASCII, so that a value from outside can be written anywhere: no control characters.
    written = ascii(value)
    return written if len(written) <= 80 else written[:77] + "…"
