"""What the values of a column mean, whatever words, cases and blanks they use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.errors import BadData, InvalidInput, UnknownName

__all__ = [
    "MISSING",
    "Meaning",
    "Value",
    "Values",
    "YesNo",
    "is_missing",
    "key_of",
    "read_yes_no",
    "require_meaning",
    "require_used",
    "shown",
    "text_of",
    "with_counts",
]

Value = str | int | float | bool
Values = Value | Sequence[Value]
Meaning = Values | Mapping[str, Values] | None
"""Values that mean something: for both columns, or by role (``decision``, ``outcome``)."""

MISSING = ("", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a")
"""Keys that stand for no value."""

ROLES = ("decision", "outcome")
STANDARD = {"1": 1, "true": 1, "0": 0, "false": 0}
FAVOURABLE = (
    *("yes", "y", "t", "approved", "approve", "accepted", "accept", "granted", "admitted", "hired"),
    *("released", "repaid", "paid", "fully paid", "good", "success", "passed", "pass"),
)
UNFAVOURABLE = (
    "no",
    "n",
    "f",
    "denied",
    "deny",
    "rejected",
    "reject",
    "declined",
    "refused",
    "bad",
)


def text_of(value: object) -> str:
    """Return a value of a table as text, the empty one if there is none."""
    return "" if value is None else str(value)


def key_of(value: object) -> str:
    """Return what a value is compared by: no blanks around, no cases, numbers by their size.

    Examples
    --------
    >>> [key_of(value) for value in (" Repaid", "REPAID ", 1, "1.0", True)]
    ['repaid', 'repaid', '1', '1', 'true']
    """
    word = text_of(value).strip().casefold()
    try:
        number = float(word)
    except ValueError:
        return word
    return f"{number:.15g}" if abs(number) < 1e15 else word


def is_missing(value: object, also: Iterable[str] = ()) -> bool:
    """Whether a value stands for none; ``also`` holds further keys that do."""
    key = key_of(value)
    return key in MISSING or key in also


@dataclass(frozen=True)
class YesNo(JsonValue):
    """Which keys of a column mean 1 and which mean 0."""

    ones: tuple[str, ...]
    zeros: tuple[str, ...]

    def bit(self, value: object) -> int | None:
        """Return what a value means, None if nobody said.

        Examples
        --------
        >>> YesNo(("repaid",), ("lost",)).bit(" Repaid")
        1
        """
        key = key_of(value)
        return 1 if key in self.ones else 0 if key in self.zeros else None


def read_yes_no(
    role: str,
    column: str,
    found: Mapping[str, int],
    positive: Meaning = None,
    negative: Meaning = None,
) -> YesNo:
    """Say what each value of a column means, or refuse to guess.

    Parameters
    ----------
    role
        ``decision`` or ``outcome``.
    column
        The column's name.
    found
        The values, the missing ones left out -> how many rows have them.
    positive, negative
        The values that mean 1 and those that mean 0. One of the two is enough for a column with
        one other value; a column of 0/1 or true/false needs neither.

    Examples
    --------
    >>> read_yes_no("outcome", "end", {"paid": 7, "Paid": 1, "lost": 2}, positive="paid")
    YesNo(ones=('paid',), zeros=('lost',))
    """
    keys = {key_of(value) for value in found}
    standard = keys <= set(STANDARD)
    ones, zeros = (_said(role, meaning, keys) for meaning in (positive, negative))
    if both := set(ones) & set(zeros):
        raise InvalidInput(
            f"column {column!r}: {shown(both)} cannot be both 'positive' and 'negative'"
        )
    for argument, meaning, said in (("positive", positive, ones), ("negative", negative, zeros)):
        other = zeros if argument == "positive" else ones
        in_vain = said and not keys & set(said) and not (standard and set(said) <= set(STANDARD))
        if isinstance(meaning, Mapping) and in_vain and not other:
            raise UnknownName(
                f"value of {argument!r} for column {column!r}", shown_said(meaning, role), found
            )
    if standard and {*ones, *zeros} <= set(STANDARD):
        turned = "0" in ones or "1" in zeros
        return (
            YesNo(("0", "false"), ("1", "true")) if turned else YesNo(("1", "true"), ("0", "false"))
        )
    if not ones and not zeros:
        raise BadData(_nobody_said(role, column, found))
    rest = keys - {*ones, *zeros}
    clash = not standard and any(STANDARD.get(key) == (1 if ones else 0) for key in rest)
    one_other = len({STANDARD.get(key, key) for key in rest}) == 1 and not clash
    if rest and ((ones and zeros) or not one_other):
        raise BadData(_ambiguous(role, column, found, ones, zeros))
    if ones:
        return YesNo(ones, (*zeros, *sorted(rest)))
    return YesNo(tuple(sorted(rest)), zeros)


def require_meaning(argument: str, meaning: object) -> None:
    """Raise unless the argument is a value, a list of values, or either by role."""
    if isinstance(meaning, Mapping):
        for role in meaning:
            if role not in ROLES:
                raise UnknownName(f"key of {argument!r}", role, ROLES)
    for values in meaning.values() if isinstance(meaning, Mapping) else [meaning]:
        for value in _listed(values):
            if not isinstance(value, str | int | float):
                raise InvalidInput(
                    f"{argument!r} must be a value such as 'yes', a list of values, or either by "
                    f"column such as {{'outcome': 'repaid'}}; got {value!r}"
                )


def require_used(
    positive: Meaning,
    negative: Meaning,
    found: Mapping[str, Mapping[str, int]],
    readings: Mapping[str, YesNo],
) -> None:
    """Raise if a ``positive`` for both columns is in neither, or two columns are turned round."""
    turned = [role for role, reading in readings.items() if {"0", "false"} <= set(reading.ones)]
    for argument, meaning in (("positive", positive), ("negative", negative)):
        if meaning is None or isinstance(meaning, Mapping) or len(turned) < len(ROLES):
            continue
        example = _listed(meaning)[0]
        raise InvalidInput(
            f"{argument!r} of {shown(map(str, _listed(meaning)))} would turn both columns round; "
            f"say which one, for example {argument}={{'outcome': {example!r}}} "
            f"(--{argument} outcome={example})"
        )
    if positive is None or isinstance(positive, Mapping):
        return
    wanted = {key_of(value) for value in _listed(positive)}
    if not any(wanted & {*r.ones, *r.zeros} for r in readings.values()):
        known = [value for values in found.values() for value in values]
        said = ", ".join(map(text_of, _listed(positive)))
        raise UnknownName("value of 'positive'", said, dict.fromkeys(known))


def shown(values: Iterable[str], most: int = 5) -> str:
    """Return the first few values for a message."""
    values = list(values)
    return ", ".join(repr(v) for v in values[:most]) + (", …" if len(values) > most else "")


def with_counts(found: Mapping[str, int], most: int = 8) -> str:
    """Return values with how often each occurs, the frequent ones first.

    Examples
    --------
    >>> with_counts({"Y": 3, "y ": 1200})
    "'y ' (1,200), 'Y' (3)"
    """
    ranked = Counter(found).most_common()
    names = ", ".join(f"{value!r} ({count:,})" for value, count in ranked[:most])
    return names + (f" and {len(ranked) - most:,} more" if len(ranked) > most else "")


def shown_said(meaning: Meaning, role: str) -> str:
    """Return the values said for a role, for a message."""
    return ", ".join(text_of(value) for value in _listed(_of_role(meaning, role)))


def _listed(values: object) -> list[object]:
    if values is None:
        return []
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def _of_role(meaning: Meaning, role: str) -> object:
    return meaning.get(role) if isinstance(meaning, Mapping) else meaning


def _said(role: str, meaning: Meaning, present: set[str]) -> tuple[str, ...]:
    """Return the keys that were said of a column; words for both may belong to the other one."""
    keys = tuple(dict.fromkeys(key_of(value) for value in _listed(_of_role(meaning, role))))
    if present <= set(STANDARD):  # then 1 and true are the same
        bits = {STANDARD[key] for key in keys if key in STANDARD}
        alike = tuple(key for key, bit in STANDARD.items() if bit in bits)
        return alike or (keys if isinstance(meaning, Mapping) else ())
    return keys if isinstance(meaning, Mapping) or present & set(keys) else ()


def _nobody_said(role: str, column: str, found: Mapping[str, int]) -> str:
    odd = {value for value in found if key_of(value) not in STANDARD}
    if odd != set(found) and len(odd) < len(found):
        clash = f"; {shown(sorted(odd))} {'is' if len(odd) == 1 else 'are'} neither"
    else:
        clash = ""
    return (
        f"column {column!r} must be 0/1 or true/false; found {with_counts(found)}{clash}; say "
        f"which value means 1, {_example(role, found)}"
    )


def _example(role: str, found: Mapping[str, int]) -> str:
    """Return how to say it, with the value that surely means 1 where there is one."""
    good = [value for value in found if key_of(value) in FAVOURABLE]
    bad = [value for value in found if key_of(value) in UNFAVOURABLE]
    if not good and bad and len({key_of(v) for v in found}) == 1 + len({key_of(v) for v in bad}):
        good = [value for value in found if value not in bad]
    if len({key_of(value) for value in good}) != 1 or any(key_of(v) in STANDARD for v in found):
        return f"as in positive={{{role!r}: VALUE}} (--positive {role}=VALUE)"
    value = good[0].strip()
    return f"for example positive={{{role!r}: {value!r}}} (--positive {role}={value})"


def _ambiguous(
    role: str, column: str, found: Mapping[str, int], ones: Sequence[str], zeros: Sequence[str]
) -> str:
    rest = {value: n for value, n in found.items() if key_of(value) not in {*ones, *zeros}}
    none = "--missing-value VALUE)"
    rest_is = "no outcome yet"
    if role == "decision":
        rest_is = "no decision, as when somebody withdrew"
        none = "--missing-value VALUE) with undecided='leave_out' (--undecided leave_out)"
    return (
        f"column {column!r} holds values of which nobody said what they mean: "
        f"{with_counts(rest)}; say of each whether it means 1, positive={{{role!r}: [VALUE]}} "
        f"(--positive {role}=VALUE), or 0, negative={{{role!r}: [VALUE]}} (--negative "
        f"{role}=VALUE), or that there is {rest_is}, missing_values=[VALUE] ({none}"
    )
