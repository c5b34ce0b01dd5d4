"""Exp-Audit's constants, and its ways from features to weights.

MAP counts are valid if an upper confidence bound of the MAP oracle's error is at most
``epsilon q_m / 36``: what the paper's proof needs of its separation condition. Likelihood weights
are valid if their error, the laws' uncertainty included, will be within ``epsilon q_m / 12``. Of
what is valid the way with fewer features is taken; where nothing is, labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from equipoise.mixture.fitted import TruncatedFit
from equipoise.mixture.weight_precision import foresee_weight, map_error_bound

__all__ = ["Branch", "ExpConstants", "choose_branch"]

COARSE = 0.1  # epsilon' of the proof
FEWEST = 1000  # features, for the normal approximation
ROOM = 0.85  # of the error allowed may come from the laws: what is foreseen is not exact
VAGUE = 0.2  # relative error of an acceptance beyond which a truncated fit errs in no normal way


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
    def log_term(self) -> float:
        """``log(14 K / delta)``."""
        return math.log(14.0 * self.groups / self.delta)

    @property
    def coarse_tau(self) -> int:
        """``tau' = 4 log(14K/delta) / epsilon'^2`` for the coarse weights."""
        return math.ceil(4.0 * self.log_term / COARSE**2)

    @property
    def tau(self) -> int:
        """``tau = 576 log(14K/delta) / epsilon^2`` for the past."""
        return math.ceil(576.0 * self.log_term / self.epsilon**2)

    def map_features(self, smaller: float) -> int:
        """``R = 3430 log(14K/delta) / (q_m epsilon^2)``, q_m the smaller coarse weight."""
        return math.ceil(3430.0 * self.log_term / (smaller * self.epsilon**2))

    @property
    def level(self) -> float:
        """The share ``delta/(14 K)`` that one event of the proof may fail with."""
        return self.delta / (14.0 * self.groups)

    @property
    def z(self) -> float:
        """Normal quantile of a weight's error: the proof leaves it 6 of the 14 shares."""
        return float(ndtri(1.0 - 3.0 * self.level))


@dataclass(frozen=True)
class Branch:
    """The way for one group: "map", "likelihood" or "fallback", why, and the features it takes."""

    way: str
    why: str
    features: int = 0


def choose_branch(
    fits: tuple[TruncatedFit, TruncatedFit],
    coarse: tuple[float, float],
    constants: ExpConstants,
    *,
    weights: str = "auto",
    seed: int = 0,
) -> Branch:
    """Choose for one group from the laws and the coarse weights of outcome 0 and 1."""
    smaller = min(coarse)
    paper = constants.map_features(smaller)
    if weights == "map":
        return Branch("map", "MAP counts were asked for; separation was not tested", paper)
    vague = max(fit.acceptance_error / max(fit.acceptance, 1e-300) for fit in fits)
    if vague > VAGUE:
        return Branch(
            "fallback",
            f"the share of an outcome that is approved is known to within {vague:.0%} of itself "
            f"only, where {VAGUE:.0%} is the most allowed: too few past approved people",
        )
    least = smaller * (1.0 - COARSE)  # the true smaller weight, as far as the coarse look knows
    target = constants.epsilon * least / (12.0 * constants.z)
    ahead = foresee_weight(fits, coarse[1] / (coarse[0] + coarse[1]), seed=seed)
    enough = ahead.theta_error <= ROOM * target
    needed = 1.1 * ahead.features_needed(target) if enough else math.inf
    if math.isfinite(needed) and (needed <= paper or weights == "likelihood"):
        why = f"the weight's standard error will be within {target:.2g}"
        return Branch("likelihood", why, max(math.ceil(needed), FEWEST))
    if math.isfinite(needed):
        many = f"a likelihood weight would take {needed:,.0f} feature vectors"
    else:
        most = ROOM * target
        many = (
            f"the laws' uncertainty alone puts a standard error of {ahead.theta_error:.2g} on the "
            f"weight, where {most:.2g} is the most allowed (about "
            f"{(ahead.theta_error / most) ** 2:.2g} times as many past approved people would do)"
        )
    if weights == "likelihood":
        return Branch("fallback", many)
    bound = map_error_bound(fits, coarse[1] / coarse[0], level=constants.level, seed=seed)
    limit = constants.epsilon * least / 36.0
    if bound <= limit:
        why = f"the MAP oracle errs at most {bound:.2g}, within epsilon q_m/36 = {limit:.2g}"
        return Branch("map", why, paper)
    if math.isfinite(needed):
        return Branch("likelihood", many, math.ceil(needed))
    return Branch(
        "fallback",
        f"{many}, and the MAP oracle may err {bound:.2g}, above epsilon q_m/36 = {limit:.2g}",
    )
