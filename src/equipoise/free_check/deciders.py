"""What follows if deciders get cases as if at random: the most and least approving bound r.

Let ``q = P[Y=1 | A=a]``. If within a group the decider says nothing about a case's outcome, and the
outcome does not depend on who approves, then every decider j meets the same q. Those whom j
approves and who turn out well are some of those who would, so ``p1_j <= q``; likewise
``p0_j <= 1 - q``: ``max_j p1_j <= q <= 1 - max_j p0_j``. No more follows from who decided.

With it every rate is a curve in q in place of r: ``fn = q - p1`` and ``tn = 1 - q - p0``, so that
``TPR = p1/q`` and ``FPR = p0/(1 - q)``. The curves here are drawn over a number from 0 to 1 that
runs over the range of q; everything that works with curves in r works with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.cells import Decider, GroupCells
from equipoise.finding import Interval
from equipoise.rates import CONFUSION_CELLS, Band, Curve, Rate, band_from_counts, clopper_pearson

ASSUMES_DECIDERS = (
    "within each group (and stratum) cases fall to deciders as if at random, and how a case turns "
    "out does not depend on who approves it (granted; that the data do not contradict it is no "
    "support)"
)


def bound_base_rate(deciders: Sequence[Decider], alpha: float | None) -> tuple[Interval, str, str]:
    """Return where a group's share of good outcomes ``q = P[Y=1 | A=a]`` lies, and by whose cases.

    The lower end is that of the decider with the largest share approved and good, the upper end
    that of the one with the largest share approved and bad. A lower end above the upper one is a
    contradiction: cases did not fall as at random.

    Each decider has two bounds, each missed with probability at most ``alpha`` (None: the counts
    are the population). Given who decided which case, every case of a decider, or of several who
    are counted together, is approved and good with a chance of at most q. So the number of such
    cases is at most binomial(cases, q), and its exact lower bound exceeds q with probability at
    most alpha, whatever deciders do.

    Examples
    --------
    >>> bound_base_rate([Decider("X", 70, 20, 100), Decider("Y", 50, 5, 100)], None)
    (Interval(lower=0.7, upper=0.8, estimate=None), 'X', 'X')
    """
    good = max((clopper_pearson(d.approved_positive, d.cases, alpha)[0], d.name) for d in deciders)
    bad = max((clopper_pearson(d.approved_negative, d.cases, alpha)[0], d.name) for d in deciders)
    return Interval(good[0], 1.0 - bad[0]), good[1], bad[1]


def decider_band(rate: Rate, counts: GroupCells, known: Interval, alpha: float | None) -> Band:
    """Return a rate's band as q runs over what is known of it, from its lower (0) to its upper end.

    A rate rises or falls in p1 and in p0, whatever the cells are: p1 moves people from false
    negatives to true positives, p0 from true negatives to false positives, and each of the four is
    in the rate's part, in the rest of its whole, or in neither. So each curve takes one bound of
    each of the two shares that matter, and these divide ``alpha``.
    """
    if rate.trend == 0:
        return band_from_counts(rate, counts, alpha)
    side = {
        cell: 2 * (cell in rate.part) - (cell in rate.whole) for cell in CONFUSION_CELLS
    }  # 1, -1 or 0
    ways = side["tp"] - side["fn"], side["fp"] - side["tn"]
    level = None if alpha is None else alpha / max(2 - ways.count(0), 1)
    ends = []  # of p1 and of p0, for the low curve and for the high one
    for way, count in zip(ways, (counts.approved_positive, counts.approved_negative), strict=True):
        low, high = clopper_pearson(count, counts.total, level, counts.approved_unknown)
        ends.append((0.0, 0.0) if way == 0 else (low, high) if way > 0 else (high, low))
    curves = []
    for p1, p0 in zip(*ends, strict=True):
        (a, c), (a_most, c_most) = (
            rate.fraction(p1, p0, q - p1, 1.0 - q - p0) for q in (known.lower, known.upper)
        )
        somebody = min(c, c_most) > 0.0  # else the shares leave nobody to divide by
        curves.append(Curve(a, a_most - a, c, c_most - c) if somebody else None)
    return Band(curves[0] or Curve(0.0), curves[1] or Curve(1.0))
