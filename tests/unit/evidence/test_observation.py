"""Observations other than labels: their bets are legal, and they count as labels do."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence import UNKNOWN, Evidence, anytime_interval
from equipoise.evidence.observation import LABEL, BetScale, Ends, ScoredBatch
from tests.profiles import examples
from tests.support.observations import SamplingRule, ends_of, largest_mean, random_design
from tests.unit.evidence.states import (
    NEVER,
    Setup,
    covers,
    random_setup,
    record,
    request,
    setups,
    weighed,
)

pytestmark = pytest.mark.slow


@dataclass
class RandomSizer:
    """Sizes that follow nothing, now and then plain labels."""

    groups: int
    seed: int
    designs: list[SamplingRule | None] = field(default_factory=list)

    def bet_scales(self) -> list[BetScale | None]:
        rng = np.random.default_rng(self.seed)
        self.seed += 1
        self.designs = [random_design(rng) if rng.random() < 0.7 else None for _ in self.designs]
        return [None if d is None else d.bet_scale(rng) for d in self.designs]


def started(setup: Setup, level: float) -> tuple[Evidence, RandomSizer]:
    k = len(setup.r)
    rescale_bets = RandomSizer(k, setup.seed, [None] * k)
    evidence = setup.start(level, rescale_bets=rescale_bets.bet_scales)
    evidence.plan.next_plan = 4
    return evidence, rescale_bets


def observed(rescale_bets: RandomSizer, group: int, rng: np.random.Generator) -> Ends:
    design = rescale_bets.designs[group]
    return LABEL if design is None else design.draw(rng)


# -- one person ---------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0.01, 1), st.integers(0, 1))
def test_the_mean_over_the_draw_is_the_outcome(m: float, pi: float, outcome: int) -> None:
    mean = pi * ends_of(m, pi, asked=True)[outcome]
    mean += (1.0 - pi) * ends_of(m, pi, asked=False)[outcome]
    assert mean == pytest.approx(outcome, abs=1e-12)


def test_no_bet_gains_on_average_under_its_null_nor_loses_almost_all() -> None:
    worst, least = largest_mean(10_000, seed=0)
    assert worst < 1e-12
    assert least > 0.1 - 1e-9


@examples(5)
@given(setups(most_groups=3), st.integers(0, 2**32))
def test_sized_bets_are_legal_at_every_point_of_their_cell(setup: Setup, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bet_scale = random_design(rng).bet_scale(rng)
    for cells in covers(setup.start()):
        rows = np.arange(len(cells))[:, None]
        for side, group in enumerate(cells.groups):
            zero, one = cells.scored_factors(side, bet_scale, slice(None))
            for ends in (cells.low, cells.high):
                lam = ends[rows, group]
                assert (lam * one + (1.0 - lam) * zero <= 1.0 + 1e-12).all()
            for z in (bet_scale.low, bet_scale.high):
                assert (z * one + (1.0 - z) * zero >= 0.1 - 1e-9).all()


# -- many people --------------------------------------------------------------------------------


@examples(4)
@given(setups(most_groups=3), st.integers(0, 2**32))
def test_a_block_of_observations_counts_as_one_by_one(setup: Setup, seed: int) -> None:
    (one_by_one, _), (at_once, rescale_bets) = started(setup, 0.02), started(setup, 0.02)
    rng, r = np.random.default_rng(seed), np.array(setup.r)
    for _ in range(12):
        groups, people = [], []
        labels = 0.0
        while labels < at_once.plan.labels_until_plan and rng.random() < 0.95:
            groups.append(int(rng.integers(len(r))))
            people.append(observed(rescale_bets, groups[-1], rng))
            labels += at_once.log.label_equivalents[groups[-1]]
        if not groups:
            continue
        outcomes = (rng.random(len(groups)) < r[groups]).astype(np.intp)
        outcomes[[low == high for low, high in people]] = 0
        taken = at_once.record_block(np.array(groups), outcomes, np.array(people))
        for i in range(taken):
            assert one_by_one.verdict is None
            number = request(one_by_one, groups[i], people[i])
            if people[i][0] != people[i][1]:
                record(one_by_one, number, int(outcomes[i]))
                one_by_one.advance()
        assert one_by_one.verdict is at_once.verdict
        assert one_by_one.log.n_requests == at_once.log.n_requests
        assert np.allclose(one_by_one.log.n_requested, at_once.log.n_requested)
        assert np.allclose(one_by_one.log.labels, at_once.log.labels)
        if at_once.verdict is not None:
            return
        for sequential, block in zip(weighed(one_by_one), weighed(at_once), strict=True):
            assert np.allclose(sequential, block, rtol=1e-9, atol=1e-190)


def story(
    setup: Setup, seed: int, level: float, *, out: float
) -> tuple[Evidence, dict[int, int], list[int]]:
    """Let observed people come, some of whose labels stay pending; return outcomes, and these."""
    evidence, rescale_bets = started(setup, level)
    rng = np.random.default_rng(seed)
    outcomes, waiting = {}, []
    for group, outcome in setup.stream(vanishing=0.0):
        person = observed(rescale_bets, group, rng)
        number = request(evidence, group, person)
        if person[0] == person[1]:
            continue
        outcomes[number] = outcome
        if len(waiting) < 2 and rng.random() < out:
            waiting.append(number)
            continue
        record(evidence, number, outcome)
        if evidence.advance() is not None:
            break
    return evidence, outcomes, waiting


@examples(5)
@given(setups(most_groups=3), st.integers(0, 2**32))
def test_a_withdrawn_observation_counts_at_its_worst(setup: Setup, seed: int) -> None:
    """Both of its outcomes, had they been told, leave at least as much."""
    evidence, _, waiting = story(setup, seed, NEVER, out=0.2)
    for number in waiting:
        record(evidence, number, UNKNOWN)
    lost = weighed(evidence)
    for value in (0, 1):
        told = deepcopy(evidence)
        for number in waiting:
            record(told, number, value)
        for now, worst in zip(weighed(told), lost, strict=True):
            assert (now >= worst * (1.0 - 1e-9)).all()


@examples(5)
@given(setups(most_groups=3), st.integers(0, 2**32))
def test_a_correction_changes_its_own_factor_only(setup: Setup, seed: int) -> None:
    """After it and back all is as before; what lies between differs in bets on its group alone."""
    evidence, outcomes, _ = story(setup, seed, NEVER, out=0.0)
    if not outcomes:
        return
    number = int(np.random.default_rng(seed).choice(list(outcomes)))
    epochs = evidence.log.epochs
    before_epochs = epochs.starts.tolist(), [*epochs.bet_scales]
    before = weighed(evidence)
    record(evidence, number, 1 - outcomes[number])
    evidence.advance(replan=False)
    record(evidence, number, outcomes[number])
    evidence.advance(replan=False)
    assert (epochs.starts.tolist(), epochs.bet_scales) == before_epochs
    for now, then in zip(weighed(evidence), before, strict=True):
        assert np.allclose(now, then, rtol=1e-9, atol=0.0)


@examples(8)
@given(setups(most_groups=3, labels=150), st.integers(0, 2**32))
def test_a_verdict_holds_however_pending_labels_turn_out(setup: Setup, seed: int) -> None:
    evidence, _, waiting = story(setup, seed, 0.3, out=0.2)
    if evidence.verdict is None or not waiting:
        return
    for values in product((0, 1), repeat=len(waiting)):
        other = deepcopy(evidence)
        for number, value in zip(waiting, values, strict=True):
            record(other, number, value)
            record(other, number, value)  # as after a correction, all is looked at again
        assert other.advance(replan=False) is not None


def test_an_observation_outside_its_declared_range_is_refused() -> None:
    evidence, _ = started(random_setup(5, 2), NEVER)
    with pytest.raises(ValueError, match="range that was declared"):
        request(evidence, 0, ends_of(0.5, 0.5, asked=True))
    evidence.log.begin_epoch([BetScale(0.5, 0.5, 0.0, -0.5, 1.5, 1.0, 0.5)] * 2)
    request(evidence, 0, ends_of(0.5, 0.5, asked=True))
    with pytest.raises(ValueError, match="range that was declared"):
        request(evidence, 0, ends_of(0.5, 0.4, asked=True))


# -- where r lies -------------------------------------------------------------------------------


def test_an_interval_from_observations_covers_the_mean() -> None:
    """It ever misses in at most a share ``level`` of the runs: looked at after every 50 people."""
    runs, level, missed = 25, 0.2, 0
    rng = np.random.default_rng(4)
    design = SamplingRule(0.1, 0.4, 0.2)
    bet_scale = BetScale(0.3, 0.6, 0.3, 0.4 * (1 - 5.0), 0.1 + 0.9 * 5.0, 1.0, 0.5)
    for _ in range(runs):
        people = [design.draw(rng) for _ in range(300)]
        z = np.array([p[int(rng.random() < 0.3)] for p in people])
        labels = rng.random(20) < 0.3
        ends = [
            anytime_interval(
                labels.sum(), (~labels).sum(), 0, level, [ScoredBatch(bet_scale, z[:n], z[:n])]
            )
            for n in range(50, 301, 50)
        ]
        missed += any(not low <= 0.3 <= high for low, high in ends)
    assert missed <= level * runs + 3.0 * np.sqrt(level * (1 - level) * runs)
    assert ends[-1][1] - ends[-1][0] < 0.4


def test_unknown_observations_only_widen_an_interval() -> None:
    rng = np.random.default_rng(0)
    bet_scale = BetScale(0.3, 0.6, 0.3, -1.6, 4.6, 1.0, 0.5)
    people = [SamplingRule(0.1, 0.4, 0.2).draw(rng) for _ in range(400)]
    low, high = np.array(people).T
    open_ends = rng.random(400) < 0.02
    known = np.where(rng.random(400) < 0.3, high, low)
    wide = anytime_interval(
        6,
        14,
        2,
        0.05,
        [ScoredBatch(bet_scale, *(np.where(open_ends, e, known) for e in (low, high)))],
    )
    for ones in range(3):
        for z in (known, np.where(open_ends, low, known), np.where(open_ends, high, known)):
            narrow = anytime_interval(6 + ones, 16 - ones, 0, 0.05, [ScoredBatch(bet_scale, z, z)])
            assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
