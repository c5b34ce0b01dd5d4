"""Counts of past decisions per group: all that an audit needs to know about the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from math import isclose
from typing import Any, NamedTuple

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName, require_kind, require_non_negative

Cohort = tuple[float, float, float]  # its approved: outcome 1, outcome 0, outcome not known


class Decider(NamedTuple):
    """What one decider did with a group's cases: approved with outcome 1, with outcome 0, cases.

    Approved people whose outcome is not known, and the denied, are cases only.
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
        accepted = self.random_accepts
        for name, count in (*self.counts.items(), *(("random_accepts", n) for n in accepted)):
            require_non_negative(name, count)
        if self.total == 0:
            raise InvalidInput("a group needs at least one person; all of its counts are 0")
        sums = tuple(sum(counts) for counts in zip(*self.cohorts, strict=True))
        own = (self.approved_positive, self.approved_negative, self.approved_unknown)
        if accepted and (len(accepted) != 3 or sum(accepted) > self.denied):
            raise InvalidInput(
                "'random_accepts' must be three counts of denied people (good, bad, unknown); "
                f"got {accepted!r} of {self.denied:g}"
            )
        if self.cohorts and not all(map(isclose, sums, own)):
            raise InvalidInput(f"'cohorts' must add up to the approved; they are {sums}")

    @property
    def counts(self) -> dict[str, float]:
        """The counts by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)[:4]}

    @property
    def total(self) -> float:
        """Everybody in the group."""
        return self.approved + self.denied

    @property
    def approved(self) -> float:
        """Everybody approved."""
        return self.approved_positive + self.approved_negative + self.approved_unknown

    @property
    def denied_without_outcome(self) -> float:
        """The denied whose outcome nobody knows: all but those whom a test programme accepted."""
        return self.denied - sum(self.random_accepts[:2])

    @property
    def shares(self) -> tuple[float, float, float]:
        """``(p1, p0, s)``: the three counts as shares of the group."""
        total = self.total
        return self.approved_positive / total, self.approved_negative / total, self.denied / total

    def resolved(self, good: float) -> GroupCells:
        """Return the counts if this share of the outcomes that are not known were good."""
        if not self.approved_unknown:
            return self
        return GroupCells(
            self.approved_positive + good * self.approved_unknown,
            self.approved_negative + (1 - good) * self.approved_unknown,
            self.denied,
            random_accepts=self.random_accepts,
        )

    @property
    def like_known(self) -> GroupCells:
        """The counts with unknown outcomes imputed like the known: a guess, for estimates."""
        known = self.approved_positive + self.approved_negative
        return self.resolved(self.approved_positive / known if known else 0.5)


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
        super().__init__({str(name): cells for name, cells in groups.items()})

    def __missing__(self, group: str) -> GroupCells:
        raise UnknownName("group", group, self)

    def __hash__(self) -> int:  # type: ignore[override]  # nobody changes counts
        return hash(tuple(self.items()))

    def __str__(self) -> str:
        rows = [["group", "approved, 1", "approved, 0", "denied", "approved, ?"]]
        rows += [[g, *(f"{n:,g}" for n in c.counts.values())] for g, c in self.items()]
        wide, last = max(len(row[0]) for row in rows), 5 if self.unknown else 4
        lines = ((f"{g:<{wide}}", *(f"{n:>11}" for n in row[: last - 1])) for g, *row in rows)
        return "\n".join("  ".join(line) for line in lines)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return tuple(self)

    @cached_property
    def total(self) -> float:
        """Everybody."""
        return sum(c.total for c in self.values())

    @property
    def unknown(self) -> float:
        """Approved people whose outcome is not known."""
        return sum(c.approved_unknown for c in self.values())

    @property
    def like_known(self) -> Cells:
        """The counts with unknown outcomes imputed like the known of the group: a guess."""
        return Cells({group: c.like_known for group, c in self.items()}) if self.unknown else self

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain dictionaries, one per group."""
        return {name: cells.to_dict() for name, cells in self.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> Cells:
        """Build from what :meth:`to_dict` gave."""
        for name, counts in data.items():
            require_kind(f"cells[{name!r}]", counts, Mapping, "a mapping of cells to counts")
        return cls({name: GroupCells.from_dict(counts) for name, counts in data.items()})
