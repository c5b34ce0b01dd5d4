"""Exp-Audit's statistics over many seeded runs; false-alarm rates are stated with each test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, chi2

from equipoise.mixture import Gaussian, HalfSpace, fit_truncated, likelihood_weight
from equipoise.mixture.model_checks import FALSE_ALARM_PROBABILITY, ModelChecks
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import MixtureWorld
from tests.profiles import quick

ALARM = 1e-4


@pytest.mark.parametrize("method", quick(["auto"], full=["importance", "auto"]))
def test_standard_errors_are_honest(method: str) -> None:
    """z-scores of every entry of theta have an sd that chi-squared allows."""
    family, cut, runs = Gaussian("full"), HalfSpace([0.6, 0.8], 0.4), quick(50, full=200)
    mean, covariance = np.array([0.3, -0.2]), np.array([[1.5, 0.4], [0.4, 1.0]])
    truth = family.pack(mean, covariance)
    scores = []
    for seed in range(runs):
        x = np.random.default_rng(seed).multivariate_normal(mean, covariance, 2_500)
        x = x[cut(x)][:800]
        accepts = cut if method == "auto" else (lambda X: cut(X))
        fit = fit_truncated(x, accepts, family, method=method, seed=seed)
        scores.append((fit.theta - truth) / fit.standard_error)
    spread = np.sqrt((np.array(scores) ** 2).mean(axis=0))
    level = ALARM / (2 * len(truth))
    low, high = (np.sqrt(chi2.ppf(p, runs) / runs) for p in (level, 1.0 - level))
    # the first-order normal approximation itself is a few per cent off at n = 800
    assert np.all((spread > 0.95 * low) & (spread < 1.05 * high))
    assert 0.9 <= np.sqrt((spread**2).mean()) <= 1.1


def test_propagated_intervals_cover() -> None:
    """At least 92% of 95% intervals hold q, up to a false alarm of 1 in 1,000."""
    family, q, runs, covered, plain = Gaussian("full"), 0.3, quick(16, full=60), 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 3])
        separation = (1.0, 2.0, 3.0)[seed % 3]
        cut = HalfSpace([1.0], 0.5 * separation - 0.5)
        fits = []
        for mean in (0.0, separation):
            x = rng.normal(mean, 1.0, 20_000)[:, None]
            fits.append(fit_truncated(x[cut(x)][:3_000], cut, family))
        X = (rng.standard_normal(10_000) + separation * (rng.random(10_000) < q))[:, None]
        weight = likelihood_weight(X, (fits[0], fits[1]))
        covered += abs(weight.estimate - q) <= 1.96 * weight.standard_error
        plain += abs(weight.estimate - q) <= 1.96 * weight.sampling_error
    assert covered >= binom.ppf(1e-3, runs, 0.92)
    assert plain < 0.9 * runs  # what leaving out the laws' uncertainty would give


@pytest.mark.parametrize(
    ("truth", "difference"), [("FAIR", 0.05 - 1e-9), ("UNFAIR", 0.05 + 0.2502)]
)
def test_the_default_errs_no_more_than_delta_where_laws_are_apart(
    truth: str, difference: float
) -> None:
    """At the boundary of either answer, laws estimated from 20,000 past people."""
    runs = quick(8, full=20)
    approval = {"1": 0.5 + difference / 2.0, "0": 0.5 - difference / 2.0}
    world = MixtureWorld.synthetic(14.0, approval=approval, feature_rows=20_000)
    question = Question(gamma=0.05, epsilon=0.25, delta=0.05)
    sim = simulate("exp", world, question, Costs(0.5, 3.0), repeats=runs, seed=5)
    assert {v.value for v in question.truth(world.gap("equalized_odds"))} == {truth}
    assert sim.wrong.sum() <= binom.ppf(1.0 - ALARM, runs, question.delta)
    assert (sim.features > 0).mean() > 0.8  # it did not just fall back


def test_the_default_stays_right_where_map_counts_are_wrong() -> None:
    """One standard deviation apart: the published algorithm errs always, the default hardly."""
    runs = quick(4, full=8)
    world = MixtureWorld.synthetic(2.0, approval={"1": 0.5, "0": 0.5}, feature_rows=20_000)
    question = Question(gamma=0.05, epsilon=0.25, delta=0.05)
    default = simulate("exp", world, question, Costs(), repeats=runs)
    assert default.wrong.sum() <= binom.ppf(1.0 - ALARM, runs, question.delta)
    assert (default.features == 0).all()  # labels, because the laws are too uncertain
    published = simulate("exp", world, question, Costs(), repeats=runs // 2, weights="published")
    assert published.wrong.all()
    checked = simulate("exp", world, question, Costs(), repeats=4, weights="map")
    assert (checked.features == 0).all()  # the test of separation comes before buying
    assert checked.wrong.sum() <= binom.ppf(1.0 - ALARM, 4, question.delta)


def test_the_free_self_check_hardly_refuses_a_right_model() -> None:
    """At most 1% of right models, up to a false alarm of 1 in 10,000; it was one in seven."""
    runs, refused = quick(25, full=150), 0
    for seed in range(runs):
        world = MixtureWorld.synthetic(
            4.0, approval={"1": 0.6, "0": 0.4}, tilt=(-1.2, 0.8)[seed % 2], dimension=2, seed=seed
        )
        past = world.past(10_000, np.random.default_rng([seed, 2]))
        checks = ModelChecks(past.model, past, epsilon=0.1)
        if not past.model.problems:
            checks.check_for_free()
            refused += any(not check.passed for check in checks.self_checks)
    assert refused <= binom.ppf(1.0 - ALARM, runs, FALSE_ALARM_PROBABILITY)
