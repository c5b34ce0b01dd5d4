"""What a world is, and the plainest one: four numbers per group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from equipoise import metrics
from equipoise._seeds import accepts_random_state
from equipoise.cells import Cells, GroupCells
from equipoise.comparison import Comparison
from equipoise.display import format_count
from equipoise.errors import (
    BadData,
    InvalidInput,
    UnknownName,
    few_of,
    require_in_unit,
    require_kind,
    require_non_negative,
    require_whole,
)
from equipoise.history.past import Past

COUNT_NAMES = ("approved_positive", "approved_negative", "denied_positive", "denied_negative")

Seed = int | np.random.Generator
"""Where randomness starts: a number, or a generator that goes on from where it is."""


@dataclass(frozen=True)
class Person:
    """Somebody who arrives: the group and decision everybody sees, the outcome nobody may see.

    Examples
    --------
    >>> Person("A", decision=0, outcome=1).outcome
    1
    """

    group: str
    decision: int
    outcome: int
    features: NDArray[np.float64] | None = None
    score: float | None = None
    price: float | None = None


@dataclass(frozen=True, eq=False)
class People:
    """People in order of arrival, as arrays; ``group`` indexes ``groups``.

    ``score`` and ``price`` are for audits with ``assist=``, NaN for whoever has none.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> people = world.draw(3, seed=1)
    >>> len(people), {person.group for person in people} <= {"A", "B"}
    (3, True)
    """

    groups: tuple[str, ...]
    group: NDArray[np.intp]
    decision: NDArray[np.int8]
    outcome: NDArray[np.int8]
    features: NDArray[np.float64] | None = None
    score: NDArray[np.float64] | None = None
    price: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"<People: {len(self):,} in groups {few_of(self.groups)}>"

    def __len__(self) -> int:
        return len(self.group)

    def __iter__(self) -> Iterator[Person]:
        # Python's numbers, by one conversion per column: numpy's are slow one by one, and no JSON.
        names = (self.groups[group] for group in self.group.tolist())
        features = repeat(None) if self.features is None else self.features
        scores = _none_for_nan(self.score)
        prices = _none_for_nan(self.price)
        decisions = self.decision.tolist()
        return map(Person, names, decisions, self.outcome.tolist(), features, scores, prices)

    @property
    def cell_counts(self) -> NDArray[np.int64]:
        """How many of each kind there are, a row per group, columns as :data:`COUNT_NAMES`."""
        # 0 to 3 within a group: approved before denied, good before bad, as COUNT_NAMES.
        kind = self.group * 4 + 2 * (1 - self.decision) + (1 - self.outcome)
        return np.bincount(kind, minlength=4 * len(self.groups)).reshape(-1, 4)


def _none_for_nan(column: NDArray[np.float64] | None) -> Iterator[float | None]:
    """Return a column's numbers, None for everybody who has none."""
    if column is None:
        return repeat(None)
    return (None if math.isnan(number) else number for number in column.tolist())


@runtime_checkable
class World(Protocol):
    """A population with every outcome known.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world: World = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.2, 0.1, 0.7, 0.1)})
    >>> world.r["A"], len(world.draw(10))
    (0.2, 10)
    """

    @property
    def cells(self) -> Cells:
        """What is free to see: each group's approved with outcome 1 and 0, and denied."""

    @property
    def r(self) -> Mapping[str, float]:
        """``P[Y=1 | f=0]`` of each group: what an audit pays to learn."""

    def gap(self, metric: str, compare: str | Comparison = "difference") -> float:
        """Return the true gap."""

    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return the past decisions on ``size`` people, or unlimited ones."""

    def draw(self, size: int, seed: Seed = 0) -> People:
        """Let ``size`` people arrive."""


def require_world(world: object) -> None:
    """Raise unless this is a world."""
    expected = "a world, as CellWorld.from_counts or equipoise.data.fico_lender().world"
    require_kind("world", world, World, expected)


@dataclass(frozen=True)
class CellWorld:
    """A population given by the free cells of its groups and the r that an audit pays for.

    Use :meth:`from_counts` or :meth:`from_shares`.

    Examples
    --------
    >>> world = CellWorld.from_counts({
    ...     "A": {"approved_positive": 30, "approved_negative": 10,
    ...           "denied_positive": 12, "denied_negative": 48},
    ...     "B": {"approved_positive": 10, "approved_negative": 5,
    ...           "denied_positive": 17, "denied_negative": 68},
    ... })
    >>> world.r
    {'A': 0.2, 'B': 0.2}
    >>> round(world.gap("equal_opportunity"), 4)
    0.3439
    """

    cells: Cells
    r: Mapping[str, float] = field(hash=False)

    def __post_init__(self) -> None:
        if len(self.cells) < 2:
            raise InvalidInput(f"a world needs at least two groups; got {self.cells.groups}")
        if self.cells.unknown:
            raise InvalidInput(
                "a world knows everybody's outcome, and so does its C*; of 'cells' the outcomes of "
                f"{format_count(self.cells.unknown)} approved people are not known. "
                "'cells.like_known' imputes them like the known. If nothing is assumed of them "
                "C* may be infinite: where they alone leave both answers possible no number of "
                "labels decides"
            )
        for group in self.cells:
            require_in_unit(f"r of group {group}", self.r[group])

    def __repr__(self) -> str:
        return f"<CellWorld of {len(self.cells)} groups: {few_of(self.cells.groups)}>"

    @classmethod
    def from_counts(cls, groups: Mapping[str, Mapping[str, float]]) -> CellWorld:
        """Build a world from four non-negative numbers per group, whole or not.

        Their sums also give the groups' shares of everybody.
        """
        cells = {}
        r = {}
        for group, counts in groups.items():
            _require_counts(group, counts)
            denied = counts["denied_positive"] + counts["denied_negative"]
            cells[str(group)] = GroupCells(
                counts["approved_positive"], counts["approved_negative"], denied
            )
            # With nobody denied there is no r; any value gives the same population.
            r[str(group)] = float(counts["denied_positive"] / denied) if denied > 0 else 0.0
        return cls(Cells(cells), r)

    @classmethod
    def from_shares(
        cls,
        groups: Mapping[str, tuple[float, float, float, float]],
        shares: Mapping[str, float] | None = None,
    ) -> CellWorld:
        """Build a world from ``(p1, p0, s, r)`` per group; groups of equal size unless told.

        The shares of a group that are approved with outcome 1, approved with outcome 0 and denied,
        which add up to 1, and the share of outcome 1 among its denied.

        Examples
        --------
        >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
        >>> world.joint.round(2).tolist()
        [[0.15, 0.05, 0.06, 0.24], [0.05, 0.05, 0.04, 0.36]]
        """
        cells = {}
        r = {}
        for group, (p1, p0, s, denied_rate) in groups.items():
            if abs(p1 + p0 + s - 1.0) > 1e-6:
                raise InvalidInput(
                    f"p1 + p0 + s of group {group!r} must be 1; got {p1} + {p0} + {s}"
                )
            # Only the proportions of the weights matter, as they do of all cells.
            weight = 1.0 if shares is None else shares[group]
            cells[group] = GroupCells(p1 * weight, p0 * weight, s * weight)
            r[group] = float(denied_rate) if s > 0 else 0.0
        return cls(Cells(cells), r)

    @classmethod
    def from_past(cls, history: Past, denied_rate: Mapping[str, float]) -> CellWorld:
        """Build the world that past decisions show, with stated guesses of what they hide.

        Approved people whose outcome is unknown are taken to be like the known ones.

        Parameters
        ----------
        denied_rate
            Group -> the share of its denied who would have succeeded.

        Examples
        --------
        >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(20, 10, 70)})
        >>> world = CellWorld.from_past(Past(cells), {"A": 0.3, "B": 0.1})
        >>> round(world.gap("equal_opportunity"), 4)
        0.1157
        """
        for group in history.cells:
            if group not in denied_rate:
                raise InvalidInput(
                    f"'denied_rate' must say what share of the denied of group {group!r} would "
                    f"have succeeded; it has {', '.join(map(repr, denied_rate)) or 'no group'}"
                )
        for group in denied_rate:
            if group not in history.cells:
                raise UnknownName("group in 'denied_rate'", group, history.cells.groups)
        # Unknown outcomes are imputed, since a world knows everybody's.
        r = {group: float(denied_rate[group]) for group in history.cells}
        return cls(history.cells.like_known, r)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names."""
        return self.cells.groups

    @property
    def joint(self) -> NDArray[np.float64]:
        """``P[A=a, f, Y]``, a row per group, columns in the order of :data:`COUNT_NAMES`."""
        rows = []
        for group, counts in self.cells.items():
            denied_positive = counts.denied * self.r[group]
            denied_negative = counts.denied - denied_positive
            approved = (counts.approved_positive, counts.approved_negative)
            rows.append((*approved, denied_positive, denied_negative))
        return np.array(rows, dtype=np.float64) / self.cells.total

    def gap(self, metric: str, compare: str | Comparison = "difference") -> float:
        """Return the true gap."""
        return metrics.gap_given_r(self.cells, self.r, metric, compare)

    @accepts_random_state
    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return past decisions: on ``size`` random people, or unlimited ones if None.

        Raises
        ------
        BadData
            If ``size`` random people do not include every group.
        """
        generator = np.random.default_rng(seed)
        if size is None:
            # Every run reads another past; a child leaves the generator's own stream as it is.
            seed = int(generator.spawn(1)[0].integers(2**32))
            return Past(self.cells, exact=True, seed=seed)
        require_whole("size", size)
        # What the past shows of each group: approved and good, approved and bad, denied.
        visible = np.column_stack([self.joint[:, :2], self.joint[:, 2:].sum(axis=1)])
        # One draw over all groups: how many people of a group come is left to chance as well.
        counts = generator.multinomial(size, visible.ravel() / visible.sum())
        return Past(cells_of(self.groups, counts.reshape(visible.shape)))

    @accepts_random_state
    def draw(self, size: int, seed: Seed = 0) -> People:
        """Let ``size`` people arrive, in random order."""
        # Without the last edge: rounded, the sum may lie below a number that is drawn.
        edges = np.cumsum(self.joint)[:-1]
        kind = np.searchsorted(edges, np.random.default_rng(seed).random(size), side="right")
        cell = kind % 4  # in the order of COUNT_NAMES: approved first, of each pair good first
        return People(
            self.groups,
            group=kind // 4,
            decision=(cell < 2).astype(np.int8),
            outcome=(cell % 2 == 0).astype(np.int8),
        )


def _require_counts(group: object, counts: Mapping[str, float]) -> None:
    """Raise unless a group has its four counts, each a number that is not negative."""
    for name in counts:
        if name not in COUNT_NAMES:
            raise UnknownName(f"count of group {group!r}", name, COUNT_NAMES)
    for name in COUNT_NAMES:
        if name not in counts:
            raise InvalidInput(f"group {group!r} lacks the count {name!r}")
        require_non_negative(f"{name} of group {group}", counts[name])


class ByCells:
    """Mixin for worlds with more than counts: cells, r and gap are those of ``as_cells``."""

    @cached_property
    def as_cells(self) -> CellWorld:
        """The same population as counts alone."""
        raise NotImplementedError

    @property
    def cells(self) -> Cells:
        """What is free to see."""
        return self.as_cells.cells

    @property
    def r(self) -> Mapping[str, float]:
        """``P[Y=1 | f=0]`` of each group."""
        return self.as_cells.r

    def gap(self, metric: str, compare: str | Comparison = "difference") -> float:
        """Return the true gap."""
        return self.as_cells.gap(metric, compare)


def past_of(people: People) -> Past:
    """Return the past decisions on these people."""
    approved, denied = np.split(people.cell_counts, 2, axis=1)
    counts = np.column_stack([approved, denied.sum(axis=1)])
    return Past(cells_of(people.groups, counts))


def cells_of(groups: tuple[str, ...], counts: NDArray[np.int64]) -> Cells:
    """Return the cells of past people, counted as approved with outcome 1, with 0, and denied."""
    # A group without people has no shares; more rows would help, so the error says so.
    for group, row in zip(groups, counts, strict=True):
        if not row.any():
            raise BadData(
                f"a past of {counts.sum():,} people holds nobody of group {group!r}; draw more"
            )
    named_rows = zip(groups, counts.tolist(), strict=True)
    return Cells({group: GroupCells(*row) for group, row in named_rows})
