"""A rate of one group as a function of its unknown: a curve, or a band where the past is finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a question is asked without numpy; curves are drawn when it is answered
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

__all__ = ["Band", "Curve"]


@dataclass(frozen=True)
class Curve:
    """A rate of one group as a monotone function of ``r`` on [0, 1].

    Every rate is a fraction ``(a + b r) / (c + d r)`` without a pole in [0, 1]: a hyperbola for TPR
    (falling) and FPR (rising), a line for the others, a constant where the free data suffice.

    Examples
    --------
    >>> tpr = Curve.falling(odds=2.0)  # 1 / (1 + 2 r)
    >>> float(tpr.value(0.5)), float(tpr.cut(0.5)), tpr.trend
    (0.5, 0.5, -1)
    """

    a: float
    b: float
    c: float = 1.0
    d: float = 0.0

    @classmethod
    def falling(cls, odds: float) -> Curve:
        """Return ``1 / (1 + odds r)``."""
        return cls(1.0, 0.0, 1.0, odds)

    @classmethod
    def rising(cls, odds: float) -> Curve:
        """Return ``1 / (1 + odds (1 - r))``."""
        return cls(1.0, 0.0, 1.0 + odds, -odds)

    @classmethod
    def constant(cls, value: float) -> Curve:
        """Return a rate that does not depend on r."""
        return cls(value, 0.0)

    @property
    def trend(self) -> int:
        """+1 if the rate rises in r, -1 if it falls, 0 if it is constant."""
        slope = self.b * self.c - self.a * self.d
        return 1 if slope > 0.0 else -1 if slope < 0.0 else 0

    def at(self, r: float) -> float:
        """Return the rate at one r, as a plain number."""
        return (self.a + self.b * r) / (self.c + self.d * r)

    def value(self, r: ArrayLike) -> Array:
        """Return the rate at r."""
        import numpy as np

        r = np.asarray(r, dtype=float)
        return np.asarray((self.a + self.b * r) / (self.c + self.d * r))

    def slope_at(self, r: ArrayLike) -> Array:
        """Return the derivative of the rate at r."""
        import numpy as np

        r = np.asarray(r, dtype=float)
        return np.asarray((self.b * self.c - self.a * self.d) / (self.c + self.d * r) ** 2)

    def cut(self, value: ArrayLike) -> Array:
        """Return the r at which the rate passes ``value``, -inf or +inf where it never does.

        For a falling curve ``rate(r) >= v`` exactly when ``r <= cut(v)``, for a rising one exactly
        when ``r >= cut(v)``; a constant counts as falling.
        """
        import numpy as np

        v = np.asarray(value, dtype=float)
        at_zero, at_one = self.a / self.c, (self.a + self.b) / (self.c + self.d)
        trend = self.trend
        if trend == 0:
            return np.where(at_zero >= v, np.inf, -np.inf)
        inside = np.minimum(np.maximum(v, min(at_zero, at_one)), max(at_zero, at_one))
        r = (self.a - inside * self.c) / (inside * self.d - self.b)
        r = np.minimum(np.maximum(r, 0.0), 1.0)
        beyond_zero, beyond_one = v > at_zero, v < at_one
        if trend > 0:
            beyond_zero, beyond_one = v < at_zero, v > at_one
        return np.asarray(np.where(beyond_zero, -np.inf, np.where(beyond_one, np.inf, r)))

    def until(self, value: Array, *, falling: bool) -> Array:
        """Return the largest r with rate >= value (falling rate) or rate <= value (rising rate)."""
        import numpy as np

        if self.trend != 0:
            return self.cut(value)
        holds = self.value(0.0) >= value if falling else self.value(0.0) <= value
        return np.where(holds, np.inf, -np.inf)

    def since(self, value: Array, *, falling: bool) -> Array:
        """Return the least r with rate <= value (falling rate) or rate >= value (rising rate)."""
        import numpy as np

        if self.trend != 0:
            return self.cut(value)
        holds = self.value(0.0) <= value if falling else self.value(0.0) >= value
        return np.where(holds, -np.inf, np.inf)


@dataclass(frozen=True)
class Band:
    """A group's rate lies between two curves of the same trend; one curve if the past is exact."""

    low: Curve
    high: Curve

    @classmethod
    def exact(cls, curve: Curve) -> Band:
        """Return the band of a rate that is known up to r."""
        return cls(curve, curve)

    @property
    def depends_on_r(self) -> bool:
        """Whether labels of denied people can say anything about the rate."""
        return self.low.trend != 0 or self.high.trend != 0
