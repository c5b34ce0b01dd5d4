"""What a label may and may not change: bets fixed at the request, unknown labels, corrections."""

from __future__ import annotations

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence import Weighing
from equipoise.evidence.staircase import OUT
from equipoise.question import Verdict
from tests.profiles import examples
from tests.unit.evidence.states import NEVER, Setup, label, random_setup, setups, staircases


def evidence(weighing: Weighing) -> list[np.ndarray]:
    """Return the evidence against every cell, all of which stand."""
    return [s.evidence for s in staircases(weighing)]


def same(one: Weighing, other: Weighing, rel: float = 1e-9) -> bool:
    pairs = zip(evidence(one), evidence(other), strict=True)
    return all(np.allclose(x, y, rtol=rel, atol=0.0) for x, y in pairs)


def history(setup: Setup, rng: np.random.Generator) -> list[tuple[str, int, int]]:
    """Return a random order of asks, tells, withdrawals and corrections: kind, number, value."""
    events: list[tuple[str, int, int]] = []
    outcomes: dict[int, int] = {}
    told: list[int] = []
    for number, (group, outcome) in enumerate(setup.stream(vanishing=0.0)):
        events.append(("ask", number, group))
        outcomes[number] = outcome
        for late in [n for n in outcomes if rng.random() < 0.3]:
            events.append(("tell", late, OUT if rng.random() < 0.2 else outcomes.pop(late)))
            outcomes.pop(late, None)
            told.append(late)
        if told and rng.random() < 0.1:
            events.append(("correct", int(rng.choice(told)), int(rng.integers(2))))
    return events


def replay(weighing: Weighing, events: list[tuple[str, int, int]]) -> Weighing:
    for kind, number, value in events:
        if kind == "ask":
            assert weighing.request(value) == number
        elif kind == "tell":
            weighing.tell(number, value)
        else:
            weighing.correct(number, value)
    return weighing


# -- everything staked on a request is fixed when it is made ------------------------------------


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_state_is_rebuilt_from_asks_and_tells(setup: Setup, seed: int) -> None:
    events = history(setup, np.random.default_rng(seed))
    first, second = (replay(setup.start(NEVER), events) for _ in range(2))
    assert first.counted == second.counted
    assert np.array_equal(first.shares, second.shares)
    assert same(first, second, 0.0)


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_what_a_request_meets_does_not_depend_on_later_answers(setup: Setup, seed: int) -> None:
    """Answers told after the last request, whatever they are, find the same cells and divisions."""
    rng = np.random.default_rng(seed)
    events = history(setup, rng)
    last = max((i for i, e in enumerate(events) if e[0] == "ask"), default=-1) + 1
    weighing = replay(setup.start(NEVER), events[:last])
    asked = len(weighing._groups)
    fixed = {at: d for at, d in weighing._divisions.items() if at < asked}
    factors = [bets.factors.copy() for s in staircases(weighing) for bets in s.bets]
    for number in rng.permutation(asked):
        if weighing.outcome(number) is None:
            weighing.tell(int(number), int(rng.integers(-1, 2)))
    assert {at: d for at, d in weighing._divisions.items() if at < asked} == fixed
    for now, before in zip(
        [bets.factors for s in staircases(weighing) for bets in s.bets], factors, strict=True
    ):
        assert np.array_equal(now, before)


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_correction_changes_its_own_factor_only(setup: Setup, seed: int) -> None:
    """After a correction all is as if the right outcome had been weighed at its place."""
    rng = np.random.default_rng(seed)
    weighing = setup.start(NEVER)
    for group, outcome in setup.stream():
        weighing.count(group, outcome)
    if not weighing.counted or weighing.verdict is not None:
        return
    number = int(rng.integers(weighing.counted))
    divisions = dict(weighing._divisions)
    right = deepcopy(weighing)
    weighing.correct(number, int(rng.integers(2)))
    assert {at: d for at, d in weighing._divisions.items() if at in divisions} == divisions
    right._outcomes[number] = weighing._outcomes[number]
    right._start()
    right._count_settled()
    assert same(weighing, right)


@examples(5)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_late_outcome_only_raises_the_evidence(setup: Setup, seed: int) -> None:
    weighing, rng = setup.start(NEVER), np.random.default_rng(seed)
    for group, outcome in setup.stream(vanishing=0.3):
        weighing.count(group, outcome)
    if weighing.verdict is not None:
        return  # where the free data decide, there is nothing to count
    lost = [n for n in range(weighing.counted) if weighing.outcome(n) == OUT]
    before = evidence(weighing)
    for number in lost:
        weighing.correct(number, int(rng.integers(2)))
        after = evidence(weighing)
        for now, was in zip(after, before, strict=True):
            assert (now >= was * (1.0 - 1e-9)).all()
        before = after


# -- labels that are out ------------------------------------------------------------------------


@examples(5)
@given(setups(most_groups=3, labels=30), st.integers(0, 2**32))
def test_a_look_ahead_holds_however_the_labels_that_are_out_turn_out(
    setup: Setup, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weighing = setup.start(0.3)
    out: list[int] = []
    for group, outcome in setup.stream(vanishing=0.0):
        number = weighing.request(group)
        if len(out) < 4 and rng.random() < 0.3:
            out.append(number)
        elif weighing.tell(number, outcome) is not None:
            break
    if weighing.verdict is None or not [n for n in out if n >= weighing.counted]:
        return
    for values in product((0, 1), repeat=len(out)):
        other = deepcopy(weighing)
        other._start()
        for number, value in zip(out, values, strict=True):
            other._outcomes[number] = value
        other._count_settled()
        assert other.verdict is weighing.verdict or other.verdict is not None
        if weighing.verdict is Verdict.UNFAIR:
            assert any(s.refuted for s in other.fair_set) or other.verdict is Verdict.FAIR


@pytest.mark.parametrize("seed", [0, 2, 3])  # whose question such labels can decide
def test_looking_ahead_decides_before_the_first_label_is_told(seed: int) -> None:
    """One label that stays out does not hold up the audit."""
    waiting, told = (random_setup(seed, 2).start(0.05) for _ in range(2))
    for weighing in (waiting, told):
        weighing.request(0)
    told.tell(0, OUT)
    for n in range(1, 3_000):
        group = n % 2
        verdicts = [w.tell(w.request(group), group) for w in (waiting, told)]
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
        size = int(rng.integers(1, int(at_once.labels_until_change) + 1))
        groups = rng.integers(0, len(setup.r), size)
        outcomes = (rng.random(size) < np.array(setup.r)[groups]).astype(np.intp)
        taken = at_once.count_block(groups, outcomes)
        for group, outcome in zip(groups[:taken], outcomes[:taken], strict=True):
            assert one_by_one.verdict is None
            one_by_one.count(int(group), int(outcome))
        assert one_by_one.verdict is at_once.verdict
        assert np.array_equal(one_by_one.requested, at_once.requested)
        if at_once.verdict is not None:
            break
        for sequential, block in zip(staircases(one_by_one), staircases(at_once), strict=True):
            sequential._drop_refuted()
            block._drop_refuted()
            assert np.allclose(sequential.evidence, block.evidence, rtol=1e-9, atol=1e-190)


def test_too_many_labels_at_once_are_refused() -> None:
    weighing = random_setup(5, 4).start(0.05)
    many = np.zeros(int(weighing.labels_until_change) + 1, dtype=np.intp)
    with pytest.raises(ValueError, match="labels at once"):
        weighing.count_block(many, many)


# -- refuted for good, shares, levels -----------------------------------------------------------


def test_a_refuted_cell_is_out_for_good_and_others_stay() -> None:
    """A long run of equal labels blows the evidence up; what is left to refute stays countable."""
    for seed in range(4):
        setup = random_setup(seed, 3)
        for staircase in staircases(setup.start(0.05)):
            standing = len(staircase.low)
            for _ in range(1_000):
                staircase.update(label(seed % len(setup.r), seed % 2))
                staircase._drop_refuted()
                assert len(staircase.low) <= standing
                standing = len(staircase.low)
                assert (staircase.evidence < staircase.bar).all()


def test_covers_of_the_fair_set_share_the_level() -> None:
    """With three groups and more every rate has its own cover, any of which may be refuted."""
    for seed in range(12):
        setup = random_setup(seed, 6)
        weighing = setup.start(0.04)
        assert all(s.bar == 1.0 / 0.04 for s in weighing.unfair_set)
        assert sum(1.0 / s.bar for s in weighing.fair_set) == pytest.approx(0.04, rel=1e-12)


def test_the_wanted_group_is_the_one_behind_its_share() -> None:
    weighing = random_setup(5, 4).start(0.05)
    rng = np.random.default_rng(0)
    for _ in range(500):
        eligible = weighing.eligible()
        assert eligible.any(), "some group is always welcome"
        weighing.requested[rng.choice(np.flatnonzero(eligible))] += 1
    requested = weighing.requested
    assert requested / requested.sum() == pytest.approx(weighing.shares, abs=0.15)
