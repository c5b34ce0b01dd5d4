"""Bad outcomes come early: a live audit keeps its error rate, arrival order does not."""

from __future__ import annotations

from scipy.stats import binom

from tests.profiles import FULL, quick
from tests.torture.ledger_delay import QUESTION, delayed_audits

AUDITS, PEOPLE = quick(3, full=14), quick(1500, full=2500)
FALSE_ALARM = 1e-3


def test_request_order_keeps_the_error_rate_and_arrival_order_does_not() -> None:
    allowed = binom.ppf(1 - FALSE_ALARM, AUDITS, QUESTION.delta)
    assert delayed_audits("request order", AUDITS, 100, PEOPLE).wrong <= allowed
    if FULL:  # it takes many more people until the wrong order misleads
        assert delayed_audits("arrival order", AUDITS, 100, 4 * PEOPLE).wrong > allowed
