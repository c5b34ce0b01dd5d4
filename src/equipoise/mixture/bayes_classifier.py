"""The classifier that the recovered parameters give (paper, remark after Algorithm 2).

Exp-Audit learns the laws ``E_0, E_1`` of both outcomes in every group and the share q of outcome 1.
Whoever knows these knows the classifier with the fewest mistakes: approve where
``q E_1(x) >= (1 - q) E_0(x)``. With parameters within epsilon of the true ones its error rate
exceeds that of the best classifier by ``O(epsilon)``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from equipoise._arrays import Array
from equipoise.errors import (
    BadData,
    InvalidInput,
    UnknownName,
    few_of,
    require_in_open_unit,
    require_kind,
    require_non_negative,
)
from equipoise.mixture.decision_maker import sobol
from equipoise.mixture.likelihood_weights import Weight, log_ratio
from equipoise.mixture.model import MixtureModel

ERROR_RATE_DRAWS = 2**15  # Sobol points per law behind an error rate

Weights = Mapping[str, float | Weight]
"""Group -> its share of outcome 1, as a number or as Exp-Audit estimates it."""


class BayesClassifier:
    """Approve whoever has outcome 1 with probability at least one half, given group and features.

    ``predict`` and ``predict_proba`` are as in scikit-learn; there is no ``fit``. As in fairlearn,
    the group comes as ``sensitive_features``.

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
        If the model lacks a group of ``weights``, or rows are too large to compute with.
    InvalidInput
        If ``weights`` is no mapping to numbers in (0, 1), or ``X`` has another number of columns.

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
        # The family refuses impossible points; how many columns the fit had, only the laws know.
        laws = self.model.of(name)
        rows = laws[0].family.points(X)
        n_columns = laws[0].family.dimension(laws[0].theta)
        if rows.shape[1] != n_columns:
            raise InvalidInput(
                f"'X' must have the {n_columns} columns that the model of group {name!r} was "
                f"fitted to; got {rows.shape[1]}"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is refused below
            odds = np.asarray(log_ratio(laws, rows) + logit(self.weights[name]))
        is_lost = np.isnan(odds)
        if is_lost.any():
            largest = float(np.abs(rows[is_lost]).max())
            raise BadData(
                f"{is_lost.sum()} of {len(rows)} rows of 'X' are too large to compute with, up to "
                f"{largest:.3g}; correct or drop them"
            )
        return odds

    def predict_proba(self, X: ArrayLike, *, sensitive_features: ArrayLike) -> Array:
        """Return the probabilities of outcome 0 and 1 of every row, shape (n, 2).

        ``sensitive_features`` has each row's group, as n values or one column, or one group for
        all rows.
        """
        rows = self._points(X)
        groups = _groups_of_rows(sensitive_features, len(rows))
        log_odds = np.empty(len(rows))
        for group in np.unique(groups):
            in_group = groups == group
            log_odds[in_group] = self.log_odds(rows[in_group], group)
        # both from the log odds, so that a small probability keeps its digits
        return np.column_stack([expit(-log_odds), expit(log_odds)])

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
        require_kind("truth", truth, BayesClassifier, "a BayesClassifier, or None")
        for group in self.weights:
            if group not in truth.weights:
                raise InvalidInput(
                    f"'truth' must know every group of this classifier; {group!r} is missing, it "
                    f"has {few_of(list(truth.weights))}"
                )
        shares = normalised_group_shares(self.weights, group_shares)
        return sum(share * self._error_rate_in(group, truth) for group, share in shares.items())

    def _error_rate_in(self, group: str, truth: BayesClassifier) -> float:
        q = truth.weights[group]
        law_zero, law_one = truth.model.of(group)
        dimension = law_zero.family.dimension(law_zero.theta)
        # The same points for every classifier, so that two error rates differ by no chance.
        uniforms = sobol(dimension, ERROR_RATE_DRAWS, seed=0)
        points_of_zero = law_zero.family.from_uniforms(law_zero.theta, uniforms)
        points_of_one = law_one.family.from_uniforms(law_one.theta, uniforms)
        approved_zeros = float((self.log_odds(points_of_zero, group) >= 0.0).mean())
        denied_ones = float((self.log_odds(points_of_one, group) < 0.0).mean())
        return (1.0 - q) * approved_zeros + q * denied_ones

    def _points(self, X: ArrayLike) -> Array:
        first_group = next(iter(self.weights))
        return self.model.of(first_group)[0].family.points(X)


def as_shares(weights: Weights) -> dict[str, float]:
    """Return each group's share of outcome 1 as a number in (0, 1)."""
    require_kind("weights", weights, Mapping, "a mapping from each group to its P[Y=1]")
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
    require_kind("group_shares", group_shares, Mapping, "a mapping from each group to its share")
    share_by_group = {str(group): share for group, share in group_shares.items()}
    for group in groups:
        if group not in share_by_group:
            raise InvalidInput(f"'group_shares' must name every group; {group!r} is missing")
        require_non_negative(f"group_shares[{group}]", share_by_group[group])
    total = sum(float(share_by_group[group]) for group in groups)
    if not 0.0 < total < math.inf:
        raise InvalidInput(
            f"'group_shares' must add up to a finite number above 0; they add up to {total:g}"
        )
    return {group: float(share_by_group[group]) / total for group in groups}


def _groups_of_rows(sensitive_features: ArrayLike, n_rows: int) -> NDArray[np.str_]:
    groups = np.asarray(sensitive_features).astype(str)
    if groups.ndim == 0:
        return np.full(n_rows, groups)
    if groups.shape == (n_rows, 1):  # one column of a frame
        return groups[:, 0]
    if groups.shape != (n_rows,):
        raise InvalidInput(
            f"'sensitive_features' must hold one group for each of the {n_rows} rows of 'X', or "
            f"one group for all; got an array of shape {groups.shape}"
        )
    return groups
