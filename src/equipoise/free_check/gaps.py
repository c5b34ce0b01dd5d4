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

_FIRST_PIECES = 64  # into which the rate levels from 0 to 1 are cut at first
_NARROWEST_PIECE = 1e-7  # a narrower piece is not halved any further
_MOST_PIECES = 100_000  # with more of them undecided the search gives up


def gap_bounds(
    bands: Bands,
    r_ranges: RangesOfR,
    *,
    compare: str | Comparison = "difference",
    tolerance: float = 1e-6,
) -> tuple[float, float]:
    """Return certified bounds of the gap as every r ranges over its limits.

    The lower bound is at most the infimum, and within ``tolerance`` of it for one or two rates.

    Parameters
    ----------
    bands
        Rate -> group -> band.
    r_ranges
        Group -> the least and the largest r.
    compare
        How groups are compared.
    tolerance
        How far the lower bound may be below the infimum.
    """
    rate_by_rate = gap_interval(rate_intervals(bands, r_ranges), compare)
    lower = rate_by_rate.lower
    upper = rate_by_rate.upper
    for rate_pair in pairs_of_rates(bands, r_ranges, compare):
        # Mostly one rate alone decides, and two together say nothing more.
        if rate_pair.exceeds(lower + tolerance):
            lower = _raise_lower_bound(rate_pair, lower + tolerance, upper, tolerance)
    return min(lower, 1.0), min(upper, 1.0)


def rate_intervals(bands: Bands, r_ranges: RangesOfR) -> dict[str, dict[str, Interval]]:
    """Return rate -> group -> the range of the rate as the group's r ranges over its limits."""
    intervals: dict[str, dict[str, Interval]] = {}
    for rate, band_by_group in bands.items():
        intervals[rate] = {}
        for group, band in band_by_group.items():
            low, high = band.rate_range(*r_ranges[group])
            intervals[rate][group] = Interval(low, high)
    return intervals


def pairs_of_rates(
    bands: Bands, r_ranges: RangesOfR, compare: str | Comparison
) -> Iterator[RatePair]:
    """Yield every two rates of every block of groups that are compared."""
    names = list(next(iter(bands.values())))
    comparison = as_comparison(compare).resolve(names)
    for block, (first, second) in product(comparison.blocks, combinations(bands, 2)):
        groups = [names[position] for position in block.groups]
        r_low, r_high = np.array([r_ranges[group] for group in groups]).T
        yield RatePair(
            first=Band.stack([bands[first][group] for group in groups]),
            second=Band.stack([bands[second][group] for group in groups]),
            first_is_falling=RATES[first].trend < 0,
            r_low=r_low,
            r_high=r_high,
            block=block,
            scale=comparison.scale,
        )


def _raise_lower_bound(rate_pair: RatePair, lower: float, upper: float, tolerance: float) -> float:
    """Return the largest certified lower bound of the gap between two bounds, by bisection."""
    while upper - lower > tolerance:
        middle = (lower + upper) / 2.0
        if rate_pair.exceeds(middle):
            lower = middle
        else:
            upper = middle
    return lower


@dataclass(frozen=True)
class RatePair:
    """Two rates of all groups of a block, as every group's r ranges over its limits.

    Each group's r ties its two rates together. The first rate can keep to a gap d if there is a
    rate level t such that every group's rate lies between t and d above it (against a reference, t
    is the reference's rate). The levels from 0 to 1 are cut into pieces. In a piece, rates may lie
    between its lowest t and d above its highest t. If the second rate cannot keep to d even then,
    d is impossible for every t of the piece; otherwise the piece is halved.

    The bands, ``r_low`` and ``r_high`` hold arrays, one element per group of the block.
    """

    first: Band
    second: Band
    first_is_falling: bool
    r_low: Array
    r_high: Array
    block: Block
    scale: GapScale

    def exceeds(self, gap: float) -> bool:
        """Say whether one of the two gaps is certainly larger than ``gap``, whatever every r is."""
        edges = np.linspace(0.0, 1.0, _FIRST_PIECES + 1)
        low = edges[:-1]
        high = edges[1:]
        while True:
            middle = (low + high) / 2.0
            # A single level at which both gaps fit is a counterexample.
            if self._may_keep_to(gap, middle, middle).any():
                return False
            is_undecided = self._may_keep_to(gap, low, high)
            if not is_undecided.any():
                return True
            # Giving up is safe: the bound is then lower than it could be, and still holds.
            if (high - low).max() < _NARROWEST_PIECE or is_undecided.sum() > _MOST_PIECES:
                return False
            undecided_middle = middle[is_undecided]
            low = np.append(low[is_undecided], undecided_middle)
            high = np.append(undecided_middle, high[is_undecided])

    def _may_keep_to(self, gap: float, level_low: Array, level_high: Array) -> Flags:
        """Say for which pieces of rate levels both gaps may be at most ``gap``."""
        # Axes from here on: piece, group.
        rate_low, rate_high = self.block.rate_ranges(self.scale, level_low, level_high, gap)
        r_low, r_high = self.first.r_range(rate_low, rate_high, falling=self.first_is_falling)
        r_low = np.maximum(self.r_low, r_low)
        r_high = np.minimum(self.r_high, r_high)
        # Axes: end of the range of r, piece, group. A curve is monotone, so its ends suffice.
        r_ends = np.clip(np.stack([r_low, r_high]), 0.0, 1.0)
        second_low = self.second.low.value(r_ends).min(axis=0)
        second_high = self.second.high.value(r_ends).max(axis=0)
        second_gap = self.block.least_gap(self.scale, second_low, second_high)
        return np.asarray((r_low <= r_high).all(axis=-1) & (second_gap <= gap))
