"""The worlds that an audit must tell from the true one, as unions of sliding boxes.

Write ``lam_a`` for a possible value of group a's unknown ``r_a = P[Y=1 | f=0, a]``. Both wrong
answers are unions of boxes that slide along one or two levels:

- UNFAIR: for some rate, groups a, b and level t, ``rate_b <= t`` and ``rate_a`` is ``gap`` above t;
- FAIR: for some levels, one per rate, every group's rate lies between level and ``gap`` above it
  (against a reference, whose rate is the level, within ``gap`` of it).

When a level ranges over a cell, the box with its ends moved outwards holds all boxes of the cell,
so what is cheapest in it bounds the cell from below; at a single level the box is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array, Flags
from equipoise.comparison import Block, GapScale, ResolvedComparison
from equipoise.rates import Band, Curve

GroupCurves = tuple[Curve, bool]
"""One rate of all groups, each a curve in its own unknown (curves of arrays); whether it falls."""
Cover = NDArray[np.void]
"""Cells: the ``piece`` each belongs to, the least (``low``) and largest (``high``) levels in it."""


LEVEL_RESOLUTION = 1e-8  # levels closer than this are one; what gamma = 0 means in floating point


@dataclass(frozen=True)
class Alternatives:
    """A set of unknowns as a union of sliding boxes; see :func:`unfair_set`, :func:`fair_set`.

    In a box of a piece, at levels t, rate i of group g is at least ``least_above[piece, i, g]``
    above its level and at most ``most_above[piece, i, g]`` above it; NaN where it may be anything.
    A piece has as many levels as ``levels``, each in [0, top] and first cut into ``steps``.
    """

    rates: Sequence[GroupCurves]
    scale: GapScale
    least_above: Array
    most_above: Array
    levels: int
    top: float
    steps: int

    def initial_cover(self) -> Cover:
        """Return cells that cover the set: a grid of levels for every piece."""
        edges = np.linspace(0.0, self.top, self.steps + 1)
        grid = np.array(list(product(range(self.steps), repeat=self.levels)), dtype=np.intp)
        level_shape = (self.levels,)
        fields = [
            ("piece", np.intp),
            ("low", np.float64, level_shape),
            ("high", np.float64, level_shape),
        ]
        n_pieces = len(self.least_above)
        cells = np.zeros((n_pieces, len(grid)), dtype=fields)
        cells["piece"] = np.arange(n_pieces)[:, None]
        cells["low"] = edges[grid]
        cells["high"] = edges[grid + 1]
        return cells.ravel()

    def rate_ranges(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends between which every rate of every group lies somewhere in a cell.

        Both have the shape (cells, rates, groups) and are infinite where a rate may be anything.
        """
        # With one level per piece (UNFAIR) every rate reads that level; else each has its own.
        levels = [min(rate_index, self.levels - 1) for rate_index in range(len(self.rates))]
        least_above = self.least_above[cells["piece"]]
        most_above = self.most_above[cells["piece"]]
        # Levels get an axis for the groups, which share them: (cells, rates, 1).
        lowest = self.scale.above(cells["low"][:, levels, None], least_above)
        highest = self.scale.above(cells["high"][:, levels, None], most_above)
        # NaN would make every comparison false, where "anything" must make it true.
        lowest[np.isnan(least_above)] = -np.inf
        highest[np.isnan(most_above)] = np.inf
        return lowest, highest

    def boxes(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends of every group's ``lam``, of shape (cells, groups).

        The start is above the end where no value of the unknown fits.
        """
        lowest, highest = self.rate_ranges(cells)
        start = np.zeros((len(cells), self.least_above.shape[2]))
        end = np.ones_like(start)
        for rate_index, (curves, falls) in enumerate(self.rates):
            # One curve in place of two, because boxes are drawn at the true free shares.
            band = Band(curves, curves)
            ends = band.r_range(lowest[:, rate_index], highest[:, rate_index], falling=falls)
            first, last = ends
            start = np.maximum(start, first)
            end = np.minimum(end, last)
        return start, end


def halve_along(cells: Cover, level: int) -> tuple[Cover, Cover]:
    """Return the lower and the upper halves of cells along one level."""
    lower = cells.copy()
    upper = cells.copy()
    middles = (cells["low"][:, level] + cells["high"][:, level]) / 2.0
    lower["high"][:, level] = middles
    upper["low"][:, level] = middles
    return lower, upper


def middle_points(cells: Cover) -> Cover:
    """Return the single levels in the middle of cells."""
    points = cells.copy()
    middles = (cells["low"] + cells["high"]) / 2.0
    points["low"] = middles
    points["high"] = middles
    return points


def are_points(cells: Cover) -> Flags:
    """Return which cells are too small to halve: each counts as one alternative."""
    return np.asarray((cells["high"] - cells["low"] <= LEVEL_RESOLUTION).all(axis=1))


def unfair_set(
    rates: Sequence[GroupCurves], gap: float, comparison: ResolvedComparison
) -> Alternatives:
    """Return all unknowns for which some rate of a pair is at least ``gap`` (> 0) apart."""
    n_groups = np.size(rates[0][0].a)
    # One piece per pair and rate; the axes are (pieces, rates, groups).
    shape = (len(comparison.pairs) * len(rates), len(rates), n_groups)
    least_above = np.full(shape, np.nan)
    most_above = np.full(shape, np.nan)
    pieces = product(comparison.pairs, range(len(rates)))
    for piece, ((higher, lower), rate_index) in enumerate(pieces):
        least_above[piece, rate_index, higher] = gap
        most_above[piece, rate_index, lower] = 0.0
    return Alternatives(
        rates, comparison.scale, least_above, most_above, levels=1, top=1.0 - gap, steps=16
    )


def fair_set(
    rates: Sequence[GroupCurves], gap: float, block: Block, scale: GapScale
) -> Alternatives:
    """Return all unknowns for which no rate of a block's pairs is more than ``gap`` apart."""
    n_groups = np.size(rates[0][0].a)
    shape = (1, len(rates), n_groups)  # (pieces, rates, groups)
    least_above = np.full(shape, np.nan)
    most_above = np.full(shape, np.nan)
    members = list(block.groups)  # the others may be anything, so their ends stay NaN
    if block.direction != "above":
        least_above[..., members] = 0.0 if block.reference is None else scale.reversed_gap(gap)
    if block.direction != "below":
        most_above[..., members] = gap
    if block.reference is not None:
        least_above[..., block.reference] = 0.0
        most_above[..., block.reference] = 0.0
    # With two levels a grid as fine would have too many cells to begin with.
    steps = 32 if len(rates) == 1 else 16
    return Alternatives(
        rates, scale, least_above, most_above, levels=len(rates), top=1.0, steps=steps
    )
