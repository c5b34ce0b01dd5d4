"""The mixture model of every group: the laws of both outcomes, and whether they fit together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import BadData, InvalidInput, UnknownName, plain_number, require_kind
from equipoise.mixture.families import Array, Family
from equipoise.mixture.rules import Accepts, Bits, LearnedRule, apart, learn_classifier
from equipoise.mixture.trunc_est import StructuralConstants, separation_needed, trunc_est
from equipoise.mixture.truncated import TruncatedFit, acceptance, fit_truncated, known_law
from equipoise.mixture.weights import Pair, same_base

GroupAccepts: TypeAlias = Mapping[Any, Accepts] | Callable[[Array, Any], ArrayLike]
"""The decision-maker: a classifier per group, or one that is told the group."""


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

    fits: Mapping[str, Pair]
    problems: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)

    def of(self, group: Hashable) -> Pair:
        """Return a group's two laws."""
        group = str(group)
        if group in self.problems:
            raise BadData(f"there is no model of group {group!r}: {self.problems[group]}")
        if group not in self.fits:
            raise UnknownName("group of the mixture model", group, self.fits)
        return self.fits[group]

    def free_rates(self, group: Hashable) -> tuple[float, float]:
        """Return ``P[f=1 | Y=0]`` and ``P[f=1 | Y=1]`` by the model: estimates at no online cost.

        They rest on the family being right where nobody was approved.
        """
        zero, one = self.of(group)
        return zero.acceptance, one.acceptance

    def __str__(self) -> str:
        laws = [
            f"group {group}, outcome {outcome}: {fit}"
            for group, pair in self.fits.items()
            for outcome, fit in enumerate(pair)
        ]
        none = [f"group {group}: no model, {why}" for group, why in self.problems.items()]
        return "\n".join(laws + none)


def fit_model(
    X: ArrayLike,
    group: ArrayLike,
    outcome: ArrayLike,
    accepts: GroupAccepts,
    family: Family,
    method: str = "auto",
    seed: int = 0,
) -> MixtureModel:
    """Fit both laws of every group to the features of past approved people.

    Parameters
    ----------
    X, group, outcome
        Features, group and outcome of the people who were approved, one row each.
    accepts
        The decision-maker: a mapping from group to a vectorised classifier, or a function of
        ``(X, group)``, which is given the group as it stands in ``group`` (a number stays one).
    family, method, seed
        As for :func:`fit_truncated`.

    A group whose data do not support a fit (too few people, singular …) is
    listed in ``problems`` of the result, with the reason.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace
    >>> rng = np.random.default_rng(0)
    >>> outcome = np.repeat([0, 1], 2_000)
    >>> X = rng.normal(np.where(outcome, 2.0, 0.0))[:, None]
    >>> approves = HalfSpace([1.0], offset=0.5)
    >>> past = approves(X)
    >>> groups = np.full(past.sum(), "A")
    >>> model = fit_model(X[past], groups, outcome[past], {"A": approves}, Gaussian("spherical"))
    >>> [bool(abs(law.mean[0] - truth) < 0.5) for law, truth in zip(model.of("A"), (0.0, 2.0))]
    [True, True]
    """
    points, (names, outcomes) = _columns(family, X, group=group, outcome=outcome)
    if not np.isin(outcomes, (0, 1)).all():
        raise InvalidInput("'outcome' must be 0 or 1; leave out people whose outcome is unknown")

    return _model(
        *(names, outcomes),
        lambda group, rows: fit_truncated(
            points[rows], accepts_of(accepts, group), family, method, seed
        ),
    )


def _model(
    names: NDArray[np.generic],
    outcomes: NDArray[np.generic],
    law: Callable[[Hashable, Bits], TruncatedFit],
) -> MixtureModel:
    """Return the model of all groups that have one, and why the others have none."""
    fits: dict[str, Pair] = {}
    problems: dict[str, str] = {}
    for label in dict.fromkeys(names.tolist()):
        try:
            zero, one = (law(label, (names == label) & (outcomes == y)) for y in (0, 1))
            fits[str(label)] = zero, one
        except BadData as error:
            problems[str(label)] = str(error)
    return MixtureModel(fits, problems)


def learn_model(
    X: ArrayLike,
    group: ArrayLike,
    decisions: ArrayLike,
    outcome: ArrayLike,
    rules: str,
    family: Family,
    *,
    seed: int = 0,
) -> MixtureModel:
    """Fit both laws of every group where the decision-maker cannot be asked.

    Part of the past teaches where every rule of the class approves
    (:func:`~equipoise.mixture.learn_classifier`); the laws are fitted to the other approved people
    inside that region, truncated to it exactly. If the class holds, so does the model.

    Parameters
    ----------
    X, group, decisions, outcome
        Past people, denied ones included; ``outcome`` is read for approved people only.
    rules
        The class: "threshold" or "half_space".

    Examples
    --------
    >>> from equipoise.mixture import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> outcome = np.repeat([0, 1], 4_000)
    >>> X = rng.normal(np.where(outcome, 2.0, 0.0))[:, None]
    >>> decisions, groups = (X[:, 0] >= 0.5).astype(int), np.full(len(X), "A")
    >>> model = learn_model(X, groups, decisions, outcome, "threshold", Gaussian("spherical"))
    >>> model.problems, sorted(model.fits)
    ({}, ['A'])
    """
    points, (names, outcomes, decided) = _columns(
        family, X, group=group, outcome=outcome, decisions=decisions
    )
    approved = decided == 1
    if not np.isin(outcomes[approved], (0, 1)).all():
        raise InvalidInput(
            "'outcome' must be 0 or 1 for everybody approved; leave out, as if they had never "
            "applied, people whose outcome is unknown for reasons that have nothing to do with it"
        )
    fresh = approved.copy()  # approved people who did not teach the rule
    learnt: dict[str, str] = {}

    @cache
    def learned(group: Hashable) -> LearnedRule:
        here = names == group
        rule = learn_classifier(points[here], approved[here], rules, seed=seed)
        if rule.contradictions:
            raise BadData(f"past decisions contradict the class of rules: {rule}")
        fresh[here] &= rule.fresh
        learnt[str(group)] = str(rule)
        return rule

    def law(group: Hashable, rows: Bits) -> TruncatedFit:
        rule = learned(group)
        here = points[rows & fresh]
        inside = here[rule.approves(here)]
        fit = fit_truncated(inside, rule.approves, family, seed=seed)
        # P[f=1] = P_theta[sure] / P[sure | f=1], at most one minus what is denied for certain
        held = len(inside) / len(here)
        most = 1.0 - acceptance(family, fit.theta, rule.denies)
        return replace(
            fit,
            acceptance=min(fit.acceptance / held, max(most, fit.acceptance)),
            acceptance_gradient=fit.acceptance_gradient / held,
        )

    return replace(_model(names, outcomes, law), rules=learnt)


def _columns(
    family: Family, X: ArrayLike, **columns: ArrayLike
) -> tuple[Array, list[NDArray[np.generic]]]:
    require_kind("family", family, Family, "a family such as Gaussian()")
    points = family.points(X)
    arrays = []
    for name, column in columns.items():
        values = np.asarray(column, dtype=object)
        if values.ndim != 1 or any(map(np.ndim, values[:1000])):
            raise InvalidInput(
                f"{name!r} must hold one value per person, and holds lists; take one entry of each"
            )
        if len(values) != len(points):
            raise InvalidInput(
                f"{name!r} must have one entry per row of 'X' ({len(points)}); got {len(values)}"
            )
        arrays.append(np.asarray(column))
        if name.startswith("decision") and not np.isin(arrays[-1], (0, 1)).all():
            raise InvalidInput(f"{name!r} must be 0 or 1; leave out people not decided on")
    return points, arrays


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


# -- a past with features ------------------------------------------------------------------------


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
    accepts, family
        As for :func:`fit_model`.
    held_out
        The share of rows that the fit does not see; 0 if all features are to be bought.
    seed
        Seed of the split and the fits.

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
    """

    X: ArrayLike
    group: ArrayLike
    decision: ArrayLike
    outcome: ArrayLike
    accepts: GroupAccepts
    family: Family
    held_out: float = 0.5
    seed: int = 0

    @cached_property
    def model(self) -> MixtureModel:
        """The laws, fitted to approved people of the half that teaches."""
        return fit_model(*self.approved, accepts=self.accepts, family=self.family, seed=self.seed)

    def unseen(self, group: Hashable) -> Array:
        """Return the features of a group's people whom the fit did not see, in random order."""
        points, (names, _, _), taught = self._rows
        here = np.array([str(name) == str(group) for name in names.tolist()]) & ~taught
        return apart(self.seed, 2).permutation(points[here])

    def learned_model(self, rules: str) -> MixtureModel:
        """Return the model if the decision-maker cannot be asked but follows a class of rules."""
        points, columns, taught = self._rows
        names, decided, outcomes = (column[taught] for column in columns)
        return learn_model(points[taught], names, decided, outcomes, rules, self.family)

    def published_model(
        self,
        epsilon: float,
        delta: float,
        constants: StructuralConstants,
        **steps: Any,
    ) -> MixtureModel:
        """Return the laws by TruncEst as printed, one run for each group and outcome.

        ``epsilon`` and ``delta`` are those of one run; ``steps`` are ``n``, ``m`` and ``eta``.
        """
        points, names, outcomes = self.approved

        def law(group: Hashable, rows: Bits) -> TruncatedFit:
            classifier = accepts_of(self.accepts, group)
            found = trunc_est(
                *(points[rows], classifier, self.family, epsilon, delta, constants),
                **{"seed": self.seed, **steps},
            )
            if not found.settled:
                raise BadData(
                    "TruncEst has no answer: no candidate is within 2 epsilon of half of them; "
                    "take more or smaller steps ('m', 'eta')"
                )
            return known_law(self.family, found.theta, classifier)

        return _model(names, outcomes, law)

    @cached_property
    def _rows(self) -> tuple[Array, list[NDArray[np.generic]], Bits]:
        """Return features, (group, decision, outcome), and who teaches the fit."""
        if not 0.0 <= self.held_out < 1.0:
            raise InvalidInput(f"'held_out' must be in [0, 1); got {self.held_out!r}")
        points, columns = _columns(
            *(self.family, self.X),
            group=self.group,
            decision=self.decision,
            outcome=self.outcome,
        )
        taught = apart(self.seed).random(len(points)) >= self.held_out
        return points, columns, taught

    @property
    def approved(self) -> tuple[Array, NDArray[np.generic], NDArray[np.generic]]:
        """Features, group and outcome of the approved people who teach the fit."""
        points, (names, decided, outcomes), taught = self._rows
        rows = taught & (decided == 1)
        return points[rows], names[rows], outcomes[rows]


# -- Assumption 1 --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AssumptionCheck:
    """Which constants of Assumptions 1 and 2 a group's fits support, and what they do not.

    Attributes
    ----------
    constants
        ``alpha``, the smaller acceptance less two standard errors; ``beta``; and the curvature on
        a Theta that holds balls of radius ``1/beta`` around both thetas.
    distance, needed
        ``|theta_1 - theta_0|`` and what the separation condition asks for.
    problems
        What is not met or not proved, one line each; empty if both assumptions are.

    Examples
    --------
    >>> constants = StructuralConstants(1.0, 4.0, 5.0, alpha=0.3, beta=5.0)
    >>> print(AssumptionCheck("A", constants, distance=6.0, needed=5.7))
    group A: alpha 0.3, beta 5, kappa 1, lambda 4, L 5; |theta_1 - theta_0| 6 of 5.7 needed
    """

    group: str
    constants: StructuralConstants
    distance: float
    needed: float
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        c = self.constants
        line = (
            f"group {self.group}: alpha {c.alpha:.3g}, beta {c.beta:.3g}, kappa {c.kappa:.3g}, "
            f"lambda {c.lam:.3g}, L {c.lipschitz:.3g}; |theta_1 - theta_0| {self.distance:.3g} of "
            f"{self.needed:.3g} needed"
        )
        return "\n".join([line, *(f"  not met: {problem}" for problem in self.problems)])


def check_assumptions(
    model: MixtureModel,
    group: Hashable,
    *,
    epsilon: float,
    q: float,
    beta: float | None = None,
) -> AssumptionCheck:
    """Say which constants of Assumption 1 a group's fits support, and whether they are separated.

    Theta is taken as small as may be: balls of radius ``1/beta`` around both estimates, and what
    is convex around them. The constants are those of the fits; that the family is right they
    cannot show.

    Parameters
    ----------
    epsilon, q
        The question's epsilon and the group's rough ``P[Y=1]``, for the separation condition.
    beta
        At least 1. Left out, L of the Theta for ``beta = 1`` or more where such balls leave the
        family: what the separation condition is mildest with.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family, cut = Gaussian([[1.0]]), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m]), cut) for m in (0.0, 7.0))
    >>> print(check_assumptions(MixtureModel({"A": laws}), "A", epsilon=0.1, q=0.3))
    group A: alpha 0.5, beta 8, kappa 1, lambda 1, L 7.12; |theta_1 - theta_0| 7 of 5.72 needed
    """
    zero, one = fits = model.of(group)
    family = zero.family
    if not same_base(zero, one):
        raise InvalidInput(f"the laws of group {group!r} are of two families; take one")

    thetas, radius = np.stack([zero.theta, one.theta]), 1.0
    if beta is not None and (plain_number(beta) or 0.0) < 1.0:
        raise InvalidInput(f"'beta' must be at least 1; got {beta!r}")
    while beta is None:
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
    problems = []
    if alpha <= 0.0:
        problems.append("P[f=1 | Y=y] >= alpha > 0: an acceptance is not known to be above 0")
    if family.discrete:
        problems.append(
            f"log-concavity is about densities: for the {family.name} family TruncEst is not proved"
        )
    if distance < needed:
        problems.append(f"separation: |theta_1 - theta_0| is {distance:.3g}, below {needed:.3g}")
    return AssumptionCheck(str(group), constants, distance, needed, tuple(problems))
