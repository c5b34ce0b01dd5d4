"""What speaks against a mixture model: its assumptions, and equations that a right one fulfils.

Two equations hold if the laws are right also where nobody was approved, and cost nothing to check:
``sum over y of P[f=1, Y=y] / P_theta_y[f=1] = 1`` before any features are bought, and
``q_y P_theta_y[f=1] = P[f=1, Y=y]`` for both outcomes after. Neither sees denied people whose
outcomes are not what their features say. The labels behind the coarse weights do, above all where
the same people's features are known: the weight from these features must be the labels' share of 1.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, logit, ndtri

from equipoise.errors import InvalidInput
from equipoise.history.past import Past
from equipoise.mixture.likelihood_weights import (
    Weight,
    likelihood_weight,
    slopes_in_theta,
    theta_error,
)
from equipoise.mixture.map_weights import FeatureCounts, Labelled
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.trunc_est import StructuralConstants, separation_needed
from equipoise.mixture.truncated_fit import TruncatedFit

FALSE_ALARM = 0.01  # of all self-checks together


def check_assumptions(
    model: MixtureModel, group: Hashable, *, epsilon: float, q: float
) -> tuple[StructuralConstants, tuple[str, ...]]:
    """Say which constants of Assumption 1 a group's fits support, and whether they are separated.

    Returns the constants, ``alpha`` being the smaller acceptance less two standard errors, and
    what is not met or not proved of Assumptions 1 and 2, one line each: nothing if both hold.

    Theta is taken as small as possible: the convex hull of balls of radius ``1/beta`` around both
    estimates. ``beta`` is that with which the separation condition is mildest: L of the Theta for
    ``beta = 1``, or more where such balls leave the family. The constants are those of the fits;
    they cannot show that the family is right.

    Parameters
    ----------
    epsilon, q
        The question's epsilon and the group's rough ``P[Y=1]``, for the separation condition.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian([[1.0]]), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m]), cut) for m in (0.0, 7.0))
    >>> constants, problems = check_assumptions(MixtureModel({"A": laws}), "A", epsilon=0.1, q=0.3)
    >>> constants.alpha, constants.beta, constants.lipschitz, problems
    (0.5, 8.0, 7.125, ())
    """
    zero, one = fits = model.of(group)
    family = zero.family
    if family != one.family:
        raise InvalidInput(f"the laws of group {group!r} are of two families; take one")
    thetas, beta, radius = np.stack([zero.theta, one.theta]), 0.0, 1.0
    while beta == 0.0:
        try:
            beta = max(1.0 / radius, family.curvature(thetas, radius)[2])
        except InvalidInput:  # such balls leave the family
            radius /= 2.0
    kappa, lam, lipschitz = family.curvature(thetas, 1.0 / beta)
    alpha = min(fit.acceptance - 2.0 * fit.acceptance_error for fit in fits)
    constants = StructuralConstants(
        *(min(kappa, 1.0), lam, max(lipschitz, 1.0), max(alpha, 0.0), beta, family.degree)
    )
    distance = float(np.linalg.norm(one.theta - zero.theta))
    needed = separation_needed(constants, epsilon=epsilon, q=q)
    doubts = {
        "P[f=1 | Y=y] >= alpha > 0: an acceptance is not known to be above 0": alpha <= 0.0,
        "log-concavity is about densities: "
        f"for the {family.name} family TruncEst is not proved": family.discrete,
        f"separation: |theta_1 - theta_0| is {distance:.3g}, below {needed:.3g}": distance < needed,
    }
    return constants, tuple(words for words, doubtful in doubts.items() if doubtful)


@dataclass(frozen=True)
class SelfCheck:
    """Whether quantities that the model makes equal are equal: ``residual`` should be 0.

    It ``passed`` if the residual is within chance, or too small to matter.

    Examples
    --------
    >>> print(SelfCheck("shares add up to 1", 0.03, 0.01, passed=False))
    shares add up to 1: off by +0.0300 ± 0.0100, FAILS
    """

    what: str
    residual: float
    standard_error: float
    passed: bool

    def __str__(self) -> str:
        word = "holds" if self.passed else "FAILS"
        return f"{self.what}: off by {self.residual:+.4f} ± {self.standard_error:.4f}, {word}"


def _moved_acceptance(fit: TruncatedFit, z: float) -> float:
    """Return the acceptance ``z`` standard errors away on the logit scale."""
    if fit.acceptance_error == 0.0:
        return float(np.clip(fit.acceptance, 1e-9, 1.0))
    alpha = float(np.clip(fit.acceptance, 1e-9, 1.0 - 1e-9))
    return max(float(expit(logit(alpha) + z * fit.acceptance_error / (alpha * (1 - alpha)))), 1e-9)


@dataclass
class ModelChecks:
    """The self-checks of a model on one history, in the order in which they are made.

    A relative deviation too small to change the verdict (``epsilon/36`` before features are bought,
    ``epsilon/12`` after) passes however significant it is.
    """

    model: MixtureModel
    history: Past
    epsilon: float
    made: list[SelfCheck] = field(default_factory=list)

    def __post_init__(self) -> None:
        # per group one free check, one on the labelled people, four on features: two-sided
        self._z = float(ndtri(1.0 - FALSE_ALARM / (12 * len(self.history.cells))))

    @property
    def broken(self) -> str | None:
        """Why the model is not to be believed, None if nothing speaks against it."""
        for group, pair in self.model.fits.items():
            for outcome, fit in enumerate(pair):
                if fit.plainly_wrong:
                    why = "; ".join(fit.warnings)
                    return f"the law of group {group!r}, outcome {outcome}, does not fit: {why}"
        failed = [c for c in self.made if not c.passed]
        return f"the model contradicts itself ({failed[0]})" if failed else None

    def check_for_free(self) -> None:
        """Check the first equation on the past's counts, on the log scale: no online data.

        An acceptance is moved by its error on the logit scale, towards what would make the equation
        hold: at the estimate, the error of one that is far too large would look far too small.
        """
        for group, cells in self.history.cells.items():
            fits = self.model.of(group)
            p = np.maximum([cells.shares[1], cells.shares[0]], 1e-300)
            terms = p / [np.clip(fit.acceptance, 1e-9, 1.0) for fit in fits]
            total = float(np.log(terms.sum()))
            z = self._z if total > 0.0 else -self._z
            moved = p / [_moved_acceptance(fit, z) for fit in fits]
            error = float(np.log(moved.sum() / terms.sum())) / self._z
            counting = 0.0
            if not self.history.exact:  # the two counts are one multinomial sample
                spread = float((terms**2 / p).sum() / terms.sum() ** 2) - 1.0
                counting = float(np.sqrt(max(spread, 0.0) / cells.total))
            what = f"P[f=1,Y=y]/P_theta[f=1] of group {group!r} add up to 1"
            self._add(what, total, float(np.hypot(error, counting)), part=36.0)

    def check_people(self, group: str, people: Labelled) -> None:
        """Check the likelihood weight of labelled people against their own labels.

        These share chance: the share of ones is the estimate that knows all, so what the weight is
        off by has the weight's variance less that of the share.
        """
        weight = likelihood_weight(people.features, self.model.of(group))
        share = float(people.outcome.mean())
        smaller = min(share, 1.0 - share)
        beyond = max(weight.sampling_error**2 - share * (1.0 - share) / weight.size, 0.0)
        error = float(np.hypot(np.sqrt(beyond), weight.theta_error)) / smaller
        what = f"features of labelled people of group {group!r} tell their outcomes"
        self._add(what, (weight.estimate - share) / smaller, error)

    def check_weight(
        self,
        group: str,
        counts: FeatureCounts,
        weight: Weight,
        coarse: tuple[float, float],
        tau: int,
    ) -> None:
        """Check a group's weight against the past (second equation) and against the coarse weights.

        Both on the log scale: an estimated acceptance errs by a factor, and upwards further than
        downwards. The coarse weights rest on tau labels each.
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
            z = -self._z if residual > 0.0 else self._z
            if fit.acceptance_error > 0.0:  # as in the first check
                reach = abs(float(np.log(_moved_acceptance(fit, z) / max(fit.acceptance, 1e-9))))
                laws *= max(1.0, reach * fit.acceptance / (self._z * fit.acceptance_error))
            error = float(np.linalg.norm([laws, past, weight.sampling_error / here]))
            what = f"q P_theta[f=1] = P[f=1,Y] of group {group!r}, outcome {y}"
            self._add(what, residual, error)
        for y, counted in enumerate(coarse):
            here = (1.0 - q, q)[y]
            counting = float(np.sqrt((1.0 - min(here, counted)) / tau))
            error = float(np.hypot(counting, weight.standard_error / here))
            what = f"q from features = q from labels of group {group!r}, outcome {y}"
            self._add(what, float(np.log(here / counted)), error)

    def _add(self, what: str, residual: float, error: float, part: float = 12.0) -> None:
        passed = abs(residual) <= self._z * error + self.epsilon / part
        self.made.append(SelfCheck(what, residual, error, passed))
