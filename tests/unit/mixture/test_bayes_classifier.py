"""The Bayes classifier against closed forms, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.mixture import (
    BayesClassifier,
    Gaussian,
    HalfSpace,
    MixtureModel,
    TruncatedFit,
    Weight,
    known_law,
)

FAMILY = Gaussian("spherical")


def laws(distance: float, dimension: int = 1) -> tuple[TruncatedFit, TruncatedFit]:
    cut = HalfSpace(np.eye(dimension)[0])
    zero = known_law(FAMILY, FAMILY.pack(np.zeros(dimension), np.eye(dimension)), cut)
    mean = distance * np.eye(dimension)[0]
    return zero, known_law(FAMILY, FAMILY.pack(mean, np.eye(dimension)), cut)


def exact_error(distance: float, q: float) -> float:
    """Return the Bayes error of two normal laws with unit variance."""
    threshold = distance / 2.0 + np.log((1.0 - q) / q) / distance
    return float((1.0 - q) * norm.sf(threshold) + q * norm.cdf(threshold - distance))


@pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("distance", [1.0, 3.0])
@pytest.mark.parametrize("dimension", [1, 3])
def test_its_error_is_the_bayes_error(distance: float, q: float, dimension: int) -> None:
    best = BayesClassifier(MixtureModel({"A": laws(distance, dimension)}), {"A": q})
    assert best.error_rate() == pytest.approx(exact_error(distance, q), abs=5e-4)


def test_probabilities_are_those_of_the_mixture() -> None:
    best = BayesClassifier(MixtureModel({"A": laws(2.0), "B": laws(1.0)}), {"A": 0.3, "B": 0.6})
    x = np.linspace(-2.0, 4.0, 7)[:, None]
    probability = best.predict_proba(x, sensitive_features="A")
    one = 0.3 * norm.pdf(x[:, 0] - 2.0)
    zero = 0.7 * norm.pdf(x[:, 0])
    assert probability[:, 1] == pytest.approx(one / (one + zero))
    assert probability.sum(axis=1) == pytest.approx(np.ones(7))
    groups = np.array(list("ABABABA"))
    mixed = best.predict(x, sensitive_features=groups)
    for group in "AB":
        alone = best.predict(x, sensitive_features=group)
        assert (mixed[groups == group] == alone[groups == group]).all()


def test_errors_of_parameters_cost_their_square_at_most() -> None:
    """The optimum is flat: parameters off by h cost an order of h^2, within the remark's O(h)."""
    truth = BayesClassifier(MixtureModel({"A": laws(2.0)}), {"A": 0.3})
    for h in (0.02, 0.05, 0.1):
        learnt = BayesClassifier(MixtureModel({"A": laws(2.0 + h)}), {"A": 0.3 + h})
        excess = learnt.error_rate(truth) - truth.error_rate()
        assert -1e-4 <= excess <= h


def test_everybody_is_weighed_by_group_shares() -> None:
    model = MixtureModel({"A": laws(1.0), "B": laws(3.0)})
    best = BayesClassifier(model, {"A": 0.5, "B": Weight(0.5, 0.01, 0.0, 100)})
    near, far = exact_error(1.0, 0.5), exact_error(3.0, 0.5)
    assert best.error_rate() == pytest.approx((near + far) / 2.0, abs=1e-3)
    mostly_far = best.error_rate(group_shares={"A": 1, "B": 3})
    assert mostly_far == pytest.approx(near / 4.0 + 3.0 * far / 4.0, abs=1e-3)


def test_what_it_refuses() -> None:
    model = MixtureModel({"A": laws(1.0)})
    best = BayesClassifier(model, {"A": 0.5})
    with pytest.raises(UnknownName, match="'C'"):
        best.predict([[0.0]], sensitive_features="C")
    with pytest.raises(InvalidInput, match="one group for each of the 2 rows"):
        best.predict([[0.0], [1.0]], sensitive_features=["A"])
    with pytest.raises(InvalidInput, match="weight of group A"):
        BayesClassifier(model, {"A": 1.0})
    with pytest.raises(InvalidInput, match="at least one group"):
        BayesClassifier(model, {})
    with pytest.raises(BadData, match="no model of group 'B'"):
        BayesClassifier(model, {"B": 0.5})
    with pytest.raises(InvalidInput, match="'group_shares' must name every group"):
        best.error_rate(group_shares={"B": 1.0})
    with pytest.raises(InvalidInput, match="'weights' must be a mapping"):
        BayesClassifier(model, [0.5])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"the 1 columns .* group 'A' .* got 2"):
        best.predict([[0.0, 1.0]], sensitive_features="A")
    other = BayesClassifier(MixtureModel({"B": laws(1.0)}), {"B": 0.5})
    with pytest.raises(InvalidInput, match=r"'truth' must know every group .*'A' is missing"):
        best.error_rate(other)
    with pytest.raises(BadData, match="1 rows with missing or infinite"):
        best.predict_proba([[np.inf]], sensitive_features="A")
    with pytest.raises(BadData, match="1 of 2 rows of 'X' are too large"):
        best.predict_proba([[0.0], [1e200]], sensitive_features="A")


def test_groups_may_be_one_column_and_far_points_have_probabilities() -> None:
    best = BayesClassifier(MixtureModel({"A": laws(2.0), "B": laws(1.0)}), {"A": 0.3, "B": 0.6})
    x = [[-1e100], [1e100]]
    probability = best.predict_proba(x, sensitive_features=[["A"], ["B"]])
    assert probability.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    near = best.predict_proba([[30.0]], sensitive_features="A")
    assert near[0, 0] == pytest.approx(np.exp(-58.0) * 0.7 / 0.3, rel=1e-9)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"1": -1.0, "2": 2.0}, "'group_shares.1.' must be a finite number >= 0"),
        ({"1": np.nan, "2": 2.0}, "'group_shares.1.' must be a finite number >= 0"),
        ({"1": 0.0, "2": 0.0}, "must add up to a finite number above 0"),
        ([0.5, 0.5], "'group_shares' must be a mapping"),
    ],
)
def test_group_shares_are_checked(shares: dict[str, float], message: str) -> None:
    model = MixtureModel({"1": laws(1.0), "2": laws(3.0)})
    best = BayesClassifier(model, {1: 0.5, 2: 0.5})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput, match=message):
        best.error_rate(group_shares=shares)
    named = best.error_rate(group_shares={"1": 1.0, "2": 3.0})
    assert best.error_rate(group_shares={1: 1.0, 2: 3.0}) == named  # type: ignore[dict-item]
