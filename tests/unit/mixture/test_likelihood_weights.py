from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from equipoise.errors import InvalidInput
from equipoise.mixture import (
    Exponential,
    Gaussian,
    HalfSpace,
    TruncatedFit,
    Weibull,
    fit_truncated,
    known_law,
    likelihood_weight,
    log_ratio,
)
from equipoise.mixture.families import Array
from equipoise.mixture.likelihood_weights import foresee_weight, solve_weight
from equipoise.mixture.map_weights import (
    ExpConstants,
    FeatureCounts,
    choose_branch,
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


def test_foresight_agrees_with_what_comes() -> None:
    fits = laws(2.0)
    information, error = foresee_weight(fits, 0.3)
    weight = likelihood_weight(people(0.3, 2.0, 100_000, np.random.default_rng(2)), fits)
    assert error == 0.0
    assert information == pytest.approx(1.0 / (weight.size * weight.sampling_error**2), rel=0.05)


def test_the_oracle_of_two_families_changes_its_mind_twice() -> None:
    narrow = known_law(Weibull(k=3.0), np.array([-1.0]), ANYBODY)
    wide = known_law(Exponential(), np.array([-1.0]), ANYBODY)
    x = wide.family.sample(wide.theta, 2_000, np.random.default_rng(0))
    assert 0.3 < float((log_ratio((wide, narrow), x) > 0.0).mean()) < 0.5


def test_laws_that_are_alike_tell_nothing() -> None:
    assert foresee_weight(laws(0.0), 0.3)[0] == pytest.approx(0.0, abs=1e-9)
    assert choose_branch(laws(0.0), (0.3, 0.7), ExpConstants(0.25, 0.025, 2)).way == "fallback"
