"""Past rows as bets on a rate: the first block of evidence where the past is finite.

A rate is ``P[part] / P[whole]``. At a level t and an unknown lam a past row is worth

    W = [cell in part] - t [cell in whole],

a denied row the mean of its two cells' worths with weights lam and 1 - lam. Given the group, rows
are independent and ``E[W] = P[part] - t P[whole]``: not positive if the rate is at most t, not
negative if it is at least t, whatever the other shares are. So the product of ``1 + eta W`` over
all rows has mean at most 1 if the rate is at most t, and that of ``1 - eta W`` if it is at least t.

``eta`` may follow from t, lam, the question and the number of rows that can be worth something
(given which rows these are, they are still independent and the sign of the mean is the same), and
from nothing else that the rows show. It is constant on a lattice of t, lam and that number, which
no count moves. Section 3.21 of ``docs/understand/guarantees.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.cells import GroupCells
from equipoise.comparison import GapScale
from equipoise.rates import Curve, Rate

LAM_RATIO = 1.1  # from one line of lam's lattice to the next, and so for 1 - lam
ROWS_RATIO = 1.05  # the same for the number of rows
LEVEL_RATIO = 1.04  # the same for levels that are compared by ratio
MAX_TILT = 2.6  # a bet expects the past to be off by at most so many standard errors
STRONG_TILT = 3.0  # … but those that refute by past rows alone expect this
MAX_ROW_LOSS = 0.9  # share of its stake that a bet may lose by one past row
APPROVED_MIX = {"tp": 0.75, "fp": 0.25}  # guessed mix of the approved; only sizes rest on it
_SMOOTHING = 0.3  # added to each count for estimates, which are then never 0 or 1
_SMALLEST = 0.005  # the lattice of lam goes on evenly below this
_LEAST_LEVEL = 1e-3  # … and that of levels that are compared by ratio
ABOVE_ALL_LEVELS = 2**30  # the first level left where there is none
_NEVER_POSITIVE = -1e6  # log of a factor that is not positive: such a bet is lost


def _lam_lines() -> Array:
    """Return the lattice of lam: lines at equal ratios from both ends of [0, 1]."""
    steps = int(np.ceil(np.log(0.5 / _SMALLEST) / np.log(LAM_RATIO)))
    below = 0.5 * LAM_RATIO ** -np.arange(steps, -1.0, -1.0)
    return np.concatenate([[0.0], below, 1.0 - below[-2::-1], [1.0]])


LAM_LINES = _lam_lines()
LAM_CENTRES = 0.5 * (LAM_LINES[:-1] + LAM_LINES[1:])


def level_lines(compare: GapScale, epsilon: float) -> Array:
    """Return the lattice of levels between 0 and 1, which follows from the question alone."""
    if compare is GapScale.DIFFERENCE:
        width = min(max(epsilon / 3.0, 0.01), 0.05)
        return np.linspace(0.0, 1.0, 1 + int(np.ceil(1.0 / width)))
    steps = int(np.ceil(-np.log(_LEAST_LEVEL) / np.log(LEVEL_RATIO)))
    return np.concatenate([[0.0], LEVEL_RATIO ** np.arange(-steps, 1.0)])


@dataclass(frozen=True)
class Levels:
    """The levels at which one group's rate is bet on, one for each lattice cell of t.

    Parameters
    ----------
    ends
        The group's level at both ends of each cell of t, shape (levels, 2).
    centres
        The level that bets are sized by, shape (levels,).
    tilts
        The size of a bet times the people of the whole, per level and size of bets.
    """

    ends: Array
    centres: Array
    tilts: Array

    @cached_property
    def largest_bet(self) -> float:
        """The largest eta: no row loses more than ``MAX_ROW_LOSS`` of a stake at any level."""
        largest_worth = max(1.0, float(self.ends.max()), 1.0 - float(self.ends.min()))
        return MAX_ROW_LOSS / largest_worth


@dataclass(frozen=True)
class Gains:
    """The logs of what one group's past rows make of bets, over a grid of its unknown.

    Parameters
    ----------
    first, last
        Per grid cell, the first and the last level that the strong bet does not refute alone; the
        first is above the last where it refutes all.
    main
        For bets of every size, least over the lattice values that a grid cell meets: shape
        (grid cells, 2 ends of the cell, levels, 2 ends of the level, sizes). The levels of a cell
        begin with its first one.
    """

    first: Ints
    last: Ints
    main: Array

    def select(self, cells: slice) -> Gains:
        """Return the gains over some grid cells, without the levels that none of them has."""
        width = int((self.last[cells] - self.first[cells] + 1).max(initial=0))
        # A copy, so that the gains over all other cells can be forgotten.
        main = self.main[cells, :, : max(width, 0)].copy()
        return Gains(self.first[cells], self.last[cells], main)

    @classmethod
    def joined(cls, parts: Sequence[Gains]) -> Gains:
        """Return the gains over the grid cells of all parts; nobody reads levels beyond a last."""
        width = max(part.main.shape[2] for part in parts)
        n_cells = sum(len(part.first) for part in parts)
        # axes: grid cell, end of the cell, level, end of the level, size
        shape = parts[0].main.shape
        main = np.zeros((n_cells, shape[1], width, *shape[3:]))
        start = 0
        for part in parts:
            end = start + len(part.first)
            main[start:end, :, : part.main.shape[2]] = part.main
            start = end
        first = np.concatenate([part.first for part in parts])
        last = np.concatenate([part.last for part in parts])
        return cls(first, last, main)


@dataclass(frozen=True)
class PastRows:
    """One group's past rows, as bets on one rate.

    Parameters
    ----------
    rate
        The rate that is bet on.
    counts
        The group's counts. Approved people whose outcome is not known count with the lesser
        factor of each bet.
    """

    rate: Rate
    counts: GroupCells

    def worths(self, level: Array, lam: Array) -> tuple[Array, Array, Array]:
        """Return W of an approved row with outcome 1, with outcome 0, and of a denied row."""

        def worth(cell: str) -> Array:
            return float(cell in self.rate.part) - level * float(cell in self.rate.whole)

        denied = lam * worth("fn") + (1.0 - lam) * worth("tn")
        return worth("tp"), worth("fp"), denied

    @cached_property
    def rows_that_count(self) -> Array:
        """Lattice values for the number of rows of kinds that can be worth something.

        Several where outcomes are unknown: the number may be any between the least and the most.
        """
        counts = self.counts
        cells_of_whole = self.rate.whole
        good_counts = "tp" in cells_of_whole
        bad_counts = "fp" in cells_of_whole
        with_outcome = (
            counts.approved_positive * good_counts + counts.approved_negative * bad_counts
        )
        denied = counts.denied if cells_of_whole & {"fn", "tn"} else 0.0
        # An approved row of unknown outcome counts for certain only if both outcomes do.
        least_rows = with_outcome + denied + counts.approved_unknown * (good_counts and bad_counts)
        most_rows = with_outcome + denied + counts.approved_unknown * (good_counts or bad_counts)
        # Powers of one ratio, which no count moves: eta may follow from this number (3.21).
        first = round(np.log(max(least_rows, 1.0)) / np.log(ROWS_RATIO))
        last = round(np.log(max(most_rows, 1.0)) / np.log(ROWS_RATIO))
        return np.asarray(ROWS_RATIO ** np.arange(first, last + 1.0))

    def whole_and_variance(self, level: Array, lam: Array) -> tuple[Array, Array]:
        """Return the share of the whole, and Var(W), among the rows that count.

        At a population whose rate is ``level`` and whose unknown is lam, with the guessed mix of
        approved people where the rate does not fix it.
        """
        good, bad = self._approved_mix()
        worth_good, worth_bad, worth_denied = self.worths(level, lam)
        # A guessed mix and not the counts: how large bets are may not follow from what rows show.
        denied = _denied_share(good * worth_good + bad * worth_bad, worth_denied)
        square_of_approved = good * worth_good**2 + bad * worth_bad**2
        variance = (1.0 - denied) * square_of_approved + denied * worth_denied**2
        cells_of_whole = self.rate.whole
        # All approved rows that count are in the whole, of the denied ones only some.
        denied_in_whole = lam * float("fn" in cells_of_whole)
        denied_in_whole = denied_in_whole + (1.0 - lam) * float("tn" in cells_of_whole)
        share_of_whole = 1.0 - denied + denied * denied_in_whole
        return np.maximum(share_of_whole, 1e-3), np.maximum(variance, 1e-9)

    def _approved_mix(self) -> tuple[float, float]:
        """Return the guessed shares of outcomes 1 and 0 among approved rows that count."""
        in_whole = {cell: mix for cell, mix in APPROVED_MIX.items() if cell in self.rate.whole}
        weight = sum(in_whole.values())
        return in_whole.get("tp", 0.0) / weight, in_whole.get("fp", 0.0) / weight

    def gains(self, sides: Array, levels: Levels, sign: int, needed: float) -> Gains:
        """Return what the rows make of bets on a rate above (+1) or below (-1) a level.

        Parameters
        ----------
        sides
            Both ends of every cell of the group's unknown, shape (grid cells, 2).
        levels
            The levels, and how large bets are.
        sign
            +1 against "the rate is at most the level", -1 against "it is at least the level".
        needed
            The log gain with which the strong bet refutes a level alone.
        """
        strong = self.strong_gains(sides, levels, sign)
        first, last = range_of(strong < needed)
        # Where the strong bet refutes all levels no other bet is needed.
        meetings = self._meetings(sides, np.flatnonzero(first <= last))
        n_sizes = levels.tilts.shape[1]
        width = int((last - first + 1).max(initial=0))
        main = np.zeros((len(strong), 2, max(width, 0), 2, n_sizes))
        if len(meetings.cell):
            level = first[meetings.cell][:, None] + np.arange(width)
            # Cells with fewer levels than the widest repeat the last one; nobody reads these.
            level = np.minimum(level, len(levels.centres) - 1)
            eta = sign * self._main_sizes(levels, level, meetings)
            logs = self._log_products(sides[meetings.cell], levels.ends[level], eta)
            # Meetings stand in the order of grid cells, as np.unique returns the cells.
            main[np.unique(meetings.cell)] = meetings.least(logs)
        return Gains(first, last, main)

    def strong_gains(self, sides: Array, levels: Levels, sign: int) -> Array:
        """Return the log gain of the strong bet, least over all corners: (grid cells, levels)."""
        meetings = self._meetings(sides, np.arange(len(sides)))
        _, variance = self.whole_and_variance(levels.centres, meetings.lam[:, None])
        eta = STRONG_TILT / np.sqrt(variance * meetings.rows[:, None])
        eta = sign * np.minimum(eta, levels.largest_bet)
        logs = self._log_products(sides[meetings.cell], levels.ends[None], eta[..., None])
        # Least over both ends of lam and of the level: concave in each by itself (3.21, lemma 3).
        return meetings.least(logs[..., 0].min(axis=(1, 3)))

    def _main_sizes(self, levels: Levels, level: Ints, meetings: _Meetings) -> Array:
        """Return eta of bets of every size, shape (meetings, levels, sizes).

        ``level`` has the levels of each meeting.
        """
        rows = meetings.rows[:, None]
        share_of_whole, variance = self.whole_and_variance(
            levels.centres[level], meetings.lam[:, None]
        )
        per_error = 1.0 / np.sqrt(variance * rows)  # eta that expects one standard error
        # axes: meeting, level, size. That rows are off by more than MAX_TILT errors is rare, and a
        # bet that expects it would be lost wherever they are off by less.
        tilted = np.minimum(
            levels.tilts[level] / (rows * share_of_whole)[..., None],
            (MAX_TILT * per_error)[..., None],
        )
        return np.asarray(np.minimum(tilted, levels.largest_bet))

    def _meetings(self, sides: Array, cells: Ints) -> _Meetings:
        """Return the lattice values of lam and of the number of rows that grid cells meet."""
        low, high = sides[cells].T
        first = np.searchsorted(LAM_LINES, low, side="right") - 1
        last = np.maximum(np.searchsorted(LAM_LINES, high, side="left") - 1, first)
        n_values = last - first + 1
        place = np.repeat(np.arange(len(cells)), n_values)
        # 0, 1, … within each cell: the place among all meetings less that of the cell's first one
        step = np.arange(len(place)) - np.repeat(np.cumsum(n_values) - n_values, n_values)
        lattice = np.minimum(first[place] + step, len(LAM_CENTRES) - 1)
        # Every lattice value of lam with every one of the number of rows: eta is another at each,
        # and a grid cell holds populations of all of them.
        n_rows = len(self.rows_that_count)
        return _Meetings(
            np.repeat(cells[place], n_rows),
            np.repeat(LAM_CENTRES[lattice], n_rows),
            np.tile(self.rows_that_count, len(place)),
        )

    def _log_products(self, lam: Array, ends: Array, eta: Array) -> Array:
        """Return the log products, shape (n, 2 ends of lam, levels, 2 ends of the level, sizes).

        ``lam`` has shape (n, 2), ``ends`` (n or 1, levels, 2), ``eta`` (n, levels, sizes) with its
        sign.
        """
        counts = self.counts
        # axes: cell, end of lam, level, end of the level, size of the bet
        worth_good, worth_bad, worth_denied = self.worths(ends[:, None], lam[:, :, None, None])
        size = eta[:, None, :, None, :]
        cells_of_whole = self.rate.whole
        # Rows outside of the whole are worth nothing, so their factors are 1.
        good = _log_factor(size * worth_good[..., None]) if "tp" in cells_of_whole else 0.0
        bad = _log_factor(size * worth_bad[..., None]) if "fp" in cells_of_whole else 0.0
        total = counts.approved_positive * good + counts.approved_negative * bad
        # With the lesser factor evidence is at most that of the true outcomes, whatever they are.
        if counts.approved_unknown:
            total = total + counts.approved_unknown * np.minimum(good, bad)
        return np.asarray(total + counts.denied * _log_factor(size * worth_denied[..., None]))

    @cached_property
    def curve(self) -> Curve:
        """The estimated rate as a function of the unknown; boxes and label bets go by it."""
        p1, p0, s = self._smoothed_shares().tolist()
        curve = self.rate.curve(p1, p0, s)
        assert curve is not None  # no share is 0
        return curve

    def standard_error(self, lam: Array) -> Array:
        """Return the standard error of the estimated rate at lam, by past rows alone."""
        p1, p0, s = self._smoothed_shares()
        worth_good, worth_bad, worth_denied = self.worths(self.curve.value(lam), lam)
        cells_of_whole = self.rate.whole
        approved_in_whole = p1 * ("tp" in cells_of_whole) + p0 * ("fp" in cells_of_whole)
        denied_in_whole = lam * ("fn" in cells_of_whole) + (1.0 - lam) * ("tn" in cells_of_whole)
        share_of_whole = approved_in_whole + s * denied_in_whole
        variance = p1 * worth_good**2 + p0 * worth_bad**2 + s * worth_denied**2
        n_rows = max(self.counts.like_known.total, 1.0)
        # W is the error of the numerator, so the rate's error is that over the share of the whole.
        return np.asarray(np.sqrt(variance / n_rows) / np.maximum(share_of_whole, 1e-9))

    def _smoothed_shares(self) -> Array:
        """Return the shares of approved rows with outcome 1 and 0, and of denied ones."""
        counts = self.counts.like_known
        numbers = np.array([counts.approved_positive, counts.approved_negative, counts.denied])
        return np.asarray((numbers + _SMOOTHING) / (numbers.sum() + 3.0 * _SMOOTHING))


def _denied_share(worth_approved: Array, worth_denied: Array) -> Array:
    """Return the share of denied rows at which the mean worth is 0, as it is at the level."""
    apart = worth_approved - worth_denied
    divisor = np.where(np.abs(apart) > 1e-9, apart, 1.0)
    share = np.where(np.abs(apart) > 1e-9, worth_approved / divisor, 0.5)
    return np.clip(share, 0.0, 1.0)


def _log_factor(change: Array) -> Array:
    """Return log(1 + change), or nearly minus infinity where that is not positive."""
    if change.min(initial=0.0) > -1.0:  # mostly, and looking is quicker than two arrays more
        return np.asarray(np.log1p(change))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(change > -1.0, np.log1p(change), _NEVER_POSITIVE)


@dataclass(frozen=True)
class _Meetings:
    """Which lattice values grid cells meet, in the order of grid cells."""

    cell: Ints
    lam: Array
    rows: Array

    def least(self, logs: Array) -> Array:
        """Return the least over the lattice values of every grid cell."""
        # Where a run of meetings with one grid cell begins.
        starts = np.flatnonzero(np.diff(self.cell, prepend=-1))
        return np.asarray(np.minimum.reduceat(logs, starts, axis=0))


def range_of(flags: Flags) -> tuple[Ints, Ints]:
    """Return the first and the last true place of every row; first > last where there is none."""
    has_any = flags.any(axis=1)
    first = np.where(has_any, flags.argmax(axis=1), ABOVE_ALL_LEVELS)
    last = np.where(has_any, flags.shape[1] - 1 - flags[:, ::-1].argmax(axis=1), -1)
    return first, last
