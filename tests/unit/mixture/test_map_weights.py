from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from equipoise.mixture import (
    Gaussian,
    HalfSpace,
    TruncatedFit,
    fit_truncated,
    known_law,
)
from equipoise.mixture.families import Array
from equipoise.mixture.likelihood_weights import Pair
from equipoise.mixture.map_weights import (
    ExpConstants,
    FeatureCounts,
    Labelled,
    choose_branch,
    map_bias,
)

FAMILY = Gaussian("full")
ANYBODY = HalfSpace([1.0], 0.0)


def laws(separation: float) -> tuple[TruncatedFit, TruncatedFit]:
    zero, one = (known_law(FAMILY, FAMILY.pack([m], [[1.0]]), ANYBODY) for m in (0.0, separation))
    return zero, one


def people(q: float, separation: float, size: int, rng: np.random.Generator) -> Array:
    outcome = rng.random(size) < q
    return (rng.standard_normal(size) + separation * outcome)[:, None]


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
