"""What every family promises; add a family to ``FAMILIES`` to hold it to this."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.mixture import (
    Binomial,
    ContinuousBernoulli,
    ContinuousPoisson,
    Exponential,
    Family,
    Gaussian,
    Poisson,
    Weibull,
)
from equipoise.mixture.families import Array

SIGMA = np.array([[2.0, 0.6], [0.6, 1.0]])
FULL, DIAGONAL, SPHERICAL = Gaussian("full"), Gaussian("diagonal"), Gaussian("spherical")
KNOWN = Gaussian(SIGMA)
ONE = Gaussian("full")

LINE = [
    (Exponential(), [-0.5]),
    (Weibull(k=1.5), [-0.7]),
    (ContinuousBernoulli(), [2.5]),
    (ContinuousBernoulli(), [-30.0]),
    (ContinuousBernoulli(), [1e-7]),
    (ContinuousPoisson(), [1.2]),
    (ContinuousPoisson(), [-2.0]),
    (ContinuousPoisson(), [4.0]),
    (ONE, ONE.pack([1.0], [[2.0]])),
]
PLANE = [
    (FULL, FULL.pack([1.0, -2.0], SIGMA)),
    (DIAGONAL, DIAGONAL.pack([1.0, -2.0], np.diag([2.0, 0.5]))),
    (SPHERICAL, SPHERICAL.pack([1.0, -2.0], 3.0 * np.eye(2))),
    (KNOWN, KNOWN.pack([1.0, -2.0])),
]
WHOLE = [
    (Poisson(), [1.2], stats.poisson(np.exp(1.2))),
    (Poisson(), [-3.0], stats.poisson(np.exp(-3.0))),
    (Poisson(), [7.0], stats.poisson(np.exp(7.0))),
    (Binomial(n=10), [0.4], stats.binom(10, 1.0 / (1.0 + np.exp(-0.4)))),
]
FAMILIES = [
    (f, np.asarray(t, dtype=float)) for f, t in [*LINE, *PLANE, *[(f, t) for f, t, _ in WHOLE]]
]

every = pytest.mark.parametrize(
    ("family", "theta"), FAMILIES, ids=[f"{f.name}-{len(t)}-{t[0]:.3g}" for f, t in FAMILIES]
)
line = pytest.mark.parametrize(
    ("family", "theta"), FAMILIES[: len(LINE)], ids=[f"{f.name}-{t[0]:.3g}" for f, t in LINE]
)


@every
def test_the_density_integrates_to_one(family: Family, theta: Array) -> None:
    if family.discrete:
        low, high = family.reach(theta)
        total = np.exp(family.log_density(theta, np.arange(low, high + 1.0))).sum()
        assert total == pytest.approx(1.0, abs=1e-12)
    elif family.dimension(theta) == 1:
        low, high = family.reach(theta)
        pieces = np.linspace(low, high, 41)
        total = sum(
            integrate.fixed_quad(
                lambda x: np.exp(family.log_density(theta, x[:, None])), a, b, n=30
            )[0]
            for a, b in pairwise(pieces)
        )
        # Weibull's density is not smooth at 0, which costs the rule a few digits there
        assert total == pytest.approx(1.0, abs=2e-5 if family.name == "Weibull" else 1e-9)
    else:
        axis = np.linspace(-14.0, 14.0, 561)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        total = np.exp(family.log_density(theta, grid)).sum() * (axis[1] - axis[0]) ** 2
        assert total == pytest.approx(1.0, abs=1e-6)


@every
def test_the_mean_of_t_is_the_gradient_of_w(family: Family, theta: Array) -> None:
    step = 1e-5 * np.maximum(1.0, np.abs(theta))
    gradient = [
        float(family.log_partition(theta + h * e) - family.log_partition(theta - h * e)) / (2 * h)
        for h, e in zip(step, np.eye(len(theta)), strict=True)
    ]
    assert family.mean_statistics(theta) == pytest.approx(gradient, rel=1e-5, abs=1e-6)


@every
def test_the_mean_of_t_by_simulation(family: Family, theta: Array) -> None:
    """Five standard errors: a false alarm about once in 10^5 checks."""
    t = family.statistics(family.sample(theta, 40_000, np.random.default_rng(7)))
    error = t.std(axis=0) / np.sqrt(len(t))
    assert np.all(np.abs(t.mean(axis=0) - family.mean_statistics(theta)) <= 5.0 * error + 1e-9)


@line
def test_the_sampler_matches_the_density_on_the_line(family: Family, theta: Array) -> None:
    low, high = family.reach(theta)
    x = np.linspace(low, high, 20_001)
    density = np.zeros_like(x)
    inside = (x >= family.ends[0]) & (x <= family.ends[1])
    density[inside] = np.exp(family.log_density(theta, x[inside, None]))
    below = integrate.cumulative_simpson(density, x=x, initial=0.0)
    sample = family.sample(theta, 20_000, np.random.default_rng(3))[:, 0]
    p = stats.kstest(sample, lambda v: np.interp(v, x, below / below[-1])).pvalue
    assert p > 1e-4


@pytest.mark.parametrize(
    ("family", "theta", "law"), WHOLE, ids=[f"{f.name}-{t[0]:.3g}" for f, t, _ in WHOLE]
)
def test_whole_numbers_have_the_textbook_law(family: Poisson, theta: list[float], law) -> None:  # type: ignore[no-untyped-def]
    x = np.unique(law.ppf(np.linspace(0.001, 0.999, 200)))
    assert family.log_density(theta, x) == pytest.approx(law.logpmf(x), abs=1e-9)
    assert family.mean_statistics(np.array(theta))[0] == pytest.approx(law.mean(), rel=1e-9)
    assert family._moments(theta[0])[1] == pytest.approx(law.var(), rel=1e-9)
    u = np.linspace(0.0005, 0.9995, 999)
    assert (family.from_uniforms(np.array(theta), u[:, None])[:, 0] == law.ppf(u)).all()


@pytest.mark.parametrize(("family", "theta"), PLANE, ids=lambda v: str(len(np.atleast_1d(v))))
def test_the_sampler_matches_the_moments_in_the_plane(family: Gaussian, theta: Array) -> None:
    mean, covariance = family.unpack(theta)
    x = family.sample(theta, 40_000, np.random.default_rng(5))
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (x - mean).T)
    assert stats.kstest(whitened.ravel(), "norm").pvalue > 1e-4


@every
def test_from_uniforms_agrees_with_the_sampler(family: Family, theta: Array) -> None:
    d = family.dimension(theta)
    grid = stats.qmc.Sobol(d, seed=1).random(2**14)
    t = family.statistics(family.from_uniforms(theta, grid))
    scale = t.std(axis=0) + 1e-12
    assert np.all(np.abs(t.mean(axis=0) - family.mean_statistics(theta)) <= 0.01 * scale)


@every
def test_the_mean_map_is_inverted(family: Family, theta: Array) -> None:
    back = family.theta_from_mean(family.mean_statistics(theta))
    assert back == pytest.approx(theta, rel=1e-6, abs=1e-6)


@every
def test_projection_stays_inside_and_moves_nothing_inside(family: Family, theta: Array) -> None:
    assert family.project(theta) == pytest.approx(theta)
    far = family.project(theta + 1e13)
    assert family.project(far) == pytest.approx(far)


def test_projection_of_a_precision_clips_its_eigenvalues() -> None:
    family = Gaussian("full", variances=(0.5, 4.0))
    theta = family._flatten(np.zeros(2), np.array([[5.0, 0.0], [0.0, -1.0]]))
    _, precision = family.natural(family.project(theta))
    assert np.linalg.eigvalsh(precision) == pytest.approx([0.25, 2.0])


@pytest.mark.parametrize(
    "family",
    [
        Exponential(bounds=(-2.0, -0.5)),
        Weibull(bounds=(-2.0, -0.5), k=2.0),
        ContinuousBernoulli(bounds=(-3.0, 5.0)),
        ContinuousPoisson(bounds=(-1.0, 2.0)),
        Poisson(bounds=(-1.0, 2.0)),
        Binomial(bounds=(-1.0, 2.0), n=7),
    ],
    ids=lambda f: f.name,
)
def test_curvature_bounds_hold_on_the_line(family: Exponential) -> None:
    low, high = family.bounds
    kappa, lam, lipschitz = family.curvature(
        np.array([[(low + high) / 2.0]]), radius=(high - low) / 2.0
    )
    for theta in np.linspace(low, high, 50):
        assert kappa <= family._moments(theta)[1] * (1 + 1e-4)
        assert family._moments(theta)[1] <= lam * (1 + 1e-4)
        assert abs(family.mean_statistics(np.array([theta]))[0]) <= lipschitz * (1 + 1e-9)


@pytest.mark.parametrize("structure", ["full", "diagonal", "spherical"])
def test_curvature_bounds_hold_for_a_gaussian(structure: str) -> None:
    family, radius = Gaussian(structure), 0.4
    centre = family.pack([0.8, -0.3], [[1.2, 0.0], [0.0, 0.9]])
    kappa, lam, lipschitz = family.curvature(centre, radius)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=len(centre))
        theta = centre + radius * step / np.linalg.norm(step)
        t = family.statistics(family.sample(theta, 20_000, rng))
        values = np.linalg.eigvalsh(np.cov(t.T))
        assert kappa <= values[0] * 1.1
        assert values[-1] <= lam * 1.1
        assert np.linalg.norm(family.mean_statistics(theta)) <= lipschitz + 1e-9
    with pytest.raises(InvalidInput, match="reaches beyond the Gaussian laws"):
        family.curvature(centre, radius=5.0)


def test_the_table_of_the_paper_is_wrong_about_the_continuous_poisson() -> None:
    family, theta = ContinuousPoisson(), np.array([0.0])
    assert float(family.log_partition(theta)) == pytest.approx(0.818, abs=5e-4)
    assert family.mean_statistics(theta)[0] == pytest.approx(1.239, abs=5e-4)
    assert family._moments(0.0)[1] == pytest.approx(0.862, abs=5e-4)


def test_bad_families_and_points_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'k' must be at least 1"):
        Weibull(k=0.5)
    with pytest.raises(InvalidInput, match="'n' must be a whole number of at least 1"):
        Binomial(n=0)
    with pytest.raises(BadData, match="outside the support of the binomial family"):
        Binomial(n=3).points([1.0, 4.0])
    with pytest.raises(InvalidInput, match="'bounds' of the exponential family"):
        Exponential(bounds=(-1.0, 1.0))
    with pytest.raises(UnknownName, match="Did you mean 'diagonal'"):
        Gaussian("diagonl")
    with pytest.raises(BadData, match="singular"):
        Gaussian([[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(InvalidInput, match="symmetric"):
        Gaussian([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(BadData, match="1 of 2 rows of 'X' lie outside the support"):
        Exponential().points([1.0, -1.0])
    with pytest.raises(
        InvalidInput, match="'X' has 2 columns, and points of this exponential family have 1"
    ):
        Exponential().points(np.ones((3, 2)))
    with pytest.raises(BadData, match="missing or infinite"):
        FULL.points([[np.nan, 1.0]])
    with pytest.raises(InvalidInput, match="must hold numbers"):
        FULL.points([["a", "b"]])
    with pytest.raises(InvalidInput, match="points of this Gaussian family have 2"):
        KNOWN.points(np.ones((3, 3)))
