"""Evidence against part of a wrong answer: cells, each with its own e-process.

A cell's evidence is a mixture of likelihood ratios at corners of a box around it. At every point of
the cell it is a supermartingale that starts at 1, so it ever reaches ``1/delta`` with probability
at most delta if the truth lies in the cell, whatever rule chose whom to label. A cell that has
reached the bar is refuted for good. Cells and bets never change; only stakes do, label by label in
request order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.bets import alternatives, bet_shares, ratios
from equipoise.evidence.corners import Cells, Corners
from equipoise.evidence.observation import Sizing, resized

__all__ = ["OUT", "Bets", "Block", "Division", "Kind", "Staircase", "Stretch"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]

Sizings = Sequence[Sizing | None]
Kind = tuple[int, float, float]
"""An observation as evidence sees it: its group, and Z for the outcomes 0 and 1 as far as they are
open; a known outcome leaves one value."""

OUT = -1  # in place of an outcome that is out, or will never be known
_BLOCK = 100_000  # numbers to work on at a time: what fits a processor's cache


@dataclass(frozen=True)
class Division:
    """Part of every cell's stake is divided anew among its pairs of groups; the sum stays."""

    part: float
    shares: Array  # per pair of groups


@dataclass(frozen=True)
class Stretch:
    """Observations to come of which only the number of each kind matters.

    ``division`` is how stakes are divided before them, ``sizings`` how bets on each group are
    sized.
    """

    division: Division | None
    sizings: Sizings
    counts: Mapping[Kind, int]


@dataclass(frozen=True)
class Block:
    """Observations in request order: of which groups, Z at its lowest and highest, and labelled?

    Evidence is looked at after labels; people who are not asked count with the next label.
    """

    groups: Ints
    low: Array
    high: Array
    labelled: Flags

    def __len__(self) -> int:
        return len(self.groups)

    def kinds(self, which: Ints) -> list[Kind]:
        """Return the kinds of some of the observations."""
        rows = (self.groups[which], self.low[which], self.high[which])
        return list(zip(*(row.tolist() for row in rows), strict=True))


@dataclass
class Bets:
    """All bets on one pair of groups, shape (cells, bets): stakes, and what labels do to them.

    ``factors`` has, for a and then for b, the factors of outcome 0 and of outcome 1; ``sized`` the
    same for Z = 0 and Z = 1 at the sizes in force, the same as long as observations are coins.
    """

    a: int
    b: int
    stake: Array
    factors: Array  # (4, cells, bets)
    corner: Array  # (2, cells, bets): where bets on a, and on b, start
    first: Array  # (bets,): how a stake is divided at first
    sized: Array  # (4, cells, bets)

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
            (corners.limits_a, corners.limits_b),
        )
        width = q * rho_a.shape[1]
        factors, corner = np.empty((4, n, width)), np.empty((2, n, width))
        for side, rho, lam in ((0, rho_a, lam_a), (1, rho_b, lam_b)):
            start, one, zero = ratios(rho, lam)
            factors[2 * side] = zero.reshape(n, width)
            factors[2 * side + 1] = one.reshape(n, width)
            corner[side] = np.broadcast_to(start, rho.shape).reshape(n, width)
        shares = bet_shares(len(steps))
        stake = (corners.weight[:, :, None] * shares).reshape(n, width)
        first = np.tile(shares, q)
        return cls(corners.a, corners.b, stake, factors, corner, first, factors)

    def concern(self, group: int) -> bool:
        """Say whether these are bets on a group."""
        return group in (self.a, self.b)

    def at_size(self, sizings: Sizings, cells: Ints | None = None) -> Array:
        """Return the factors of Z = 0 and Z = 1 of bets sized anew, in some cells or in all."""
        factors = self.factors if cells is None else self.factors[:, cells]
        sides = [(side, sizings[group]) for side, group in enumerate((self.a, self.b))]
        if any(sizing is not None for _, sizing in sides):
            factors = factors.copy()
        for side, sizing in sides:
            if sizing is not None:
                own = slice(2 * side, 2 * side + 2)
                corner = self.corner[side] if cells is None else self.corner[side, cells]
                zero, one = factors[own]
                factors[own] = resized(zero, one, corner, sizing)
        return factors

    def factor(self, kind: Kind, sized: Array) -> Array:
        """Return what an observation does to stakes; if its outcome is open, the worst it may."""
        group, low, high = kind
        place = 2 * (group == self.b)
        zero, one = sized[place], sized[place + 1]
        if low == high:
            return _at(low, zero, one)
        return np.minimum(_at(low, zero, one), _at(high, zero, one))

    def table(self, kinds: Sequence[Kind], sized: Array) -> Array:
        """Return the factors of several kinds; 1 for those of other groups."""
        own = np.ones((len(kinds), *sized.shape[1:]))
        for row, kind in enumerate(kinds):
            if self.concern(kind[0]):
                own[row] = self.factor(kind, sized)
        return own

    def __deepcopy__(self, memo: object) -> Bets:
        """Copy the stakes; factors never change."""
        return replace(self, stake=self.stake.copy())

    def take(self, which: Flags) -> None:
        """Keep some of the cells."""
        plain = self.sized is self.factors
        self.stake, self.corner = self.stake[which], self.corner[:, which]
        self.factors = self.factors[:, which]
        self.sized = self.factors if plain else self.sized[:, which]


def _at(z: float, zero: Array, one: Array) -> Array:
    """Return the factor of Z, exactly that of the outcome where Z is one."""
    if z in (0.0, 1.0):
        return one if z else zero
    return np.asarray(z * one + (1.0 - z) * zero)


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
        self._sizings: list[Sizing | None] = [None] * self.low.shape[1]

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

    def size(self, sizings: Sizings) -> None:
        """Size bets on what comes from now on."""
        if list(sizings) != self._sizings:
            self._sizings = list(sizings)
            for bets in self.bets:
                bets.sized = bets.at_size(self._sizings)

    def update(self, kind: Kind) -> None:
        """Count one observation; one that is out is taken at its worst by every bet."""
        if self.refuted:
            return
        group = kind[0]
        for bets in self.bets:
            if bets.concern(group):
                bets.stake *= bets.factor(kind, bets.sized)
        if self.concerns(group):
            self._refute(self.evidence >= self.bar)
            if self._standing.mean() < 0.7:
                self._drop_refuted()

    def update_block(self, block: Block) -> int:
        """Count observations one after the other, but all at once, looking after every label.

        Return after how many of them all cells were refuted; one more than there are where some
        still stand.
        """
        if self.refuted:
            return 0
        self._drop_refuted()
        first = np.full(len(self.low), len(block) + 1)
        step = max(1, _BLOCK // self.bets[0].stake.size)
        involved = np.flatnonzero([self.concerns(int(g)) for g in range(self.low.shape[1])])
        concerned = np.isin(block.groups, involved)
        labels = np.flatnonzero(concerned & block.labelled)
        quiet = np.flatnonzero(concerned & ~block.labelled)
        for start in range(0, len(labels), step):
            here = labels[start : start + step]
            before = quiet[quiet < here[-1]]
            quiet = quiet[len(before) :]
            steps = _Steps.of(block, here, before)
            evidence = sum(self._follow(bets, steps) for bets in self.bets)
            beyond = np.asarray(evidence) >= self.bar
            hit = beyond.any(axis=0) & (first > len(block))
            first[hit] = here[beyond[:, hit].argmax(axis=0)] + 1
            self._refute(hit)
        if len(quiet):  # after the last label: nobody looks
            counts = Counter(block.kinds(quiet))
            for bets in self.bets:
                _multiply(bets.stake, bets, bets.sized, counts)
        return int(first.max())

    def divide(self, division: Division) -> None:
        """Divide part of every cell's stake anew."""
        self._divided([bets.stake for bets in self.bets], division)

    def _divided(self, stakes: list[Array], division: Division) -> None:
        wealth = np.asarray(sum(stake.sum(axis=1) for stake in stakes))[:, None]
        for bets, stake, share in zip(self.bets, stakes, division.shares, strict=True):
            stake *= 1.0 - division.part
            stake += division.part * share * wealth * bets.first

    def refuted_with(self, stretches: Sequence[Stretch]) -> bool:
        """Say whether all cells would be refuted after further observations."""
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

    def _after(self, stretches: Sequence[Stretch], cells: Ints) -> Array:
        stakes = [bets.stake[cells] for bets in self.bets]
        for stretch in stretches:
            if stretch.division is not None:
                self._divided(stakes, stretch.division)
            for bets, stake in zip(self.bets, stakes, strict=True):
                _multiply(stake, bets, bets.at_size(stretch.sizings, cells), stretch.counts)
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

    def _follow(self, bets: Bets, steps: _Steps) -> Array:
        """Multiply stakes step by step; return the evidence of these bets after each."""
        own = np.array([bets.concern(kind[0]) for kind in steps.kinds], dtype=bool)
        hushed = np.flatnonzero([bets.concern(kind[0]) for kind in steps.quiet_kinds])
        moved = own[steps.kind] | steps.quiet[:, hushed].any(axis=1)
        mine = np.flatnonzero(moved)
        path = np.empty((len(mine) + 1, *bets.stake.shape))
        path[0] = bets.stake
        path[1:] = bets.table(steps.kinds, bets.sized)[steps.kind[mine]]
        if len(hushed):
            logs = np.log(bets.table([steps.quiet_kinds[k] for k in hushed], bets.sized))
            path[1:] *= np.exp(np.tensordot(steps.quiet[np.ix_(mine, hushed)], logs, axes=1))
        with np.errstate(over="ignore", invalid="ignore"):  # past its bar a cell may run away
            np.multiply.accumulate(path, axis=0, out=path)
            evidence = path @ np.ones(path.shape[-1])
        bets.stake = path[-1].copy()
        if len(mine) == len(moved):
            return np.asarray(evidence[1:])
        return np.asarray(evidence[np.searchsorted(mine, np.arange(len(moved)), side="right")])

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


@dataclass(frozen=True)
class _Steps:
    """Labels at which the evidence is looked at, and who was not asked before each."""

    kinds: list[Kind]
    kind: Ints  # of each label, by its place in kinds
    quiet_kinds: list[Kind]
    quiet: Array  # (labels, quiet_kinds): how many of each

    @classmethod
    def of(cls, block: Block, labels: Ints, before: Ints) -> _Steps:
        kinds, kind = _numbered(block.kinds(labels))
        quiet_kinds, which = _numbered(block.kinds(before))
        quiet = np.zeros((len(labels), len(quiet_kinds)))
        np.add.at(quiet, (np.searchsorted(labels, before), which), 1.0)
        return cls(kinds, kind, quiet_kinds, quiet)


def _numbered(rows: list[Kind]) -> tuple[list[Kind], Ints]:
    """Return what occurs, and each row's place in it."""
    place = {kind: i for i, kind in enumerate(dict.fromkeys(rows))}
    return list(place), np.array([place[row] for row in rows], dtype=np.intp)


def _multiply(stake: Array, bets: Bets, sized: Array, counts: Mapping[Kind, int]) -> None:
    """Let observations of which only the numbers matter change stakes."""
    own = [kind for kind in counts if bets.concern(kind[0])]
    if own:
        logs = np.log(bets.table(own, sized))
        numbers = np.array([counts[kind] for kind in own], dtype=np.float64)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            stake *= np.exp(np.tensordot(numbers, logs, axes=1))
            np.nan_to_num(stake, copy=False, posinf=1e300)
