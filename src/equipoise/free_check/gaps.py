"""The least and the largest gap as every group's unknown r ranges over its limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from equipoise._arrays import Array, Flags
from equipoise.comparison import Block, Comparison, GapScale, as_comparison
from equipoise.finding import Interval, gap_interval
from equipoise.free_check.assumptions import RangesOfR
from equipoise.rates import RATES, Band, Bands

_NARROWEST = 1e-7  # cells of levels are not halved any further
_MOST_CELLS = 100_000


def gap_bounds(
    bands: Bands,
    boxes: RangesOfR,
    *,
    compare: str | Comparison = "difference",
    tolerance: float = 1e-6,
) -> tuple[float, float]:
    """Return certified bounds of the gap as every r ranges over its box.

    The lower bound is at most the infimum, and within ``tolerance`` of it for one or two rates.
    """
    alone = gap_interval(rate_intervals(bands, boxes), compare)
    floor, ceiling = alone.lower, alone.upper
    for pair in _pairs_of_rates(bands, boxes, compare):
        if pair.exceeds(floor + tolerance):  # mostly it does not: one rate alone decides
            floor, largest = floor + tolerance, ceiling
            while largest - floor > tolerance:
                middle = (floor + largest) / 2.0
                floor, largest = (middle, largest) if pair.exceeds(middle) else (floor, middle)
    return min(floor, 1.0), min(ceiling, 1.0)


def _pairs_of_rates(
    bands: Bands, boxes: RangesOfR, compare: str | Comparison
) -> Iterator[_TwoRates]:
    names = [*next(iter(bands.values()))]
    asked = as_comparison(compare).resolve(names)
    for block, (one, other) in product(asked.blocks, combinations(bands, 2)):
        groups = [names[at] for at in block.groups]
        start, end = np.array([boxes[group] for group in groups]).T
        first = Band.stack([bands[one][group] for group in groups])
        second = Band.stack([bands[other][group] for group in groups])
        yield _TwoRates(RATES[one].trend < 0, first, second, start, end, block, asked.scale)


def rate_intervals(bands: Bands, boxes: RangesOfR) -> dict[str, dict[str, Interval]]:
    """Return the range of every group's rates as r ranges over its box."""
    return {
        rate: {group: Interval(*band.rate_range(*boxes[group])) for group, band in by_group.items()}
        for rate, by_group in bands.items()
    }


@dataclass(frozen=True)
class _TwoRates:
    """Two rates, each of all groups of a block (bands of arrays), as every r ranges over a box.

    Each group's r ties its two rates together. The first rate can keep to a gap d where, for some
    level t, every group's rate fits between t and d above it (against a reference, t is its rate).
    Levels are cut into cells. For a cell the range is that of its lowest t to d above its highest;
    if d is impossible even so, it is for every t of the cell, and else the cell is halved.
    """

    falling: bool  # the first one
    first: Band
    second: Band
    start: Array
    end: Array
    block: Block
    scale: GapScale

    def exceeds(self, gap: float) -> bool:
        """Say whether one of the gaps is certainly larger than ``gap``, whatever r in the boxes."""
        edges = np.linspace(0.0, 1.0, 65)
        low, high = edges[:-1], edges[1:]
        while True:
            middle = (low + high) / 2.0
            if self._possible(middle, middle, gap).any():
                return False
            live = self._possible(low, high, gap)
            if not live.any():
                return True
            if (high - low).max() < _NARROWEST or live.sum() > _MOST_CELLS:
                return False
            low, high = np.append(low[live], middle[live]), np.append(middle[live], high[live])

    def _possible(self, t_low: Array, t_high: Array, d: float) -> Flags:
        """Say for which cells of levels both gaps may be at most d."""
        ranges = self.block.rate_ranges(self.scale, t_low, t_high, d)
        since, until = self.first.r_range(*ranges, falling=self.falling)
        since, until = np.maximum(self.start, since), np.minimum(self.end, until)
        at = np.clip(np.stack([since, until]), 0.0, 1.0)
        lowest, highest = self.second.low.value(at), self.second.high.value(at)
        gap = self.block.least_gap(self.scale, lowest.min(axis=0), highest.max(axis=0))
        return np.asarray((since <= until).all(axis=-1) & (gap <= d))
