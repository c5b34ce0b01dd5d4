"""Single bets, where they are most likely to be on the wrong side: at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.cells import Cells, GroupCells
from equipoise.evidence import WrongAnswers
from equipoise.evidence.bets import bet_shares, fair_sizes, log_factors, unfair_sizes
from equipoise.evidence.wrong_answers import fair_covers
from equipoise.free_check import bands_from_past
from equipoise.history import Past

TINY = (0.0, 1e-12, 4e-10, 2e-9, 1e-3)
EDGES = [*TINY, 0.3, *(1.0 - x for x in reversed(TINY))]


def mean(one: np.ndarray, zero: np.ndarray, lam: float) -> float:
    return float((lam * one + (1.0 - lam) * zero).max())


@pytest.mark.parametrize("lam", EDGES)
def test_a_bet_beyond_a_corner_is_legal_on_the_near_side(lam: float) -> None:
    for rho in EDGES:
        with np.errstate(divide="ignore"):
            zero, one = np.exp(log_factors(np.array([rho]), np.array([lam])))
        for other in EDGES:
            if (other - lam) * (rho - lam) <= 0.0:
                assert mean(one, zero, other) <= 1.0 + 1e-12


@pytest.mark.parametrize(
    "sizes",
    [unfair_sizes(0.05), unfair_sizes(0.003), fair_sizes(0.1, 0.05), fair_sizes(0.01, 0.009)],
)
def test_shares_divide_the_stake(sizes: tuple[float, ...]) -> None:
    assert bet_shares(len(sizes)).sum() == pytest.approx(1.0, abs=1e-15)
    assert min(sizes) > 0.0


def test_bets_against_equality_go_by_the_rate_that_moves_most() -> None:
    """At gamma = 0 and groups alike the frontiers of both rates are one and the same line."""
    alike = Cells({group: GroupCells(10, 10, 80) for group in "AB"})
    rates = tuple(
        tuple(by.values()) for by in bands_from_past(Past(alike), "equalized_odds", None).values()
    )
    wrong = WrongAnswers(rates, rates, 0.0, 0.05, 0.05, 0.05)
    truth = 0.175, 0.125  # TPR 0.417 and 0.5
    one_way, other_way = fair_covers(wrong)  # the past does not say which group comes first
    for cells, r in ((one_way, truth), (other_way, truth[::-1])):
        growth = sum(
            lam * one + (1.0 - lam) * zero
            for lam, (zero, one) in zip(r, cells.log_factor, strict=True)
        )
        assert (growth.max(axis=1) > 0.0).all()  # some bet wins against every cell
