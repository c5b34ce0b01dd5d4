"""Counts of past decisions per group: all that an audit needs to know about the past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from equipoise._json import JsonValue
from equipoise.errors import InvalidInput, UnknownName, require_non_negative

__all__ = ["Cells", "GroupCells"]


@dataclass(frozen=True)
class GroupCells(JsonValue):
    """One group's counts: approved with outcome 1, approved with outcome 0, denied.

    Numbers need not be whole: a population is described by any positive multiple of its shares.

    Examples
    --------
    >>> GroupCells(approved_positive=30, approved_negative=10, denied=60).shares
    (0.3, 0.1, 0.6)
    """

    approved_positive: float
    approved_negative: float
    denied: float

    def __post_init__(self) -> None:
        for f in fields(self):
            require_non_negative(f.name, getattr(self, f.name))
        if self.total == 0:
            raise InvalidInput("a group needs at least one person; all of its counts are 0")

    @property
    def counts(self) -> dict[str, float]:
        """The counts by name."""
        return self.to_dict()

    @property
    def total(self) -> float:
        """Everybody in the group."""
        return self.approved_positive + self.approved_negative + self.denied

    @property
    def approved(self) -> float:
        """Everybody approved."""
        return self.approved_positive + self.approved_negative

    @property
    def shares(self) -> tuple[float, float, float]:
        """``(p1, p0, s)``: the three counts as shares of the group."""
        total = self.total
        return self.approved_positive / total, self.approved_negative / total, self.denied / total

    def __getitem__(self, name: str) -> float:
        if name not in (known := self.to_dict()):
            raise UnknownName("cell", name, known)
        value: float = known[name]
        return value


class Cells(Mapping[str, GroupCells]):
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
        self._groups = {str(name): cells for name, cells in groups.items()}

    def __getitem__(self, group: str) -> GroupCells:
        try:
            return self._groups[group]
        except KeyError:
            raise UnknownName("group", group, self._groups) from None

    def __contains__(self, group: object) -> bool:
        return group in self._groups

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and self._groups == other._groups

    def __hash__(self) -> int:
        return hash(tuple(self._groups.items()))

    def __repr__(self) -> str:
        return f"Cells({self._groups!r})"

    def __str__(self) -> str:
        width = max(len("group"), *(len(g) for g in self))
        rows = [f"{'group':<{width}}  approved, 1  approved, 0       denied"]
        rows += [
            f"{g:<{width}}" + "".join(f"  {count:>11,g}" for count in c.to_dict().values())
            for g, c in self.items()
        ]
        return "\n".join(rows)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return tuple(self._groups)

    @property
    def total(self) -> float:
        """Everybody."""
        return sum(c.total for c in self.values())

    def share_of(self, group: str) -> float:
        """Return the group's share of everybody, ``P[A=a]``."""
        return self[group].total / self.total

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain dictionaries, one per group."""
        return {name: cells.to_dict() for name, cells in self.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Mapping[str, Any]]) -> Cells:
        """Build from what :meth:`to_dict` gave."""
        return cls({name: GroupCells.from_dict(counts) for name, counts in data.items()})
