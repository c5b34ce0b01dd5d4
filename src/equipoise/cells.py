"""Counts of past decisions per group: all that an audit needs of historical data.

The cells are those of the confusion matrix as far as past decisions show them: approved with
outcome 1, approved with outcome 0, and denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import Any, NamedTuple

from equipoise._json import JsonValue
from equipoise.display import format_count
from equipoise.errors import InvalidInput, UnknownName, require_kind, require_non_negative

Cohort = tuple[float, float, float]
"""The approved of a cohort: with outcome 1, with outcome 0, with an unknown outcome."""


class Decider(NamedTuple):
    """What one decider did with a group's cases.

    ``cases`` counts all of them. Approved people whose outcome is not known, and the denied, are in
    ``cases`` only.
    """

    name: str
    approved_positive: float
    approved_negative: float
    cases: float


@dataclass(frozen=True)
class GroupCells(JsonValue):
    """One group's counts: approved with outcome 1, approved with outcome 0, denied.

    ``approved_unknown`` counts the approved whose outcome is not known yet. Numbers need not be
    whole: a population is described by any positive multiple of its shares.

    Attributes
    ----------
    cohorts
        If given, the approved by cohort, and the assumption that within one the outcomes that are
        not known are like the known ones. Without it nothing is assumed of them.
    random_accepts
        Of the denied, those whom a test programme accepted at random all the same: with outcome 1,
        with outcome 0, and with one that is not known.

    Examples
    --------
    >>> GroupCells(approved_positive=30, approved_negative=10, denied=60).shares
    (0.3, 0.1, 0.6)
    >>> GroupCells(20, 5, 60, approved_unknown=15).resolved(0).to_dict()
    {'approved_positive': 20, 'approved_negative': 20, 'denied': 60}
    """

    approved_positive: float
    approved_negative: float
    denied: float
    approved_unknown: float = 0.0
    cohorts: tuple[Cohort, ...] = ()
    random_accepts: tuple[float, ...] = ()

    _optional = ("approved_unknown", "cohorts", "random_accepts")

    def __post_init__(self) -> None:
        # No check that counts are whole: worlds describe a population by its shares.
        for name, count in self.counts.items():
            require_non_negative(name, count)
        for count in self.random_accepts:
            require_non_negative("random_accepts", count)
        if self.total == 0:
            raise InvalidInput("a group needs at least one person; all of its counts are 0")
        self._require_consistent_parts()

    def _require_consistent_parts(self) -> None:
        """Raise unless random accepts are some of the denied, and cohorts are all the approved."""
        accepted = self.random_accepts
        if accepted and (len(accepted) != 3 or sum(accepted) > self.denied):
            raise InvalidInput(
                "'random_accepts' must be three counts of denied people (good, bad, unknown); "
                f"got {accepted!r} of {format_count(self.denied)}"
            )
        if self.cohorts:
            sums = tuple(sum(counts) for counts in zip(*self.cohorts, strict=True))
            approved = (self.approved_positive, self.approved_negative, self.approved_unknown)
            # Not ==, because counts that are shares of a population are rounded.
            if not all(map(isclose, sums, approved)):
                raise InvalidInput(f"'cohorts' must add up to the approved; they are {sums}")

    @property
    def counts(self) -> dict[str, float]:
        """The counts by name."""
        return {
            "approved_positive": self.approved_positive,
            "approved_negative": self.approved_negative,
            "denied": self.denied,
            "approved_unknown": self.approved_unknown,
        }

    @property
    def total(self) -> float:
        """The number of people in the group."""
        return self.approved + self.denied

    @property
    def approved(self) -> float:
        """The number of approved people."""
        return self.approved_positive + self.approved_negative + self.approved_unknown

    @property
    def denied_without_outcome(self) -> float:
        """The denied without a known outcome: all but those whom a test programme accepted."""
        return self.denied - sum(self.random_accepts[:2])

    @property
    def shares(self) -> tuple[float, float, float]:
        """``(p1, p0, s)``: the three counts as shares of the group."""
        total = self.total
        return self.approved_positive / total, self.approved_negative / total, self.denied / total

    def resolved(self, good_share: float) -> GroupCells:
        """Return the counts if this share of the unknown outcomes were good, the others bad."""
        if not self.approved_unknown:
            return self
        # Without cohorts, because no outcome is unknown any more.
        return GroupCells(
            self.approved_positive + good_share * self.approved_unknown,
            self.approved_negative + (1 - good_share) * self.approved_unknown,
            self.denied,
            random_accepts=self.random_accepts,
        )

    @property
    def like_known(self) -> GroupCells:
        """The counts with unknown outcomes imputed like the known: a guess, for estimates."""
        n_known = self.approved_positive + self.approved_negative
        # Without a known outcome nothing speaks for good or bad.
        return self.resolved(self.approved_positive / n_known if n_known else 0.5)


class Cells(dict[str, GroupCells]):
    """Counts of every group, in a fixed order.

    Examples
    --------
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)})
    >>> cells.groups, cells["B"].denied
    (('A', 'B'), 85)
    """

    def __init__(self, groups: Mapping[str, GroupCells]) -> None:
        if not groups:
            raise InvalidInput("'groups' must not be empty")
        # Names are texts, as they are in JSON; a frame may have numbers.
        super().__init__({str(name): counts for name, counts in groups.items()})

    # A dictionary calls this for a key that it lacks; a KeyError would not name the groups.
    def __missing__(self, group: str) -> GroupCells:
        raise UnknownName("group", group, self)

    def __hash__(self) -> int:  # type: ignore[override]  # counts do not change
        return hash(tuple(self.items()))

    def __str__(self) -> str:
        # In the order of GroupCells.counts, whose last column is shown only if somebody is in it.
        headers = ["approved, 1", "approved, 0", "denied"]
        if self.unknown:
            headers.append("approved, ?")
        width = max(len(name) for name in ("group", *self))
        lines = [_table_line("group", headers, width)]
        for group, counts in self.items():
            numbers = [format_count(count) for count in counts.counts.values()]
            lines.append(_table_line(group, numbers[: len(headers)], width))
        return "\n".join(lines)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return tuple(self)

    @cached_property
    def total(self) -> float:
        """The number of people in all groups."""
        return sum(counts.total for counts in self.values())

    @property
    def unknown(self) -> float:
        """Approved people whose outcome is not known."""
        return sum(counts.approved_unknown for counts in self.values())

    @property
    def like_known(self) -> Cells:
        """The counts with unknown outcomes imputed like the known of the group: a guess."""
        if not self.unknown:
            return self
        return Cells({group: counts.like_known for group, counts in self.items()})

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain dictionaries, one per group."""
        return {name: counts.to_dict() for name, counts in self.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> Cells:
        """Build from what :meth:`to_dict` gave."""
        for name, counts in data.items():
            require_kind(f"cells[{name!r}]", counts, Mapping, "a mapping of cells to counts")
        return cls({name: GroupCells.from_dict(counts) for name, counts in data.items()})


def _table_line(label: str, columns: list[str], label_width: int) -> str:
    return "  ".join([f"{label:<{label_width}}", *(f"{column:>11}" for column in columns)])
