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

from equipoise._arrays import Array
from equipoise.comparison import Block, GapScale, ResolvedComparison
from equipoise.rates import Band, Curve

GroupCurves = tuple[Curve, bool]
"""One rate of all groups, each a curve in its own unknown (curves of arrays); whether it falls."""
Cover = NDArray[np.void]
"""Cells: the ``piece`` each belongs to, the least (``low``) and largest (``high``) levels in it."""


@dataclass(frozen=True)
class Alternatives:
    """A set of unknowns as a union of sliding boxes; see :func:`unfair_set`, :func:`fair_set`.

    In a box of a piece, at levels t, rate i of group g is at least ``least[piece, i, g]`` above its
    level and at most ``most[piece, i, g]`` above it; NaN where it may be anything. A piece has as
    many levels as ``levels``, each in [0, top] and first cut into ``steps``.
    """

    rates: Sequence[GroupCurves]
    scale: GapScale
    least: Array
    most: Array
    levels: int
    top: float
    steps: int

    def start(self) -> Cover:
        """Return cells that cover the set."""
        edges = np.linspace(0.0, self.top, self.steps + 1)
        corners = np.array(list(product(range(self.steps), repeat=self.levels)), dtype=np.intp)
        level_shape = (self.levels,)
        fields = [
            ("piece", np.intp),
            ("low", np.float64, level_shape),
            ("high", np.float64, level_shape),
        ]
        cells = np.zeros((len(self.least), len(corners)), dtype=fields)
        cells["piece"] = np.arange(len(self.least))[:, None]
        cells["low"], cells["high"] = edges[corners], edges[corners + 1]
        return cells.ravel()

    def boxes(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends of every group's ``lam`` (n, K); start > end where there is none."""
        shape = (len(cells), self.least.shape[2])
        start, end = np.zeros(shape), np.ones(shape)
        for rate_index, (curves, falls) in enumerate(self.rates):
            level = min(rate_index, self.levels - 1)
            least, most = (
                self.least[cells["piece"], rate_index],
                self.most[cells["piece"], rate_index],
            )
            low = self.scale.above(cells["low"][:, level, None], least)
            high = self.scale.above(cells["high"][:, level, None], most)
            low[np.isnan(least)], high[np.isnan(most)] = -np.inf, np.inf
            first, last = Band(curves, curves).r_range(low, high, falling=falls)
            start, end = np.maximum(start, first), np.minimum(end, last)
        return start, end


def unfair_set(
    rates: Sequence[GroupCurves], gap: float, compare: ResolvedComparison
) -> Alternatives:
    """Return all unknowns for which some rate of a pair is at least ``gap`` (> 0) apart."""
    pairs = compare.pairs
    least, most = np.full((2, len(pairs) * len(rates), len(rates), np.size(rates[0][0].a)), np.nan)
    for piece, ((above, below), rate_index) in enumerate(product(pairs, range(len(rates)))):
        least[piece, rate_index, above], most[piece, rate_index, below] = gap, 0.0
    return Alternatives(rates, compare.scale, least, most, levels=1, top=1.0 - gap, steps=16)


def fair_set(
    rates: Sequence[GroupCurves], gap: float, block: Block, scale: GapScale
) -> Alternatives:
    """Return all unknowns for which no rate of a block's pairs is more than ``gap`` apart."""
    least, most = np.full((2, 1, len(rates), np.size(rates[0][0].a)), np.nan)
    members = list(block.groups)
    if block.direction != "above":
        least[..., members] = 0.0 if block.reference is None else scale.opposite(gap)
    if block.direction != "below":
        most[..., members] = gap
    if block.reference is not None:
        least[..., block.reference] = most[..., block.reference] = 0.0
    steps = 32 if len(rates) == 1 else 16
    return Alternatives(rates, scale, least, most, levels=len(rates), top=1.0, steps=steps)
