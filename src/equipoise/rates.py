"""What a rate is: one object with all that an audit, a report and a page of notation need of it.

For a group with free shares ``p1 = P[f=1,Y=1]``, ``p0 = P[f=1,Y=0]``, ``s = P[f=0]`` the only
unknown is ``r = P[Y=1 | f=0]``. A rate is a curve in r that does not change its direction; an
audit works with curves and need not know which rate it serves. A wrong direction or a band that is
too narrow would make verdicts wrong without a sign, so a rate is held against its own definition
when it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Protocol

from equipoise.cells import GroupCells
from equipoise.curves import Band, Curve
from equipoise.errors import InvalidInput

__all__ = ["CONSTANT", "FALLING", "RISING", "UNKNOWN", "Rate", "ShareBounds"]

FALLING, CONSTANT, RISING = -1, 0, 1
UNKNOWN = Band(Curve.constant(0.0), Curve.constant(1.0))
"""The band of a rate of nobody: it may be anything."""


class ShareBounds(Protocol):
    """Bounds of a share from a sample of it."""

    def __call__(self, successes: float, trials: float, *, parts: int = 1) -> tuple[float, float]:
        """Return bounds, each at a curve's level over ``parts``, the shares that a curve needs."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate of the confusion matrix as a monotone function of one unknown per group.

    Parameters
    ----------
    name
        How code and files call it, such as ``"true_positive_rate"``.
    fraction
        The definition: from the shares of true positives, false positives, false negatives and
        true negatives to numerator and denominator. Where the denominator is 0 the rate is of
        nobody.
    curve
        The rate as a curve in r, from ``p1``, ``p0``, ``s``; None if it is of nobody for every r.
    trend
        :data:`FALLING`, :data:`RISING` or :data:`CONSTANT` in r.
    band
        What finite past data say: from a group's counts, and bounds of shares, to two curves. Each
        curve must be on its right side whenever the bounds that it uses are.
    phrase
        What it is, in words: "approved share of those with outcome 1".
    probability
        What it is, as a probability: "P[f=1 | Y=1, A=a]".
    formula
        What it is in ``p1``, ``p0``, ``s`` and ``r``.

    Raises
    ------
    InvalidInput
        If curve, trend or band do not fit the definition.

    Examples
    --------
    >>> base_rate = Rate(
    ...     name="base_rate",
    ...     fraction=lambda tp, fp, fn, tn: (tp + fn, tp + fp + fn + tn),
    ...     curve=lambda p1, p0, s: Curve(p1, s),
    ...     trend=RISING,
    ...     band=lambda counts, share: Band(*(
    ...         Curve(p1, s) for p1, s in zip(
    ...             share(counts.approved_positive, counts.total, parts=2),
    ...             share(counts.denied, counts.total, parts=2),
    ...         )
    ...     )),
    ...     phrase="share of outcome 1 among everybody",
    ...     probability="P[Y=1 | A=a]",
    ...     formula="p1 + s r",
    ... )
    >>> base_rate.curve(0.25, 0.25, 0.5).at(0.5)
    0.5
    """

    name: str
    fraction: Callable[[float, float, float, float], tuple[float, float]]
    curve: Callable[[float, float, float], Curve | None]
    trend: int
    band: Callable[[GroupCells, ShareBounds], Band]
    phrase: str
    probability: str
    formula: str

    def __post_init__(self) -> None:
        for field in ("name", "phrase", "probability", "formula"):
            if not isinstance(value := getattr(self, field), str) or not value:
                raise InvalidInput(f"{field!r} of a rate must be some words; got {value!r}")
        for field in ("fraction", "curve", "band"):
            if not callable(value := getattr(self, field)):
                raise self._refused(f"{field!r} must be a function; got {value!r}")
        if self.trend not in (FALLING, CONSTANT, RISING):
            raise self._refused(f"'trend' must be FALLING, CONSTANT or RISING; got {self.trend!r}")
        self._check_curve()
        self._check_band()
        self._check_coverage()

    @property
    def words(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ")

    @property
    def falls(self) -> bool:
        """Whether the rate falls in r."""
        return self.trend == FALLING

    def is_of_nobody(self, p1: float, p0: float, s: float, r: float) -> bool:
        """Say whether the denominator is empty."""
        return self.fraction(p1, p0, s * r, s * (1.0 - r))[1] == 0.0

    # -- what is checked when a rate is made -----------------------------------------------------

    def _check_curve(self) -> None:
        trends = set()
        for counts in _PASTS:
            p1, p0, s = counts.shares
            curve = self.curve(p1, p0, s)
            where = f"for p1, p0, s = {p1:g}, {p0:g}, {s:g}"
            if (curve is None) != all(self.is_of_nobody(p1, p0, s, r) for r in _POINTS):
                raise self._refused(f"'curve' must be None where the rate is of nobody; {where}")
            if curve is None:
                continue
            trends.add(curve.trend)
            for r in _POINTS:
                part, whole = self.fraction(p1, p0, s * r, s * (1.0 - r))
                if whole > 0.0 and abs(curve.at(r) - part / whole) > _ROUNDING:
                    raise self._refused(
                        f"'curve' must equal 'fraction', {part / whole:g} at r = {r:g} {where}; "
                        f"got {curve.at(r):g}"
                    )
        if trends - {CONSTANT, self.trend} or (self.trend and self.trend not in trends):
            raise self._refused(
                f"'trend' must be that of 'curve'; got {_TREND_WORDS[self.trend]}, and the curve "
                f"is {' or '.join(_TREND_WORDS[t] for t in sorted(trends))}"
            )

    def _check_band(self) -> None:
        for counts in _PASTS:
            band, curve = self.band(counts, _share), self.curve(*counts.shares)
            where = f"for the counts {counts}"
            for side in (band.low, band.high):
                if side.trend not in (CONSTANT, self.trend):
                    raise self._refused(
                        f"'band' must not have a curve that is {_TREND_WORDS[side.trend]}; {where}"
                    )
            if curve is None:
                continue
            for r in _POINTS:
                low, middle, high = band.low.at(r), curve.at(r), band.high.at(r)
                if not low - _ROUNDING <= middle <= high + _ROUNDING:
                    raise self._refused(
                        f"'band' must hold the curve of its own counts; at r = {r:g} {where} it is "
                        f"[{low:g}, {high:g}] and the curve {middle:g}"
                    )

    def _check_coverage(self) -> None:
        """Add up, over every past of a few people, how often either curve is on its wrong side."""
        for shares in _TRUTHS:
            if (truth := self.curve(*shares)) is None:
                continue
            missed = [0.0, 0.0]
            for counts in _PASTS:
                chance = _chance(counts, shares)
                band = self.band(counts, _share)
                missed[0] += chance * any(band.low.at(r) > truth.at(r) + _ROUNDING for r in _POINTS)
                missed[1] += chance * any(
                    band.high.at(r) < truth.at(r) - _ROUNDING for r in _POINTS
                )
            if max(missed) > _LEVEL + _ROUNDING:
                raise self._refused(
                    f"'band' must miss the truth with probability at most its level; at level "
                    f"{_LEVEL:g} it misses {shares} with probability {max(missed):.3g}"
                )

    def _refused(self, why: str) -> InvalidInput:
        return InvalidInput(f"the rate {self.name!r} is unfinished or wrong: {why}")


# -- a few people, and exact bounds without scipy: a question is asked in no time ------------------

_TREND_WORDS = {FALLING: "falling", CONSTANT: "constant", RISING: "rising"}
_POINTS = (0.0, 0.5, 1.0)
_ROUNDING = 1e-9
_PEOPLE = 4
_LEVEL = 0.1
_TRUTHS = ((0.5, 0.2, 0.3), (0.1, 0.3, 0.6))
_PASTS = [
    GroupCells(p1, p0, _PEOPLE - p1 - p0)
    for p1 in range(_PEOPLE + 1)
    for p0 in range(_PEOPLE + 1 - p1)
]


def _chance(counts: GroupCells, shares: tuple[float, float, float]) -> float:
    p1, p0, s = (
        round(n) for n in (counts.approved_positive, counts.approved_negative, counts.denied)
    )
    ways = comb(_PEOPLE, p1) * comb(_PEOPLE - p1, p0)
    return float(ways * shares[0] ** p1 * shares[1] ** p0 * shares[2] ** s)


def _share(successes: float, trials: float, *, parts: int = 1) -> tuple[float, float]:
    """Return the Clopper-Pearson bounds of a few people."""
    k, n = round(successes), round(trials)
    return _least_share(k, n, _LEVEL / parts), 1.0 - _least_share(n - k, n, _LEVEL / parts)


@lru_cache(maxsize=256)
def _least_share(k: int, n: int, level: float) -> float:
    """Return the p at which k or more of n have probability ``level``."""
    if k == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        p = (low + high) / 2.0
        tail = sum(comb(n, j) * p**j * (1.0 - p) ** (n - j) for j in range(k, n + 1))
        low, high = (p, high) if tail < level else (low, p)
    return low
