"""How groups' rates are compared: by their difference or ratio; which unknowns a rate allows."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from equipoise.rates import Band

    Array = NDArray[np.float64]

__all__ = ["GapScale", "box_between"]

Number = TypeVar("Number", float, "Array")

_LEAST = 1e-3  # rates below are alike when cells are laid out; validity does not rest on it


class GapScale(StrEnum):
    """The gap between a lower and a higher rate: ``high - low``, or ``1 - low/high``.

    The ratio's gap is 0 for 0/0 and 1 for 0/x. Between two rates the gap is at least ``c`` exactly
    when the higher one is at least ``above(low, c)``, and exactly when the lower one is at most
    ``below(high, c)`` (for 0/0 the ratio's bounds hold for every c: limits of 0/x).

    Examples
    --------
    >>> float(GapScale.RATIO.gap(0.25, 0.5)), float(GapScale.RATIO.gap(0.0, 0.0))
    (0.5, 0.0)
    >>> GapScale.RATIO.above(0.25, 0.5), GapScale.RATIO.below(0.5, 0.5)
    (0.5, 0.25)
    """

    DIFFERENCE = "difference"
    RATIO = "ratio"

    @property
    def noun(self) -> str:
        """What the gap is called: a difference, or how much the lower rate falls short."""
        return "difference" if self is GapScale.DIFFERENCE else "shortfall"

    def gap(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return how far apart a lower and a higher rate are; not positive where low >= high."""
        import numpy as np

        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        if self is GapScale.DIFFERENCE:
            return np.asarray(high - low)
        same = np.ones(np.broadcast(low, high).shape)
        return np.asarray(1.0 - np.divide(low, high, out=same, where=high > 0.0))

    def above(self, rate: Number, gap: Number | float) -> Number:
        """Return the least rate that is ``gap`` above a rate."""
        return rate + gap if self is GapScale.DIFFERENCE else rate / (1.0 - gap)

    def below(self, rate: Number, gap: Number | float) -> Number:
        """Return the largest rate that is ``gap`` below a rate."""
        return rate - gap if self is GapScale.DIFFERENCE else rate * (1.0 - gap)

    def unit(self, rate: Array) -> Array:
        """Return how far a rate moves when its gap to another moves by 1, about."""
        import numpy as np

        return np.ones_like(rate) if self is GapScale.DIFFERENCE else np.maximum(rate, _LEAST)

    def scale(self, rate: Array) -> Array:
        """Return a rate on the scale on which equal steps are equal gaps."""
        import numpy as np

        return rate if self is GapScale.DIFFERENCE else np.log(np.maximum(rate, _LEAST))


def box_between(bands: Sequence[Band], low: ArrayLike, high: ArrayLike) -> tuple[Array, Array]:
    """Return the unknowns at which each group's rate may lie in [low, high]: their least and most.

    The last axis of both results is the group; ends may lie beyond [0, 1] (infinite), and nothing
    is allowed where the least exceeds the most.
    """
    import numpy as np

    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    sides = []
    for band in bands:
        if band.depends_on_r:
            falls = band.low.trend < 0 or band.high.trend < 0
            least, most = band.between(low, high, falling=falls)
        else:
            fits = (band.low.value(0.0) <= high) & (band.high.value(0.0) >= low)
            least, most = np.where(fits, -np.inf, np.inf), np.where(fits, np.inf, -np.inf)
        sides.append(np.broadcast_arrays(least, most))
    return np.stack([s[0] for s in sides], axis=-1), np.stack([s[1] for s in sides], axis=-1)
