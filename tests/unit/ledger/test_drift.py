"""Drift: exact small cases, and what the test must not fall for."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.cells import Cells, GroupCells
from equipoise.history.past import Past
from equipoise.ledger.drift import BLOCK, DriftCounts, DriftTest, drift_tests

PAST = Past(Cells({"A": GroupCells(4000, 1000, 5000), "B": GroupCells(0, 0, 2000)}), False)


def stream(size: int, seed: int, approval: float = 0.5, good: float = 0.8) -> DriftCounts:
    rng, counts, places = np.random.default_rng(seed), DriftCounts(("A", "B")), {"A": 0, "B": 0}
    for number in range(1, size + 1):
        group = "A" if rng.random() < 5 / 6 else "B"
        approved = int(group == "A" and rng.random() < approval)
        counts.arrive(group, number, places[group] if approved else None)
        if approved:
            counts.reveal(group, places[group], int(rng.random() < good))
            places[group] += 1
    return counts


def alarms(counts: DriftCounts) -> set[tuple[str, str]]:
    return {(t.what, t.group) for t in drift_tests(counts, PAST) if t.alarm}


def find(tests: tuple[DriftTest, ...], what: str) -> DriftTest:
    return next(t for t in tests if t.what == what and t.group == "A")


def test_a_stream_like_the_past_raises_no_alarm() -> None:
    assert alarms(stream(4000, seed=1)) == set()


def test_each_kind_of_drift_is_found_where_it_is() -> None:
    assert alarms(stream(4000, 2, approval=0.65)) == {("approval rate", "A")}
    good = "good outcomes among the approved"
    assert alarms(stream(4000, 3, good=0.65)) == {(good, "A")}
    mixed = DriftCounts(("A", "B"))
    for i in range(2000):
        mixed.arrive("AB"[i % 2], i + 1, i // 4 if i % 4 == 0 else None)
    assert {("share of all people", "A"), ("share of all people", "B")} <= alarms(mixed)


def test_a_group_that_was_never_approved_has_no_base_rate_to_test() -> None:
    tests = drift_tests(stream(100, 1), PAST)
    assert ("good outcomes among the approved", "B") not in {(t.what, t.group) for t in tests}


def test_early_failures_are_no_drift() -> None:
    # Bad outcomes show at once, good ones have not come yet: only the completion that speaks
    # least for a drift may count.
    rng, counts = np.random.default_rng(0), DriftCounts(("A", "B"))
    for place in range(3000):
        counts.arrive("A", place + 1, place)
        if rng.random() < 0.2:
            counts.reveal("A", place, 0)
    test = find(drift_tests(counts, PAST), "good outcomes among the approved")
    assert not test.alarm
    assert test.unknown > 2000


def test_unknown_outcomes_do_not_hide_a_drift_that_is_certain() -> None:
    rng, counts = np.random.default_rng(0), DriftCounts(("A", "B"))
    for place in range(3000):
        counts.arrive("A", place + 1, place)
        if rng.random() < 0.95:
            counts.reveal("A", place, int(rng.random() < 0.5))
    assert find(drift_tests(counts, PAST), "good outcomes among the approved").alarm


def test_the_worst_completion_is_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    from equipoise.evidence.stream_shares import share_evidence
    from equipoise.ledger.drift import _nearest

    low, high, n = 0.75, 0.85, 60
    for known in range(0, 61, 6):
        for unknown in range(0, 61 - known, 5):
            fewest, most = np.array([float(known)]), np.array([float(known + unknown)])
            people = np.array([float(n)])
            chosen = share_evidence(_nearest(fewest, most, people, low, high), people, low, high)
            every = np.arange(known, known + unknown + 1.0)
            least = share_evidence(every, np.full_like(every, n), low, high).min()
            # Below zero neither can ever alarm, so only positive values must agree.
            assert max(chosen[0], 0.0) == pytest.approx(max(least, 0.0), abs=1e-9)


def test_a_correction_moves_the_count() -> None:
    counts = DriftCounts(("A", "B"))
    counts.arrive("A", 1, 0)
    counts.reveal("A", 0, 0)
    counts.reveal("A", 0, 0, -1)
    counts.reveal("A", 0, 1)
    assert find(drift_tests(counts, PAST), "good outcomes among the approved").now == 1.0


def test_nothing_is_tested_where_approved_people_are_not_reported() -> None:
    assert drift_tests(stream(500, 1), PAST, stream="denied") == ()


def test_an_empty_stream_is_no_evidence() -> None:
    tests = drift_tests(DriftCounts(("A", "B")), PAST)
    assert all(t.evidence == 0.0 and t.now is None and not t.alarm for t in tests)
    assert BLOCK > 1
