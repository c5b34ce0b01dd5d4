"""TruncEst as printed: its projection, its fresh samples, its choice, and what it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise.errors import BadData, InvalidInput
from equipoise.mixture import (
    Exponential,
    Gaussian,
    HalfSpace,
    StructuralConstants,
    fit_truncated,
    trunc_est,
)
from equipoise.mixture.families import Array
from equipoise.mixture.trunc_est import Ball
from tests.profiles import quick

pytestmark = pytest.mark.slow

LATE = HalfSpace([1.0], offset=1.0)
FAMILY = Exponential(bounds=(-2.0, -0.1))
CONSTANTS = StructuralConstants(kappa=0.25, lam=100.0, lipschitz=10.0, alpha=0.3)


def late(size: int = 40_000, seed: int = 0) -> Array:
    X = np.random.default_rng(seed).exponential(2.0, (size, 1))
    return X[LATE(X)]


FEW_STEPS = ((20, 0.02), (100, 0.01), (600, 0.002))
MANY_STEPS = ((20, 0.02), (200, 0.005), (2_000, 0.001))


def test_more_steps_come_nearer_to_the_exact_fit() -> None:
    X = late(200_000)
    exact = fit_truncated(X, LATE, FAMILY).theta[0]
    errors = []
    for m, eta in quick(FEW_STEPS, full=MANY_STEPS):
        found = trunc_est(X, LATE, FAMILY, 0.1, 0.3, CONSTANTS, n=1_000, m=m, eta=eta)
        assert found.candidates.shape == (20, 1)
        errors.append(np.sqrt(((found.candidates - exact) ** 2).mean()))
    assert errors[2] < errors[1] < errors[0]
    assert found.settled
    assert found.theta in found.candidates  # a candidate, not their mean
    assert abs(found.theta[0] - exact) < 0.1


def test_the_theorems_own_counts_are_out_of_reach_and_said() -> None:
    with pytest.raises(BadData, match=r"reads 10\^\d+ truncated samples"):
        trunc_est(late(), LATE, FAMILY, 0.1, 0.05, CONSTANTS)
    with pytest.raises(BadData, match="reads 60,500 truncated samples, one a step in 30 repeats"):
        trunc_est(late(), LATE, FAMILY, 0.1, 0.05, CONSTANTS, n=500, m=2_000, eta=0.01)


@pytest.mark.parametrize(("n", "m"), [(100, 3), (10, 9), (6, 6)])
def test_as_many_samples_as_said_are_read(n: int, m: int) -> None:
    """A count was taken through its logarithm, which rounded 100 up to 101."""
    X = late()[: n + 20 * m]
    assert len(trunc_est(X, LATE, FAMILY, 0.1, 0.3, CONSTANTS, n=n, m=m, eta=0.01).candidates) == 20


@pytest.mark.parametrize(
    "wrong",
    [
        *({"n": 0}, {"m": -3}, {"n": 2.5}, {"m": "50"}, {"eta": 0.0}, {"eta": np.nan}),
        *({"epsilon": 2.0}, {"X": np.empty((0, 1))}, {"family": "gaussian"}, {"constants": None}),
    ],
)
def test_arguments_are_refused_by_name(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"X": late(), "accepts": LATE, "family": FAMILY, "epsilon": 0.1}
    given |= {"delta": 0.3, "constants": CONSTANTS, "n": 100, "m": 5, "eta": 0.01}
    with pytest.raises(InvalidInput, match=f"'{next(iter(wrong))}' (must|has)"):
        trunc_est(**{**given, **wrong})


def test_no_majority_is_not_settled() -> None:
    """Two huge steps: the candidates lie all over Theta, and none has half of them around it."""
    family = Exponential(bounds=(-1e3, -1e-3))
    found = trunc_est(late(), LATE, family, 1e-4, 0.3, CONSTANTS, n=100, m=2, eta=0.5)
    assert not found.settled


def test_the_projection_is_the_nearest_point_of_ball_and_theta() -> None:
    """Against a fine grid of the intersection, in two dimensions."""
    family, rng = Gaussian(np.eye(2), longest=2.0), np.random.default_rng(0)
    start, radius = np.array([1.5, 0.0]), 1.0
    axis = np.linspace(-3.0, 3.0, 1_201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    inside = (np.linalg.norm(grid, axis=1) <= 2.0) & (
        np.linalg.norm(grid - start, axis=1) <= radius
    )
    both = grid[inside]
    for theta in rng.normal(scale=3.0, size=(20, 2)):
        found = Ball(start, radius).project(theta, family)
        best = np.linalg.norm(both - theta, axis=1).min()
        assert np.linalg.norm(found) <= 2.0 + 1e-6
        assert np.linalg.norm(found - start) <= radius + 1e-6
        assert np.linalg.norm(found - theta) == pytest.approx(best, abs=0.01)


def test_a_classifier_that_lets_nothing_through_stops() -> None:
    X = late(2_000)
    with pytest.raises(BadData, match="nothing through near the sample"):
        trunc_est(
            *(X, lambda Z: np.isin(Z[:, 0], X[:, 0]), FAMILY, 0.1, 0.3, CONSTANTS),
            n=100,
            m=5,
            eta=0.01,
        )
