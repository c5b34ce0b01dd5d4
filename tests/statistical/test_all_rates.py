"""Every rate from the same labels: ``python -m study all_rates``, short."""

from __future__ import annotations

import pytest

from equipoise.rates import clopper_pearson
from tests.profiles import quick
from tests.support.boundaries import QUESTION, Row, all_rates_missed, boundaries

ALARM = 1e-4


@pytest.mark.parametrize("past", quick([None], full=[None, 20_000]))
def test_verdict_and_all_intervals_are_right_together(past: int | None) -> None:
    runs = quick(12, full=200) if past is None else quick(5, full=60)
    for edge in boundaries("half approved", QUESTION):
        _, _, either = all_rates_missed(Row(edge, runs, past), seed=3)
        assert clopper_pearson(either, runs, ALARM / 4.0)[0] <= QUESTION.delta
