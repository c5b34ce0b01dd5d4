"""The proof's premises, in random states: cells cover, bets are legal, stakes are handed on.

`docs/guarantees.md` derives the error probability from these alone.
"""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence import Staircase, Weighing
from equipoise.evidence.reference import is_fair, is_unfair
from tests.profiles import examples
from tests.unit.evidence.states import (
    NEVER,
    Setup,
    boxes,
    exact_bets,
    exact_box,
    setups,
    staircases,
)

EXACT = 1e-12
NEAR = 1e-9  # how far an inverted rate may be off in floating point


def after_labels(setup: Setup, level: float = NEVER) -> Weighing:
    weighing = setup.start(level)
    for group, outcome in setup.stream():
        weighing.count(group, outcome)
    return weighing


def covered(staircase: Staircase, index: int, lam_a: float, lam_b: float) -> bool:
    mine = boxes(staircase)[staircase._rows.pair == index]
    return bool(
        (
            (mine[:, 0] - NEAR <= lam_a)
            & (lam_a <= mine[:, 1] + NEAR)
            & (mine[:, 2] <= lam_b)
            & (lam_b <= mine[:, 3])
        ).any()
    )


@examples(40)
@given(setups(), st.integers(0, 2**32))
def test_every_point_of_a_wrong_answer_lies_in_a_cell(setup: Setup, seed: int) -> None:
    """Also points on the frontier, and after any labels, plans and refinements."""
    weighing = after_labels(setup)
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(12, 2))
    points[::4] = np.round(points[::4])  # corners of the square too
    gaps = (setup.gamma + setup.epsilon, setup.gamma)
    for staircase, gap, holds in zip(
        staircases(weighing), gaps, (is_unfair, is_fair), strict=False
    ):
        for index, pair in enumerate(staircase.pairs):
            lam_b = points[:, 1]
            frontiers = (
                [pair.unfair_below(lam_b, gap)]
                if holds is is_unfair
                else [pair.fair_from(lam_b, gap), pair.fair_to(lam_b, gap)]
            )
            candidates = [points[:, 0], *(np.clip(f.at, 0.0, 1.0) for f in frontiers)]
            for lam_a in candidates:
                for a, b in zip(lam_a.tolist(), lam_b.tolist(), strict=True):
                    if holds(pair, Fraction(a), Fraction(b), Fraction(gap)):
                        assert covered(staircase, index, a, b), (pair, a, b)


@examples(40)
@given(setups())
def test_every_bet_is_legal_at_every_point_of_its_cell(setup: Setup) -> None:
    """A factor's mean is linear in the unknown: the ends of the box suffice."""
    weighing = after_labels(setup)
    for staircase in staircases(weighing):
        rows, box = staircase._rows, boxes(staircase)
        for one, zero, ends in (
            (rows.a_one, rows.a_zero, box[:, :2]),
            (rows.b_one, rows.b_zero, box[:, 2:]),
        ):
            assert (one >= 0.0).all()
            assert (zero >= 0.0).all()
            for lam in ends.T[:, :, None]:
                assert (lam * one + (1.0 - lam) * zero <= 1.0 + EXACT).all()


@examples(20)
@given(setups(most_groups=3), st.integers(0, 2**32))
def test_cells_and_bets_stand_up_to_exact_arithmetic(setup: Setup, seed: int) -> None:
    """The reference draws the same boxes with fractions, and finds every bet legal in them."""
    weighing = after_labels(setup)
    for staircase in staircases(weighing):
        rows = staircase._rows
        if not len(rows.pair):
            continue
        for row in np.random.default_rng(seed).integers(len(rows.pair), size=4):
            exact = exact_box(weighing, setup, staircase, row)
            assert exact is not None
            ours = (exact.low_a, exact.high_a, exact.low_b, exact.high_b)
            assert np.allclose(rows.box[row], [float(x) for x in ours], rtol=0.0, atol=NEAR)
            # 1 - lam is a float too: where it is small, its last digit is large beside it
            room = min(x for end in ours for x in (end, 1 - end) if x > 0)
            rounding = Fraction(EXACT) + Fraction(2**-52) / max(room, Fraction(1e-9))
            for bet in exact_bets(staircase, row):
                assert bet.worst_mean(exact) <= 1 + rounding


@examples(20)
@given(setups(), st.sampled_from([0.05, NEVER]))
def test_a_new_cell_stakes_one_and_plans_never_add_to_it(setup: Setup, level: float) -> None:
    weighing = setup.start(level)
    for staircase in staircases(weighing):
        assert staircase._rows.stake.sum(axis=1) == pytest.approx(1.0, abs=EXACT)
    for group, outcome in setup.stream():
        if weighing.count(group, outcome) is not None:
            break
    estimates, counted = weighing.estimates, weighing.counts
    for staircase in staircases(weighing):
        staircase.standing(estimates)  # leaves out what is refuted
        before = deepcopy(staircase._rows)
        staircase.refine(estimates, counted, np.full(len(setup.r), 1.0 / len(setup.r)))
        after = staircase._rows
        for row in range(len(after.pair)):
            parent = (
                (before.pair == after.pair[row])
                & (before.half == after.half[row])
                & (before.start <= after.start[row])
                & (after.end[row] <= before.end)
            )
            # a child's interval touches its parent's neighbours at most in a point
            assert parent.sum() == 1
            inherited = before.stake[parent].sum()
            assert after.stake[row].sum() <= inherited * (1.0 + EXACT)
