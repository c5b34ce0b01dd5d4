"""The mixture model of every group: the laws of both outcomes, fitted behind the decision-maker."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

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
            groups_seen = ", ".join(self.fits) or "none"
            default_why = f"all approved people whom the fit saw are of {groups_seen}"
            why = self.problems.get(group, default_why)
            raise BadData(f"there is no model of group {group!r}: {why}")
        return self.fits[group]

    def free_rates(self, group: Hashable) -> tuple[float, float]:
        """Return ``P[f=1 | Y=0]`` and ``P[f=1 | Y=1]`` by the model: estimates at no online cost.

        They rest on the family being right where nobody was approved.
        """
        law_zero, law_one = self.of(group)
        return law_zero.acceptance, law_one.acceptance


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
            options = {"seed": self.seed, **steps}
            run = trunc_est(X, accepts, self.family, epsilon, delta, constants, **options)
            if not run.settled:
                raise BadData(
                    "TruncEst has no answer: no candidate is within 2 epsilon of half of them; "
                    "take more or smaller steps ('m', 'eta')"
                )
            return known_law(self.family, run.theta, accepts)

        return self._model(fit)

    def unseen(self, group: Hashable) -> Array:
        """Return the features of a group's people whom the fit did not see, in random order."""
        rows = self._rows
        is_unseen = (rows.groups.astype(str) == str(group)) & ~rows.teaches
        return apart(self.seed, 2).permutation(rows.points[is_unseen])

    def _model(self, fit: Callable[..., TruncatedFit]) -> MixtureModel:
        rows = self._rows
        model = MixtureModel({}, {}, {})
        for label in dict.fromkeys(rows.groups[rows.teaches & rows.approved].tolist()):
            # Its problem is raised only if somebody uses the model of this group.
            try:
                self._fit_group(label, fit, model)
            except BadData as error:
                model.problems[str(label)] = str(error)
        return model

    def _fit_group(
        self, label: Hashable, fit: Callable[..., TruncatedFit], model: MixtureModel
    ) -> None:
        """Fit both laws of a group, behind the decision-maker or a rule learnt of it."""
        rows = self._rows
        in_fit = rows.teaches & (rows.groups == label)
        if isinstance(self.accepts, str):
            rule = learn_rule(rows.points[in_fit], rows.approved[in_fit], self.accepts, self.seed)
            in_fit[in_fit] = rule.fresh  # the laws are fitted to people who did not teach the rule
            model.rules[str(label)] = rule.description
            fit_law = partial(_law_inside, rule, fit)
        else:
            fit_law = partial(fit, accepts=accepts_of(self.accepts, label))
        approved = in_fit & rows.approved
        law_zero = fit_law(rows.points[approved & (rows.outcomes == 0)])
        law_one = fit_law(rows.points[approved & (rows.outcomes == 1)])
        model.fits[str(label)] = law_zero, law_one

    @cached_property
    def _rows(self) -> _Rows:
        """Return the rows, checked, and which of them teach the fit."""
        require_kind("family", self.family, Family, "a family such as Gaussian()")
        if not 0.0 <= self.held_out < 1.0:
            raise InvalidInput(f"'held_out' must be in [0, 1); got {self.held_out!r}")
        points = self.family.points(self.X)
        groups = _require_column("group", self.group, len(points))
        decisions = _require_column("decision", self.decision, len(points))
        outcomes = _require_column("outcome", self.outcome, len(points))
        if not np.isin(decisions, (0, 1)).all():
            raise InvalidInput("'decision' must be 0 or 1; leave out people not decided on")
        approved = decisions == 1
        if not np.isin(outcomes[approved], (0, 1)).all():
            raise InvalidInput(
                "'outcome' must be 0 or 1 for everybody approved; leave out people of unknown "
                "outcome, as if they had never applied, if the reasons have nothing to do with it"
            )
        # Drawn by row, so that both halves have approved and denied people in their proportion.
        teaches = apart(self.seed).random(len(points)) >= self.held_out
        return _Rows(points, groups, outcomes, approved, teaches)


class _Rows(NamedTuple):
    """Past people, one row each; ``teaches`` marks those whom the fit sees."""

    points: Array
    groups: Column
    outcomes: Column
    approved: Bits
    teaches: Bits


def _require_column(name: str, values: ArrayLike, n_rows: int) -> Column:
    """Return a column as an array, or raise unless it holds one value for each row."""
    objects = np.asarray(values, dtype=object)
    if objects.shape != (n_rows,) or any(map(np.ndim, objects[:1000])):
        raise InvalidInput(
            f"{name!r} must hold one value, and no list, for each of the {n_rows} rows of 'X'; got "
            f"an array of shape {objects.shape}, or lists in it"
        )
    return np.asarray(values)


def accepts_of(accepts: GroupAccepts, group: Hashable) -> Accepts:
    """Return the classifier as it decides on one group."""
    if isinstance(accepts, Mapping):
        # Groups of counts are texts, those of a frame may be numbers.
        classifier = accepts.get(group, accepts.get(str(group)))
        if classifier is None:
            raise UnknownName("group in 'accepts'", str(group), [str(name) for name in accepts])
        return classifier
    # By its signature: a call would not tell a missing argument from an error of its own.
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
    # Only there is it known for certain whom the decision-maker lets through.
    inside = X[rule.approves(X)]
    law = fit(inside, accepts=rule.approves)
    # P[f=1] = P_theta[sure] / P[sure | f=1], at most one minus what is denied for certain
    share_inside = len(inside) / len(X)
    largest_acceptance = 1.0 - acceptance(law.family, law.theta, rule.denies)
    return replace(
        law,
        acceptance=min(law.acceptance / share_inside, max(largest_acceptance, law.acceptance)),
        acceptance_gradient=law.acceptance_gradient / share_inside,
    )
