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
ONE_GROUP_SHARE = (
    0.125  # share of a corner's stake on bets that move group a alone; the same for b alone
)
_DIRECTIONS = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0))  # both groups, a alone, b alone
SMALLEST_STEP = (
    0.5  # epsilons: bets as small as this also decide halfway from gamma to gamma + epsilon
)
STEP_RATIO = 2.5  # ratio of one size to the next of bets on a larger gap
LARGEST_STEP = 0.2  # … and about how far such a gap moves at most
BETWEEN_STEP = 2.2  # epsilons: a size against the UNFAIR set where the largest one …
WIDE_STEP = 3.0  # … is above this many epsilons
SMALL_BET_SHARE = (
    0.1  # share of a stake on small bets; the same for all on a gap far beyond epsilon
)


@dataclass(frozen=True)
class Corners:
    """Where bets on two groups a and b start: arrays of shape (cells, corners).

    Parameters
    ----------
    at
        The corner of each group's side of the box, shape (2, cells, corners).
    curves
        The curves that bets may aim by, in one.
    aim
        Which of them bets on each group aim by, of the shape of ``at``.
    side
        The direction in which group a leaves the box; b leaves it the other way.
    weight
        The corner's share of the cell's stake.
    extra
        By how much the rates move beyond a step of the gap.
    """

    at: Array
    curves: Curve
    aim: Ints
    side: Array
    weight: Array
    extra: Array

    def some(self, cells: Ints | slice) -> Corners:
        """Return the corners of some cells."""
        of_cells = (x[..., cells, :] for x in (self.side, self.weight, self.extra))
        return Corners(self.at[:, cells], self.curves, self.aim[:, cells], *of_cells)


def unfair_sizes(epsilon: float) -> tuple[float, ...]:
    """For refuting the FAIR set: how far the gap moves, in epsilons.

    Where epsilon is small the gap may be many times as large, and small bets would be slow.
    """
    larger = (
        int(np.log(LARGEST_STEP / (STEP_RATIO * epsilon)) / np.log(STEP_RATIO))
        if epsilon < LARGEST_STEP
        else 0
    )
    return SMALLEST_STEP, 1.0, *(STEP_RATIO ** (1 + i) for i in range(1 + max(larger, 0)))


def fair_sizes(gap: float, epsilon: float) -> tuple[float, ...]:
    """For refuting the UNFAIR set: the gap can shrink by little more than itself.

    Where that is far beyond epsilon, one more size lies between.
    """
    largest = max(0.8 * gap / epsilon, 1.3)
    between = (BETWEEN_STEP,) if largest > WIDE_STEP else ()
    return SMALLEST_STEP, 1.0, *between, largest


def bet_shares(sizes: int) -> Array:
    """Return how a corner's stake is divided among directions and sizes.

    Most of it goes to two sizes, ``SMALL_BET_SHARE`` to the smallest, and as much to all sizes
    beyond the third together.
    """
    far = max(sizes - 3, 0)
    main = sizes - 1 - far
    each = (1.0 - SMALL_BET_SHARE - SMALL_BET_SHARE * (far > 0)) / main
    by_size = [SMALL_BET_SHARE] + [each] * main + [SMALL_BET_SHARE / max(far, 1)] * far
    return np.outer(
        [1.0 - 2.0 * ONE_GROUP_SHARE, ONE_GROUP_SHARE, ONE_GROUP_SHARE], by_size
    ).ravel()


def alternatives(corners: Corners, steps: Array, compare: GapScale) -> Array:
    """Return ``rho`` for a and b, shape (2, cells, corners, directions * sizes).

    Group a moves towards its side, group b against it, each in proportion to what a label of it
    tells, or one of them alone, until the gap of the rate that bets aim by has moved by the step.
    """
    at = corners.at[..., None]
    aim = map_coefficients(corners.curves, lambda x: x[corners.aim][..., None])
    unit = compare.rate_per_gap(aim.value(at).max(axis=0))
    wanted = steps * unit + corners.extra[..., None]
    return move_gap(at, aim, corners.side[..., None], wanted)


def move_gap(at: Array, aim: Curve, side: Array, wanted: Array) -> Array:
    """Return ``rho`` for a and b, shape (2, cells, corners, directions * sizes).

    Parameters
    ----------
    at, aim
        Where both groups start, and their curves, first axis; then cells and corners.
    side
        The direction in which group a moves; b moves the other way.
    wanted
        By how much the gap moves: its last axis is the size.
    """
    side = np.stack([side, -side])
    slope, start = np.abs(aim.slope(at)), aim.value(at)
    pull = np.maximum(at * (1.0 - at), 1e-4) * slope
    low, high = 0.02 * at, 1.0 - 0.02 * (1.0 - at)  # one label never ruins a bet
    moved = []
    for direction in _DIRECTIONS:
        own = pull * np.array(direction)[:, None, None, None]
        mu = wanted / np.maximum((own * slope).sum(axis=0), 1e-12)
        for turn in range(5):  # a few secant steps: the size of a bet need not be exact
            rho = np.clip(at + side * mu * own, low, high)
            if turn < 4:
                gap = np.abs(aim.value(rho) - start).sum(axis=0)
                mu = mu * np.clip(wanted / np.maximum(gap, 1e-12), 0.5, 2.0)
        moved.append(rho)
    return np.concatenate(moved, axis=-1)


def map_coefficients(curve: Curve, how: Callable[[Array], Array]) -> Curve:
    """Return a curve whose coefficients are arrays, all changed alike."""
    return Curve(*(how(np.asarray(x)) for x in (curve.a, curve.b, curve.c, curve.d)))


def log_factors(rho: Array, at: Array) -> Array:
    """Return the log of what labels of 0 and of 1 multiply a stake by; 0 at a useless corner.

    The outcome is the first axis of the result.
    """
    useless = (at < _EDGE) & (rho <= _EDGE) | (at > 1.0 - _EDGE) & (rho >= 1.0 - _EDGE)
    safe = np.clip(at, _EDGE, 1.0 - _EDGE)
    zero, one = (1.0 - rho) / (1.0 - safe), rho / safe
    return np.log(np.where(useless, 1.0, np.stack([zero, one])))
