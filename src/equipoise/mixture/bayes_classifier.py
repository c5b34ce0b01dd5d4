"""The classifier that the recovered parameters give (paper, remark after Algorithm 2).

Exp-Audit learns the laws ``E_0, E_1`` of both outcomes in every group and the share q of outcome 1.
Whoever knows these knows the classifier with the fewest mistakes: approve where
``q E_1(x) >= (1 - q) E_0(x)``. With parameters within epsilon of the true ones its error rate
exceeds that of the best classifier by ``O(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from equipoise._arrays import Array
from equipoise.errors import InvalidInput, UnknownName, require_in_open_unit
from equipoise.mixture.decision_maker import sobol
from equipoise.mixture.likelihood_weights import Weight, log_ratio
from equipoise.mixture.model import MixtureModel

ERROR_RATE_DRAWS = 2**15  # Sobol points per law behind an error rate

Weights = Mapping[str, float | Weight]
"""Group -> its share of outcome 1, as a number or as Exp-Audit estimates it."""


class BayesClassifier:
    """Approve whoever has outcome 1 with probability at least one half, given group and features.

    Its methods follow scikit-learn. As in fairlearn, the group comes as ``sensitive_features``.

    Parameters
    ----------
    model
        The laws of outcome 0 and 1 of every group.
    weights
        Group -> ``P[Y=1]`` of the group: a number in (0, 1), or a :class:`Weight`.

    Attributes
    ----------
    classes_
        The outcomes, 0 and 1, in the order of the columns of :meth:`predict_proba`.

    Raises
    ------
    BadData
        If the model lacks a group of ``weights``.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, MixtureModel, known_law
    >>> family, cut = Gaussian("spherical"), HalfSpace([1.0])
    >>> laws = tuple(known_law(family, family.pack([m], [[1.0]]), cut) for m in (0.0, 2.0))
    >>> best = BayesClassifier(MixtureModel({"A": laws}), weights={"A": 0.5})
    >>> best.predict([[0.9], [1.1]], sensitive_features="A").tolist()
    [0, 1]
    >>> round(best.error_rate(), 3)  # P[N(0, 1) > 1]
    0.159
    """

    def __init__(self, model: MixtureModel, weights: Weights) -> None:
        self.model = model
        self.weights = as_shares(weights)
        self.classes_ = np.array([0, 1])
        for group in self.weights:
            model.of(group)  # raises if the model lacks it

    def log_odds(self, X: ArrayLike, group: Hashable) -> Array:
        """Return ``log P[Y=1 | x] - log P[Y=0 | x]`` of every row, all of one group."""
        name = str(group)
        if name not in self.weights:
            raise UnknownName("group", name, self.weights)
        return np.asarray(log_ratio(self.model.of(name), X) + logit(self.weights[name]))

    def predict_proba(self, X: ArrayLike, *, sensitive_features: ArrayLike) -> Array:
        """Return the probabilities of outcome 0 and 1 of every row, shape (n, 2).

        ``sensitive_features`` has each row's group, or one group for all rows.
        """
        rows = self._points(X)
        groups = _groups_of_rows(sensitive_features, len(rows))
        probability = np.empty(len(rows))
        for group in np.unique(groups):
            in_group = groups == group
            probability[in_group] = expit(self.log_odds(rows[in_group], group))
        return np.column_stack([1.0 - probability, probability])

    def predict(self, X: ArrayLike, *, sensitive_features: ArrayLike) -> NDArray[np.int64]:
        """Return the more likely outcome of every row; 1 where both are equally likely."""
        probability = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        return np.where(probability >= 0.5, 1, 0)

    def error_rate(
        self,
        truth: BayesClassifier | None = None,
        *,
        group_shares: Mapping[str, float] | None = None,
    ) -> float:
        """Return the share of people that the classifier judges wrongly.

        Parameters
        ----------
        truth
            The true laws and weights, as the classifier that knows them. If left out, those of
            this classifier: then the result is the Bayes error of its own model.
        group_shares
            Each group's share of everybody; equal if left out.
        """
        truth = self if truth is None else truth
        shares = normalised_group_shares(self.weights, group_shares)
        return sum(share * self._error_rate_in(group, truth) for group, share in shares.items())

    def _error_rate_in(self, group: str, truth: BayesClassifier) -> float:
        q = truth.weights[group]
        law_zero, law_one = truth.model.of(group)
        dimension = law_zero.family.dimension(law_zero.theta)
        uniforms = sobol(dimension, ERROR_RATE_DRAWS, seed=0)
        zeros = law_zero.family.from_uniforms(law_zero.theta, uniforms)
        ones = law_one.family.from_uniforms(law_one.theta, uniforms)
        approved_zeros = float((self.log_odds(zeros, group) >= 0.0).mean())
        denied_ones = float((self.log_odds(ones, group) < 0.0).mean())
        return (1.0 - q) * approved_zeros + q * denied_ones

    def _points(self, X: ArrayLike) -> Array:
        first_group = next(iter(self.weights))
        return self.model.of(first_group)[0].family.points(X)


def as_shares(weights: Weights) -> dict[str, float]:
    """Return each group's share of outcome 1 as a number in (0, 1)."""
    if not weights:
        raise InvalidInput("'weights' must give P[Y=1] of at least one group; it is empty")
    shares = {}
    for group, weight in weights.items():
        share = weight.estimate if isinstance(weight, Weight) else weight
        require_in_open_unit(f"weight of group {group}", share)
        shares[str(group)] = float(share)
    return shares


def normalised_group_shares(
    groups: Mapping[str, object], group_shares: Mapping[str, float] | None
) -> dict[str, float]:
    """Return each group's share of everybody, adding up to 1; equal shares if left out."""
    if group_shares is None:
        return dict.fromkeys(groups, 1.0 / len(groups))
    for group in groups:
        if group not in group_shares:
            raise InvalidInput(f"'group_shares' must name every group; {group!r} is missing")
    total = sum(group_shares[group] for group in groups)
    return {group: group_shares[group] / total for group in groups}


def _groups_of_rows(sensitive_features: ArrayLike, n_rows: int) -> NDArray[np.str_]:
    groups = np.asarray(sensitive_features).astype(str)
    if groups.ndim == 0:
        return np.full(n_rows, groups)
    if groups.shape != (n_rows,):
        raise InvalidInput(
            f"'sensitive_features' must hold one group for each of the {n_rows} rows of 'X', or "
            f"one group for all; got an array of shape {groups.shape}"
        )
    return groups
