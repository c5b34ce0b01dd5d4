"""Columns of yes and no, whatever words they use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from equipoise.errors import BadData, InvalidInput, UnknownName

__all__ = ["MISSING", "Positive", "Value", "YesNo", "read_yes_no", "require_positive", "shown"]

Value = str | int | float | bool
Positive = Value | Mapping[str, Value] | None

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none", "<NA>")
"""Texts that stand for no value in a yes/no column."""

ROLES = ("decision", "outcome")


@dataclass(frozen=True)
class YesNo:
    """Which of a column's values mean 1 and which mean 0."""

    ones: tuple[str, ...]
    zeros: tuple[str, ...]

    def values(self, bit: int) -> tuple[str, ...]:
        """Return the values that mean 1, or those that mean 0."""
        return self.ones if bit else self.zeros


def read_yes_no(role: str, column: str, texts: Iterable[str], positive: Positive) -> YesNo:
    """Say what each value of a column means.

    Parameters
    ----------
    role
        ``decision`` or ``outcome``.
    column
        The column's name.
    texts
        The values found, the missing ones left out.
    positive
        The value that means 1: one for both columns (a column of 0/1 needs none), or a mapping
        by role.

    Examples
    --------
    >>> read_yes_no("outcome", "end", ["paid", "late", "lost"], positive="paid")
    YesNo(ones=('paid',), zeros=('late', 'lost'))
    """
    values = sorted(set(texts))
    bits = {value: _bit(value) for value in values}
    odd = [value for value, bit in bits.items() if bit is None]
    wanted = positive.get(role) if isinstance(positive, Mapping) else positive
    if wanted is not None:
        ones = tuple(value for value in values if _same(value, wanted))
        if ones:
            return YesNo(ones, tuple(value for value in values if value not in ones))
        if odd or isinstance(positive, Mapping):
            raise UnknownName(f"value of 'positive' for column {column!r}", wanted, values)
    if odd:
        raise BadData(
            f"column {column!r} must be 0/1 or true/false; found {shown(values)}; say which "
            f"value means 1, for example positive={{{role!r}: {odd[0]!r}}}"
        )
    return YesNo(
        tuple(value for value, bit in bits.items() if bit == 1),
        tuple(value for value, bit in bits.items() if bit == 0),
    )


def require_positive(positive: object) -> None:
    """Raise unless ``positive`` is a value, a mapping of values by role, or None."""
    if isinstance(positive, Mapping):
        for role in positive:
            if role not in ROLES:
                raise UnknownName("key of 'positive'", role, ROLES)
    for value in positive.values() if isinstance(positive, Mapping) else [positive]:
        if value is not None and not isinstance(value, str | int | float):
            raise InvalidInput(
                "'positive' must be a value such as 'yes', or one per column such as "
                f"{{'outcome': 'repaid'}}; got {value!r}"
            )


def shown(values: Iterable[str], most: int = 5) -> str:
    """Return the first few values for a message."""
    values = list(values)
    return ", ".join(repr(v) for v in values[:most]) + (", …" if len(values) > most else "")


def _bit(text: str) -> int | None:
    word = text.strip().lower()
    if word in ("true", "false"):
        return int(word == "true")
    number = _number(word)
    return int(number) if number in (0.0, 1.0) else None


def _same(text: str, value: Value) -> bool:
    if isinstance(value, bool):
        return _bit(text) == int(value)
    if text == str(value):
        return True
    number = _number(text)
    return number is not None and number == _number(str(value))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
