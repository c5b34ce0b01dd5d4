"""How many of a group have outcome 1, from features alone.

Everybody's features follow ``q E_1(x) + (1 - q) E_0(x)`` with both laws known up to the estimate's
uncertainty. Two ways to q: count where the more likely outcome is 1 (the paper's MAP counts,
biased when the laws overlap), or solve the likelihood's monotone score equation. The laws are
estimates, so their uncertainty goes into the interval: the plain one covers far too little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from equipoise.errors import InvalidInput, require_in_open_unit
from equipoise.mixture.family import Array
from equipoise.mixture.fitted import TruncatedFit

__all__ = ["Weight", "likelihood_weight", "log_ratio", "map_weight", "solve_weights"]

DRAWS = 200
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
    """Return ``log E_1(x) - log E_0(x)`` of every row; ``fits`` are those of outcome 0 and 1."""
    zero, one = fits
    if type(zero.family) is type(one.family) and _same_base(zero, one):  # h cancels
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


def likelihood_weight(
    X: ArrayLike, fits: tuple[TruncatedFit, TruncatedFit], *, seed: int = 0
) -> Weight:
    """Return the maximum likelihood q with the laws' uncertainty propagated.

    Parameters from the normal approximation of both fits are drawn and q solved again for each.

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
    return weight_from(log_ratio(fits, points), points, fits, seed=seed)


def weight_from(
    ratio: Array, some: Array, fits: tuple[TruncatedFit, TruncatedFit], *, seed: int = 0
) -> Weight:
    """Return the likelihood weight of all log ratios; ``some`` people carry the propagation."""
    estimate = float(solve_weights(ratio[:, None])[0])
    score = _score(ratio, estimate)
    information = float(np.mean(score**2))
    thetas = draw_weights(some[:SUBSAMPLE], fits, seed=seed)[0]
    return Weight(
        estimate,
        sampling_error=float(1.0 / np.sqrt(max(information, 1e-300) * len(ratio))),
        theta_error=float(np.std(thetas)),
        size=len(ratio),
        information=information,
    )


def draw_weights(
    points: Array, fits: tuple[TruncatedFit, TruncatedFit], *, draws: int = DRAWS, seed: int = 0
) -> tuple[Array, Array, Array]:
    """Return q solved at drawn parameters, and the parameters drawn for outcomes 0 and 1."""
    rng = np.random.default_rng(seed)
    zero, one = fits
    if not (zero.theta_covariance.any() or one.theta_covariance.any()):
        draws = 1  # known laws: every draw would be the same
    theta_0, theta_1 = zero.draw_thetas(draws, rng), one.draw_thetas(draws, rng)
    log_1 = one.family.statistics(points) @ theta_1.T - one.family.log_partition(theta_1)
    log_0 = zero.family.statistics(points) @ theta_0.T - zero.family.log_partition(theta_0)
    base = np.zeros((1, 1))
    if not _same_base(zero, one):
        base = (one.family.log_base(points) - zero.family.log_base(points))[:, None]
    ratios = log_1 - log_0 + base
    middle = float(solve_weights(ratios.mean(axis=1, keepdims=True), digits=1e-6)[0])
    return solve_weights(ratios, start=middle, digits=1e-7), theta_0, theta_1


def solve_weights(ratios: Array, *, start: float | None = None, digits: float = 1e-12) -> Array:
    """Solve ``sum (rho - 1)/(q rho + 1 - q) = 0`` for q in [0, 1], per column of log rho.

    The score falls in q, so a bracketed Newton iteration cannot miss; where it does not change
    sign the weight is 0 or 1.

    Parameters
    ----------
    start
        A guess at q; a rough one is made if left out.
    digits
        Steps shorter than this end the search.
    """
    # With x = log rho, (rho - 1)/(q rho + 1 - q) = (p(x + logit q) - q) / (q (1 - q)).
    columns = ratios.shape[1]
    low, high = np.zeros(columns), np.ones(columns)
    guess = expit(ratios).mean(axis=0) if start is None else np.full(columns, start)
    q = np.clip(guess, 1e-6, 1.0 - 1e-6)
    for _ in range(100):
        posterior = expit(ratios + np.log(q / (1.0 - q)))
        excess = posterior.mean(axis=0) - q  # the score times q (1 - q): an EM step's gain
        low, high = np.where(excess > 0.0, q, low), np.where(excess > 0.0, high, q)
        spread = q * (1.0 - q)
        slope = ((posterior - q) ** 2).mean(axis=0) / spread  # information times q (1 - q)
        step = q + excess / np.maximum(slope, 1e-300)
        new = np.where((step >= low) & (step <= high), step, (low + high) / 2.0)
        new = np.clip(new, 1e-12, 1.0 - 1e-12)
        done = np.abs(new - q) <= digits
        q = new
        if done.all():
            break
    return np.asarray(q)


def _score(ratio: Array, q: float) -> Array:
    return np.asarray((expit(ratio + np.log(q / (1.0 - q))) - q) / (q * (1.0 - q)))


def _same_base(zero: TruncatedFit, one: TruncatedFit) -> bool:
    if type(zero.family) is not type(one.family):
        return False
    if zero.family is one.family:
        return True
    left, right = vars(zero.family), vars(one.family)
    return left.keys() == right.keys() and all(
        np.array_equal(np.asarray(left[k], dtype=object), np.asarray(right[k], dtype=object))
        for k in left
    )
