"""The two wrong answers as sets of unknowns, cut into cells.

Write ``lam_a`` for a possible value of group a's unknown ``r_a = P[Y=1 | f=0, a]``. For two groups
the UNFAIR set is ``lam_a <= u(lam_b)`` (one such piece per ordered pair), the FAIR set is the
corridor ``L(lam_b) <= lam_a <= U(lam_b)``; u, L and U do not fall. A cell is what lies above one
interval of ``lam_b``; by monotonicity it is inside a box that is read off the interval's ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from equipoise.comparison import GapScale
from equipoise.rates import RATES, Band, Bands, Curve

__all__ = ["Frontier", "Limits", "Pair", "fair_pairs", "grid", "unfair_pairs"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Limits = Sequence[tuple[float, float]]
"""Where each group's unknown may lie."""


@dataclass(frozen=True)
class Frontier:
    """A bound of ``lam_a`` as a function of ``lam_b``, and the rate that is active at each.

    ``each`` has the bound that every rate sets by itself, shape (rates, n).
    """

    at: Array
    active: Ints
    each: Array


@dataclass(frozen=True)
class Pair:
    """Two groups, as positions in the audit's order, and their bands rate by rate.

    ``limits_a`` and ``limits_b`` are where their unknowns may lie at all.
    """

    a: int
    b: int
    falling: tuple[bool, ...]
    bands_a: tuple[Band, ...]
    bands_b: tuple[Band, ...]
    compare: GapScale = GapScale.DIFFERENCE
    limits_a: tuple[float, float] = (0.0, 1.0)
    limits_b: tuple[float, float] = (0.0, 1.0)

    def unfair_below(self, lam_b: Array, gap: float) -> Frontier:
        """Return u: where T_a is ``gap`` above T_b, or F_b above F_a, lam_a is at most u."""
        above, below = self.compare.above, self.compare.below
        bounds = [
            a.high.until(above(b.low.value(lam_b), gap), falling=True)
            if falling
            else a.low.until(below(b.high.value(lam_b), gap), falling=False)
            for falling, a, b in self._rates()
        ]
        return _pick(bounds, largest=True)

    def fair_from(self, lam_b: Array, gap: float) -> Frontier:
        """Return L: the points whose rates are at most ``gap`` apart have lam_a >= L."""
        above, below = self.compare.above, self.compare.below
        bounds = [
            a.low.since(above(b.high.value(lam_b), gap), falling=True)
            if falling
            else a.high.since(below(b.low.value(lam_b), gap), falling=False)
            for falling, a, b in self._rates()
        ]
        return _pick(bounds, largest=True)

    def fair_to(self, lam_b: Array, gap: float) -> Frontier:
        """Return U: the points whose rates are at most ``gap`` apart have lam_a <= U."""
        above, below = self.compare.above, self.compare.below
        bounds = [
            a.high.until(below(b.low.value(lam_b), gap), falling=True)
            if falling
            else a.low.until(above(b.high.value(lam_b), gap), falling=False)
            for falling, a, b in self._rates()
        ]
        return _pick(bounds, largest=False)

    def curves(self) -> tuple[tuple[Curve, Curve], ...]:
        """Return one curve per rate for a and for b, to aim bets by."""
        return tuple((a.low, b.low) for _, a, b in self._rates())

    def _rates(self) -> Sequence[tuple[bool, Band, Band]]:
        return tuple(zip(self.falling, self.bands_a, self.bands_b, strict=True))


def unfair_pairs(
    bands: Bands, compare: GapScale = GapScale.DIFFERENCE, limits: Limits | None = None
) -> list[Pair]:
    """Return every ordered pair: the UNFAIR set is the union of their pieces."""
    return [_pair(bands, a, b, compare, limits) for a, b in permutations(range(_count(bands)), 2)]


def fair_pairs(
    bands: Bands, compare: GapScale = GapScale.DIFFERENCE, limits: Limits | None = None
) -> list[Pair]:
    """Return every unordered pair: the FAIR set is inside each of their corridors."""
    return [_pair(bands, a, b, compare, limits) for a, b in combinations(range(_count(bands)), 2)]


def grid(pair: Pair, step: float) -> Array:
    """Return the ends of intervals of ``lam_b`` over which no rate moves more than ``step``."""
    first, last = pair.limits_b
    fine = np.linspace(first, last, 4097)
    scaled = [pair.compare.scale(band.low.value(fine)) for band in pair.bands_b]
    moves = np.max([np.abs(np.diff(rate)) for rate in scaled], axis=0)
    moved = np.concatenate([[0.0], np.cumsum(moves + 1e-9 / 4096)])  # constants move nowhere
    count = max(1, int(np.ceil(moved[-1] / step)))
    ends = np.interp(np.linspace(0.0, moved[-1], count + 1), moved, fine)
    ends[0], ends[-1] = first, last
    return ends


def _count(bands: Bands) -> int:
    return len(next(iter(bands.values())))


def _pair(bands: Bands, a: int, b: int, compare: GapScale, limits: Limits | None) -> Pair:
    names = list(next(iter(bands.values())))
    return Pair(
        a,
        b,
        tuple(RATES[rate].falls for rate in bands),
        tuple(by_group[names[a]] for by_group in bands.values()),
        tuple(by_group[names[b]] for by_group in bands.values()),
        compare,
        *((limits[a], limits[b]) if limits else ()),
    )


def _pick(bounds: list[Array], *, largest: bool) -> Frontier:
    stacked = np.stack(bounds)
    active = stacked.argmax(axis=0) if largest else stacked.argmin(axis=0)
    return Frontier(np.take_along_axis(stacked, active[None], axis=0)[0], active, stacked)
