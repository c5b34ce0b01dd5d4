"""The staircase against the reference: the same evidence, label by label, over divisions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from equipoise.evidence import Staircase
from equipoise.evidence.reference import Cell
from equipoise.evidence.staircase import OUT
from tests.profiles import examples
from tests.unit.evidence.states import Setup, exact_bets, setups, staircases


class Shadow:
    """One cell of a staircase, followed by the reference; its stakes are never read off again."""

    def __init__(self, staircase: Staircase, cell: int) -> None:
        self.cell = cell
        self.pairs = [(bets.a, bets.b) for bets in staircase.bets]
        self.first = [list(map(Fraction, bets.first)) for bets in staircase.bets]
        self.cells = [
            Cell(list(map(Fraction, bets.stake[cell])), exact_bets(bets, cell))
            for bets in staircase.bets
        ]

    @property
    def evidence(self) -> Fraction:
        return sum((cell.evidence for cell in self.cells), Fraction(0))

    def count(self, group: int, outcome: int) -> None:
        for (a, b), cell in zip(self.pairs, self.cells, strict=True):
            if group in (a, b):
                cell.count(group == a, None if outcome == OUT else outcome)

    def divide(self, part: float, shares: np.ndarray) -> None:
        evidence, moved = self.evidence, Fraction(part)
        for cell, share, first in zip(self.cells, shares, self.first, strict=True):
            cell.stakes = [
                (1 - moved) * stake + moved * Fraction(share) * evidence * weight
                for stake, weight in zip(cell.stakes, first, strict=True)
            ]

    def round(self) -> None:
        """Keep fewer digits, 1e-60 off at most: exact ones grow with each label."""
        for cell in self.cells:
            cell.stakes = [Fraction(round(x * 10**60), 10**60) for x in cell.stakes]


@examples(13)
@given(setups(most_groups=3, labels=40))
def test_evidence_is_the_reference_s(setup: Setup) -> None:
    weighing, rng = setup.start(), np.random.default_rng(setup.seed)
    shadows = [
        (s, Shadow(s, int(rng.integers(len(s.low))))) for s in staircases(weighing) if len(s.low)
    ]
    for number, (group, outcome) in enumerate(setup.stream()):
        if not all(len(s.low) for s in staircases(weighing)):
            return  # where the free data decide, there is nothing to count
        weighing.count(group, outcome)
        for staircase, shadow in shadows:
            if staircase in weighing.fair_set and number in weighing._divisions:
                division = weighing._divisions[number][weighing.fair_set.index(staircase)]
                shadow.divide(division.part, division.shares)
            shadow.count(group, outcome)
            shadow.round()
            ours = staircase.evidence[shadow.cell]
            assert ours == pytest.approx(float(shadow.evidence), rel=1e-9, abs=1e-40)
