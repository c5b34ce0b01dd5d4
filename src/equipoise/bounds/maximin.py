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

from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from equipoise._arrays import Array, Flags, Ints
from equipoise.bounds.alternatives import (
    LEVEL_RESOLUTION,
    Alternatives,
    Cover,
    are_points,
    halve_along,
    middle_points,
)
from equipoise.errors import EquipoiseError

GAP_TOLERANCE = 1e-3  # relative distance of the two sides
_BUDGET_FLOOR = 1e-4  # of the budget, shared by all groups, so that an infinite kl is never times 0
_CELLS_AT_ONCE = 2048  # cells halved at a time
_MAX_CELLS = 1_000_000  # cells in memory; beyond it the two sides are returned as they stand
_CUTS_AT_ONCE = 24  # alternatives that join the linear program at a time
_PROGRAM_SLACK = 1e-5  # relative distance of the program's two sides
_NEGLIGIBLE = 1e-13  # of the largest information: no label tells such near worlds apart


class Maximin(NamedTuple):
    """``lower <= max D <= upper``, and the budget shares at which D is at least ``lower``.

    Both are infinite if there is no alternative.
    """

    lower: float
    upper: float
    budget: Array

    @property
    def relative_width(self) -> float:
        """How far the two sides are apart, as a share of the upper one."""
        return 0.0 if self.lower == self.upper else 1.0 - self.lower / self.upper


def maximin(alternatives: Alternatives, r: Array, costs: Array) -> Maximin:
    """Maximise ``D(w)`` over ``w >= 0`` with ``sum_a w_a c_a = 1``.

    A group whose labels cost nothing is taken as known: it gets no budget, and only alternatives
    that agree with it count.

    Parameters
    ----------
    alternatives
        The worlds that must be told from the true one.
    r
        The true share of outcome 1 among the denied of each group.
    costs
        What a label of each group costs on average.
    """
    is_paid = costs > 0.0
    if not is_paid.any():
        return Maximin(np.inf, np.inf, np.zeros(len(costs)))
    search = _Search(alternatives, r, costs)
    while search.has_open_cells():
        search.halve_cells()
    budget = np.zeros(len(costs))
    budget[is_paid] = search.budget
    return Maximin(min(search.lower, search.upper), search.upper, budget)


class _Search:
    """The two sides of the maximum, and the cells that keep them apart.

    Attributes
    ----------
    budget
        The paid groups' shares of the cost by which the cells are judged.
    upper
        A bound of ``D`` at every budget, by the alternatives found so far.
    lower
        A bound of ``D`` at this budget, by the cells.
    """

    def __init__(self, alternatives: Alternatives, r: Array, costs: Array) -> None:
        self._alternatives = alternatives
        self._r = r
        self._costs = costs
        self._is_paid = costs > 0.0
        n_paid = int(self._is_paid.sum())
        self._even = np.full(n_paid, 1.0 / n_paid)
        # Alternatives that were found, and which of them ever mattered to the linear program.
        self._pool = np.empty((0, n_paid))
        self._active = np.empty(0, dtype=np.intp)
        self.budget = self._even
        self.upper = np.inf
        cells = alternatives.initial_cover()
        information, is_full = self._information_in(cells)
        self._cells = cells[is_full]
        self._information = information[is_full]  # per paid group and unit of cost, a row per cell
        self._learn_from(self._cells, self._information)

    def has_open_cells(self) -> bool:
        """Whether a cell that can be halved may still lie below the upper side."""
        return len(self._open_cells()) > 0 and len(self._cells) <= _MAX_CELLS

    @property
    def lower(self) -> float:
        return float(self._bounds().min(initial=np.inf))

    def halve_cells(self) -> None:
        """Halve the cells that bound the maximum least, and learn from their middles."""
        chosen = self._open_cells()
        if len(chosen) > _CELLS_AT_ONCE:
            lowest = np.argpartition(self._bounds()[chosen], _CELLS_AT_ONCE)[:_CELLS_AT_ONCE]
            chosen = chosen[lowest]
        halves, information = self._best_halves(self._cells[chosen])
        self._cells = np.concatenate([np.delete(self._cells, chosen), halves])
        remaining = np.delete(self._information, chosen, axis=0)
        self._information = np.concatenate([remaining, information])
        self._learn_from(halves, information)

    def _bounds(self) -> Array:
        return np.asarray(self._information @ self.budget)

    def _open_cells(self) -> Ints:
        is_below = self._bounds() < (1.0 - GAP_TOLERANCE) * self.upper
        return np.flatnonzero(is_below & ~are_points(self._cells))

    def _information_in(self, cells: Cover) -> tuple[Array, Flags]:
        """Return what a unit of cost per paid group buys against each cell; which are not empty."""
        start, end = self._alternatives.boxes(cells)
        is_full = np.asarray((start <= end).all(axis=1))
        agrees = (start <= self._r) & (self._r <= end)
        is_full &= agrees[:, ~self._is_paid].all(axis=1)
        # kl(r, .) rises on both sides of r, so it is least at the point of the box nearest to r.
        nearest = np.minimum(np.maximum(self._r, start), np.maximum(end, 0.0))
        information = np.maximum(kl(self._r, nearest), 0.0)
        return information[:, self._is_paid] / self._costs[self._is_paid], is_full

    def _learn_from(self, cells: Cover, information: Array) -> None:
        """Let the alternatives in the middles of cells join the linear program."""
        is_point = are_points(cells)
        at_middles, is_full = self._information_in(middle_points(cells))
        # A cell that is a point is its own middle, so its information is there already.
        alternatives = np.concatenate([at_middles[is_full & ~is_point], information[is_point]])
        if not len(alternatives):
            return
        # Alternatives of infinite information cost nothing to refute.
        is_finite = np.isfinite(alternatives).all(axis=1)
        self._pool = np.concatenate([self._pool, alternatives[is_finite]])
        best, self.upper, self._active = best_budget(self._pool, self._active, self._even)
        # Every group keeps a little, so that an infinite kl is never multiplied by 0.
        self.budget = (1.0 - _BUDGET_FLOOR) * best + _BUDGET_FLOOR * self._even

    def _best_halves(self, cells: Cover) -> tuple[Cover, Array]:
        """Halve every cell along the level that lifts its bound most; leave empty halves out.

        Often one rate alone decides and the other's level may be anything in a range: halving
        along that one would multiply cells for nothing.
        """
        widths = (cells["high"] - cells["low"]).T  # a row per level
        halves = np.empty((len(widths), 2 * len(cells)), dtype=cells.dtype)
        for level in range(len(widths)):
            halves[level] = np.concatenate(halve_along(cells, level))
        information, is_full = self._information_in(halves.ravel())
        information = information.reshape(*halves.shape, -1)  # (levels, halves, paid groups)
        is_full = is_full.reshape(halves.shape)
        bounds = np.where(is_full, np.minimum(information @ self.budget, self.upper), self.upper)
        lift = bounds[:, : len(cells)] + bounds[:, len(cells) :]
        lift[widths <= LEVEL_RESOLUTION] = -1.0
        # Of levels that lift about equally the widest one is halved.
        is_leading = lift >= lift.max(axis=0) * (1.0 - 1e-6)
        best_level = np.where(is_leading, widths, -1.0).argmax(axis=0)
        is_chosen = is_full & (np.tile(best_level, 2) == np.arange(len(widths))[:, None])
        return halves[is_chosen], information[is_chosen]


def best_budget(pool: Array, active: Ints, even: Array) -> tuple[Array, float, Ints]:
    """Maximise ``min(pool @ budget)`` over budgets that sum to 1: only a few rows ever matter.

    Return the best budget, an upper bound of the value, and the rows that matter, which begin with
    those that did before the pool grew.
    """
    budget = even
    upper = np.inf
    values = pool @ budget
    while values.min(initial=np.inf) < (1.0 - _PROGRAM_SLACK) * upper:
        lowest = np.argsort(values)[:_CUTS_AT_ONCE]
        active = np.union1d(active, lowest[values[lowest] < upper])
        budget, upper = solve_program(pool[active])
        values = pool @ budget
    return budget, upper, active


def solve_program(rows: Array) -> tuple[Array, float]:
    """Return the best budget for a few alternatives, and a bound of what it buys.

    The linear program maximises the least information over ``rows`` (alternatives, groups). The
    bound is the dual's value, which holds however the solver rounds.
    """
    from scipy.optimize import linprog  # takes longer to load than to solve

    n_rows, n_groups = rows.shape
    scale = float(rows.max(axis=1).min())
    if scale <= _NEGLIGIBLE * rows.max():
        return np.full(n_groups, 1.0 / n_groups), 0.0
    # The unknowns are the groups' shares of the budget and, last, the least information.
    solution = linprog(
        np.append(np.zeros(n_groups), -1.0),
        A_ub=np.column_stack([-rows / scale, np.ones(n_rows)]),
        b_ub=np.zeros(n_rows),
        A_eq=np.append(np.ones(n_groups), 0.0)[None, :],
        b_eq=[1.0],
    )
    if solution.x is None:
        raise EquipoiseError(f"the linear program behind C* has no solution: {solution.message}")
    budget = np.maximum(solution.x[:n_groups], 0.0)
    mixture = np.maximum(-solution.ineqlin.marginals, 0.0)
    mixed_information = mixture @ rows / mixture.sum()
    return budget / budget.sum(), float(mixed_information.max())


def kl(p: float | Array, q: float | Array) -> Array:
    """Return kl(p, q): 0 log 0 = 0, and infinite where q rules p out."""
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))
