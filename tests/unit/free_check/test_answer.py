"""What the past alone establishes: against brute force, and in every special case."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cells import Cells, GroupCells
from equipoise.comparison import GapScale
from equipoise.free_check import (
    CheckInputs,
    bands_from_past,
    check,
    free_verdict,
    gap_bounds,
    rate_intervals,
)
from equipoise.history import History
from equipoise.levels import ErrorBudget
from equipoise.metrics import METRICS
from equipoise.question import Question, Verdict
from equipoise.rates import Bands
from equipoise.worlds import CellWorld
from tests.profiles import examples


def gap(low: float, high: float, compare: GapScale) -> float:
    """How far a lower rate is from a higher one, by the definition."""
    if compare is GapScale.DIFFERENCE:
        return high - low
    return (high - low) / high if high > 0.0 else 0.0


def brute_force(
    bands: Bands, boxes: dict[str, tuple[float, float]], compare: GapScale
) -> tuple[float, float]:
    """Return the least and largest gap over a grid of r and all curves of the bands."""
    groups = list(boxes)
    grids = [np.linspace(*boxes[g], 25) for g in groups]
    least, largest = np.inf, 0.0
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
        ends[:, 0], ends[:, 1] = 0.0, 1.0
    boxes = {f"g{i}": (float(a), float(b)) for i, (a, b) in enumerate(ends)}
    return bands, boxes, tuple(GapScale)[seed % 2]


@examples(20)
@given(st.integers(0, 2**40))
def test_bounds_of_delta_hold_and_are_tight(seed: int) -> None:
    bands, boxes, compare = random_case(seed, 2)
    lower, upper = gap_bounds(bands, boxes, compare=compare)
    least, largest = brute_force(bands, boxes, compare)
    assert lower <= least + 1e-9
    assert upper >= largest - 1e-9
    assert upper == pytest.approx(largest, abs=1e-9)  # attained at ends of the boxes
    # The grid misses the least gap by at most one step of either group's rates.
    coarse = sum(
        largest_step(curve.value(np.linspace(*boxes[g], 25)), compare)
        for by_group in bands.values()
        for g, band in by_group.items()
        for curve in (band.low, band.high)
    )
    assert lower >= least - coarse


@examples(3)
@given(st.integers(0, 2**40))
def test_bounds_of_delta_hold_for_three_groups(seed: int) -> None:
    bands, boxes, compare = random_case(seed, 3)
    boxes = {g: (a, min(b, a + 0.15)) for g, (a, b) in boxes.items()}
    lower, upper = gap_bounds(bands, boxes, compare=compare)
    rng = np.random.default_rng(seed)
    for _ in range(300):
        point = {g: (x, x) for g, (a, b) in boxes.items() for x in [float(rng.uniform(a, b))]}
        least, largest = gap_bounds(bands, point, compare=compare)
        assert lower <= least + 1e-9
        assert largest <= upper + 1e-9


def test_a_point_has_the_difference_of_the_metric() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    at = {g: (r, r) for g, r in world.r.items()}
    for metric, compare in product(METRICS, GapScale):
        bands = bands_from_past(world.past(), metric, None)
        lower, upper = gap_bounds(bands, at, compare=compare)
        assert upper == pytest.approx(world.gap(metric, compare), abs=1e-12)
        assert lower == pytest.approx(world.gap(metric, compare), abs=2e-6)


def test_rates_are_reported_over_the_box() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    bands = bands_from_past(world.past(), "equal_opportunity", None)
    rates = rate_intervals(bands, {"A": (0.0, 0.5), "B": (1.0, 1.0)})["true_positive_rate"]
    assert (rates["A"].lower, rates["A"].upper) == pytest.approx((0.5, 1.0))
    assert rates["B"].lower == rates["B"].upper == pytest.approx(1.0 / 9.0)


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({"A": (0.90, 0.095, 0.005, 0.3), "B": (0.85, 0.145, 0.005, 0.2)}, Verdict.FAIR),
        ({"A": (0.7, 0.3, 0.0, 0.0), "B": (0.0, 0.0, 1.0, 0.4)}, Verdict.UNFAIR),
        ({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.3, 0.1, 0.6, 0.2)}, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts_of_the_past_alone(
    shares: dict[str, tuple[float, float, float, float]], verdict: Verdict
) -> None:
    world = CellWorld.from_shares(shares)
    question = Question(gamma=0.05, epsilon=0.05)
    for past in (world.past(), world.past(200_000, 0)):
        found = check(past, question)
        assert found.verdict is verdict
        assert found.lower <= world.gap(question.metric, question.compare) <= found.upper
        assert bool(found.missing) == (verdict is Verdict.INCONCLUSIVE)


def test_where_both_answers_are_right_the_nearer_one_is_named() -> None:
    for gap, verdict in ((0.12, Verdict.FAIR), (0.18, Verdict.UNFAIR)):
        world = CellWorld.from_shares(
            {"A": (0.5, 0.0, 0.5, 0.0), "B": (0.5 + gap, 0.0, 0.5 - gap, 0.0)}
        )
        question = Question("demographic_parity", gamma=0.1, epsilon=0.1)
        assert question.truth(gap) == {Verdict.FAIR, Verdict.UNFAIR}
        assert check(world.past(), question).verdict is verdict


def test_less_of_the_error_level_decides_no_more() -> None:
    world = CellWorld.from_shares({"A": (0.93, 0.04, 0.03, 0.3), "B": (0.90, 0.06, 0.04, 0.2)})
    question = Question("equal_opportunity", gamma=0.03, epsilon=0.03)
    past = world.past(6_000, 1)
    assert check(past, question).verdict is Verdict.FAIR
    assert check(past, replace(question, delta=5e-8)).verdict is Verdict.INCONCLUSIVE
    budget = ErrorBudget.of_audit(replace(question, delta=5e-7), 2, exact=False)
    given = CheckInputs(past)
    assert free_verdict(given, question, budget) is Verdict.INCONCLUSIVE


def test_naive_answers_are_shown_beside() -> None:
    history = History.from_cells(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)}))
    found = check(history, Question("equal_opportunity"))
    assert found.approved_only == 0.0
    assert found.denied_as_failures == 0.0
    assert "naive" in str(found)
