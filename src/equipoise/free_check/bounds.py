"""What past data bound at a given error level: every group's rates, its r, and the gap.

The first half turns counts into bands of rates and ranges of r. The second half bounds the gap as
every group's unknown r ranges over its limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array, Flags
from equipoise.comparison import Block, Comparison, GapScale, as_comparison
from equipoise.errors import InvalidInput
from equipoise.finding import GroupShares, Interval, gap_interval
from equipoise.free_check.assumptions import Assume, RangesOfR
from equipoise.free_check.deciders import BaseRateBounds, bound_base_rate, decider_band
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.rates import RATES, Band, Bands, band_from_counts, clopper_pearson, good_share

_FIRST_PIECES = 64  # into which the rate levels from 0 to 1 are cut at first
_NARROWEST_PIECE = 1e-7  # a narrower piece is not halved any further
_MOST_PIECES = 100_000  # with more of them undecided the search gives up


@dataclass(frozen=True)
class CheckInputs:
    """What an answer from past data alone rests on.

    Attributes
    ----------
    past
        Counts of past decisions.
    uses_random_accepts
        Whether the outcomes of random accepts bound every group's r.
    assume
        What is granted of the denied.
    uses_deciders
        Whether deciders get cases as if at random, which bounds every group's P[Y=1].

    Raises
    ------
    InvalidInput
        If deciders are used together with random accepts or an assumption.
    """

    past: Past
    uses_random_accepts: bool = False
    assume: Assume = field(default_factory=Assume)
    uses_deciders: bool = False

    def __post_init__(self) -> None:
        if self.uses_deciders and (self.uses_random_accepts or self.assume):
            bound_by = "random accepts" if self.uses_random_accepts else "assume"
            raise InvalidInput(
                f"'deciders' and {bound_by!r} each bound how many of the denied would do well, and "
                "there is no proof for both together; leave out one"
            )


@dataclass(frozen=True)
class PastBounds:
    """What past data say at one error level.

    Attributes
    ----------
    bands
        Every rate's band in every group. With deciders a band is over the share of good outcomes in
        place of r, from its least (0) to its largest value (1).
    r_ranges
        Where every group's r lies, or, with deciders, [0, 1].
    contradiction
        Which data contradict what is assumed, in a sentence; None if none do.
    base_rates
        With deciders: where every group's share of good outcomes lies.
    """

    bands: Bands
    r_ranges: RangesOfR
    contradiction: str | None = None
    base_rates: Mapping[str, Interval] = field(default_factory=dict)


def past_bounds_at(inputs: CheckInputs, metric: str, alpha: float) -> PastBounds:
    """Return what past data say if each bound may fail with probability ``alpha``."""
    past = inputs.past
    bands = bands_from_past(past, metric, alpha)
    observed_ranges = _observed_r_ranges(inputs, alpha)
    # The sample is the population if the past is exact; the random accepts are always a sample.
    error_level = None if past.exact else alpha
    r_ranges = _intersect(observed_ranges, inputs.assume.limits(past.cells, error_level))
    base_rates = _bound_base_rates(inputs, error_level)
    contradiction = _contradiction_of_assumption(r_ranges) or _contradiction_of_deciders(base_rates)
    if contradiction is not None:  # then the assumption is left out of the reported ranges
        return PastBounds(bands, observed_ranges, contradiction)
    if not inputs.uses_deciders:
        return PastBounds(bands, r_ranges)
    base_rate_intervals = {group: bounds.interval for group, bounds in base_rates.items()}
    decider_bands = _bands_over_base_rates(past, metric, base_rate_intervals, error_level)
    return PastBounds(decider_bands, r_ranges, base_rates=base_rate_intervals)


def bands_from_past(past: Past, metric: str, alpha: float | None) -> Bands:
    """Return the bands of a metric's rates.

    Each of the two curves of a band is on its right side with probability at least ``1 - alpha``
    (exact, for any sample size). The counts are the population if the past is exact, or alpha None.
    """
    error_level = None if past.exact else alpha
    bands = {}
    for rate in METRICS[metric].rates:
        bands[rate.name] = {
            group: band_from_counts(rate, counts, error_level)
            for group, counts in past.cells.items()
        }
    return bands


def group_shares(past: Past, alpha: float, r: Mapping[str, Interval]) -> dict[str, GroupShares]:
    """Return what is established of every group's confusion matrix, from which every rate follows.

    Parameters
    ----------
    past
        Counts of past decisions.
    alpha
        The probability with which each of four bounds per group may fail: the share that is denied
        and the share of good outcomes among the approved, each from below and from above.
    r
        Group -> where its share of good outcomes among the denied lies.
    """
    error_level = None if past.exact else alpha
    shares = {}
    for group, counts in past.cells.items():
        denied_low, denied_high = clopper_pearson(counts.denied, counts.total, error_level)
        good_low, good_high = good_share(counts, error_level)
        # A guess for the estimate only: the bounds assume what good_share says, no more.
        imputed = counts.like_known
        good_estimate = imputed.approved_positive / imputed.approved if imputed.approved else None
        shares[group] = GroupShares(
            denied=Interval(denied_low, denied_high, counts.denied / counts.total),
            approved_good=Interval(good_low, good_high, good_estimate),
            denied_good=r[group],
        )
    return shares


def _observed_r_ranges(inputs: CheckInputs, alpha: float) -> RangesOfR:
    """Return where every group's r lies by the outcomes of random accepts, else [0, 1]."""
    r_ranges = {}
    for group, counts in inputs.past.cells.items():
        # Without outcomes the bounds are those of no trial, 0 and 1.
        accepts: tuple[float, ...] = (0.0, 0.0, 0.0)
        if inputs.uses_random_accepts and counts.random_accepts:
            accepts = counts.random_accepts
        good, bad, unknown = accepts
        # An unknown outcome may be either, so it widens the range on both sides.
        r_ranges[group] = clopper_pearson(good, good + bad + unknown, alpha, unknown)
    return r_ranges


def _intersect(observed: RangesOfR, assumed: RangesOfR) -> RangesOfR:
    """Return the ranges that keep to both; one whose ends are reversed is empty."""
    r_ranges = {}
    for group, (assumed_low, assumed_high) in assumed.items():
        observed_low, observed_high = observed[group]
        r_ranges[group] = max(observed_low, assumed_low), min(observed_high, assumed_high)
    return r_ranges


def _bound_base_rates(inputs: CheckInputs, error_level: float | None) -> dict[str, BaseRateBounds]:
    """Return where every group's share of good outcomes lies by its deciders, if they are used."""
    if not inputs.uses_deciders:
        return {}
    deciders_by_group = zip(inputs.past.cells, inputs.past.deciders, strict=True)
    return {group: bound_base_rate(deciders, error_level) for group, deciders in deciders_by_group}


def _bands_over_base_rates(
    past: Past, metric: str, base_rates: Mapping[str, Interval], error_level: float | None
) -> Bands:
    bands = {}
    for rate in METRICS[metric].rates:
        bands[rate.name] = {
            group: decider_band(rate, counts, base_rates[group], error_level)
            for group, counts in past.cells.items()
        }
    return bands


def _contradiction_of_assumption(r_ranges: RangesOfR) -> str | None:
    for group, (r_low, r_high) in r_ranges.items():
        if r_low > r_high:
            return (
                f"what is assumed does not hold for {group}: at least {r_low:.3f} and at most "
                f"{r_high:.3f} of its denied would do well, by the data and by what is assumed"
            )
    return None


def _contradiction_of_deciders(base_rates: Mapping[str, BaseRateBounds]) -> str | None:
    for group, bounds in base_rates.items():
        if bounds.interval.lower > bounds.interval.upper:
            return (
                f"cases do not fall to deciders as if at random in {group}: at least "
                f"{bounds.interval.lower:.3f} of all cases would do well by those of "
                f"{bounds.lower_from}, at most {bounds.interval.upper:.3f} by those of "
                f"{bounds.upper_from}"
            )
    return None


# -- the gap ---------------------------------------------------------------------------------------


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
    # Two at a time (section 3.10 of docs/understand/guarantees.md): three would need a search over
    # two levels.
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
    pieces = rate_pair.all_levels()
    while upper - lower > tolerance:
        middle = (lower + upper) / 2.0
        # Undecided counts as possible, so that what is returned never exceeds the infimum.
        remaining_pieces = rate_pair.possible_levels(middle, pieces)
        if remaining_pieces is None:
            lower = middle
        else:
            # No smaller gap is possible where this one is not, so the search goes on from here.
            upper = middle
            pieces = remaining_pieces
    return lower


class LevelPieces(NamedTuple):
    """Pieces of the rate levels from 0 to 1: where each begins and ends."""

    low: Array
    high: Array


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
        return self.possible_levels(gap, self.all_levels()) is None

    def all_levels(self) -> LevelPieces:
        """Return all rate levels, in the pieces into which they are cut at first."""
        edges = np.linspace(0.0, 1.0, _FIRST_PIECES + 1)
        return LevelPieces(edges[:-1], edges[1:])

    def possible_levels(self, gap: float, pieces: LevelPieces) -> LevelPieces | None:
        """Return pieces outside which both gaps cannot be at most ``gap``; None if they never can.

        ``pieces`` must hold every level at which they can.
        """
        low, high = pieces
        while True:
            middle = (low + high) / 2.0
            # Single levels and whole pieces are tried in one call: both are few, as a rule.
            starts = np.concatenate([middle, low])
            ends = np.concatenate([middle, high])
            fits_at_middle, is_undecided = np.split(self._may_keep_to(gap, starts, ends), 2)
            if fits_at_middle.any():  # a counterexample
                return LevelPieces(low, high)
            if not is_undecided.any():
                return None
            # Giving up is safe: the bound is then lower than it could be, and still holds.
            if (high - low).max() < _NARROWEST_PIECE or is_undecided.sum() > _MOST_PIECES:
                return LevelPieces(low, high)
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
