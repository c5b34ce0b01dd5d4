"""The mixture model of every group: the laws of both outcomes, and what speaks against them.

Two equations hold if the laws are right also where nobody was approved, and cost nothing to check:
``sum over y of P[f=1, Y=y] / P_theta_y[f=1] = 1`` before any features are bought, and
``q_y P_theta_y[f=1] = P[f=1, Y=y]`` for both outcomes after. Neither sees denied people whose
outcomes are not what their features say. The labels behind the coarse weights do, above all where
the same people's features are known: the weight from these features must be the labels' share of 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput, UnknownName, require_kind
from equipoise.history.past import Past
from equipoise.mixture.families import Family
from equipoise.mixture.rules import Accepts, Bits, LearntRule, apart, learn_rule
from equipoise.mixture.trunc_est import StructuralConstants, separation_needed, trunc_est
from equipoise.mixture.truncated import TruncatedFit, acceptance, fit_truncated, known_law
from equipoise.mixture.weights import (
    FeatureCounts,
    Labelled,
    Pair,
    Weight,
    likelihood_weight,
    slopes_in_theta,
    theta_error,
)

FALSE_ALARM = 0.01  # of all self-checks together

GroupAccepts: TypeAlias = Mapping[Any, Accepts] | Callable[[Array, Any], ArrayLike]
"""The decision-maker: a classifier per group, or one that is told the group."""
Column: TypeAlias = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """For every group the laws of outcome 0 and 1, estimated behind the decision-maker.

    Attributes
    ----------
    fits
        Group -> (law of outcome 0, law of outcome 1).
    problems
        Group -> why there is no model of it.
    rules
        Group -> what was learnt of a decision-maker that could not be asked, in words.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> [round(rate, 2) for rate in MixtureModel({"A": laws}).free_rates("A")]
    [0.5, 0.98]
    """

    fits: dict[str, Pair]
    problems: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)

    def of(self, group: Hashable) -> Pair:
        """Return a group's two laws."""
        group = str(group)
        if group not in self.fits:
            nobody = f"all approved people whom the fit saw are of {', '.join(self.fits) or 'none'}"
            why = self.problems.get(group, nobody)
            raise BadData(f"there is no model of group {group!r}: {why}")
        return self.fits[group]

    def free_rates(self, group: Hashable) -> tuple[float, float]:
        """Return ``P[f=1 | Y=0]`` and ``P[f=1 | Y=1]`` by the model: estimates at no online cost.

        They rest on the family being right where nobody was approved.
        """
        zero, one = self.of(group)
        return zero.acceptance, one.acceptance


@dataclass(frozen=True, eq=False)
class PastFeatures:
    """Features of past people, denied ones too: free to read (paper, section 2).

    A random half teaches the laws. The other half, which the fit did not see, holds approved and
    denied people in their natural proportion, so Exp-Audit can weigh outcomes by it at no cost; it
    buys features only beyond. Give it to a past: ``replace(history, model=past_features.model,
    features=past_features)``.

    Parameters
    ----------
    X, group, decision, outcome
        Past people of one period, one row each; ``outcome`` is read for approved people only.
    accepts
        The decision-maker: a mapping from group to a vectorised classifier, or a function of
        ``(X, group)``, which is given the group as it stands in ``group`` (a number stays one).
        Who cannot be asked but is known to follow a class of rules is named by it: "threshold"
        (approve from some value of one column on, or up to it) or "half_space" (approve on one
        side of a hyperplane).
    family
        The family of all laws, such as ``Gaussian("full")``.
    held_out
        The share of rows that the fit does not see; 0 if all features are to be bought, or if
        these are approved people only.
    seed
        Seed of the split and the fits.

    Where a class of rules is named, 30% of the rows that teach show where every rule of the class
    that agrees with their decisions approves. The laws are fitted to the other approved people
    inside that region, truncated to it exactly: if the class holds, so does the model.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace
    >>> rng = np.random.default_rng(0)
    >>> outcome = np.repeat([0, 1], 4_000)
    >>> X = rng.normal(np.where(outcome, 3.0, 0.0))[:, None]
    >>> approves = HalfSpace([1.0], offset=0.5)
    >>> group, family = np.full(len(X), "A"), Gaussian("spherical")
    >>> past = PastFeatures(X, group, approves(X), outcome, {"A": approves}, family)
    >>> past.unseen("A").shape, past.model.of("A")[1].size
    ((4038, 1), 1963)
    >>> replace(past, accepts="threshold").model.rules
    {'A': 'a threshold rule: unsure about 0.14% of people, 0 of 2,773 fresh decisions against it'}
    """

    X: ArrayLike
    group: ArrayLike
    decision: ArrayLike
    outcome: ArrayLike
    accepts: GroupAccepts | str
    family: Family
    held_out: float = 0.5
    seed: int = 0

    @cached_property
    def model(self) -> MixtureModel:
        """The laws, fitted to approved people of the half that teaches.

        A group whose data do not support a fit (too few people, singular …) is listed in
        ``problems`` of the model, with the reason.
        """
        return self._model(partial(fit_truncated, family=self.family, seed=self.seed))

    def published_model(
        self, epsilon: float, delta: float, constants: StructuralConstants, **steps: Any
    ) -> MixtureModel:
        """Return the laws by TruncEst as printed, one run for each group and outcome.

        ``epsilon`` and ``delta`` are those of one run; ``steps`` are ``n``, ``m`` and ``eta``.
        """

        def fit(X: Array, accepts: Accepts) -> TruncatedFit:
            problem = X, accepts, self.family, epsilon, delta, constants
            found = trunc_est(*problem, **{"seed": self.seed, **steps})
            if not found.settled:
                raise BadData(
                    "TruncEst has no answer: no candidate is within 2 epsilon of half of them; "
                    "take more or smaller steps ('m', 'eta')"
                )
            return known_law(self.family, found.theta, accepts)

        return self._model(fit)

    def unseen(self, group: Hashable) -> Array:
        """Return the features of a group's people whom the fit did not see, in random order."""
        points, names, _, _, taught = self._rows
        here = (names.astype(str) == str(group)) & ~taught
        return apart(self.seed, 2).permutation(points[here])

    def _model(self, fit: Callable[..., TruncatedFit]) -> MixtureModel:
        points, names, outcomes, approved, taught = self._rows
        model = MixtureModel({}, {}, {})
        for label in dict.fromkeys(names[taught & approved].tolist()):
            group, rows = str(label), taught & (names == label)
            try:
                if isinstance(self.accepts, str):
                    rule = learn_rule(points[rows], approved[rows], self.accepts, self.seed)
                    rows[rows] = rule.fresh
                    model.rules[group] = rule.words
                    law = partial(_law_inside, rule, fit)
                else:
                    law = partial(fit, accepts=accepts_of(self.accepts, label))
                zero, one = (law(points[rows & approved & (outcomes == y)]) for y in (0, 1))
                model.fits[group] = zero, one
            except BadData as error:
                model.problems[group] = str(error)
        return model

    @cached_property
    def _rows(self) -> tuple[Array, Column, Column, Bits, Bits]:
        """Return features, groups, outcomes and approvals, and who teaches the fit."""
        require_kind("family", self.family, Family, "a family such as Gaussian()")
        if not 0.0 <= self.held_out < 1.0:
            raise InvalidInput(f"'held_out' must be in [0, 1); got {self.held_out!r}")
        points = self.family.points(self.X)
        for name in ("group", "decision", "outcome"):
            values = np.asarray(getattr(self, name), dtype=object)
            if values.shape != (len(points),) or any(map(np.ndim, values[:1000])):
                raise InvalidInput(
                    f"{name!r} must hold one value, and no list, for each of the {len(points)} "
                    f"rows of 'X'; got an array of shape {values.shape}, or lists in it"
                )
        names, decision, outcomes = map(np.asarray, (self.group, self.decision, self.outcome))
        if not np.isin(decision, (0, 1)).all():
            raise InvalidInput("'decision' must be 0 or 1; leave out people not decided on")
        approved = decision == 1
        if not np.isin(outcomes[approved], (0, 1)).all():
            raise InvalidInput(
                "'outcome' must be 0 or 1 for everybody approved; leave out people of unknown "
                "outcome, as if they had never applied, if the reasons have nothing to do with it"
            )
        taught = apart(self.seed).random(len(points)) >= self.held_out
        return points, names, outcomes, approved, taught


def accepts_of(accepts: GroupAccepts, group: Hashable) -> Accepts:
    """Return the classifier as it decides on one group."""
    if isinstance(accepts, Mapping):
        found = accepts.get(group, accepts.get(str(group)))
        if found is None:
            raise UnknownName("group in 'accepts'", str(group), [str(g) for g in accepts])
        return found
    try:
        inspect.signature(accepts).bind(None, group)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"'accepts' must map groups to classifiers, or must take (X, group); {accepts!r} is "
            "not told the group. If the decision ignores it, pass lambda X, group: accepts(X)"
        ) from None
    return lambda X: accepts(X, group)


def _law_inside(rule: LearntRule, fit: Callable[..., TruncatedFit], X: Array) -> TruncatedFit:
    """Fit a law to the people whom a learnt rule approves for certain."""
    inside = X[rule.approves(X)]
    law = fit(inside, accepts=rule.approves)
    # P[f=1] = P_theta[sure] / P[sure | f=1], at most one minus what is denied for certain
    held = len(inside) / len(X)
    most = 1.0 - acceptance(law.family, law.theta, rule.denies)
    return replace(
        law,
        acceptance=min(law.acceptance / held, max(most, law.acceptance)),
        acceptance_gradient=law.acceptance_gradient / held,
    )


# -- what speaks against a model -------------------------------------------------------------------


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
