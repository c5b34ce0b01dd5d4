"""Evidence against part of a wrong answer: cells, each with its own e-process.

A cell's evidence is a mixture of likelihood ratios at corners of a box around it. At every point of
the cell it is a supermartingale that starts at 1, so it ever reaches ``1/delta`` with probability
at most delta if the truth lies in the cell, whatever rule chose whom to label. A cell that has
reached the bar is refuted for good. Cells and bets never change; only stakes do, label by label in
request order.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.bets import alternatives, bet_shares, ratios
from equipoise.evidence.corners import Cells, Corners

__all__ = ["OUT", "Bets", "Division", "Staircase"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

OUT = -1  # in place of an outcome that is out, or will never be known
_BLOCK = 100_000  # numbers to work on at a time: what fits a processor's cache


@dataclass(frozen=True)
class Division:
    """Part of every cell's stake is divided anew among its pairs of groups; the sum stays."""

    part: float
    shares: Array  # per pair of groups


@dataclass
class Bets:
    """All bets on one pair of groups, shape (cells, bets): stakes, and what labels do to them.

    ``factors`` has, for a and then for b, the factors of outcome 0, of outcome 1 and of one that is
    out: the smaller of the two.
    """

    a: int
    b: int
    stake: Array
    factors: Array  # (6, cells, bets)
    first: Array  # (bets,): how a stake is divided at first

    @classmethod
    def at(cls, corners: Corners, steps: Array) -> Bets:
        """Return the bets that start at corners and move the gap by the steps."""
        n, q = corners.lam_a.shape
        lam_a, lam_b = corners.lam_a.ravel(), corners.lam_b.ravel()
        rho_a, rho_b = alternatives(
            lam_a,
            lam_b,
            corners.side.ravel(),
            corners.curve_a.reshape(4, -1),
            corners.curve_b.reshape(4, -1),
            steps * corners.unit.reshape(-1, 1) + corners.extra.reshape(-1, 1),
        )
        width = q * rho_a.shape[1]
        factors = np.empty((6, n, width))
        for place, rho, lam in ((0, rho_a, lam_a), (3, rho_b, lam_b)):
            one, zero = ratios(rho, lam)
            factors[place] = zero.reshape(n, width)
            factors[place + 1] = one.reshape(n, width)
            np.minimum(factors[place], factors[place + 1], out=factors[place + 2])
        shares = bet_shares(len(steps))
        stake = (corners.weight[:, :, None] * shares).reshape(n, width)
        return cls(corners.a, corners.b, stake, factors, np.tile(shares, q))

    def kinds(self, groups: Ints, outcomes: Ints) -> Ints:
        """Return which factors labels of groups a and b call for."""
        return np.asarray(3 * (groups == self.b) + np.where(outcomes == OUT, 2, outcomes))

    def __deepcopy__(self, memo: object) -> Bets:
        """Copy the stakes; factors never change."""
        return Bets(self.a, self.b, self.stake.copy(), self.factors, self.first)

    def take(self, which: Flags) -> None:
        """Keep some of the cells."""
        self.stake, self.factors = self.stake[which], self.factors[:, which]


class Staircase:
    """Cells that cover part of a wrong answer, and the evidence against each.

    Parameters
    ----------
    cells
        Boxes and corners.
    steps
        How far bets move the gap.
    bar
        The evidence that refutes a cell.
    """

    def __init__(self, cells: Cells, steps: Sequence[float] | Array, bar: float) -> None:
        self.bar = bar
        self.low, self.high = cells.low, cells.high
        self.bets = [Bets.at(corners, np.asarray(steps)) for corners in cells.corners]
        self._standing = np.ones(len(self.low), dtype=bool)
        self._hardest: int | None = None

    # -- evidence -------------------------------------------------------------------------------

    @property
    def refuted(self) -> bool:
        """Whether every cell is refuted."""
        return not self._standing.any()

    @property
    def evidence(self) -> Array:
        """The evidence against every cell that stands, or was refuted since the last look."""
        return np.asarray(sum(bets.stake.sum(axis=1) for bets in self.bets))

    @property
    def least(self) -> float:
        """The least evidence against a cell that stands."""
        return float(self.evidence[self._standing].min(initial=np.inf))

    def concerns(self, group: int) -> bool:
        """Say whether a group's labels are evidence here at all."""
        return any(group in (bets.a, bets.b) for bets in self.bets)

    def update(self, group: int, outcome: int) -> None:
        """Count one label; one that is out is taken at its worst by every bet."""
        if self.refuted:
            return
        for bets in self.bets:
            if group in (bets.a, bets.b):
                kind = 3 * (group == bets.b) + (2 if outcome == OUT else outcome)
                bets.stake *= bets.factors[kind]
        if self.concerns(group):
            self._refute(self.evidence >= self.bar)
            if self._standing.mean() < 0.7:
                self._drop_refuted()

    def update_block(self, groups: Ints, outcomes: Ints) -> int:
        """Count labels as :meth:`update` would, one after the other, but all at once.

        Return after how many of them all cells were refuted; one more than there are where some
        still stand.
        """
        if self.refuted:
            return 0
        self._drop_refuted()
        first = np.full(len(self.low), len(groups) + 1)
        step = max(1, _BLOCK // self.bets[0].stake.size)
        involved = np.flatnonzero([self.concerns(int(g)) for g in range(self.low.shape[1])])
        places = np.flatnonzero(np.isin(groups, involved))
        for start in range(0, len(places), step):
            here = places[start : start + step]
            evidence = sum(self._follow(bets, groups[here], outcomes[here]) for bets in self.bets)
            beyond = np.asarray(evidence) >= self.bar
            hit = beyond.any(axis=0) & (first > len(groups))
            first[hit] = here[beyond[:, hit].argmax(axis=0)] + 1
            self._refute(hit)
        return int(first.max())

    def divide(self, division: Division) -> None:
        """Divide part of every cell's stake anew."""
        self._divided([bets.stake for bets in self.bets], division)

    def _divided(self, stakes: list[Array], division: Division) -> None:
        wealth = np.asarray(sum(stake.sum(axis=1) for stake in stakes))[:, None]
        for bets, stake, share in zip(self.bets, stakes, division.shares, strict=True):
            stake *= 1.0 - division.part
            stake += division.part * share * wealth * bets.first

    def refuted_with(self, stretches: Sequence[tuple[Division | None, Array]]) -> bool:
        """Say whether all cells would be refuted after further labels.

        Each stretch has how stakes are divided before it, and numbers of labels of shape
        (groups, 3): outcome 0, outcome 1, out.
        """
        if self.refuted:
            return True
        hardest = self._hardest  # most looks end with the cell that ended the last one
        if (
            hardest is not None
            and self._standing[hardest]
            and self._after(stretches, np.array([hardest]))[0] < self.bar
        ):
            return False
        standing = np.flatnonzero(self._standing)
        evidence = self._after(stretches, standing)
        self._hardest = int(standing[evidence.argmin()])
        return bool((evidence >= self.bar).all())

    def _after(self, stretches: Sequence[tuple[Division | None, Array]], cells: Ints) -> Array:
        stakes = [bets.stake[cells] for bets in self.bets]
        for division, counts in stretches:
            if division is not None:
                self._divided(stakes, division)
            for bets, stake in zip(self.bets, stakes, strict=True):
                tally = np.concatenate([counts[bets.a], counts[bets.b]])
                some = np.flatnonzero(tally)
                if len(some):
                    logs = np.log(bets.factors[np.ix_(some, cells)])
                    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                        stake *= np.exp(np.tensordot(tally[some], logs, axes=1))
                        np.nan_to_num(stake, copy=False, posinf=1e300)
        return np.asarray(sum(stake.sum(axis=1) for stake in stakes))

    # -- where it stands ------------------------------------------------------------------------

    def standing(self, most: int) -> tuple[Array, Array, Array]:
        """Return boxes (low, high) of about ``most`` cells that stand and the nats each lacks."""
        self._drop_refuted()
        some = slice(None, None, -(-len(self.low) // most) or 1)
        with np.errstate(divide="ignore"):
            missing = np.log(self.bar) - np.log(self.evidence[some])
        return self.low[some], self.high[some], missing

    def __deepcopy__(self, memo: dict[int, object]) -> Staircase:
        """Copy what labels change; boxes are shared."""
        other = copy(self)
        other.bets, other._standing = deepcopy(self.bets, memo), self._standing.copy()
        return other

    # -- inside ---------------------------------------------------------------------------------

    def _follow(self, bets: Bets, groups: Ints, outcomes: Ints) -> Array:
        """Multiply stakes label by label; return the evidence of these bets after each label."""
        mine = np.flatnonzero((groups == bets.a) | (groups == bets.b))
        path = np.empty((len(mine) + 1, *bets.stake.shape))
        path[0] = bets.stake
        path[1:] = bets.factors[bets.kinds(groups[mine], outcomes[mine])]
        with np.errstate(over="ignore", invalid="ignore"):  # past its bar a cell may run away
            np.multiply.accumulate(path, axis=0, out=path)
            evidence = path @ np.ones(path.shape[-1])
        bets.stake = path[-1].copy()
        if len(mine) == len(groups):
            return np.asarray(evidence[1:])
        return np.asarray(evidence[np.searchsorted(mine, np.arange(len(groups)), side="right")])

    def _refute(self, beyond: Flags) -> None:
        if beyond.any():
            for bets in self.bets:
                bets.stake[beyond] = 0.0  # would grow without bound
            self._standing &= ~beyond

    def _drop_refuted(self) -> None:
        for bets in self.bets:
            bets.stake[bets.stake < 1e-200] = 0.0  # hopeless bets; denormal numbers are slow
        if not self._standing.all():
            keep = self._standing
            self.low, self.high = self.low[keep], self.high[keep]
            for bets in self.bets:
                bets.take(keep)
            self._standing = np.ones(len(self.low), dtype=bool)
            self._hardest = None
