"""Null cells of the FAIR set of three groups and more: boxes around a common level of a rate.

If the rates of all groups are at most gamma apart, each lies within gamma above the lowest, the
level. Every interval of levels has one box, which binds all groups of the block. Bets are on pairs
of groups; how the stake is divided among them follows from the past data alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.comparison import Block, GapScale
from equipoise.evidence.bets import Corners, bet_shares
from equipoise.evidence.null_cells import BandCells
from equipoise.evidence.pair_cells import ROUNDING, falls, is_not_empty, unfair_pieces
from equipoise.rates import Band, Curve

if TYPE_CHECKING:
    from equipoise.evidence.wrong_answers import WrongAnswers

UNIFORM_PAIR_SHARE = 0.3  # of the stake against level boxes is spread evenly over the pairs
# By how much, in log odds, groups are thought to differ beyond what the past shows.
LOG_ODDS_JITTER = 0.35
MOST_PAIRS = 600  # of groups that bets against one box are on: those likeliest to be far apart
TIGHTENING_ROUNDS = 2  # of tightening level boxes by all rates
_WEIGHT_DRAWS = 2000


def level_cells(
    wrong: WrongAnswers, block: Block, bands: tuple[Band, ...], sizes: Array
) -> BandCells:
    """Return the cells where one rate of all groups of a block lies within gamma.

    Bets are on the ordered pairs of groups by which some rate may leave the FAIR set: a leaves its
    side of the box upwards, b downwards.
    """
    low, high = _tightened(wrong, block, *_level_boxes(wrong, block, bands))
    pairs, weights = _weighted_pairs(wrong, block, bands)
    columns = np.searchsorted(block.groups, pairs)  # of a and of b
    start = np.stack([high[:, columns[0]], low[:, columns[1]]])
    # axes: cell, corner; there is a corner for every pair
    shape = start.shape[1:]
    corners = Corners(
        start,
        curves=Curve.stack([band.low for band in bands]),
        aim=np.broadcast_to(pairs[:, None], start.shape),
        direction=np.broadcast_to(1.0, shape),
        weight=np.broadcast_to(weights, shape),
        extra_step=np.broadcast_to(0.0, shape),
    )
    groups = np.repeat(pairs[:, None], len(bet_shares(len(sizes))), axis=2)
    sides = np.array([block.groups])
    return BandCells(len(bands), sides, low, high, groups, corners, sizes, wrong.compare)


# -- boxes ----------------------------------------------------------------------------------------


def _level_boxes(wrong: WrongAnswers, block: Block, bands: tuple[Band, ...]) -> tuple[Array, Array]:
    """Return where the unknowns lie for every interval of levels, shape (cells, groups) each.

    If the rates are at most gamma apart, the lowest is a level such that each lies in
    [level, level + gamma] (ratios: [level, level/(1-gamma)]); for a level in [start, end] each lies
    between start and what is gamma above end. Against a reference its rate is the level.
    """
    # The lowest rate may be any group's, so levels reach over the rates of all of them.
    groups = block.groups if block.reference is None else (block.reference,)
    ends = level_grid([bands[group] for group in groups], wrong.step, wrong.compare)
    lowest_rate, highest_rate = block.rate_ranges(wrong.compare, ends[:-1], ends[1:], wrong.gamma)
    of_block = [bands[group] for group in block.groups]
    return Band.stack(of_block).r_range(
        lowest_rate - ROUNDING, highest_rate + ROUNDING, falling=falls(of_block)
    )


def level_grid(bands: Sequence[Band], step: float, compare: GapScale) -> Array:
    """Return the ends of intervals of at most ``step`` over all values that a rate may take."""
    values = [curve.value([0.0, 1.0]) for band in bands for curve in (band.low, band.high)]
    ends = np.array([np.min(values), np.max(values)])
    first, last = compare.to_gap_units(ends)
    scaled = np.linspace(first, last, 2 + int((last - first) / step))
    grid = scaled if compare is GapScale.DIFFERENCE else np.exp(scaled)
    # The outermost ends are exact: a logarithm rounds them, or cuts off rates near 0.
    grid[[0, -1]] = ends
    return np.asarray(grid)


def _tightened(wrong: WrongAnswers, block: Block, low: Array, high: Array) -> tuple[Array, Array]:
    """Cut boxes by "no gap of a rate exceeds gamma"; those that become empty go.

    In a box no group's rate can be gamma above the largest value that another's can have with which
    it is compared, nor gamma below the least.
    """
    # Only points at which some rates are too far apart are cut off, so every FAIR point stays in a
    # box. Each rate cuts what the others left, and has another turn at what they leave then.
    low, high = _without_empty(low, high)
    low = np.clip(low, 0.0, 1.0)
    high = np.clip(high, 0.0, 1.0)
    is_compared = _compared_columns(block)
    for bands in wrong.bands_for_unfair * TIGHTENING_ROUNDS:
        of_block = [bands[group] for group in block.groups]
        stacked = Band.stack(of_block)
        highest_rate = np.maximum(stacked.high.value(low), stacked.high.value(high))
        lowest_rate = np.minimum(stacked.low.value(low), stacked.low.value(high))
        # axes: cell, group, the group with which it is compared. Above that one it may lie by gamma
        # if this gap counts; below it, if the gap of the other one counts (the transpose).
        highest_allowed = np.where(is_compared, highest_rate[:, None, :], inf).min(axis=-1)
        lowest_allowed = np.where(is_compared.T, lowest_rate[:, None, :], -inf).max(axis=-1)
        cut_low, cut_high = stacked.r_range(
            wrong.compare.below(lowest_allowed, wrong.gamma) - ROUNDING,
            wrong.compare.above(highest_allowed, wrong.gamma) + ROUNDING,
            falling=falls(of_block),
        )
        low, high = _without_empty(np.maximum(low, cut_low), np.minimum(high, cut_high))
    return low, high


def _compared_columns(block: Block) -> Flags:
    """Say whether the gap of a group above another counts, shape (groups, groups).

    A group counts as compared with itself.
    """
    pairs = {*block.pairs, *((group, group) for group in block.groups)}
    return np.array([[(a, b) in pairs for b in block.groups] for a in block.groups])


def _without_empty(low: Array, high: Array) -> tuple[Array, Array]:
    is_full = is_not_empty(low, high).all(axis=1)
    return low[is_full], high[is_full]


# -- pairs ----------------------------------------------------------------------------------------


def _weighted_pairs(
    wrong: WrongAnswers, block: Block, bands: tuple[Band, ...]
) -> tuple[Ints, Array]:
    """Return the pairs a, b to bet on, shape (2, pairs), and their shares of a stake."""
    pieces = unfair_pieces(wrong, wrong.bands_for_unfair)
    in_block = np.isin(pieces.a, block.groups)  # and so is b
    # A piece is too far apart where its b is above its a, so the two change places.
    pairs = np.stack([pieces.b[in_block], pieces.a[in_block]])
    pairs = pairs[:, np.lexsort(pairs[::-1])]
    weights = _pair_weights(wrong, bands, pairs)
    if len(weights) > MOST_PAIRS:
        heaviest = np.sort(np.argsort(-weights, kind="stable")[:MOST_PAIRS])
        pairs = pairs[:, heaviest]
        weights = weights[heaviest] / weights[heaviest].sum()
    return pairs, weights


def _pair_weights(wrong: WrongAnswers, bands: tuple[Band, ...], pairs: Ints) -> Array:
    """Return how the stake is divided among ordered pairs, from past data alone.

    Part of it is spread evenly. The rest follows how often a pair would be the furthest apart, a's
    unknown the higher by its rate, if the denied succeeded a common multiple of the approved's
    rate, jittered. Groups that the past does not tell apart are treated alike. ``pairs`` has the
    groups a and b, shape (2, pairs).
    """
    n_pairs = pairs.shape[1]
    # Stakes may follow from the past and from no label: the lemma needs them fixed before (3.6).
    often = _furthest_apart(wrong, bands, pairs) if wrong.precision else np.zeros(n_pairs)
    kind = _kinds_of_groups(wrong)
    # Pairs of groups that the past does not tell apart have the mean of their shares.
    kind_of_pair = kind[pairs[0]] * len(bands) + kind[pairs[1]]
    alike = np.unique(kind_of_pair, return_inverse=True)[1]
    share = (np.bincount(alike, often) / np.bincount(alike))[alike]
    share = share / share.sum() if share.sum() else np.full(n_pairs, 1.0 / n_pairs)
    return np.asarray(UNIFORM_PAIR_SHARE / n_pairs + (1.0 - UNIFORM_PAIR_SHARE) * share)


def _kinds_of_groups(wrong: WrongAnswers) -> Ints:
    """Return for each group the first one with the same past."""
    first_alike: dict[object, int] = {}
    kinds = []
    for group in range(wrong.n_groups):
        bands_of_group = tuple(bands[group] for bands in wrong.bands_for_unfair)
        past = (wrong.precision[group : group + 1], bands_of_group)
        kinds.append(first_alike.setdefault(past, group))
    return np.array(kinds, dtype=np.intp)


def _furthest_apart(wrong: WrongAnswers, bands: tuple[Band, ...], pairs: Ints) -> Array:
    """Return how often each pair is the furthest apart, if the denied are like the approved."""
    r = _plausible_unknowns(np.array(wrong.precision))
    rate = Band.stack(bands).low.value(r) * (-1.0 if falls(bands) else 1.0)
    groups = np.unique(pairs)
    if pairs.shape[1] == len(groups) * (len(groups) - 1):  # all pairs: the highest and the lowest
        of_groups = rate[:, groups]
        highest = groups[of_groups.argmax(axis=1)]
        lowest = groups[of_groups.argmin(axis=1)]
    else:
        furthest = (rate[:, pairs[0]] - rate[:, pairs[1]]).argmax(axis=1)
        highest, lowest = pairs[:, furthest]
    draws = np.arange(_WEIGHT_DRAWS)
    # Where all are equal no pair is the furthest apart, whichever argmax names.
    is_apart = rate[draws, highest] > rate[draws, lowest]
    often = np.zeros((len(bands), len(bands)))
    np.add.at(often, (highest[is_apart], lowest[is_apart]), 1.0 / _WEIGHT_DRAWS)
    return np.asarray(often[tuple(pairs)])


def _plausible_unknowns(precision: Array) -> Array:
    """Draw unknowns of all groups around a common multiple of their approved's rates of success."""
    # One seed for every audit: stakes may depend on nothing but past and question.
    rng = np.random.default_rng(1)
    multiple = rng.uniform(0.1, 1.0, (_WEIGHT_DRAWS, 1))
    mean = np.clip(multiple * precision, 0.01, 0.99)
    log_odds = np.log(mean / (1.0 - mean)) + LOG_ODDS_JITTER * rng.normal(size=mean.shape)
    return np.asarray(1.0 / (1.0 + np.exp(-log_odds)))
