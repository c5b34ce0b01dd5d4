from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from equipoise.errors import InvalidInput
from equipoise.mixture import (
    Exponential,
    Gaussian,
    HalfSpace,
    TruncatedFit,
    Weibull,
    acceptance,
    fit_truncated,
    known_law,
    likelihood_weight,
    log_ratio,
)
from equipoise.mixture.families import Array
from equipoise.mixture.weights import (
    ExpConstants,
    FeatureCounts,
    Labelled,
    Pair,
    choose_branch,
    foresee_weight,
    map_bias,
    solve_weight,
)

FAMILY = Gaussian("full")
ANYBODY = HalfSpace([1.0], 0.0)


def laws(separation: float) -> tuple[TruncatedFit, TruncatedFit]:
    zero, one = (known_law(FAMILY, FAMILY.pack([m], [[1.0]]), ANYBODY) for m in (0.0, separation))
    return zero, one


def people(q: float, separation: float, size: int, rng: np.random.Generator) -> Array:
    outcome = rng.random(size) < q
    return (rng.standard_normal(size) + separation * outcome)[:, None]


def test_the_weight_maximises_the_likelihood() -> None:
    ratio = np.random.default_rng(0).normal(-0.3, 1.5, 500)
    best = minimize_scalar(
        lambda q: -np.log(q * np.exp(ratio) + 1.0 - q).sum(),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert solve_weight(ratio) == pytest.approx(best.x, abs=1e-6)


def test_a_weight_at_the_end_of_its_range() -> None:
    assert solve_weight(np.full(50, -3.0)) == pytest.approx(0.0, abs=1e-9)
    assert solve_weight(np.full(50, 3.0)) == pytest.approx(1.0, abs=1e-9)
    assert solve_weight(np.array([-800.0, 800.0])) == pytest.approx(0.5)


@pytest.mark.parametrize("q", [0.1, 0.3])
@pytest.mark.parametrize("separation", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
def test_likelihood_weights_have_no_bias_where_map_counts_do(q: float, separation: float) -> None:
    """One large sample: the estimate is within 1% of q plus four of its standard errors."""
    fits = laws(separation)
    X = people(q, separation, 400_000, np.random.default_rng(int(10 * separation)))
    weight = likelihood_weight(X, fits)
    assert abs(weight.estimate - q) <= 0.01 * q + 4.0 * weight.standard_error
    counts = FeatureCounts(fits, odds=q / (1.0 - q))
    counts.add(X)
    bias = counts.map_weight(0.0).estimate / q - 1.0
    if q == 0.3:
        published = {1.0: -0.43, 2.0: -0.10, 3.0: -0.024}
        if separation in published:
            assert bias == pytest.approx(published[separation], abs=0.015)


def test_uncertain_laws_widen_the_interval() -> None:
    rng = np.random.default_rng(5)
    cut = HalfSpace([1.0], 0.5)
    fits = []
    for mean in (0.0, 2.0):
        x = rng.normal(mean, 1.0, 40_000)[:, None]
        fits.append(fit_truncated(x[cut(x)][:3_000], cut, FAMILY))
    X = people(0.3, 2.0, 20_000, rng)
    weight = likelihood_weight(X, (fits[0], fits[1]))
    assert weight.theta_error > 2.0 * weight.sampling_error
    assert weight.standard_error == np.hypot(weight.sampling_error, weight.theta_error)
    assert abs(weight.estimate - 0.3) <= 1.96 * weight.standard_error


def test_laws_of_different_families_can_be_weighed() -> None:
    exponential = Exponential()
    zero = known_law(exponential, np.array([-2.0]), lambda X: X[:, 0] > 0.1)
    one = known_law(FAMILY, FAMILY.pack([4.0], [[0.25]]), ANYBODY)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.exponential(0.5, 7_000), rng.normal(4.0, 0.5, 3_000)])
    assert likelihood_weight(X, (zero, one)).estimate == pytest.approx(0.3, abs=0.005)


def test_a_handful_of_features_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 2 feature vectors"):
        likelihood_weight([[1.0]], laws(2.0))


# -- telling laws apart --------------------------------------------------------------------------


def labelled(q: float, separation: float, size: int, seed: object) -> Labelled:
    rng = np.random.default_rng(seed)  # type: ignore[arg-type]
    outcome = (rng.random(size) < q).astype(np.int8)
    return Labelled((rng.standard_normal(size) + separation * outcome)[:, None], outcome)


@pytest.mark.parametrize("separation", [2.0, 3.0, 6.0])
@pytest.mark.parametrize("assumed", [2.0, 4.0, 6.0])
def test_the_bias_of_map_counts_is_known_whatever_the_laws(
    separation: float, assumed: float
) -> None:
    """Laws that are not the fitted ones too: off by more in at most 3 of 300 at a level of 1%."""
    q, fits, coarse = 0.3, laws(assumed), (0.72, 0.29)
    cut = assumed / 2.0 + np.log(coarse[0] / coarse[1]) / assumed
    true = (1.0 - q) * float(ndtr(-cut)) - q * float(ndtr(cut - separation))
    off = 0
    for seed in range(300):
        bias, error = map_bias(fits, coarse, labelled(q, separation, 2_000, seed), level=0.01)
        off += abs(bias - true) > error
    assert off <= 3


def test_more_labels_show_the_bias_better() -> None:
    few, many = (
        map_bias(laws(4.0), (0.5, 0.5), labelled(0.5, 4.0, n, 0), level=1e-3)[1]
        for n in (1_000, 16_000)
    )
    assert many < few / 2.5


def fitted(separation: float, size: int, offset: float, seed: int) -> Pair:
    """Return laws fitted to few people whom a cut across the separation lets through."""
    rng, cut = np.random.default_rng(seed), HalfSpace(np.eye(5)[1], offset)
    fits = []
    for mean in (0.0, separation):
        x = rng.normal(mean * np.eye(5)[0], 1.0, (20_000, 5))
        fits.append(fit_truncated(x[cut(x)][:size], cut, Gaussian("spherical")))
    return fits[0], fits[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("separation", "way"), [(2.0, "fallback"), (3.0, "fallback"), (6.0, "map")]
)
def test_map_counts_where_acceptances_are_vague(separation: float, way: str, seed: int) -> None:
    """They use no acceptance; they need a bias that labels show to within what the proof allows."""
    fits, constants = fitted(separation, 150, 1.5, seed), ExpConstants(0.25, 0.025, 2)
    assert max(fit.acceptance_error / fit.acceptance for fit in fits) > 0.2
    rng, q, allowed = np.random.default_rng([seed, 1]), 0.3, 0.25 * 0.3 / 12.0

    def arrivals(size: int) -> Labelled:
        outcome = (rng.random(size) < q).astype(np.int8)
        return Labelled(rng.normal(separation * np.outer(outcome, np.eye(5)[0])), outcome)

    people = arrivals(round(constants.coarse_tau * (1.0 / q + 1.0 / (1.0 - q))))
    branch = choose_branch(fits, (1.0 - q, q), constants, labelled=people)
    assert branch.way == way
    assert "the labels show the bias of MAP counts" in branch.why
    if way == "map":
        counts = FeatureCounts(fits, odds=q / (1.0 - q))
        counts.add(arrivals(400_000).features)
        weight = counts.map_weight(branch.bias).estimate
        assert abs(weight - q) <= allowed + 4.0 * np.sqrt(q * (1.0 - q) / 400_000)


def test_foresight_agrees_with_what_comes() -> None:
    fits = laws(2.0)
    information, error = foresee_weight(fits, 0.3)
    weight = likelihood_weight(people(0.3, 2.0, 100_000, np.random.default_rng(2)), fits)
    assert error == 0.0
    assert information == pytest.approx(1.0 / (weight.size * weight.sampling_error**2), rel=0.05)


def test_acceptance_of_a_black_box() -> None:
    plane = Gaussian("spherical")
    theta = plane.pack([0.5, 0.0], np.eye(2))
    exact = acceptance(plane, theta, HalfSpace([1.0, 0.0], 0.0))
    assert acceptance(plane, theta, lambda X: X[:, 0] >= 0.0) == pytest.approx(exact, abs=1e-3)
    share = acceptance(Exponential(), np.array([-1.0]), lambda X: X[:, 0] > 1.0)
    assert share == pytest.approx(np.exp(-1.0), abs=1e-9)


def test_the_oracle_of_two_families_changes_its_mind_twice() -> None:
    narrow = known_law(Weibull(k=3.0), np.array([-1.0]), ANYBODY)
    wide = known_law(Exponential(), np.array([-1.0]), ANYBODY)
    x = wide.family.sample(wide.theta, 2_000, np.random.default_rng(0))
    assert 0.3 < float((log_ratio((wide, narrow), x) > 0.0).mean()) < 0.5


def test_laws_that_are_alike_tell_nothing() -> None:
    assert foresee_weight(laws(0.0), 0.3)[0] == pytest.approx(0.0, abs=1e-9)
    assert choose_branch(laws(0.0), (0.3, 0.7), ExpConstants(0.25, 0.025, 2)).way == "fallback"
