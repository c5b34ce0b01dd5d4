"""Null cells of pairs of groups: the UNFAIR set, and the FAIR set of two groups.

A pair's cells lie above intervals of one group's unknown, ``lam_b``, over which no rate moves by
more than a step. What of ``lam_a`` belongs to the wrong answer there follows from the interval's
ends, because the frontiers never fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from equipoise._arrays import Array, Flags, Ints
from equipoise.comparison import GapScale
from equipoise.evidence.bets import Corners, fair_sizes, map_coefficients
from equipoise.evidence.null_cells import FAR_SIDE_FADE, NUMBERS_AT_ONCE, BandCells, rate_grid
from equipoise.rates import Band, Curve

if TYPE_CHECKING:
    from equipoise.evidence.wrong_answers import WrongAnswers

ROUNDING = 1e-12
"""By which a box is widened, or may be empty, so that rounding loses no population."""

BandsByRate = tuple[tuple[Band, ...], ...]
"""Per rate, the band of every group."""


# -- the UNFAIR set -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pieces:
    """Ordered pairs of groups whose gap counts where a's unknown is too low beside b's.

    Then a falling rate of a is above b's, and a rising one of b above a's. ``counts`` says which
    rates count for each pair, shape (rates, pairs).
    """

    a: Ints
    b: Ints
    counts: Flags

    def select(self, pairs: Ints) -> Pieces:
        """Return some of the pairs, or each of them several times."""
        return Pieces(self.a[pairs], self.b[pairs], self.counts[:, pairs])


def unfair_pieces(wrong: WrongAnswers, rates: BandsByRate) -> Pieces:
    """Return the pieces of the UNFAIR set."""
    is_compared = np.zeros((wrong.n_groups, wrong.n_groups), dtype=bool)
    for high, low in wrong.pairs:
        is_compared[high, low] = True
    a, b = np.nonzero(~np.eye(wrong.n_groups, dtype=bool))
    counts = [is_compared[a, b] if falls(bands) else is_compared[b, a] for bands in rates]
    pieces = Pieces(a, b, np.array(counts))
    return pieces.select(np.flatnonzero(pieces.counts.any(axis=0)))


def largest_unfair(
    rates: BandsByRate, pieces: Pieces, lam_b: Array, gap: float, compare: GapScale
) -> tuple[Array, Ints]:
    """Return u(lam_b) of every piece, and the rate that sets it.

    Up to there a falling rate of a may be ``gap`` above b's, or a rising rate of b above a's.
    """
    by_rate = []
    # Of each band the curve that makes the set larger: a truth that is unfair through one rate and
    # one pair needs these two bounds and no other (guarantees, 3.8).
    for bands, counts in zip(rates, pieces.counts, strict=True):
        all_bands = Band.stack(bands)
        if falls(bands):
            lowest_rate = compare.above(curves_of(all_bands.low, pieces.b).value(lam_b), gap)
            frontier = curves_of(all_bands.high, pieces.a).largest_r_with(lowest_rate, falling=True)
        else:
            highest_rate = compare.below(curves_of(all_bands.high, pieces.b).value(lam_b), gap)
            frontier = curves_of(all_bands.low, pieces.a).largest_r_with(
                highest_rate, falling=False
            )
        by_rate.append(np.where(counts, frontier, -inf))
    stacked = np.stack(by_rate)
    return stacked.max(axis=0), stacked.argmax(axis=0)


@dataclass(frozen=True)
class UnfairBoxes:
    """The boxes of all pieces of the UNFAIR set, in a row.

    Parameters
    ----------
    piece
        The place of each box's piece.
    start, end
        Where b's unknown lies.
    frontier
        The largest unknown of a; the least is 0.
    active_rate
        The rate that sets the frontier.
    """

    piece: Ints
    start: Array
    end: Array
    frontier: Array
    active_rate: Ints


def pair_cells(wrong: WrongAnswers) -> BandCells:
    """Return the cells of the UNFAIR set: those of all pieces.

    Where rates of a and b differ by the threshold or more, a's unknown being the lower,
    ``lam_a <= u(lam_b)``; so above [start, end] the point lies in ``[0, u(end)] x [start, end]``.
    Bets leave the box by a rising and b falling.
    """
    pieces = unfair_pieces(wrong, wrong.bands_for_fair)
    boxes = _boxes_of_pieces(wrong, pieces)
    # Boxes and corners are views of these rows: many groups have millions of cells.
    rows = np.stack(
        [boxes.end, np.minimum(boxes.frontier, 1.0), boxes.start, np.zeros(len(boxes.end))]
    )
    high = rows[1::-1].T  # of a, of b
    low = rows[:1:-1].T
    start = rows[1:3, :, None]  # one corner: a's upper end and b's lower end
    groups = _as_small(np.stack([pieces.a, pieces.b]))[:, boxes.piece, None]
    curves, aim = curves_to_aim_by(wrong.bands_for_fair, groups, boxes.active_rate[:, None])
    # axes: cell, corner; the one corner has all of the stake
    shape = start.shape[1:]
    corners = Corners(
        start,
        curves,
        aim,
        direction=np.broadcast_to(1.0, shape),
        weight=np.broadcast_to(1.0, shape),
        extra_step=np.broadcast_to(0.0, shape),
    )
    sizes = wrong.epsilon * np.asarray(fair_sizes(wrong.threshold, wrong.epsilon))
    sides = groups[..., 0].T
    return BandCells(wrong.n_groups, sides, low, high, groups, corners, sizes, wrong.compare)


def _boxes_of_pieces(wrong: WrongAnswers, pieces: Pieces) -> UnfairBoxes:
    """Return the boxes above all intervals of ``lam_b`` at which the frontier is in [0, 1]."""
    grids = _grids_of_pieces(wrong, pieces)
    piece = np.repeat(np.arange(len(grids)), [len(grid) - 1 for grid in grids])
    start = np.concatenate([grid[:-1] for grid in grids])
    end = np.concatenate([grid[1:] for grid in grids])
    frontier, active_rate = _frontier_above(wrong, pieces, piece, end)
    is_full = frontier >= 0.0
    return UnfairBoxes(
        piece[is_full], start[is_full], end[is_full], frontier[is_full], active_rate[is_full]
    )


def _grids_of_pieces(wrong: WrongAnswers, pieces: Pieces) -> list[Array]:
    """Return the ends of intervals of ``lam_b`` for every piece, by the rates that count for it."""
    # Pieces with the same b and the same rates have one grid: it says nothing about a.
    grids: dict[tuple[object, ...], Array] = {}
    grid_of_piece = []
    for b, counts in zip(pieces.b.tolist(), pieces.counts.T.tolist(), strict=True):
        key = (b, *counts)
        if key not in grids:
            rates = zip(wrong.bands_for_fair, counts, strict=True)
            bands_of_b = [bands[b] for bands, does_count in rates if does_count]
            grids[key] = rate_grid(bands_of_b, wrong.step, wrong.compare)
        grid_of_piece.append(grids[key])
    return grid_of_piece


def _frontier_above(
    wrong: WrongAnswers, pieces: Pieces, piece: Ints, lam_b: Array
) -> tuple[Array, Ints]:
    """Return u(lam_b) of the piece of each cell, and the rate that sets it: a part at a time."""
    frontier = np.empty_like(lam_b)
    active_rate = _as_small(np.zeros(len(lam_b), dtype=np.intp))
    for first in range(0, len(lam_b), NUMBERS_AT_ONCE):
        part = slice(first, first + NUMBERS_AT_ONCE)
        frontier[part], active_rate[part] = largest_unfair(
            wrong.bands_for_fair,
            pieces.select(piece[part]),
            lam_b[part],
            wrong.threshold,
            wrong.compare,
        )
    return frontier, active_rate


def _as_small(places: Ints) -> Ints:
    """Return places of groups or rates in half of the memory."""
    half: DTypeLike = np.int32
    return np.asarray(places, dtype=half)


# -- the FAIR set of two groups -------------------------------------------------------------------


def corridor(wrong: WrongAnswers, a: int, b: int, lam_b: Array, gap: float) -> tuple[Array, Array]:
    """Return L(lam_b) and U(lam_b) as each rate sets them, shape (rates, n).

    Neither falls, also where a's rate is the same for all of its unknowns.
    """
    lowest = []
    highest = []
    for bands in wrong.bands_for_unfair:
        # A constant rate is allowed everywhere or nowhere: rounding must not decide which.
        slack = 0.0 if bands[a].depends_on_r and bands[b].depends_on_r else ROUNDING
        # Where a gap does not count, a's rate may be any lower, or any higher.
        low = np.full_like(lam_b, -inf)
        high = np.full_like(lam_b, inf)
        if (b, a) in wrong.pairs:
            low = wrong.compare.below(bands[b].low.value(lam_b), gap) - slack
        if (a, b) in wrong.pairs:
            high = wrong.compare.above(bands[b].high.value(lam_b), gap) + slack
        r_low, r_high = bands[a].r_range(low, high, falling=falls(bands))
        lowest.append(r_low)
        highest.append(r_high)
    return np.stack(lowest), np.stack(highest)


@dataclass(frozen=True)
class CorridorHalves:
    """The corridor above intervals of b's unknown, split at its middle line.

    Attributes
    ----------
    start, end
        The intervals of ``lam_b``, shape (cells,).
    bottom, top
        The ends of ``lam_a`` in each half.
    low, high
        Where the whole corridor begins and ends above the interval.
    is_upper
        Which halves are upper ones.
    edges
        Where ``lam_a`` leaves the corridor upwards and downwards by each rate, shape
        (rates, cells, 2).
    active_rate
        The rates by which it leaves first, shape (cells, 2).
    """

    start: Array
    end: Array
    bottom: Array
    top: Array
    low: Array
    high: Array
    is_upper: Flags
    edges: Array
    active_rate: Ints

    @classmethod
    def split(cls, wrong: WrongAnswers, a: int, b: int) -> CorridorHalves:
        """Return both halves above all intervals over which the corridor is not empty.

        The upper half lies in ``[m(start), U(end)]``, the lower in ``[L(start), m(end)]``, where
        m is the middle line.
        """
        bands_of_b = [bands[b] for bands in wrong.bands_for_unfair]
        grid = rate_grid(bands_of_b, wrong.step, wrong.compare)
        lowest, highest = corridor(wrong, a, b, grid, wrong.gamma)
        low = lowest.max(axis=0)
        high = highest.min(axis=0)
        # Neither L nor U falls, so above an interval the corridor lies between L of its start and
        # U of its end (guarantees, 3.2).
        is_full = is_not_empty(low[:-1], high[1:])
        low = np.clip(low, 0.0, 1.0)
        high = np.clip(high, 0.0, 1.0)
        # Where rounding makes L exceed U the middle stays inside of its own half.
        middle_of_end = np.minimum((low[1:] + high[1:]) / 2.0, high[1:])
        middle_of_start = np.maximum((low[:-1] + high[:-1]) / 2.0, low[:-1])
        # All lower halves come first, then all upper ones.
        n_full = int(is_full.sum())
        edges = np.stack([highest[:, 1:], lowest[:, :-1]], axis=2)[:, is_full]
        active_rate = np.stack(
            [highest[:, 1:].argmin(axis=0), lowest[:, :-1].argmax(axis=0)], axis=1
        )
        return cls(
            start=np.tile(grid[:-1][is_full], 2),
            end=np.tile(grid[1:][is_full], 2),
            bottom=np.concatenate([low[:-1][is_full], middle_of_start[is_full]]),
            top=np.concatenate([middle_of_end[is_full], high[1:][is_full]]),
            low=np.tile(low[:-1][is_full], 2),
            high=np.tile(high[1:][is_full], 2),
            is_upper=np.repeat([False, True], n_full),
            edges=np.tile(edges, (1, 2, 1)),
            active_rate=np.tile(active_rate[is_full], (2, 1)),
        )


def corridor_cells(wrong: WrongAnswers, a: int, b: int, sizes: Array) -> BandCells:
    """Return the cells where the rates of two groups differ by at most gamma.

    Above an interval of b's unknown the corridor is split at its middle line. The upper half bets
    mostly that the truth lies above the corridor, and a little that it lies below: the less, the
    further that side is. The lower half mirrors it. Where the corridor narrows to nothing both
    sides are as near.
    """
    halves = CorridorHalves.split(wrong, a, b)
    corners = _corridor_corners(wrong, a, b, halves)
    sides = np.array([[a, b]])
    low = np.stack([halves.bottom, halves.start], axis=1)
    high = np.stack([halves.top, halves.end], axis=1)
    groups = np.repeat(sides.T[..., None], len(low), axis=1)
    return BandCells(wrong.n_groups, sides, low, high, groups, corners, sizes, wrong.compare)


def _corridor_corners(wrong: WrongAnswers, a: int, b: int, halves: CorridorHalves) -> Corners:
    """Return two corners of each half: a leaves upwards and b downwards, or the other way round."""
    # axes: group, half, corner (upwards, downwards)
    corners_of_a = np.stack([halves.top, halves.bottom], axis=1)
    corners_of_b = np.stack([halves.start, halves.end], axis=1)
    start = np.stack([corners_of_a, corners_of_b])
    rate = _steepest_rate(wrong, a, b, start, halves)
    groups = np.array([[[a]], [[b]]])
    curves, aim = curves_to_aim_by(wrong.bands_for_unfair, groups, rate)
    aim_curves = curves_of(curves, aim)
    # From inside the corridor the gap has to move further than its step, to the far side.
    far_side = np.stack([halves.high, halves.low], axis=1)
    extra_step = np.abs(aim_curves.value(far_side)[0] - aim_curves.value(start)[0])
    extra_gaps = extra_step / _rate_per_gap(wrong.compare, aim_curves, start)
    weight = _corner_weights(wrong, halves, extra_gaps)
    direction = np.tile([1.0, -1.0], (len(weight), 1))
    return Corners(start, curves, aim, direction, weight, extra_step)


def _corner_weights(wrong: WrongAnswers, halves: CorridorHalves, extra_gaps: Array) -> Array:
    """Return the shares of a half's stake on leaving upwards and downwards, shape (halves, 2).

    The far side gets less the further it is; ``extra_gaps``, of the same shape, say how far either
    side is beyond the half.
    """
    extra_gap = extra_gaps.max(axis=1)  # to the near side there is nothing to go
    far_share = 0.5 * np.exp(-FAR_SIDE_FADE * extra_gap / wrong.epsilon)
    up_share = np.where(halves.is_upper, 1.0 - far_share, far_share)
    return np.stack([up_share, 1.0 - up_share], axis=1)


def _steepest_rate(
    wrong: WrongAnswers, a: int, b: int, start: Array, halves: CorridorHalves
) -> Ints:
    """Return the rate to bet by: the active one, or one with the same edge whose gap widens sooner.

    With gamma = 0 and groups alike all rates have the same edges, and a gap of epsilon in a rate
    that hardly moves would be a bet on the impossible. Edges are the same if the rate moves by less
    than a step from one to the other.
    """
    # axes: rate, half, corner (leaving upwards, downwards)
    edges = np.clip(halves.edges, 0.0, 1.0)
    active_edge = np.take_along_axis(edges, halves.active_rate[None], axis=0)
    all_rates = np.broadcast_to(np.arange(len(edges))[:, None, None], edges.shape)
    sides = np.array([a, b])[:, None, None, None]
    aim_curves = curves_of(*curves_to_aim_by(wrong.bands_for_unfair, sides, all_rates))
    distance = np.abs(aim_curves.value(edges)[0] - aim_curves.value(active_edge)[0])
    # axes: group, rate, half, corner
    corner = start[:, None]
    # How fast the gap widens if groups move as bets move them: by x (1 - x) times the slope each.
    pace = (corner * (1.0 - corner) * aim_curves.slope(corner) ** 2).sum(axis=0)
    pace = pace / _rate_per_gap(wrong.compare, aim_curves, corner)
    return np.asarray(np.where(distance <= wrong.step, pace, -1.0).argmax(axis=0))


# -- curves ---------------------------------------------------------------------------------------


def falls(bands: Sequence[Band]) -> bool:
    """Say whether a rate falls in r."""
    return any(curve.trend < 0 for band in bands for curve in (band.low, band.high))


def is_not_empty(low: Array, high: Array) -> Flags:
    """Say which sides of boxes hold an unknown; one that a rounding error empties does."""
    return np.asarray((low <= high + ROUNDING) & (low <= 1.0 + ROUNDING) & (high >= -ROUNDING))


def curves_of(curves: Curve, groups: Ints) -> Curve:
    """Return the curves of some groups, of those of all."""
    return map_coefficients(curves, lambda coefficient: coefficient[groups])


def curves_to_aim_by(rates: BandsByRate, groups: Ints, rate: Ints) -> tuple[Curve, Ints]:
    """Return the curves that bets may aim by, and which of them: of groups, of a rate each."""
    curves = Curve.stack([band.low for bands in rates for band in bands])
    return curves, np.asarray(len(rates[0]) * rate + groups)


def _rate_per_gap(compare: GapScale, aim_curves: Curve, start: Array) -> Array:
    """Return by how much the higher of both rates moves per unit of the gap."""
    return compare.rate_per_gap(aim_curves.value(start).max(axis=0))
