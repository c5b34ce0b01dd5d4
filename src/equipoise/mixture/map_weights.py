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

COARSE = 0.1  # epsilon' of the proof: how far off the coarse weights are, relative to themselves
FEWEST = 1000  # features, for the normal approximation
MOST = 1e10  # features: there are no more people
ROOM = 0.85  # of the error allowed may come from the laws: what is foreseen is not exact
VAGUE = 0.2  # relative error of an acceptance beyond which a truncated fit errs in no normal way


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
