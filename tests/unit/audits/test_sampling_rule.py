"""The sampling rule as a function of labels and people, without an audit."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise._arrays import Array
from equipoise.audits.sampling_rule import (
    MIN_LABELS,
    LabelledScores,
    SamplingLimits,
    SamplingRule,
    ScoredPeople,
    calibrate_score,
    fit_sampling_rule,
)

LIMITS = SamplingLimits(
    people_per_label=8.0, max_cost_share=0.85, max_price=None, feature_price=0.01
)


def labels_with(slope: float, count: int = 400) -> LabelledScores:
    """Return labels of which one in five is good, with scores that tell so, or not."""
    rng = np.random.default_rng(0)
    outcomes = (rng.random(count) < 0.2).astype(np.float64)
    return LabelledScores(rng.normal(size=count) + slope * outcomes, outcomes)


def fit(labels: LabelledScores, limits: SamplingLimits = LIMITS) -> SamplingRule | None:
    prices = np.ones(len(labels.scores))
    return fit_sampling_rule(labels, ScoredPeople(labels.scores, prices), limits)


def observations_of(rule: SamplingRule, scores: Array, prices: Array) -> Array:
    """Return what people who are asked may bring: outcome 0, outcome 1."""
    guesses, chances = rule.guess_and_chance(scores, prices)
    return np.concatenate([guesses - guesses / chances, guesses + (1.0 - guesses) / chances])


def test_a_score_that_tells_outcomes_apart_gives_a_rule_and_noise_gives_none() -> None:
    assert fit(labels_with(slope=4.0)) is not None
    assert fit(labels_with(slope=0.0)) is None


def test_people_with_a_higher_rate_are_asked_more_often() -> None:
    rule = fit(labels_with(slope=4.0))
    assert rule is not None
    guesses, chances = rule.guess_and_chance(np.array([-1.0, 2.0, 5.0]), np.ones(3))
    assert np.all(np.diff(guesses) > 0.0)
    assert np.all(np.diff(chances) >= 0.0)
    _, dearer = rule.guess_and_chance(np.array([2.0]), np.array([4.0]))
    assert dearer[0] <= chances[1]


def test_no_score_or_price_leaves_the_range_that_bets_are_scaled_for() -> None:
    limits = SamplingLimits(8.0, 0.85, max_price=9.0, feature_price=0.01)
    rule = fit(labels_with(slope=4.0), limits)
    assert rule is not None
    for price in (0.0, 1.0, 9.0):
        scores = np.array([-1e300, -1.0, 0.0, 3.0, 1e300, np.nan])
        observations = observations_of(rule, scores, np.full(6, price))
        assert observations.min() >= rule.bet_scale.low - 1e-12
        assert observations.max() <= rule.bet_scale.high + 1e-12


@pytest.mark.parametrize(
    "limits",
    [
        SamplingLimits(1.0, 0.85, None, 0.01),  # everybody scored must be asked
        SamplingLimits(8.0, 1e-9, None, 0.01),  # nothing is cheap enough
    ],
    ids=["pace", "gate"],
)
def test_a_rule_keeps_to_its_limits(limits: SamplingLimits) -> None:
    assert fit(labels_with(slope=4.0), limits) is None


def test_observations_wider_than_expected_make_a_rule_less_worth_while() -> None:
    labels = labels_with(slope=4.0)
    people = ScoredPeople(labels.scores, np.ones(len(labels.scores)))
    rule = fit_sampling_rule(labels, people, LIMITS)
    wider = fit_sampling_rule(labels, people, LIMITS, inflation=1.05)
    assert rule is not None
    assert wider is not None
    assert wider.bet_scale.variance == pytest.approx(1.05 * rule.bet_scale.variance)
    assert fit_sampling_rule(labels, people, LIMITS, inflation=100.0) is None


def test_free_labels_need_no_rule() -> None:
    labels = labels_with(slope=4.0)
    people = ScoredPeople(labels.scores, np.zeros(len(labels.scores)))
    assert fit_sampling_rule(labels, people, SamplingLimits(8.0, 0.85, None, 0.0)) is None


def test_too_few_labels_calibrate_nothing_and_equal_scores_one_rate() -> None:
    labels = labels_with(slope=4.0, count=MIN_LABELS - 1)
    assert calibrate_score(labels.scores, labels) is None
    outcomes = np.arange(40) % 4 == 0
    equal = LabelledScores(np.ones(40), outcomes.astype(np.float64))
    strata = calibrate_score(equal.scores, equal)
    assert strata is not None
    assert strata.rates.tolist() == [10.5 / 41.0] * 2
