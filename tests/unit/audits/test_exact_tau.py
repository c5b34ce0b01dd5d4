"""The bounds behind ``tau="exact"`` hold for the populations tried, and tau is the smallest."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import nbinom

from equipoise.audits.exact_tau import (
    WaitingTimes,
    WrongVerdict,
    error_factors,
    smallest_tau,
    wrong_fair,
    wrong_unfair,
)

DRAWN = WaitingTimes(known_past=False, shared_people=False)
KNOWN = WaitingTimes(known_past=True, shared_people=False)
SHARED = WaitingTimes(known_past=False, shared_people=True)
FACTORS = (1.05, 1.2, 1.7, 3.0)


@pytest.mark.parametrize("tau", [1, 5, 40])
@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5, 0.95])
def test_waiting_times_lie_below_their_bounds(tau: int, chance: float) -> None:
    """The exact negative binomial tail is at most the bound for known historical data."""
    mean = tau / chance
    for factor in FACTORS:
        log_factor = np.asarray(math.log(factor))
        at_least = math.ceil(mean * factor - 1e-9)
        exact_above = nbinom.sf(at_least - 1 - tau, tau, chance)
        assert exact_above <= math.exp(KNOWN.log_tail_above(log_factor, tau)) * (1.0 + 1e-12)
        at_most = math.floor(mean / factor + 1e-9)
        exact_below = nbinom.cdf(at_most - tau, tau, chance)
        assert exact_below <= math.exp(KNOWN.log_tail_below(log_factor, tau)) * (1.0 + 1e-12)


@pytest.mark.parametrize(("past_chance", "chance"), [(0.02, 0.05), (0.3, 0.4), (0.6, 0.9)])
def test_ratios_of_waiting_times_lie_below_their_bounds(past_chance: float, chance: float) -> None:
    """P[N q / (M p) >= k], summed over all M, is at most the bound for drawn historical data."""
    tau = 6
    past_people = np.arange(tau, 4000)
    past_probability = nbinom.pmf(past_people - tau, tau, past_chance)
    for factor in FACTORS:
        least = np.ceil(factor * past_people * past_chance / chance - 1e-9)
        exact = float(past_probability @ nbinom.sf(least - 1 - tau, tau, chance))
        bound = math.exp(DRAWN.log_tail_above(np.asarray(math.log(factor)), tau))
        assert exact <= bound


@pytest.mark.parametrize("by_ratio", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.4])
def test_wrong_verdicts_are_rarer_than_promised(gamma: float, by_ratio: bool) -> None:
    """Simulate pairs at the edge of the question; the share of wrong verdicts obeys the bound."""
    rng, tau, runs, epsilon = np.random.default_rng(11), 60, 40_000, 0.4
    share = 0.3  # P[Y=y] of both groups
    for is_unfair in (False, True):
        gap = gamma + epsilon if is_unfair else gamma
        high_rate = 0.95
        low_rate = high_rate * (1.0 - gap) if by_ratio else high_rate - gap
        arrivals = tau + rng.negative_binomial(tau, share, size=(2, runs))
        for counts in (DRAWN, KNOWN):
            rates = np.array([[high_rate], [low_rate]])
            past = np.broadcast_to(tau / (rates * share), (2, runs))
            if not counts.known_past:
                past = tau + rng.negative_binomial(tau, rates * share, size=(2, runs))
            high_estimate, low_estimate = arrivals / past
            if by_ratio:
                estimate = 1.0 - low_estimate / high_estimate
            else:
                estimate = high_estimate - low_estimate
            says_unfair = estimate > gamma + epsilon / 2.0
            wrong_share = float((says_unfair != is_unfair).mean())
            make = wrong_fair if is_unfair else wrong_unfair
            event = make(gamma, epsilon, by_ratio=by_ratio)
            assert event is not None
            bound = event.probability(tau, counts)
            assert wrong_share <= bound + 3.0 * math.sqrt(bound / runs) + 1e-4


def test_shared_people_need_no_independence() -> None:
    """The bound for shared people holds for errors that always come together."""
    event = WrongVerdict(1.0, 1.0, 0.5)
    rng, tau, runs = np.random.default_rng(3), 20, 20_000
    factor = rng.gamma(tau, size=runs) / rng.gamma(tau, size=runs)
    overestimated, underestimated = factor - 1.0, 1.0 - 1.0 / factor  # always both at once
    both_err = overestimated + underestimated >= event.margin
    bound = event.probability(tau, SHARED)
    assert both_err.mean() <= bound
    assert event.probability(tau, DRAWN) <= bound


@pytest.mark.parametrize(
    ("counts", "by_ratio"), [*itertools.product((DRAWN, KNOWN, SHARED), (False, True))]
)
def test_tau_is_the_smallest_that_is_enough(counts: WaitingTimes, by_ratio: bool) -> None:
    gamma, epsilon, level, comparisons = 0.1, 0.2, 0.05, 4
    tau = smallest_tau(gamma, epsilon, counts, level_fair=level, level_unfair=level,
                       comparisons=comparisons, by_ratio=by_ratio)  # fmt: skip
    unfair = wrong_unfair(gamma, epsilon, by_ratio=by_ratio)
    fair = wrong_fair(gamma, epsilon, by_ratio=by_ratio)
    assert fair is not None

    def is_enough(tau: int) -> bool:
        rare_unfair = comparisons * unfair.probability(tau, counts) <= level
        return rare_unfair and fair.probability(tau, counts) <= level

    assert is_enough(tau)
    assert not is_enough(tau - 1)


def test_no_pair_can_be_wrongly_fair_where_the_question_leaves_no_room() -> None:
    assert wrong_fair(0.75, 0.25) is None
    tau = smallest_tau(0.75, 0.25, KNOWN, level_fair=1e-300, level_unfair=0.05, comparisons=2)
    assert 1 <= tau < 10_000


def test_error_factors_hold_at_their_level() -> None:
    for counts in (DRAWN, KNOWN):
        above, below = error_factors(200, counts, 0.01)
        assert math.exp(counts.log_tail_above(np.log(above), 200)) == pytest.approx(0.01)
        assert math.exp(counts.log_tail_below(np.log(below), 200)) == pytest.approx(0.01)
