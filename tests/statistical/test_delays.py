"""Bad outcomes come early: a live audit keeps its error rate, arrival order does not."""

from __future__ import annotations

from scipy.stats import binom

from tests.profiles import quick
from tests.torture.ledger_delay import QUESTION, delayed_audits

AUDITS, PEOPLE = quick(3, full=14), quick(1500, full=2500)
FALSE_ALARM = 1e-3


def test_request_order_keeps_the_error_rate() -> None:
    allowed = binom.ppf(1 - FALSE_ALARM, AUDITS, QUESTION.delta)
    assert delayed_audits("request order", AUDITS, 100, PEOPLE).wrong <= allowed


def test_arrival_order_would_not_keep_it() -> None:
    audits = quick(6, full=14)
    allowed = binom.ppf(1 - FALSE_ALARM, audits, QUESTION.delta)
    assert delayed_audits("arrival order", audits, 100, 10_000).wrong > allowed
