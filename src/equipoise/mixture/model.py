"""The mixture model of every group: the laws of both outcomes, and whether they fit together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.past import Past
from equipoise.mixture.families import Array, Family
from equipoise.mixture.rules import Accepts, LearnedRule, Oracle, learn_classifier
from equipoise.mixture.truncated import TruncatedFit, acceptance, fit_truncated
from equipoise.mixture.weights import Pair

__all__ = [
    "GroupAccepts",
    "MixtureModel",
    "accepts_of",
    "fit_model",
    "learn_model",
    "learned_model",
]

GroupAccepts: TypeAlias = Mapping[str, Accepts] | Callable[[Array, str], ArrayLike]
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
    denied_features
        Group -> past denied people whose features taught this; each costs ``c_feat``.

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
    denied_features: Mapping[str, int] = field(default_factory=dict)

    def of(self, group: str) -> Pair:
        """Return a group's two laws."""
        if group in self.problems:
            raise BadData(f"there is no model of group {group!r}: {self.problems[group]}")
        if group not in self.fits:
            raise UnknownName("group of the mixture model", group, self.fits)
        return self.fits[group]

    def free_rates(self, group: str) -> tuple[float, float]:
        """Return ``P[f=1 | Y=0]`` and ``P[f=1 | Y=1]`` by the model: estimates at no online cost.

        They rest on the family being right where nobody was approved.
        """
        zero, one = self.of(group)
        return zero.acceptance, one.acceptance

    def __str__(self) -> str:
        lines = []
        for group, pair in self.fits.items():
            for outcome, fit in enumerate(pair):
                lines.append(f"group {group}, outcome {outcome}: {fit}")
        lines += [f"group {group}: no model, {why}" for group, why in self.problems.items()]
        return "\n".join(lines)


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
        ``(X, group)``.
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
    fits: dict[str, Pair] = {}
    problems: dict[str, str] = {}
    for label in dict.fromkeys(names.tolist()):
        who = str(label)
        classifier = accepts_of(accepts, who)
        try:
            zero, one = (
                fit_truncated(
                    points[(names == label) & (outcomes == y)], classifier, family, method, seed
                )
                for y in (0, 1)
            )
        except BadData as error:
            problems[who] = str(error)
        else:
            fits[who] = (zero, one)
    return MixtureModel(fits, problems)


def learn_model(
    X: ArrayLike,
    group: ArrayLike,
    decisions: ArrayLike,
    outcome: ArrayLike,
    rules: str,
    family: Family,
    *,
    most_denied: int = 2_000,
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
    most_denied
        The most denied people per group whose features are used; each costs ``c_feat``.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> outcome = np.repeat([0, 1], 4_000)
    >>> X = rng.normal(np.where(outcome, 2.0, 0.0))[:, None]
    >>> decisions, groups = (X[:, 0] >= 0.5).astype(int), np.full(len(X), "A")
    >>> model = learn_model(X, groups, decisions, outcome, "threshold", Gaussian("spherical"))
    >>> model.problems, model.denied_features["A"] > 0
    ({}, True)
    """
    points, (names, outcomes, decided) = _columns(
        family, X, group=group, outcome=outcome, decisions=decisions
    )
    if not np.isin(decided, (0, 1)).all():
        raise InvalidInput("'decisions' must be 0 or 1; leave out people who were not decided on")
    approved = decided == 1
    if not np.isin(outcomes[approved], (0, 1)).all():
        raise InvalidInput(
            "'outcome' must be 0 or 1 for everybody approved; leave out, as if they had never "
            "applied, people whose outcome is unknown for reasons that have nothing to do with it"
        )
    fits: dict[str, Pair] = {}
    problems: dict[str, str] = {}
    words: dict[str, str] = {}
    denied_features: dict[str, int] = {}
    for label in dict.fromkeys(names.tolist()):
        who = str(label)
        denied = np.flatnonzero((names == label) & ~approved)
        denied = np.random.default_rng(seed).permutation(denied)[:most_denied]
        rows = np.concatenate([np.flatnonzero((names == label) & approved), denied])
        try:
            rule = learn_classifier(points[rows], approved[rows], rules, seed=seed)
            if rule.contradictions:
                raise BadData(f"past decisions contradict the class of rules: {rule}")
            fresh = rows[rule.fresh & approved[rows]]
            zero, one = (
                _fit_inside(points[fresh[outcomes[fresh] == y]], rule, family, seed) for y in (0, 1)
            )
        except BadData as error:
            problems[who] = str(error)
        else:
            fits[who], words[who] = (zero, one), str(rule)
        denied_features[who] = len(denied)
    return MixtureModel(fits, problems, words, denied_features)


def learned_model(past: Past, rules: str) -> MixtureModel:
    """Return the model of one who may not ask the decision-maker of a past but knows its class."""
    people = past.people
    if people is None or people.features is None:
        raise InvalidInput(
            "accepts='learn' needs past people with features: a 'history_size', or a world with "
            "'feature_rows'"
        )
    names = np.array(people.groups)[people.group]
    return learn_model(people.features, names, people.decision, people.outcome, rules, past.family)


def _fit_inside(points: Array, rule: LearnedRule, family: Family, seed: int) -> TruncatedFit:
    """Fit to the people inside the sure region; the acceptance is that of the whole rule.

    ``P[f=1] = P_theta[sure] / P[sure | f=1]``, which lies between ``P_theta[sure]`` and one minus
    the share that is denied for certain.
    """
    inside = points[Oracle(rule.approves)(points)] if len(points) else points
    fit = fit_truncated(inside, rule.approves, family, seed=seed)
    held = len(inside) / len(points)
    most = 1.0 - acceptance(family, fit.theta, rule.denies, points=2**14, seed=seed)
    return replace(
        fit,
        acceptance=min(fit.acceptance / held, max(most, fit.acceptance)),
        acceptance_gradient=fit.acceptance_gradient / held,
    )


def _columns(
    family: Family, X: ArrayLike, **columns: ArrayLike
) -> tuple[Array, list[NDArray[np.generic]]]:
    points = family.points(X)
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    for name, column in arrays.items():
        if column.shape != (len(points),):
            raise InvalidInput(
                f"{name!r} must have one entry per row of 'X' ({len(points)}); got {column.shape}"
            )
    return points, list(arrays.values())


def accepts_of(accepts: GroupAccepts, group: str) -> Accepts:
    """Return the classifier as it decides on one group."""
    if isinstance(accepts, Mapping):
        if group not in accepts:
            raise UnknownName("group in 'accepts'", group, accepts)
        return accepts[group]
    if not callable(accepts):
        raise InvalidInput(
            "'accepts' must map groups to classifiers or be a function of (X, group); got "
            f"{type(accepts).__name__}"
        )
    try:
        inspect.signature(accepts).bind(None, group)
    except TypeError:
        raise InvalidInput(
            "'accepts' must take (X, group); this one is not told the group. If the decision "
            "really ignores it, pass lambda X, group: accepts(X)"
        ) from None
    except ValueError:  # a builtin without a signature: the call itself will tell
        pass
    function = accepts
    return lambda X: function(X, group)
