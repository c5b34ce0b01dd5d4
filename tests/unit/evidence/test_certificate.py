"""The proof's premises, in random populations: cells cover, bets are legal, stakes stay one.

`docs/guarantees.md` derives the error probability from these alone. Cells and bets depend on the
past data and the question, never on a label, so there is one state to look at.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.evidence import Staircase
from equipoise.evidence.corners import level_cells, level_grid
from equipoise.evidence.geometry import fair_pairs, unfair_pairs
from equipoise.evidence.reference import fair_box, is_fair, is_unfair, level_side, unfair_box
from equipoise.evidence.staircase import Division
from equipoise.rates import RATES
from tests.profiles import examples
from tests.unit.evidence.states import Setup, exact_bets, label, setups, staircases

EXACT = 1e-12
NEAR = 1e-9  # how far an inverted rate may be off in floating point


def covered(staircase: Staircase, point: np.ndarray) -> bool:
    inside = (staircase.low - NEAR <= point) & (point <= staircase.high + NEAR)
    return bool(inside.all(axis=1).any())


def points(setup: Setup, rng: np.random.Generator) -> np.ndarray:
    """Return unknowns of all groups: anywhere, in corners, and where two rates are on an edge."""
    k = len(setup.r)
    out = [rng.uniform(size=(6, k)), np.round(rng.uniform(size=(2, k)))]
    gap = setup.gamma + setup.epsilon
    for pair in (
        *unfair_pairs(setup.against_unfair, setup.compare, setup.limits),
        *fair_pairs(setup.against_fair, setup.compare, setup.limits),
    ):
        moved = rng.uniform(size=(3, k))
        lam_b = moved[:, pair.b]
        for row, frontier in enumerate(
            (
                pair.unfair_below(lam_b, gap),
                pair.fair_from(lam_b, setup.gamma),
                pair.fair_to(lam_b, setup.gamma),
            )
        ):
            moved[row, pair.a] = np.clip(frontier.at[row], 0.0, 1.0)
        out.append(moved)
    # all groups alike, as far as their rates can be
    out.append(np.repeat(rng.uniform(size=(6, 1)), k, axis=1))
    every = np.concatenate(out)
    return every if setup.limits is None else np.clip(every, *np.array(setup.limits).T)


@examples(24)
@given(setups(), st.integers(0, 2**32))
def test_every_point_of_a_wrong_answer_lies_in_a_cell(setup: Setup, seed: int) -> None:
    """Also points on the frontier. A FAIR point lies in a cell of every cover of the FAIR set."""
    weighing = setup.start()
    gap, gamma = Fraction(setup.gamma + setup.epsilon), Fraction(setup.gamma)
    unfair = list(
        zip(
            unfair_pairs(setup.against_unfair, setup.compare, setup.limits),
            weighing.unfair_set,
            strict=True,
        )
    )
    for point in points(setup, np.random.default_rng(seed)):
        exact = [Fraction(x) for x in point]
        for pair, staircase in unfair:
            if is_unfair(pair, exact[pair.a], exact[pair.b], gap):
                assert covered(staircase, point), (pair, point)
        if all(
            is_fair(pair, exact[pair.a], exact[pair.b], gamma)
            for pair in fair_pairs(setup.against_fair, setup.compare)
        ):
            assert all(covered(staircase, point) for staircase in weighing.fair_set), point


@examples(24)
@given(setups())
def test_every_bet_is_legal_at_every_point_of_its_cell(setup: Setup) -> None:
    """A factor's mean is linear in the unknown: the ends of the box suffice."""
    for staircase in staircases(setup.start()):
        for bets in staircase.bets:
            assert (bets.factors >= 0.0).all()
            for group, place in ((bets.a, 0), (bets.b, 2)):
                zero, one = bets.factors[place : place + 2]
                for ends in (staircase.low, staircase.high):
                    lam = ends[:, [group]]
                    assert (lam * one + (1.0 - lam) * zero <= 1.0 + EXACT).all()


@examples(20)
@given(setups(most_groups=2), st.integers(0, 2**32))
def test_pairs_cells_and_bets_stand_up_to_exact_arithmetic(setup: Setup, seed: int) -> None:
    """The reference draws the same boxes with fractions, and finds every bet legal in them."""
    weighing, rng = setup.start(), np.random.default_rng(seed)
    gap, gamma = Fraction(setup.gamma + setup.epsilon), Fraction(setup.gamma)
    for staircase in staircases(weighing):
        bets = staircase.bets[0]
        for cell in rng.integers(len(staircase.low), size=4) if len(staircase.low) else []:
            a, b = bets.a, bets.b
            ours = np.stack([staircase.low[cell, [a, b]], staircase.high[cell, [a, b]]], axis=1)
            start, end = map(Fraction, ours[1])
            if staircase in weighing.unfair_set:
                pair = unfair_pairs(setup.against_unfair, setup.compare, setup.limits)[
                    weighing.unfair_set.index(staircase)
                ]
                boxes = [unfair_box(pair, start, end, gap)]
            else:
                pair = fair_pairs(setup.against_fair, setup.compare, setup.limits)[0]
                boxes = [fair_box(pair, start, end, half, gamma) for half in (0, 1)]
            same = [
                box
                for box in boxes
                if box is not None
                and np.allclose(ours[0], [float(box.low_a), float(box.high_a)], 0.0, NEAR)
            ]
            assert same, (ours, boxes)
            exact = same[0]
            sides = (exact.low_a, exact.high_a, exact.low_b, exact.high_b)
            # 1 - lam is a float too: where it is small, its last digit is large beside it
            room = min(x for end in sides for x in (end, 1 - end) if x > 0)
            rounding = Fraction(EXACT) + Fraction(2**-52) / max(room, Fraction(1e-9))
            for bet in exact_bets(bets, cell):
                assert bet.worst_mean(exact) <= 1 + rounding


@examples(20)
@given(setups(), st.integers(0, 2**32))
def test_level_cells_stand_up_to_exact_arithmetic(setup: Setup, seed: int) -> None:
    for rate, by_group in setup.against_fair.items():
        bands, falling, step = list(by_group.values()), RATES[rate].falls, 0.05
        limits = setup.limits or ((0.0, 1.0),) * len(bands)
        cells = level_cells(bands, falling, setup.gamma, step, setup.compare, limits)
        ends = level_grid(bands, step, setup.compare)
        found = 0
        for start, end in pairwise(ends):
            top = Fraction(float(setup.compare.above(float(end), setup.gamma)))
            sides = [
                level_side(band, falling, Fraction(float(start)), top, limit)
                for band, limit in zip(bands, limits, strict=True)
            ]
            if any(side is None for side in sides):
                continue
            low, high = np.array([[float(x) for x in side] for side in sides if side]).T
            assert np.allclose(cells.low[found], low, 0.0, NEAR)
            assert np.allclose(cells.high[found], high, 0.0, NEAR)
            found += 1
        assert found == len(cells.low)


@examples(13)
@given(setups(), st.integers(0, 2**32))
def test_a_cell_stakes_one_and_dividing_never_adds_to_it(setup: Setup, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for staircase in staircases(setup.start()):
        assert staircase.evidence == pytest.approx(1.0, abs=EXACT)
        if len(staircase.bets) == 1:
            continue  # no pairs to divide a stake among
        for group, outcome in setup.stream():
            staircase.update(label(group, outcome))
        before = staircase.evidence
        staircase.divide(Division(0.3, rng.dirichlet(np.ones(len(staircase.bets)))))
        assert staircase.evidence == pytest.approx(before, rel=1e-12)


@examples(20)
@given(setups())
def test_limits_only_cut_cells(setup: Setup) -> None:
    """No cell reaches beyond what the unknowns can be."""
    weighing = setup.start()
    least, most = np.array(setup.limits or [(0.0, 1.0)] * len(setup.r)).T
    for staircase in staircases(weighing):
        for bets in staircase.bets:
            for group in (bets.a, bets.b):
                low, high = staircase.low[:, group], staircase.high[:, group]
                assert ((least[group] <= low) & (low <= high) & (high <= most[group])).all()
