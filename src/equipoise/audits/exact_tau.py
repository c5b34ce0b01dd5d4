"""The smallest threshold tau for which the bounds below prove what Baseline and RS-Audit promise.

The paper's ``tau = 576 log(8K/delta) / epsilon^2`` makes every count accurate at once, which is
more than a verdict needs. This module bounds the probability of the wrong verdict itself and
searches for the smallest tau that keeps this bound below the allowed error probability. It holds
for every population; section 5.1 of ``docs/understand/guarantees.md`` has the proof.

A rate is estimated as ``x_hat = N / M``: M past people until the tau-th who was approved with
outcome y, and N arrivals until the tau-th with outcome y. Its relative error is the factor
``x_hat / x``. Scaled by their means, waiting times have a moment generating function below that of
a Gamma(tau) variable, for arguments of either sign. So for ``l >= 0``

    P[log(x_hat / x) >= l]  <=  cosh(l/2)^(-2 tau),        and the same for <= -l,

and, where the historical data are unlimited and M is replaced by its mean,

    P[log(x_hat / x) >= l]  <=  exp(-tau (e^l - 1 - l)),
    P[log(x_hat / x) <= -l] <=  exp(-tau (e^-l - 1 + l)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from equipoise._arrays import Array

GRID_STEPS = 4000  # of a convolution; a coarser grid gives a larger tau, never an invalid one
LARGEST_TAU = 2**53  # beyond it a float no longer holds every whole number


@dataclass(frozen=True)
class WaitingTimes:
    """How the counts behind two estimated rates come about.

    Attributes
    ----------
    known_past
        The historical data are unlimited: the share of the approved with an outcome is known.
    shared_people
        Two groups' counts may come from the same people (Baseline), so they are not independent.
    """

    known_past: bool
    shared_people: bool

    def log_tail_above(self, log_factor: Array, tau: float) -> Array:
        """Return the log of a bound on ``P[log(x_hat / x) >= log_factor]``, for factors >= 1."""
        if self.known_past:
            return -tau * (np.expm1(log_factor) - log_factor)
        return -2.0 * tau * _log_cosh(log_factor / 2.0)

    def log_tail_below(self, log_factor: Array, tau: float) -> Array:
        """Return the log of a bound on ``P[log(x_hat / x) <= -log_factor]``."""
        if self.known_past:
            return -tau * (np.expm1(-log_factor) + log_factor)
        return -2.0 * tau * _log_cosh(log_factor / 2.0)


@dataclass(frozen=True)
class WrongVerdict:
    """One way to a wrong verdict: two estimated rates err in opposite directions.

    For differences the verdict is wrong only if ``high * U + low * V >= margin``. Here U is how far
    the first rate is overestimated, relative to itself, and V how far the second is
    underestimated. For ratios ``high`` and ``low`` are 1 and U, V are logarithms of factors.

    Attributes
    ----------
    high, low
        The largest values that the overestimated and the underestimated rate can have.
    margin
        How far the two errors must reach together.
    by_ratio
        Whether errors are logarithms of factors (ratios) or shares of a rate (differences).
    """

    high: float
    low: float
    margin: float
    by_ratio: bool = False

    def probability(self, tau: float, counts: WaitingTimes) -> float:
        """Return a bound on the probability of this event, whatever the population."""
        if self.margin <= 0.0:
            return 1.0
        if counts.known_past:
            return math.exp(tau * self._joint_exponent())
        errors = np.linspace(0.0, self.margin, GRID_STEPS + 1)
        # Bounds of the tails of both errors, which hold for every population.
        above = np.exp(counts.log_tail_above(self._log_factor_above(errors), tau))
        below = np.exp(counts.log_tail_below(self._log_factor_below(errors), tau))
        if counts.shared_people:
            # the margin is split between the two errors, at the best point of the grid
            return min(1.0, float(np.min(above + below[::-1])))
        # P[U + V >= margin] with independent errors: U in a step, V at least the rest of the margin
        probability_of_step = above[:-1] - above[1:]
        return min(1.0, float(probability_of_step @ below[::-1][1:] + above[-1]))

    def _joint_exponent(self) -> float:
        """Return the exponent per unit of tau of a Chernoff bound on both errors together.

        Unlimited historical data only. The event is ``high A - low B >= high - low + margin`` for
        ratios A, B of waiting times to their means, or ``A >= e^margin B``. The joint moment
        generating function lies below that of independent Gamma variables even if both times
        count the same people.
        """
        if self.by_ratio:
            return -2.0 * float(_log_cosh(np.asarray(self.margin / 2.0)))
        threshold = self.high - self.low + self.margin
        product = self.high * self.low
        linear = 2.0 * product + threshold * (self.high - self.low)
        # The best slope s solves  product threshold s^2 + linear s - margin = 0.
        root = math.sqrt(linear**2 + 4.0 * product * threshold * self.margin)
        slope = 2.0 * self.margin / (linear + root)
        exponent = -slope * threshold - math.log1p(-slope * self.high)
        return exponent - math.log1p(slope * self.low)

    def _log_factor_above(self, errors: Array) -> Array:
        """Return the log of the factor that overestimates the first rate by an error."""
        if self.by_ratio:
            return errors
        if self.high <= 0.0:  # a rate of 0 is never overestimated
            return np.where(errors > 0.0, np.inf, 0.0)
        return np.asarray(np.log1p(errors / self.high))

    def _log_factor_below(self, errors: Array) -> Array:
        """Return minus the log of the factor that underestimates the second rate by an error."""
        if self.by_ratio:
            return errors
        share_lost = np.ones_like(errors)
        if self.low > 0.0:
            share_lost = np.minimum(errors / self.low, 1.0)
        with np.errstate(divide="ignore"):  # no rate is underestimated by more than itself
            return np.asarray(-np.log1p(-share_lost))


def wrong_unfair(gamma: float, epsilon: float, *, by_ratio: bool = False) -> WrongVerdict:
    """Return how one compared pair leads to a wrong UNFAIR: its gap is at most gamma.

    The estimate must exceed ``gamma + epsilon/2``. Among differences the worst pair has the rates
    1 and ``1 - gamma``.
    """
    if by_ratio:
        limit = 1.0 - gamma - epsilon / 2.0
        margin = math.log((1.0 - gamma) / limit) if limit > 0.0 else math.inf
        return WrongVerdict(1.0, 1.0, margin, by_ratio=True)
    return WrongVerdict(1.0, 1.0 - gamma, epsilon / 2.0)


def wrong_fair(gamma: float, epsilon: float, *, by_ratio: bool = False) -> WrongVerdict | None:
    """Return how a pair whose gap is above ``gamma + epsilon`` leads to a wrong FAIR.

    None if no pair can have such a gap.
    """
    lowest = 1.0 - gamma - epsilon
    if lowest <= 0.0:
        return None
    if by_ratio:
        return WrongVerdict(1.0, 1.0, math.log1p(epsilon / (2.0 * lowest)), by_ratio=True)
    return WrongVerdict(lowest, 1.0, epsilon / 2.0)


def smallest_tau(
    gamma: float,
    epsilon: float,
    counts: WaitingTimes,
    *,
    level_fair: float,
    level_unfair: float,
    comparisons: int,
    by_ratio: bool = False,
) -> int:
    """Return the smallest tau for which the bounds prove the given error probabilities.

    Parameters
    ----------
    gamma, epsilon
        The question's tolerance and margin. The verdict is UNFAIR if the estimated gap is above
        ``gamma + epsilon/2``.
    counts
        How the counts come about.
    level_fair, level_unfair
        The allowed probability of a wrong FAIR and of a wrong UNFAIR.
    comparisons
        How many ordered pairs of groups are compared, times the number of rates. A wrong UNFAIR
        may come from any of them. A wrong FAIR needs the one pair that is truly apart.
    by_ratio
        Whether rates are compared by their ratio.

    Examples
    --------
    >>> known = WaitingTimes(known_past=True, shared_people=False)
    >>> smallest_tau(0.1, 0.05, known, level_fair=0.05, level_unfair=0.05, comparisons=4)
    25418
    """
    unfair = wrong_unfair(gamma, epsilon, by_ratio=by_ratio)
    fair = wrong_fair(gamma, epsilon, by_ratio=by_ratio)

    def is_enough(tau: float) -> bool:
        # One pair with a small gap that looks large makes UNFAIR wrong, so all pairs add up. FAIR
        # is wrong only if the one pair that is apart looks close.
        if comparisons * unfair.probability(tau, counts) > level_unfair:
            return False
        return fair is None or fair.probability(tau, counts) <= level_fair

    return _smallest_whole(is_enough)


def error_factors(tau: int, counts: WaitingTimes, level: float) -> tuple[float, float]:
    """Return k, k' with ``x_hat / k <= x <= x_hat * k'``, each wrong with probability ``level``.

    Examples
    --------
    >>> drawn = WaitingTimes(known_past=False, shared_people=False)
    >>> [round(factor, 3) for factor in error_factors(1000, drawn, 0.01)]
    [1.145, 1.145]
    """
    factors = []
    for log_tail in (counts.log_tail_above, counts.log_tail_below):

        def excess(log_factor: float, log_tail: Callable[..., Array] = log_tail) -> float:
            return float(log_tail(np.asarray(log_factor), tau)) - math.log(level)

        furthest = 1.0
        while excess(furthest) > 0.0:
            furthest *= 2.0
        factors.append(math.exp(float(brentq(excess, 0.0, furthest, xtol=1e-14))))
    return factors[0], factors[1]


def _smallest_whole(is_enough: Callable[[float], bool]) -> int:
    """Return the smallest whole number from which on a monotone condition holds."""
    # Doubling finds an upper end, halving the smallest number below it.
    enough = 1
    while not is_enough(enough):
        enough *= 2
        if enough >= LARGEST_TAU:
            return LARGEST_TAU
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if is_enough(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _log_cosh(x: Array) -> Array:
    """Return ``log cosh x`` without overflow."""
    size = np.abs(x)
    return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0))
