"""The worlds that an audit must tell from the true one, cut into cells.

Write ``lam_a`` for a possible value of group a's unknown ``r_a = P[Y=1 | f=0, a]``. Both wrong
answers are unions of boxes that slide along one or two levels:

- UNFAIR: for some rate, groups a, b and level t, ``rate_b <= t`` and ``rate_a`` is ``gap`` above t;
- FAIR: for some levels, one per rate, every group's rate lies between level and ``gap`` above it.

When a level ranges over a cell, the box with its ends moved outwards holds all boxes of the cell,
so what is cheapest in it bounds the cell from below; at a single level the box is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.comparison import GapScale
from equipoise.rates import Curve

__all__ = ["Alternatives", "Cover", "FairSet", "RateOfGroups", "UnfairSet"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Cover:
    """Cells: the piece each belongs to, and the least and largest levels in it (n, dimensions)."""

    piece: Ints
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.piece)

    @property
    def middle(self) -> Cover:
        """The single levels in the middle."""
        at = (self.low + self.high) / 2.0
        return Cover(self.piece, at, at)

    def take(self, which: Ints | NDArray[np.bool_]) -> Cover:
        """Return some of the cells."""
        return Cover(self.piece[which], self.low[which], self.high[which])

    def join(self, *others: Cover) -> Cover:
        """Return these cells and others."""
        parts = (self, *others)
        return Cover(
            np.concatenate([part.piece for part in parts]),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
        )

    def halves(self, dimension: Ints) -> Cover:
        """Return both halves of every cell, all left ones first."""
        rows = np.arange(len(self))
        left_high, right_low = self.high.copy(), self.low.copy()
        middle = (self.low + self.high)[rows, dimension] / 2.0
        left_high[rows, dimension] = right_low[rows, dimension] = middle
        return Cover(
            np.concatenate([self.piece, self.piece]),
            np.concatenate([self.low, right_low]),
            np.concatenate([left_high, self.high]),
        )


class Alternatives(Protocol):
    """A set of unknowns as a union of sliding boxes."""

    def start(self) -> Cover:
        """Return cells that cover the set."""
        ...

    def boxes(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends of every group's ``lam`` (n, K); start > end where there is none."""
        ...


class RateOfGroups:
    """One rate of all groups, each a monotone curve in its own unknown."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        self.groups = len(curves)
        self._a, self._b, self._c, self._d = np.array([(c.a, c.b, c.c, c.d) for c in curves]).T
        ends = np.array([(float(c.value(0.0)), float(c.value(1.0))) for c in curves])
        self._least, self._most = ends.min(axis=1), ends.max(axis=1)
        self._constant = np.array([c.trend == 0 for c in curves])

    def between(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the ends of the ``lam`` with a rate in [low, high]; start > end if none has."""
        one, other = self._inverse(low), self._inverse(high)
        start = np.where(self._constant, 0.0, np.minimum(one, other))
        end = np.where(self._constant, 1.0, np.maximum(one, other))
        end = np.where((low > self._most) | (high < self._least), -1.0, end)
        return start, end

    def _inverse(self, value: Array) -> Array:
        inside = np.clip(value, self._least, self._most)
        below = np.where(self._constant, 1.0, inside * self._d - self._b)
        return np.asarray(np.clip((self._a - inside * self._c) / below, 0.0, 1.0))


class UnfairSet:
    """All unknowns for which some rate of two groups is at least ``gap`` (> 0) apart."""

    def __init__(self, rates: Sequence[RateOfGroups], gap: float, compare: GapScale) -> None:
        self._rates, self._gap, self._compare = rates, gap, compare
        pairs = permutations(range(rates[0].groups), 2)
        pieces = [(rate, a, b) for (a, b), rate in product(pairs, range(len(rates)))]
        self._rate, self._above, self._below = np.array(pieces, dtype=np.intp).T

    def start(self) -> Cover:
        """Return cells that cover the set."""
        return _grid(len(self._rate), 1, 16, 1.0 - self._gap)

    def boxes(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends of every group's ``lam``."""
        shape = (len(cells), self._rates[0].groups)
        start, end = np.zeros(shape), np.ones(shape)
        for index, rate in enumerate(self._rates):
            mine = np.flatnonzero(self._rate[cells.piece] == index)
            piece, rows = cells.piece[mine], np.arange(len(mine))
            low, high = (
                np.full((len(mine), shape[1]), -np.inf),
                np.full((len(mine), shape[1]), np.inf),
            )
            low[rows, self._above[piece]] = self._compare.above(cells.low[mine, 0], self._gap)
            high[rows, self._below[piece]] = cells.high[mine, 0]
            start[mine], end[mine] = rate.between(low, high)
        return start, end


class FairSet:
    """All unknowns for which no rate of two groups is more than ``gap`` (>= 0) apart."""

    def __init__(self, rates: Sequence[RateOfGroups], gap: float, compare: GapScale) -> None:
        self._rates, self._gap, self._compare = rates, gap, compare

    def start(self) -> Cover:
        """Return cells that cover the set."""
        return _grid(1, len(self._rates), 32 if len(self._rates) == 1 else 16, 1.0)

    def boxes(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends of every group's ``lam``."""
        shape = (len(cells), self._rates[0].groups)
        start, end = np.zeros(shape), np.ones(shape)
        for index, rate in enumerate(self._rates):
            low = cells.low[:, index, None]
            high = self._compare.above(cells.high[:, index, None], self._gap)
            from_, to = rate.between(low, high)
            start, end = np.maximum(start, from_), np.minimum(end, to)
        return start, end


def _grid(pieces: int, dimensions: int, steps: int, top: float) -> Cover:
    """Cut every piece's levels, each in [0, top], into equal cells."""
    edges = np.linspace(0.0, top, steps + 1)
    corner = np.array(list(product(range(steps), repeat=dimensions)), dtype=np.intp)
    piece = np.repeat(np.arange(pieces), len(corner))
    corner = np.tile(corner, (pieces, 1))
    return Cover(piece, edges[corner], edges[corner + 1])
