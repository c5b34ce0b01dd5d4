"""The evidence the slow way: exact fractions, one cell, one bet and one label at a time.

Written from the definitions and not for speed: which unknowns a wrong answer allows, which box a
cell lies in, what a label does to a stake. How far a bet moves is taken as given, since it matters
for power alone; that it is a legal bet is checked. Tests hold null cells and evidence against this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from equipoise.comparison import GapScale
from equipoise.rates import Band, Curve

ZERO, HALF, ONE = Fraction(0), Fraction(1, 2), Fraction(1)


@dataclass(frozen=True)
class Pair:
    """Two groups, as positions, and per rate: does it fall, the band of a, the band of b."""

    a: int
    b: int
    rates: tuple[tuple[bool, Band, Band], ...]
    compare: GapScale


# -- the two wrong answers, by definition -------------------------------------------------------


def is_unfair(pair: Pair, lam_a: Fraction, lam_b: Fraction, gap: Fraction) -> bool:
    """Say whether, somewhere in the bands, a's falling rates exceed b's, or b's rising ones a's."""
    for falling, a, b in pair.rates:
        low, high = (b.low, lam_b), (a.high, lam_a)
        if not falling:
            low, high = (a.low, lam_a), (b.high, lam_b)
        if _rate(*high) >= _above(pair.compare, _rate(*low), gap):
            return True
    return False


def is_fair(pair: Pair, lam_a: Fraction, lam_b: Fraction, gap: Fraction) -> bool:
    """Say whether, somewhere in the bands, every rate of a and b is at most ``gap`` apart."""
    return all(
        _rate(a.low, lam_a) <= _above(pair.compare, _rate(b.high, lam_b), gap)
        and _rate(b.low, lam_b) <= _above(pair.compare, _rate(a.high, lam_a), gap)
        for _, a, b in pair.rates
    )


# -- cells --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """``low_a <= lam_a <= high_a`` and ``low_b <= lam_b <= high_b``."""

    low_a: Fraction
    high_a: Fraction
    low_b: Fraction
    high_b: Fraction

    def holds(self, lam_a: Fraction, lam_b: Fraction) -> bool:
        """Say whether a point lies in the box."""
        return self.low_a <= lam_a <= self.high_a and self.low_b <= lam_b <= self.high_b

    def of(self, group_a: bool) -> tuple[Fraction, Fraction]:
        """Return the range of one group's unknown."""
        return (self.low_a, self.high_a) if group_a else (self.low_b, self.high_b)


def unfair_box(pair: Pair, start: Fraction, end: Fraction, gap: Fraction) -> Box | None:
    """Return the box around the UNFAIR points over an interval of ``lam_b``; None without any.

    The set only grows in ``lam_b``, so what is allowed at its end is allowed nowhere more.
    """
    most = reach(pair, end, gap)
    return None if most < 0 else Box(ZERO, _possible(most), start, end)


def fair_box(pair: Pair, start: Fraction, end: Fraction, half: int, gap: Fraction) -> Box | None:
    """Return the box around the upper (1) or lower (0) half of the FAIR points over an interval."""
    low, high = corridor(pair, start, gap)[0], corridor(pair, end, gap)[1]
    if low > high or low > 1 or high < 0:
        return None
    low, high = _possible(low), _possible(high)
    if half == 1:
        return Box(max(low, _middle(pair, start, gap)), high, start, end)
    return Box(low, min(high, _middle(pair, end, gap)), start, end)


def level_side(
    band: Band, falling: bool, start: Fraction, end: Fraction
) -> tuple[Fraction, Fraction] | None:
    """Return the unknowns of a group at which its rate may lie in [start, end]; None if none."""
    if falling:
        low = _smallest(band.low, end, at_least=False)
        high = _largest(band.high, start, at_least=True)
    else:
        low = _smallest(band.high, start, at_least=True)
        high = _largest(band.low, end, at_least=False)
    if low > high or low > 1 or high < 0:
        return None
    return _possible(low), _possible(high)


def tightened(
    sides: Sequence[tuple[Fraction, Fraction]],
    rates: Sequence[tuple[bool, Sequence[Band]]],
    compare: GapScale,
    gap: Fraction,
    rounds: int,
) -> list[tuple[Fraction, Fraction]] | None:
    """Cut a box by "every rate of all groups is within ``gap``"; None if nothing is left."""
    box = list(sides)
    for falling, bands in list(rates) * rounds:
        values = [
            [_rate(curve, r) for r in side]
            for curves in ([band.low for band in bands], [band.high for band in bands])
            for curve, side in zip(curves, box, strict=True)
        ]
        least = max(min(ends) for ends in values[: len(box)])
        most = min(max(ends) for ends in values[len(box) :])
        for g, band in enumerate(bands):
            cut = level_side(band, falling, _below(compare, least, gap), _above(compare, most, gap))
            if cut is None:
                return None
            box[g] = max(box[g][0], cut[0]), min(box[g][1], cut[1])
        if any(low > high for low, high in box):
            return None
    return box


def reach(pair: Pair, lam_b: Fraction, gap: Fraction) -> Fraction:
    """Return the largest ``lam_a`` at which some rate is unfair; -1 if none is, 2 if all are."""
    ends = []
    for falling, a, b in pair.rates:
        if falling:
            least = _above(pair.compare, _rate(b.low, lam_b), gap)
            ends.append(_largest(a.high, least, at_least=True))
        else:
            most = _below(pair.compare, _rate(b.high, lam_b), gap)
            ends.append(_largest(a.low, most, at_least=False))
    return max(ends)


def corridor(pair: Pair, lam_b: Fraction, gap: Fraction) -> tuple[Fraction, Fraction]:
    """Return the least and largest fair ``lam_a``; beyond [0, 1] where a rate does not bind."""
    lows, highs = [], []
    for falling, a, b in pair.rates:
        most = _above(pair.compare, _rate(b.high, lam_b), gap)
        least = _below(pair.compare, _rate(b.low, lam_b), gap)
        if falling:
            lows.append(_smallest(a.low, most, at_least=False))
            highs.append(_largest(a.high, least, at_least=True))
        else:
            lows.append(_smallest(a.high, least, at_least=True))
            highs.append(_largest(a.low, most, at_least=False))
    return max(lows), min(highs)


def _middle(pair: Pair, lam_b: Fraction, gap: Fraction) -> Fraction:
    low, high = corridor(pair, lam_b, gap)
    return (_possible(low) + _possible(high)) * HALF


def _largest(curve: Curve, value: Fraction, *, at_least: bool) -> Fraction:
    """Return the largest r whose rate is at least (at most) ``value``: -1 if none, 2 if all.

    The rate must not rise (not fall) in r.
    """
    if not _meets(_rate(curve, ZERO), value, at_least):
        return Fraction(-1)
    return Fraction(2) if _meets(_rate(curve, ONE), value, at_least) else _where(curve, value)


def _smallest(curve: Curve, value: Fraction, *, at_least: bool) -> Fraction:
    """Return the smallest r whose rate is at least (at most) ``value``: 2 if none, -1 if all.

    The rate must not fall (not rise) in r.
    """
    if not _meets(_rate(curve, ONE), value, at_least):
        return Fraction(2)
    return Fraction(-1) if _meets(_rate(curve, ZERO), value, at_least) else _where(curve, value)


def _above(compare: GapScale, rate: Fraction, gap: Fraction) -> Fraction:
    return rate / (1 - gap) if compare is GapScale.RATIO else rate + gap


def _below(compare: GapScale, rate: Fraction, gap: Fraction) -> Fraction:
    return rate * (1 - gap) if compare is GapScale.RATIO else rate - gap


def _meets(rate: Fraction, value: Fraction, at_least: bool) -> bool:
    return rate >= value if at_least else rate <= value


def _where(curve: Curve, value: Fraction) -> Fraction:
    a, b, c, d = _coefficients(curve)
    return (a - value * c) / (value * d - b)


def _rate(curve: Curve, r: Fraction) -> Fraction:
    a, b, c, d = _coefficients(curve)
    return (a + b * r) / (c + d * r)


def _coefficients(curve: Curve) -> tuple[Fraction, ...]:
    return tuple(Fraction(float(x)) for x in (curve.a, curve.b, curve.c, curve.d))


def _possible(x: Fraction) -> Fraction:
    return min(max(x, ZERO), ONE)


# -- evidence -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bet:
    """What a label of 1 and a label of 0 multiply a stake by, for a label of a and one of b."""

    a_one: Fraction
    a_zero: Fraction
    b_one: Fraction
    b_zero: Fraction

    def factor(self, group_a: bool, outcome: int | None) -> Fraction:
        """Return what one label does; an unknown one does the worst that it could."""
        one, zero = (self.a_one, self.a_zero) if group_a else (self.b_one, self.b_zero)
        return min(one, zero) if outcome is None else one if outcome else zero

    def worst_mean(self, box: Box) -> Fraction:
        """Return the largest mean of a factor under any point of a box: a legal bet has at most 1.

        The mean is linear in the unknown, so the ends of the box suffice.
        """
        return max(
            lam * self.factor(group_a, 1) + (1 - lam) * self.factor(group_a, 0)
            for group_a in (True, False)
            for lam in box.of(group_a)
        )


class Cell:
    """One cell's evidence: stakes on bets, multiplied label by label."""

    def __init__(self, stakes: Sequence[Fraction], bets: Sequence[Bet]) -> None:
        self.stakes = list(stakes)
        self.bets = list(bets)

    @property
    def evidence(self) -> Fraction:
        """The sum of all stakes."""
        return sum(self.stakes, ZERO)

    def count(self, group_a: bool, outcome: int | None) -> None:
        """Count one label of group a, or of group b."""
        self.stakes = [
            stake * bet.factor(group_a, outcome)
            for stake, bet in zip(self.stakes, self.bets, strict=True)
        ]
