"""The mixture model of every group: the laws of both outcomes, fitted behind the decision-maker."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput, UnknownName, require_kind
from equipoise.mixture.decision_maker import Accepts, Bits, apart
from equipoise.mixture.families import Family
from equipoise.mixture.learned_rules import LearntRule, learn_rule
from equipoise.mixture.likelihood_weights import (
    Pair,
)
from equipoise.mixture.trunc_est import StructuralConstants, trunc_est
from equipoise.mixture.truncated_fit import TruncatedFit, acceptance, fit_truncated, known_law

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
