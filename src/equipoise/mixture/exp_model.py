"""Exp-Audit's constants, its ways from features to weights, and whether its model is believed.

The proof needs weights within ``epsilon q_m / 12``. MAP counts are valid if the labelled people
behind the coarse weights show their bias to within three quarters of that; it is taken off, and so
many features are bought that chance stays within the rest. This holds whatever the laws are.
Likelihood weights are valid if their error, the laws' uncertainty included, will be small enough.

Two equations hold if the laws are right where nobody was approved, and cost nothing to check:
``sum over y of P[f=1, Y=y] / P_theta_y[f=1] = 1`` before any features are bought, and
``q_y P_theta_y[f=1] = P[f=1, Y=y]`` for both outcomes after. Both are blind to denied people whose
outcomes are not what their features say; the labels behind the coarse weights are not, above all
where the same people's features are known: the weight that these give must be their share of ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit, ndtri

from equipoise.cells import GroupCells
from equipoise.history.past import Past
from equipoise.levels import exp_event_level
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.truncated import TruncatedFit
from equipoise.mixture.weights import (
    COARSE,
    FeatureCounts,
    Labelled,
    Pair,
    Weight,
    foresee_weight,
    likelihood_weight,
    map_bias,
    slopes_in_theta,
    theta_error,
)

FALSE_ALARM = 0.01  # of all self-checks together
FEWEST = 1000  # features, for the normal approximation
MOST = 1e10  # features: there are no more people
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
        return -math.log(self.level)

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

    def printed_features(self, smaller: float) -> int:
        """R as Algorithm 2 prints it, with ``log(12K/delta)``.

        3430 is nearly three times what the Chernoff step needs, so this too errs within delta.
        """
        log_term = math.log(12.0 * self.groups / self.delta)
        return math.ceil(3430.0 * log_term / (smaller * self.epsilon**2))

    @property
    def level(self) -> float:
        """The share ``delta/(14 K)`` that one event of the proof may fail with."""
        return exp_event_level(self.delta, self.groups)

    @property
    def z(self) -> float:
        """Normal quantile of a weight's error: the proof leaves it 6 of the 14 shares."""
        return float(ndtri(1.0 - 3.0 * self.level))


@dataclass(frozen=True)
class Branch:
    """The way for one group: "map", "likelihood" or "fallback", why, and the features it takes.

    ``bias`` is taken off MAP counts; it may be off by ``error``.
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
    """Choose for one group from the laws and the coarse weights of outcome 0 and 1.

    "auto": of the valid ways the one with fewer features. "map" and "likelihood": that way where
    it is valid, else the other. Where neither is, labels. "published": MAP counts, untested.
    ``labelled`` are the people behind the coarse weights, if their features are known.
    """
    if weights == "published":
        features, error = constants.printed_features(min(coarse)), constants.epsilon * min(coarse)
        why = "as published: separation was not tested"
        return Branch("map", why, features, error=error / 36.0)
    likelihood = _likelihood_branch(fits, coarse, constants)
    if weights == "likelihood" and likelihood.features:
        return likelihood
    counted = _map_branch(fits, coarse, constants, labelled)
    if counted.features and not (weights == "auto" and 0 < likelihood.features <= counted.features):
        return counted
    joint = "so likelihood weights: " if likelihood.features else "and "
    doubt = "" if counted.features else f"{counted.why}, {joint}"
    return replace(likelihood, why=f"{doubt}{likelihood.why}")


def _map_branch(
    fits: Pair, coarse: tuple[float, float], constants: ExpConstants, labelled: Labelled | None
) -> Branch:
    """Return MAP counts with their bias and the features they take, or why they are not valid."""
    if labelled is None:
        return Branch(
            "fallback", "labels came without features, which would show how MAP counts err"
        )
    bias, error = map_bias(fits, coarse, labelled, level=constants.level)
    allowed = constants.epsilon * _least(coarse) / 12.0
    shown = f"the labels show the bias of MAP counts, {bias:+.2g}, to within {error:.2g}"
    if error > 0.75 * allowed:
        return Branch("fallback", f"{shown} only, where {0.75 * allowed:.2g} is the most allowed")
    # Bernstein's inequality; the rarer outcome is counted with probability at most ``rarer``
    left, rarer = allowed - error, (1.0 + COARSE) * min(coarse) + abs(bias) + error
    log_term = constants.log_term + math.log(2.0)
    features = math.ceil(2.0 * log_term * (rarer + left / 3.0) / left**2)
    return Branch("map", f"{shown}, and it is taken off", features, bias, error)


def _least(coarse: tuple[float, float]) -> float:
    """Return the true smaller weight, as far as the coarse look knows."""
    return min(coarse) * (1.0 - COARSE)


def _likelihood_branch(fits: Pair, coarse: tuple[float, float], constants: ExpConstants) -> Branch:
    """Return likelihood weights with the features they take, or why they cannot be had.

    They need laws whose errors are normal ones, so acceptances that are not vague; MAP counts do
    not use acceptances.
    """
    vague = max(fit.acceptance_error / max(fit.acceptance, 1e-300) for fit in fits)
    if vague > VAGUE:
        return Branch(
            "fallback",
            f"the share of an outcome that is approved is known to within {vague:.0%} of itself "
            f"only, where {VAGUE:.0%} is the most allowed: too few past approved people",
        )
    target = constants.epsilon * _least(coarse) / (12.0 * constants.z)
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


@dataclass(frozen=True)
class SelfCheck:
    """Whether quantities that the model makes equal are equal: ``residual`` should be 0.

    A residual passes within chance (a false alarm has probability ``level``), or if it is too
    small to matter (``slack``).

    Examples
    --------
    >>> print(SelfCheck("shares add up to 1", 0.03, 0.01, slack=0.0, level=0.05))
    shares add up to 1: off by +0.0300 ± 0.0100, FAILS
    """

    what: str
    residual: float
    standard_error: float
    slack: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the residual is within chance or slack."""
        reach = float(ndtri(1.0 - self.level / 2.0)) * self.standard_error
        return abs(self.residual) <= reach + self.slack

    def __str__(self) -> str:
        word = "holds" if self.passed else "FAILS"
        return f"{self.what}: off by {self.residual:+.4f} ± {self.standard_error:.4f}, {word}"


def laws_add_up(
    model: MixtureModel, group: str, cells: GroupCells, *, exact: bool, level: float, slack: float
) -> SelfCheck:
    """Check the first equation on a group's past counts, ``exact`` if they are the population.

    On the log scale. An acceptance is moved by its error on the logit scale, towards what would
    make the equation hold: taken where it is estimated, the error of one that is far too large
    would look far too small.
    """
    fits = model.of(group)
    p = np.maximum([cells.shares[1], cells.shares[0]], 1e-300)
    terms = p / [np.clip(fit.acceptance, 1e-9, 1.0) for fit in fits]
    total = float(np.log(terms.sum()))
    z = float(ndtri(1.0 - level / 2.0)) * (1.0 if total > 0.0 else -1.0)
    moved = p / [_moved_acceptance(fit, z) for fit in fits]
    error = abs(float(np.log(moved.sum() / terms.sum()))) / abs(z)
    counting = 0.0
    if not exact:  # the two counts are one multinomial sample
        spread = float((terms**2 / p).sum() / terms.sum() ** 2) - 1.0
        counting = float(np.sqrt(max(spread, 0.0) / cells.total))
    what = f"P[f=1,Y=y]/P_theta[f=1] of group {group!r} add up to 1"
    return SelfCheck(what, total, float(np.hypot(error, counting)), slack, level)


def _moved_acceptance(fit: TruncatedFit, z: float) -> float:
    """Return the acceptance ``z`` standard errors away on the logit scale."""
    if fit.acceptance_error == 0.0:
        return float(np.clip(fit.acceptance, 1e-9, 1.0))
    alpha = float(np.clip(fit.acceptance, 1e-9, 1.0 - 1e-9))
    return max(float(expit(logit(alpha) + z * fit.acceptance_error / (alpha * (1 - alpha)))), 1e-9)


class ModelChecks:
    """The self-checks of a model on one history, as they are made.

    Deviations that could not change the verdict (``epsilon/36`` before, ``epsilon/12`` after
    features, relative) pass whatever their significance.
    """

    def __init__(self, model: MixtureModel, history: Past, epsilon: float) -> None:
        self.model = model
        self.history = history
        self.epsilon = epsilon
        self.made: list[SelfCheck] = []
        # per group one free check, one on the labelled people, four on features
        self._level = FALSE_ALARM / (6 * len(history.cells))

    @property
    def missing(self) -> str | None:
        """Why there is no model to speak of, None if there is."""
        for group in self.history.cells:
            if group not in self.model.fits:
                why = self.model.problems.get(group, "nobody of it whom the fit saw was approved")
                return f"there is no model of group {group!r}: {why}"
        return None

    @property
    def broken(self) -> str | None:
        """Why the model is not to be believed, None if nothing speaks against it."""
        for group, pair in self.model.fits.items():
            for outcome, fit in enumerate(pair):
                if fit.diagnostics.plainly_wrong:
                    why = "; ".join(fit.diagnostics.warnings)
                    return f"the law of group {group!r}, outcome {outcome}, does not fit: {why}"
        failed = [c for c in self.made if not c.passed]
        return f"the model contradicts itself ({failed[0]})" if failed else None

    def check_for_free(self) -> None:
        """Check what needs no online data."""
        slack, exact = self.epsilon / 36.0, self.history.exact
        self.made += [
            laws_add_up(self.model, group, cells, exact=exact, level=self._level, slack=slack)
            for group, cells in self.history.cells.items()
        ]

    def check_people(self, group: str, people: Labelled) -> None:
        """Check the likelihood weight of labelled people against their own labels.

        These share chance: the share of ones is the estimate that knows all, so what the weight is
        off by has the weight's variance less that of the share.
        """
        weight = likelihood_weight(people.features, self.model.of(group))
        share = float(people.outcome.mean())
        smaller, beyond = min(share, 1.0 - share), weight.sampling_error**2
        beyond = max(beyond - share * (1.0 - share) / weight.size, 0.0)
        error = float(np.hypot(np.sqrt(beyond), weight.theta_error)) / smaller
        what = f"features of labelled people of group {group!r} tell their outcomes"
        residual = (weight.estimate - share) / smaller
        self.made.append(SelfCheck(what, residual, error, self.epsilon / 12.0, self._level))

    def check_weight(self, group: str, counts: FeatureCounts, weight: Weight) -> None:
        """Check a group's weight against the past: the second equation, on the log scale.

        An estimated acceptance errs by a factor, and upwards further than downwards.
        """
        cells, fits = self.history.cells[group], counts.fits
        q = float(np.clip(weight.estimate, 1e-9, 1.0 - 1e-9))
        slopes = slopes_in_theta(counts.some, fits, q)
        for y, fit in enumerate(fits):
            p, here = cells.shares[1 - y], (1.0 - q, q)[y]
            moves = [slope * (1.0 if y else -1.0) / here for slope in slopes]
            moves[y] = moves[y] + fit.acceptance_gradient / fit.acceptance
            past = 0.0 if self.history.exact else float(np.sqrt(1.0 / (p * cells.total)))
            laws = theta_error((moves[0], moves[1]), fits)
            residual = float(np.log(here * max(fit.acceptance, 1e-9) / p))
            z = float(ndtri(1.0 - self._level / 2.0)) * (-1.0 if residual > 0.0 else 1.0)
            if fit.acceptance_error > 0.0:  # as in the first check
                reach = abs(float(np.log(_moved_acceptance(fit, z) / max(fit.acceptance, 1e-9))))
                laws *= max(1.0, reach * fit.acceptance / (abs(z) * fit.acceptance_error))
            error = float(np.linalg.norm([laws, past, weight.sampling_error / here]))
            what = f"q P_theta[f=1] = P[f=1,Y] of group {group!r}, outcome {y}"
            self.made.append(SelfCheck(what, residual, error, self.epsilon / 12.0, self._level))

    def check_labels(
        self, group: str, weight: Weight, coarse: tuple[float, float], tau: int
    ) -> None:
        """Check a group's weight against the coarse weights, which rest on tau labels each."""
        for y, counted in enumerate(coarse):
            here = max((1.0 - weight.estimate, weight.estimate)[y], 1e-9)
            counting = float(np.sqrt((1.0 - min(here, counted)) / tau))
            residual = float(np.log(here / counted))
            error = float(np.hypot(counting, weight.standard_error / here))
            what = f"q from features = q from labels of group {group!r}, outcome {y}"
            self.made.append(SelfCheck(what, residual, error, self.epsilon / 12.0, self._level))
