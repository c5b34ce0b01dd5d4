"""Bounds of the gap while every unknown ranges over its limits: against brute force."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.free_check import (
    bands_from_past,
    gap_bounds,
    rate_intervals,
)
from equipoise.history import History
from equipoise.metrics import METRICS
from equipoise.rates import Bands
from equipoise.worlds import CellWorld
from tests.profiles import examples


def gap(low: float, high: float, compare: GapScale) -> float:
    """How far a lower rate is from a higher one, by the definition."""
    if compare is GapScale.DIFFERENCE:
        return high - low
    return (high - low) / high if high > 0.0 else 0.0


def brute_force(
    bands: Bands, r_ranges: dict[str, tuple[float, float]], compare: GapScale
) -> tuple[float, float]:
    """Return the least and largest gap over a grid of r and all curves of the bands."""
    groups = list(r_ranges)
    grids = [np.linspace(*r_ranges[g], 25) for g in groups]
    least = np.inf
    largest = 0.0
    for r in product(*grids):
        low = {
            rate: [float(by[g].low.value(x)) for g, x in zip(groups, r, strict=True)]
            for rate, by in bands.items()
        }
        high = {
            rate: [float(by[g].high.value(x)) for g, x in zip(groups, r, strict=True)]
            for rate, by in bands.items()
        }
        apart = max(gap(min(high[rate]), max(low[rate]), compare) for rate in bands)
        least = min(least, max(apart, 0.0))
        largest = max(
            largest,
            *(
                gap(low[rate][b], high[rate][a], compare)
                for rate in bands
                for a, b in permutations(range(len(groups)), 2)
            ),
        )
    return least, largest


def largest_step(rates: np.ndarray, compare: GapScale) -> float:  # type: ignore[type-arg]
    """The most that the gap can change from one point of a grid to the next."""
    pairs = zip(np.minimum(rates[1:], rates[:-1]), np.maximum(rates[1:], rates[:-1]), strict=True)
    return max(gap(float(low), float(high), compare) for low, high in pairs)


def random_case(seed: int, k: int) -> tuple[Bands, dict[str, tuple[float, float]], GapScale]:
    rng = np.random.default_rng(seed)
    cells = Cells({f"g{i}": GroupCells(*(1 + rng.integers(0, 200, size=3))) for i in range(k)})
    past = History.from_cells(cells)
    bands = bands_from_past(
        past, str(rng.choice(list(METRICS))), None if rng.random() < 0.5 else 0.01
    )
    ends = np.sort(rng.uniform(size=(k, 2)), axis=1)
    if rng.random() < 0.3:
        ends[:, 0] = 0.0
        ends[:, 1] = 1.0
    r_ranges = {f"g{i}": (float(a), float(b)) for i, (a, b) in enumerate(ends)}
    return bands, r_ranges, tuple(GapScale)[seed % 2]


@examples(20)
@given(st.integers(0, 2**40))
def test_bounds_of_delta_hold_and_are_tight(seed: int) -> None:
    bands, r_ranges, compare = random_case(seed, 2)
    lower, upper = gap_bounds(bands, r_ranges, compare=compare)
    least, largest = brute_force(bands, r_ranges, compare)
    assert lower <= least + 1e-9
    assert upper >= largest - 1e-9
    assert upper == pytest.approx(largest, abs=1e-9)  # attained at ends of the ranges
    # The grid misses the least gap by at most one step of either group's rates.
    coarse = sum(
        largest_step(curve.value(np.linspace(*r_ranges[g], 25)), compare)
        for by_group in bands.values()
        for g, band in by_group.items()
        for curve in (band.low, band.high)
    )
    assert lower >= least - coarse


@examples(3)
@given(st.integers(0, 2**40))
def test_bounds_of_delta_hold_for_three_groups(seed: int) -> None:
    bands, r_ranges, compare = random_case(seed, 3)
    r_ranges = {g: (a, min(b, a + 0.15)) for g, (a, b) in r_ranges.items()}
    lower, upper = gap_bounds(bands, r_ranges, compare=compare)
    rng = np.random.default_rng(seed)
    for _ in range(300):
        point = {g: (x, x) for g, (a, b) in r_ranges.items() for x in [float(rng.uniform(a, b))]}
        least, largest = gap_bounds(bands, point, compare=compare)
        assert lower <= least + 1e-9
        assert largest <= upper + 1e-9


def test_a_point_has_the_difference_of_the_metric() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    points = {group: (r, r) for group, r in world.r.items()}
    for metric, compare in product(METRICS, GapScale):
        bands = bands_from_past(world.past(), metric, None)
        lower, upper = gap_bounds(bands, points, compare=compare)
        assert upper == pytest.approx(world.gap(metric, compare), abs=1e-12)
        assert lower == pytest.approx(world.gap(metric, compare), abs=2e-6)


def test_rates_are_reported_over_the_range_of_r() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    bands = bands_from_past(world.past(), "equal_opportunity", None)
    rates = rate_intervals(bands, {"A": (0.0, 0.5), "B": (1.0, 1.0)})["true_positive_rate"]
    assert (rates["A"].lower, rates["A"].upper) == pytest.approx((0.5, 1.0))
    assert rates["B"].lower == rates["B"].upper == pytest.approx(1.0 / 9.0)
