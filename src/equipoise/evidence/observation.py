"""What one person tells: a label, or a guess that a label would correct.

An observation is ``Z = m + xi (Y - m) / pi``. The guess ``m`` and the chance ``pi`` of asking may
come from anywhere, even from an adversary; ``xi`` is 1 with probability pi and drawn after both
are on record. Its mean given the person is Y, so its mean is r whatever m and pi are. A
label that is always asked for is the case pi = 1, in which Z = Y.

At a corner x a bet with factors ``one`` and ``zero`` for the outcomes multiplies its stake by
``1 + W (Z - x)``, where ``W = one - zero`` for a plain label. Its mean under a null point lam is
``1 + W (lam - x)``, at most 1 when W points away from the cell. Only its size changes for wider
observations: :func:`rescale` keeps corner and direction. The size, and the range that bounds it,
must be fixed before the person's score and price are read; m and pi may come after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise._arrays import Array

Ends = tuple[float, float]
"""Z for the outcomes 0 and 1; the same twice for somebody whose label is not asked for."""

LABEL: Ends = (0.0, 1.0)
"""A label that is always asked for."""

MAX_LOSS = 0.9  # share of its stake that a bet may lose by one observation it is sized for


@dataclass(frozen=True)
class BetScale:
    """What bets on a group's coming observations go by, fixed before they are made.

    Parameters
    ----------
    mean, variance, third_moment
        What Z is expected to be like: its mean, variance and third central moment.
    low, high
        The range that Z cannot leave, from the declared guesses and least chances.
    price
        Expected cost of as much information as one label holds.
    share_asked
        Expected share of people whose label is asked for.
    """

    mean: float
    variance: float
    third_moment: float
    low: float
    high: float
    price: float
    share_asked: float

    @property
    def label_equivalents(self) -> float:
        """How many labels one observation counts as: ``r (1-r) / Var(Z)``."""
        return self.mean * (1.0 - self.mean) / self.variance


@dataclass(frozen=True)
class ScoredBatch:
    """Observations that one bet_scale was in force for: Z of each at its least and at its most."""

    bet_scale: BetScale
    low: Array
    high: Array


def rescale(
    factor_zero: Array, factor_one: Array, corner: Array, bet_scale: BetScale
) -> tuple[Array, Array]:
    """Return factors for Z = 0 and Z = 1 of bets that start at corners, as large as Z allows.

    The size is the Kelly bet's to the third moment: ``m1/m2 (1 + m1 m3/m2^2)``, with moments of
    Z - x at the bet's own alternative.
    """
    # None of this touches validity: the size's sign, which points away from the cell, is that of
    # rho - x, and its largest value follows from the declared range alone (guarantees, 3.16).
    m1 = corner * (factor_one - 1.0)  # rho - x
    rho = corner + m1
    r = bet_scale.mean
    variance_at_rho = bet_scale.variance * np.clip(rho * (1.0 - rho) / (r * (1.0 - r)), 0.5, 2.0)
    m2 = variance_at_rho + m1 * m1
    m3 = bet_scale.third_moment + 3.0 * m1 * variance_at_rho + m1**3
    size = m1 / m2 * np.clip(1.0 + m1 * m3 / (m2 * m2), 0.5, 1.3)
    size = np.where(factor_one == factor_zero, 0.0, size)
    largest_loss = np.where(size > 0.0, corner - bet_scale.low, bet_scale.high - corner)
    largest_size = MAX_LOSS / np.maximum(largest_loss, 1e-12)
    size = np.clip(size, -largest_size, largest_size)
    return 1.0 - size * corner, 1.0 + size * (1.0 - corner)
