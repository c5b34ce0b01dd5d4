"""Deciders who get cases as if at random: what the most and the least approving say of the denied.

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
from dataclasses import dataclass

from equipoise.cells import Decider, GroupCells
from equipoise.rates import UNKNOWN, Band, Curve, Rate, band_from_counts, clopper_pearson

__all__ = ["ASSUMES_DECIDERS", "BaseRate", "base_rate", "decider_band"]

ASSUMES_DECIDERS = (
    "within each group (and stratum) cases fall to deciders as if at random, and how a case turns "
    "out does not depend on who approves it (granted; that the data do not contradict it is no "
    "support)"
)


@dataclass(frozen=True)
class BaseRate:
    """Where a group's share of good outcomes lies, and whose cases say so.

    Attributes
    ----------
    least, most
        Bounds of ``q = P[Y=1 | A=a]``; the least above the most is a contradiction.
    by_good, by_bad
        The deciders with the largest share approved and good, and approved and bad: they bound q
        from below and from above.
    """

    least: float
    most: float
    by_good: str
    by_bad: str

    @property
    def contradiction(self) -> str | None:
        """What the two deciders cannot both have done if cases fell as at random."""
        if self.least <= self.most:
            return None
        return (
            f"at least {self.least:.3f} of all cases would do well by those of {self.by_good}, at "
            f"most {self.most:.3f} by those of {self.by_bad}"
        )


def base_rate(deciders: Sequence[Decider], alpha: float | None) -> BaseRate:
    """Return where a group's share of good outcomes lies.

    Each decider has two bounds, each missed with probability at most ``alpha`` (None: the counts
    are the population). Given who decided which case, every case of a decider, or of several who
    are counted together, is approved and good with a chance of at most q. So the number of such
    cases is at most binomial(cases, q), and its exact lower bound exceeds q with probability at
    most alpha, whatever deciders do.

    Examples
    --------
    >>> known = base_rate([Decider("X", 70, 20, 100), Decider("Y", 50, 5, 100)], None)
    >>> known.least, known.most, known.by_good, known.by_bad
    (0.7, 0.8, 'X', 'X')
    """
    good = max((clopper_pearson(d.approved_positive, d.cases, alpha)[0], d.name) for d in deciders)
    bad = max((clopper_pearson(d.approved_negative, d.cases, alpha)[0], d.name) for d in deciders)
    return BaseRate(good[0], 1.0 - bad[0], good[1], bad[1])


def decider_band(rate: Rate, counts: GroupCells, known: BaseRate, alpha: float | None) -> Band:
    """Return a rate's band as q runs over what is known of it, from least (0) to most (1).

    A rate rises or falls in p1 and in p0, whatever the cells are: p1 moves people from false
    negatives to true positives, p0 from true negatives to false positives, and each of the four is
    in the rate's part, in the rest of its whole, or in neither. So each curve takes one bound of
    each of the two shares that matter, and these divide ``alpha``.
    """
    if rate.trend == 0:
        return band_from_counts(rate, counts, alpha)
    counted = {
        "tp": (counts.approved_positive, _side(rate, "tp") - _side(rate, "fn")),
        "fp": (counts.approved_negative, _side(rate, "fp") - _side(rate, "tn")),
    }
    moving = sum(way != 0 for _, way in counted.values())
    level = None if alpha is None else alpha / max(moving, 1)
    ends: list[list[float]] = [[], []]  # of p1 and of p0, for the low curve and for the high one
    for count, way in counted.values():
        low, _ = clopper_pearson(count, counts.total, level)
        _, high = clopper_pearson(count + counts.approved_unknown, counts.total, level)
        for shares, share in zip(ends, (low, high) if way > 0 else (high, low), strict=True):
            shares.append(share if way else 0.0)
    low_curve, high_curve = (_curve(rate, known, *shares) for shares in ends)
    return Band(low_curve or UNKNOWN.low, high_curve or UNKNOWN.high)


def _side(rate: Rate, cell: str) -> int:
    """Return whether people of a cell raise the rate (1), lower it (-1), or are not in it (0)."""
    return 1 if cell in rate.part else -1 if cell in rate.whole else 0


def _curve(rate: Rate, known: BaseRate, p1: float, p0: float) -> Curve | None:
    """Return the rate over the range of q; None where the shares leave nobody to divide by."""
    (a, c), (a_most, c_most) = (
        rate.fraction(p1, p0, q - p1, 1.0 - q - p0) for q in (known.least, known.most)
    )
    return Curve(a, a_most - a, c, c_most - c) if min(c, c_most) > 0.0 else None
