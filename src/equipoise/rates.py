"""Rates: a set of the four cells of the confusion matrix over a set that contains it.

A group's confusion matrix has four shares: true positives ``tp``, false positives ``fp``, false
negatives ``fn`` and true negatives ``tn``. Past decisions show ``p1 = tp``, ``p0 = fp`` and
``s = fn + tn``. The only unknown is ``r = P[Y=1 | f=0]``, with which ``fn = s r`` and
``tn = s (1 - r)``. So every rate is a curve ``(a + b r) / (c + d r)``.

The cells of the numerator are among those of the denominator. Therefore the curve only rises or
only falls in r, whatever the shares are, and finite past data bound it exactly. A rate of your own
is one line (:func:`equipoise.metrics.register`). The free check, the adaptive audit, C*, plans,
simulations, ledgers and reports then work with it.
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
        """Return several curves as one whose coefficients are arrays."""
        return cls(*np.array([(curve.a, curve.b, curve.c, curve.d) for curve in curves]).T)

    @property
    def trend(self) -> int:
        """+1 if a single curve rises in r, -1 if it falls, 0 if it is constant."""
        return int(self._slope_numerator > 0.0) - int(self._slope_numerator < 0.0)

    def value_at(self, r: float) -> float:
        """Return the value of a single curve at one r, as a plain number."""
        return float((self.a + self.b * r) / (self.c + self.d * r))

    def value(self, r: ArrayLike) -> Array:
        """Return the values at r."""
        r = np.asarray(r, dtype=float)
        return np.asarray((self.a + self.b * r) / (self.c + self.d * r))

    def slope(self, r: ArrayLike) -> Array:
        """Return the derivatives at r."""
        return np.asarray(
            self._slope_numerator / (self.c + self.d * np.asarray(r, dtype=float)) ** 2
        )

    def largest_r_with(self, value: ArrayLike, *, falling: bool) -> Array:
        """Return the largest r with rate >= value (falling rate) or rate <= value (rising rate).

        It is -inf where no r in [0, 1] is such. It is inf where all r are such and the curve does
        not cross the value, as a constant curve never does. ``falling`` says which way a constant
        curve counts.
        """
        target = np.asarray(value, dtype=float)
        slope_numerator = np.asarray(self._slope_numerator)
        value_at_0 = self.a / self.c
        value_at_1 = (self.a + self.b) / (self.c + self.d)
        # Constant curves divide by 0 here; their result is replaced below.
        with np.errstate(divide="ignore", invalid="ignore"):
            r = (self.a - target * self.c) / (target * self.d - self.b)
        r = np.where(slope_numerator == 0.0, np.inf, np.minimum(np.maximum(r, 0.0), 1.0))
        rises = (slope_numerator > 0.0) | ((slope_numerator == 0.0) & (not falling))
        is_never_reached = np.where(rises, target < value_at_0, target > value_at_0)
        is_always_exceeded = np.where(rises, target > value_at_1, target < value_at_1)
        return np.where(is_never_reached, -np.inf, np.where(is_always_exceeded, np.inf, r))

    def smallest_r_with(self, value: ArrayLike, *, falling: bool) -> Array:
        """Return the least r with rate <= value (falling rate) or rate >= value (rising rate).

        It is inf where no r in [0, 1] is such. It is -inf where all r are such and the curve does
        not cross the value, as a constant curve never does.
        """
        is_constant = np.asarray(self._slope_numerator) == 0.0
        equals_value = is_constant & (self.a / self.c == np.asarray(value))
        return np.where(equals_value, -np.inf, self.largest_r_with(value, falling=falling))

    @property
    def _slope_numerator(self) -> float | Array:
        """The numerator of the derivative; the denominator is a square."""
        return self.b * self.c - self.a * self.d


@dataclass(frozen=True)
class Band:
    """Two curves of the same trend that enclose a group's rate; equal if the past is exact."""

    low: Curve
    high: Curve

    @classmethod
    def stack(cls, bands: Sequence[Band]) -> Band:
        """Return the bands of one rate in several groups as one whose curves hold arrays."""
        return cls(
            Curve.stack([band.low for band in bands]), Curve.stack([band.high for band in bands])
        )

    @property
    def depends_on_r(self) -> bool:
        """Whether labels of denied people can say anything about the rate."""
        return self.low.trend != 0 or self.high.trend != 0

    def rate_range(self, r_low: float, r_high: float) -> tuple[float, float]:
        """Return the least and the largest rate for r between ``r_low`` and ``r_high``."""
        low = min(self.low.value_at(r_low), self.low.value_at(r_high))
        high = max(self.high.value_at(r_low), self.high.value_at(r_high))
        return max(low, 0.0), min(high, 1.0)  # bounds of shares may go beyond what a rate can be

    def r_range(self, low: ArrayLike, high: ArrayLike, *, falling: bool) -> tuple[Array, Array]:
        """Return the least and the largest r with which the rate may lie in ``[low, high]``.

        No r does where the least is above the largest; -inf and inf stand for no limit on a side.
        """
        # The least r comes from the curve that reaches the range first, the largest r from the
        # curve that leaves it last.
        if falling:
            r_low = self.low.smallest_r_with(high, falling=True)
            r_high = self.high.largest_r_with(low, falling=True)
        else:
            r_low = self.high.smallest_r_with(low, falling=False)
            r_high = self.low.largest_r_with(high, falling=False)
        return r_low, r_high


UNDEFINED_RATE = Band(Curve(0.0), Curve(1.0))
"""The band of a rate that is undefined: it may be anything."""

Bands = Mapping[str, Mapping[str, Band]]
"""Rate name -> group -> band."""

CONFUSION_CELLS = frozenset({"tp", "fp", "fn", "tn"})
_APPROVED_CELLS = frozenset({"tp", "fp"})
_DENIED_CELLS = frozenset({"fn", "tn"})
_MISTAKEN_CELLS = frozenset({"fp", "fn"})


@dataclass(frozen=True)
class Rate:
    """A set of cells of the confusion matrix over a set that contains it; all else follows.

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
        If ``part`` is not a set inside ``whole``, because nothing is proven for such a rate.

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
    def is_worse_if_higher(self) -> bool:
        """Whether a group with a higher rate is worse off: it counts denials, or mistakes.

        Of a rate and its complement one is so and the other is not, as of the false negative rate
        and the true positive rate.
        """
        if self.part == _APPROVED_CELLS & self.whole:  # false positives are approvals, too
            return False
        return self.part in (_DENIED_CELLS & self.whole, _MISTAKEN_CELLS & self.whole)

    @property
    def trend(self) -> int:
        """+1 if the rate rises in r, -1 if it falls, 0 if it is constant: no label is needed."""
        return (self.curve(0.25, 0.25, 0.5) or Curve(0.0)).trend

    def fraction(self, tp: float, fp: float, fn: float, tn: float) -> tuple[float, float]:
        """Return numerator and denominator for the shares, or counts, of the cells."""
        sizes = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
        numerator = sum((size for cell, size in sizes.items() if cell in self.part), 0.0)
        denominator = sum((size for cell, size in sizes.items() if cell in self.whole), 0.0)
        return numerator, denominator

    def curve(self, p1: float, p0: float, s: float) -> Curve | None:
        """Return the rate as a curve in r; None if it is undefined for every r."""
        numerator_at_0, denominator_at_0 = self.fraction(p1, p0, 0.0, s)
        numerator_at_1, denominator_at_1 = self.fraction(p1, p0, s, 0.0)
        # Rising r moves people from tn to fn, so only these two cells change with it.
        b = s * (("fn" in self.part) - ("tn" in self.part))
        d = s * (("fn" in self.whole) - ("tn" in self.whole))
        # Nobody is in the denominator, whatever r is.
        if denominator_at_0 == 0.0 and denominator_at_1 == 0.0:
            return None
        # Undefined at one end only (up to rounding): the rate is constant everywhere else.
        if denominator_at_0 == 0.0:
            return Curve(numerator_at_1 / denominator_at_1)
        if denominator_at_0 + d == 0.0:
            return Curve(numerator_at_0 / denominator_at_0)
        return Curve(numerator_at_0, b, denominator_at_0, d)

    def band(self, counts: GroupCells, alpha: float | None) -> Band:
        """Return the band for counts whose outcomes are all known.

        Each curve is on its right side with probability at least ``1 - alpha``, for any sample
        size; the counts are the population if alpha is None. Which shares are bounded, and why
        their bounds give curves, is in section 3.8 of ``docs/understand/guarantees.md``.
        """
        if alpha is None:
            curve = self.curve(*counts.shares)
            return UNDEFINED_RATE if curve is None else Band(curve, curve)
        if self.trend == 0:
            numerator, denominator = self.fraction(
                counts.approved_positive, counts.approved_negative, counts.denied, 0.0
            )
            low, high = clopper_pearson(numerator, denominator, alpha)
            return Band(Curve(low), Curve(high))
        lower_bounds, upper_bounds = self._bounded_shares(counts, alpha)
        lower_bound_curve = self._curve_if_possible(*lower_bounds)
        upper_bound_curve = self._curve_if_possible(*upper_bounds)
        if self._grows_with_bounded_shares:
            return _band_of(low=lower_bound_curve, high=upper_bound_curve)
        return _band_of(low=upper_bound_curve, high=lower_bound_curve)

    def _bounded_shares(
        self, counts: GroupCells, alpha: float
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (p0, s) with the lower bounds of past data, and with the upper bounds.

        ========================= ================= ======================== ===================
        approved cells in whole   of them in part   what is bounded          for example
        ========================= ================= ======================== ===================
        none                      none              nothing: s is 1          false omission rate
        tp                        any               s among tp and denied    true positive rate
        fp                        any               s among fp and denied    false positive rate
        tp and fp                 none or both      s                        fn among everybody
        tp and fp                 one               p0 and s, alpha/2 each   accuracy
        ========================= ================= ======================== ===================

        In the first four cases the rate depends on s only. There p0 is the share of all approved if
        ``whole`` has fp alone, and 0 otherwise.
        """
        approved_in_whole = self.whole & _APPROVED_CELLS
        if approved_in_whole == _APPROVED_CELLS and len(self.part & _APPROVED_CELLS) == 1:
            p0_low, p0_high = clopper_pearson(counts.approved_negative, counts.total, alpha / 2.0)
            s_low, s_high = clopper_pearson(counts.denied, counts.total, alpha / 2.0)
            return (p0_low, s_low), (p0_high, s_high)
        if not approved_in_whole:
            return (0.0, 1.0), (0.0, 1.0)
        # The rate ignores approved people outside the whole, so s is a share among the others.
        _, approved = self.fraction(counts.approved_positive, counts.approved_negative, 0.0, 0.0)
        s_low, s_high = clopper_pearson(counts.denied, counts.denied + approved, alpha)
        if "tp" in approved_in_whole:
            return (0.0, s_low), (0.0, s_high)
        # With fp alone all approved people among them have outcome 0.
        return (1.0 - s_low, s_low), (1.0 - s_high, s_high)

    def _curve_if_possible(self, p0: float, s: float) -> Curve | None:
        """Return the curve for two shares; None if it is undefined or they exceed 1 together.

        Two upper bounds may add up to more than 1. If all four cells are in the denominator the
        formula gives a bound all the same.
        """
        if p0 + s > 1.0 and self.whole != CONFUSION_CELLS:
            return None
        return self.curve(1.0 - p0 - s, p0, s)

    @property
    def _grows_with_bounded_shares(self) -> bool:
        """Whether the rate rises, at every r, when the shares bounded by past data rise."""
        remaining_cell = "tp" if "tp" in self.whole else "fp"
        return remaining_cell not in self.part


def _band_of(low: Curve | None, high: Curve | None) -> Band:
    """Return a band; where a curve is undefined the rate may be anything on that side."""
    return Band(low or UNDEFINED_RATE.low, high or UNDEFINED_RATE.high)


# -- bands from past data --------------------------------------------------------------------------


def band_from_counts(rate: Rate, counts: GroupCells, alpha: float | None) -> Band:
    """Return one rate's band for one group: :meth:`Rate.band`, wider by unknown outcomes.

    Each curve is on its right side with probability at least ``1 - alpha``; the counts are the
    population if alpha is None. Without ``cohorts`` nothing is assumed of unknown outcomes. With
    them, the unknown outcomes of a cohort are like its known ones. The proofs are in section 3.8 of
    ``docs/understand/guarantees.md``.
    """
    if not counts.approved_unknown:
        return rate.band(counts, alpha)
    band = band_for_any_unknown_outcomes(rate, counts, alpha)
    # If the rate does not depend on outcomes, the assumption cannot narrow its band and would only
    # cost half of the error level.
    is_independent_of_outcomes = band == rate.band(counts.resolved(0), alpha)
    if not counts.cohorts or is_independent_of_outcomes:
        return band
    return _band_like_known_outcomes(rate, counts, alpha)


def band_for_any_unknown_outcomes(rate: Rate, counts: GroupCells, alpha: float | None) -> Band:
    """Return a band that holds whatever the unknown outcomes turn out to be."""
    # Bounds move with the count, so every number of good outcomes lies between none and all.
    all_bad = rate.band(counts.resolved(0), alpha)
    all_good = rate.band(counts.resolved(1), alpha)
    return Band(
        _extreme_curve([all_bad.low, all_good.low], np.min),
        _extreme_curve([all_bad.high, all_good.high], np.max),
    )


def _band_like_known_outcomes(rate: Rate, counts: GroupCells, alpha: float | None) -> Band:
    """Return the band if unknown outcomes are like the known ones of the same cohort.

    Half of the error level goes to the bounds of s and of the share of good outcomes, the other
    half to the band for which nothing is assumed; the narrower curve of the two is taken.
    """
    s_bounds, good_bounds = _bound_shares_like_known(rate, counts, alpha)
    # At every r the rate is least and largest at a corner of the box of bounds.
    curves = []
    for s, good in product(s_bounds, good_bounds):
        curve = rate.curve((1 - s) * good, (1 - s) * (1 - good), s)
        if curve is None:
            return UNDEFINED_RATE
        curves.append(curve)
    without_assumption = band_for_any_unknown_outcomes(rate, counts, _scaled(alpha, 0.5))
    return Band(
        max(_extreme_curve(curves, np.min), without_assumption.low, key=_overall_height),
        min(_extreme_curve(curves, np.max), without_assumption.high, key=_overall_height),
    )


def _bound_shares_like_known(
    rate: Rate, counts: GroupCells, alpha: float | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return bounds of s and of the share of good outcomes, at half of ``alpha`` together.

    Every share that the curves rest on gets an equal part of that half. The rate may rise with s at
    some r and fall at others; then a curve uses both bounds of s, which divide its part.
    """
    numerator, denominator = rate.fraction(0.5, 0.5, 0.0, 0.0)  # of the approved
    directions = set()
    for fn, tn in ((1.0, 0.0), (0.0, 1.0)):  # all of the denied are fn, or all are tn
        denied_numerator, denied_denominator = rate.fraction(0.0, 0.0, fn, tn)
        directions.add(np.sign(denied_numerator * denominator - numerator * denied_denominator))
    n_bounds_of_s = len(directions - {0.0})
    n_good_shares = _n_shares_behind_good_share(counts)
    part = 0.5 / (n_good_shares + (n_bounds_of_s > 0))
    s_bounds = clopper_pearson(
        counts.denied, counts.total, _scaled(alpha, part / max(n_bounds_of_s, 1))
    )
    return s_bounds, good_share(counts, _scaled(alpha, part * n_good_shares))


def _overall_height(curve: Curve) -> float:
    """Return how high a curve is on the whole, to tell which of two is the narrower bound."""
    return curve.value_at(0.0) + curve.value_at(0.5) + curve.value_at(1.0)


def clopper_pearson(
    successes: float, trials: float, alpha: float | None, unknown: float = 0.0
) -> tuple[float, float]:
    """Return bounds of a binomial probability, each missed with probability at most ``alpha``.

    The sample is the population if ``alpha`` is None. ``unknown`` of the trials may have been
    successes as well, beyond the ``successes`` that are known.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10, 0.025)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    most_successes = successes + unknown
    fewest_failures = trials - successes - unknown
    if alpha is None:
        return (successes / trials, most_successes / trials) if trials else (0.0, 1.0)
    if not trials:
        return 0.0, 1.0
    from scipy.special import betaincinv  # slow to import, and not needed for exact counts

    low = 0.0
    if successes > 0:
        low = float(betaincinv(successes, trials - successes + 1.0, alpha))
    high = 1.0
    if fewest_failures > 0:
        high = float(betaincinv(most_successes + 1.0, fewest_failures, 1.0 - alpha))
    return low, high


def good_share(counts: GroupCells, alpha: float | None) -> tuple[float, float]:
    """Return bounds of the share of good outcomes among the approved.

    Each is missed with probability at most ``alpha``. They rest on the cohorts where there are any
    (see :func:`band_from_counts`), and assume nothing of unknown outcomes otherwise.
    """
    if not counts.cohorts or not counts.approved_unknown:
        return clopper_pearson(
            counts.approved_positive, counts.approved, alpha, counts.approved_unknown
        )
    # The bounds of all cohorts have to hold at once.
    level_per_share = _scaled(alpha, 1.0 / _n_shares_behind_good_share(counts))
    cohort_bounds = [
        clopper_pearson(good, good + bad, level_per_share) for good, bad, _ in counts.cohorts
    ]
    if len(cohort_bounds) == 1:
        return cohort_bounds[0]
    # A cohort's weight is bounded on both sides, so each side gets half of its part.
    weight_bounds = [
        clopper_pearson(sum(cohort), counts.approved, _scaled(level_per_share, 0.5))
        for cohort in counts.cohorts
    ]
    good_low, good_high = np.array(cohort_bounds).T
    weight_low, weight_high = np.array(weight_bounds).T
    smallest = -_largest_mean(weight_low, weight_high, -good_low)
    largest = _largest_mean(weight_low, weight_high, good_high)
    return min(max(smallest, 0.0), 1.0), min(max(largest, 0.0), 1.0)


def _n_shares_behind_good_share(counts: GroupCells) -> int:
    """Return on how many shares that of good outcomes rests: of cohorts, and within them."""
    return 1 if len(counts.cohorts) == 1 else 2 * len(counts.cohorts)


def _scaled(alpha: float | None, part: float) -> float | None:
    """Return a part of an error level; None, for exact counts, stays None."""
    return None if alpha is None else alpha * part


def _extreme_curve(curves: Sequence[Curve], pick: Callable[..., Array]) -> Curve:
    """Return a curve below all of them (``pick`` is min), or above all of them (max)."""
    values = np.array([[curve.value_at(r) for r in (0.0, 0.5, 1.0)] for curve in curves])
    extremes = pick(values, axis=0)
    for curve, curve_values in zip(curves, values, strict=True):
        if (np.abs(curve_values - extremes) <= 1e-12).all():  # curves meet up to rounding
            return curve
    extreme_at_0, _, extreme_at_1 = extremes.tolist()
    if all(curve.d == 0.0 for curve in curves):
        # The smallest of several lines is concave, so the chord lies below it; likewise above.
        return Curve(extreme_at_0, extreme_at_1 - extreme_at_0)
    return Curve(float(pick([extreme_at_0, extreme_at_1])))


def _largest_mean(weight_low: Array, weight_high: Array, values: Array) -> float:
    """Return the largest weighted mean of values, for weights within bounds that add up to 1.

    All arrays have one element per cohort. Every cohort gets its least weight; what remains goes
    to the largest values first.
    """
    order = np.argsort(-values)
    remaining_weight = max(1.0 - weight_low.sum(), 0.0)
    added_in_total = np.minimum(np.cumsum((weight_high - weight_low)[order]), remaining_weight)
    added = np.diff(added_in_total, prepend=0.0)
    return float(weight_low @ values + added @ values[order])


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
