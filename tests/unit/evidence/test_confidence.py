"""Intervals that hold at all times: checked by adding up every path."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from equipoise.evidence import anytime_interval

STEPS = 120


@pytest.fixture(scope="module")
def intervals() -> dict[tuple[int, int], tuple[float, float]]:
    return {
        (ones, n - ones): anytime_interval(ones, n - ones, 0, 0.1)
        for n in range(STEPS + 1)
        for ones in range(n + 1)
    }


@pytest.mark.parametrize("r", [0.0, 0.003, 0.1, 0.5, 0.83, 1.0])
def test_it_ever_misses_with_probability_below_its_level(
    r: float, intervals: dict[tuple[int, int], tuple[float, float]]
) -> None:
    """Exact: the probability of all paths of 120 labels on which some interval misses r."""
    alive = {0: 1.0}
    missed = 0.0
    for n in range(1, STEPS + 1):
        following: dict[int, float] = {}
        for ones, probability in alive.items():
            for step, chance in ((1, r), (0, 1.0 - r)):
                if chance:
                    following[ones + step] = following.get(ones + step, 0.0) + probability * chance
        alive = {}
        for ones, probability in following.items():
            low, high = intervals[ones, n - ones]
            if low <= r <= high:
                alive[ones] = probability
            else:
                missed += probability
    assert missed <= 0.1
    assert sum(alive.values()) + missed == pytest.approx(1.0)


def test_it_is_not_idle(intervals: dict[tuple[int, int], tuple[float, float]]) -> None:
    """At 0.5 after 120 labels it is at most twice as wide as a fixed-sample interval."""
    low, high = intervals[60, 60]
    assert high - low <= 2.0 * 2.0 * 1.645 * np.sqrt(0.25 / STEPS)
    assert low < 0.5 < high


def test_unknown_labels_are_covered_whatever_they_are() -> None:
    for ones, zeros, unknown in product((0, 1, 7), (0, 2, 30), (0, 1, 5)):
        low, high = anytime_interval(ones, zeros, unknown, 0.01)
        for more in range(unknown + 1):
            inner = anytime_interval(ones + more, zeros + unknown - more, 0, 0.01)
            assert low <= inner[0]
            assert inner[1] <= high


def test_nothing_known_says_nothing() -> None:
    assert anytime_interval(0, 0, 0, 0.05) == (0.0, 1.0)
    assert anytime_interval(0, 0, 3, 0.05) == (0.0, 1.0)
