"""How fast the hardest alternative can be refuted: a certified maximin.

``D(w) = inf over alternatives of sum_a w_a kl(r_a, lam_a)`` is concave in the labels ``w_a`` that a
unit of cost buys, being a minimum of linear functions. Its maximum is enclosed from both sides:

- above by finitely many alternatives found so far: a linear program whose dual is a mixture of
  them, and any mixture bounds D;
- below by cells that cover all alternatives, each bounded by the outer box of its cell.

Cells that may still lie below the program's value are halved, and the alternatives in their middles
join the program, until both sides agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.bounds.alternatives import Alternatives, Cover
from equipoise.errors import EquipoiseError

__all__ = ["Maximin", "maximin"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.intp]

TOLERANCE = 1e-3  # relative distance of the two sides
_FLOOR = 1e-4  # of the budget, shared by all groups: an infinite kl then counts as such
_RESOLUTION = 1e-8  # levels closer than this are one; what gamma = 0 means in floating point
_BATCH = 2048  # cells halved at a time
_LIMIT = 1_000_000  # cells in memory; beyond it the two sides are returned as they stand
_CUTS = 24  # alternatives that join the linear program at a time


@dataclass(frozen=True)
class Maximin:
    """``lower <= max D <= upper``, and the budget shares at which D is at least ``lower``.

    Both are infinite if there is no alternative.
    """

    lower: float
    upper: float
    budget: Array


def maximin(alternatives: Alternatives, r: Array, costs: Array) -> Maximin:
    """Maximise ``D(w)`` over ``w >= 0`` with ``sum_a w_a c_a = 1``.

    Parameters
    ----------
    alternatives
        The set to refute.
    r
        Every group's true unknown.
    costs
        The mean cost of a label. A group whose labels cost nothing is taken as known: it gets no
        budget, and only alternatives that agree with it count.
    """
    paid = costs > 0.0
    if not paid.any():
        return Maximin(np.inf, np.inf, np.zeros(len(costs)))
    even = paid / paid.sum()
    search = _Search(alternatives, r, costs)
    program = _Program(len(r))
    budget, upper = even, np.inf
    found = search.first()
    while True:
        if len(found):
            program.offer(found)
            best, upper = program.solve(even)
            budget = (1.0 - _FLOOR) * best + _FLOOR * even
        bound = search.bounds @ budget
        lower = float(bound.min(initial=np.inf))
        live = np.flatnonzero((bound < (1.0 - TOLERANCE) * upper) & ~search.points)
        if not len(live) or len(bound) > _LIMIT:
            return Maximin(min(lower, upper), upper, budget)
        if len(live) > _BATCH:
            live = live[np.argpartition(bound[live], _BATCH)[:_BATCH]]
        found = search.halve(live, budget, upper)


class _Search:
    """A cover of the alternatives that gets finer.

    A row of ``bounds`` holds, for one cell, the least information against it that a unit of cost
    buys if spent on each group; ``points`` marks cells too small to halve.
    """

    def __init__(self, alternatives: Alternatives, r: Array, costs: Array) -> None:
        self._alternatives, self._r, self._costs = alternatives, r, costs
        cells = alternatives.start()
        rows, full = self._rows(cells)
        self._cells, self.bounds = cells.take(full), rows[full]

    @property
    def points(self) -> Flags:
        """The cells that count as one alternative each."""
        return _are_points(self._cells)

    def first(self) -> Array:
        """Return the alternatives in the middles of the first cells."""
        rows, full = self._rows(self._cells.middle)
        return rows[full]

    def halve(self, live: Ints, budget: Array, upper: float) -> Array:
        """Halve some cells and return alternatives in their halves."""
        halves, bounds = self._best_halves(self._cells.take(live), budget, upper)
        rest = np.ones(len(self._cells), dtype=bool)
        rest[live] = False
        self._cells = self._cells.take(rest).join(halves)
        self.bounds = np.concatenate([self.bounds[rest], bounds])
        rows, full = self._rows(halves.middle)
        point = _are_points(halves)
        return np.concatenate([rows[full & ~point], bounds[point]])

    def _best_halves(self, cells: Cover, budget: Array, upper: float) -> tuple[Cover, Array]:
        """Halve every cell along the level that lifts its bound most; leave empty halves out.

        Often one rate alone decides and the other's level may be anything in a range: halving
        along that one would multiply cells for nothing.
        """
        width = (cells.high - cells.low).T
        choices = [cells.halves(np.full(len(cells), d)) for d in range(len(width))]
        rows, full = zip(*map(self._rows, choices), strict=True)
        lift = np.array(
            [
                np.where(f, np.minimum(x @ budget, upper), upper)
                for x, f in zip(rows, full, strict=True)
            ]
        )
        lift = lift[:, : len(cells)] + lift[:, len(cells) :]
        lift[width <= _RESOLUTION] = -1.0
        leading = lift >= lift.max(axis=0) * (1.0 - 1e-6)
        dimension = np.where(leading, width, -1.0).argmax(axis=0)
        both = np.tile(dimension, 2)
        parts = [f & (both == d) for d, f in enumerate(full)]
        halves = [choice.take(part) for choice, part in zip(choices, parts, strict=True)]
        bounds = [x[part] for x, part in zip(rows, parts, strict=True)]
        return halves[0].join(*halves[1:]), np.concatenate(bounds)

    def _rows(self, cells: Cover) -> tuple[Array, Flags]:
        """Return what a unit of cost per group buys against each cell, and which are not empty."""
        start, end = self._alternatives.boxes(cells)
        full = np.asarray((start <= end).all(axis=1))
        known = self._costs == 0.0
        full &= ((start <= self._r) & (self._r <= end))[:, known].all(axis=1)
        information = _kl(self._r, np.minimum(np.maximum(self._r, start), np.maximum(end, 0.0)))
        information[:, known] = 0.0
        return information / np.where(known, 1.0, self._costs), full


class _Program:
    """``max v`` with ``rows @ budget >= v`` over budgets that sum to 1, for a growing pool."""

    def __init__(self, groups: int) -> None:
        self._pool = np.empty((0, groups))
        self._active = np.empty(0, dtype=np.intp)

    def offer(self, rows: Array) -> None:
        """Add alternatives; those of infinite information cost nothing to refute."""
        self._pool = np.concatenate([self._pool, rows[np.isfinite(rows).all(axis=1)]])

    def solve(self, even: Array) -> tuple[Array, float]:
        """Return the best budget and an upper bound of the value; only a few rows ever matter."""
        budget, upper, slack = even, np.inf, 1e-5
        while True:
            value = self._pool @ budget
            if value.min(initial=np.inf) >= (1.0 - slack) * upper:
                return budget, upper
            low = np.argsort(value)[:_CUTS]
            self._active = np.union1d(self._active, low[value[low] < upper])
            budget, upper = _best_mixture(self._pool[self._active], even > 0.0)


def _best_mixture(rows: Array, paid: Flags) -> tuple[Array, float]:
    """Solve the linear program; the value is its dual's, a bound however the solver rounds."""
    from scipy.optimize import linprog

    scale = float(rows.max(axis=1).min())
    if scale == 0.0:
        return paid / paid.sum(), 0.0
    count, groups = rows.shape
    answer = linprog(
        np.append(np.zeros(groups), -1.0),
        A_ub=np.column_stack([-rows / scale, np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(groups), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0.0, 1.0 if can else 0.0) for can in paid] + [(0.0, None)],
        method="highs",
    )
    if answer.x is None:
        raise EquipoiseError(f"the linear program behind C* has no solution: {answer.message}")
    budget = np.maximum(answer.x[:groups], 0.0)
    mixture = np.maximum(-answer.ineqlin.marginals, 0.0)
    return budget / budget.sum(), float((mixture @ rows / mixture.sum()).max())


def _are_points(cells: Cover) -> Flags:
    return np.asarray((cells.high - cells.low <= _RESOLUTION).all(axis=1))


def _kl(r: Array, lam: Array) -> Array:
    """Return the relative entropy of coins, with 0 log 0 = 0 and infinity where lam rules r out."""
    from scipy.special import rel_entr

    return np.maximum(rel_entr(r, lam) + rel_entr(1.0 - r, 1.0 - lam), 0.0)
