"""Bands of rates from finite pasts: exact bounds, counted out over every possible past."""

from __future__ import annotations

from itertools import product
from math import comb, factorial

import numpy as np
import pytest

from equipoise.cells import Cells, GroupCells
from equipoise.free_check import bands_from_past
from equipoise.history import History
from equipoise.metrics import METRICS
from equipoise.rates import clopper_pearson
from equipoise.worlds import CellWorld

GRID = np.linspace(0.0, 1.0, 33)


@pytest.mark.parametrize("trials", [1, 2, 9, 30])
@pytest.mark.parametrize("alpha", [0.2, 0.025, 1e-4])
def test_each_bound_misses_with_probability_at_most_alpha(trials: int, alpha: float) -> None:
    bounds = [clopper_pearson(k, trials, alpha) for k in range(trials + 1)]
    for p in np.linspace(0.0, 1.0, 101):
        law = [comb(trials, k) * p**k * (1.0 - p) ** (trials - k) for k in range(trials + 1)]
        below = sum(w for w, (low, _) in zip(law, bounds, strict=True) if low > p)
        above = sum(w for w, (_, high) in zip(law, bounds, strict=True) if high < p)
        assert max(below, above) <= alpha + 1e-12


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shares", [(0.3, 0.2, 0.5), (0.05, 0.15, 0.8), (0.6, 0.0, 0.4)])
def test_a_curve_of_a_band_fails_with_probability_at_most_alpha(
    metric: str, shares: tuple[float, float, float]
) -> None:
    """Over all pasts of 12 people, added up exactly."""
    alpha, people = 0.1, 12
    rates = {rate.name: rate for rate in METRICS[metric].rates}
    missed = {rate: [0.0, 0.0] for rate in rates}
    for p1, p0 in product(range(people + 1), repeat=2):
        counts = (p1, p0, people - p1 - p0)
        if counts[2] < 0:
            continue
        ways = factorial(people) / np.prod([factorial(c) for c in counts])
        chance = float(ways * np.prod([s**c for s, c in zip(shares, counts, strict=True)]))
        past = History.from_cells(Cells({"A": GroupCells(*counts), "B": GroupCells(1, 1, 1)}))
        for rate, by_group in bands_from_past(past, metric, alpha).items():
            curve = rates[rate].curve(*shares)
            assert curve is not None
            truth, band = curve.value(GRID), by_group["A"]
            missed[rate][0] += chance * bool((band.low.value(GRID) > truth + 1e-12).any())
            missed[rate][1] += chance * bool((band.high.value(GRID) < truth - 1e-12).any())
    assert all(share <= alpha for both in missed.values() for share in both)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "counts", [(30, 10, 60), (0, 10, 60), (30, 0, 60), (0, 0, 60), (30, 10, 0), (1, 0, 0)]
)
def test_bands_hold_the_plug_in_curve_and_narrow_with_alpha(
    metric: str, counts: tuple[int, int, int]
) -> None:
    cells = Cells({"A": GroupCells(*counts), "B": GroupCells(5, 5, 5)})
    past = History.from_cells(cells)
    wide, narrow = (bands_from_past(past, metric, alpha) for alpha in (1e-3, 0.1))
    for rate in METRICS[metric].rates:
        curve = rate.curve(*cells["A"].shares)
        outer, inner = wide[rate.name]["A"], narrow[rate.name]["A"]
        low, high = inner.low.value(GRID), inner.high.value(GRID)
        assert (outer.low.value(GRID) <= low + 1e-15).all()
        assert (outer.high.value(GRID) >= high - 1e-15).all()
        if curve is not None:
            assert (low <= curve.value(GRID) + 1e-12).all()
            assert (curve.value(GRID) <= high + 1e-12).all()


def test_an_exact_past_needs_no_alpha() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    bands = bands_from_past(world.past(), "equalized_odds", 0.01)
    assert bands == bands_from_past(world.past(), "equalized_odds", None)
    for by_group in bands.values():
        for band in by_group.values():
            assert band.low == band.high
            assert band.depends_on_r


def test_a_rate_without_people_may_be_anything() -> None:
    world = CellWorld(
        Cells({"A": GroupCells(0, 10, 0), "B": GroupCells(5, 5, 5)}), {"A": 0.0, "B": 0.5}
    )
    band = bands_from_past(world.past(), "equal_opportunity", None)["true_positive_rate"]["A"]
    assert (float(band.low.value(0.5)), float(band.high.value(0.5))) == (0.0, 1.0)
    assert not band.depends_on_r
