"""Single bets, where they are most likely to be on the wrong side: at the edges."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from equipoise.evidence.bets import UNFAIR_SIZES, Sizes, fair_sizes, plug_in, ratios

TINY = (0.0, 1e-12, 4e-10, 2e-9, 1e-3)
EDGES = [*TINY, 0.3, *(1.0 - x for x in reversed(TINY))]


def mean(one: np.ndarray, zero: np.ndarray, lam: float) -> float:
    return float((lam * one + (1.0 - lam) * zero).max())


@pytest.mark.parametrize(("low", "high"), [*combinations_with_replacement(EDGES, 2)])
def test_a_bet_that_follows_the_estimate_is_legal_in_its_box(low: float, high: float) -> None:
    for estimate in (1e-11, 5e-10, 1.5e-9, 0.2, 0.9, 1.0 - 1.5e-9, 1.0 - 5e-10):
        one, zero = plug_in(
            np.array([low]), np.array([high]), np.array([estimate]), np.array([[0.6, 1.4]])
        )
        assert one.min() > 0.0
        assert zero.min() > 0.0
        assert max(mean(one, zero, lam) for lam in (low, high)) <= 1.0 + 1e-12
        if low <= estimate <= high:
            assert mean(one, zero, low) == mean(one, zero, high) == 1.0


@pytest.mark.parametrize("lam", EDGES)
def test_a_bet_beyond_a_corner_is_legal_on_the_near_side(lam: float) -> None:
    for rho in EDGES:
        one, zero = ratios(np.array([[rho]]), np.array([lam]))
        for other in EDGES:
            if (other - lam) * (rho - lam) <= 0.0:
                assert mean(one, zero, other) <= 1.0 + 1e-12


@pytest.mark.parametrize("sizes", [UNFAIR_SIZES, fair_sizes(0.1, 0.05), fair_sizes(0.01, 0.009)])
def test_weights_share_out_the_stake(sizes: Sizes) -> None:
    assert sum(sizes.weights) == pytest.approx(1.0, abs=1e-15)
    assert len(sizes.weights) == len(sizes.steps)
    assert min(sizes.steps) > 0.0
    assert 0.0 <= sizes.aimed <= 1.0
