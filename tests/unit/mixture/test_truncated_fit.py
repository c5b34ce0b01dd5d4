"""Truncated fits against the exact solution, and everything that can be wrong with their input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp, ndtri
from scipy.stats import norm

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.mixture import (
    Binomial,
    ContinuousBernoulli,
    ContinuousPoisson,
    Exponential,
    Family,
    Gaussian,
    HalfSpace,
    Poisson,
    TruncatedFit,
    Weibull,
    acceptance,
    fit_truncated,
    known_law,
)
from equipoise.mixture.families import Array
from tests.profiles import quick

pytestmark = pytest.mark.slow

D = 5


def half_space_sample(rate: float, seed: int, size: int = 10_000) -> tuple[Array, HalfSpace]:
    rng = np.random.default_rng(seed)
    mean, normal = rng.uniform(-1.0, 1.0, D), rng.standard_normal(D)
    normal /= np.linalg.norm(normal)
    cut = HalfSpace(normal, float(normal @ mean + 2.0 * ndtri(1.0 - rate)))
    everybody = mean + 2.0 * rng.standard_normal((int(1.1 * size / rate) + 2000, D))
    return everybody[cut(everybody)][:size], cut


def divergence(p: TruncatedFit, q: TruncatedFit) -> float:
    """Return KL(p || q) of two Gaussian fits."""
    precision, gap = np.linalg.inv(q.covariance), q.mean - p.mean
    return 0.5 * float(
        np.trace(precision @ p.covariance)
        - len(gap)
        + gap @ precision @ gap
        + np.linalg.slogdet(q.covariance)[1]
        - np.linalg.slogdet(p.covariance)[1]
    )


def black_box(cut: HalfSpace) -> object:
    return lambda X: cut(X)


@pytest.mark.parametrize("rate", quick([0.5], full=[0.1, 0.5]))
def test_importance_sampling_agrees_with_the_exact_solution(rate: float) -> None:
    X, cut = half_space_sample(rate, seed=1)
    exact = fit_truncated(X, cut, Gaussian())
    fit = fit_truncated(X, black_box(cut), Gaussian(), "importance")
    assert (exact.method, fit.method) == ("exact", "importance")
    assert divergence(exact, fit) <= 5e-4
    assert fit.standard_error == pytest.approx(exact.standard_error, rel=0.05)
    assert fit.acceptance == pytest.approx(exact.acceptance, abs=0.01)
    assert fit.ess > 10 * len(X)
    assert not fit.warnings


def test_a_linear_classifier_is_recognised_by_asking_it() -> None:
    """In 20 dimensions, a tenth accepted, sampled points would not tell the acceptance."""
    rng = np.random.default_rng(0)
    root, normal = rng.standard_normal((20, 20)) / 4.0 + np.eye(20), rng.standard_normal(20)
    spread = float(np.linalg.norm(root.T @ normal))
    everybody = rng.standard_normal((60_000, 20)) @ root.T
    cut = HalfSpace(normal, float(norm.isf(0.1)) * spread)
    X = everybody[cut(everybody)]
    exact, fit = (fit_truncated(X, f, Gaussian()) for f in (cut, black_box(cut)))
    assert fit.method == "exact"
    assert fit.acceptance == pytest.approx(exact.acceptance, rel=1e-6)
    assert abs(fit.acceptance - 0.1) < 4.0 * fit.acceptance_error < 0.12


@pytest.mark.parametrize(
    "accepts",
    [
        lambda X: (X[:, 0] >= 0.3) & (X[:, 1] >= -1.5),  # two borders
        lambda X: X[:, 0] + 0.001 * X[:, 1] ** 2 >= 0.3,  # a little bent
        lambda X: (X[:, 0] >= 0.3) | (X[:, 0] < -2.0),  # linear near the sample only
    ],
)
def test_what_is_not_linear_is_not_taken_for_it(accepts) -> None:  # type: ignore[no-untyped-def]
    everybody = np.random.default_rng(3).standard_normal((4_000, 2))
    fit = fit_truncated(everybody[accepts(everybody)], accepts, Gaussian())
    assert fit.method == "importance"


def test_the_exact_solution_maximises_the_truncated_likelihood() -> None:
    X, cut = half_space_sample(0.3, seed=3, size=2_000)
    family = Gaussian()
    fit = fit_truncated(X, cut, family)

    def loss(theta: Array) -> float:
        value = family.log_density(theta, X).mean()
        return float(np.log(acceptance(family, theta, cut)) - value)

    best = loss(fit.theta)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert loss(fit.theta + 0.3 * fit.standard_error * rng.standard_normal(20)) > best


@pytest.mark.parametrize(
    "family",
    [
        Gaussian("diagonal"),
        *quick([], full=[Gaussian("spherical"), Gaussian(4.0 * np.eye(D))]),
    ],
    ids=lambda family: family.structure,
)
def test_every_structure_has_an_exact_fit_that_importance_sampling_finds(family: Gaussian) -> None:
    X, cut = half_space_sample(0.3, seed=4)
    exact = fit_truncated(X, cut, family)
    fit = fit_truncated(X, black_box(cut), family, "importance")
    assert np.abs((fit.theta - exact.theta) / exact.standard_error).max() < 0.25
    assert divergence(exact, fit) < 5e-4


def test_far_away_and_badly_scaled_features_do_no_harm() -> None:
    X, cut = half_space_sample(0.5, seed=5)
    scale = np.array([1e-3, 1.0, 1e3, 1.0, 1.0])
    moved = X * scale + 1e4 * scale
    shifted = HalfSpace(
        np.asarray(cut.normal) / scale, cut.offset + 1e4 * float(np.sum(cut.normal))
    )
    plain, far = fit_truncated(X, cut, Gaussian()), fit_truncated(moved, shifted, Gaussian())
    assert (far.mean - 1e4 * scale) / scale == pytest.approx(plain.mean, abs=1e-4)
    assert far.covariance / np.outer(scale, scale) == pytest.approx(plain.covariance, rel=1e-3)


def test_the_unit_of_measurement_is_no_matter() -> None:
    """A salary in the smallest coin of its country, or a share of a billion, fits as it should."""
    X, cut = half_space_sample(0.5, seed=5)
    plain = fit_truncated(X, cut, Gaussian())
    for unit in (1e9, 1e-9):
        other = fit_truncated(unit * X, HalfSpace(cut.normal, unit * cut.offset), Gaussian())
        assert other.mean / unit == pytest.approx(plain.mean, rel=1e-6, abs=1e-6)
        assert other.acceptance == pytest.approx(plain.acceptance, rel=1e-6)
        assert not other.on_edge
    waits = np.random.default_rng(0).exponential(1e10, 1_000)
    fit = fit_truncated(waits, lambda Z: Z[:, 0] > 0, Exponential())
    assert -1.0 / fit.theta[0] == pytest.approx(waits.mean(), rel=1e-6)
    assert not fit.on_edge


def test_a_projection_is_noticed_in_any_unit() -> None:
    fit = fit_truncated(
        1e9 * SAMPLE, HalfSpace(CUT.normal, 1e9 * CUT.offset), Gaussian(variances=(1.0, 1e12))
    )
    assert fit.on_edge


def test_features_too_far_away_for_their_digits_are_refused() -> None:
    X, cut = half_space_sample(0.5, seed=5)
    away = HalfSpace(cut.normal, cut.offset + 1e9 * float(np.asarray(cut.normal)[2]))
    with pytest.raises(BadData, match="column 2 of the features lies around 1e\\+09"):
        fit_truncated(X + 1e9 * np.eye(D)[2], away, Gaussian())


LINE = [
    (Exponential(), -0.5, 1.0),
    (Weibull(k=1.5), -0.7, 0.8),
    (ContinuousBernoulli(), 2.0, 0.6),
    (ContinuousPoisson(), 1.0, 2.0),
]


def reference(family: Family, x: Array, cut: float) -> float:
    """Return the maximum likelihood estimate by brute force: trapezoids and a scalar minimiser."""
    mean_t = family.statistics(x).mean()
    top = 1.0 if family.name == "continuous Bernoulli" else 80.0
    grid = np.linspace(cut, top, 400_001)[:, None]
    base, t = family.log_base(grid), family.statistics(grid)[:, 0]

    def loss(theta: float) -> float:
        value = base + theta * t
        peak = value.max()
        return float(peak + np.log(np.trapezoid(np.exp(value - peak), grid[:, 0])) - theta * mean_t)

    start = float(family.fit(x)[0])
    bounds = (start - 6.0, min(start + 6.0, -1e-3 if isinstance(family, Weibull) else 20.0))
    return float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9}).x)


@pytest.mark.parametrize(("family", "theta", "cut"), LINE, ids=lambda v: getattr(v, "name", None))
def test_one_dimensional_families(family: Family, theta: float, cut: float) -> None:
    x = family.sample(np.array([theta]), 12_000, np.random.default_rng(8))
    x = x[x[:, 0] >= cut]
    best = reference(family, x, cut)
    fit = fit_truncated(x, lambda X: X[:, 0] >= cut, family)
    assert abs(fit.theta[0] - best) <= 0.05 * fit.standard_error[0]
    assert abs(best - theta) < 5.0 * fit.standard_error[0]
    with pytest.raises(InvalidInput, match="lives on the line, where method='auto'"):
        fit_truncated(x, lambda X: X[:, 0] >= cut, family, method="importance")


@pytest.mark.parametrize(("family", "theta"), [(Poisson(), 1.0), (Binomial(n=12), -0.4)])
def test_whole_numbers_behind_a_truncation(family: Family, theta: float) -> None:
    """The fit maximises the likelihood, whose sum over what is let through is done by hand."""

    def odd_or_large(X: Array) -> Array:
        return (X[:, 0] % 2 == 1) | (X[:, 0] >= 5)

    x = family.sample(np.array([theta]), 12_000, np.random.default_rng(4))
    x = x[odd_or_large(x)]
    support = np.arange(13.0 if family.name == "binomial" else 60.0)[:, None]
    support = support[odd_or_large(support)]
    base = family.log_base(support)

    def loss(t: float) -> float:
        return float(logsumexp(base + t * support[:, 0]) - t * x.mean())

    best = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-10}).x
    fit = fit_truncated(x, odd_or_large, family)
    assert fit.theta[0] == pytest.approx(best, abs=1e-6)
    assert abs(best - theta) < 5.0 * fit.standard_error[0]
    share = np.exp(logsumexp(base + best * support[:, 0]) - family.log_partition(np.array([best])))
    assert fit.acceptance == pytest.approx(float(share), rel=1e-6)
    with pytest.raises(BadData, match="outside the support"):
        fit_truncated(x + 0.5, odd_or_large, family)


def test_a_line_with_several_accepted_intervals() -> None:
    x = np.random.default_rng(0).normal(0.3, 1.5, 60_000)

    def accepts(X: Array) -> Array:
        return (np.abs(X[:, 0]) > 1.0) & (X[:, 0] < 3.0)

    fit = fit_truncated(x[accepts(x[:, None])], accepts, Gaussian())
    assert fit.mean[0] == pytest.approx(0.3, abs=0.05)
    assert fit.covariance[0, 0] == pytest.approx(2.25, abs=0.1)
    truth = norm(0.3, 1.5)
    share = truth.cdf(-1.0) + truth.cdf(3.0) - truth.cdf(1.0)
    assert fit.acceptance == pytest.approx(share, abs=0.02)


def test_a_random_forest_as_truncation() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(1)
    training = rng.normal(size=(3_000, 2)) * 1.5
    wanted = (np.sin(1.5 * training[:, 0]) + training[:, 1] > 0.3).astype(int)
    forest = ensemble.RandomForestClassifier(8, max_depth=7, random_state=0).fit(training, wanted)

    def accepts(X: Array) -> Array:
        return np.asarray(forest.predict(X)) == 1

    mean, covariance = np.array([0.4, -0.3]), np.array([[1.5, 0.4], [0.4, 1.0]])
    everybody = rng.multivariate_normal(mean, covariance, 60_000)
    X = everybody[accepts(everybody)]
    assert 0.3 < len(X) / len(everybody) < 0.5
    fit = fit_truncated(X[:10_000], accepts, Gaussian())
    family = Gaussian()
    everywhere = lambda X: np.ones(len(X), bool)  # noqa: E731
    truth = known_law(family, family.pack(mean, covariance), everywhere)
    naive = known_law(family, family.fit(X[:10_000]), everywhere)
    assert divergence(truth, fit) <= 0.003
    assert divergence(truth, naive) > 0.3


def test_the_same_seed_gives_the_same_fit() -> None:
    X, cut = half_space_sample(0.5, seed=6, size=500)
    one, two = (
        fit_truncated(X, black_box(cut), Gaussian(), method="importance", seed=3) for _ in range(2)
    )
    assert np.array_equal(one.theta, two.theta)


def test_the_fit_prints_what_matters() -> None:
    X, cut = half_space_sample(0.5, seed=6, size=500)
    text = str(fit_truncated(X, cut, Gaussian()))
    assert "500 truncated samples (exact)" in text
    assert "acceptance" in text


# -- bad input -----------------------------------------------------------------------------------

SAMPLE, CUT = half_space_sample(0.5, seed=9, size=200)


def test_too_few_samples() -> None:
    with pytest.raises(BadData, match=r"20 truncated samples are too few .* at least 60"):
        fit_truncated(SAMPLE[:20], CUT, Gaussian())


def test_a_classifier_that_accepts_nothing() -> None:
    with pytest.raises(BadData, match="refuses 200 of the 200 people who were approved"):
        fit_truncated(SAMPLE, lambda X: np.zeros(len(X), bool), Gaussian())


def test_a_classifier_that_accepts_nothing_but_the_sample() -> None:
    known = {tuple(row) for row in SAMPLE}

    def accepts(X: Array) -> Array:
        return np.array([tuple(row) in known for row in X])

    with pytest.raises(BadData, match="nothing but the sample itself"):
        fit_truncated(SAMPLE, accepts, Gaussian("spherical"))


def test_where_nobody_is_refused_the_fit_is_the_ordinary_one() -> None:
    for sample, family in ((SAMPLE, Gaussian()), (SAMPLE[:, 0], Gaussian())):
        fit = fit_truncated(sample, lambda X: np.ones(len(X), bool), family)
        assert fit.theta == pytest.approx(family.fit(sample), rel=1e-4, abs=1e-6)
        assert fit.acceptance == pytest.approx(1.0, abs=1e-9)
        assert fit.acceptance_error < 1e-6
    far = HalfSpace([1.0] + [0.0] * (SAMPLE.shape[1] - 1), -1e3)
    assert fit_truncated(SAMPLE, far, Gaussian()).theta == pytest.approx(
        Gaussian().fit(SAMPLE), rel=1e-4, abs=1e-6
    )


def test_a_classifier_that_is_not_vectorised() -> None:
    with pytest.raises(InvalidInput, match="must be a vectorised function"):
        fit_truncated(SAMPLE, lambda x: bool(x[0] > 0), Gaussian())
    with pytest.raises(InvalidInput, match="must be a vectorised function"):
        fit_truncated(SAMPLE, lambda frame: frame["income"] > 0, Gaussian())
    with pytest.raises(InvalidInput, match="must be vectorised"):
        fit_truncated(SAMPLE, lambda X: True, Gaussian())
    with pytest.raises(InvalidInput, match="scores need a threshold"):
        fit_truncated(SAMPLE, lambda X: X[:, 0], Gaussian())
    with pytest.raises(InvalidInput, match=r"'accepts' .* 'float' object is not callable"):
        fit_truncated(SAMPLE, 0.5, Gaussian())  # type: ignore[arg-type]


def test_a_classifier_that_did_not_make_these_decisions() -> None:
    with pytest.raises(BadData, match="does not see the group"):
        fit_truncated(SAMPLE, lambda X: X[:, 0] > 1.0, Gaussian())


def test_a_singular_covariance() -> None:
    twice = np.column_stack([SAMPLE[:, 0], SAMPLE[:, 0]])
    with pytest.raises(BadData, match=r"singular .* duplicate columns"):
        fit_truncated(twice, lambda X: np.ones(len(X), bool), Gaussian())


def test_samples_outside_the_support() -> None:
    with pytest.raises(BadData, match="outside the support of the exponential family, x >= 0"):
        fit_truncated(SAMPLE[:, 0], lambda X: X[:, 0] > -99.0, Exponential())


def test_a_tail_that_no_gaussian_has() -> None:
    x = 1.0 + np.random.default_rng(0).pareto(1.5, 2_000)
    cut = HalfSpace([1.0], 1.0)
    for accepts, method in (
        (black_box(cut), "importance"),
        (black_box(cut), "auto"),
        (cut, "auto"),
    ):
        fit = fit_truncated(x, accepts, Gaussian(), method=method)
        assert any("edge of the parameter set" in w for w in fit.warnings)
        assert fit.on_edge


def test_a_family_that_is_plainly_wrong_is_reported() -> None:
    x = np.random.default_rng(0).random((20_000, 2))
    fit = fit_truncated(x[x[:, 0] > 0.3], lambda X: X[:, 0] > 0.3, Gaussian())
    assert any("these data are not Gaussian" in w for w in fit.warnings)
    uniform = x[x[:, 0] > 0.3, 0]
    right = fit_truncated(uniform, lambda X: X[:, 0] > 0.3, ContinuousBernoulli())
    assert not right.warnings


def test_an_estimate_on_the_edge_of_the_parameter_set_is_reported() -> None:
    narrow = Gaussian("full", variances=(1e-6, 1.0))
    fit = fit_truncated(SAMPLE, CUT, narrow)
    assert np.linalg.eigvalsh(fit.covariance)[-1] == pytest.approx(1.0)
    assert fit.on_edge
    assert any("edge of the parameter set" in w for w in fit.warnings)


def test_unknown_methods_and_families() -> None:
    with pytest.raises(UnknownName, match="unknown method 'sdg'"):
        fit_truncated(SAMPLE, CUT, Gaussian(), method="sdg")
    with pytest.raises(InvalidInput, match="'family' must be a family"):
        fit_truncated(SAMPLE, CUT, "gaussian")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="those of a Gaussian"):
        _ = fit_truncated(np.abs(SAMPLE[:, 0]) + 1, HalfSpace([1.0], 0.5), Exponential()).mean


def test_truncated_normal_moments_are_matched() -> None:
    """The exact one-dimensional solution solves the moment equations of a truncated normal."""
    x = np.random.default_rng(4).normal(0.0, 1.0, 20_000)
    x = x[x >= 0.7]
    fit = fit_truncated(x, HalfSpace([1.0], 0.7), Gaussian())
    law = norm(fit.mean[0], np.sqrt(fit.covariance[0, 0]))
    tail = law.sf(0.7)
    mean = law.expect(lambda v: v, lb=0.7) / tail
    assert mean == pytest.approx(x.mean(), abs=1e-6)
    assert brentq(lambda c: law.sf(c) - fit.acceptance, -2.0, 2.0) == pytest.approx(0.7, abs=1e-6)


def test_acceptance_of_a_black_box() -> None:
    plane = Gaussian("spherical")
    theta = plane.pack([0.5, 0.0], np.eye(2))
    exact = acceptance(plane, theta, HalfSpace([1.0, 0.0], 0.0))
    assert acceptance(plane, theta, lambda X: X[:, 0] >= 0.0) == pytest.approx(exact, abs=1e-3)
    share = acceptance(Exponential(), np.array([-1.0]), lambda X: X[:, 0] > 1.0)
    assert share == pytest.approx(np.exp(-1.0), abs=1e-9)
