"""The maximum-likelihood share q of outcome 1 in a group, from features alone.

Everybody's features follow ``q E_1(x) + (1 - q) E_0(x)``, and both laws are estimates. The
likelihood's score equation is monotone in q, so it has one solution. The laws' uncertainty goes
into the standard error through the derivative of q in theta. Without it intervals would cover
far too little.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit

from equipoise._arrays import Array
from equipoise.errors import InvalidInput
from equipoise.mixture.truncated_fit import TruncatedFit

SUBSAMPLE = 4_096  # people whose features carry the laws' uncertainty into a weight

Pair = tuple[TruncatedFit, TruncatedFit]
"""The laws of outcome 0 and outcome 1."""


@dataclass(frozen=True)
class Weight:
    """An estimate of ``q = P[Y=1]`` in a group, from ``size`` feature vectors.

    Attributes
    ----------
    sampling_error, theta_error
        Standard errors due to the number of feature vectors and to the laws' uncertainty.

    Examples
    --------
    >>> weight = Weight(estimate=0.3, sampling_error=0.03, theta_error=0.04, size=200)
    >>> round(weight.standard_error, 3)
    0.05
    """

    estimate: float
    sampling_error: float
    theta_error: float
    size: int

    @property
    def standard_error(self) -> float:
        """Both errors together."""
        return float(np.hypot(self.sampling_error, self.theta_error))


def log_ratio(fits: Pair, X: ArrayLike) -> Array:
    """Return ``log E_1(x) - log E_0(x)`` of every row; ``fits`` are those of outcome 0 and 1.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> log_ratio(laws, [[0.0], [1.0], [2.0]]).round(6).tolist()
    [-2.0, 0.0, 2.0]
    """
    law_zero, law_one = fits
    family = law_one.family
    if family is not law_zero.family:
        return law_one.log_density(X) - law_zero.log_density(X)
    # within one family the base measure h cancels
    shift = family.log_partition(law_one.theta) - family.log_partition(law_zero.theta)
    statistics = family.statistics(family.points(X))
    return np.asarray(statistics @ (law_one.theta - law_zero.theta) - shift)


def likelihood_weight(X: ArrayLike, fits: Pair) -> Weight:
    """Return the maximum likelihood q with the laws' uncertainty propagated.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(2.0, 1.0, 3000), rng.normal(0.0, 1.0, 7000)])
    >>> round(likelihood_weight(X, laws).estimate, 2)
    0.3
    """
    points = fits[0].family.points(X)
    if len(points) < 2:
        raise InvalidInput(f"'X' must hold at least 2 feature vectors; got {len(points)}")
    return weight_from(log_ratio(fits, points), points, fits)


def weight_from(ratio: Array, some_points: Array, fits: Pair) -> Weight:
    """Return the likelihood weight of all log ratios; ``some_points`` measure its theta error."""
    q = solve_weight(ratio)
    sampling_error = 1.0 / np.sqrt(max(information_at(ratio, q), 1e-300) * len(ratio))
    laws_error = theta_error(slopes_in_theta(some_points, fits, q), fits)
    return Weight(q, float(sampling_error), laws_error, len(ratio))


def information_at(ratio: Array, q: float) -> float:
    """Return the Fisher information about q in one feature vector: the mean squared score."""
    return float(np.mean(((expit(ratio + logit(q)) - q) / (q * (1.0 - q))) ** 2))


def slopes_in_theta(points: Array, fits: Pair, q: float) -> tuple[Array, Array]:
    """Return ``dq/dtheta_0`` and ``dq/dtheta_1`` of the likelihood weight.

    With p the posterior of outcome 1, ``mean(p) = q`` defines q, and ``p(1-p)`` is what p moves
    by when the log ratio moves by one.
    """
    ratio = log_ratio(fits, points)
    posterior = expit(ratio + logit(q))
    # mean(p) - q has this slope in q, up to its sign (the implicit function theorem).
    scale = max(q * (1.0 - q) * information_at(ratio, q), 1e-300)
    pull = posterior * (1.0 - posterior) / (len(points) * scale)
    law_zero, law_one = fits
    return -pull @ _centred_statistics(law_zero, points), pull @ _centred_statistics(
        law_one, points
    )


def _centred_statistics(fit: TruncatedFit, points: Array) -> Array:
    """Return ``T(x) - E[T]`` of every row under a law."""
    return fit.family.statistics(points) - fit.family.mean_statistics(fit.theta)


def theta_error(slopes: tuple[Array, Array], fits: Pair) -> float:
    """Return the standard error that the laws' uncertainty brings, to first order."""
    variance = 0.0
    for slope, fit in zip(slopes, fits, strict=True):
        variance += float(slope @ fit.theta_covariance @ slope)
    return float(np.sqrt(max(variance, 0.0)))


def solve_weight(ratio: Array) -> float:
    """Solve ``sum (rho - 1)/(q rho + 1 - q) = 0`` for q in [0, 1], given log rho.

    The score falls in q; where it does not change sign the weight is 0 or 1, as near as 1e-12.
    """

    # With x = log rho, (rho - 1)/(q rho + 1 - q) = (p(x + logit q) - q) / (q (1 - q)).
    def score(q: float) -> float:
        return (float(expit(ratio + logit(q)).mean()) - q) / (q * (1.0 - q))

    # Away from 0 and 1, where the score divides by 0.
    least = 1e-12
    largest = 1.0 - 1e-12
    if score(least) <= 0.0:
        return least
    if score(largest) >= 0.0:
        return largest
    return float(brentq(score, least, largest, xtol=1e-13, rtol=1e-12))


def foresee_weight(fits: Pair, q: float) -> tuple[float, float]:
    """Simulate people with the fitted laws at a rough q, and measure how well they tell it.

    Returns the information about q in one feature vector, and the standard error of a likelihood
    weight that remains however many are bought.
    """
    # A seed of its own: the choice of a way must not depend on the run's random numbers.
    rng = np.random.default_rng(0)
    law_zero, law_one = fits
    n_ones = round(q * SUBSAMPLE)
    points_of_zero = law_zero.family.sample(law_zero.theta, SUBSAMPLE - n_ones, rng)
    points_of_one = law_one.family.sample(law_one.theta, n_ones, rng)
    people: Array = np.concatenate([points_of_zero, points_of_one])
    information = information_at(log_ratio(fits, people), q)
    return information, theta_error(slopes_in_theta(people, fits, q), fits)
