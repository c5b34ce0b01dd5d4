"""How many of a group have outcome 1, from features alone, and how well that can be known.

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
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, ndtri

from equipoise.errors import InvalidInput, require_in_open_unit
from equipoise.mixture.families import Array
from equipoise.mixture.truncated import TruncatedFit

__all__ = [
    "COARSE",
    "FeatureCounts",
    "Weight",
    "foresee_weight",
    "likelihood_weight",
    "log_ratio",
    "map_bias_bound",
    "map_weight",
    "same_base",
    "slopes_in_theta",
    "solve_weight",
    "theta_error",
]

SUBSAMPLE = 4_096  # people whose features carry the laws' uncertainty into a weight
PILOT, POINTS = 2**12, 2**17  # simulated people behind a bound on the MAP oracle's error
SPREAD = 512  # drawn laws that these people come from
HOPELESS = 0.025  # epsilon q_m/20 never exceeds 1/40
COARSE = 0.1  # epsilon' of the proof: how far off the coarse weights are, relative to themselves

Pair = tuple[TruncatedFit, TruncatedFit]
"""The laws of outcome 0 and outcome 1."""


@dataclass(frozen=True)
class Weight:
    """``q = P[Y=1]`` of a group.

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

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval that holds q with about this probability."""
        require_in_open_unit("level", level)
        reach = float(ndtri(0.5 + level / 2.0)) * self.standard_error
        return max(0.0, self.estimate - reach), min(1.0, self.estimate + reach)


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
    return _counted(int((ratio > -logit(prior)).sum()), len(ratio))


def _counted(ones: int, size: int) -> Weight:
    share = ones / size
    return Weight(share, float(np.sqrt(share * (1.0 - share) / size)), 0.0, size)


def likelihood_weight(X: ArrayLike, fits: Pair) -> Weight:
    """Return the maximum likelihood q with the laws' uncertainty propagated.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace
    >>> from equipoise.mixture.truncated import known_law
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


def weight_from(ratio: Array, some: Array, fits: Pair) -> Weight:
    """Return the likelihood weight of all log ratios; ``some`` people carry the propagation."""
    q = solve_weight(ratio)
    information = information_at(ratio, q)
    return Weight(
        q,
        sampling_error=float(1.0 / np.sqrt(max(information, 1e-300) * len(ratio))),
        theta_error=theta_error(slopes_in_theta(some, fits, q), fits),
        size=len(ratio),
    )


def information_at(ratio: Array, q: float) -> float:
    """Return the Fisher information about q in one feature vector: the mean squared score."""
    score = (expit(ratio + np.log(q / (1.0 - q))) - q) / (q * (1.0 - q))
    return float(np.mean(score**2))


def slopes_in_theta(points: Array, fits: Pair, q: float) -> tuple[Array, Array]:
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


def theta_error(slopes: tuple[Array, Array], fits: Pair) -> float:
    """Return the standard error that the laws' uncertainty brings, to first order."""
    pairs = zip(slopes, fits, strict=True)
    variance = sum(float(g @ fit.theta_covariance @ g) for g, fit in pairs)
    return float(np.sqrt(max(variance, 0.0)))


def solve_weight(ratio: Array) -> float:
    """Solve ``sum (rho - 1)/(q rho + 1 - q) = 0`` for q in [0, 1], given log rho.

    The score falls in q; where it does not change sign the weight is 0 or 1, as near as 1e-12.
    """
    # With x = log rho, (rho - 1)/(q rho + 1 - q) = (p(x + logit q) - q) / (q (1 - q)).
    low, high = 1e-12, 1.0 - 1e-12

    def score(q: float) -> float:
        return (float(expit(ratio + logit(q)).mean()) - q) / (q * (1.0 - q))

    if score(low) <= 0.0 or score(high) >= 0.0:
        return low if score(low) <= 0.0 else high
    return float(brentq(score, low, high, xtol=1e-13, rtol=1e-12))


def same_base(zero: TruncatedFit, one: TruncatedFit) -> bool:
    """Say whether two laws are of one family, with the same h and T."""
    left, right = zero.family, one.family
    return type(left) is type(right) and all(
        map(np.array_equal, vars(left).values(), vars(right).values())
    )


# -- before any features are bought ---------------------------------------------------------------


def map_bias_bound(
    fits: Pair, coarse: tuple[float, float], *, level: float, seed: int = 0
) -> float:
    """Return an upper confidence bound on the bias ``|(1-q) e_0 - q e_1|`` of MAP counts.

    The oracle says 1 where ``log E_1 - log E_0 > -log(odds)``, with the fitted laws and the coarse
    odds; ``e_y`` is how often it misjudges outcome y. Misjudged people of the two outcomes make up
    for each other, so the bias is far smaller than either error. Errors are taken under pairs of
    laws drawn from the fits' uncertainty, q wherever the coarse weights leave it; the bound is the
    bias's quantile over the draws, plus what the number of simulated people leaves open. An error
    beyond any use is returned as it is.

    Parameters
    ----------
    coarse
        The weights of outcome 0 and 1, each within :data:`COARSE` of the truth.
    level
        Probability with which the bound may be too small.
    """
    rng = np.random.default_rng(seed)
    draws = int(min(np.ceil(4.0 / level), 4000))
    limit = np.log(coarse[0] / coarse[1])
    errors, noises = [], []
    for outcome, fit in enumerate(fits):

        def misjudged(people: Array, outcome: int = outcome) -> Array:
            return np.asarray(people[(log_ratio(fits, people) > limit) != bool(outcome)])

        family = fit.family
        if len(wrong := misjudged(family.sample(fit.theta, PILOT, rng))) > 2.0 * HOPELESS * PILOT:
            return len(wrong) / PILOT
        # People of many drawn laws, so that laws far from the fit are covered too; reweighted to
        # one law, only those who are misjudged matter.
        thetas = fit.draw_thetas(draws if fit.theta_covariance.any() else 1, rng)
        partition = family.log_partition(thetas)
        exists = np.isfinite(partition)  # a draw that is no law may err as it likes
        if not exists.any():
            return 1.0
        some = np.flatnonzero(exists)[:SPREAD]
        each = POINTS // len(some)
        size = each * len(some)
        wrong = misjudged(np.concatenate([family.sample(thetas[i], each, rng) for i in some]))
        if len(wrong) > HOPELESS * size:
            return len(wrong) / size
        value = family.statistics(wrong) @ thetas.T - np.where(exists, partition, 0.0)
        mixed = logsumexp(value[:, some], axis=1, keepdims=True) - np.log(len(some))
        weights = np.exp(np.clip(value - mixed, -700.0, 700.0))
        errors.append(np.where(exists, weights.sum(axis=0) / size, 1.0))
        noises.append(np.sqrt((weights**2).sum(axis=0)) / size)
    slack = -np.log(level) / (POINTS - SPREAD)  # what zero misjudged people would still allow
    least = [(1.0 - COARSE) * share for share in coarse]
    ends = np.array([[max(least[1], 1.0 - coarse[0] / (1.0 - COARSE))], [1.0 - least[0]]])
    bias = np.abs((1.0 - ends) * errors[0] - ends * errors[1])  # linear in q: largest at an end
    noise = np.hypot((1.0 - ends) * noises[0], ends * noises[1])
    bound = float(np.quantile((bias + 3.0 * noise).max(axis=0), 1.0 - level) + slack)
    return min(bound, 1.0)


def foresee_weight(fits: Pair, q: float, *, size: int = 4096, seed: int = 0) -> tuple[float, float]:
    """Simulate people with the fitted laws at a rough q; see how well they tell it.

    Returns the information about q in one feature vector, and the standard error of a likelihood
    weight that remains however many are bought.
    """
    rng = np.random.default_rng(seed)
    ones = round(q * size)
    sizes = (size - ones, ones)
    people: Array = np.concatenate(
        [fit.family.sample(fit.theta, n, rng) for fit, n in zip(fits, sizes, strict=True)]
    )
    information = information_at(log_ratio(fits, people), q)
    return information, theta_error(slopes_in_theta(people, fits, q), fits)


# -- as features come in --------------------------------------------------------------------------


class FeatureCounts:
    """One group's feature vectors: MAP counts and log ratios of all, the vectors of the first."""

    def __init__(self, fits: Pair, odds: float) -> None:
        self.fits = fits
        self.odds = odds
        self.size = 0
        self._ones = 0
        self._ratios: list[Array] = []
        self._some: list[Array] = []
        self._new: list[Array] = []  # not looked at yet: many at once are faster

    def add(self, X: Array) -> None:
        """Take in one person, a vector, or many, a row each."""
        rows = np.atleast_2d(X)
        self._new.append(rows)
        self.size += len(rows)
        if len(rows) > 1 or len(self._new) == SUBSAMPLE:
            self._look()

    def add_counts(self, size: int, ones: int) -> None:
        """Take in people of whom only the MAP oracle's verdicts are known."""
        self.size += size
        self._ones += ones

    @property
    def some(self) -> Array:
        """The features of the first people."""
        self._look()
        return np.concatenate(self._some)

    def map_weight(self) -> Weight:
        """Return the share for whom outcome 1 is the more likely one."""
        self._look()
        return _counted(self._ones, self.size)

    def likelihood_weight(self) -> Weight:
        """Return the maximum likelihood weight, its uncertainty propagated."""
        self._look()
        return weight_from(np.concatenate(self._ratios), self.some, self.fits)

    def _look(self) -> None:
        if self._new:
            points = self.fits[0].family.points(np.concatenate(self._new))
            ratio = log_ratio(self.fits, points)
            self._ones += int((ratio > -np.log(self.odds)).sum())
            self._ratios.append(ratio)
            self._some.append(points[: max(SUBSAMPLE - sum(map(len, self._some)), 0)])
            self._new = []
