"""Theorem 3's pair of instances against the paper's Tables 1 and 2."""

from __future__ import annotations

import pytest

from equipoise.bounds import family_bound, lower_bound
from equipoise.errors import InvalidInput
from equipoise.question import Costs, Question
from equipoise.worlds import lower_bound_pair
from tests.profiles import quick

GRID = [(0.12, 0.2, 0.2), (0.05, 0.1, 0.3), (0.01, 0.3, 0.05), (0.001, 0.2, 0.2)]


@pytest.mark.parametrize(("epsilon", "p", "q"), GRID)
def test_everything_free_to_see_is_the_same(epsilon: float, p: float, q: float) -> None:
    fair, unfair = lower_bound_pair(epsilon, p, q)
    for group in ("0", "1"):
        expected = pytest.approx((q / 2.0, p / 2.0, 1.0 - (p + q) / 2.0))
        assert fair.cells[group].shares == expected
        assert unfair.cells[group].shares == expected


@pytest.mark.parametrize(("epsilon", "p", "q"), GRID)
def test_table_2_among_the_denied(epsilon: float, p: float, q: float) -> None:
    fair, unfair = lower_bound_pair(epsilon, p, q)
    denied = 1.0 - (p + q) / 2.0
    assert fair.r == pytest.approx({"0": q / 2.0 / denied, "1": q / 2.0 / denied})
    hidden = q / 2.0 * (1.0 + 8.0 * epsilon)
    assert unfair.r == pytest.approx({"0": q / 2.0 / denied, "1": hidden / denied})


@pytest.mark.parametrize(("epsilon", "p", "q"), GRID)
def test_table_1_one_is_fair_and_the_other_is_not(epsilon: float, p: float, q: float) -> None:
    fair, unfair = lower_bound_pair(epsilon, p, q)
    assert fair.gap("equalized_odds") == 0.0
    true_positive_gap = 2.0 * epsilon / (1.0 + 4.0 * epsilon)
    assert unfair.gap("equal_opportunity") == pytest.approx(true_positive_gap)
    false_positive_gap = abs(p / 2.0 / (1.0 - q) - p / 2.0 / (1.0 - q - 4.0 * epsilon * q))
    assert unfair.gap("predictive_equality") == pytest.approx(false_positive_gap)
    assert unfair.gap("equalized_odds") > epsilon


def test_the_least_cost_is_above_the_theorem() -> None:
    epsilon, delta, costs = 0.05, 0.01, Costs(0.0, 1.0)
    question = Question(gamma=0.0, epsilon=epsilon, delta=delta)
    fair, unfair = lower_bound_pair(epsilon)
    for world, is_fair in quick([(fair, True)], full=[(fair, True), (unfair, False)]):
        theorem = family_bound(epsilon, delta, 0.2, 0.2, costs, fair=is_fair).cost
        assert float(lower_bound(world, question, costs)) > theorem


@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 0.125), ("epsilon", 0.0), ("p", 0.5), ("q", -0.1)]
)
def test_numbers_outside_the_proof_are_refused(name: str, value: float) -> None:
    options = {"epsilon": 0.1, name: value}
    with pytest.raises(InvalidInput, match=f"'{name}' must be in"):
        lower_bound_pair(**options)
