"""How many of a group have outcome 1, from features alone.

Everybody's features follow ``q E_1(x) + (1 - q) E_0(x)`` with both laws known up to the estimate's
uncertainty. Two ways to q: count where the more likely outcome is 1 (the paper's MAP counts,
biased when the laws overlap), or solve the likelihood's monotone score equation. The laws are
estimates, so their uncertainty goes into the interval, through the derivative of q in theta: the
plain interval covers far too little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from equipoise.errors import InvalidInput, require_in_open_unit
from equipoise.mixture.family import Array
from equipoise.mixture.fitted import TruncatedFit

__all__ = ["Weight", "likelihood_weight", "log_ratio", "map_weight", "same_base", "solve_weight"]

SUBSAMPLE = 4_096


@dataclass(frozen=True)
class Weight:
    """``q = P[Y=1]`` of a group.

    Attributes
    ----------
    sampling_error, theta_error
        Standard errors due to the number of feature vectors and to the laws' uncertainty.
    information
        Fisher information about q per feature vector, 0 for MAP counts.

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
    information: float = 0.0

    @property
    def standard_error(self) -> float:
        """Both errors together."""
        return float(np.hypot(self.sampling_error, self.theta_error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval that holds q with about this probability."""
        require_in_open_unit("level", level)
        reach = float(ndtri(0.5 + level / 2.0)) * self.standard_error
        return max(0.0, self.estimate - reach), min(1.0, self.estimate + reach)


def log_ratio(fits: tuple[TruncatedFit, TruncatedFit], X: ArrayLike) -> Array:
    """Return ``log E_1(x) - log E_0(x)`` of every row; ``fits`` are those of outcome 0 and 1.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> log_ratio(laws, [[0.0], [1.0], [2.0]]).round(6).tolist()
    [-2.0, 0.0, 2.0]
    """
    zero, one = fits
    if same_base(zero, one):  # h cancels
        points = one.family.points(X)
        shift = one.family.log_partition(one.theta) - zero.family.log_partition(zero.theta)
        return np.asarray(one.family.statistics(points) @ (one.theta - zero.theta) - shift)
    return one.log_density(X) - zero.log_density(X)


def map_weight(ratio: Array, prior: float) -> Weight:
    """Count where outcome 1 is the more likely one, ``prior`` being a rough guess at q.

    Examples
    --------
    >>> map_weight(np.array([-3.0, 2.0, 5.0, -0.1]), prior=0.5).estimate
    0.5
    """
    require_in_open_unit("prior", prior)
    share = float(np.mean(ratio + np.log(prior) - np.log1p(-prior) > 0.0))
    error = float(np.sqrt(share * (1.0 - share) / len(ratio)))
    return Weight(share, error, 0.0, len(ratio))


def likelihood_weight(X: ArrayLike, fits: tuple[TruncatedFit, TruncatedFit]) -> Weight:
    """Return the maximum likelihood q with the laws' uncertainty propagated.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace
    >>> from equipoise.mixture.acceptance import known_law
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


def weight_from(ratio: Array, some: Array, fits: tuple[TruncatedFit, TruncatedFit]) -> Weight:
    """Return the likelihood weight of all log ratios; ``some`` people carry the propagation."""
    q = solve_weight(ratio)
    information = information_at(ratio, q)
    return Weight(
        q,
        sampling_error=float(1.0 / np.sqrt(max(information, 1e-300) * len(ratio))),
        theta_error=theta_error(slopes_in_theta(some, fits, q), fits),
        size=len(ratio),
        information=information,
    )


def information_at(ratio: Array, q: float) -> float:
    """Return the Fisher information about q in one feature vector: the mean squared score."""
    score = (expit(ratio + np.log(q / (1.0 - q))) - q) / (q * (1.0 - q))
    return float(np.mean(score**2))


def slopes_in_theta(
    points: Array, fits: tuple[TruncatedFit, TruncatedFit], q: float
) -> tuple[Array, Array]:
    """Return ``dq/dtheta_0`` and ``dq/dtheta_1`` of the likelihood weight.

    With p the posterior of outcome 1, ``mean(p) = q`` defines q, and ``p(1-p)`` is what p moves
    by when the log ratio moves by one.
    """
    ratio = log_ratio(fits, points)
    posterior = expit(ratio + np.log(q / (1.0 - q)))
    pull = posterior * (1.0 - posterior) / len(points)
    scale = max(q * (1.0 - q) * information_at(ratio, q), 1e-300)
    zero, one = (
        pull @ (fit.family.statistics(points) - fit.family.mean_statistics(fit.theta)) / scale
        for fit in fits
    )
    return -zero, one


def theta_error(slopes: tuple[Array, Array], fits: tuple[TruncatedFit, TruncatedFit]) -> float:
    """Return the standard error that the laws' uncertainty brings, to first order."""
    pairs = zip(slopes, fits, strict=True)
    variance = sum(float(g @ fit.theta_covariance @ g) for g, fit in pairs)
    return float(np.sqrt(max(variance, 0.0)))


def solve_weight(ratio: Array) -> float:
    """Solve ``sum (rho - 1)/(q rho + 1 - q) = 0`` for q in [0, 1], given log rho.

    The score falls in q, so a bracketed Newton iteration cannot miss; where it does not change
    sign the weight is 0 or 1.
    """
    # With x = log rho, (rho - 1)/(q rho + 1 - q) = (p(x + logit q) - q) / (q (1 - q)).
    low, high = 0.0, 1.0
    q = float(np.clip(expit(ratio).mean(), 1e-6, 1.0 - 1e-6))
    for _ in range(100):
        posterior = expit(ratio + np.log(q / (1.0 - q)))
        excess = float(posterior.mean()) - q  # the score times q (1 - q): an EM step's gain
        low, high = (q, high) if excess > 0.0 else (low, q)
        slope = float(((posterior - q) ** 2).mean()) / (q * (1.0 - q))  # information, likewise
        step = q + excess / max(slope, 1e-300)
        new = min(max(step if low <= step <= high else (low + high) / 2.0, 1e-12), 1.0 - 1e-12)
        if abs(new - q) <= 1e-12:
            return new
        q = new
    return q


def same_base(zero: TruncatedFit, one: TruncatedFit) -> bool:
    """Say whether two laws are of one family, with the same h and T."""
    if type(zero.family) is not type(one.family):
        return False
    if zero.family is one.family:
        return True
    left, right = vars(zero.family), vars(one.family)
    return left.keys() == right.keys() and all(
        np.array_equal(np.asarray(left[k], dtype=object), np.asarray(right[k], dtype=object))
        for k in left
    )
