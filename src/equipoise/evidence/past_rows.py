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
        tp, fp, fn, tn = (
            float(cell in self.rate.part) - level * float(cell in self.rate.whole)
            for cell in ("tp", "fp", "fn", "tn")
        )
        return tp, fp, lam * fn + (1.0 - lam) * tn

    @cached_property
    def rows_that_count(self) -> Array:
        """Lattice values for the number of rows of kinds that can be worth something.

        Several where outcomes are unknown: the number may be any between the least and the most.
        """
        counts, whole = self.counts, self.rate.whole
        good, bad = "tp" in whole, "fp" in whole
        known = counts.approved_positive * good + counts.approved_negative * bad
        denied = counts.denied if whole & {"fn", "tn"} else 0.0
        least = known + denied + counts.approved_unknown * (good and bad)
        most = known + denied + counts.approved_unknown * (good or bad)
        first, last = (round(np.log(max(n, 1.0)) / np.log(ROWS_RATIO)) for n in (least, most))
        return np.asarray(ROWS_RATIO ** np.arange(first, last + 1.0))

    def expected(self, level: Array, lam: Array) -> tuple[Array, Array]:
        """Return the share of the whole, and Var(W), among the rows that count.

        At a population whose rate is ``level`` and whose unknown is lam, with the guessed mix of
        approved people where the rate does not fix it.
        """
        inside = {cell: mix for cell, mix in APPROVED_MIX.items() if cell in self.rate.whole}
        weight = sum(inside.values())
        good, bad = (inside.get(cell, 0.0) / weight for cell in ("tp", "fp"))
        worth_good, worth_bad, worth_denied = self.worths(level, lam)
        approved = good * worth_good + bad * worth_bad
        apart = approved - worth_denied
        safe = np.where(np.abs(apart) > 1e-9, apart, 1.0)
        denied = np.where(np.abs(apart) > 1e-9, approved / safe, 0.5)
        denied = np.clip(denied, 0.0, 1.0)
        squares = good * worth_good**2 + bad * worth_bad**2
        variance = (1.0 - denied) * squares + denied * worth_denied**2
        whole = self.rate.whole
        of_denied = lam * float("fn" in whole) + (1.0 - lam) * float("tn" in whole)
        return np.maximum(1.0 - denied + denied * of_denied, 1e-3), np.maximum(variance, 1e-9)

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
        meetings = self._meetings(sides, np.flatnonzero(first <= last))
        n_sizes = levels.tilts.shape[1]
        width = int((last - first + 1).max(initial=0))
        main = np.zeros((len(strong), 2, max(width, 0), 2, n_sizes))
        if len(meetings.cell):
            level = first[meetings.cell][:, None] + np.arange(width)
            level = np.minimum(level, len(levels.centres) - 1)
            eta = sign * self._main_sizes(levels, level, meetings)
            logs = self._log_products(sides[meetings.cell], levels.ends[level], eta)
            main[np.unique(meetings.cell)] = meetings.least(logs)
        return Gains(first, last, main)

    def strong_gains(self, sides: Array, levels: Levels, sign: int) -> Array:
        """Return the log gain of the strong bet, least over all corners: (grid cells, levels)."""
        meetings = self._meetings(sides, np.arange(len(sides)))
        _, variance = self.expected(levels.centres, meetings.lam[:, None])
        eta = STRONG_TILT / np.sqrt(variance * meetings.rows[:, None])
        eta = sign * np.minimum(eta, levels.largest_bet)
        logs = self._log_products(sides[meetings.cell], levels.ends[None], eta[..., None])
        return meetings.least(logs[..., 0].min(axis=(1, 3)))

    def _main_sizes(self, levels: Levels, level: Ints, meetings: _Meetings) -> Array:
        """Return eta of bets of every size, shape (meetings, levels, sizes).

        ``level`` has the levels of each meeting.
        """
        rows = meetings.rows[:, None]
        whole, variance = self.expected(levels.centres[level], meetings.lam[:, None])
        per_error = 1.0 / np.sqrt(variance * rows)  # eta that expects one standard error
        tilted = np.minimum(
            levels.tilts[level] / (rows * whole)[..., None], (MAX_TILT * per_error)[..., None]
        )
        return np.asarray(np.minimum(tilted, levels.largest_bet))

    def _meetings(self, sides: Array, cells: Ints) -> _Meetings:
        """Return the lattice values of lam and of the number of rows that grid cells meet."""
        low, high = sides[cells].T
        first = np.searchsorted(LAM_LINES, low, side="right") - 1
        last = np.maximum(np.searchsorted(LAM_LINES, high, side="left") - 1, first)
        number = last - first + 1
        place = np.repeat(np.arange(len(cells)), number)
        step = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
        lattice = np.minimum(first[place] + step, len(LAM_CENTRES) - 1)
        # every lattice value of lam with every one of the number of rows
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
        worth_good, worth_bad, worth_denied = self.worths(ends[:, None], lam[:, :, None, None])
        size = eta[:, None, :, None, :]
        good, bad, denied = (
            _log_factor(size * worth[..., None]) for worth in (worth_good, worth_bad, worth_denied)
        )
        total = counts.approved_positive * good + counts.approved_negative * bad
        if counts.approved_unknown:
            total = total + counts.approved_unknown * np.minimum(good, bad)
        return np.asarray(total + counts.denied * denied)

    @cached_property
    def curve(self) -> Curve:
        """The estimated rate as a function of the unknown; boxes and label bets go by it."""
        known = self.counts.like_known
        counts = np.array([known.approved_positive, known.approved_negative, known.denied])
        p1, p0, s = ((counts + _SMOOTHING) / (counts.sum() + 3.0 * _SMOOTHING)).tolist()
        curve = self.rate.curve(p1, p0, s)
        assert curve is not None  # no share is 0
        return curve

    def standard_error(self, lam: Array) -> Array:
        """Return the standard error of the estimated rate at lam, by past rows alone."""
        known = self.counts.like_known
        counts = np.array([known.approved_positive, known.approved_negative, known.denied])
        p1, p0, s = (counts + _SMOOTHING) / (counts.sum() + 3.0 * _SMOOTHING)
        good, bad, denied = self.worths(self.curve.value(lam), lam)
        part = self.rate.whole
        whole = p1 * ("tp" in part) + p0 * ("fp" in part)
        whole = whole + s * (lam * ("fn" in part) + (1.0 - lam) * ("tn" in part))
        squares = p1 * good**2 + p0 * bad**2 + s * denied**2
        return np.asarray(np.sqrt(squares / max(known.total, 1.0)) / np.maximum(whole, 1e-9))


def _log_factor(change: Array) -> Array:
    """Return log(1 + change), or nearly minus infinity where that is not positive."""
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
        starts = np.flatnonzero(np.diff(self.cell, prepend=-1))
        return np.asarray(np.minimum.reduceat(logs, starts, axis=0))


def range_of(flags: Flags) -> tuple[Ints, Ints]:
    """Return the first and the last true place of every row; first > last where there is none."""
    found = flags.any(axis=1)
    first = np.where(found, flags.argmax(axis=1), 2**30)
    last = np.where(found, flags.shape[1] - 1 - flags[:, ::-1].argmax(axis=1), -1)
    return first, last
