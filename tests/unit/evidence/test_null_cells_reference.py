"""The evidence against the reference: the same, label by label, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from equipoise.evidence import UNKNOWN, NullCells
from tests.profiles import examples
from tests.unit.evidence.reference import Cell
from tests.unit.evidence.states import Setup, count, covers, exact_bet, groups_of, setups, weighed


class Shadow:
    """One null cell, followed by the reference; its stakes are never read off again."""

    def __init__(self, cells: NullCells, cell: int) -> None:
        self.cell = cell
        self.groups = [groups_of(cells, cell, bet) for bet in range(cells.log_stake.shape[1])]
        stakes = map(Fraction, np.exp(cells.log_stake[cell]))
        self.bets = [
            Cell([stake], [exact_bet(cells, cell, bet)]) for bet, stake in enumerate(stakes)
        ]

    @property
    def evidence(self) -> Fraction:
        return sum((bet.evidence for bet in self.bets), Fraction(0))

    def count(self, group: int, outcome: int) -> None:
        for (a, b), bet in zip(self.groups, self.bets, strict=True):
            if group in (a, b):
                bet.count(group == a, None if outcome == UNKNOWN else outcome)
                # fewer digits, 1e-60 off at most: exact ones grow with each label
                bet.stakes = [Fraction(round(x * 10**60), 10**60) for x in bet.stakes]


@examples(13)
@given(setups(most_groups=3, labels=40))
def test_evidence_is_the_reference_s(setup: Setup) -> None:
    evidence, rng = setup.start(), np.random.default_rng(setup.seed)
    null = covers(evidence)
    if not all(len(cells) for cells in null):
        return  # where the free data decide, there is nothing to count
    shadows = [Shadow(cells, int(rng.integers(len(cells)))) for cells in null]
    for group, outcome in setup.stream():
        count(evidence, group, outcome)
        for ours, shadow in zip(weighed(evidence), shadows, strict=True):
            shadow.count(group, outcome)
            exact = float(shadow.evidence)
            assert ours[shadow.cell] == pytest.approx(exact, rel=1e-9, abs=1e-40)
