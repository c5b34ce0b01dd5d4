"""Audits that look, at the boundary of either wrong answer, with scores that help or lie.

``python -m study assisted_boundary`` plays more of them, for longer. Seeds are fixed; a correct
program would fail a test with probability ``ALARM`` at most over the choice of its seed.
"""

from __future__ import annotations

import pytest

from equipoise.rates import clopper_pearson
from tests.profiles import quick
from tests.support.score_audits import QUESTION, one

ALARM = 1e-4
RUNS = quick(5, full=200)  # with fewer than five the test could not fail
POINTS = quick(
    ["FAIR, lying score"],
    full=["FAIR, lying score", "UNFAIR, lying score", "FAIR, late, any score"],
)


@pytest.mark.parametrize("point", POINTS)
def test_a_score_cannot_make_verdicts_wrong_more_often_than_promised(point: str) -> None:
    wrong = sum(one(point, seed, most=quick(300, full=1_500))["wrong"] for seed in range(RUNS))
    assert clopper_pearson(int(wrong), RUNS, ALARM)[0] <= QUESTION.delta
