"""Fairness metrics, each as rates that are monotone in one unknown number per group.

For a group with free shares ``p1 = P[f=1,Y=1]``, ``p0 = P[f=1,Y=0]``, ``s = P[f=0]`` the only
unknown is ``r = P[Y=1 | f=0]``. Every rate below falls in r, rises in r, or does not depend on it,
so an audit works with curves and need not know which metric it serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.cells import Cells
from equipoise.errors import BadData, UnknownName

__all__ = ["METRICS", "RATES", "Curve", "Hyperbola", "Line", "difference", "rate_curve", "rates"]

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


class Curve(Protocol):
    """A rate of one group as a monotone function of ``r`` on [0, 1].

    ``trend`` is +1 if the rate rises in r, -1 if it falls, 0 if it is constant. ``cut(v)`` is the
    r at which the rate passes v, -inf or +inf where it never does: for a falling curve
    ``rate(r) >= v`` exactly when ``r <= cut(v)``, for a rising one exactly when ``r >= cut(v)``.
    """

    @property
    def trend(self) -> int: ...  # noqa: D102

    def value(self, r: ArrayLike) -> Array: ...  # noqa: D102

    def slope_at(self, r: ArrayLike) -> Array: ...  # noqa: D102

    def cut(self, value: ArrayLike) -> Array: ...  # noqa: D102


@dataclass(frozen=True)
class Hyperbola:
    """``1 / (1 + odds x)`` with ``x = r`` (falling) or ``x = 1 - r`` (rising), odds > 0.

    TPR falls with odds ``s/p1``, FPR rises with odds ``s/p0``.

    Examples
    --------
    >>> tpr = Hyperbola(odds=2.0, rising=False)
    >>> float(tpr.value(0.5)), float(tpr.cut(0.5))
    (0.5, 0.5)
    """

    odds: float
    rising: bool

    @property
    def trend(self) -> int:
        """Return +1 or -1."""
        return 1 if self.rising else -1

    def value(self, r: ArrayLike) -> Array:
        """Return the rate at r."""
        return np.asarray(1.0 / (1.0 + self.odds * self._x(r)))

    def slope_at(self, r: ArrayLike) -> Array:
        """Return the derivative of the rate at r."""
        return np.asarray(self.trend * self.odds / (1.0 + self.odds * self._x(r)) ** 2)

    def cut(self, value: ArrayLike) -> Array:
        """Return the r at which the rate passes ``value``."""
        v = np.asarray(value, dtype=float)
        with np.errstate(divide="ignore"):
            x = np.where(v > 0.0, (1.0 / np.where(v > 0.0, v, 1.0) - 1.0) / self.odds, np.inf)
        x = np.where(x < 0.0, -np.inf, np.where(x > 1.0, np.inf, x))
        return np.asarray(1.0 - x if self.rising else x)

    def _x(self, r: ArrayLike) -> Array:
        r = np.asarray(r, dtype=float)
        return 1.0 - r if self.rising else r


@dataclass(frozen=True)
class Line:
    """``at_zero + slope r``; a slope of 0 is a rate that the free data determine.

    Examples
    --------
    >>> float(Line(0.9, -0.5).cut(0.65)), float(Line(0.9, 0.0).cut(0.95))
    (0.5, -inf)
    """

    at_zero: float
    slope: float

    @property
    def trend(self) -> int:
        """Return +1, -1 or 0."""
        return int(np.sign(self.slope))

    def value(self, r: ArrayLike) -> Array:
        """Return the rate at r."""
        return np.asarray(self.at_zero + self.slope * np.asarray(r, dtype=float))

    def slope_at(self, r: ArrayLike) -> Array:
        """Return the derivative of the rate at r."""
        return np.full(np.shape(r), self.slope)

    def cut(self, value: ArrayLike) -> Array:
        """Return the r at which the rate passes ``value``; a constant counts as falling."""
        v = np.asarray(value, dtype=float)
        if self.slope == 0.0:
            return np.where(self.at_zero >= v, np.inf, -np.inf)
        r = (v - self.at_zero) / self.slope
        return np.asarray(np.where(r < 0.0, -np.inf, np.where(r > 1.0, np.inf, r)))


def rate_curve(rate: str, p1: float, p0: float, s: float) -> Curve | None:
    """Return a group's rate as a curve in r, or None if its denominator is empty for every r.

    Examples
    --------
    >>> rate_curve("accuracy", p1=0.25, p0=0.25, s=0.5)
    Line(at_zero=0.75, slope=-0.5)
    """
    if rate == "true_positive_rate":
        return _hyperbola(p1, s, rising=False)
    if rate == "false_positive_rate":
        return _hyperbola(p0, s, rising=True)
    if rate == "selection_rate":
        return Line((p1 + p0) / (p1 + p0 + s), 0.0)
    if rate == "false_omission_rate":
        return Line(0.0, 1.0) if s > 0.0 else None
    if rate == "accuracy":
        total = p1 + p0 + s
        return Line((p1 + s) / total, -s / total)
    if rate == "precision":
        return Line(p1 / (p1 + p0), 0.0) if p1 + p0 > 0.0 else None
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
        return Line(1.0, 0.0) if approved > 0.0 else None
    if approved == 0.0:
        return Line(0.0, 0.0)
    return Hyperbola(denied / approved, rising)


def _denominator_is_empty(rate: str, p1: float, p0: float, s: float, r: float) -> bool:
    if rate == "true_positive_rate":
        return p1 + s * r == 0.0
    if rate == "false_positive_rate":
        return p0 + s * (1.0 - r) == 0.0
    return False
