"""What a label may and may not change: bets fixed at the request, unknown labels, corrections."""

from __future__ import annotations

import pickle
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence import UNKNOWN, Evidence
from equipoise.evidence.request_log import PENDING
from tests.profiles import examples, quick
from tests.unit.evidence.states import (
    NEVER,
    Setup,
    count,
    random_events,
    random_setup,
    record,
    replay,
    request,
    setups,
    weighed,
)

pytestmark = pytest.mark.slow


def same(one: Evidence, other: Evidence, rel: float = 1e-9) -> bool:
    pairs = zip(weighed(one), weighed(other), strict=True)
    return all(np.allclose(x, y, rtol=rel, atol=0.0) for x, y in pairs)


# -- a function of counts -------------------------------------------------------------------------


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_state_is_rebuilt_from_asks_and_tells(setup: Setup, seed: int) -> None:
    events = random_events(setup, np.random.default_rng(seed))
    first, second = (replay(setup.start(NEVER), events) for _ in range(2))
    assert np.array_equal(first.plan.shares, second.plan.shares)
    assert same(first, second, 0.0)


@examples(8)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_the_order_of_answers_does_not_matter(setup: Setup, seed: int) -> None:
    """The same requests in the same epochs, told in any order and corrected or not: one state."""
    events = random_events(setup, np.random.default_rng(seed))
    evidence = replay(setup.start(0.2), events)
    other = deepcopy(evidence)
    for number in np.random.default_rng(seed).permutation(other.log.n_requests).tolist():
        outcome = other.log.outcomes[number]
        if outcome != PENDING:
            record(other, number, UNKNOWN)
            record(other, number, outcome)
    assert same(evidence, other)
    other.advance(replan=False)
    record(evidence, 0, outcome_of(evidence, 0)) if evidence.log.n_requests else None
    assert evidence.advance(replan=False) is other.verdict


def outcome_of(evidence: Evidence, number: int) -> int:
    return max(evidence.log.outcomes[number], UNKNOWN)


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_what_a_request_meets_does_not_depend_on_later_answers(setup: Setup, seed: int) -> None:
    """Answers told after the last request, whatever they are, leave epochs and sizes alone."""
    rng = np.random.default_rng(seed)
    events = random_events(setup, rng)
    last = max((i for i, e in enumerate(events) if e[0] == "ask"), default=-1) + 1
    evidence = replay(setup.start(NEVER), events[:last])
    asked = evidence.log.n_requests
    epochs = evidence.log.epochs
    starts = epochs.starts[epochs.starts < asked].tolist()
    bet_scales = epochs.bet_scales[: len(starts)]
    for number in rng.permutation(asked).tolist():
        if evidence.log.outcomes[number] == PENDING:
            record(evidence, number, int(rng.integers(-1, 2)))
            evidence.advance()
    assert epochs.starts[epochs.starts < asked].tolist() == starts
    assert epochs.bet_scales[: len(starts)] == bet_scales


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_late_outcome_only_raises_the_evidence(setup: Setup, seed: int) -> None:
    evidence, rng = setup.start(NEVER), np.random.default_rng(seed)
    for group, outcome in setup.stream(vanishing=0.3):
        count(evidence, group, outcome)
    lost = [n for n in range(evidence.log.n_requests) if evidence.log.outcomes[n] == UNKNOWN]
    before = weighed(evidence)
    for number in lost:
        record(evidence, number, int(rng.integers(2)))
        after = weighed(evidence)
        for now, was in zip(after, before, strict=True):
            assert (now >= was * (1.0 - 1e-9)).all()
        before = after


def test_copies_go_on_where_they_were() -> None:
    for seed in range(quick(1, full=2)):
        setup = random_setup(seed, 3)
        evidence = setup.start(1e-6)
        for group, outcome in setup.stream():
            count(evidence, group, outcome)
        assert len(pickle.dumps(evidence)) < 100_000  # what follows from the rest is left out
        for copy in (deepcopy(evidence), pickle.loads(pickle.dumps(evidence))):
            original = deepcopy(evidence)
            for each in (original, copy):
                for group, outcome in random_setup(seed, 3, 90).stream():
                    count(each, group, outcome)
            assert original.verdict is copy.verdict
            assert np.array_equal(original.plan.shares, copy.plan.shares)


# -- pending labels -----------------------------------------------------------------------------


@examples(5)
@given(setups(most_groups=3, labels=30), st.integers(0, 2**32))
def test_a_verdict_holds_however_pending_labels_turn_out(setup: Setup, seed: int) -> None:
    rng = np.random.default_rng(seed)
    evidence = setup.start(0.3)
    pending: list[int] = []
    for group, outcome in setup.stream(vanishing=0.0):
        number = request(evidence, group)
        if len(pending) < 4 and rng.random() < 0.3:
            pending.append(number)
            continue
        record(evidence, number, outcome)
        if evidence.advance() is not None:
            break
    if evidence.verdict is None or not pending:
        return
    for values in product((0, 1), repeat=len(pending)):
        other = deepcopy(evidence)
        for number, value in zip(pending, values, strict=True):
            record(other, number, value)
        record(other, 0, outcome_of(other, 0))  # as after a correction, all is looked at again
        assert other.advance(replan=False) is not None


@pytest.mark.parametrize("seed", [0, 2, 3])  # whose question such labels can decide
def test_one_pending_label_does_not_hold_up_the_verdict(seed: int) -> None:
    waiting, told = (random_setup(seed, 2).start(0.05) for _ in range(2))
    for evidence in (waiting, told):
        request(evidence, 0)
    record(told, 0, UNKNOWN)
    for n in range(1, 3_000):
        group = n % 2
        verdicts = [count(evidence, group, group) for evidence in (waiting, told)]
        if any(verdicts):
            break
    assert waiting.verdict is told.verdict is not None


# -- blocks -------------------------------------------------------------------------------------


@examples(7)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_block_of_labels_counts_as_its_labels_one_by_one(setup: Setup, seed: int) -> None:
    one_by_one, at_once = setup.start(0.05), setup.start(0.05)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        size = int(rng.integers(1, int(at_once.plan.labels_until_plan) + 1))
        groups = rng.integers(0, len(setup.r), size)
        outcomes = (rng.random(size) < np.array(setup.r)[groups]).astype(np.intp)
        taken = at_once.record_block(groups, outcomes)
        for group, outcome in zip(groups[:taken], outcomes[:taken], strict=True):
            assert one_by_one.verdict is None
            count(one_by_one, int(group), int(outcome))
        assert one_by_one.verdict is at_once.verdict
        assert np.array_equal(one_by_one.log.n_requested, at_once.log.n_requested)
        assert np.array_equal(one_by_one.plan.shares, at_once.plan.shares)
        assert same(one_by_one, at_once, 0.0)
        if at_once.verdict is not None:
            break


def test_too_many_labels_at_once_are_refused() -> None:
    evidence = random_setup(5, 4).start(0.05)
    many = np.zeros(int(evidence.plan.labels_until_plan) + 1, dtype=np.intp)
    with pytest.raises(ValueError, match="at most"):
        evidence.record_block(many, many)
