"""What a table says, by kinds of rows: what was said of it, what was found, what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from equipoise.cells import Cells
from equipoise.errors import InvalidInput
from equipoise.history.coding import MOST_VALUES_OF_A_GROUP, Coding, Columns
from equipoise.history.source import Condition
from equipoise.history.values import Meaning, is_missing, key_of, require_meaning, text_of

__all__ = ["Counted", "Row", "Said", "Unknown", "distinct", "texts"]

Unknown = Literal["refuse", "bounds", "like_known"]
"""What to do with approved people whose outcome is not known."""

Box = tuple[tuple[object, ...], ...]
"""Values per column, each of which may stand beside each."""


@dataclass(frozen=True)
class Said:
    """What the reader says about the values: see :meth:`equipoise.History.read`."""

    positive: Meaning = None
    negative: Meaning = None
    missing_values: tuple[str, ...] = ()
    missing_group: str | None = None
    min_group: int = 0
    max_groups: int = MOST_VALUES_OF_A_GROUP
    leave_out_undecided: bool = False

    def __post_init__(self) -> None:
        require_meaning("positive", self.positive)
        require_meaning("negative", self.negative)
        for name, value, least in (
            ("min_group", self.min_group, 0),
            ("max_groups", self.max_groups, 2),
        ):
            if not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name!r} must be a whole number >= {least}; got {value!r}")
        object.__setattr__(self, "missing_values", tuple(key_of(v) for v in self.missing_values))


@dataclass(frozen=True)
class Row:
    """Rows with the same values in every column, and how many there are."""

    groups: tuple[object, ...]
    decision: object
    outcome: object
    count: int
    random_accepts: object = None
    cohort: object = None
    name: str = ""
    bit: int = -1  # of the decision: what the policy said
    random_accept: bool = False  # accepted by a test programme all the same

    def values(self, columns: Columns) -> dict[str, object]:
        """Return the values by column."""
        marks = (
            {} if columns.random_accepts is None else {columns.random_accepts: self.random_accepts}
        )
        groups = dict(zip(columns.groups, self.groups, strict=True))
        return groups | {columns.decision: self.decision, columns.outcome: self.outcome} | marks


@dataclass(frozen=True)
class Counted:
    """The cells, what the values mean, and what was decided while reading."""

    cells: Cells
    rows: Sequence[Row]
    coding: Coding
    notes: tuple[str, ...]
    leaves_out: bool = False  # rows of the table that nobody decided about

    @property
    def decided(self) -> Condition:
        """The values by which an engine finds the rows that count."""
        return self._found(self.rows)

    def values_of(self, group: str) -> Condition:
        """Return the values by which an engine finds the rows of a group."""
        own = [row for row in self.rows if row.name == group]
        return self._found(own, *self.coding.columns.groups)

    def successes(self, group: str, outcome: int) -> Condition:
        """Return the values by which an engine finds the group's approved with an outcome."""
        columns = self.coding.columns
        own = [row for row in self.rows if row.name == group and row.bit == 1]
        hits = [row for row in own if self.outcome_of(row) == outcome]
        marks = () if columns.random_accepts is None else (columns.random_accepts,)
        return self._found(hits, *columns.groups, columns.decision, columns.outcome, *marks)

    def _found(self, rows: Iterable[Row], *wanted: str) -> Condition:
        columns = self.coding.columns
        if self.leaves_out:
            marks = () if columns.random_accepts is None else (columns.random_accepts,)
            wanted = tuple(dict.fromkeys((*wanted, columns.decision, *marks)))
        found = [row.values(columns) for row in rows]
        boxes = _boxes([tuple(values[column] for column in wanted) for values in found])
        return [dict(zip(wanted, box, strict=True)) for box in boxes]

    def outcome_of(self, row: Row) -> int | None:
        """Return what a row's outcome means, None if it is not known."""
        if is_missing(row.outcome, self.coding.missing_values):
            return None
        return self.coding.outcome.bit(row.outcome)


def distinct(values: Iterable[object]) -> list[object]:
    """Return the different ones, in order."""
    return list(dict.fromkeys(values))


def texts(values: Iterable[tuple[object, int]]) -> dict[str, int]:
    """Return how often each value occurs, as a text."""
    counts: Counter[str] = Counter()
    for value, count in values:
        counts[text_of(value)] += count
    return dict(counts)


def _boxes(combinations: Sequence[tuple[object, ...]]) -> list[Box]:
    """Return sets of values, one per column, whose products make up exactly the combinations.

    Examples
    --------
    >>> _boxes([("A", "M"), ("B", "F"), ("A", "F")])
    [(('A',), ('M', 'F')), (('B',), ('F',))]
    """
    boxes: list[Box] = [
        tuple((value,) for value in values) for values in dict.fromkeys(combinations)
    ]
    for at in reversed(range(len(boxes[0]) if boxes else 0)):
        merged: dict[Box, list[object]] = {}
        for box in boxes:
            merged.setdefault((*box[:at], *box[at + 1 :]), []).extend(box[at])
        boxes = [(*rest[:at], tuple(own), *rest[at:]) for rest, own in merged.items()]
    return boxes
