"""Fairness metrics, each as rates that are monotone in one unknown number per group.

For a group with free shares ``p1 = P[f=1,Y=1]``, ``p0 = P[f=1,Y=0]``, ``s = P[f=0]`` the only
unknown is ``r = P[Y=1 | f=0]``. Every rate below falls in r, rises in r, or does not depend on it,
so an audit works with curves and need not know which metric it serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.cells import Cells
from equipoise.errors import BadData, UnknownName

__all__ = ["METRICS", "RATES", "Curve", "difference", "rate_curve", "rates"]

Array = NDArray[np.float64]

METRICS: Mapping[str, tuple[str, ...]] = {
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
    "equal_opportunity": ("true_positive_rate",),
    "predictive_equality": ("false_positive_rate",),
    "demographic_parity": ("selection_rate",),
    "false_omission_parity": ("false_omission_rate",),
    "accuracy_parity": ("accuracy",),
    "predictive_parity": ("precision",),
}

RATES: Mapping[str, str] = {
    "true_positive_rate": "approved share of those with outcome 1",
    "false_positive_rate": "approved share of those with outcome 0",
    "selection_rate": "approved share of everybody",
    "false_omission_rate": "share of outcome 1 among the denied",
    "accuracy": "share of decisions that agree with the outcome",
    "precision": "share of outcome 1 among the approved",
}


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

    def value(self, r: ArrayLike) -> Array:
        """Return the rate at r."""
        r = np.asarray(r, dtype=float)
        return np.asarray((self.a + self.b * r) / (self.c + self.d * r))

    def slope_at(self, r: ArrayLike) -> Array:
        """Return the derivative of the rate at r."""
        r = np.asarray(r, dtype=float)
        return np.asarray((self.b * self.c - self.a * self.d) / (self.c + self.d * r) ** 2)

    def cut(self, value: ArrayLike) -> Array:
        """Return the r at which the rate passes ``value``, -inf or +inf where it never does.

        For a falling curve ``rate(r) >= v`` exactly when ``r <= cut(v)``, for a rising one exactly
        when ``r >= cut(v)``; a constant counts as falling.
        """
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


def rate_curve(rate: str, p1: float, p0: float, s: float) -> Curve | None:
    """Return a group's rate as a curve in r, or None if its denominator is empty for every r.

    Examples
    --------
    >>> rate_curve("accuracy", p1=0.25, p0=0.25, s=0.5)
    Curve(a=0.75, b=-0.5, c=1.0, d=0.0)
    """
    if rate == "true_positive_rate":
        return _hyperbola(p1, s, rising=False)
    if rate == "false_positive_rate":
        return _hyperbola(p0, s, rising=True)
    if rate == "selection_rate":
        return Curve.constant((p1 + p0) / (p1 + p0 + s))
    if rate == "false_omission_rate":
        return Curve(0.0, 1.0) if s > 0.0 else None
    if rate == "accuracy":
        total = p1 + p0 + s
        return Curve((p1 + s) / total, -s / total)
    if rate == "precision":
        return Curve.constant(p1 / (p1 + p0)) if p1 + p0 > 0.0 else None
    raise UnknownName("rate", rate, RATES)


def rates(cells: Cells, r: Mapping[str, float], metric: str) -> dict[str, dict[str, float]]:
    """Return every group's rates when ``r`` is known, as rate -> group -> value.

    Raises
    ------
    BadData
        If a rate has an empty denominator in some group.
    """
    out: dict[str, dict[str, float]] = {}
    for rate in METRICS[metric]:
        out[rate] = {}
        for group, counts in cells.items():
            curve = rate_curve(rate, *counts.shares)
            unknown = r[group]
            if curve is None or _denominator_is_empty(rate, *counts.shares, unknown):
                raise BadData(
                    f"the {rate.replace('_', ' ')} of group {group!r} has an empty denominator; "
                    "merge the group with another or leave it out"
                )
            out[rate][group] = float(curve.value(unknown))
    return out


def difference(cells: Cells, r: Mapping[str, float], metric: str) -> float:
    """Return Delta, the largest difference between two groups over the metric's rates.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> cells = Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)})
    >>> round(difference(cells, {"A": 0.2, "B": 0.1}, "equal_opportunity"), 4)
    0.1737
    """
    by_rate = rates(cells, r, metric)
    return max(_spread(list(values.values())) for values in by_rate.values())


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _hyperbola(approved: float, denied: float, *, rising: bool) -> Curve | None:
    if denied == 0.0:
        return Curve.constant(1.0) if approved > 0.0 else None
    if approved == 0.0:
        return Curve.constant(0.0)
    return Curve.rising(denied / approved) if rising else Curve.falling(denied / approved)


def _denominator_is_empty(rate: str, p1: float, p0: float, s: float, r: float) -> bool:
    if rate == "true_positive_rate":
        return p1 + s * r == 0.0
    if rate == "false_positive_rate":
        return p0 + s * (1.0 - r) == 0.0
    return False
