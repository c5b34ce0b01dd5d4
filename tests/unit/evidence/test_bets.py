"""Single bets, where they are most likely to be on the wrong side: at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.evidence.bets import UNFAIR_SIZES, bet_shares, fair_sizes, ratios

TINY = (0.0, 1e-12, 4e-10, 2e-9, 1e-3)
EDGES = [*TINY, 0.3, *(1.0 - x for x in reversed(TINY))]


def mean(one: np.ndarray, zero: np.ndarray, lam: float) -> float:
    return float((lam * one + (1.0 - lam) * zero).max())


@pytest.mark.parametrize("lam", EDGES)
def test_a_bet_beyond_a_corner_is_legal_on_the_near_side(lam: float) -> None:
    for rho in EDGES:
        _, one, zero = ratios(np.array([[rho]]), np.array([lam]))
        for other in EDGES:
            if (other - lam) * (rho - lam) <= 0.0:
                assert mean(one, zero, other) <= 1.0 + 1e-12


@pytest.mark.parametrize("sizes", [UNFAIR_SIZES, fair_sizes(0.1, 0.05), fair_sizes(0.01, 0.009)])
def test_shares_divide_the_stake(sizes: tuple[float, ...]) -> None:
    assert bet_shares(len(sizes)).sum() == pytest.approx(1.0, abs=1e-15)
    assert min(sizes) > 0.0
