"""Bounds of estimated rates, and of the gap between them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import nbinom

from equipoise.audits.estimated_rates import compare_rates, paper_epsilon, rate_bounds
from equipoise.comparison import Compare
from equipoise.question import Question


@pytest.mark.parametrize("tau", [30, 200, 2_000])
@pytest.mark.parametrize(("p", "q"), [(0.3, 0.3), (0.9, 0.9), (0.02, 0.02), (0.3, 0.35), (0.5, 1)])
def test_a_possible_rate_is_refused_as_rarely_as_a_count_fails(
    tau: int, p: float, q: float
) -> None:
    """The exact probability that the whole interval of one of four N/M lies at 1 or above."""
    question = Question(delta=0.2)
    error = paper_epsilon(tau, question, groups=2) / 12.0
    factor = (1.0 + error) / (1.0 - error)
    past, online = nbinom(tau, p), nbinom(tau, q)  # failures before the tau-th success
    m = np.arange(tau, tau + int(past.isf(1e-9)) + 2)
    refused = float(past.pmf(m - tau) @ online.sf(np.ceil(factor * m) - tau - 1))
    assert 4.0 * refused <= question.delta
    low, _ = rate_bounds(np.array([factor * 1.001, factor * 0.999]), error)
    assert (low >= 1.0).tolist() == [True, False]


def test_intervals_hold_the_estimate_and_stay_in_range() -> None:
    ratios = np.array([[0.2, 0.5, 1.2], [0.9, 0.0, 0.3]])
    for error in (0.01, 0.2, 0.999):
        low, high = rate_bounds(ratios, error)
        assert np.all((low >= 0) & (high <= 1) & (low <= high))
        for compare in (Compare(), Compare("ratio"), Compare(against="B", direction="below")):
            who = compare.resolve(("A", "B", "C"))
            estimate, lower, upper = compare_rates(ratios, low, high, who)
            assert lower <= estimate
            assert 0 <= lower <= upper <= 1
    assert rate_bounds(ratios, 1.0)[1].tolist() == np.ones((2, 3)).tolist()
