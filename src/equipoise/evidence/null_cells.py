"""Both wrong answers as sets of what the groups' unknowns may be: cut into cells, bet against.

Write ``lam_a`` for a possible value of group a's unknown ``r_a = P[Y=1 | f=0, a]``. FAIR is wrong
in the UNFAIR set, a union of pieces ``lam_a <= u(lam_b)``, one per ordered pair of groups that are
compared. UNFAIR is wrong in the FAIR set: for two groups a corridor ``L(lam_b) <= lam_a <=
U(lam_b)``, for more the unknowns at which a rate of every group lies within gamma above some level
(or within gamma of the reference's), for each rate; and so in every stratum. u, L and U do not
fall, so what lies above an interval of ``lam_b``, or belongs to an interval of levels, is inside a
box that is read off the interval's ends: a null cell.

A cover is a set of null cells that holds a whole wrong answer. Cells and bets follow from the past
data and the question alone; no label ever changes them. So the evidence against a cell is a
function of counts, ``sum over bets of stake * exp(sum over kinds of count * log factor)``: that of
a label, of a file of labels, of outcomes that are unknown and of a correction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import combinations
from math import inf
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from equipoise._arrays import Array, Flags, Ints
from equipoise.comparison import Block, GapScale
from equipoise.evidence.bets import (
    Corners,
    alternatives,
    bet_shares,
    fair_sizes,
    log_factors,
    map_coefficients,
    unfair_sizes,
)
from equipoise.evidence.observation import BetScale, ScoredBatch, rescale
from equipoise.rates import Band, Curve

CellIndex = Ints | slice
"""Some of the cells, by their places."""

BandsByRate = tuple[tuple[Band, ...], ...]
"""Per rate, the band of every group."""
Pairs = frozenset[tuple[int, int]]
"""The higher and the lower group of gaps that count."""

FINENESS = 0.04  # width of a cell: how far a rate moves over it, in epsilons
FEW_GROUPS = 8  # with more groups cells are wider, in proportion to their number …
WIDEST_CELL = 0.5  # … up to this many epsilons
_MIN_STEP = 1 / 2000  # … but not finer than this, for the sake of memory
FAR_SIDE_FADE = (
    2.0  # how fast the stake on leaving through the far side falls with its distance in epsilons
)
UNIFORM_PAIR_SHARE = 0.3  # of the stake against level boxes is spread evenly over the pairs
LOG_ODDS_JITTER = (
    0.35  # by how much, in log odds, groups are thought to differ beyond what the past shows
)
_WEIGHT_DRAWS = 2000
_TIGHTENING_ROUNDS = 2  # of tightening level boxes by all rates
_ROUNDING = 1e-12
BOX_CORNERS = 4
_NUMBERS_AT_ONCE = 200_000  # numbers to work on at a time
_NUMBERS_IN_CACHE = 50_000  # numbers that several steps work on in turn
MOST_PAIRS = 600  # of groups that bets against one box are on: those likeliest to be far apart
_MAX_LOG_WEALTH = (
    600.0  # log wealth is cut off there, so that it does not overflow; far above any bar
)


@dataclass(frozen=True, eq=False)
class NullCells(ABC):
    """Boxes that cover a wrong answer, and the bets against each.

    A box binds a few groups; of all others the unknown may be anything. Only what it binds is
    stored.

    Parameters
    ----------
    n_groups
        How many groups there are.
    sides
        The group of every side of a box, shape (cells, sides), or (1, sides) if all bind the same.
    side_low, side_high
        Where that group's unknown lies, shape (cells, sides).
    groups
        The groups a and b that each bet is on: of shape (2, cells, 1) or (2, 1, bets).
    """

    n_groups: int
    sides: Ints
    side_low: Array
    side_high: Array
    groups: Ints

    def __len__(self) -> int:
        return len(self.side_low)

    @property
    def low(self) -> Array:
        """The least unknown of every group, shape (cells, groups)."""
        return self.by_group(self.side_low, 0.0)

    @property
    def high(self) -> Array:
        """The largest unknown of every group, shape (cells, groups)."""
        return self.by_group(self.side_high, 1.0)

    def by_group(self, of_sides: Array, other: float, cells: CellIndex = slice(None)) -> Array:
        """Return what sides of some cells have as columns of groups; ``other`` for the rest."""
        dense = np.full((len(of_sides), self.n_groups), other)
        np.put_along_axis(dense, self.sides_of(cells), of_sides, axis=1)
        return dense

    def sides_of(self, cells: CellIndex) -> Ints:
        """Return the groups of the sides of some cells."""
        return self.sides[cells] if len(self.sides) == len(self) else self.sides

    @property
    @abstractmethod
    def numbers_per_cell(self) -> int:
        """How many numbers say what the bets against a cell have become."""

    @abstractmethod
    def log_wealth(self, counts: Array, cells: CellIndex, scored: Array | float = 0.0) -> Array:
        """Return the log of what bets have become.

        Parameters
        ----------
        counts
            Labels per group that are 0, that are 1, and that are unknown, shape (…, groups, 3). An
            unknown one counts with the smaller of its two factors, per bet.
        cells
            The cells that are asked about.
        scored
            What bets gained by scored observations, as :meth:`scored_gain` returns it.
        """

    @abstractmethod
    def evidence(self, log_wealth: Array) -> Array:
        """Return the evidence against each cell: the sum over its bets."""

    @abstractmethod
    def no_gain(self, cells: CellIndex) -> Array:
        """Return zeros in the shape of what bets against some cells gain by observations."""

    @abstractmethod
    def scored_factors(
        self, side: int, bet_scale: BetScale, cells: CellIndex
    ) -> tuple[Array, Array]:
        """Return the factors of Z = 0 and Z = 1 of bets on a (0) or b (1) of such a size."""

    @abstractmethod
    def some(self, cells: Ints) -> Self:
        """Return some of the cells."""

    @abstractmethod
    def labels_needed(self, start: Array, growth: Array, bar: float) -> Array:
        """Return after how many labels each cell is refuted, if labels make bets grow so fast.

        ``start`` and ``growth`` are logs as :meth:`log_wealth` returns them; ``bar`` is one too.
        """

    def evidence_of_counts(self, counts: Array, cells: Ints) -> Array:
        """Return the evidence of labels against cells, few at a time: they stay in the cache."""
        looks = counts.shape[:-2]
        found = np.empty((*looks, len(cells)))
        width = self.numbers_per_cell * max(int(np.prod(looks)), 1)
        few = max(1, _NUMBERS_IN_CACHE // width)
        for start in range(0, len(cells), few):
            some = cells[start : start + few]
            found[..., start : start + few] = self.evidence(self.log_wealth(counts, some))
        return found

    def scored_gain(self, group: int, people: ScoredBatch, by: Ints, cells: CellIndex) -> Array:
        """Return the log gain from observations of a group, one look on the first axis.

        ``by`` says how many of them there are by each look. Bets are sized for them; one whose
        outcome is not known counts with the smaller of its factors.
        """
        z, times = np.stack([people.low, people.high]), np.ones(len(people.low))
        if len(by) == 1:  # only how many there are of each kind matters
            z, counts = np.unique(z[:, : by[0]], axis=1, return_counts=True)
            times, by = counts.astype(float), np.array([len(counts)])
        none = self.no_gain(cells)
        total = np.zeros((len(by), *none.shape))
        one_each = (1,) * none.ndim
        carry, step = 0.0, max(1, _NUMBERS_AT_ONCE // max(none.size, 1))
        owners = [owner == group for owner in self._groups_of(cells)]
        sides = [
            (s, self.scored_factors(s, people.bet_scale, cells)) for s in (0, 1) if owners[s].any()
        ]
        for start in range(0, int(by.max(initial=0)) if sides else 0, step):
            some = slice(start, start + step)
            ends = z[:, some].reshape(2, -1, *one_each)
            logs = np.zeros((len(ends[0]), *none.shape))
            for side, (zero, one) in sides:
                factor = np.minimum(*(end * one + (1.0 - end) * zero for end in ends))
                logs += np.where(owners[side], np.log(factor), 0.0)
            logs = carry + np.cumsum(logs * times[some].reshape(-1, *one_each), axis=0)
            here = (by > start) & (by <= start + len(logs))
            total[here], carry = logs[by[here] - start - 1], logs[-1]
        return total

    def _groups_of(self, cells: CellIndex) -> Ints:
        return self.groups[:, cells] if self.groups.shape[2] == 1 else self.groups


@dataclass(frozen=True, eq=False)
class BandCells(NullCells):
    """Boxes whose bets start at one corner or several, made when they are first looked at.

    Parameters
    ----------
    corners
        Where bets start, and how far they have to go; bets belong to corners in turn.
    sizes
        How far bets move the gap.
    compare
        How gaps are measured.
    """

    corners: Corners
    sizes: Array
    compare: GapScale

    @property
    def numbers_per_cell(self) -> int:
        """How many bets there are against a cell."""
        return int(self.corners.start.shape[2]) * len(bet_shares(len(self.sizes)))

    @cached_property
    def log_stake(self) -> Array:
        """How a cell's stake of 1 is divided among its bets, shape (cells, bets)."""
        shares, weight = bet_shares(len(self.sizes)), self.corners.weight
        shape = len(self), self.numbers_per_cell
        is_same_for_all = len(self) > 0 and weight.strides[0] == 0
        with np.errstate(divide="ignore"):
            if is_same_for_all:  # stored once
                return np.broadcast_to(np.log(np.outer(weight[0], shares).ravel()), shape)
            return np.log((weight[..., None] * shares).reshape(shape))

    @cached_property
    def log_factor(self) -> Array:
        """What a label of a (first axis 0) or of b (1) that is 0 or 1 (second axis) does to a bet.

        Shape (2, 2, cells, bets).
        """
        n, width = len(self), self.numbers_per_cell
        log_factor = np.empty((2, 2, n, width))
        step = max(1, _NUMBERS_AT_ONCE // width)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            corners = self.corners.some(rows)
            rho = alternatives(corners, self.sizes, self.compare)
            own = log_factors(rho, corners.start[..., None])  # (outcome, group, cells, …)
            log_factor[:, :, rows] = own.swapaxes(0, 1).reshape(2, 2, -1, width)
        return log_factor

    def some(self, cells: Ints) -> Self:
        """Return some of the cells; bets of the others are not made."""
        groups = self._groups_of(cells)
        box = self.sides_of(cells), self.side_low[cells], self.side_high[cells]
        corners = self.corners.some(cells)
        return type(self)(self.n_groups, *box, groups, corners, self.sizes, self.compare)

    def log_wealth(self, counts: Array, cells: CellIndex, scored: Array | float = 0.0) -> Array:
        """Return the log of what bets have become, shape (…, cells, bets)."""
        factors = self.log_factor[:, :, cells]
        if counts[..., 2].any():
            factors = np.concatenate([factors, factors.min(axis=1, keepdims=True)], axis=1)
        wealth = np.zeros((*counts.shape[:-2], 1, 1)) + self.log_stake[cells]
        gain = np.empty_like(wealth)  # used again: making arrays takes longer than adding them
        for of_side, group in zip(factors, self._groups_of(cells), strict=True):
            for kind, factor in enumerate(of_side):
                wealth += np.multiply(counts[..., group, kind], factor, out=gain)
        return wealth + scored

    def no_gain(self, cells: CellIndex) -> Array:
        """Return zeros in the shape of what bets against some cells gain by observations."""
        return np.zeros_like(self.log_stake[cells])

    def scored_factors(
        self, side: int, bet_scale: BetScale, cells: CellIndex
    ) -> tuple[Array, Array]:
        """Return the factors of Z = 0 and Z = 1 of bets on a (0) or b (1) of such a size."""
        zero, one = np.exp(self.log_factor[side][:, cells])
        corner = np.clip(self.corners.start[side][cells], 1e-9, 1.0 - 1e-9)
        return rescale(zero, one, np.repeat(corner, zero.shape[1] // corner.shape[1], 1), bet_scale)

    def labels_needed(self, start: Array, growth: Array, bar: float) -> Array:
        """Return after how many labels each cell is refuted, if labels make bets grow so fast."""
        return np.asarray(_labels_needed(start, growth, bar).min(axis=-1))

    def evidence(self, log_wealth: Array) -> Array:
        """Return the evidence against each cell: the sum over its bets."""
        return _sum_of_bets(log_wealth)


@dataclass(frozen=True, eq=False)
class CornerCells(NullCells):
    """Boxes with bets that are read at all four corners of two sides.

    These are the bets of :mod:`equipoise.evidence.boxes`. What a bet has become depends on the
    corner, and it counts at the least of the four. Several bets on past rows go with the same bet
    on labels, whose factors are stored once.

    Parameters
    ----------
    log_stake
        Stakes after the past, shape (4, cells, bets): by the ends of a's side and of b's side.
    log_factor
        Shape (2, 2, 2, cells, label bets): by side of the box, outcome, and end of that side.
    bet_start
        Where bets on labels start, shape (2, cells, label bets).
    label_bet
        The bet on labels that goes with each bet.
    """

    log_stake: Array
    log_factor: Array
    bet_start: Array
    label_bet: Ints

    @property
    def numbers_per_cell(self) -> int:
        """How many bets there are against a box, four times: at every corner."""
        return BOX_CORNERS * len(self.label_bet)

    @classmethod
    def joined(cls, parts: Sequence[CornerCells]) -> CornerCells:
        """Return the boxes of all parts as one set."""
        shared = {"n_groups", "label_bet"}
        arrays = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts], axis=-2)
            for field in fields(cls)
            if field.name not in shared
        }
        return cls(n_groups=parts[0].n_groups, label_bet=parts[0].label_bet, **arrays)

    def some(self, cells: Ints) -> Self:
        """Return some of the boxes."""
        shared = {"n_groups", "label_bet"}
        arrays = {
            field.name: getattr(self, field.name)[..., cells, :]
            for field in fields(self)
            if field.name not in shared
        }
        return type(self)(n_groups=self.n_groups, label_bet=self.label_bet, **arrays)

    def log_wealth(self, counts: Array, cells: CellIndex, scored: Array | float = 0.0) -> Array:
        """Return the log of what bets have become, shape (…, 4, cells, bets)."""
        factors = self.log_factor[..., cells, :]
        unknown = counts[..., 2].any()
        gains = []  # of a's labels and of b's: shape (…, 2 ends, cells, label bets)
        for (zero, one), group in zip(factors, self._groups_of(cells), strict=True):
            of_group = counts[..., group, :][..., None, :, :, :]
            gain = of_group[..., 0] * zero
            gain += of_group[..., 1] * one
            if unknown:
                gain += of_group[..., 2] * np.minimum(zero, one)
            gains.append(gain)
        corners = gains[0][..., :, None, :, :] + gains[1][..., None, :, :, :]
        corners = corners.reshape(*corners.shape[:-4], BOX_CORNERS, *corners.shape[-2:]) + scored
        wealth = corners.take(self.label_bet, axis=-1)
        wealth += self.log_stake[:, cells]
        return np.asarray(wealth)

    def evidence(self, log_wealth: Array) -> Array:
        """Return the evidence against each box: the sum over its bets, each at its least corner."""
        return _sum_of_bets(_least_corner(log_wealth))

    def labels_needed(self, start: Array, growth: Array, bar: float) -> Array:
        """Return after how many labels each box is refuted: a bet as late as its last corner."""
        return np.asarray(_labels_needed(start, growth, bar).max(axis=0).min(axis=-1))

    def no_gain(self, cells: CellIndex) -> Array:
        """Return zeros in the shape of what bets on labels gain, by corner."""
        return np.zeros((BOX_CORNERS, *self.bet_start[0][cells].shape))

    def scored_factors(
        self, side: int, bet_scale: BetScale, cells: CellIndex
    ) -> tuple[Array, Array]:
        """Return the factors of Z = 0 and Z = 1 at every corner: one size for all of a bet's."""
        zero, one = np.exp(self.log_factor[side][..., cells, :])  # (2 ends, cells, bets)
        slope = one - zero
        lam = (1.0 - zero) / np.where(slope == 0.0, 1.0, slope)
        start = np.clip(self.bet_start[side][cells], 1e-9, 1.0 - 1e-9)
        at_zero, at_one = rescale(
            1.0 - slope * start, 1.0 + slope * (1.0 - start), start, bet_scale
        )
        size = at_one - at_zero
        end_of_corner = [0, 0, 1, 1] if side == 0 else [0, 1, 0, 1]
        return (1.0 - size * lam)[end_of_corner], (1.0 + size * (1.0 - lam))[end_of_corner]


def _sum_of_bets(log_wealth: Array) -> Array:
    """Return what all bets together have become."""
    wealth = np.minimum(log_wealth, _MAX_LOG_WEALTH)
    return np.asarray(np.exp(wealth, out=wealth).sum(axis=-1))


def _labels_needed(start: Array, growth: Array, bar: float) -> Array:
    """Return after how many labels each bet alone reaches the bar."""
    with np.errstate(divide="ignore", invalid="ignore"):  # some bets have no stake
        return np.where(growth > 1e-12, np.maximum(bar - start, 0.0) / growth, np.inf)


def _least_corner(by_corner: Array) -> Array:
    """Return the least of four numbers; the corner is the third axis from the end."""
    first, second, third, last = (by_corner[..., corner, :, :] for corner in range(BOX_CORNERS))
    return np.asarray(np.minimum(np.minimum(first, second), np.minimum(third, last)))


@dataclass(frozen=True)
class WrongAnswers:
    """The UNFAIR set, which FAIR has to refute, and the FAIR set, which UNFAIR has to refute.

    Parameters
    ----------
    bands_for_fair, bands_for_unfair
        The bands that each set rests on: where the past is finite their levels differ.
    gamma, epsilon, compare, blocks
        The question; every group is compared with every other if there are no blocks.
    level_fair, level_unfair
        The error probability that evidence may use for a wrong FAIR, and for a wrong UNFAIR.
    precision
        Per group, the share of good outcomes among the approved: pairs that are likely to be
        extreme get a larger part of the stake.
    fineness
        Width of a cell in epsilons.
    """

    bands_for_fair: BandsByRate
    bands_for_unfair: BandsByRate
    gamma: float
    epsilon: float
    level_fair: float
    level_unfair: float
    compare: GapScale = GapScale.DIFFERENCE
    precision: tuple[float, ...] = ()
    fineness: float = FINENESS
    blocks: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        everybody = tuple(range(len(self.bands_for_unfair[0])))
        object.__setattr__(self, "blocks", self.blocks or (Block("", everybody),))

    @cached_property
    def pairs(self) -> Pairs:
        """The higher and the lower group of every gap that counts."""
        return frozenset(pair for block in self.blocks for pair in block.pairs)

    @property
    def step(self) -> float:
        """How far a rate moves over a cell.

        There are cells for every pair of groups, so many groups have wider ones: validity does not
        rest on it, and cells do not outgrow the memory.
        """
        crowd = max(len(self.bands_for_unfair[0]) / FEW_GROUPS, 1.0)
        fineness = min(self.fineness * crowd, max(WIDEST_CELL, self.fineness))
        return max(fineness * self.epsilon, _MIN_STEP)

    def unfair_covers(self) -> tuple[NullCells, ...]:
        """Return the one cover of the UNFAIR set."""
        return unfair_covers(self)

    def fair_covers(self) -> tuple[NullCells, ...]:
        """Return the covers of the FAIR set."""
        return fair_covers(self)

    def both_allowed(self, low: Array, high: Array) -> bool:
        """Say whether every point of a box lies in both sets, as far as cells reach beyond them."""
        gap = self.gamma + self.epsilon - self.step
        pieces = _pieces(self, self.bands_for_fair)
        reach, _ = _reach(self.bands_for_fair, pieces, low[pieces.b], gap, self.compare)
        if not (reach >= high[pieces.a]).any():
            return False
        gap = self.gamma + self.step
        return all(
            _corridor(self, a, b, high[[b]], gap)[0].max() <= low[a]
            and _corridor(self, a, b, low[[b]], gap)[1].min() >= high[a]
            for a, b in combinations(range(len(low)), 2)
        )


@lru_cache(maxsize=2)  # trial runs of one audit begin alike
def unfair_covers(wrong: WrongAnswers) -> tuple[NullCells, ...]:
    """Return the cover of the UNFAIR set: the cells of all pairs of groups.

    Where rates of a and b differ by the threshold or more, a's unknown being the lower,
    ``lam_a <= u(lam_b)``; so above [start, end] the point lies in ``[0, u(end)] x [start, end]``.
    Bets leave the box by a rising and b falling.
    """
    gap, rates = wrong.gamma + wrong.epsilon, wrong.bands_for_fair
    sizes = wrong.epsilon * np.asarray(fair_sizes(gap, wrong.epsilon))
    pieces = _pieces(wrong, rates)
    grids: dict[tuple[object, ...], Array] = {}
    grid_of_piece = []
    for b, counts in zip(pieces.b.tolist(), pieces.counts.T.tolist(), strict=True):
        key = (b, *counts)
        if key not in grids:
            own = [bands[b] for bands, is_own in zip(rates, counts, strict=True) if is_own]
            grids[key] = rate_grid(own, wrong.step, wrong.compare)
        grid_of_piece.append(grids[key])
    start = np.concatenate([grid[:-1] for grid in grid_of_piece])
    end = np.concatenate([grid[1:] for grid in grid_of_piece])
    piece = np.repeat(np.arange(len(grid_of_piece)), [len(grid) - 1 for grid in grid_of_piece])
    reach = np.empty_like(end)
    active = _as_small(np.zeros(len(end), dtype=np.intp))
    for first in range(0, len(end), _NUMBERS_AT_ONCE):
        some = slice(first, first + _NUMBERS_AT_ONCE)
        own_pieces = pieces.some(piece[some])
        reach[some], active[some] = _reach(rates, own_pieces, end[some], gap, wrong.compare)
    full = reach >= 0.0
    # Boxes and corners are views of these rows: many groups have millions of cells.
    ends = np.stack([end[full], np.minimum(reach[full], 1.0), start[full], np.zeros(full.sum())])
    high, at, low = ends[1::-1].T, ends[1:3, :, None], ends[:1:-1].T
    groups = _as_small(np.stack([pieces.a, pieces.b]))[:, piece[full], None]
    curves, aim = _aim(rates, groups, active[full][:, None])
    one = np.broadcast_to(1.0, at.shape[1:])
    corners = Corners(at, curves, aim, one, one, np.broadcast_to(0.0, one.shape))
    sides = groups[..., 0].T
    k = len(rates[0])
    return (BandCells(k, sides, low, high, groups, corners, sizes, wrong.compare),)


@lru_cache(maxsize=2)
def fair_covers(wrong: WrongAnswers) -> tuple[NullCells, ...]:
    """Return covers of the FAIR set: of each block, one for two groups, one per rate for more.

    Who is FAIR is so in every block. The corridor of two groups is cut along one of them. Where
    the past tells them apart, their order follows from it; where it does not, there is a cover
    for either order.
    """
    rates, epsilon = wrong.bands_for_unfair, wrong.epsilon
    sizes = epsilon * np.asarray(unfair_sizes(epsilon))
    covers = []
    for block in wrong.blocks:
        if len(block.groups) > 2:
            covers += [_level_cells(wrong, block, bands, sizes) for bands in rates]
        else:
            a, b = block.groups
            alike = all(bands[a] == bands[b] for bands in rates)
            orders = [(a, b), (b, a)][: 1 + alike]
            covers += [_corridor_cells(wrong, a, b, sizes) for a, b in orders]
    return tuple(covers)


@dataclass(frozen=True)
class Pieces:
    """Ordered pairs of groups whose gap counts where a's unknown is too low beside b's.

    Then a falling rate of a is above b's, and a rising one of b above a's. ``counts`` says which
    rates count for each pair, shape (rates, pairs).
    """

    a: Ints
    b: Ints
    counts: Flags

    def some(self, which: Ints) -> Pieces:
        """Return some of the pairs, or each of them several times."""
        return Pieces(self.a[which], self.b[which], self.counts[:, which])


def _pieces(wrong: WrongAnswers, rates: BandsByRate) -> Pieces:
    """Return the pieces of the UNFAIR set."""
    k = len(rates[0])
    compared = np.zeros((k, k), dtype=bool)
    compared[tuple(np.array(sorted(wrong.pairs)).T)] = True
    a, b = np.nonzero(~np.eye(k, dtype=bool))
    counts = np.array([compared[a, b] if _falls(bands) else compared[b, a] for bands in rates])
    return Pieces(a, b, counts).some(np.flatnonzero(counts.any(axis=0)))


# -- two groups -----------------------------------------------------------------------------------


def _reach(
    rates: BandsByRate, pieces: Pieces, lam_b: Array, gap: float, compare: GapScale
) -> tuple[Array, Ints]:
    """Return u(lam_b) of every piece, and the rate that sets it.

    Up to there a falling rate of a may be ``gap`` above b's, or a rising rate of b above a's.
    """
    bounds = []
    for bands, counts in zip(rates, pieces.counts, strict=True):
        every = Band.stack(bands)
        if _falls(bands):
            end = compare.above(_curves_of(every.low, pieces.b).value(lam_b), gap)
            bound = _curves_of(every.high, pieces.a).largest_r_with(end, falling=True)
        else:
            end = compare.below(_curves_of(every.high, pieces.b).value(lam_b), gap)
            bound = _curves_of(every.low, pieces.a).largest_r_with(end, falling=False)
        bounds.append(np.where(counts, bound, -inf))
    stacked = np.stack(bounds)
    return stacked.max(axis=0), stacked.argmax(axis=0)


def _as_small(places: Ints) -> Ints:
    """Return places of groups or rates in half of the memory."""
    half: DTypeLike = np.int32
    return np.asarray(places, dtype=half)


def _curves_of(curves: Curve, groups: Ints) -> Curve:
    """Return the curves of some groups, of those of all."""
    return map_coefficients(curves, lambda x: x[groups])


def _corridor(wrong: WrongAnswers, a: int, b: int, lam_b: Array, gap: float) -> tuple[Array, Array]:
    """Return L(lam_b) and U(lam_b) as each rate sets them, shape (rates, n).

    Neither falls, also where a's rate is the same for all of its unknowns.
    """
    ends = []
    for bands in wrong.bands_for_unfair:
        slack = 0.0 if bands[a].depends_on_r and bands[b].depends_on_r else _ROUNDING
        low = wrong.compare.below(bands[b].low.value(lam_b), gap) - slack
        high = wrong.compare.above(bands[b].high.value(lam_b), gap) + slack
        low = low if (b, a) in wrong.pairs else np.full_like(low, -inf)  # a may be any lower
        high = high if (a, b) in wrong.pairs else np.full_like(high, inf)
        ends.append(bands[a].r_range(low, high, falling=_falls(bands)))
    return np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])


def _corridor_cells(wrong: WrongAnswers, a: int, b: int, sizes: Array) -> NullCells:
    """Return the cells where the rates of two groups differ by at most gamma.

    Above [start, end] the corridor is split at its middle line m. The upper half lies in
    ``[m(start), U(end)]``, the lower in ``[L(start), m(end)]``. The upper half bets mostly that the
    truth lies above the corridor, and a little that it lies below: the less, the further that side
    is. The lower half mirrors it. Where the corridor narrows to nothing both sides are as near.
    """
    rates, compare = wrong.bands_for_unfair, wrong.compare
    ends = np.tile(rate_grid([bands[b] for bands in rates], wrong.step, compare), (2, 1))
    start, end = ends[:, :-1].ravel(), ends[:, 1:].ravel()
    upper = np.repeat([False, True], ends.shape[1] - 1)
    from_start, to_start = _corridor(wrong, a, b, start, wrong.gamma)
    from_end, to_end = _corridor(wrong, a, b, end, wrong.gamma)
    full = _full(from_start.max(axis=0), to_end.min(axis=0))
    start, end, upper = start[full], end[full], upper[full]
    edges = np.stack([to_end, from_start], axis=2)[:, full]
    active = np.stack([to_end.argmin(axis=0), from_start.argmax(axis=0)], axis=1)[full]
    low, low_end = (np.clip(x.max(axis=0)[full], 0.0, 1.0) for x in (from_start, from_end))
    high, high_start = (np.clip(x.min(axis=0)[full], 0.0, 1.0) for x in (to_end, to_start))
    up_a = np.where(upper, high, np.minimum((low_end + high) / 2.0, high))
    down_a = np.where(upper, np.maximum((low + high_start) / 2.0, low), low)
    at = np.stack([np.stack([up_a, down_a], axis=1), np.stack([start, end], axis=1)])
    sides = np.array([[a, b]])
    curves, place = _aim(rates, sides.T[..., None], _steepest(wrong, a, b, at, edges, active))
    aim = _curves_of(curves, place)
    unit, far_side = _unit(compare, aim, at), np.stack([high, low], axis=1)
    extra = np.abs(aim.value(far_side)[0] - aim.value(at)[0])
    far = 0.5 * np.exp(-FAR_SIDE_FADE * (extra / unit).max(axis=1) / wrong.epsilon)
    up_share = np.where(upper, 1.0 - far, far)
    weight = np.stack([up_share, 1.0 - up_share], axis=1)
    leaving = np.tile([1.0, -1.0], (len(start), 1))
    corners = Corners(at, curves, place, leaving, weight, extra)
    low, high = np.stack([down_a, start], axis=1), np.stack([up_a, end], axis=1)
    groups = np.repeat(sides.T[..., None], len(low), axis=1)
    return BandCells(len(rates[0]), sides, low, high, groups, corners, sizes, compare)


def _steepest(wrong: WrongAnswers, a: int, b: int, at: Array, edges: Array, active: Ints) -> Ints:
    """Return the rate to bet by: the active one, or one with the same edge whose gap widens sooner.

    With gamma = 0 and groups alike all rates have the same edges, and a gap of epsilon in a rate
    that hardly moves would be a bet on the impossible. Edges, shape (rates, cells, 2), are where
    lam_a leaves the corridor by each rate; they are the same if the rate moves by less than a step
    from one to the other.
    """
    edges = np.clip(edges, 0.0, 1.0)
    edge = np.take_along_axis(edges, active[None], axis=0)
    every_rate = np.arange(len(edges))[:, None, None] + 0 * active
    sides = np.array([a, b])[:, None, None, None]
    aim = _curves_of(*_aim(wrong.bands_for_unfair, sides, every_rate))
    same = np.abs(aim.value(edges)[0] - aim.value(edge)[0]) <= wrong.step
    at = at[:, None]
    pace = (at * (1.0 - at) * aim.slope(at) ** 2).sum(axis=0) / _unit(wrong.compare, aim, at)
    return np.asarray(np.where(same, pace, -1.0).argmax(axis=0))


def rate_grid(bands: Sequence[Band], step: float, compare: GapScale) -> Array:
    """Return the ends of intervals of r over which no rate of a group moves more than ``step``."""
    fine = np.linspace(0.0, 1.0, 4097)
    scaled = [compare.to_gap_units(band.low.value(fine)) for band in bands]
    moves = np.max([np.abs(np.diff(rate)) for rate in scaled], axis=0)
    moved = np.concatenate([[0.0], np.cumsum(moves + 1e-9 / 4096)])  # constants move nowhere
    count = max(1, int(np.ceil(moved[-1] / step)))
    ends = np.interp(np.linspace(0.0, moved[-1], count + 1), moved, fine)
    ends[0], ends[-1] = 0.0, 1.0
    return ends


# -- three groups and more ------------------------------------------------------------------------


def _level_cells(
    wrong: WrongAnswers, block: Block, bands: tuple[Band, ...], sizes: Array
) -> NullCells:
    """Return the cells where one rate of all groups of a block lies within gamma.

    If the rates are at most gamma apart, the lowest is a level such that each lies in
    [level, level + gamma] (ratios: [level, level/(1-gamma)]); for a level in [start, end] each lies
    between start and what is gamma above end. Against a reference its rate is the level. The other
    rates cut the boxes further. Bets are on the ordered pairs of groups by which some rate may
    leave the FAIR set: a leaves its side of the box upwards, b downwards.
    """
    compare, inside = wrong.compare, list(block.groups)
    levels = inside if block.reference is None else [block.reference]
    ends = _level_grid([bands[g] for g in levels], wrong.step, compare)
    least, most = block.rate_ranges(compare, ends[:-1], ends[1:], wrong.gamma)
    ranges = least - _ROUNDING, most + _ROUNDING
    boxes = Band.stack([bands[g] for g in inside]).r_range(*ranges, falling=_falls(bands))
    low, high = _tightened(wrong, block, *boxes)
    pieces = _pieces(wrong, wrong.bands_for_unfair)  # too far apart where b is above a
    in_block = np.isin(pieces.a, inside)  # and so is b
    a_b = np.stack([pieces.b[in_block], pieces.a[in_block]])
    a_b = a_b[:, np.lexsort(a_b[::-1])]
    weights = _pair_weights(wrong, bands, a_b)
    if len(weights) > MOST_PAIRS:
        kept = np.sort(np.argsort(-weights, kind="stable")[:MOST_PAIRS])
        a_b, weights = a_b[:, kept], weights[kept] / weights[kept].sum()
    places = np.searchsorted(inside, a_b)
    at = np.stack([high[:, places[0]], low[:, places[1]]])
    one = np.broadcast_to(1.0, at.shape[1:])
    weight = np.broadcast_to(weights, one.shape)
    aim = np.broadcast_to(a_b[:, None], at.shape)
    curves = Curve.stack([band.low for band in bands])
    corners = Corners(at, curves, aim, one, weight, np.broadcast_to(0.0, one.shape))
    groups = np.repeat(a_b[:, None], len(bet_shares(len(sizes))), axis=2)
    sides = np.array([inside])
    return BandCells(len(bands), sides, low, high, groups, corners, sizes, compare)


def _tightened(wrong: WrongAnswers, block: Block, low: Array, high: Array) -> tuple[Array, Array]:
    """Cut boxes by "no gap of a rate exceeds gamma"; those that become empty go.

    In a box no group's rate can be gamma above the largest value that another's can have with which
    it is compared, nor gamma below the least.
    """
    compare, gamma, inside = wrong.compare, wrong.gamma, block.groups
    full = _full(low, high).all(axis=1)
    low, high = np.clip(low[full], 0.0, 1.0), np.clip(high[full], 0.0, 1.0)
    pairs = set(block.pairs)
    counts = np.array([[a == b or (a, b) in pairs for b in inside] for a in inside])
    for bands in wrong.bands_for_unfair * _TIGHTENING_ROUNDS:
        own, falling = Band.stack([bands[g] for g in inside]), _falls([bands[g] for g in inside])
        most = np.maximum(own.high.value(low), own.high.value(high))
        least = np.minimum(own.low.value(low), own.low.value(high))
        most = np.where(counts, most[:, None, :], inf).min(axis=-1)
        least = np.where(counts.T, least[:, None, :], -inf).max(axis=-1)
        ranges = compare.below(least, gamma) - _ROUNDING, compare.above(most, gamma) + _ROUNDING
        cut_low, cut_high = own.r_range(*ranges, falling=falling)
        low, high = np.maximum(low, cut_low), np.minimum(high, cut_high)
        full = _full(low, high).all(axis=1)
        low, high = low[full], high[full]
    return low, high


def _full(low: Array, high: Array) -> Flags:
    """Say which sides of boxes hold an unknown; one that a rounding error empties does."""
    return np.asarray((low <= high + _ROUNDING) & (low <= 1.0 + _ROUNDING) & (high >= -_ROUNDING))


def _pair_weights(wrong: WrongAnswers, bands: tuple[Band, ...], pairs: Ints) -> Array:
    """Return how the stake is divided among ordered pairs, from past data alone.

    Part of it is spread evenly. The rest follows how often a pair would be the furthest apart, a's
    unknown the higher by its rate, if the denied succeeded a common multiple of the approved's
    rate, jittered. Groups that the past does not tell apart are treated alike. ``pairs`` has the
    groups a and b, shape (2, pairs).
    """
    k, n_pairs = len(bands), pairs.shape[1]
    often = _furthest_apart(wrong, bands, pairs) if wrong.precision else np.zeros(n_pairs)
    first_alike: dict[object, int] = {}  # the first group with the same past
    kind = np.zeros(k, dtype=np.intp)
    for group in range(k):
        of_rates = tuple(by_group[group] for by_group in wrong.bands_for_unfair)
        past = (wrong.precision[group : group + 1], of_rates)
        kind[group] = first_alike.setdefault(past, group)
    # pairs of groups that the past does not tell apart have the mean of their shares
    _, alike = np.unique(kind[pairs[0]] * k + kind[pairs[1]], return_inverse=True)
    share = (np.bincount(alike, often) / np.bincount(alike))[alike]
    share = share / share.sum() if share.sum() else np.full(n_pairs, 1.0 / n_pairs)
    return np.asarray(UNIFORM_PAIR_SHARE / n_pairs + (1.0 - UNIFORM_PAIR_SHARE) * share)


def _furthest_apart(wrong: WrongAnswers, bands: tuple[Band, ...], pairs: Ints) -> Array:
    """Return how often each pair is the furthest apart, if the denied are like the approved."""
    rng = np.random.default_rng(1)
    mean = np.clip(
        rng.uniform(0.1, 1.0, (_WEIGHT_DRAWS, 1)) * np.array(wrong.precision), 0.01, 0.99
    )
    odds = np.log(mean / (1.0 - mean)) + LOG_ODDS_JITTER * rng.normal(size=mean.shape)
    r = 1.0 / (1.0 + np.exp(-odds))
    rate = Band.stack(bands).low.value(r) * (-1.0 if _falls(bands) else 1.0)
    inside = np.unique(pairs)
    often = np.zeros((len(bands), len(bands)))
    if pairs.shape[1] == len(inside) * (len(inside) - 1):  # all pairs: the highest and the lowest
        of_groups = rate[:, inside]
        highest, lowest = inside[of_groups.argmax(axis=1)], inside[of_groups.argmin(axis=1)]
    else:
        furthest = (rate[:, pairs[0]] - rate[:, pairs[1]]).argmax(axis=1)
        highest, lowest = pairs[:, furthest]
    draws = np.arange(_WEIGHT_DRAWS)
    is_apart = rate[draws, highest] > rate[draws, lowest]
    np.add.at(often, (highest[is_apart], lowest[is_apart]), 1.0 / _WEIGHT_DRAWS)
    return np.asarray(often[tuple(pairs)])


def _level_grid(bands: Sequence[Band], step: float, compare: GapScale) -> Array:
    """Return the ends of intervals of at most ``step`` over all values that a rate may take."""
    values = [curve.value([0.0, 1.0]) for band in bands for curve in (band.low, band.high)]
    ends = np.array([np.min(values), np.max(values)])
    first, last = compare.to_gap_units(ends)
    scaled = np.linspace(first, last, 2 + int((last - first) / step))
    grid = scaled if compare is GapScale.DIFFERENCE else np.exp(scaled)
    grid[0], grid[-1] = ends
    return np.asarray(grid)


# -- curves ---------------------------------------------------------------------------------------


def _falls(bands: Sequence[Band]) -> bool:
    """Say whether a rate falls in r."""
    return any(curve.trend < 0 for band in bands for curve in (band.low, band.high))


def _aim(rates: BandsByRate, groups: Ints, rate: Ints) -> tuple[Curve, Ints]:
    """Return the curves that bets may aim by, and which of them: of groups, of a rate each."""
    curves = Curve.stack([band.low for bands in rates for band in bands])
    return curves, np.asarray(len(rates[0]) * rate + groups)


def _unit(compare: GapScale, aim: Curve, at: Array) -> Array:
    return compare.rate_per_gap(aim.value(at).max(axis=0))
