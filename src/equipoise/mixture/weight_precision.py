"""How well two laws can be told apart, and how well a weight between them can be known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.mixture.family import Array
from equipoise.mixture.fitted import TruncatedFit
from equipoise.mixture.weights import information_at, log_ratio, slopes_in_theta, theta_error

__all__ = ["Foresight", "foresee_weight", "map_error_bound"]

PILOT, POINTS = 2**12, 2**17
HOPELESS = 0.02  # epsilon q_m/36 never exceeds 1/72
MOST = 1e10  # feature vectors: there are no more people


def map_error_bound(
    fits: tuple[TruncatedFit, TruncatedFit], odds: float, *, level: float, seed: int = 0
) -> float:
    """Return an upper confidence bound on how often the MAP oracle errs, for either outcome.

    The oracle says 1 where ``log E_1 - log E_0 > -log odds``, with the fitted laws. Its error is
    taken under laws drawn from the fits' uncertainty; the bound is the error's quantile over the
    draws, plus what the number of simulated people leaves open. An error beyond any use is
    returned as it is.

    Parameters
    ----------
    odds
        The rough ``q_1/q_0`` that the oracle uses.
    level
        Probability with which the bound may be too small.
    """
    rng = np.random.default_rng(seed)
    draws = int(min(np.ceil(4.0 / level), 4000))
    worst = 0.0
    for outcome, fit in enumerate(fits):
        for size in (PILOT, POINTS):
            people = fit.family.sample(fit.theta, size, rng)
            says_one = log_ratio(fits, people) > -np.log(odds)
            wrong = people[says_one != bool(outcome)]
            if len(wrong) > HOPELESS * size * (2.0 if size == PILOT else 1.0):
                return len(wrong) / size
        # Reweighted to a drawn theta, only those who are misjudged matter.
        thetas = fit.draw_thetas(draws if fit.theta_covariance.any() else 1, rng)
        shift = thetas - fit.theta
        change = fit.family.log_partition(thetas) - fit.family.log_partition(fit.theta)
        weights = np.exp(np.clip(fit.family.statistics(wrong) @ shift.T - change, -700.0, 700.0))
        error = weights.sum(axis=0) / POINTS
        noise = np.sqrt((weights**2).sum(axis=0)) / POINTS
        slack = -np.log(level) / POINTS  # what zero misjudged people would still allow
        worst = max(worst, float(np.quantile(error + 3.0 * noise, 1.0 - level) + slack))
    return min(worst, 1.0)


@dataclass(frozen=True)
class Foresight:
    """What a likelihood weight will be worth before any features are bought.

    ``information`` about q per feature vector, and the standard error ``theta_error`` that remains
    however many are bought.
    """

    information: float
    theta_error: float

    def features_needed(self, error: float) -> float:
        """Return how many feature vectors bring the standard error down to ``error``."""
        room = self.information * (error**2 - self.theta_error**2)
        return 1.0 / room if MOST * room > 1.0 else float("inf")


def foresee_weight(
    fits: tuple[TruncatedFit, TruncatedFit], q: float, *, size: int = 4096, seed: int = 0
) -> Foresight:
    """Simulate people with the fitted laws at a rough q; see how well they tell it."""
    rng = np.random.default_rng(seed)
    ones = round(q * size)
    zero, one = fits
    people: Array = np.concatenate(
        [
            zero.family.sample(zero.theta, size - ones, rng),
            one.family.sample(one.theta, ones, rng),
        ]
    )
    information = information_at(log_ratio(fits, people), q)
    return Foresight(information, theta_error(slopes_in_theta(people, fits, q), fits))
