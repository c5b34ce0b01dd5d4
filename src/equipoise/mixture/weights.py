"""Which share q of a group has outcome 1, from features alone, and how well that can be known.

Everybody's features follow ``q E_1(x) + (1 - q) E_0(x)``; both laws are estimates. There are two
ways to q: count for whom outcome 1 is the more likely one (the paper's MAP counts, biased where the
laws overlap), or solve the likelihood's monotone score equation. The laws' uncertainty goes into
the standard error, through the derivative of q in theta: without it intervals cover far too little.

Exp-Audit chooses between the two before features are bought. Its proof needs weights within
``epsilon q_m / 12``. MAP counts are valid if the labelled people behind the coarse weights show
their bias to within three quarters of that; it is taken off, and so many features are bought that
chance stays within the rest. This holds whatever the laws are. Likelihood weights are valid if
their error, the laws' uncertainty included, will be small enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from equipoise._arrays import Array
from equipoise.errors import InvalidInput
from equipoise.levels import exp_event_level
from equipoise.mixture.truncated import TruncatedFit
from equipoise.rates import clopper_pearson

SUBSAMPLE = 4_096  # people whose features carry the laws' uncertainty into a weight
COARSE = 0.1  # epsilon' of the proof: how far off the coarse weights are, relative to themselves
FEWEST = 1000  # features, for the normal approximation
MOST = 1e10  # features: there are no more people
ROOM = 0.85  # of the error allowed may come from the laws: what is foreseen is not exact
VAGUE = 0.2  # relative error of an acceptance beyond which a truncated fit errs in no normal way

Pair = tuple[TruncatedFit, TruncatedFit]
"""The laws of outcome 0 and outcome 1."""


class Labelled(NamedTuple):
    """People of whom features and outcome are both known, a row each."""

    features: Array
    outcome: NDArray[np.int8]


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
    zero, one = fits
    if (family := one.family) is zero.family:  # h cancels
        shift = family.log_partition(one.theta) - family.log_partition(zero.theta)
        return np.asarray(family.statistics(family.points(X)) @ (one.theta - zero.theta) - shift)
    return one.log_density(X) - zero.log_density(X)


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


def weight_from(ratio: Array, some: Array, fits: Pair) -> Weight:
    """Return the likelihood weight of all log ratios; its theta error is measured on ``some``."""
    q = solve_weight(ratio)
    sampling_error = 1.0 / np.sqrt(max(information_at(ratio, q), 1e-300) * len(ratio))
    laws_error = theta_error(slopes_in_theta(some, fits, q), fits)
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
    scale = max(q * (1.0 - q) * information_at(ratio, q), 1e-300)
    pull = posterior * (1.0 - posterior) / (len(points) * scale)
    zero, one = (
        pull @ (fit.family.statistics(points) - fit.family.mean_statistics(fit.theta))
        for fit in fits
    )
    return -zero, one


def theta_error(slopes: tuple[Array, Array], fits: Pair) -> float:
    """Return the standard error that the laws' uncertainty brings, to first order."""
    variance = sum(g @ fit.theta_covariance @ g for g, fit in zip(slopes, fits, strict=True))
    return float(np.sqrt(max(variance, 0.0)))


def solve_weight(ratio: Array) -> float:
    """Solve ``sum (rho - 1)/(q rho + 1 - q) = 0`` for q in [0, 1], given log rho.

    The score falls in q; where it does not change sign the weight is 0 or 1, as near as 1e-12.
    """

    # With x = log rho, (rho - 1)/(q rho + 1 - q) = (p(x + logit q) - q) / (q (1 - q)).
    def score(q: float) -> float:
        return (float(expit(ratio + logit(q)).mean()) - q) / (q * (1.0 - q))

    low, high = 1e-12, 1.0 - 1e-12
    if score(low) <= 0.0:
        return low
    return high if score(high) >= 0.0 else float(brentq(score, low, high, xtol=1e-13, rtol=1e-12))


# -- before any features are bought ---------------------------------------------------------------


def map_bias(
    fits: Pair, coarse: tuple[float, float], labelled: Labelled, *, level: float
) -> tuple[float, float]:
    """Return the bias ``(1-q) e_0 - q e_1`` of MAP counts, and how far off that may be.

    The oracle says 1 where ``log E_1 - log E_0 > -log(odds)``, with the fitted laws and the coarse
    odds; ``e_y`` is how often it misjudges outcome y. Of people whose outcome and features are both
    known, as they came, the misjudged are binomial given the outcomes, whatever the laws are:
    Clopper-Pearson bounds of ``e_0`` and ``e_1``, with q anywhere that the coarse weights leave
    it. The bias is further off with probability ``level`` at most.
    """
    says_one = log_ratio(fits, labelled.features) > np.log(coarse[0] / coarse[1])
    (low_0, high_0), (low_1, high_1) = (
        clopper_pearson(int(wrong.sum()), len(wrong), level / 4.0)
        for wrong in (says_one[labelled.outcome == 0], ~says_one[labelled.outcome == 1])
    )
    zero, one = coarse
    least = max((1.0 - COARSE) * one, 1.0 - (1.0 + COARSE) * zero)
    most = min((1.0 + COARSE) * one, 1.0 - (1.0 - COARSE) * zero)
    highest = (1.0 - least) * high_0 - least * low_1
    lowest = (1.0 - most) * low_0 - most * high_1
    return (highest + lowest) / 2.0, (highest - lowest) / 2.0


def foresee_weight(fits: Pair, q: float) -> tuple[float, float]:
    """Simulate people with the fitted laws at a rough q, and measure how well they tell it.

    Returns the information about q in one feature vector, and the standard error of a likelihood
    weight that remains however many are bought.
    """
    rng = np.random.default_rng(0)
    ones = round(q * SUBSAMPLE)
    sizes = (SUBSAMPLE - ones, ones)
    people: Array = np.concatenate(
        [fit.family.sample(fit.theta, n, rng) for fit, n in zip(fits, sizes, strict=True)]
    )
    information = information_at(log_ratio(fits, people), q)
    return information, theta_error(slopes_in_theta(people, fits, q), fits)


@dataclass(frozen=True)
class ExpConstants:
    """The constants of the proof of Theorem 4 at error probability ``delta`` for K groups.

    Examples
    --------
    >>> constants = ExpConstants(epsilon=0.1, delta=0.05, groups=2)
    >>> constants.coarse_tau, constants.tau, constants.map_features(0.3)
    (2532, 364490, 7234942)
    """

    epsilon: float
    delta: float
    groups: int

    @property
    def level(self) -> float:
        """The share ``delta/(14 K)`` that one event of the proof may fail with."""
        return exp_event_level(self.delta, self.groups)

    @property
    def log_term(self) -> float:
        """``log(14 K / delta)``."""
        return -math.log(self.level)

    @property
    def coarse_tau(self) -> int:
        """``tau' = 4 log(14K/delta) / epsilon'^2`` for the coarse weights."""
        return math.ceil(4.0 * self.log_term / COARSE**2)

    @property
    def tau(self) -> int:
        """``tau = 576 log(14K/delta) / epsilon^2`` for the past."""
        return math.ceil(576.0 * self.log_term / self.epsilon**2)

    def map_features(self, smaller: float, events: int = 14) -> int:
        """``R = 3430 log(14K/delta) / (q_m epsilon^2)``, q_m the smaller coarse weight.

        Algorithm 2 prints 12 in place of 14. 3430 is nearly three times what the Chernoff step
        needs, so that too errs within delta.
        """
        log_term = math.log(events * self.groups / self.delta)
        return math.ceil(3430.0 * log_term / (smaller * self.epsilon**2))

    def allowed(self, coarse: tuple[float, float]) -> float:
        """``epsilon q_m / 12``, q_m the least that the smaller weight may be by the coarse ones."""
        return self.epsilon * (min(coarse) * (1.0 - COARSE)) / 12.0

    @property
    def z(self) -> float:
        """Normal quantile of a weight's error: the proof leaves it 6 of the 14 shares."""
        return float(ndtri(1.0 - 3.0 * self.level))


@dataclass(frozen=True)
class Branch:
    """How one group's weight is found: "map", "likelihood", or by labels ("fallback"); and why.

    ``features`` are how many it takes. MAP counts are off by ``bias``, known to within ``error``.
    """

    way: str
    why: str
    features: int = 0
    bias: float = 0.0
    error: float = 0.0


def choose_branch(
    fits: Pair,
    coarse: tuple[float, float],
    constants: ExpConstants,
    *,
    weights: str = "auto",
    labelled: Labelled | None = None,
) -> Branch:
    """Choose one group's way by its laws and its coarse weights of outcome 0 and 1.

    "auto": of the valid ways the one with fewer features. "map" and "likelihood": that way where
    it is valid, else the other. Where neither is, labels. "published": MAP counts, untested.
    ``labelled`` are the people behind the coarse weights, if their features are known.
    """
    if weights == "published":
        why, error = "as published: separation was not tested", constants.epsilon * min(coarse)
        features = constants.map_features(min(coarse), events=12)
        return Branch("map", why, features, error=error / 36.0)
    likelihood = _likelihood_branch(fits, coarse, constants.allowed(coarse) / constants.z)
    counted = _map_branch(fits, coarse, constants, labelled)
    valid = [branch for branch in (likelihood, counted) if branch.features]
    if not valid:
        return replace(likelihood, why=f"{counted.why}, and {likelihood.why}")
    best = min(valid, key=lambda b: (weights not in ("auto", b.way), b.features))
    if counted.features or best.way == weights:
        return best
    return replace(best, why=f"{counted.why}, so likelihood weights: {best.why}")


def _map_branch(
    fits: Pair, coarse: tuple[float, float], constants: ExpConstants, labelled: Labelled | None
) -> Branch:
    """Return MAP counts with their bias and the features they take, or why they are not valid."""
    if labelled is None:
        why = "labels came without features, which would show how MAP counts err"
        return Branch("fallback", why)
    allowed = constants.allowed(coarse)
    bias, error = map_bias(fits, coarse, labelled, level=constants.level)
    shown = f"the labels show the bias of MAP counts, {bias:+.2g}, to within {error:.2g}"
    if error > 0.75 * allowed:
        return Branch("fallback", f"{shown} only, where {0.75 * allowed:.2g} is the most allowed")
    # Bernstein's inequality; the rarer outcome is counted with probability at most ``rarer``
    left, rarer = allowed - error, (1.0 + COARSE) * min(coarse) + abs(bias) + error
    log_term = constants.log_term + math.log(2.0)
    features = math.ceil(2.0 * log_term * (rarer + left / 3.0) / left**2)
    return Branch("map", f"{shown}, and it is taken off", features, bias, error)


def _likelihood_branch(fits: Pair, coarse: tuple[float, float], target: float) -> Branch:
    """Return likelihood weights with the features they take, or why they cannot be had.

    They need laws whose errors are normal ones, so acceptances that are not vague; MAP counts do
    not use acceptances. ``target`` is the standard error allowed.
    """
    vague = max(fit.acceptance_error / max(fit.acceptance, 1e-300) for fit in fits)
    if vague > VAGUE:
        return Branch(
            "fallback",
            f"the share of an outcome that is approved is known to within {vague:.0%} of itself "
            f"only, where {VAGUE:.0%} is the most allowed: too few past approved people",
        )
    information, error = foresee_weight(fits, coarse[1] / (coarse[0] + coarse[1]))
    most = ROOM * target
    room = information * (target**2 - error**2)  # of one feature vector, in the variance allowed
    if error > most or room * MOST <= 1.0:
        return Branch(
            "fallback",
            f"the laws' uncertainty alone puts a standard error of {error:.2g} on the weight, "
            f"where {most:.2g} is the most allowed (about {(error / most) ** 2:.2g} times as many "
            "past approved people would do)",
        )
    why = f"the weight's standard error will be within {target:.2g}"
    return Branch("likelihood", why, max(math.ceil(1.1 / room), FEWEST))


# -- as features come in --------------------------------------------------------------------------


class FeatureCounts:
    """One group's feature vectors: MAP counts and log ratios of all, some vectors themselves."""

    def __init__(self, fits: Pair, odds: float) -> None:
        self.fits, self.odds, self.size, self._ones = fits, odds, 0, 0
        self.some = np.empty((0, fits[0].family.dimension(fits[0].theta)))  # the first SUBSAMPLE
        self._ratios: list[Array] = []
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

    def map_weight(self, bias: float) -> Weight:
        """Return the share for whom outcome 1 is the more likely one, less its bias."""
        self._look()
        share = self._ones / self.size
        error = float(np.sqrt(share * (1.0 - share) / self.size))
        return Weight(float(np.clip(share - bias, 0.0, 1.0)), error, 0.0, self.size)

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
            self.some = np.concatenate([self.some, points[:SUBSAMPLE]])[:SUBSAMPLE]
            self._new = []
