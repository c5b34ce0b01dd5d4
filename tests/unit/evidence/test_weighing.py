"""What a label may and may not change: predictable bets, unknown labels, levels of pairs."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.evidence import Staircase, Weighing
from equipoise.evidence.reference import Cell
from tests.profiles import examples
from tests.unit.evidence.states import (
    Setup,
    exact_bets,
    random_setup,
    setups,
    staircases,
)

Pending = list[tuple[int, int | None]]


def states(setup: Setup, level: float) -> Weighing:
    weighing = setup.start(level)
    for group, outcome in setup.stream():
        if weighing.count(group, outcome) is not None:
            break
    return weighing


def tallies(pending: Pending, groups: int) -> list[np.ndarray]:
    """Return ones, zeros and unknown labels per group."""
    return [
        np.bincount([g for g, y in pending if y is value or y == value], minlength=groups).astype(
            float
        )
        for value in (1, 0, None)
    ]


def bets_of(staircase: Staircase) -> dict[tuple[float, ...], np.ndarray]:
    rows = staircase._rows
    names = zip(rows.pair, rows.half, rows.start, rows.end, strict=True)
    factors = np.stack([rows.a_one, rows.a_zero, rows.b_one, rows.b_zero], axis=1)
    return dict(zip((tuple(map(float, name)) for name in names), factors.copy(), strict=True))


@examples(15)
@given(setups(most_groups=3), st.data())
def test_refuted_with_holds_however_the_unknown_labels_turn_out(
    setup: Setup, data: st.DataObject
) -> None:
    weighing = states(setup, 0.3)
    groups = len(setup.r)
    label = st.tuples(st.integers(0, groups - 1), st.sampled_from([0, 1, None]))
    pending = data.draw(st.lists(label, max_size=12))
    unknown = [i for i, (_, y) in enumerate(pending) if y is None]
    assume(len(unknown) <= 5)
    for staircase in staircases(weighing):
        claimed = staircase.refuted_with(*tallies(pending, groups))
        for values in product((0, 1), repeat=len(unknown)):
            told = dict(zip(unknown, values, strict=True))
            copy = deepcopy(staircase)
            for i, (group, outcome) in enumerate(pending):
                copy.update(group, told.get(i, outcome))
            assert (copy.refuted | ~claimed).all()


@examples(10)
@given(setups(most_groups=2), st.integers(0, 2**32))
def test_an_unknown_label_is_worth_less_than_any_value_of_it(setup: Setup, seed: int) -> None:
    """By the reference: counted as unknown, the evidence is below that of every completion."""
    weighing = states(setup, 1e-12)
    rng = np.random.default_rng(seed)
    for staircase in staircases(weighing):
        rows = staircase._rows
        if not len(rows.pair):
            continue
        row = int(rng.integers(len(rows.pair)))
        sequence = [(bool(rng.integers(2)), None if rng.random() < 0.5 else 1) for _ in range(8)]
        cell = Cell([Fraction(x) for x in rows.stake[row]], exact_bets(staircase, row))
        least = cell.least(sequence)
        name = (rows.pair[row], rows.half[row], rows.start[row])
        for group_a, outcome in sequence:
            member = staircase._a if group_a else staircase._b
            staircase.update(int(member[rows.pair[row]]), outcome)
        after = staircase._rows
        same = (after.pair == name[0]) & (after.half == name[1]) & (after.start == name[2])
        if same.any():  # not refuted on the way
            assert after.stake[same].sum() <= float(least) * (1.0 + 1e-12)


@examples(15)
@given(setups(most_groups=4))
def test_bets_stand_until_the_change_that_was_announced(setup: Setup) -> None:
    weighing = setup.start(1e-6)
    ahead, before = 0, [bets_of(s) for s in staircases(weighing)]
    for group, outcome in setup.stream():
        if ahead == 0:
            ahead, before = (
                weighing.labels_until_change,
                [bets_of(s) for s in staircases(weighing)],
            )
            assert ahead >= 1
        if weighing.count(group, outcome) is not None:
            return
        ahead -= 1
        if ahead:
            for staircase, bets in zip(staircases(weighing), before, strict=True):
                for name, factors in bets_of(staircase).items():
                    assert (factors == bets[name]).all()


@pytest.mark.parametrize("seed", range(8))
def test_pairs_share_the_error_level_and_count_labels_after_the_pilot_only(seed: int) -> None:
    setup = random_setup(seed, 6, 200)
    weighing = setup.start(0.04)
    opened = weighing.fair_set
    assert (opened is None) == (len(setup.r) > 2)
    for group, outcome in setup.stream():
        weighing.count(group, outcome)
        if opened is None and weighing.fair_set is not None:
            opened = weighing.fair_set
            assert opened._rows.stake.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert (weighing.unfair_set.thresholds == 1.0 / 0.04).all()
    if opened is not None:
        assert (1.0 / opened.thresholds).sum() == pytest.approx(0.04, rel=1e-12)
        assert opened.thresholds.min() >= 1.0 / 0.04 * (1.0 - 1e-12)


def test_a_refuted_cell_is_out_for_good_and_others_stay() -> None:
    """A long run of equal labels blows the evidence up; what is left to refute stays countable."""
    for seed in range(6):
        setup = random_setup(seed, 3)
        staircase = setup.start(0.05).unfair_set
        for _ in range(4_000):
            live = staircase.refuted.copy()
            staircase.update(seed % len(setup.r), seed % 2)
            assert (staircase.refuted | ~live).all()
            standing = np.isfinite(staircase._bar)
            left = np.bincount(staircase._rows.pair[standing], minlength=len(staircase.pairs))
            assert (staircase.refuted == (left == 0)).all()


def test_the_wanted_group_is_the_one_behind_its_share() -> None:
    weighing = random_setup(5, 4).start(0.05)
    requested = np.zeros(len(weighing.shares))
    rng = np.random.default_rng(0)
    for _ in range(500):
        eligible = weighing.eligible(requested)
        assert eligible.any(), "some group is always welcome"
        requested[rng.choice(np.flatnonzero(eligible))] += 1
    assert requested / requested.sum() == pytest.approx(weighing.shares, abs=0.15)


@examples(15)
@given(setups(most_groups=4), st.integers(0, 2**32))
def test_a_block_of_labels_counts_as_its_labels_one_by_one(setup: Setup, seed: int) -> None:
    one_by_one, at_once = setup.start(0.05), setup.start(0.05)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        size = int(rng.integers(1, at_once.labels_until_change + 1))
        groups = rng.integers(0, len(setup.r), size)
        outcomes = (rng.random(size) < np.array(setup.r)[groups]).astype(np.intp)
        taken = at_once.count_block(groups, outcomes)
        for group, outcome in zip(groups[:taken], outcomes[:taken], strict=True):
            assert one_by_one.verdict is None
            one_by_one.count(int(group), int(outcome))
        assert one_by_one.verdict is at_once.verdict
        assert np.array_equal(one_by_one.counts, at_once.counts)
        if at_once.verdict is not None:
            break
        for sequential, block in zip(staircases(one_by_one), staircases(at_once), strict=True):
            assert np.array_equal(sequential.refuted, block.refuted)
            sequential._drop_refuted()
            block._drop_refuted()
            assert np.allclose(sequential._rows.stake, block._rows.stake, rtol=1e-9, atol=0.0)
