"""Ratios at their boundaries: the study ``python -m study boundary_ratio`` with fewer runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.rates import clopper_pearson
from tests.profiles import only_in_full, quick
from tests.support.boundaries import Row, boundaries

ALARM = 1e-4


@pytest.mark.parametrize(
    ("metric", "line", "past", "runs"),
    [
        ("equalized_odds", "half approved", None, quick(12, full=200)),
        pytest.param("error_rate_balance", "half approved", 20_000, 100, marks=only_in_full),
        pytest.param("negative_predictive_parity", "four groups", None, 60, marks=only_in_full),
    ],
)
def test_wrong_verdicts_and_intervals_are_rare(
    metric: str, line: str, past: int | None, runs: int
) -> None:
    question = eq.Question(metric, gamma=0.2, epsilon=0.4, delta=0.1, compare="ratio")
    for boundary in boundaries(line, question):
        sim = Row(boundary, runs, past, None).simulate(seed=3, jobs=1)
        missed = (sim.gap < sim.lower) | (sim.gap > sim.upper)
        for errors in (sim.wrong, sim.wrong | missed):
            assert clopper_pearson(int(errors.sum()), runs, ALARM / 4.0)[0] <= question.delta
        assert np.mean(sim.verdict == boundary.truth) > 0.5


@pytest.mark.parametrize("audit", ["rs", "baseline"])
@pytest.mark.parametrize("metric", ["equalized_odds", "equal_opportunity", "predictive_equality"])
def test_the_paper_s_tau_is_enough_for_ratios(audit: str, metric: str) -> None:
    question = eq.Question(metric, gamma=0.2, epsilon=0.3, delta=0.1, compare="ratio")
    for boundary in boundaries("few approved", question):
        sim = eq.simulate(audit, boundary.world, question, eq.Costs(), repeats=100, seed=1)
        truth = sim.gap
        missed = (truth < sim.lower) | (truth > sim.upper)
        errors = int((sim.wrong | missed).sum())
        assert clopper_pearson(errors, len(sim), ALARM / 2.0)[0] <= question.delta
        assert np.abs(sim.estimate - truth).max() < 0.4 * question.epsilon


def test_the_error_of_an_estimated_ratio_is_what_the_proof_says() -> None:
    """Every count off by up to 1 ± e in the worst directions, rates anywhere, any groups."""
    rng = np.random.default_rng(0)
    for epsilon in (0.999, 0.5, 0.05):
        e = epsilon / 12.0
        rates = rng.uniform(0.001, 1.0, size=(4000, 3))
        off = rng.choice([(1 - e) / (1 + e), 1.0, (1 + e) / (1 - e)], size=rates.shape)
        gap: Any = eq.Question(compare="ratio").gap_scale.gap
        truth = gap(rates.min(axis=1), rates.max(axis=1))
        guess = gap((rates * off).min(axis=1), (rates * off).max(axis=1))
        worst = np.abs(guess - truth).max()
        assert worst <= 4 * e / (1 - e) ** 2 < 0.4 * epsilon
        assert worst > 0.5 * 4 * e / (1 - e) ** 2  # and not by far
