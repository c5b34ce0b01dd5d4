"""The staircase against the reference: the same evidence, label by label, over refinements."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from equipoise.evidence import Staircase, Weighing
from equipoise.evidence.reference import Cell
from equipoise.evidence.staircase import RESTART
from tests.profiles import examples
from tests.unit.evidence.states import Setup, exact_bets, setups, staircases

Name = tuple[int, int, float, float]  # pair, half, start, end


class Shadow:
    """Some cells of a staircase, followed by the reference from bet to bet.

    The bets are read off the staircase before each label; the stakes never are.
    """

    def __init__(self, staircase: Staircase, seed: int) -> None:
        self.staircase = staircase
        self.seed = seed
        chosen = set(np.random.default_rng(seed).permutation(len(self.names()))[:5].tolist())
        self.cells = {
            name: Cell(list(map(Fraction, staircase._rows.prior[row])), exact_bets(staircase, row))
            for row, name in enumerate(self.names())
            if row in chosen
        }

    def names(self) -> list[Name]:
        rows = self.staircase._rows
        return list(
            zip(
                rows.pair.tolist(),
                rows.half.tolist(),
                rows.start.tolist(),
                rows.end.tolist(),
                strict=True,
            )
        )

    def count(self, group: int, outcome: int | None) -> None:
        for (pair, *_), cell in self.cells.items():
            for group_a, member in ((True, self.staircase._a), (False, self.staircase._b)):
                if member[pair] == group:
                    cell.count(group_a, outcome)

    def follow(self, planned: bool) -> None:
        """Take over refinements and new bets, and compare."""
        rows = self.staircase._rows
        followed: dict[Name, Cell] = {}
        for row, name in enumerate(self.names()):
            parent = self._parent(name)
            if parent is None:
                continue
            cell = Cell(parent.stakes, exact_bets(self.staircase, row))
            if planned:
                cell.restart(list(map(Fraction, rows.prior[row])), Fraction(RESTART))
            assert float(cell.evidence) == pytest.approx(rows.stake[row].sum(), rel=1e-9)
            assert [float(x) for x in cell.stakes] == pytest.approx(
                rows.stake[row], rel=1e-9, abs=1e-40
            )
            followed[name] = Cell([_rounded(x) for x in cell.stakes], cell.bets)
        self.cells = followed

    def _parent(self, name: Name) -> Cell | None:
        pair, half, start, end = name
        for (p, h, s, e), cell in self.cells.items():
            if p == pair and h == half and s <= start and end <= e:
                return cell
        return None


def _rounded(x: Fraction) -> Fraction:
    """Return a fraction with fewer digits, 1e-60 off at most: exact ones grow with each label."""
    return Fraction(round(x * 10**60), 10**60)


def shadows(weighing: Weighing, known: list[Shadow], seed: int) -> list[Shadow]:
    """Return a shadow per staircase, new for one that was just opened."""
    by_staircase = {id(shadow.staircase): shadow for shadow in known}
    return [by_staircase.get(id(s)) or Shadow(s, seed) for s in staircases(weighing)]


@examples(20)
@given(setups(most_groups=3, labels=70))
def test_evidence_is_the_reference_s(setup: Setup) -> None:
    weighing = setup.start()
    known = shadows(weighing, [], setup.seed)
    for group, outcome in setup.stream():
        planned = weighing.counts.sum() + 1 >= weighing._next_plan
        for shadow in known:
            shadow.count(group, outcome)
        if weighing.count(group, outcome) is not None:
            break  # where the free data decide, no cell is left to plan for
        for shadow in known:
            shadow.follow(planned)
        known = shadows(weighing, known, setup.seed)
