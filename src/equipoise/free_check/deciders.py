"""What follows if deciders get cases as if at random: the most and least approving bound r.

Let ``q = P[Y=1 | A=a]``. If within a group the decider says nothing about a case's outcome, and the
outcome does not depend on who approves, then every decider j meets the same q. Those whom j
approves and who turn out well are some of those who would, so ``p1_j <= q``; likewise
``p0_j <= 1 - q``: ``max_j p1_j <= q <= 1 - max_j p0_j``. No more follows from who decided.

With it every rate is a curve in q in place of r: ``fn = q - p1`` and ``tn = 1 - q - p0``, so that
``TPR = p1/q`` and ``FPR = p0/(1 - q)``. The curves here are drawn over a number from 0 to 1 that
runs over the range of q; everything that works with curves in r works with them. The proofs are in
section 3.20 of ``docs/understand/guarantees.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.cells import Decider, GroupCells
from equipoise.finding import Interval
from equipoise.rates import UNDEFINED_RATE, Band, Curve, Rate, band_from_counts, clopper_pearson

ASSUMES_DECIDERS = (
    "within each group (and stratum) cases fall to deciders as if at random, and how a case turns "
    "out does not depend on who approves it"
)


class BaseRateBounds(NamedTuple):
    """Where a group's share of good outcomes lies, and the deciders whose cases give the ends.

    A lower end above the upper end is a contradiction: cases did not fall as if at random.
    """

    interval: Interval
    lower_from: str
    upper_from: str


def bound_base_rate(deciders: Sequence[Decider], alpha: float | None) -> BaseRateBounds:
    """Return where a group's share of good outcomes ``q = P[Y=1 | A=a]`` lies.

    The lower end is that of the decider with the largest share approved and good, the upper end
    that of the one with the largest share approved and bad.

    Each decider has two bounds, each missed with probability at most ``alpha`` (None: the counts
    are the population). Given who decided which case, every case of a decider, or of several who
    are counted together, is approved and good with a chance of at most q. So the number of such
    cases is at most binomial(cases, q), and its exact lower bound exceeds q with probability at
    most alpha, whatever deciders do.

    Examples
    --------
    >>> bounds = bound_base_rate([Decider("X", 70, 20, 100), Decider("Y", 50, 5, 100)], None)
    >>> print(bounds.interval, bounds.lower_from, bounds.upper_from)
    [0.700, 0.800] X X
    """
    # Ties go to the decider whose name comes last, so that the answer does not depend on order.
    good_bounds = []
    bad_bounds = []
    for decider in deciders:
        good_low, _ = clopper_pearson(decider.approved_positive, decider.cases, alpha)
        bad_low, _ = clopper_pearson(decider.approved_negative, decider.cases, alpha)
        good_bounds.append((good_low, decider.name))
        bad_bounds.append((bad_low, decider.name))
    least_good, lower_from = max(good_bounds)
    least_bad, upper_from = max(bad_bounds)
    return BaseRateBounds(Interval(least_good, 1.0 - least_bad), lower_from, upper_from)


def decider_band(rate: Rate, counts: GroupCells, base_rate: Interval, alpha: float | None) -> Band:
    """Return a rate's band as q runs from the lower (0) to the upper end (1) of ``base_rate``.

    A rate rises or falls in p1 and in p0, whatever the counts are: p1 moves people from false
    negatives to true positives, p0 from true negatives to false positives, and each of these cells
    is in the rate's numerator, in the rest of its denominator, or in neither. So each curve takes
    one bound of each of the two shares that matter, and these divide ``alpha``.
    """
    if rate.trend == 0:
        return band_from_counts(rate, counts, alpha)
    direction_of_p1 = _effect_of_cell(rate, "tp") - _effect_of_cell(rate, "fn")
    direction_of_p0 = _effect_of_cell(rate, "fp") - _effect_of_cell(rate, "tn")
    # Only shares that the rate depends on can make a bound fail, so only these divide alpha.
    n_shares = max((direction_of_p1 != 0) + (direction_of_p0 != 0), 1)
    error_level = None if alpha is None else alpha / n_shares
    p1_low, p1_high = _share_for_curves(
        direction_of_p1, counts.approved_positive, counts, error_level
    )
    p0_low, p0_high = _share_for_curves(
        direction_of_p0, counts.approved_negative, counts, error_level
    )
    low_curve = _curve_over_base_rate(rate, p1_low, p0_low, base_rate)
    high_curve = _curve_over_base_rate(rate, p1_high, p0_high, base_rate)
    # A curve that is undefined says nothing on its side.
    return Band(low_curve or UNDEFINED_RATE.low, high_curve or UNDEFINED_RATE.high)


def _effect_of_cell(rate: Rate, cell: str) -> int:
    """Return 1 if people in a cell raise a rate, -1 if they lower it, 0 if they do not count."""
    return 2 * (cell in rate.part) - (cell in rate.whole)


def _share_for_curves(
    direction: int, count: float, counts: GroupCells, alpha: float | None
) -> tuple[float, float]:
    """Return the value of a share for the low curve and for the high one.

    ``direction`` says whether the rate rises (> 0) or falls (< 0) in the share, or does not depend
    on it. Unknown outcomes may belong to the ``count`` as well.
    """
    if direction == 0:
        return 0.0, 0.0
    low, high = clopper_pearson(count, counts.total, alpha, counts.approved_unknown)
    return (low, high) if direction > 0 else (high, low)


def _curve_over_base_rate(rate: Rate, p1: float, p0: float, base_rate: Interval) -> Curve | None:
    """Return a rate as q runs over its range; None if the shares leave nobody to divide by."""
    # Numerator and denominator are linear in q, so two points give each of them. The new unknown
    # runs from 0 at the lower end to 1 at the upper one.
    q_low = base_rate.lower
    q_high = base_rate.upper
    numerator, denominator = rate.fraction(p1, p0, q_low - p1, 1.0 - q_low - p0)
    last_numerator, last_denominator = rate.fraction(p1, p0, q_high - p1, 1.0 - q_high - p0)
    if min(denominator, last_denominator) <= 0.0:
        return None
    return Curve(numerator, last_numerator - numerator, denominator, last_denominator - denominator)
