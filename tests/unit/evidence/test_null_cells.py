"""The proof's premises, in random populations: cells cover, bets are legal, stakes are one.

The guarantees derive the error probability from these alone. Cells and bets depend on the past
data and the question, never on a label, so there is one state to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.comparison import GapScale
from equipoise.evidence import NullCells
from equipoise.evidence.level_cells import TIGHTENING_ROUNDS, level_grid
from equipoise.evidence.wrong_answers import fair_covers, unfair_covers
from equipoise.history.past import Past
from equipoise.metrics import METRICS
from equipoise.rates import RATES
from tests.profiles import examples, quick
from tests.unit.evidence.reference import (
    Box,
    corridor,
    fair_box,
    is_fair,
    is_unfair,
    level_side,
    reach,
    tightened,
    unfair_box,
)
from tests.unit.evidence.states import Setup, covers, exact_bet, groups_of, random_setup, setups

pytestmark = pytest.mark.slow

EXACT = 1e-12
NEAR = 1e-9  # how far an inverted rate may be off in floating point


def covered(cells: NullCells, point: np.ndarray, pair: tuple[int, int] | None = None) -> bool:
    """Say whether some cell holds a point, of those that bets on a pair are against."""
    inside = ((cells.low - NEAR <= point) & (point <= cells.high + NEAR)).all(axis=1)
    if pair is not None:
        inside &= (cells.groups[0][:, 0] == pair[0]) & (cells.groups[1][:, 0] == pair[1])
    return bool(inside.any())


def points(setup: Setup, rng: np.random.Generator) -> np.ndarray:
    """Return unknowns of all groups: anywhere, in corners, and where two rates are on an edge."""
    k = len(setup.r)
    out = [rng.uniform(size=(6, k)), np.round(rng.uniform(size=(2, k)))]
    gap, gamma = Fraction(setup.gamma + setup.epsilon), Fraction(setup.gamma)
    for unfair, fair in zip(
        setup.pairs(setup.bands_for_fair), setup.pairs(setup.bands_for_unfair), strict=True
    ):
        moved = rng.uniform(size=(3, k))
        lam_b = [Fraction(x) for x in moved[:, unfair.b]]
        edges = (
            reach(unfair, lam_b[0], gap),
            corridor(fair, lam_b[1], gamma)[0],
            corridor(fair, lam_b[2], gamma)[1],
        )
        moved[:, unfair.a] = np.clip([float(edge) for edge in edges], 0.0, 1.0)
        out.append(moved)
    # all groups alike, as far as their rates can be
    out.append(np.repeat(rng.uniform(size=(6, 1)), k, axis=1))
    return np.concatenate(out)


@examples(8)
@given(setups(), st.integers(0, 2**32))
def test_every_point_of_a_wrong_answer_lies_in_a_cell(setup: Setup, seed: int) -> None:
    """Also points on the frontier. A FAIR point lies in a cell of every cover of the FAIR set."""
    wrong = setup.wrong()
    (unfair,), fair = unfair_covers(wrong), fair_covers(wrong)
    gap, gamma = Fraction(setup.gamma + setup.epsilon), Fraction(setup.gamma)
    for point in points(setup, np.random.default_rng(seed)):
        exact = [Fraction(x) for x in point]
        for pair in setup.pairs(setup.bands_for_fair):
            if is_unfair(pair, exact[pair.a], exact[pair.b], gap):
                assert covered(unfair, point, (pair.a, pair.b)), (pair, point)
        if all(
            is_fair(pair, exact[pair.a], exact[pair.b], gamma)
            for pair in setup.pairs(setup.bands_for_unfair)
        ):
            assert all(covered(cover, point) for cover in fair), point


@examples(16)
@given(setups())
def test_every_bet_is_legal_at_every_point_of_its_cell(setup: Setup) -> None:
    """A factor's mean is linear in the unknown: the ends of the box suffice."""
    for cells in covers(setup.start()):
        assert np.isfinite(cells.log_factor).all()
        rows = np.arange(len(cells))[:, None]
        for (zero, one), group in zip(np.exp(cells.log_factor), cells.groups, strict=True):
            for ends in (cells.low, cells.high):
                lam = ends[rows, group]
                assert (lam * one + (1.0 - lam) * zero <= 1.0 + EXACT).all()


@examples(20)
@given(setups(most_groups=2), st.integers(0, 2**32))
def test_cells_and_bets_of_two_groups_stand_up_to_exact_arithmetic(setup: Setup, seed: int) -> None:
    """The reference draws the same boxes with fractions, and finds every bet legal in them."""
    rng, wrong = np.random.default_rng(seed), setup.wrong()
    gap, gamma = Fraction(setup.gamma + setup.epsilon), Fraction(setup.gamma)
    for cells in covers(setup.start()):
        for cell in rng.integers(len(cells), size=4).tolist() if len(cells) else []:
            a, b = groups_of(cells, cell, 0)
            ours = np.stack([cells.low[cell, [a, b]], cells.high[cell, [a, b]]], axis=1)
            start, end = map(Fraction, ours[1])
            if cells in unfair_covers(wrong):
                pair = next(p for p in setup.pairs(setup.bands_for_fair) if p.a == a)
                boxes = [unfair_box(pair, start, end, gap)]
            else:
                pair = next(p for p in setup.pairs(setup.bands_for_unfair) if p.a == a)
                boxes = [fair_box(pair, start, end, half, gamma) for half in (0, 1)]
            same = [
                box
                for box in boxes
                if box is not None
                and np.allclose(ours[0], [float(box.low_a), float(box.high_a)], 0.0, NEAR)
            ]
            assert same, (ours, boxes)
            require_legal(cells, cell, same[0])


def require_legal(cells: NullCells, cell: int, box: Box, bets: slice = slice(None)) -> None:
    sides = (box.low_a, box.high_a, box.low_b, box.high_b)
    # 1 - lam is a float too: where it is small, its last digit is large beside it
    room = min(x for end in sides for x in (end, 1 - end) if x > 0)
    rounding = Fraction(EXACT) + Fraction(2**-52) / max(room, Fraction(1e-9))
    for bet in range(cells.log_stake.shape[1])[bets]:
        assert exact_bet(cells, cell, bet).worst_mean(box) <= 1 + rounding


@examples(14)
@given(setups(), st.integers(0, 2**32))
def test_level_cells_stand_up_to_exact_arithmetic(setup: Setup, seed: int) -> None:
    """Also that they are tightened by all rates, and that bets are legal in the exact boxes."""
    if len(setup.r) == 2:
        return
    rng, wrong, gamma = (
        np.random.default_rng(seed),
        setup.wrong(fineness=0.5),
        Fraction(setup.gamma),
    )
    rates = [
        (RATES[rate].trend < 0, list(by.values())) for rate, by in setup.bands_for_unfair.items()
    ]
    for (falling, bands), cells in zip(rates, fair_covers(wrong), strict=True):
        found = 0
        for start, end in pairwise(level_grid(bands, wrong.step, setup.compare)):
            top = Fraction(float(setup.compare.above(float(end), setup.gamma)))
            sides = [level_side(band, falling, Fraction(float(start)), top) for band in bands]
            if any(side is None for side in sides):
                continue
            sides = tightened(
                [s for s in sides if s], rates, setup.compare, gamma, TIGHTENING_ROUNDS
            )
            if sides is None:  # ours may be kept, for the sake of rounding
                if found == len(cells) or not np.isclose(cells.low[found], cells.high[found]).any():
                    continue
                found += 1
                continue
            low, high = np.array([[float(x) for x in side] for side in sides]).T
            assert np.allclose(cells.low[found], low, 0.0, NEAR)
            assert np.allclose(cells.high[found], high, 0.0, NEAR)
            bet = int(rng.integers(cells.log_stake.shape[1]))
            a, b = groups_of(cells, found, bet)
            require_legal(cells, found, Box(*sides[a], *sides[b]), slice(bet, bet + 1))
            found += 1
        assert found == len(cells)


@examples(13)
@given(setups())
def test_a_cell_stakes_one(setup: Setup) -> None:
    for cells in covers(setup.start()):
        assert np.exp(cells.log_stake).sum(axis=1) == pytest.approx(1.0, abs=EXACT)
        assert ((cells.low >= 0.0) & (cells.low <= cells.high) & (cells.high <= 1.0)).all()


@pytest.mark.parametrize("exact", [True, False], ids=["unlimited past", "finite past"])
@pytest.mark.parametrize("compare", tuple(GapScale))
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_no_metric_comparison_or_past_is_left_out(
    metric: str, compare: GapScale, exact: bool
) -> None:
    """All three premises once for each of them, two groups or three; in full both."""
    for seed, groups in quick([(3, 2) if exact else (4, 3)], full=[(3, 2), (4, 3)]):
        drawn = random_setup(seed, groups)
        while len(drawn.r) != groups or 0 in [own.approved for own in drawn.past.cells.values()]:
            seed += 10
            drawn = random_setup(seed, groups)
        past = Past(drawn.past.cells, exact=exact)
        setup = replace(drawn, past=past, metric=metric, compare=compare)
        test_every_point_of_a_wrong_answer_lies_in_a_cell.hypothesis.inner_test(setup, seed)
        test_every_bet_is_legal_at_every_point_of_its_cell.hypothesis.inner_test(setup)
        if groups == 2:
            exact_test = test_cells_and_bets_of_two_groups_stand_up_to_exact_arithmetic
        else:
            exact_test = test_level_cells_stand_up_to_exact_arithmetic
        exact_test.hypothesis.inner_test(setup, seed)


def test_the_mean_over_all_outcomes_is_at_most_one_in_every_cell() -> None:
    """Three labels of any groups, summed over what they may be, at points of the cells' boxes."""
    checks, most = 0, 0.0
    for seed in range(quick(8, full=1_000)):
        for means in means_over_outcomes(random_setup(seed), np.random.default_rng(seed)):
            checks += len(means)
            most = max(most, float(means.max()))
    print(f"{checks:,} means, the largest is 1 + {most - 1.0:.1e}")
    assert most <= 1.0 + EXACT


def means_over_outcomes(setup: Setup, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the mean evidence against some cells of every cover, at a point of each."""
    for cells in covers(setup.start()):
        if not len(cells):
            continue
        which = rng.integers(len(cells), size=20)
        lam = rng.uniform(cells.low[which], cells.high[which])
        ends = np.where(rng.random(lam.shape) < 0.5, cells.low[which], cells.high[which])
        lam = np.where(rng.random(lam.shape) < 0.5, lam, ends)
        groups = rng.integers(len(setup.r), size=3)
        mean = np.zeros(20)
        for outcomes in product((0, 1), repeat=3):
            counts, chance = np.zeros((len(setup.r), 3)), np.ones(20)
            for group, outcome in zip(groups, outcomes, strict=True):
                counts[group, outcome] += 1
                chance *= lam[:, group] if outcome else 1.0 - lam[:, group]
            mean += chance * np.exp(cells.log_wealth(counts, which)).sum(axis=1)
        yield mean


def test_a_bet_that_is_no_number_refutes_nothing() -> None:
    # No comparison holds of a nan: a cell whose evidence is one would look refuted.
    setup = random_setup(3)
    for cells in covers(setup.start()):
        log_wealth = cells.log_wealth(np.zeros((len(setup.r), 3)), slice(None))
        log_wealth[..., 0, 0] = np.nan
        evidence = cells.evidence(log_wealth)
        assert evidence[0] == 0.0
        assert evidence[1:] == pytest.approx(1.0)
