"""The share q of outcome 1 by MAP counts (paper, Algorithm 2), and the choice of a way to q.

MAP counts are the paper's way: count the people for whom outcome 1 is the more likely one. The
count is biased where the two laws overlap. The other way is the likelihood weight
(:mod:`equipoise.mixture.likelihood_weights`).

Exp-Audit chooses between the two before it buys features. Its proof needs weights within
``epsilon q_m / 12``. MAP counts are valid if the labelled people behind the coarse weights show
their bias to within three quarters of that. The bias is taken off, and enough features are bought
that chance stays within the rest. This holds whatever the laws are. Likelihood weights are valid if
their error, the laws' uncertainty included, will be small enough.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from equipoise._arrays import Array
from equipoise.display import format_number
from equipoise.levels import exp_event_level
from equipoise.mixture.likelihood_weights import (
    SUBSAMPLE,
    Pair,
    Weight,
    foresee_weight,
    log_ratio,
    weight_from,
)
from equipoise.rates import clopper_pearson

COARSE_ERROR = 0.1  # epsilon' of the proof: how far off coarse weights are, relative to themselves
MIN_FEATURES = 1000  # for the normal approximation
MAX_FEATURES = 1e10  # there are no more people
LAWS_ERROR_SHARE = 0.85  # of the error allowed may come from the laws: foresight is not exact
VAGUE_ACCEPTANCE = 0.2  # relative error beyond which a truncated fit errs in no normal way
MAP_BIAS_SHARE = 0.75  # of the error allowed may come from the bias of MAP counts


class Labelled(NamedTuple):
    """People of whom features and outcome are both known, a row each."""

    features: Array
    outcome: NDArray[np.int8]


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
    misjudged_zeros = says_one[labelled.outcome == 0]
    misjudged_ones = ~says_one[labelled.outcome == 1]
    low_0, high_0 = clopper_pearson(int(misjudged_zeros.sum()), len(misjudged_zeros), level / 4.0)
    low_1, high_1 = clopper_pearson(int(misjudged_ones.sum()), len(misjudged_ones), level / 4.0)
    coarse_zero, coarse_one = coarse
    # Each coarse weight bounds q by itself, that of outcome 0 from the other side.
    least_q = max((1.0 - COARSE_ERROR) * coarse_one, 1.0 - (1.0 + COARSE_ERROR) * coarse_zero)
    largest_q = min((1.0 + COARSE_ERROR) * coarse_one, 1.0 - (1.0 - COARSE_ERROR) * coarse_zero)
    largest_bias = (1.0 - least_q) * high_0 - least_q * low_1
    least_bias = (1.0 - largest_q) * low_0 - largest_q * high_1
    return (largest_bias + least_bias) / 2.0, (largest_bias - least_bias) / 2.0


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
        return math.ceil(4.0 * self.log_term / COARSE_ERROR**2)

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
        return self.epsilon * (min(coarse) * (1.0 - COARSE_ERROR)) / 12.0

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
    "separated": MAP counts of laws that meet the separation condition, with the proof's R.
    ``labelled`` are the people behind the coarse weights, if their features are known.
    """
    if weights == "separated":
        return Branch(
            "map",
            "the laws meet the separation condition",
            constants.map_features(min(coarse)),
            error=constants.epsilon * min(coarse) / 36.0,
        )
    if weights == "published":
        return Branch(
            "map",
            "as published",
            constants.map_features(min(coarse), events=12),
            error=constants.epsilon * min(coarse) / 36.0,
        )
    likelihood = _likelihood_branch(fits, coarse, constants.allowed(coarse) / constants.z)
    map_counts = _map_branch(fits, coarse, constants, labelled)
    valid = [branch for branch in (likelihood, map_counts) if branch.features]
    if not valid:
        return replace(likelihood, why=f"{map_counts.why}, and {likelihood.why}")
    # A way that the user named goes first, then the one with fewer features.
    best = min(valid, key=lambda branch: (weights not in ("auto", branch.way), branch.features))
    if map_counts.features or best.way == weights:
        return best
    return replace(best, why=f"{map_counts.why}, so likelihood weights: {best.why}")


def _map_branch(
    fits: Pair, coarse: tuple[float, float], constants: ExpConstants, labelled: Labelled | None
) -> Branch:
    """Return MAP counts with their bias and the features they take, or why they are not valid."""
    if labelled is None:
        why = "labels came without features, which would show how MAP counts err"
        return Branch("fallback", why)
    allowed = constants.allowed(coarse)
    bias, error = map_bias(fits, coarse, labelled, level=constants.level)
    signed_bias = f"{'+' if bias > 0.0 else ''}{format_number(bias, 2)}"
    bias_text = (
        f"the labels show the bias of MAP counts, {signed_bias}, to within "
        f"{format_number(error, 2)}"
    )
    most_error = MAP_BIAS_SHARE * allowed
    if error > most_error:
        return Branch(
            "fallback",
            f"{bias_text} only, where {format_number(most_error, 2)} is the most allowed",
        )
    # Bernstein's inequality; the rarer outcome is counted with probability ``rarer`` at most
    left_to_chance = allowed - error
    rarer = (1.0 + COARSE_ERROR) * min(coarse) + abs(bias) + error
    log_term = constants.log_term + math.log(2.0)
    features = math.ceil(2.0 * log_term * (rarer + left_to_chance / 3.0) / left_to_chance**2)
    return Branch("map", f"{bias_text}, and it is taken off", features, bias, error)


def _likelihood_branch(fits: Pair, coarse: tuple[float, float], target: float) -> Branch:
    """Return likelihood weights with the features they take, or why they cannot be had.

    They need laws whose errors are normal ones, so acceptances that are not vague; MAP counts do
    not use acceptances. ``target`` is the standard error allowed.
    """
    relative_error = max(fit.acceptance_error / max(fit.acceptance, 1e-300) for fit in fits)
    if relative_error > VAGUE_ACCEPTANCE:
        return Branch(
            "fallback",
            f"the share of an outcome that is approved is known to within {relative_error:.0%} of "
            f"itself only, where {VAGUE_ACCEPTANCE:.0%} is the most allowed: too few past approved "
            "people",
        )
    information, error = foresee_weight(fits, coarse[1] / (coarse[0] + coarse[1]))
    most_error = LAWS_ERROR_SHARE * target
    # the share of the variance allowed, less that of the laws, which one feature vector earns
    gain_per_feature = information * (target**2 - error**2)
    if error > most_error or gain_per_feature * MAX_FEATURES <= 1.0:
        times_as_many = (error / most_error) ** 2
        return Branch(
            "fallback",
            f"the laws' uncertainty alone puts a standard error of {format_number(error, 2)} on "
            f"the weight, where {format_number(most_error, 2)} is the most allowed (about "
            f"{format_number(times_as_many, 2)} times as many "
            "past approved people would do)",
        )
    # A tenth more features than foreseen, since the forecast rests on a simulated sample.
    why = f"the weight's standard error will be within {format_number(target, 2)}"
    return Branch("likelihood", why, max(math.ceil(1.1 / gain_per_feature), MIN_FEATURES))


# -- as features come in --------------------------------------------------------------------------


class FeatureCounts:
    """One group's feature vectors: MAP counts and log ratios of all, some vectors themselves.

    Attributes
    ----------
    fits, odds
        The laws of outcome 0 and 1, and the odds of outcome 1 that the MAP oracle uses.
    size
        Number of people taken in.
    first_vectors
        The first people's feature vectors, at most ``SUBSAMPLE`` rows. They carry the laws'
        uncertainty into the weight.
    """

    def __init__(self, fits: Pair, odds: float) -> None:
        self.fits = fits
        self.odds = odds
        self.size = 0
        self.first_vectors = np.empty((0, fits[0].family.dimension(fits[0].theta)))
        self._map_ones = 0
        self._ratios: list[Array] = []
        self._waiting: list[Array] = []  # not judged yet: many at once are faster

    def add(self, X: Array) -> None:
        """Take in one person, a vector, or many, a row each."""
        rows = np.atleast_2d(X)
        self._waiting.append(rows)
        self.size += len(rows)
        if len(rows) > 1 or len(self._waiting) == SUBSAMPLE:
            self._judge_waiting()

    def add_counts(self, size: int, n_ones: int) -> None:
        """Take in people of whom only the MAP oracle's answers are known."""
        self.size += size
        self._map_ones += n_ones

    def map_weight(self, bias: float) -> Weight:
        """Return the share for whom outcome 1 is the more likely one, less its bias."""
        self._judge_waiting()
        share = self._map_ones / self.size
        error = float(np.sqrt(share * (1.0 - share) / self.size))
        return Weight(float(np.clip(share - bias, 0.0, 1.0)), error, 0.0, self.size)

    def likelihood_weight(self) -> Weight:
        """Return the maximum likelihood weight, its uncertainty propagated."""
        self._judge_waiting()
        return weight_from(np.concatenate(self._ratios), self.first_vectors, self.fits)

    def _judge_waiting(self) -> None:
        if not self._waiting:
            return
        points = self.fits[0].family.points(np.concatenate(self._waiting))
        ratio = log_ratio(self.fits, points)
        self._map_ones += int((ratio > -np.log(self.odds)).sum())
        self._ratios.append(ratio)
        vectors = np.concatenate([self.first_vectors, points[:SUBSAMPLE]])
        self.first_vectors = vectors[:SUBSAMPLE]
        self._waiting = []
