"""What past rows say against one population, the slow way: one bet at one place at a time.

Written from the definitions of section 3.21 of the guarantees, with plain numbers; the constants
(shares, lattices, sizes) are those of the code, and everything else is computed anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import log, log1p, sqrt

from equipoise.cells import GroupCells
from equipoise.evidence import boxes
from equipoise.evidence.claims import Claim, Piece
from equipoise.evidence.past_rows import (
    APPROVED_MIX,
    LAM_CENTRES,
    LAM_LINES,
    MAX_ROW_LOSS,
    MAX_TILT,
    ROWS_RATIO,
    STRONG_TILT,
    level_lines,
)
from equipoise.evidence.shared_gains import SharedGains
from equipoise.rates import Rate


@dataclass(frozen=True)
class Person:
    """One group of a population: shares (p1, p0, s) and the unknown."""

    shares: tuple[float, float, float]
    lam: float

    def rate(self, rate: Rate) -> float:
        p1, p0, s = self.shares
        part, whole = rate.fraction(p1, p0, s * self.lam, s * (1.0 - self.lam))
        return part / whole


def lattice_cell(lines: list[float], value: float) -> int:
    return min(bisect_right(lines, value) - 1, len(lines) - 2)


def worths(rate: Rate, level: float, lam: float) -> tuple[float, float, float]:
    tp, fp, fn, tn = (
        (c in rate.part) - level * (c in rate.whole) for c in ("tp", "fp", "fn", "tn")
    )
    return tp, fp, lam * fn + (1.0 - lam) * tn


def expected(rate: Rate, level: float, lam: float) -> tuple[float, float]:
    """Return the share of the whole and the variance of W among the rows that count."""
    good, bad = (APPROVED_MIX[c] if c in rate.whole else 0.0 for c in ("tp", "fp"))
    good, bad = good / (good + bad), bad / (good + bad)
    w_good, w_bad, w_denied = worths(rate, level, lam)
    approved = good * w_good + bad * w_bad
    apart = approved - w_denied
    denied = min(max(approved / apart, 0.0), 1.0) if abs(apart) > 1e-9 else 0.5
    variance = (1 - denied) * (good * w_good**2 + bad * w_bad**2) + denied * w_denied**2
    whole = 1 - denied + denied * (lam * ("fn" in rate.whole) + (1 - lam) * ("tn" in rate.whole))
    return max(whole, 1e-3), max(variance, 1e-9)


def log_product(
    shared: SharedGains,
    claim: Claim,
    counts: GroupCells,
    person: Person,
    t: float,
    tilt: float | None,
    *,
    of_a: bool,
    sign: int,
    is_bold: bool = False,
) -> float:
    """Return the log of one bet's product over a group's rows, all outcomes known.

    ``tilt`` is ``2 log(bar) / D`` of a size D, or the bold one; None for the strong bet.
    """
    answers, rate = shared.answers, shared.answers.rates[claim.rate]
    compare = answers.compare
    lines = level_lines(compare, answers.epsilon).tolist()
    at = lattice_cell(lines, t)
    middle = 0.5 * (lines[at] + lines[at + 1])

    def level_of(b: float) -> float:
        return float(compare.above(b, claim.gap) if claim.above else compare.below(b, claim.gap))

    slope = level_of(1.0) - level_of(0.0)
    level = level_of(t) if of_a else t
    centre = level_of(middle) if of_a else middle
    counted = sum(
        n
        for n, cells in (
            (counts.approved_positive, {"tp"}),
            (counts.approved_negative, {"fp"}),
            (counts.denied, {"fn", "tn"}),
        )
        if cells & rate.whole
    )
    rows = ROWS_RATIO ** round(log(max(counted, 1.0)) / log(ROWS_RATIO))
    lam_centre = float(LAM_CENTRES[lattice_cell(LAM_LINES.tolist(), person.lam)])
    whole, variance = expected(rate, centre, lam_centre)
    if tilt is None:
        eta = STRONG_TILT / sqrt(variance * rows)
    else:
        if is_bold:
            rate_middle = min(max(0.5 * (level_of(middle) + middle), 0.02), 0.98)
            tilt *= 0.5 / sqrt(rate_middle * (1.0 - rate_middle))
        higher = min(max(level_of(middle), middle, 1e-3), 1.0)
        unit = (1.0 if compare == "difference" else higher) * max(1.0, 1.0 / slope)
        per_level = tilt / unit / (slope if of_a else 1.0)
        eta = min(per_level / (rows * whole), MAX_TILT / sqrt(variance * rows))
    lattice = [(lines[k], lines[k + 1]) for k in range(len(lines) - 1)]
    if claim.at_least:
        lattice = [cell for cell in lattice if level_of(cell[0]) <= 1.0]
    else:
        lattice = [cell for cell in lattice if level_of(cell[1]) >= 0.0]
    ends = [level_of(x) if of_a else x for cell in lattice for x in cell]
    eta = sign * min(eta, MAX_ROW_LOSS / max(1.0, max(ends), 1.0 - min(ends)))
    numbers = (counts.approved_positive, counts.approved_negative, counts.denied)
    return sum(
        n * log1p(eta * w) for n, w in zip(numbers, worths(rate, level, person.lam), strict=True)
    )


@dataclass(frozen=True)
class PastBet:
    """One bet on past rows: its share of the stake, and the log of what became of it.

    ``labels`` names the label bets that share it: the place of a size, "bold", "floor" or None.
    """

    side: int
    claim: Claim | None
    kind: object
    log_gain: float


def past_bets(
    shared: SharedGains,
    piece: Piece,
    counts: tuple[GroupCells, GroupCells],
    people: tuple[Person, Person],
) -> Iterator[PastBet]:
    """Yield every bet on the rows of a and b at one population, without its stake."""
    t_of = [people[1].rate(rate) for rate in shared.answers.rates]
    tilts = [2.0 * log(shared.bar) / size for size in shared.sizes.tolist()]
    bold = shared.bold_tilt(piece.a, piece.b)
    for claim in piece.claims:
        t = t_of[claim.rate]

        def product(  # type: ignore[no-untyped-def]
            tilt: float | None, *, of_a: bool, sign: int, is_bold: bool = False, claim=claim, t=t
        ) -> float:
            own = 0 if of_a else 1
            return log_product(
                *(shared, claim, counts[own], people[own], t, tilt),
                of_a=of_a,
                sign=sign,
                is_bold=is_bold,
            )

        for kind, tilt in [*enumerate(tilts), ("bold", bold)]:
            gain = product(tilt, of_a=True, sign=claim.sign, is_bold=kind == "bold")
            gain += product(tilt, of_a=False, sign=-claim.sign, is_bold=kind == "bold")
            yield PastBet(claim.side, claim, kind, gain)
        yield PastBet(0, claim, "strong", product(None, of_a=True, sign=claim.sign))
        yield PastBet(0, claim, "strong", product(None, of_a=False, sign=-claim.sign))
        paired = any(c.rate == claim.rate and c.sign != claim.sign for c in piece.claims)
        if not paired:
            yield PastBet(0, claim, "strong", product(None, of_a=False, sign=claim.sign))


def number_of_strong(piece: Piece) -> int:
    return sum(
        2 if any(c.rate == claim.rate and c.sign != claim.sign for c in piece.claims) else 3
        for claim in piece.claims
    )


def strong_share(piece: Piece) -> float:
    return boxes.STRONG_SHARE / number_of_strong(piece)
