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

from equipoise._arrays import Array
from equipoise.display import format_number
from equipoise.errors import InvalidInput
from equipoise.history.past import Past
from equipoise.mixture.families import Family
from equipoise.mixture.likelihood_weights import (
    Pair,
    Weight,
    likelihood_weight,
    slopes_in_theta,
    theta_error,
)
from equipoise.mixture.map_weights import FeatureCounts, Labelled
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.trunc_est import StructuralConstants, separation_needed
from equipoise.mixture.truncated_fit import TruncatedFit

FALSE_ALARM_PROBABILITY = 0.01  # of all self-checks together


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
    family = model.of(group)[0].family
    constants, alpha = _supported_constants(model, group)
    problems = []
    if alpha <= 0.0:
        problems.append("P[f=1 | Y=y] >= alpha > 0: an acceptance is not known to be above 0")
    if family.discrete:
        problems.append(
            f"log-concavity is about densities: for the {family.name} family TruncEst is not proved"
        )
    separation = measure_separation(model, group, epsilon=epsilon, q=q, constants=constants)
    if not separation.is_met:
        problems.append(f"separation: {separation}")
    return constants, tuple(problems)


@dataclass(frozen=True)
class LawSeparation:
    """How far apart a group's laws are, and how far condition (1) of the paper wants them.

    Examples
    --------
    >>> separation = LawSeparation(distance=3.5, needed=27.9)
    >>> separation.is_met, str(separation)
    (False, '|theta_1 - theta_0| is 3.5, below 27.9')
    """

    distance: float
    needed: float

    @property
    def is_met(self) -> bool:
        """Whether the laws are far enough apart."""
        return self.distance >= self.needed

    def __str__(self) -> str:
        side = "at least" if self.is_met else "below"
        distance = format_number(self.distance, 3)
        return f"|theta_1 - theta_0| is {distance}, {side} {format_number(self.needed, 3)}"


def measure_separation(
    model: MixtureModel,
    group: Hashable,
    *,
    epsilon: float,
    q: float,
    constants: StructuralConstants | None = None,
) -> LawSeparation:
    """Hold a group's estimated laws against the separation condition, as the paper's remark says.

    The condition is Assumption 2, equation (1), with the estimated theta and a rough ``q``.

    Parameters
    ----------
    epsilon, q
        The question's epsilon and the group's rough ``P[Y=1]``.
    constants
        L, beta, kappa and lambda. If they are left out, the constants that
        :func:`check_assumptions` finds for the group's fits are used.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian([[1.0]]), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m]), cut) for m in (0.0, 4.0))
    >>> print(measure_separation(MixtureModel({"A": laws}), "A", epsilon=0.1, q=0.3))
    |theta_1 - theta_0| is 4, below 5.73
    """
    law_zero, law_one = model.of(group)
    if constants is None:
        constants, _ = _supported_constants(model, group)
    distance = float(np.linalg.norm(law_one.theta - law_zero.theta))
    return LawSeparation(distance, separation_needed(constants, epsilon=epsilon, q=q))


def _supported_constants(model: MixtureModel, group: Hashable) -> tuple[StructuralConstants, float]:
    """Return the constants that a group's fits support, and alpha before it is cut off at 0."""
    law_zero, law_one = model.of(group)
    family = law_zero.family
    if family != law_one.family:
        raise InvalidInput(f"the laws of group {group!r} are of two families; take one")
    thetas = np.stack([law_zero.theta, law_one.theta])
    beta = _mildest_beta(family, thetas)
    kappa, lam, lipschitz = family.curvature(thetas, 1.0 / beta)
    alpha = min(fit.acceptance - 2.0 * fit.acceptance_error for fit in (law_zero, law_one))
    constants = StructuralConstants(
        kappa=min(kappa, 1.0),
        lam=lam,
        lipschitz=max(lipschitz, 1.0),
        alpha=max(alpha, 0.0),
        beta=beta,
        degree=family.degree,
    )
    return constants, alpha


def _mildest_beta(family: Family, thetas: Array) -> float:
    """Return the beta of the mildest separation condition: L of a Theta with balls of radius 1.

    Where such balls leave the family their radius is halved until they do not.
    """
    radius = 1.0
    while True:
        try:
            _, _, lipschitz = family.curvature(thetas, radius)
        except InvalidInput:
            radius /= 2.0
        else:
            return max(1.0 / radius, lipschitz)


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
        state = "holds" if self.passed else "FAILS"
        return f"{self.what}: off by {self.residual:+.4f} ± {self.standard_error:.4f}, {state}"


def _moved_acceptance(fit: TruncatedFit, z: float) -> float:
    """Return the acceptance ``z`` standard errors away on the logit scale."""
    if fit.acceptance_error == 0.0:
        return float(np.clip(fit.acceptance, 1e-9, 1.0))
    alpha = float(np.clip(fit.acceptance, 1e-9, 1.0 - 1e-9))
    logit_error = fit.acceptance_error / (alpha * (1 - alpha))
    return max(float(expit(logit(alpha) + z * logit_error)), 1e-9)


@dataclass
class ModelChecks:
    """The self-checks of a model on one history, in the order in which they are made.

    A relative deviation too small to change the verdict (``epsilon/36`` before features are bought,
    ``epsilon/12`` after) passes however significant it is.
    """

    model: MixtureModel
    history: Past
    epsilon: float
    self_checks: list[SelfCheck] = field(default_factory=list)

    def __post_init__(self) -> None:
        # per group one free check, one on the labelled people, four on features: two-sided
        n_tails = 12 * len(self.history.cells)
        self._z = float(ndtri(1.0 - FALSE_ALARM_PROBABILITY / n_tails))

    @property
    def broken(self) -> str | None:
        """Why the model is not to be believed, None if nothing speaks against it."""
        for group, pair in self.model.fits.items():
            for outcome, fit in enumerate(pair):
                if fit.plainly_wrong:
                    why = "; ".join(fit.warnings)
                    return f"the law of group {group!r}, outcome {outcome}, does not fit: {why}"
        for check in self.self_checks:
            if not check.passed:
                return f"the model contradicts itself ({check})"
        return None

    def check_for_free(self) -> None:
        """Check the first equation on the past's counts, on the log scale: no online data.

        An acceptance is moved by its error on the logit scale, towards what would make the equation
        hold: at the estimate, the error of one that is far too large would look far too small.
        """
        for group, counts in self.history.cells.items():
            # Acceptances are clipped, so that a quotient by a tiny one stays a number.
            fits = self.model.of(group)
            shares = np.maximum([counts.shares[1], counts.shares[0]], 1e-300)  # P[f=1, Y=0], Y=1
            terms = shares / [np.clip(fit.acceptance, 1e-9, 1.0) for fit in fits]
            log_total = float(np.log(terms.sum()))
            z = self._z if log_total > 0.0 else -self._z
            moved_terms = shares / [_moved_acceptance(fit, z) for fit in fits]
            laws_error = float(np.log(moved_terms.sum() / terms.sum())) / self._z
            counting_error = 0.0
            if not self.history.exact:  # the two counts are one multinomial sample
                spread = float((terms**2 / shares).sum() / terms.sum() ** 2) - 1.0
                counting_error = float(np.sqrt(max(spread, 0.0) / counts.total))
            equation = f"P[f=1,Y=y]/P_theta[f=1] of group {group!r} add up to 1"
            self._add(equation, log_total, float(np.hypot(laws_error, counting_error)), part=36.0)

    def check_people(self, group: str, people: Labelled) -> None:
        """Check the likelihood weight of labelled people against their own labels.

        These share chance: the share of ones is the estimate that knows all, so what the weight is
        off by has the weight's variance less that of the share.
        """
        weight = likelihood_weight(people.features, self.model.of(group))
        share = float(people.outcome.mean())
        smaller = min(share, 1.0 - share)
        share_variance = share * (1.0 - share) / weight.size
        excess_variance = max(weight.sampling_error**2 - share_variance, 0.0)
        error = float(np.hypot(np.sqrt(excess_variance), weight.theta_error)) / smaller
        equation = f"features of labelled people of group {group!r} tell their outcomes"
        self._add(equation, (weight.estimate - share) / smaller, error)

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
        q = float(np.clip(weight.estimate, 1e-9, 1.0 - 1e-9))
        outcome_shares = (1.0 - q, q)
        self._check_against_past(group, counts, weight, outcome_shares)
        for outcome, coarse_share in enumerate(coarse):
            share = outcome_shares[outcome]
            counting_error = float(np.sqrt((1.0 - min(share, coarse_share)) / tau))
            error = float(np.hypot(counting_error, weight.standard_error / share))
            equation = f"q from features = q from labels of group {group!r}, outcome {outcome}"
            self._add(equation, float(np.log(share / coarse_share)), error)

    def _check_against_past(
        self,
        group: str,
        counts: FeatureCounts,
        weight: Weight,
        outcome_shares: tuple[float, float],
    ) -> None:
        """Check ``q_y P_theta_y[f=1] = P[f=1, Y=y]`` for both outcomes."""
        group_counts = self.history.cells[group]
        slopes = slopes_in_theta(counts.first_vectors, counts.fits, outcome_shares[1])
        for outcome, fit in enumerate(counts.fits):
            share = outcome_shares[outcome]
            past_share = group_counts.shares[1 - outcome]  # shares are (p1, p0, s): outcome 1 first
            acceptance = max(fit.acceptance, 1e-9)
            residual = float(np.log(share * acceptance / past_share))
            past_error = 0.0
            if not self.history.exact:
                past_error = float(np.sqrt(1.0 / (past_share * group_counts.total)))
            laws_error = self._laws_error(counts.fits, slopes, outcome, share)
            if fit.acceptance_error > 0.0:  # as in the first check
                z = -self._z if residual > 0.0 else self._z
                log_reach = abs(float(np.log(_moved_acceptance(fit, z) / acceptance)))
                first_order_reach = self._z * fit.acceptance_error / fit.acceptance
                laws_error *= max(1.0, log_reach / first_order_reach)
            error = float(np.linalg.norm([laws_error, past_error, weight.sampling_error / share]))
            equation = f"q P_theta[f=1] = P[f=1,Y] of group {group!r}, outcome {outcome}"
            self._add(equation, residual, error)

    def _laws_error(
        self, fits: Pair, slopes: tuple[Array, Array], outcome: int, share: float
    ) -> float:
        """Return the standard error of ``log(q_y P_theta_y[f=1])`` that the laws bring."""
        sign = 1.0 if outcome else -1.0  # the share of outcome 0 falls where that of 1 rises
        # Both laws move the weight q_y; the law of this outcome moves its acceptance as well.
        gradients = [slope * sign / share for slope in slopes]
        fit = fits[outcome]
        gradients[outcome] = gradients[outcome] + fit.acceptance_gradient / fit.acceptance
        return theta_error((gradients[0], gradients[1]), fits)

    def _add(self, equation: str, residual: float, error: float, part: float = 12.0) -> None:
        # Within chance, or too small to change the verdict.
        passed = abs(residual) <= self._z * error + self.epsilon / part
        self.self_checks.append(SelfCheck(equation, residual, error, passed))
