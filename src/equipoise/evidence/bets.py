"""Where to bet at a corner: alternatives that lie on the far side of it from the null.

At a corner ``x`` a label multiplies the stake by ``rho/x`` (Y=1) or ``(1-rho)/(1-x)`` (Y=0).
Its mean under a null point ``lam`` is ``1 + (lam-x)(rho-x)/(x(1-x))``, at most 1 when lam and rho
lie on opposite sides of x. That is all that validity needs; how far to move is a matter of power.
Bets follow from the cell and the question alone: no label ever moves one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.comparison import GapScale
from equipoise.rates import Curve

_EDGE = 1e-9
# Bets on group a alone have this share of a corner's stake, and so have bets on b alone.
ONE_GROUP_SHARE = 0.125
_MOVERS = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0))  # both groups, a alone, b alone
# In epsilons: bets as small as this also decide halfway from gamma to gamma + epsilon.
SMALLEST_STEP = 0.5
STEP_RATIO = 2.5  # ratio of one size to the next of bets on a larger gap
LARGEST_STEP = 0.2  # … and about how far such a gap moves at most
BETWEEN_STEP = 2.2  # epsilons: a size against the UNFAIR set where the largest one …
WIDE_STEP = 3.0  # … is above this many epsilons
# Small bets have this share of a stake, and so have all bets on a gap far beyond epsilon.
SMALL_BET_SHARE = 0.1
_SECANT_STEPS = 4  # that bring a bet to its size, which need not be exact


@dataclass(frozen=True)
class Corners:
    """Where bets on two groups a and b start: arrays of shape (cells, corners).

    Parameters
    ----------
    start
        The corner of each group's side of the box, shape (2, cells, corners).
    curves
        The curves that bets may aim by, in one.
    aim
        Which of them bets on each group aim by, of the shape of ``start``.
    direction
        The direction in which group a leaves the box; b leaves it the other way.
    weight
        The corner's share of the cell's stake.
    extra_step
        By how much the rates move beyond a step of the gap.
    """

    start: Array
    curves: Curve
    aim: Ints
    direction: Array
    weight: Array
    extra_step: Array

    def select(self, cells: Ints | slice) -> Corners:
        """Return the corners of some cells."""
        return Corners(
            self.start[:, cells],
            self.curves,
            self.aim[:, cells],
            self.direction[cells],
            self.weight[cells],
            self.extra_step[cells],
        )


def unfair_sizes(epsilon: float) -> tuple[float, ...]:
    """For refuting the FAIR set: how far the gap moves, in epsilons.

    Where epsilon is small the gap may be many times as large, and small bets would be slow.
    """
    n_larger = 0
    if epsilon < LARGEST_STEP:
        n_larger = int(np.log(LARGEST_STEP / (STEP_RATIO * epsilon)) / np.log(STEP_RATIO))
    larger_sizes = [STEP_RATIO ** (1 + i) for i in range(1 + max(n_larger, 0))]
    return (SMALLEST_STEP, 1.0, *larger_sizes)


def fair_sizes(gap: float, epsilon: float) -> tuple[float, ...]:
    """For refuting the UNFAIR set: the gap can shrink by little more than itself.

    Where that is far beyond epsilon, one more size lies between.
    """
    largest = max(0.8 * gap / epsilon, 1.3)
    between = (BETWEEN_STEP,) if largest > WIDE_STEP else ()
    return SMALLEST_STEP, 1.0, *between, largest


def bet_shares(n_sizes: int) -> Array:
    """Return how a corner's stake is divided among directions and sizes.

    Most of it goes to two sizes, ``SMALL_BET_SHARE`` to the smallest, and as much to all sizes
    beyond the third together.
    """
    n_far = max(n_sizes - 3, 0)
    n_main = n_sizes - 1 - n_far
    main_share = (1.0 - SMALL_BET_SHARE - SMALL_BET_SHARE * (n_far > 0)) / n_main
    far_share = SMALL_BET_SHARE / max(n_far, 1)
    shares_by_size = [SMALL_BET_SHARE] + [main_share] * n_main + [far_share] * n_far
    shares_by_movers = [1.0 - 2.0 * ONE_GROUP_SHARE, ONE_GROUP_SHARE, ONE_GROUP_SHARE]
    return np.outer(shares_by_movers, shares_by_size).ravel()


def alternatives(corners: Corners, steps: Array, compare: GapScale) -> Array:
    """Return ``rho`` for a and b, shape (2, cells, corners, directions * sizes).

    Group a moves towards its side, group b against it, each in proportion to what a label of it
    tells, or one of them alone, until the gap of the rate that bets aim by has moved by the step.
    """
    start = corners.start[..., None]
    # axes: group, cell, corner, size
    aim = map_coefficients(corners.curves, lambda x: x[corners.aim][..., None])
    # A ratio is taken of the higher rate, so the higher one sets the unit of the gap.
    rate_per_gap_unit = compare.rate_per_gap(aim.value(start).max(axis=0))
    gap_steps = steps * rate_per_gap_unit + corners.extra_step[..., None]
    return move_gap(start, aim, corners.direction[..., None], gap_steps)


def move_gap(start: Array, aim: Curve, direction: Array, gap_steps: Array) -> Array:
    """Return ``rho`` for a and b, shape (2, cells, corners, directions * sizes).

    Parameters
    ----------
    start, aim
        Where both groups start, and their curves, first axis; then cells and corners.
    direction
        The direction in which group a moves; b moves the other way.
    gap_steps
        By how much the gap moves: its last axis is the size.
    """
    # b moves against a, so that the gap of a rate over both moves by the sum of both moves.
    directions = np.stack([direction, -direction])
    slope = np.abs(aim.slope(start))
    start_rate = aim.value(start)
    # A group moves in proportion to what its labels tell: the slope over a label's precision.
    pull = np.maximum(start * (1.0 - start), 1e-4) * slope
    # Not all the way to 0 or 1, so that one label never ruins a bet.
    least_rho = 0.02 * start
    largest_rho = 1.0 - 0.02 * (1.0 - start)
    rho_by_movers = []
    for movers in _MOVERS:
        # axes: group, cell, corner, size
        pull_of_movers = pull * np.array(movers)[:, None, None, None]
        # A first guess by the slopes; curves bend, so a few steps correct it by what it moved.
        stretch = gap_steps / np.maximum((pull_of_movers * slope).sum(axis=0), 1e-12)
        for _ in range(_SECANT_STEPS):
            rho = np.clip(start + directions * stretch * pull_of_movers, least_rho, largest_rho)
            gap = np.abs(aim.value(rho) - start_rate).sum(axis=0)
            stretch = stretch * np.clip(gap_steps / np.maximum(gap, 1e-12), 0.5, 2.0)
        rho = np.clip(start + directions * stretch * pull_of_movers, least_rho, largest_rho)
        rho_by_movers.append(rho)
    return np.concatenate(rho_by_movers, axis=-1)


def map_coefficients(curve: Curve, change: Callable[[Array], Array]) -> Curve:
    """Return a curve whose coefficients are arrays, all changed alike."""
    return Curve(*(change(np.asarray(x)) for x in (curve.a, curve.b, curve.c, curve.d)))


def log_factors(rho: Array, start: Array) -> Array:
    """Return the log of what labels of 0 and of 1 multiply a stake by; 0 at a useless corner.

    The outcome is the first axis of the result.
    """
    # At r = 0 an outcome of 1 is impossible already, and likewise at 1: no bet lies beyond.
    is_useless = (start < _EDGE) & (rho <= _EDGE) | (start > 1.0 - _EDGE) & (rho >= 1.0 - _EDGE)
    safe_start = np.clip(start, _EDGE, 1.0 - _EDGE)
    factors = np.stack([(1.0 - rho) / (1.0 - safe_start), rho / safe_start])
    return np.log(np.where(is_useless, 1.0, factors))
