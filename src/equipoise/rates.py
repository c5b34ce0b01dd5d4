"""Rates: a set of the four cells of the confusion matrix over a set that contains it.

Of a group's shares of true positives ``tp``, false positives ``fp``, false negatives ``fn`` and
true negatives ``tn`` past decisions show ``p1 = tp``, ``p0 = fp`` and ``s = fn + tn``; the only
unknown is ``r = P[Y=1 | f=0]``, with which ``fn = s r`` and ``tn = s (1 - r)``. So every rate is a
curve ``(a + b r) / (c + d r)``. The numerator lies inside the denominator, so that the curve rises
or falls in r whatever the shares are, and so that finite past data bound it exactly. All of it
follows from the two sets: a rate or a metric of one's own is one line (:func:`register`), and the
free check, the adaptive audit, C*, plans, simulations, ledgers and reports work with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from equipoise._arrays import Array
from equipoise.cells import GroupCells
from equipoise.errors import InvalidInput


@dataclass(frozen=True)
class Curve:
    """``(a + b r) / (c + d r)`` for r in [0, 1]: monotone, without a pole there.

    ``Curve(a)`` is constant. Coefficients may be arrays, one curve per element (:meth:`stack`); r
    and values broadcast.

    Examples
    --------
    >>> tpr = Curve(1.0, 0.0, 1.0, 2.0)  # 1 / (1 + 2 r)
    >>> tpr.value_at(0.5), float(tpr.largest_r_with(0.5, falling=True)), tpr.trend
    (0.5, 0.5, -1)
    """

    a: float | Array
    b: float | Array = 0.0
    c: float | Array = 1.0
    d: float | Array = 0.0

    @classmethod
    def stack(cls, curves: Sequence[Curve]) -> Curve:
        """Return several curves as one of arrays."""
        return cls(*np.array([(curve.a, curve.b, curve.c, curve.d) for curve in curves]).T)

    @property
    def trend(self) -> int:
        """+1 if the one curve rises in r, -1 if it falls, 0 if it is constant."""
        return int(self._slope > 0.0) - int(self._slope < 0.0)

    def value_at(self, r: float) -> float:
        """Return the value of the one curve at one r, as a plain number."""
        return float((self.a + self.b * r) / (self.c + self.d * r))

    def value(self, r: ArrayLike) -> Array:
        """Return the values at r."""
        r = np.asarray(r, dtype=float)
        return np.asarray((self.a + self.b * r) / (self.c + self.d * r))

    def slope(self, r: ArrayLike) -> Array:
        """Return the derivatives at r."""
        return np.asarray(self._slope / (self.c + self.d * np.asarray(r, dtype=float)) ** 2)

    def largest_r_with(self, value: ArrayLike, *, falling: bool) -> Array:
        """Return the largest r with rate >= value (falling rate) or rate <= value (rising rate).

        It is -inf where no r in [0, 1] is such, and inf where all are and the curve does not reach
        the value, as one that is constant.
        """
        v, slope = np.asarray(value, dtype=float), np.asarray(self._slope)
        zero, one = self.a / self.c, (self.a + self.b) / (self.c + self.d)
        with np.errstate(divide="ignore", invalid="ignore"):
            r = (self.a - v * self.c) / (v * self.d - self.b)
        rises = (slope > 0.0) | ((slope == 0.0) & (not falling))
        r = np.where(slope == 0.0, np.inf, np.minimum(np.maximum(r, 0.0), 1.0))
        before = np.where(rises, v < zero, v > zero)
        after = np.where(rises, v > one, v < one)
        return np.where(before, -np.inf, np.where(after, np.inf, r))

    def smallest_r_with(self, value: ArrayLike, *, falling: bool) -> Array:
        """Return the least r with rate <= value (falling rate) or rate >= value (rising rate).

        It is inf where no r in [0, 1] is such, and -inf where all are and the curve does not reach
        the value, as one that is constant.
        """
        all_alike = (np.asarray(self._slope) == 0.0) & (self.a / self.c == np.asarray(value))
        return np.where(all_alike, -np.inf, self.largest_r_with(value, falling=falling))

    @property
    def _slope(self) -> float | Array:
        return self.b * self.c - self.a * self.d


@dataclass(frozen=True)
class Band:
    """Two curves of the same trend that enclose a group's rate; equal if the past is exact."""

    low: Curve
    high: Curve

    @classmethod
    def stack(cls, bands: Sequence[Band]) -> Band:
        """Return the bands of one rate in several groups as one of arrays."""
        return cls(*(Curve.stack([getattr(b, side) for b in bands]) for side in ("low", "high")))

    @property
    def depends_on_r(self) -> bool:
        """Whether labels of denied people can say anything about the rate."""
        return self.low.trend != 0 or self.high.trend != 0

    def rate_range(self, start: float, end: float) -> tuple[float, float]:
        """Return the least and the largest rate for r between ``start`` and ``end``."""
        low = min(self.low.value_at(start), self.low.value_at(end))
        high = max(self.high.value_at(start), self.high.value_at(end))
        return max(low, 0.0), min(high, 1.0)  # bounds of shares may go beyond what a rate can be

    def r_range(self, low: ArrayLike, high: ArrayLike, *, falling: bool) -> tuple[Array, Array]:
        """Return the least and the largest r with which the rate may lie in ``[low, high]``.

        No r does where the least is above the largest; -inf and inf stand for no limit on a side.
        """
        if falling:
            return self.low.smallest_r_with(high, falling=True), self.high.largest_r_with(
                low, falling=True
            )
        return self.high.smallest_r_with(low, falling=False), self.low.largest_r_with(
            high, falling=False
        )


UNDEFINED_RATE = Band(Curve(0.0), Curve(1.0))
"""The band of a rate that is undefined: it may be anything."""

Bands = Mapping[str, Mapping[str, Band]]
"""Rate name -> group -> band."""

CONFUSION_CELLS = frozenset({"tp", "fp", "fn", "tn"})


@dataclass(frozen=True)
class Rate:
    """A set of cells over a set that contains it; everything else follows.

    Parameters
    ----------
    name
        How code and files call it, such as ``"true_positive_rate"``.
    part, whole
        The cells of the numerator and of the denominator, of ``tp``, ``fp``, ``fn``, ``tn``.
    phrase
        What it is, in words: "approved share of those with outcome 1".

    Raises
    ------
    InvalidInput
        If ``part`` is not a set inside ``whole``: nothing would be promised for such a rate.

    Examples
    --------
    >>> base_rate = Rate("base_rate", {"tp", "fn"}, CONFUSION_CELLS, "share of outcome 1")
    >>> base_rate.curve(0.25, 0.25, 0.5).value_at(0.5), base_rate.trend
    (0.5, 1)
    """

    name: str
    part: AbstractSet[str]
    whole: AbstractSet[str]
    phrase: str

    def __post_init__(self) -> None:
        for field in ("part", "whole"):
            cells = getattr(self, field)
            if not isinstance(cells, AbstractSet) or not cells or not cells <= CONFUSION_CELLS:
                raise InvalidInput(
                    f"{field!r} of the rate {self.name!r} must be a set of 'tp', 'fp', 'fn' and "
                    f"'tn'; got {cells!r}"
                )
            object.__setattr__(self, field, frozenset(cells))
        if not self.part < self.whole:
            raise InvalidInput(
                f"'part' of the rate {self.name!r} must lie inside 'whole' and be less than it, so "
                f"that the rate only rises or only falls in r; got {sorted(self.part)} of "
                f"{sorted(self.whole)}. Split it into rates of which that is true"
            )

    @property
    def words(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", " ")

    @property
    def trend(self) -> int:
        """+1 if the rate rises in r, -1 if it falls, 0 if it is constant: no label is needed."""
        return (self.curve(0.25, 0.25, 0.5) or Curve(0.0)).trend

    def fraction(self, tp: float, fp: float, fn: float, tn: float) -> tuple[float, float]:
        """Return numerator and denominator for the shares, or counts, of the cells."""
        cells = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
        part = sum((n for cell, n in cells.items() if cell in self.part), 0.0)
        return part, sum((n for cell, n in cells.items() if cell in self.whole), 0.0)

    def curve(self, p1: float, p0: float, s: float) -> Curve | None:
        """Return the rate as a curve in r; None if it is undefined for every r."""
        (a, c), (a_one, c_one) = self.fraction(p1, p0, 0.0, s), self.fraction(p1, p0, s, 0.0)
        b, d = (s * (("fn" in cells) - ("tn" in cells)) for cells in (self.part, self.whole))
        if c == c_one == 0.0:
            return None
        if c == 0.0 or c + d == 0.0:  # undefined at one end, up to rounding: constant on the way
            return Curve(a_one / c_one if c == 0.0 else a / c)
        return Curve(a, b, c, d)

    def band(self, counts: GroupCells, alpha: float | None) -> Band:
        """Return the band for counts whose outcomes are all known.

        Each curve is on its right side with probability at least ``1 - alpha``, for any sample
        size; the counts are the population if alpha is None. At a given r, a rate is a function of
        one share, that of the denied ``s`` (among the people of the denominator), or of two, ``s``
        and ``p0``, whose bounds then have half of the level each. It grows with them if true
        positives are not in the numerator, being ``(p0 + s g) / (1 - s + s h)`` with
        ``0 <= g <= h <= 1``; else its complement is of this kind, and it falls with them. Where no
        true positives are in the denominator, false positives take their part.
        """
        if alpha is None:
            curve = self.curve(*counts.shares)
            return UNDEFINED_RATE if curve is None else Band(curve, curve)
        tp, fp, denied = counts.approved_positive, counts.approved_negative, counts.denied
        if self.trend == 0:
            return Band(*map(Curve, clopper_pearson(*self.fraction(tp, fp, denied, 0.0), alpha)))
        seen = self.whole & {"tp", "fp"}
        if len(seen) == 2 and len(seen & self.part) == 1:
            p0s = clopper_pearson(fp, counts.total, alpha / 2.0)
            shares = [*zip(p0s, clopper_pearson(denied, counts.total, alpha / 2.0), strict=True)]
        else:
            _, people = self.fraction(tp, fp, 0.0, 0.0)
            bounds = clopper_pearson(denied, denied + people, alpha) if seen else (1.0, 1.0)
            shares = [(0.0 if "tp" in seen else 1.0 - s, s) for s in bounds]
        few, many = (
            # More than everybody: no bound, unless everybody is the denominator.
            self.curve(1.0 - p0 - s, p0, s)
            if p0 + s <= 1.0 or self.whole == CONFUSION_CELLS
            else None
            for p0, s in shares
        )
        grows = ("tp" if "tp" in seen else "fp") not in self.part
        low, high = (few, many) if grows else (many, few)
        return Band(low or UNDEFINED_RATE.low, high or UNDEFINED_RATE.high)


# -- bands from past data --------------------------------------------------------------------------


def band_from_counts(rate: Rate, counts: GroupCells, alpha: float | None) -> Band:
    """Return one rate's band for one group: :meth:`Rate.band`, wider by unknown outcomes.

    **Nothing assumed of them.** Had all outcomes been known, the band would hold for the counts
    with some number k of good ones among the unknown. Exact bounds of a share move with the count,
    so the band for k lies between those for none and for all of them: not to know k costs nothing.

    **Imputed like the known** (``cohorts``). Then the approved's share of good outcomes g is that
    among the known, within each cohort: ``g = sum_c w_c g_c`` for the cohorts' shares w of the
    approved. A rate is a fraction of linear functions in s and in g, so at every r it is least and
    largest at a corner of the box of bounds for s and g. A curve uses one bound of s and one of g.
    With C > 1 cohorts g rests on 2C shares: each g_c bounded on one side, each w_c on both at half
    of the level each. Accuracy rises with s at some r and falls at others, so it uses both bounds
    of s; precision does not depend on s and uses none. All these bounds share one half of the
    level. The other half goes to a band for which nothing is assumed, which is the narrower one
    where few outcomes of many people are unknown. A curve of either is on its wrong side with at
    most half of the level, so the narrower of the two is with at most the level.
    """
    if not counts.approved_unknown:
        return rate.band(counts, alpha)
    whatever = band_for_any_unknown_outcomes(rate, counts, alpha)
    if not counts.cohorts or whatever == rate.band(counts.resolved(0), alpha):
        return whatever
    a, c = rate.fraction(0.5, 0.5, 0.0, 0.0)  # of the approved; the denied are fn or tn
    denied = rate.fraction(0.0, 0.0, 1.0, 0.0), rate.fraction(0.0, 0.0, 0.0, 1.0)
    sides = len({np.sign(b * c - a * d) for b, d in denied} - {0.0})  # bounds of s that it uses
    shares = _shares_behind(counts)
    each = 0.5 / (shares + (sides > 0))
    level = _part(alpha, each / max(sides, 1))
    bounds = clopper_pearson(counts.denied, counts.total, level)
    corners = product(bounds, good_share(counts, _part(alpha, each * shares)))
    curves = [rate.curve((1 - s) * g, (1 - s) * (1 - g), s) for s, g in corners]
    inside = [curve for curve in curves if curve is not None]
    if len(inside) < len(curves):
        return UNDEFINED_RATE
    half = band_for_any_unknown_outcomes(rate, counts, _part(alpha, 0.5))

    def middle(curve: Curve) -> float:
        return curve.value_at(0.0) + curve.value_at(0.5) + curve.value_at(1.0)

    return Band(
        max(_extreme(inside, np.min), half.low, key=middle),
        min(_extreme(inside, np.max), half.high, key=middle),
    )


def clopper_pearson(
    successes: float, trials: float, alpha: float | None, unknown: float = 0.0
) -> tuple[float, float]:
    """Return bounds of a binomial probability, each missed with probability at most ``alpha``.

    The sample is the population if ``alpha`` is None. Of the trials, so many ``unknown`` ones may
    have been successes as well.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10, 0.025)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    most, failures = successes + unknown, trials - successes - unknown
    if alpha is None:
        return (successes / trials, most / trials) if trials else (0.0, 1.0)
    from scipy.special import betaincinv

    low = float(betaincinv(successes, trials - successes + 1.0, alpha)) if successes > 0 else 0.0
    high = float(betaincinv(most + 1.0, failures, 1.0 - alpha)) if failures > 0 else 1.0
    return low, high


def good_share(counts: GroupCells, alpha: float | None) -> tuple[float, float]:
    """Return bounds of the share of good outcomes among the approved.

    Each is missed with probability at most ``alpha``. They rest on the cohorts where there are any
    (see :func:`band_from_counts`), and assume nothing of unknown outcomes otherwise.
    """
    if not counts.cohorts or not counts.approved_unknown:
        known, unknown = counts.approved_positive, counts.approved_unknown
        return clopper_pearson(known, counts.approved, alpha, unknown)
    level = _part(alpha, 1.0 / _shares_behind(counts))
    goods = [clopper_pearson(good, good + bad, level) for good, bad, _ in counts.cohorts]
    if len(goods) == 1:
        return goods[0]
    people = [sum(cohort) for cohort in counts.cohorts]
    weights = [clopper_pearson(n, counts.approved, _part(level, 0.5)) for n in people]
    low, high = np.array(goods).T
    least, most = np.array(weights).T
    means = -_largest_mean(least, most, -low), _largest_mean(least, most, high)
    return min(max(means[0], 0.0), 1.0), min(max(means[1], 0.0), 1.0)


def _shares_behind(counts: GroupCells) -> int:
    """Return how many shares that of good outcomes rests on: of cohorts, and within them."""
    return 1 if len(counts.cohorts) == 1 else 2 * len(counts.cohorts)


def _part(alpha: float | None, share: float) -> float | None:
    return None if alpha is None else alpha * share


def band_for_any_unknown_outcomes(rate: Rate, counts: GroupCells, alpha: float | None) -> Band:
    """Return a band that holds whatever the unknown outcomes turn out to be."""
    ends = [rate.band(counts.resolved(good), alpha) for good in (0, 1)]
    return Band(
        _extreme([band.low for band in ends], np.min),
        _extreme([band.high for band in ends], np.max),
    )


def _extreme(curves: Sequence[Curve], pick: Callable[..., Array]) -> Curve:
    """Return a curve below all of them (``pick`` is min), or above all of them (max)."""
    values = np.array([[curve.value_at(r) for r in (0.0, 0.5, 1.0)] for curve in curves])
    ends = pick(values, axis=0)
    for curve, own in zip(curves, values, strict=True):
        if (np.abs(own - ends) <= 1e-12).all():  # curves that meet do so up to rounding
            return curve
    zero, _, one = ends.tolist()
    if all(curve.d == 0.0 for curve in curves):
        return Curve(zero, one - zero)  # the least of lines is concave: a chord is below
    return Curve(float(pick([zero, one])))


def _largest_mean(least: Array, most: Array, values: Array) -> float:
    """Return the largest mean of values for weights within bounds that add up to 1."""
    order = np.argsort(-values)
    more = np.minimum(np.cumsum((most - least)[order]), max(1.0 - least.sum(), 0.0))
    return float(least @ values + np.diff(more, prepend=0.0) @ values[order])


# -- the registry ----------------------------------------------------------------------------------

RATES = {
    rate.name: rate
    for rate in (
        Rate("true_positive_rate", {"tp"}, {"tp", "fn"}, "approved share of those with outcome 1"),
        Rate("false_positive_rate", {"fp"}, {"fp", "tn"}, "approved share of those with outcome 0"),
        Rate("selection_rate", {"tp", "fp"}, CONFUSION_CELLS, "approved share of everybody"),
        Rate("false_omission_rate", {"fn"}, {"fn", "tn"}, "share of outcome 1 among the denied"),
        Rate(
            "accuracy",
            {"tp", "tn"},
            CONFUSION_CELLS,
            "share of decisions that agree with the outcome",
        ),
        Rate("precision", {"tp"}, {"tp", "fp"}, "share of outcome 1 among the approved"),
        Rate("false_negative_rate", {"fn"}, {"tp", "fn"}, "denied share of those with outcome 1"),
        Rate("true_negative_rate", {"tn"}, {"fp", "tn"}, "denied share of those with outcome 0"),
        Rate(
            "negative_predictive_value", {"tn"}, {"fn", "tn"}, "share of outcome 0 among the denied"
        ),
        Rate(
            "error_rate",
            {"fp", "fn"},
            CONFUSION_CELLS,
            "share of decisions that disagree with the outcome",
        ),
    )
}
"""Every rate by name."""
