"""C*_n: the least that any audit with n past rows can cost on average.

With n past rows an audit knows the shares p of the past data only so well. An alternative is a
population (p', r') for which the true answer is wrong, and an audit can tell it from the truth only
if past data and labels together carry the needed information I. So

    C*_n = min sum_a c_a N_a  such that  n KL(p, p') + sum_a N_a kl(r_a, r'_a) >= I

for every alternative. Past data of a group are a share of the n rows, so the past's term is
``sum_a n_a KL(p_a, p'_a)``. Alternatives are a union over levels of the rates, as in
:mod:`equipoise.bounds.alternatives`, and at given levels the groups are independent of each other:
:mod:`equipoise.bounds.nearest_population` finds the nearest population of each.

The labels N are enclosed from both sides, as in :mod:`equipoise.bounds.maximin`:

- from below by a linear program over alternatives found so far. Each is a real alternative, so its
  value is never above C*_n, whatever the search has missed;
- from above by cells of levels that cover all alternatives. The nearest population whose rates lie
  in the outer range of a cell bounds the cell.

Cells that may still hold an alternative with too little information are halved.

No number of labels is enough exactly if past data alone, with r known, carry less than I against
some alternative. They carry ``n D`` for a D that does not depend on n, so the least number of rows
with which an audit can decide is ``I / D``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.bounds.alternatives import (
    Alternatives,
    Cover,
    are_points,
    halve_along,
    middle_points,
)
from equipoise.bounds.nearest_population import GroupPopulation
from equipoise.errors import EquipoiseError

TOLERANCE = 1e-3  # of the needed information, by which labels may miss it against some alternative
_LABEL_FLOOR = (
    1e-4  # of the cost, shared by all groups: without labels a group's r' may be anything
)
_CUTS_AT_ONCE = 24  # alternatives of a block that join the linear program at a time
_CELLS_AT_ONCE = 1024  # of a block that are halved at a time
_MAX_CELLS = 60_000  # of a block; beyond it the result is returned with the certificate it has
_MAX_ROUNDS = 600


class FiniteBound(NamedTuple):
    """The least cost of a verdict with a finite past.

    Attributes
    ----------
    cost
        C*_n, rounded down; infinite if no number of labels is enough.
    labels
        The labels of each group with which it is reached.
    certificate
        The share of the needed information that these labels may miss.
    """

    cost: float
    labels: Array
    certificate: float


def least_cost_with_history(
    blocks: Sequence[Alternatives],
    populations: Sequence[GroupPopulation],
    prices: Array,
    information: float,
    start: Array,
) -> FiniteBound:
    """Return the least cost of labels with which past data and labels carry enough information.

    Parameters
    ----------
    blocks
        The alternatives; of several sets, which share no group, an alternative is one of each.
    populations
        The groups as they are, with their past rows.
    prices
        What a label of each group costs on average; of a group whose labels cost nothing r is
        taken as known.
    information
        What is needed, in nats.
    start
        Labels to begin with, such as those that are enough with an unlimited past.
    """
    is_paid = prices > 0.0
    no_labels = np.zeros(len(prices))
    if past_information(blocks, populations) < information:
        return FiniteBound(np.inf, no_labels, 0.0)
    if not is_paid.any():
        return FiniteBound(0.0, no_labels, 0.0)
    search = _LabelSearch(blocks, populations, prices, information, start)
    # Halving waits until the program has learnt every alternative that is known.
    for _ in range(_MAX_ROUNDS):
        if not search.learn() and not search.halve():
            break
    labels = search.labels if search.cost > 0.0 else no_labels
    return FiniteBound(search.cost, labels, search.missed_share)


def past_information(
    blocks: Sequence[Alternatives], populations: Sequence[GroupPopulation]
) -> float:
    """Return the least information (nats) of past data against an alternative, r being known.

    It is the information against a real alternative; none has less than 1 - :data:`TOLERANCE` of
    it. It is infinite if there is no alternative with the true r.
    """
    # Without limit of labels r is known, so that past data alone have to tell the truth apart.
    known_r = np.full(len(populations), np.inf)
    total = 0.0
    for block in blocks:
        cover = _Cover(block, populations, known_r)
        while cover.halve((1.0 - TOLERANCE) * cover.least_total):
            pass
        total += cover.least_total
    return total


class _LabelSearch:
    """The two sides of C*_n: a linear program below, and covers of the alternatives above.

    Attributes
    ----------
    cost
        The value of the linear program.
    """

    def __init__(
        self,
        blocks: Sequence[Alternatives],
        populations: Sequence[GroupPopulation],
        prices: Array,
        information: float,
        start: Array,
    ) -> None:
        self._is_paid = prices > 0.0
        self._prices = prices[self._is_paid]
        self._information = information
        self._slack = TOLERANCE * information / len(blocks)
        # The information that is to be reached in each block, of which the program decides. At
        # first every alternative counts, or labels that are enough would teach the program nothing.
        self._targets = np.full(len(blocks), np.inf)
        self._labels = np.where(self._is_paid, np.maximum(start, 1.0), np.inf)
        self._covers = [_Cover(block, populations, self._labels) for block in blocks]
        self._program = _Program(self._prices, len(blocks), information)
        self.cost = 0.0

    @property
    def labels(self) -> Array:
        """The labels of each group; 0 where they cost nothing."""
        return np.where(self._is_paid, self._labels, 0.0)

    @property
    def missed_share(self) -> float:
        """The share of the needed information that the labels may miss."""
        reached = 0.0
        for cover, target in zip(self._covers, self._targets, strict=True):
            reached += min(cover.lower, target)
        return max(0.0, 1.0 - reached / self._information)

    def learn(self) -> bool:
        """Solve the program with alternatives of too little information; False if none is."""
        has_new = False
        for index, cover in enumerate(self._covers):
            past, label = cover.find_alternatives(self._targets[index] - self._slack / 2.0)
            has_new |= self._program.add(index, past, label[:, self._is_paid])
        if not has_new:
            return False
        paid_labels, self._targets = self._program.solve()
        self.cost = float(self._prices @ paid_labels)
        # Without any label a group's r' may be anything, so every group keeps a few.
        floor_cost = _LABEL_FLOOR * max(self.cost, float(self._prices.sum())) / len(self._prices)
        self._labels = np.full(len(self._is_paid), np.inf)
        self._labels[self._is_paid] = paid_labels + floor_cost / self._prices
        for cover, target in zip(self._covers, self._targets, strict=True):
            cover.move_to(self._labels, target)
        return True

    def halve(self) -> bool:
        """Halve cells that may hold alternatives of too little information; False if none may."""
        has_halved = False
        for cover, target in zip(self._covers, self._targets, strict=True):
            has_halved |= cover.halve(target - self._slack)
        return has_halved


class _Program:
    """The linear program over the alternatives found so far.

    Its unknowns are the labels N of the groups that cost something, and the information d_b that is
    reached in each block. It minimises the cost such that ``d_b <= past + N . label`` for every
    alternative of block b, and the d_b add up to what is needed.
    """

    def __init__(self, prices: Array, n_blocks: int, information: float) -> None:
        self._prices = prices
        self._information = information
        self._n_blocks = n_blocks
        self._rows: list[Array] = []
        self._limits: list[float] = []

    def add(self, block: int, past: Array, label: Array) -> bool:
        """Take in alternatives of a block; return whether there were any."""
        for past_part, label_part in zip(past.tolist(), label, strict=True):
            reached = np.zeros(self._n_blocks)
            reached[block] = 1.0
            # d_b - N . label <= past, in the units of the program.
            row = np.concatenate([-label_part * self._unit_labels, reached])
            # The solver takes coefficients that are small against others for 0.
            scale = np.abs(row[: len(label_part)]).max() or 1.0
            self._rows.append(row / scale)
            self._limits.append(past_part / scale)
        return len(past) > 0

    @property
    def _unit_labels(self) -> Array:
        """The labels of each group that count as 1 in the program, of about equal cost."""
        return np.asarray(self._information * 100.0 / self._prices)

    def solve(self) -> tuple[Array, Array]:
        """Return the best labels, and the information that they reach in each block."""
        from scipy.optimize import linprog  # takes longer to load than to solve

        n_groups = len(self._prices)
        costs = np.append(self._prices * self._unit_labels, np.zeros(self._n_blocks))
        all_blocks = np.append(np.zeros(n_groups), -np.ones(self._n_blocks))
        solution = linprog(
            costs,
            A_ub=np.vstack([*self._rows, all_blocks]),
            b_ub=np.append(self._limits, -self._information),
            bounds=[(0.0, None)] * n_groups + [(0.0, self._information)] * self._n_blocks,
        )
        if solution.x is None:
            raise EquipoiseError(
                f"the linear program behind C*_n has no solution: {solution.message}"
            )
        return solution.x[:n_groups] * self._unit_labels, solution.x[n_groups:]


class _Cover:
    """Cells of levels that cover the alternatives of a block, judged at some labels.

    ``_bounds`` has, per cell, a bound of the information against all of its alternatives;
    ``_middles`` what is known of the alternative at the middle of its levels.
    """

    def __init__(
        self, alternatives: Alternatives, populations: Sequence[GroupPopulation], labels: Array
    ) -> None:
        self._alternatives = alternatives
        self._populations = populations
        self._labels = labels
        cells = alternatives.initial_cover()
        bounds = self._judge(cells).total
        # A cell with an infinite bound holds no alternative that labels have to refute.
        self._cells = cells[np.isfinite(bounds)]
        self._bounds = bounds[np.isfinite(bounds)]
        self._middles = self._judge(middle_points(self._cells))

    @property
    def lower(self) -> float:
        """A bound of the information against every alternative of the block."""
        return float(self._bounds.min(initial=np.inf))

    @property
    def least_total(self) -> float:
        """The least information against an alternative that was looked at."""
        return float(self._middles.total.min(initial=np.inf))

    def move_to(self, labels: Array, target: float) -> None:
        """Judge cells at other labels: again only those that may have become too low.

        Information is at least ``x`` times as much with ``x <= 1`` times the labels, so the old
        bounds, reduced by the largest loss of labels, still hold.
        """
        is_paid = np.isfinite(labels)
        loss = min(1.0, float((labels[is_paid] / self._labels[is_paid]).min()))
        self._labels = labels
        self._bounds = loss * self._bounds
        self._middles = self._middles.scaled(loss)
        is_low = self._bounds < target
        self._bounds[is_low] = self._judge(self._cells[is_low]).total
        is_low &= self._bounds < target
        self._middles.replace(is_low, self._judge(middle_points(self._cells[is_low])))

    def find_alternatives(self, target: float) -> tuple[Array, Array]:
        """Return alternatives with too little information: past parts, and a row of label parts."""
        is_low = self._middles.total < target
        is_low &= self._bounds < target
        is_low &= np.isfinite(self._middles.label).all(axis=1)
        low = np.flatnonzero(is_low)
        lowest = low[np.argsort(self._middles.total[low])[:_CUTS_AT_ONCE]]
        return self._middles.past[lowest], self._middles.label[lowest]

    def halve(self, target: float) -> bool:
        """Halve cells whose bound is below a target, lowest first; return whether there were any.

        A cell is halved along the level that lifts its bound most: often one rate alone decides,
        and halving along the other's level would multiply cells for nothing.
        """
        is_open = (self._bounds < target) & ~are_points(self._cells)
        chosen = np.flatnonzero(is_open)
        if not len(chosen) or len(self._cells) > _MAX_CELLS:
            return False
        chosen = chosen[np.argsort(self._bounds[chosen])[:_CELLS_AT_ONCE]]
        halves, bounds = self._best_halves(self._cells[chosen], target)
        has_alternatives = np.isfinite(bounds)
        halves = halves[has_alternatives]
        bounds = bounds[has_alternatives]
        middles = self._judge(middle_points(halves))
        self._cells = np.concatenate([np.delete(self._cells, chosen), halves])
        self._bounds = np.concatenate(
            [np.delete(self._bounds, chosen), bounds[np.isfinite(bounds)]]
        )
        self._middles = self._middles.without(chosen).joined(middles)
        return True

    def _best_halves(self, cells: Cover, target: float) -> tuple[Cover, Array]:
        """Return the halves of cells along their best levels, and their bounds."""
        best_halves = np.concatenate(halve_along(cells, 0))
        best_bounds = self._judge(best_halves).total
        for level in range(1, self._alternatives.levels):
            halves = np.concatenate(halve_along(cells, level))
            bounds = self._judge(halves).total
            cell_is_better = _lift(bounds, target) > _lift(best_bounds, target)
            # The first halves of all cells stand before all second ones; both go with their cell.
            is_better = np.tile(cell_is_better, 2)
            best_halves = np.where(is_better, halves, best_halves)
            best_bounds = np.where(is_better, bounds, best_bounds)
        return best_halves, best_bounds

    def _judge(self, cells: Cover) -> _Judgement:
        """Return what tells the truth from the nearest populations of cells, or of points."""
        lowest, highest = self._alternatives.rate_ranges(cells)
        first_r, last_r = self._alternatives.boxes(cells)
        judgement = _Judgement.empty(len(cells), len(self._populations))
        for group, population in enumerate(self._populations):
            low = lowest[:, :, group]
            high = highest[:, :, group]
            # Against pieces that say nothing of a group it needs no information.
            rows = np.flatnonzero((np.isfinite(low) | np.isfinite(high)).any(axis=1))
            # The answer is expected between the true r, against which labels tell nothing, and the
            # nearest r' of the box, which fits the true p, so that past rows tell nothing.
            likely = (
                np.minimum(population.r, last_r[rows, group]),
                np.maximum(population.r, first_r[rows, group]),
            )
            labels = float(self._labels[group])
            distances = population.distances(labels, low[rows], high[rows], likely)
            judgement.past[rows] += distances.past
            judgement.total[rows] += distances.total
            judgement.label[rows, group] = distances.label
        return judgement


@dataclass
class _Judgement:
    """Information against one alternative, or one cell of them, per row.

    Attributes
    ----------
    past, total
        Of past data, and of past data and labels.
    label
        Of a label of each group: a column per group.
    """

    past: Array
    label: Array
    total: Array

    @classmethod
    def empty(cls, n_cells: int, n_groups: int) -> _Judgement:
        return cls(np.zeros(n_cells), np.zeros((n_cells, n_groups)), np.zeros(n_cells))

    def scaled(self, factor: float) -> _Judgement:
        """Return bounds of the totals after labels were reduced by a factor."""
        return _Judgement(self.past, self.label, factor * self.total)

    def replace(self, rows: Flags, replacement: _Judgement) -> None:
        """Put other rows in the place of some."""
        self.past[rows] = replacement.past
        self.label[rows] = replacement.label
        self.total[rows] = replacement.total

    def without(self, rows: Ints) -> _Judgement:
        return _Judgement(
            np.delete(self.past, rows),
            np.delete(self.label, rows, axis=0),
            np.delete(self.total, rows),
        )

    def joined(self, later_rows: _Judgement) -> _Judgement:
        return _Judgement(
            np.concatenate([self.past, later_rows.past]),
            np.concatenate([self.label, later_rows.label]),
            np.concatenate([self.total, later_rows.total]),
        )


def _lift(bounds: Array, target: float) -> Array:
    """Return how much both halves of each cell bound together, as far as it matters."""
    # A bound above the target settles its half; how far above makes no difference.
    useful = np.minimum(bounds, target)
    half = len(bounds) // 2
    return np.asarray(useful[:half] + useful[half:])
