"""Opponents who decide what is told get no more wrong verdicts than delta.

``python -m study adversary`` plays more of them, for longer. Seeds are fixed; a correct program
would fail a test with probability ``ALARM`` at most over the choice of its seed.
"""

from __future__ import annotations

import pytest

from equipoise.question import Verdict
from equipoise.rates import clopper_pearson
from tests.profiles import quick
from tests.support.opponents import FORESIGHT, HIDDEN, OPPONENTS, QUESTION, Row

ALARM = 1e-4
RUNS, LABELS = quick(6, full=200), 80


@pytest.mark.parametrize("opponent", OPPONENTS)
@pytest.mark.parametrize("groups", quick([2], full=[2, 4]))
def test_nobody_gets_a_wrong_verdict_more_often_than_promised(opponent: str, groups: int) -> None:
    wrong = Row(opponent, groups).play(RUNS, LABELS, seed=5)
    assert clopper_pearson(wrong, RUNS, ALARM)[0] <= QUESTION.delta


@pytest.mark.parametrize("opponent", ["successes told late", "half of the failures hidden"])
def test_nor_a_wrong_fair_at_the_edge(opponent: str) -> None:
    wrong = Row(opponent, 2, wrong=Verdict.FAIR).play(RUNS, LABELS, seed=5)
    assert clopper_pearson(wrong, RUNS, ALARM)[0] <= QUESTION.delta


def test_bets_chosen_when_labels_are_counted_would_be_misled() -> None:
    """The harness notices an audit that must not be built, and only where there is foresight."""
    runs, groups = quick(30, full=120), 8
    misled = Row(FORESIGHT, groups, blind=True).play(runs, 200, seed=5)
    # that the control fails need only be likely: the seed is fixed
    assert clopper_pearson(misled, runs, 0.05)[0] > QUESTION.delta
    honest = Row(HIDDEN, groups, blind=True).play(runs, 200, seed=5)
    assert clopper_pearson(honest, runs, ALARM)[0] <= QUESTION.delta
