"""What boxes of several pieces share: grids of unknowns, levels, and what past rows gain there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.cells import GroupCells
from equipoise.evidence.claims import Claim
from equipoise.evidence.null_cells import rate_grid
from equipoise.evidence.past_rows import Gains, Levels, PastRows, level_lines, range_of
from equipoise.rates import Band, Rate

if TYPE_CHECKING:
    from equipoise.evidence.row_answers import RowAnswers

BOX_STEP_IN_ERRORS = 2.5  # it is at least so many times as many standard errors of the past
BOLD_SHARE_PER_ERROR = 0.8  # … and, for each epsilon that a gap of past rows is guessed to be off,
LEAST_BOLD_SHARE = 0.05  # … but at least so much …
MOST_BOLD_SHARE = 0.25  # … and at most so much to bets that expect rows off by ``BOLD_TILT`` errors
BOLD_TILT = 2.6
BOLD_RATIO = 1.5  # sizes of such bets are rounded to powers of this
PARTS = 4  # of either side of a box, if it is cut because it keeps an answer from being given
MOST_KEPT_GAINS = 1_000_000  # numbers: gains over cut sides that are kept, for the sake of memory


@dataclass(frozen=True)
class Place:
    """What the gains of a group's rows depend on besides the claim: equal ones are shared.

    Parameters
    ----------
    rates
        The rates that the grid of its unknown goes by.
    bold
        The size of bold bets.
    needed
        The log gain with which a strong bet refutes alone.
    is_group_a
        Whether the group is a, or b.
    """

    rates: tuple[int, ...]
    bold: float
    needed: float
    is_group_a: bool


@dataclass
class SharedGains:
    """What boxes of several pieces share, for bets of certain sizes: kept once it is worked out.

    Parameters
    ----------
    answers
        The wrong answers.
    sizes
        How far bets move the gap.
    bar
        The evidence that refutes a box.
    """

    answers: RowAnswers
    sizes: Array
    bar: float

    def __post_init__(self) -> None:
        self._lines = level_lines(self.answers.compare, self.answers.epsilon)
        # All of this follows from past data and question, which do not change: what is worked out
        # once stays right. It is forgotten only for the sake of memory.
        self._gains: dict[object, Gains] = {}
        self._opposites: dict[object, Array] = {}
        self._grids: dict[object, Array] = {}
        self._gains_of_cut_sides: dict[object, dict[int, Gains]] = {}
        self._opposite_of_cut_sides: dict[object, dict[int, Flags]] = {}
        self._n_kept_gains = 0  # numbers

    def rows(self, rate: int, group: int) -> PastRows:
        """Return a group's past rows as bets on a rate."""
        return _past_rows(self.answers.rates[rate], self.answers.counts[group])

    def grid(self, rates: tuple[int, ...], group: int) -> Array:
        """Return ends of cells of a group's unknown over which none of the rates moves far."""
        # Counts may decide the grid, since they may decide which boxes there are. The lattice of
        # lam, on which eta is constant, has lines of its own that no count moves (3.21).
        key = rates, group
        if key not in self._grids:
            compare = self.answers.compare
            width = self.answers.box_step
            assert width is not None
            bands = []
            errors = []
            for rate in rates:
                rows = self.rows(rate, group)
                bands.append(Band(rows.curve, rows.curve))
                # The error moves with the unknown, which nobody knows: the median over its range.
                lam = np.linspace(0.02, 0.98, 13)
                error = rows.standard_error(lam) / compare.rate_per_gap(rows.curve.value(lam))
                errors.append(float(np.median(error)))
            step = width * max(self.answers.epsilon, BOX_STEP_IN_ERRORS * min(errors))
            self._grids[key] = rate_grid(bands, step, compare)
        return self._grids[key]

    def lattice(self, claim: Claim) -> Array:
        """Return the ends of the lattice cells of t in which the claim may hold."""
        lines = self._lines
        level = claim.level(lines, self.answers.compare)
        # A rate is never at least what is above 1, nor at most what is below 0.
        possible = level[:-1] <= 1.0 if claim.at_least else level[1:] >= 0.0
        return np.stack([lines[:-1], lines[1:]], axis=1)[possible]

    def bold_tilt(self, a: int, b: int) -> float:
        """Return how large a bet is that expects ``BOLD_TILT`` errors, from group totals alone.

        The standard error of a difference is guessed for rates of one half among half of the rows.
        """
        error = self.guessed_error(a, b)
        # Rounded, so that pieces of groups of about the same size share what is worked out.
        return float(BOLD_RATIO ** round(log(BOLD_TILT / error) / log(BOLD_RATIO)))

    def bold_share(self, a: int, b: int) -> float:
        """Return which share of a stake goes to bold bets, from group totals alone.

        They help where the past is so short that it leaves room for the answer; with a long past
        their stake would be lost.
        """
        error = self.guessed_error(a, b) / self.answers.epsilon
        return min(max(LEAST_BOLD_SHARE, BOLD_SHARE_PER_ERROR * error), MOST_BOLD_SHARE)

    def guessed_error(self, a: int, b: int) -> float:
        """Return a guess of the standard error of a gap, from group totals alone."""
        # Totals alone: sizes and stakes may not follow from what the rows show (3.21).
        counts = self.answers.counts
        return float(sum(0.5 / counts[group].total for group in (a, b)) ** 0.5)

    def levels(self, claim: Claim, bold: float, *, is_group_a: bool) -> Levels:
        """Return the levels of a, or of b, for every lattice cell of t, and how large bets are.

        A bet that moves the gap by D expects past rows to be off by what they are when, with
        labels, they refute: ``2 log(bar) / D`` in units of the level.
        """
        compare = self.answers.compare
        t = self.lattice(claim)
        middle = t.mean(axis=1)
        level = claim.level(middle, compare)
        # The level moves by so much when t goes from 0 to 1, along a line on either scale.
        slope = float(claim.level(np.ones(1), compare)[0] - claim.level(np.zeros(1), compare)[0])
        higher = np.clip(np.maximum(level, middle), 1e-3, 1.0)
        unit = (compare.rate_per_gap(higher) * max(1.0, 1.0 / slope))[:, None]
        # A rate near 0 or 1 is known more precisely than one of a half, by which bold bets go.
        rate = np.clip(0.5 * (level + middle), 0.02, 0.98)
        bolder = 0.5 * bold / np.sqrt(rate * (1.0 - rate))
        by_size = np.broadcast_to(2.0 * log(self.bar) / self.sizes, (len(t), len(self.sizes)))
        # axes: lattice cell of t, size of the bet (the bold one last)
        tilts = np.concatenate([by_size, bolder[:, None]], axis=1) / unit
        # a's level moves by the slope when t moves by 1, so its bets are smaller by this factor.
        if is_group_a:
            return Levels(claim.level(t, compare), level, tilts / slope)
        return Levels(t, middle, tilts)

    def gains(self, claim: Claim, group: int, place: Place) -> Gains:
        """Return what a group's rows make of bets against a claim, as group a or as b."""
        key = (claim, group, place)
        if key not in self._gains:
            # "a's rate is too high beside b's": rows of a bet that a's is lower, rows of b that
            # b's is higher.
            sign = claim.sign if place.is_group_a else -claim.sign
            levels = self.levels(claim, place.bold, is_group_a=place.is_group_a)
            sides = adjacent_sides(self.grid(place.rates, group))
            rows = self.rows(claim.rate, group)
            self._gains[key] = rows.gains(sides, levels, sign, place.needed)
        return self._gains[key]

    def opposite(self, claim: Claim, group: int, rates: tuple[int, ...]) -> Array:
        """Return the strong bet of b's rows on the other side: b's rate is exactly t."""
        key = (claim, group, rates)
        if key not in self._opposites:
            # The strong bet goes by the levels alone, so any size of the bold one will do.
            levels = self.levels(claim, 1.0, is_group_a=False)
            rows = self.rows(claim.rate, group)
            sides = adjacent_sides(self.grid(rates, group))
            self._opposites[key] = rows.strong_gains(sides, levels, claim.sign)
        return self._opposites[key]

    def gains_of_cut_sides(self, claim: Claim, group: int, place: Place, cells: Ints) -> Gains:
        """Return what a group's rows gain over the parts of some cells of its grid.

        The parts of a cell are the same for all boxes that it is a side of, so they are worked out
        once.
        """
        gains_by_cell = self._gains_of_cut_sides.setdefault((claim, group, place), {})
        missing = _missing_cells(cells, gains_by_cell)
        # All missing ones in one call, because numpy is slow in many small steps.
        if len(missing):
            sign = claim.sign if place.is_group_a else -claim.sign
            levels = self.levels(claim, place.bold, is_group_a=place.is_group_a)
            ends = parts_of_sides(self.grid(place.rates, group), missing)
            gains = self.rows(claim.rate, group).gains(ends, levels, sign, place.needed)
            for n, cell in enumerate(missing.tolist()):
                gains_by_cell[cell] = gains.select(slice(n * PARTS, (n + 1) * PARTS))
            self._n_kept_gains += gains.main.size
        return Gains.joined([gains_by_cell[cell] for cell in cells.tolist()])

    def opposite_of_cut_sides(
        self, claim: Claim, group: int, place: Place, cells: Ints
    ) -> tuple[Ints, Ints]:
        """Return the first and the last level that b's strong bet on the other side leaves.

        Over the parts of some cells of b's grid, and worked out once as well.
        """
        standing_by_cell = self._opposite_of_cut_sides.setdefault((claim, group, place), {})
        missing = _missing_cells(cells, standing_by_cell)
        if len(missing):
            levels = self.levels(claim, place.bold, is_group_a=False)
            ends = parts_of_sides(self.grid(place.rates, group), missing)
            strong = self.rows(claim.rate, group).strong_gains(ends, levels, claim.sign)
            # axes: cell of the grid, its part, level
            is_standing = (strong < place.needed).reshape(len(missing), PARTS, -1)
            standing_by_cell.update(zip(missing.tolist(), is_standing, strict=True))
        return range_of(np.concatenate([standing_by_cell[cell] for cell in cells.tolist()]))

    def keep_few_cut_sides(self) -> None:
        """Forget what was worked out about cut sides once it is much, for the sake of memory."""
        if self._n_kept_gains > MOST_KEPT_GAINS:
            self._gains_of_cut_sides.clear()
            self._opposite_of_cut_sides.clear()
            self._n_kept_gains = 0

    def forget_gains(self) -> None:
        """Forget what past rows make of bets over whole grids: boxes hold all that is needed."""
        self._gains.clear()
        self._opposites.clear()


def _missing_cells(cells: Ints, by_cell: Mapping[int, object]) -> Ints:
    """Return the cells about which nothing is worked out yet."""
    return np.array([cell for cell in cells.tolist() if cell not in by_cell], dtype=np.intp)


def adjacent_sides(grid: Array) -> Array:
    """Return both ends of every cell of a grid, shape (cells, 2)."""
    return np.stack([grid[:-1], grid[1:]], axis=1)


def parts_of_sides(grid: Array, cells: Ints) -> Array:
    """Return both ends of all parts of some cells of a grid, shape (cells times parts, 2)."""
    # axes: cell, line; then cell, part, end of the part
    lines = np.linspace(grid[cells], grid[cells + 1], PARTS + 1, axis=1)
    return np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2)


# Every piece and every cover asks for the same rows, and each keeps its curve.
@lru_cache(maxsize=512)
def _past_rows(rate: Rate, counts: GroupCells) -> PastRows:
    return PastRows(rate, counts)
