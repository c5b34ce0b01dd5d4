"""What a table's columns and values mean, kept so that later tables are read the same way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.errors import BadData, InvalidInput, UnknownName, few_of
from equipoise.history.values import MISSING, YesNo, is_missing, key_of, shown, text_of, with_counts

__all__ = ["Coding", "Columns", "Grouping", "name_of", "read_groups"]

MOST_VALUES_OF_A_GROUP = 50
OTHER = "other groups"


@dataclass(frozen=True)
class Columns(JsonValue):
    """Which columns to read."""

    groups: tuple[str, ...]
    decision: str
    outcome: str
    random_accepts: str | None = None
    cohort: str | None = None

    def __post_init__(self) -> None:
        if not self.groups:
            raise InvalidInput("'group' must name at least one column; got none")
        for column in self.all:
            if not isinstance(column, str):
                raise InvalidInput(f"a column's name must be a text; got {column!r}")
        twice = [
            c for c, n in Counter((*self.groups, self.decision, self.outcome)).items() if n > 1
        ]
        if twice:
            raise InvalidInput(
                "'group', 'decision' and 'outcome' must be different columns; "
                f"{twice[0]!r} is named twice"
            )

    @property
    def all(self) -> tuple[str, ...]:
        """Every column, groups first."""
        more = (name for name in (self.random_accepts, self.cohort) if name is not None)
        return (*self.groups, self.decision, self.outcome, *more)


@dataclass(frozen=True)
class Grouping(JsonValue):
    """The names of groups.

    Attributes
    ----------
    labels
        One mapping per group column: key of a value -> how it is called.
    missing
        What a person without a value is called, None if there must be one.
    folded
        Names of the small groups that are counted as :data:`OTHER`.
    """

    labels: tuple[Mapping[str, str], ...]
    missing: str | None = None
    folded: tuple[str, ...] = ()

    def name(self, values: Iterable[object]) -> str:
        """Return the name of the group with these values, one per column."""
        parts = []
        for value, labels in zip(values, self.labels, strict=True):
            if is_missing(value):
                if self.missing is None:
                    raise BadData("the group is missing")
                parts.append(self.missing)
            elif (label := labels.get(key_of(value))) is not None:
                parts.append(label)
            else:
                raise UnknownName("group", text_of(value), labels.values())
        name = name_of(parts)
        return OTHER if name in self.folded else name


@dataclass(frozen=True)
class Coding(JsonValue):
    """Columns, and what their values mean."""

    columns: Columns
    grouping: Grouping
    decision: YesNo
    outcome: YesNo
    missing_values: tuple[str, ...] = ()

    def group_of(self, values: Iterable[object]) -> str:
        """Return a person's group from the values of the group columns."""
        return self.grouping.name(values)

    def bit_of(self, role: str, value: object) -> int:
        """Return what a decision or an outcome means."""
        reading: YesNo = getattr(self, role)
        bit = reading.bit(value)
        if bit is None or is_missing(value, self.missing_values):
            known = sorted({*reading.ones, *reading.zeros})
            raise UnknownName(f"{role} (column {getattr(self.columns, role)!r})", value, known)
        return bit


def name_of(values: Iterable[str]) -> str:
    """Return a group's name from its values, one per group column.

    Examples
    --------
    >>> name_of(["Black", "female"])
    'Black & female'
    """
    return " & ".join(values)


def read_groups(
    columns: Sequence[str],
    found: Sequence[Mapping[str, int]],
    *,
    missing_group: str | None,
    max_groups: int,
) -> tuple[Grouping, list[str]]:
    """Name the groups: spellings that differ in blanks and cases alone are one.

    Parameters
    ----------
    found
        For every column: its values -> how many rows have them.
    missing_group
        What to call people without a value; None refuses them.
    max_groups
        How many different values a column may have.

    Returns
    -------
    tuple
        The names, and a note for every column in which spellings were joined.
    """
    labels, notes = [], []
    for column, values in zip(columns, found, strict=True):
        missing = {value: n for value, n in values.items() if is_missing(value)}
        spellings: dict[str, Counter[str]] = {}
        for value, n in values.items():
            if value not in missing:
                spellings.setdefault(key_of(value), Counter())[value] += n
        _require_few(column, spellings, max_groups)
        own = {key: _label(spelled) for key, spelled in spellings.items()}
        if missing and missing_group is not None and key_of(missing_group) in own:
            raise InvalidInput(
                f"'missing_group' {missing_group!r} is a group in column {column!r} already; "
                "choose another name"
            )
        labels.append(own)
        notes += [*_joined(column, spellings, own), *_short_forms(column, own)]
        if missing:
            notes.append(
                f"Column {column!r}: {sum(missing.values()):,} rows without a group are called "
                f"{missing_group!r}."
            )
    return Grouping(tuple(labels), missing_group), notes


def _label(spelled: Counter[str]) -> str:
    """Return the most frequent spelling, without blanks around it."""
    stripped: Counter[str] = Counter()
    for value, n in spelled.items():
        stripped[value.strip()] += n
    return min(stripped, key=lambda value: (-stripped[value], value))


def _joined(
    column: str, spellings: Mapping[str, Counter[str]], labels: Mapping[str, str]
) -> list[str]:
    odd = {
        value: n
        for key, spelled in spellings.items()
        for value, n in spelled.items()
        if value != labels[key]
    }
    if not odd:
        return []
    by_label: dict[str, dict[str, int]] = {}
    for value, n in odd.items():
        by_label.setdefault(labels[key_of(value)], {})[value] = n
    parts = [f"{with_counts(odd)} as {label!r}" for label, odd in sorted(by_label.items())]
    return [f"Column {column!r}: rows counted together by spelling: {'; '.join(parts)}."]


def _short_forms(column: str, labels: Mapping[str, str]) -> list[str]:
    """Name groups of which one may be the other's first letter: joined by people, never by us."""
    pairs = [
        f"{labels[short]!r} and {labels[long]!r}"
        for short in sorted(labels)
        for long in sorted(labels)
        if len(short) == 1 < len(long) and short.isalpha() and long.startswith(short)
    ]
    if not pairs:
        return []
    return [
        f"Column {column!r}: {few_of(pairs)} are counted as different groups; if they are the "
        "same, write them alike in the table and read it again."
    ]


def _require_few(column: str, spellings: Mapping[str, Counter[str]], most: int) -> None:
    scores = [key for key in spellings if _is_fraction(key)]
    if len(spellings) <= most and (not scores or most != MOST_VALUES_OF_A_GROUP):
        return
    some = shown([next(iter(s)) for s in list(spellings.values())[:3]])
    enough = max(len(spellings), MOST_VALUES_OF_A_GROUP + 1)
    raise BadData(
        f"column {column!r} must hold groups; found {len(spellings):,} different values, such as "
        f"{some}; is it a score or an identifier? If these are groups indeed, "
        f"max_groups={enough} (--max-groups {enough}) reads them"
    )


def _is_fraction(key: str) -> bool:
    try:
        return key not in MISSING and not float(key).is_integer()
    except (ValueError, OverflowError):
        return False
