"""The most information that a unit of cost buys against every alternative, certified.

``D(w) = inf over alternatives of sum_a w_a kl(r_a, lam_a)`` is concave in the labels ``w_a`` that a
unit of cost buys, being a minimum of linear functions. Its maximum is enclosed from both sides:

- above by finitely many alternatives found so far: a linear program whose dual is a mixture of
  them, and any mixture bounds D;
- below by cells that cover all alternatives, each bounded by the outer box of its cell.

Cells that may still lie below the program's value are halved, and the alternatives in their middles
join the program, until both sides agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.special import rel_entr

from equipoise._arrays import Array, Flags, Ints
from equipoise.bounds.alternatives import Alternatives, Cover
from equipoise.errors import EquipoiseError

GAP_TOLERANCE = 1e-3  # relative distance of the two sides
_BUDGET_FLOOR = 1e-4  # of the budget, shared by all groups, so that an infinite kl is never times 0
_RESOLUTION = 1e-8  # levels closer than this are one; what gamma = 0 means in floating point
_CELLS_AT_ONCE = 2048  # cells halved at a time
_MAX_CELLS = 1_000_000  # cells in memory; beyond it the two sides are returned as they stand
_CUTS_AT_ONCE = 24  # alternatives that join the linear program at a time
_PROGRAM_SLACK = 1e-5  # relative distance of the program's two sides
_NEGLIGIBLE = (
    1e-13  # of the largest information: nearer worlds count as ones that nothing tells apart
)


class Maximin(NamedTuple):
    """``lower <= max D <= upper``, and the budget shares at which D is at least ``lower``.

    Both are infinite if there is no alternative.
    """

    lower: float
    upper: float
    budget: Array


def maximin(alternatives: Alternatives, r: Array, costs: Array) -> Maximin:
    """Maximise ``D(w)`` over ``w >= 0`` with ``sum_a w_a c_a = 1``.

    A group whose labels cost nothing is taken as known: it gets no budget, and only alternatives
    that agree with it count.
    """
    paid, all_shares = costs > 0.0, np.zeros(len(costs))
    if not paid.any():
        return Maximin(np.inf, np.inf, all_shares)
    even = np.full(paid.sum(), 1.0 / paid.sum())

    def rows_of(cells: Cover) -> tuple[Array, Flags]:
        """Return what a unit of cost per paid group buys against each cell; which are not empty."""
        start, end = alternatives.boxes(cells)
        full = np.asarray((start <= end).all(axis=1))
        full &= ((start <= r) & (r <= end))[:, ~paid].all(axis=1)
        lam = np.minimum(np.maximum(r, start), np.maximum(end, 0.0))
        return np.maximum(kl(r, lam), 0.0)[:, paid] / costs[paid], full

    pool, active = np.empty((0, len(even))), np.empty(0, dtype=np.intp)
    budget, upper = even, np.inf
    cells = alternatives.start()
    rows, full = rows_of(cells)
    cells, rows = cells[full], rows[full]
    halves, finer = cells, rows
    while True:
        points, (middles, full) = are_points(halves), rows_of(middle_points(halves))
        found = np.concatenate([middles[full & ~points], finer[points]])
        if len(found):
            # Those of infinite information cost nothing to refute.
            pool = np.concatenate([pool, found[np.isfinite(found).all(axis=1)]])
            best, upper, active = best_budget(pool, active, even)
            budget = (1.0 - _BUDGET_FLOOR) * best + _BUDGET_FLOOR * even
        bound = rows @ budget
        lower = float(bound.min(initial=np.inf))
        live = np.flatnonzero((bound < (1.0 - GAP_TOLERANCE) * upper) & ~are_points(cells))
        if not len(live) or len(bound) > _MAX_CELLS:
            all_shares[paid] = budget
            return Maximin(min(lower, upper), upper, all_shares)
        if len(live) > _CELLS_AT_ONCE:
            live = live[np.argpartition(bound[live], _CELLS_AT_ONCE)[:_CELLS_AT_ONCE]]
        halves, finer = _best_halves(rows_of, cells[live], budget, upper)
        cells = np.concatenate([np.delete(cells, live), halves])
        rows = np.concatenate([np.delete(rows, live, axis=0), finer])


def _best_halves(
    rows_of: Callable[[Cover], tuple[Array, Flags]], cells: Cover, budget: Array, upper: float
) -> tuple[Cover, Array]:
    """Halve every cell along the level that lifts its bound most; leave empty halves out.

    Often one rate alone decides and the other's level may be anything in a range: halving
    along that one would multiply cells for nothing.
    """
    widths, middles, halves_by_level = (cells["high"] - cells["low"]).T, middle_points(cells), []
    for level in range(len(widths)):
        left, right = cells.copy(), cells.copy()
        left["high"][:, level] = right["low"][:, level] = middles["low"][:, level]
        halves_by_level.append(np.concatenate([left, right]))
    rows_by_level, is_full = zip(*map(rows_of, halves_by_level), strict=True)
    bounds_after = np.where(is_full, np.minimum(np.stack(rows_by_level) @ budget, upper), upper)
    bounds_after = bounds_after[:, : len(cells)] + bounds_after[:, len(cells) :]
    bounds_after[widths <= _RESOLUTION] = -1.0
    is_best = bounds_after >= bounds_after.max(axis=0) * (1.0 - 1e-6)
    best_level = np.where(is_best, widths, -1.0).argmax(axis=0)
    is_chosen = is_full & (np.tile(best_level, 2) == np.arange(len(widths))[:, None])
    return np.stack(halves_by_level)[is_chosen], np.stack(rows_by_level)[is_chosen]


def middle_points(cells: Cover) -> Cover:
    """Return the single levels in the middle."""
    points = cells.copy()
    points["low"] = points["high"] = (cells["low"] + cells["high"]) / 2.0
    return points


def are_points(cells: Cover) -> Flags:
    """Return which cells are too small to halve: each counts as one alternative."""
    return np.asarray((cells["high"] - cells["low"] <= _RESOLUTION).all(axis=1))


def best_budget(pool: Array, active: Ints, even: Array) -> tuple[Array, float, Ints]:
    """Maximise ``min(pool @ budget)`` over budgets that sum to 1: only a few rows ever matter.

    Return the best budget, an upper bound of the value, and the rows that matter, which begin with
    those that did before the pool grew.
    """
    budget, upper = even, np.inf
    while (values := pool @ budget).min(initial=np.inf) < (1.0 - _PROGRAM_SLACK) * upper:
        lowest = np.argsort(values)[:_CUTS_AT_ONCE]
        active = np.union1d(active, lowest[values[lowest] < upper])
        budget, upper = solve_program(pool[active])
    return budget, upper, active


def solve_program(rows: Array) -> tuple[Array, float]:
    """Solve the linear program; return the dual's value, a bound however the solver rounds."""
    (count, groups), scale = rows.shape, float(rows.max(axis=1).min())
    if scale <= _NEGLIGIBLE * rows.max():
        return np.full(groups, 1.0 / groups), 0.0
    solution = linprog(
        np.append(np.zeros(groups), -1.0),
        A_ub=np.column_stack([-rows / scale, np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(groups), 0.0)[None, :],
        b_eq=[1.0],
    )
    if solution.x is None:
        raise EquipoiseError(f"the linear program behind C* has no solution: {solution.message}")
    budget = np.maximum(solution.x[:groups], 0.0)
    mixture = np.maximum(-solution.ineqlin.marginals, 0.0)
    return budget / budget.sum(), float((mixture @ rows / mixture.sum()).max())


def kl(p: float | Array, q: float | Array) -> Array:
    """Return kl(p, q): 0 log 0 = 0, and infinite where q rules p out."""
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))
