"""How small the gaps of two rates can be at once: each group's r ties its rates together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.compare import Compare
from equipoise.curves import Band, Curve

__all__ = ["JointGap"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NARROWEST = 1e-7  # cells of levels are not halved any further
_MOST_CELLS = 100_000


class JointGap:
    """Two rates of every group as its r ranges over a box.

    A gap d of the first rate is possible where, for some level t, every group's rate fits between
    t and d above it. For t in a cell the two constraints are relaxed by the cell's two ends; what
    is impossible then is impossible for every t of the cell, others are halved.

    Parameters
    ----------
    falling
        Whether the first rate falls in r.
    first, second
        The rates' bands per group.
    boxes
        Where each group's r lies.
    """

    def __init__(
        self,
        falling: bool,
        first: Mapping[str, Band],
        second: Mapping[str, Band],
        boxes: Mapping[str, tuple[float, float]],
        compare: Compare,
    ) -> None:
        self._falling, self._compare = falling, compare
        self._first, self._second = (
            (_Curves([b[g].low for g in first]), _Curves([b[g].high for g in first]))
            for b in (first, second)
        )
        self._start, self._end = np.array([boxes[g] for g in first]).T[:, :, None]

    def exceeds(self, gap: float) -> bool:
        """Say whether both gaps are certainly larger than ``gap``, whatever r in the boxes."""
        low, high = _cells()
        while True:
            middle = (low + high) / 2.0
            if self._possible(middle, middle, gap).any():
                return False
            live = self._possible(low, high, gap)
            if not live.any():
                return True
            if (high - low).max() < _NARROWEST or live.sum() > _MOST_CELLS:
                return False
            low, high = _halves(low, middle, high, live)

    def least(self, floor: float, ceiling: float, tolerance: float) -> float:
        """Return the least d that both gaps can have at once, never too much.

        ``floor`` is the least d of the rates one by one, which often says as much.
        """
        if not self.exceeds(floor + tolerance):
            return floor
        least, largest = floor + tolerance, ceiling
        while largest - least > tolerance:
            middle = (least + largest) / 2.0
            least, largest = (middle, largest) if self.exceeds(middle) else (least, middle)
        return least

    def _possible(self, t_low: Array, t_high: Array, d: float) -> Flags:
        top = self._compare.above(t_high, d)
        low, high = self._first
        if self._falling:
            since = low.cut(top, low.constants <= top, -np.inf)
            until = high.cut(t_low, high.constants >= t_low, np.inf)
        else:
            since = high.cut(t_low, high.constants >= t_low, -np.inf)
            until = low.cut(top, low.constants <= top, np.inf)
        since, until = np.maximum(self._start, since), np.minimum(self._end, until)
        at = np.clip(np.stack([since, until]), 0.0, 1.0)
        lowest, highest = (curves.value(at) for curves in self._second)
        gap = self._compare.gap(
            highest.max(axis=0).min(axis=0),
            lowest.min(axis=0).max(axis=0),
        )
        return np.asarray((since <= until).all(axis=0) & (gap <= d))


class _Curves:
    """A curve per group, as arrays of shape (groups, 1)."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        self._a, self._b, self._c, self._d = np.array(
            [(curve.a, curve.b, curve.c, curve.d) for curve in curves]
        ).T[:, :, None]
        self._trend = np.array([[curve.trend] for curve in curves])
        self._at_zero = self._a / self._c
        self._at_one = (self._a + self._b) / (self._c + self._d)
        self._ends = (
            np.minimum(self._at_zero, self._at_one),
            np.maximum(self._at_zero, self._at_one),
        )

    @property
    def constants(self) -> Array:
        """The rates at r = 0, which are those of constant curves everywhere."""
        return np.asarray(self._at_zero)

    def value(self, r: Array) -> Array:
        return np.asarray((self._a + self._b * r) / (self._c + self._d * r))

    def cut(self, value: Array, holds: Flags, end: float) -> Array:
        """Return the r at which each curve passes a value: see :meth:`equipoise.curves.Curve.cut`.

        A constant is on the right side everywhere, at ``end``, or nowhere.
        """
        least, largest = self._ends
        inside = np.minimum(np.maximum(value, least), largest)
        with np.errstate(divide="ignore", invalid="ignore"):
            r = (self._a - inside * self._c) / (inside * self._d - self._b)
        r = np.minimum(np.maximum(r, 0.0), 1.0)
        rises = self._trend > 0
        beyond_zero = np.where(rises, value < self._at_zero, value > self._at_zero)
        beyond_one = np.where(rises, value > self._at_one, value < self._at_one)
        r = np.where(beyond_zero, -np.inf, np.where(beyond_one, np.inf, r))
        return np.asarray(np.where(self._trend == 0, np.where(holds, end, -end), r))


def _cells() -> tuple[Array, Array]:
    edges = np.linspace(0.0, 1.0, 65)
    return edges[:-1], edges[1:]


def _halves(low: Array, middle: Array, high: Array, live: Flags) -> tuple[Array, Array]:
    return (
        np.concatenate([low[live], middle[live]]),
        np.concatenate([middle[live], high[live]]),
    )
