"""Where bets against a cell start: corners of the box around it, for either wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.geometry import Pair

__all__ = ["CornerRule", "Corners", "FairCorners", "UnfairCorners"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Corners:
    """The corners of cells over intervals of ``lam_b``: arrays of shape (n, q), q corners each.

    ``side`` is the direction in which group a leaves the null, ``weight`` the corner's share of the
    cell's stake, ``extra`` what is added to every step, ``active`` the rate that bets aim by.
    ``empty`` marks intervals above which there is nothing to refute.
    """

    lam_a: Array
    lam_b: Array
    side: Array
    weight: Array
    extra: Array
    active: Ints
    empty: Flags
    box: Array  # (n, 4): the cell lies in [box0, box1] for a, [box2, box3] for b


CornerRule = Callable[[Pair, Array, Array, Ints], Corners]


@dataclass(frozen=True)
class UnfairCorners:
    """Corners of the UNFAIR set's cells: (u(end), start), left by a rising and b falling."""

    gap: float

    def __call__(self, pair: Pair, start: Array, end: Array, half: Ints) -> Corners:
        """Return the corners of some cells."""
        u = pair.unfair_below(end, self.gap)
        one = np.ones((len(start), 1))
        return Corners(
            lam_a=np.clip(u.at, 0.0, 1.0)[:, None],
            lam_b=start[:, None],
            side=one,
            weight=one,
            extra=0.0 * one,
            active=u.active[:, None],
            empty=u.at < 0.0,
            box=np.stack([np.zeros_like(start), np.clip(u.at, 0.0, 1.0), start, end], axis=1),
        )


@dataclass(frozen=True)
class FairCorners:
    """Corners of the FAIR set's cells: each interval's corridor is split at its middle line.

    The upper half (``half`` = 1) bets mostly that the truth lies above the corridor, at
    (U(end), start), and a little that it lies below the middle line; the lower half mirrors it.
    """

    gap: float

    def __call__(self, pair: Pair, start: Array, end: Array, half: Ints) -> Corners:
        """Return the corners of some cells."""
        gap, minor = self.gap, 0.5 if self.gap == 0.0 else 0.1
        from_start, from_end = pair.fair_from(start, gap), pair.fair_from(end, gap)
        to_start, to_end = pair.fair_to(start, gap), pair.fair_to(end, gap)
        low, high = np.clip(from_start.at, 0.0, 1.0), np.clip(to_end.at, 0.0, 1.0)
        middle_start = (low + np.clip(to_start.at, 0.0, 1.0)) / 2.0
        middle_end = (np.clip(from_end.at, 0.0, 1.0) + high) / 2.0
        upper = half == 1
        up_a = np.where(upper, high, np.minimum(middle_end, high))
        down_a = np.where(upper, np.maximum(middle_start, low), low)
        up_share = np.where(upper, 1.0 - minor, minor)
        return Corners(
            lam_a=np.stack([up_a, down_a], axis=1),
            lam_b=np.stack([start, end], axis=1),
            side=np.tile([1.0, -1.0], (len(start), 1)),
            weight=np.stack([up_share, 1.0 - up_share], axis=1),
            extra=np.stack([np.where(upper, 0.0, gap), np.where(upper, gap, 0.0)], axis=1),
            active=np.stack([to_end.active, from_start.active], axis=1),
            empty=(from_start.at > to_end.at) | (from_start.at > 1.0) | (to_end.at < 0.0),
            box=np.stack(
                [
                    np.where(upper, np.maximum(middle_start, low), low),
                    np.where(upper, high, np.minimum(middle_end, high)),
                    start,
                    end,
                ],
                axis=1,
            ),
        )
