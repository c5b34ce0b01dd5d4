"""What one person tells: a label, or a guess that a label would correct.

An observation is ``Z = m + xi (Y - m) / pi``. The guess ``m`` and the chance ``pi`` of asking may
come from anywhere, a score, a price, an enemy; ``xi`` is 1 with probability pi and drawn after
both are on record. Its mean given the person is Y, so its mean is r whatever m and pi are. A
label that is always asked for is the case pi = 1, in which Z = Y.

At a corner x a bet with factors ``one`` and ``zero`` for the outcomes multiplies its stake by
``1 + W (Z - x)``, where ``W = one - zero`` for a coin. Its mean under a null point lam is
``1 + W (lam - x)``, at most 1 when W points away from the cell. Only its size changes for wider
observations: :func:`resized` keeps corner and direction. The size, and the range that bounds it,
must be fixed before the person's score and price are read; m and pi may come after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput

__all__ = ["COIN", "COIN_ENDS", "Observation", "Sized", "Sizer", "Sizing", "resized"]

Array = NDArray[np.float64]

MOST_LOST = 0.9  # of a stake, by any one sized observation


@dataclass(frozen=True)
class Observation:
    """A guess, the chance of asking for the label, and whether it is asked for.

    Examples
    --------
    >>> asked = Observation(m=0.2, pi=0.5, asked=True)
    >>> asked.at(0), asked.at(1)
    (-0.2, 1.8)
    >>> Observation(m=0.2, pi=0.5, asked=False).at(1)
    0.2
    """

    m: float = 0.0
    pi: float = 1.0
    asked: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.m <= 1.0:
            raise InvalidInput(f"'m' must be in [0, 1]; got {self.m!r}")
        if not 0.0 < self.pi <= 1.0:
            raise InvalidInput(f"'pi' must be in (0, 1]; got {self.pi!r}")
        if self.pi == 1.0 and not self.asked:
            raise InvalidInput("an observation with pi = 1 is asked for its label")

    def at(self, outcome: int) -> float:
        """Return Z for an outcome."""
        return self.m + (outcome - self.m) / self.pi if self.asked else self.m

    @property
    def ends(self) -> tuple[float, float]:
        """Z for the outcomes 0 and 1."""
        return self.at(0), self.at(1)


COIN = Observation()
COIN_ENDS = COIN.ends


@dataclass(frozen=True)
class Sizing:
    """What bets on a group's coming observations go by, fixed before they are made.

    Parameters
    ----------
    mean, variance, third
        What Z is expected to be like: its mean, variance and third central moment.
    low, high
        The range that Z cannot leave, from the declared guesses and least chances.
    price
        Expected cost of as much information as one coin holds.
    asked
        Expected share of people whose label is asked for.
    """

    mean: float
    variance: float
    third: float
    low: float
    high: float
    price: float
    asked: float

    @property
    def worth(self) -> float:
        """How many coins one observation is worth."""
        return self.mean * (1.0 - self.mean) / self.variance

    def covers(self, ends: tuple[float, float]) -> bool:
        """Say whether an observation stays in the declared range."""
        return self.low - 1e-9 <= min(ends) and max(ends) <= self.high + 1e-9


@dataclass(frozen=True)
class Sized:
    """Observations that one sizing was in force for: Z of each at its least and at its most."""

    sizing: Sizing
    low: Array
    high: Array


class Sizer(Protocol):
    """Whoever knows what the observations of each group will be like."""

    def sizings(self) -> list[Sizing | None]:
        """Return how bets on each group are sized from now on; None: observations are coins."""
        ...


def resized(zero: Array, one: Array, corner: Array, sizing: Sizing) -> tuple[Array, Array]:
    """Return factors for Z = 0 and Z = 1 of bets that start at corners, as large as Z allows.

    The size is the Kelly bet's to the third moment: ``m1/m2 (1 + m1 m3/m2^2)``, with moments of
    Z - x at the bet's own alternative.
    """
    m1 = corner * (one - 1.0)  # rho - x
    rho = corner + m1
    r = sizing.mean
    spread = sizing.variance * np.clip(rho * (1.0 - rho) / (r * (1.0 - r)), 0.5, 2.0)
    m2 = spread + m1 * m1
    m3 = sizing.third + 3.0 * m1 * spread + m1**3
    size = m1 / m2 * np.clip(1.0 + m1 * m3 / (m2 * m2), 0.5, 1.3)
    size = np.where(one == zero, 0.0, size)
    worst = np.where(size > 0.0, corner - sizing.low, sizing.high - corner)
    most = MOST_LOST / np.maximum(worst, 1e-12)
    size = np.clip(size, -most, most)
    return 1.0 - size * corner, 1.0 + size * (1.0 - corner)
