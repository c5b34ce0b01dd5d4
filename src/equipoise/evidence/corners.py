"""Cells of either wrong answer, the box around each, and the corners that bets against it start at.

There are three kinds of cells: the UNFAIR set of an ordered pair over an interval of ``lam_b``; the
FAIR corridor of two groups over such an interval, split at its middle line; and, for more groups,
the unknowns at which one rate of every group lies within gamma above a level, for an interval of
levels. Each depends on the past data and the question alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from equipoise.comparison import GapScale
from equipoise.evidence.geometry import Limits, Pair, grid
from equipoise.rates import Band, Curve

__all__ = ["Cells", "Corners", "corridor_cells", "level_cells", "unfair_cells"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

FADE = 2.0  # how fast the stake on leaving through the far side falls with its distance in epsilons


@dataclass(frozen=True)
class Corners:
    """Where bets on groups a and b start: arrays of shape (cells, corners).

    ``side`` is the direction in which group a leaves the box, b leaving it the other way;
    ``weight`` the corner's share of the cell's stake, ``extra`` what is added to every step,
    ``unit`` how far a rate moves when the gap moves by 1.
    ``curve_a`` and ``curve_b`` have the coefficients of the rate that bets aim by, last axis first.
    """

    a: int
    b: int
    lam_a: Array
    lam_b: Array
    side: Array
    weight: Array
    extra: Array
    unit: Array
    curve_a: Array  # (4, cells, corners)
    curve_b: Array
    limits_a: tuple[float, float] = (0.0, 1.0)  # no bet goes beyond what the unknowns can be
    limits_b: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Cells:
    """Boxes: in cell i group g's unknown lies in [low[i, g], high[i, g]]; and their corners."""

    low: Array  # (cells, groups)
    high: Array
    corners: tuple[Corners, ...]


def unfair_cells(pair: Pair, gap: float, step: float, groups: int) -> Cells:
    """Return the cells where a's rates may differ from b's by ``gap`` or more, a's unknown lower.

    Such a point has ``lam_a <= u(lam_b)`` and u does not fall, so above [start, end] it lies in
    ``[0, u(end)] x [start, end]``. Bets leave the box by a rising and b falling.
    """
    ends = grid(pair, step)
    start, end = ends[:-1], ends[1:]
    u = pair.unfair_below(end, gap)
    least, most = pair.limits_a
    full = u.at >= least
    start, end, active = start[full], end[full], u.active[full]
    high = np.clip(u.at[full], least, most)
    one = np.ones((len(start), 1))
    curve_a = _coefficients([a for a, _ in pair.curves()], active[:, None])
    curve_b = _coefficients([b for _, b in pair.curves()], active[:, None])
    lam_a, lam_b = high[:, None], start[:, None]
    corners = Corners(
        pair.a,
        pair.b,
        lam_a=lam_a,
        lam_b=lam_b,
        side=one,
        weight=one,
        extra=0.0 * one,
        unit=_unit(pair.compare, curve_a, lam_a, curve_b, lam_b),
        curve_a=curve_a,
        curve_b=curve_b,
        limits_a=pair.limits_a,
        limits_b=pair.limits_b,
    )
    return _boxed(pair, np.full_like(start, least), high, start, end, groups, corners)


def corridor_cells(pair: Pair, gap: float, epsilon: float, step: float, groups: int) -> Cells:
    """Return the cells where the rates of two groups differ by at most ``gap``.

    Such a point has ``L(lam_b) <= lam_a <= U(lam_b)``. Above [start, end] the corridor is split at
    its middle line m. The upper half lies in ``[m(start), U(end)]``, the lower in
    ``[L(start), m(end)]``. The upper half bets mostly that the truth lies above the corridor, and a
    little that it lies below: the less, the further that side is. The lower half mirrors it. Where
    the corridor narrows to nothing both sides are as near.
    """
    ends = np.tile(grid(pair, step), (2, 1))
    start, end = ends[:, :-1].ravel(), ends[:, 1:].ravel()
    upper = np.repeat([False, True], ends.shape[1] - 1)
    bottom, top = pair.fair_from(start, gap).at, pair.fair_to(end, gap).at
    least, most = pair.limits_a
    full = (bottom <= top) & (bottom <= most) & (top >= least)
    start, end, upper = start[full], end[full], upper[full]
    from_start, from_end = pair.fair_from(start, gap), pair.fair_from(end, gap)
    to_start, to_end = pair.fair_to(start, gap), pair.fair_to(end, gap)
    low, high = np.clip(from_start.at, least, most), np.clip(to_end.at, least, most)
    middle_start = (low + np.clip(to_start.at, least, most)) / 2.0
    middle_end = (np.clip(from_end.at, least, most) + high) / 2.0
    up_a = np.where(upper, high, np.minimum(middle_end, high))
    down_a = np.where(upper, np.maximum(middle_start, low), low)
    lam_a, lam_b = np.stack([up_a, down_a], axis=1), np.stack([start, end], axis=1)
    edges = np.stack([to_end.each, from_start.each], axis=2)
    active = np.stack([to_end.active, from_start.active], axis=1)
    active = _steepest(pair, lam_a, lam_b, edges, active, step)
    curve_a = _coefficients([a for a, _ in pair.curves()], active)
    curve_b = _coefficients([b for _, b in pair.curves()], active)
    extra = np.abs(_rate(curve_a, np.stack([high, low], axis=1)) - _rate(curve_a, lam_a))
    unit = _unit(pair.compare, curve_a, lam_a, curve_b, lam_b)
    far = 0.5 * np.exp(-FADE * (extra / unit).max(axis=1) / epsilon)
    up_share = np.where(upper, 1.0 - far, far)
    corners = Corners(
        pair.a,
        pair.b,
        lam_a=lam_a,
        lam_b=lam_b,
        side=np.tile([1.0, -1.0], (len(start), 1)),
        weight=np.stack([up_share, 1.0 - up_share], axis=1),
        extra=extra,
        unit=unit,
        curve_a=curve_a,
        curve_b=curve_b,
        limits_a=pair.limits_a,
        limits_b=pair.limits_b,
    )
    return _boxed(pair, down_a, up_a, start, end, groups, corners)


def _steepest(
    pair: Pair, lam_a: Array, lam_b: Array, edges: Array, best: Ints, step: float
) -> Ints:
    """Return the rate to bet by: the active one, or one with the same edge whose gap widens sooner.

    With gamma = 0 and groups alike all rates have the same edges, and a gap of epsilon in a rate
    that hardly moves would be a bet on the impossible.

    Parameters
    ----------
    lam_a, lam_b
        Corners, shape (cells, 2).
    edges
        Where lam_a leaves the corridor by each rate, shape (rates, cells, 2).
    best
        The active rate, shape (cells, 2).
    step
        Edges are the same if the rate moves by less from one to the other.
    """
    edges = np.clip(edges, 0.0, 1.0)
    edge = np.take_along_axis(edges, best[None], axis=0)
    rates = np.arange(len(edges))[:, None, None] + np.zeros_like(best)
    curve_a = _coefficients([a for a, _ in pair.curves()], rates)
    curve_b = _coefficients([b for _, b in pair.curves()], rates)
    same = np.abs(_rate(curve_a, edges) - _rate(curve_a, edge)) <= step
    unit = _unit(pair.compare, curve_a, lam_a, curve_b, lam_b)
    pace = (
        lam_a * (1.0 - lam_a) * _slope(curve_a, lam_a) ** 2
        + lam_b * (1.0 - lam_b) * _slope(curve_b, lam_b) ** 2
    ) / unit
    return np.asarray(np.where(same, pace, -1.0).argmax(axis=0))


def level_cells(
    bands: Sequence[Band],
    falling: bool,
    gamma: float,
    step: float,
    compare: GapScale = GapScale.DIFFERENCE,
    limits: Limits | None = None,
) -> Cells:
    """Return the cells where one rate of all groups lies within ``gamma``, by the lowest of them.

    If the rates are at most gamma apart, the lowest is a level such that each lies in
    [level, level + gamma] (ratios: [level, level/(1-gamma)]); for a level in [start, end] each lies
    between start and what is gamma above end. Bets are on every ordered pair of groups: a leaves
    its side of the box upwards, b downwards.
    """
    ends = level_grid(bands, step, compare)
    start, end = ends[:-1], compare.above(ends[1:], gamma)
    sides = [
        (band.low.since(end, falling=True), band.high.until(start, falling=True))
        if falling
        else (band.high.since(start, falling=False), band.low.until(end, falling=False))
        for band in bands
    ]
    low, high = (np.stack(ends, axis=1) for ends in zip(*sides, strict=True))
    groups = len(bands)
    limits = limits or [(0.0, 1.0)] * groups
    least, most = np.array(limits).T
    full = ((low <= high) & (low <= most) & (high >= least)).all(axis=1)
    low, high = np.clip(low[full], least, most), np.clip(high[full], least, most)
    one = np.ones((len(low), 1))
    curves = [_coefficients([band.low], np.zeros((len(low), 1), dtype=np.intp)) for band in bands]
    return Cells(
        low,
        high,
        tuple(
            Corners(
                a,
                b,
                lam_a=high[:, [a]],
                lam_b=low[:, [b]],
                side=one,
                weight=one / (groups * (groups - 1)),
                extra=0.0 * one,
                unit=_unit(compare, curves[a], high[:, [a]], curves[b], low[:, [b]]),
                curve_a=curves[a],
                curve_b=curves[b],
                limits_a=limits[a],
                limits_b=limits[b],
            )
            for a, b in permutations(range(groups), 2)
        ),
    )


def level_grid(
    bands: Sequence[Band], step: float, compare: GapScale = GapScale.DIFFERENCE
) -> Array:
    """Return the ends of intervals of at most ``step`` over all values that a rate may take."""
    values = [curve.value([0.0, 1.0]) for band in bands for curve in (band.low, band.high)]
    ends = np.array([np.min(values), np.max(values)])
    first, last = compare.scale(ends)
    scaled = np.linspace(first, last, 2 + int((last - first) / step))
    grid = scaled if compare is GapScale.DIFFERENCE else np.exp(scaled)
    grid[0], grid[-1] = ends
    return np.asarray(grid)


def _unit(compare: GapScale, curve_a: Array, lam_a: Array, curve_b: Array, lam_b: Array) -> Array:
    return compare.unit(np.maximum(_rate(curve_a, lam_a), _rate(curve_b, lam_b)))


def _boxed(
    pair: Pair, low_a: Array, high_a: Array, low_b: Array, high_b: Array, groups: int, c: Corners
) -> Cells:
    low, high = np.zeros((len(low_a), groups)), np.ones((len(low_a), groups))
    low[:, pair.a], high[:, pair.a] = low_a, high_a
    low[:, pair.b], high[:, pair.b] = low_b, high_b
    return Cells(low, high, (c,))


def _coefficients(curves: Sequence[Curve], active: Ints) -> Array:
    table = np.array([(c.a, c.b, c.c, c.d) for c in curves])
    return np.moveaxis(table[active], -1, 0)


def _rate(curve: Array, r: Array) -> Array:
    a, b, c, d = curve
    return np.asarray((a + b * r) / (c + d * r))


def _slope(curve: Array, r: Array) -> Array:
    a, b, c, d = curve
    return np.asarray((b * c - a * d) / (c + d * r) ** 2)
