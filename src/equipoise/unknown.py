"""Bands of rates when the outcomes of some approved people are not known yet.

**Nothing assumed** (``bounds``). Had all outcomes been known, the band would hold for the counts
with some number k of good ones among the unknown. Exact bounds of a share move with the count, so
the band for k lies between those for none and for all of them: no price is paid for not knowing k.

**Like the known ones** (``like_known``). Then the approved's share of good outcomes g is that among
the known, within each cohort: ``g = sum_c w_c g_c`` for the cohorts' shares w of the approved. A
rate is a fraction of linear functions in s and in g, so at every r it is least and largest at a
corner of the box of bounds for s and g. A curve uses one bound of s and one of g; with C > 1
cohorts 2C + 1 shares, those of w on both sides. Accuracy turns with s: it pays for both sides of
s; precision does not move with s and pays for none. These share one half of the level. The other
half is that of a curve for which nothing is assumed: few outcomes may be unknown and people many,
and then it is the narrower one. Both are on their right side but with a probability of at most
the level, and so is the narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product

from equipoise.cells import GroupCells
from equipoise.curves import Band, Curve
from equipoise.rates import UNKNOWN, Rate

__all__ = ["unknown_band"]

Bounds = tuple[float, float]
Share = Callable[[float, float, float], Bounds]
"""Successes, trials and the part of the level that a bound gets -> bounds."""


def unknown_band(
    rate: Rate, counts: GroupCells, share: Share, known: Callable[[GroupCells, float], Band]
) -> Band:
    """Return a rate's band for counts with unknown outcomes.

    Parameters
    ----------
    share
        Bounds of shares: a point where the past is exact.
    known
        The band of counts without unknown outcomes, at a part of the level.
    """
    whatever = _whatever(counts, known, 1.0)
    if not counts.cohorts or whatever == known(counts.resolved(0), 1.0):
        return whatever
    sides = _sides(rate)
    cohorts = len(counts.cohorts)
    part = 0.5 / ((1 if cohorts == 1 else 2 * cohorts) + (sides > 0))
    good = _good_share(counts, share, part)
    denied = share(counts.denied, counts.total, part / max(sides, 1))
    corners = [rate.curve((1 - s) * g, (1 - s) * (1 - g), s) for s, g in product(denied, good)]
    curves = [curve for curve in corners if curve is not None]
    if len(curves) < len(corners):
        return UNKNOWN
    return _narrower(_around(curves, curves), _whatever(counts, known, 0.5))


def _whatever(counts: GroupCells, known: Callable[[GroupCells, float], Band], part: float) -> Band:
    """Return a band that holds whatever the unknown outcomes are."""
    ends = [known(counts.resolved(good), part) for good in (0, 1)]
    return _around([band.low for band in ends], [band.high for band in ends])


def _narrower(one: Band, other: Band) -> Band:
    """Return the higher of two lower curves and the lower of two upper ones, by their middles."""

    def middle(curve: Curve) -> float:
        return curve.at(0.0) + curve.at(0.5) + curve.at(1.0)

    return Band(max(one.low, other.low, key=middle), min(one.high, other.high, key=middle))


def _good_share(counts: GroupCells, share: Share, part: float) -> Bounds:
    """Return bounds of the share of good outcomes among the approved."""
    goods = [
        share(good, good + bad, part) if good + bad else (0.0, 1.0)
        for good, bad, _ in counts.cohorts
    ]
    if len(counts.cohorts) == 1:
        return goods[0]
    weights = [share(sum(cohort), counts.approved, part / 2.0) for cohort in counts.cohorts]
    return (
        _mean(weights, [low for low, _ in goods], largest=False),
        _mean(weights, [high for _, high in goods], largest=True),
    )


def _mean(weights: Sequence[Bounds], values: Sequence[float], *, largest: bool) -> float:
    """Return the extreme mean of values for weights in a box that add up to 1."""
    total, left = 0.0, 1.0 - sum(low for low, _ in weights)
    for (low, high), value in sorted(
        zip(weights, values, strict=True), key=lambda pair: pair[1], reverse=largest
    ):
        more = min(high - low, max(left, 0.0))
        left -= more
        total += (low + more) * value
    return min(max(total, 0.0), 1.0)


@lru_cache(maxsize=64)
def _sides(rate: Rate) -> int:
    """Return which bounds of s a curve uses: 0 if it does not move with s, 2 if it turns with r."""
    less, more = (rate.curve((1 - s) / 2, (1 - s) / 2, s) for s in (0.3, 0.6))
    if less is None or more is None:
        return 2
    return len({more.at(r) > less.at(r) for r in (0.0, 1.0) if not _same(more.at(r), less.at(r))})


def _around(lows: Sequence[Curve], highs: Sequence[Curve]) -> Band:
    return Band(_extreme(lows, min), _extreme(highs, max))


def _extreme(curves: Sequence[Curve], pick: Callable[..., float]) -> Curve:
    """Return a curve on the far side of all of them."""
    at_zero, at_one = (pick(curve.at(r) for curve in curves) for r in (0.0, 1.0))
    for curve in curves:
        if all(_same(curve.at(r), pick(c.at(r) for c in curves)) for r in (0.0, 0.5, 1.0)):
            return curve
    if all(curve.d == 0.0 for curve in curves):
        return Curve(at_zero, at_one - at_zero)  # the least of lines is concave: a chord is below
    return Curve.constant(pick(at_zero, at_one))


def _same(one: float, other: float) -> bool:
    """Compare rates up to rounding: curves that meet at an end hardly ever meet to the last bit."""
    return abs(one - other) <= 1e-12
