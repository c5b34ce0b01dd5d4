"""The frontier between fairness and accuracy against the exact one of normal laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from equipoise.errors import InvalidInput, UnknownName
from equipoise.mixture import MixtureModel, fairness_accuracy_curve
from tests.unit.mixture.test_bayes_classifier import laws

MODEL = MixtureModel({"A": laws(2.0), "B": laws(1.0)})
WEIGHTS = {"A": 0.6, "B": 0.3}


def accuracy_at(tpr: float, distance: float, q: float) -> float:
    """Return a group's accuracy at the threshold with this true positive rate."""
    fpr = norm.sf(norm.isf(tpr) + distance)
    return float(q * tpr + (1.0 - q) * (1.0 - fpr))


def bayes_tpr(distance: float, q: float) -> float:
    return float(norm.sf(np.log((1.0 - q) / q) / distance - distance / 2.0))


def exact_accuracy(tolerance: float) -> float:
    """Return the best accuracy whose true positive rates are within the tolerance.

    Accuracy is unimodal in the rate, so inside a window each group takes the rate nearest to
    that of its Bayes classifier.
    """

    def loss(low: float) -> float:
        total = 0.0
        for distance, q in ((2.0, 0.6), (1.0, 0.3)):
            tpr = np.clip(bayes_tpr(distance, q), low, low + tolerance)
            total += accuracy_at(float(np.clip(tpr, 1e-9, 1.0 - 1e-9)), distance, q) / 2.0
        return -total

    bounds = (0.0, 1.0 - tolerance)
    return -float(minimize_scalar(loss, bounds=bounds, method="bounded").fun)


@pytest.mark.parametrize("tolerance", [0.01, 0.05, 0.2, 0.5, 0.9])
def test_the_frontier_is_the_exact_one(tolerance: float) -> None:
    curve = fairness_accuracy_curve(MODEL, WEIGHTS, "equal_opportunity", n_thresholds=201)
    exact = exact_accuracy(tolerance)
    # rates rest on 2^14 Sobol points, thresholds and windows on grids of 201
    assert curve.best_accuracy(tolerance) == pytest.approx(exact, abs=4e-3)
    assert curve.best_accuracy(tolerance) <= exact + 1e-3


def test_it_ends_at_the_bayes_classifier_and_rises() -> None:
    curve = fairness_accuracy_curve(MODEL, WEIGHTS, "equalized_odds", n_thresholds=41)
    bayes = np.mean([
        accuracy_at(bayes_tpr(2.0, 0.6), 2.0, 0.6), accuracy_at(bayes_tpr(1.0, 0.3), 1.0, 0.3)
    ])  # fmt: skip
    assert curve.accuracy[-1] == pytest.approx(bayes, abs=1e-3)
    assert (np.diff(curve.gap) > 0.0).all()
    assert (np.diff(curve.accuracy) > 0.0).all()
    assert curve.thresholds["A"][-1] == pytest.approx(0.5, abs=0.02)
    assert curve.table()[-1]["threshold of B"] == pytest.approx(0.5, abs=0.02)


def test_the_audited_classifier_is_a_point_at_or_below_the_frontier() -> None:
    curve = fairness_accuracy_curve(MODEL, WEIGHTS, "equal_opportunity", n_thresholds=201)
    # the half-space x >= 0 of the laws: TPR P[N(m, 1) >= 0], FPR 1/2
    assert curve.audited.gap == pytest.approx(norm.cdf(2.0) - norm.cdf(1.0), abs=1e-6)
    rates = 0.6 * norm.cdf(2.0) + 0.4 * 0.5, 0.3 * norm.cdf(1.0) + 0.7 * 0.5
    assert curve.audited.accuracy == pytest.approx(np.mean(rates))
    assert curve.audited.accuracy <= curve.best_accuracy(curve.audited.gap) + 1e-3


def test_every_metric_of_the_registry_has_a_frontier() -> None:
    for metric in ("accuracy_parity", "demographic_parity", "predictive_parity"):
        curve = fairness_accuracy_curve(MODEL, WEIGHTS, metric, n_thresholds=21)
        assert len(curve.gap) >= 1
        assert curve.accuracy.max() <= 1.0


def test_the_picture_has_the_point_and_axis_titles() -> None:
    axes = fairness_accuracy_curve(MODEL, WEIGHTS, "equal_opportunity", n_thresholds=11).plot()
    assert "percentage points" in axes.get_xlabel()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["best rules", "audited classifier"]


def test_what_it_refuses() -> None:
    with pytest.raises(UnknownName, match="metric"):
        fairness_accuracy_curve(MODEL, WEIGHTS, "fairness")
    with pytest.raises(InvalidInput, match="only one"):
        fairness_accuracy_curve(MODEL, {"A": 0.5})
    curve = fairness_accuracy_curve(MODEL, WEIGHTS, "equalized_odds", n_thresholds=5)
    with pytest.raises(InvalidInput, match="no rule on the curve"):
        curve.best_accuracy(-0.1)
