"""Null cells: boxes of what the groups' unknowns may be, and the bets against each.

Write ``lam_a`` for a possible value of group a's unknown ``r_a = P[Y=1 | f=0, a]``. A wrong answer
is a set of such values of all groups (:mod:`equipoise.evidence.wrong_answers`). A **cover** is a
set of boxes that holds all of it; a box is refuted if the bets against it win enough.

Cells and bets follow from the past data and the question alone; no label ever changes them. So the
evidence against a cell is a function of counts, ``sum over bets of stake * exp(sum over kinds of
count * log factor)``: that of a label, of a file of labels, of outcomes that are unknown and of a
correction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple, Protocol, Self
from weakref import WeakKeyDictionary, ref

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.comparison import GapScale
from equipoise.evidence.bets import Corners, alternatives, bet_shares, log_factors
from equipoise.evidence.observation import BetScale, ScoredBatch, rescale
from equipoise.rates import Band

CellIndex = Ints | slice
"""Some of the cells, by their places."""

# How fast the stake on leaving through the far side falls with its distance in epsilons.
FAR_SIDE_FADE = 2.0
BOX_CORNERS = 4
# The ends of side a and of side b that meet at each corner of a box.
_END_OF_CORNER = ([0, 0, 1, 1], [0, 1, 0, 1])
NUMBERS_AT_ONCE = 200_000  # numbers to work on at a time, for the sake of memory
_NUMBERS_IN_CACHE = 50_000  # numbers that several steps work on in turn
# Log wealth is cut off there, so that it does not overflow; it is far above any bar.
_MAX_LOG_WEALTH = 600.0
_GRID_POINTS = 4_096  # at which the movement of rates over r is measured
_EDGE = 1e-9  # corners of scored bets are kept off 0 and 1 by this


class SideFactors(NamedTuple):
    """The bets on one side that are on a group, and their factors of an observation of it.

    Attributes
    ----------
    is_on_group
        Which bets are on the group.
    factor_zero, factor_one
        The factors of Z = 0 and of Z = 1; that of another Z lies on the line through both.
    """

    is_on_group: Flags
    factor_zero: Array
    factor_one: Array


# Not compared by value: that would compare arrays, and caches know cells by identity.
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

    def by_group(self, of_sides: Array, elsewhere: float, cells: CellIndex = slice(None)) -> Array:
        """Return what sides of some cells have as columns of groups; ``elsewhere`` for the rest."""
        columns = np.full((len(of_sides), self.n_groups), elsewhere)
        np.put_along_axis(columns, self.sides_of(cells), of_sides, axis=1)
        return columns

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
    def select(self, cells: Ints) -> Self:
        """Return some of the cells."""

    @abstractmethod
    def labels_needed(self, start: Array, growth: Array, bar: float) -> Array:
        """Return after how many labels each cell is refuted, if labels make bets grow so fast.

        ``start`` and ``growth`` are logs as :meth:`log_wealth` returns them; ``bar`` is one too.
        """

    def evidence_of_counts(self, counts: Array, cells: Ints) -> Array:
        """Return the evidence of labels against cells, few at a time: they stay in the cache."""
        looks = counts.shape[:-2]
        evidence = np.empty((*looks, len(cells)))
        numbers_per_cell = self.numbers_per_cell * max(int(np.prod(looks)), 1)
        cells_at_once = max(1, _NUMBERS_IN_CACHE // numbers_per_cell)
        for first in range(0, len(cells), cells_at_once):
            part = slice(first, first + cells_at_once)
            evidence[..., part] = self.evidence(self.log_wealth(counts, cells[part]))
        return evidence

    def scored_gain(self, group: int, batch: ScoredBatch, n_seen: Ints, cells: CellIndex) -> Array:
        """Return the log gain from observations of a group, one look on the first axis.

        ``n_seen`` says how many of them there are by each look. Bets are sized for them; one whose
        outcome is not known counts with the smaller of its factors.
        """
        # axes: the least and the most that Z may be, person
        z = np.stack([batch.low, batch.high])
        n_people = np.ones(len(batch.low), dtype=np.intp)  # behind each column of z
        if len(n_seen) == 1:  # only how many there are of each kind matters
            z, n_people = np.unique(z[:, : n_seen[0]], axis=1, return_counts=True)
            n_seen = np.array([len(n_people)])
        no_gain = self.no_gain(cells)
        gain = np.zeros((len(n_seen), *no_gain.shape))
        sides = self._sides_on(group, batch.bet_scale, cells)
        if not sides:
            return gain
        gain_before: Array | float = 0.0
        columns_at_once = max(1, NUMBERS_AT_ONCE // max(no_gain.size, 1))
        for first in range(0, int(n_seen.max(initial=0)), columns_at_once):
            part = slice(first, first + columns_at_once)
            by_column = _log_factors_of_z(z[:, part], sides, no_gain)
            # axes: column of z, then those of a gain
            times = n_people[part].reshape(-1, *(1,) * no_gain.ndim)
            gain_after = gain_before + np.cumsum(by_column * times, axis=0)
            # A look reads the sum as it was when the last person that it has seen was added.
            is_in_part = (n_seen > first) & (n_seen <= first + len(gain_after))
            gain[is_in_part] = gain_after[n_seen[is_in_part] - first - 1]
            gain_before = gain_after[-1]
        return gain

    def _sides_on(self, group: int, bet_scale: BetScale, cells: CellIndex) -> list[SideFactors]:
        """Return a's side and b's, without one on which no bet is on the group."""
        sides = []
        for side, groups in enumerate(self._groups_of(cells)):
            is_on_group = groups == group
            if is_on_group.any():
                factors = self.scored_factors(side, bet_scale, cells)
                sides.append(SideFactors(is_on_group, *factors))
        return sides

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
        # No label changes stakes or bets, so both are worked out once for all audits of a cover.
        shares = bet_shares(len(self.sizes))
        weight = self.corners.weight
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
        n_bets = self.numbers_per_cell
        log_factor = np.empty((2, 2, len(self), n_bets))
        cells_at_once = max(1, NUMBERS_AT_ONCE // n_bets)
        for first in range(0, len(self), cells_at_once):
            part = slice(first, first + cells_at_once)
            corners = self.corners.select(part)
            rho = alternatives(corners, self.sizes, self.compare)
            # axes: outcome, group, cell, corner, bet of the corner
            by_corner = log_factors(rho, corners.start[..., None])
            log_factor[:, :, part] = by_corner.swapaxes(0, 1).reshape(2, 2, -1, n_bets)
        return log_factor

    def select(self, cells: Ints) -> Self:
        """Return some of the cells; bets of the others are not made."""
        return type(self)(
            self.n_groups,
            self.sides_of(cells),
            self.side_low[cells],
            self.side_high[cells],
            self._groups_of(cells),
            self.corners.select(cells),
            self.sizes,
            self.compare,
        )

    def log_wealth(self, counts: Array, cells: CellIndex, scored: Array | float = 0.0) -> Array:
        """Return the log of what bets have become, shape (…, cells, bets)."""
        # axes: side, outcome, cell, bet
        factors = self.log_factor[:, :, cells]
        # An unknown outcome is a third kind of label: per bet, the smaller of its two factors. So
        # nobody gains by silence, whoever decides what is told (guarantees, 3.7).
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
        factor_zero, factor_one = np.exp(self.log_factor[side][:, cells])
        # A bet keeps its corner and its direction, which make it legal; only its size changes.
        corner = np.clip(self.corners.start[side][cells], _EDGE, 1.0 - _EDGE)
        bets_per_corner = factor_zero.shape[1] // corner.shape[1]
        return rescale(factor_zero, factor_one, np.repeat(corner, bets_per_corner, 1), bet_scale)

    def labels_needed(self, start: Array, growth: Array, bar: float) -> Array:
        """Return after how many labels each cell is refuted, if labels make bets grow so fast."""
        return np.asarray(_labels_needed(start, growth, bar).min(axis=-1))

    def evidence(self, log_wealth: Array) -> Array:
        """Return the evidence against each cell: the sum over its bets."""
        return _sum_of_bets(log_wealth)


@dataclass(frozen=True)
class LabelBets:
    """Bets on labels against boxes: by each side of the box, of shape (2, boxes, label bets).

    A label of the side's group multiplies a bet by ``1 + slope (Y - lam)``.

    Parameters
    ----------
    start
        Where on the side the bet starts.
    slope
        Its size.
    """

    start: Array
    slope: Array

    def select(self, boxes: Ints) -> LabelBets:
        """Return the bets against some boxes."""
        return LabelBets(self.start[:, boxes], self.slope[:, boxes])

    def scaled(self, share: Array) -> LabelBets:
        """Return smaller bets: ``share`` has shape (boxes, label bets)."""
        return LabelBets(self.start, self.slope * share)


class CutsBoxes(Protocol):
    """What boxes were made from: it can cut them into parts."""

    def parts(self, i: Ints, j: Ints, bets: LabelBets) -> tuple[CornerCells, Ints]:
        """Return the parts of boxes, cells i of a's grid by cells j of b's, and whose they are."""


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
    origin
        Where a box comes from, shape (cells, 3): the place of its piece in ``pieces``, and its
        cells in the grids of a and b. They are -1 for a box that cannot be cut into parts.
    pieces
        What boxes were made from.
    """

    log_stake: Array
    log_factor: Array
    bet_start: Array
    label_bet: Ints
    origin: Ints
    pieces: tuple[CutsBoxes, ...]

    @property
    def numbers_per_cell(self) -> int:
        """How many bets there are against a box, four times: at every corner."""
        return BOX_CORNERS * len(self.label_bet)

    @classmethod
    def joined(cls, parts: Sequence[CornerCells]) -> CornerCells:
        """Return the boxes of all parts as one set."""
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=-2)
            for name in _arrays_of_boxes(cls)
        }
        pieces: list[CutsBoxes] = []
        origins = []
        for part in parts:
            places = [_place_once(pieces, piece) for piece in part.pieces]
            # The last entry answers for -1, the piece of boxes that cannot be cut.
            piece_of_box = np.array([*places, -1])[part.origin[:, 0]]
            origins.append(np.column_stack([piece_of_box, part.origin[:, 1:]]))
        arrays["origin"] = np.concatenate(origins)
        return cls(
            n_groups=parts[0].n_groups,
            label_bet=parts[0].label_bet,
            pieces=tuple(pieces),
            **arrays,
        )

    def select(self, cells: Ints) -> Self:
        """Return some of the boxes."""
        arrays = {name: getattr(self, name)[..., cells, :] for name in _arrays_of_boxes(type(self))}
        return type(self)(
            n_groups=self.n_groups, label_bet=self.label_bet, pieces=self.pieces, **arrays
        )

    def _label_bets(self, cells: Ints) -> LabelBets:
        """Return the bets on labels against boxes; the two factors of one differ by the slope."""
        # At either end of a side they differ by as much, so the first end will do.
        factor_zero, factor_one = np.exp(self.log_factor[:, :, 0, cells]).swapaxes(0, 1)
        return LabelBets(self.bet_start[:, cells], factor_one - factor_zero)

    def can_be_cut(self, cells: Ints) -> Flags:
        """Say which boxes can be cut into parts."""
        return np.asarray(self.origin[cells, 0] >= 0)

    def parts(self, cells: Ints) -> Iterator[tuple[CornerCells, Ints]]:
        """Yield the parts of boxes that past rows leave, and whose they are, piece by piece."""
        origin = self.origin[cells]
        for piece in np.unique(origin[:, 0]).tolist():
            in_piece = np.flatnonzero(origin[:, 0] == piece)
            cell_a = origin[in_piece, 1]
            cell_b = origin[in_piece, 2]
            # Parts have the bets of the whole, so labels may decide which boxes are cut (3.21).
            bets = self._label_bets(cells[in_piece])
            parts, box_of_part = self.pieces[piece].parts(cell_a, cell_b, bets)
            yield parts, cells[in_piece[box_of_part]]

    def log_wealth(self, counts: Array, cells: CellIndex, scored: Array | float = 0.0) -> Array:
        """Return the log of what bets have become, shape (…, 4, cells, bets)."""
        # axes: side, outcome, end of the side, cell, label bet
        factors = self.log_factor[..., cells, :]
        has_unknown = counts[..., 2].any()
        gains = []  # of a's labels and of b's: shape (…, 2 ends, cells, label bets)
        for (log_zero, log_one), group in zip(factors, self._groups_of(cells), strict=True):
            # axes: …, end of the side (one), cell, label bet (one), kind of label
            counts_of_group = counts[..., group, :][..., None, :, :, :]
            gain = counts_of_group[..., 0] * log_zero
            gain += counts_of_group[..., 1] * log_one
            if has_unknown:
                gain += counts_of_group[..., 2] * np.minimum(log_zero, log_one)
            gains.append(gain)
        gain_of_a, gain_of_b = gains
        # axes: …, end of a's side, end of b's, cell, label bet; then the ends become one corner
        by_ends = gain_of_a[..., :, None, :, :] + gain_of_b[..., None, :, :, :]
        by_corner = by_ends.reshape(*by_ends.shape[:-4], BOX_CORNERS, *by_ends.shape[-2:]) + scored
        # Several bets on past rows go with one bet on labels, so its wealth is read several times.
        log_wealth = by_corner.take(self.label_bet, axis=-1)
        log_wealth += self.log_stake[:, cells]
        return np.asarray(log_wealth)

    def evidence(self, log_wealth: Array) -> Array:
        """Return the evidence against each box: the sum over its bets, each at its least corner."""
        # At every population of the box it is at most what the same bets are there, and that is one
        # supermartingale which starts at 1 (3.21, lemma 3).
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
        # axes: end of the side, cell, label bet
        factor_zero, factor_one = np.exp(self.log_factor[side][..., cells, :])
        # The factors are 1 - slope lam and 1 + slope (1 - lam), so both can be read off them.
        slope = factor_one - factor_zero
        lam = (1.0 - factor_zero) / np.where(slope == 0.0, 1.0, slope)
        start = np.clip(self.bet_start[side][cells], _EDGE, 1.0 - _EDGE)
        start_zero = 1.0 - slope * start
        start_one = 1.0 + slope * (1.0 - start)
        scored_zero, scored_one = rescale(start_zero, start_one, start, bet_scale)
        size = scored_one - scored_zero
        ends = _END_OF_CORNER[side]
        return (1.0 - size * lam)[ends], (1.0 + size * (1.0 - lam))[ends]


class BoxParts:
    """The parts of a cover's boxes, cut when they are first asked for.

    Parameters
    ----------
    boxes
        The boxes of the cover.
    """

    def __init__(self, boxes: CornerCells) -> None:
        self._boxes = boxes
        # Parts rest on no label and no outcome: once cut, they serve every later look.
        self._parts: dict[int, CornerCells] = {}

    def cut(self, boxes: Ints) -> CornerCells:
        """Return the parts of some boxes that past rows leave; a box that cannot be cut itself."""
        uncut = np.array([box for box in boxes.tolist() if box not in self._parts], dtype=np.intp)
        # Other threads read ``_parts`` meanwhile, so a box joins it only once it has all its parts.
        new_parts = {}
        can_be_cut = self._boxes.can_be_cut(uncut)
        for box in uncut[~can_be_cut].tolist():
            new_parts[box] = self._boxes.select(np.array([box]))
        for parts, box_of_part in self._boxes.parts(uncut[can_be_cut]):
            for box in uncut[can_be_cut].tolist():
                places = np.flatnonzero(box_of_part == box)
                # Each round has parts of one piece's boxes; the others must not lose theirs to it.
                if len(places) or box not in new_parts:
                    new_parts[box] = parts.select(places)
        self._parts.update(new_parts)
        return CornerCells.joined([self._parts[box] for box in boxes.tolist()])


# Parts rest on no label, so all audits of one cover share them. They live as long as one of these
# audits does, or are among the latest.
_PARTS: WeakKeyDictionary[CornerCells, ref[BoxParts]] = WeakKeyDictionary()
_LATEST_PARTS: deque[BoxParts] = deque(maxlen=8)


def _place_once(pieces: list[CutsBoxes], piece: CutsBoxes) -> int:
    """Return the place of a piece in the list; add it at the end if it is not there."""
    # The same object, not an equal one: every piece knows its own grids and gains.
    for place, earlier in enumerate(pieces):
        if earlier is piece:
            return place
    pieces.append(piece)
    return len(pieces) - 1


def shared_parts(boxes: CornerCells) -> BoxParts:
    """Return the parts of a cover's boxes, the same for all audits that have this cover."""
    parts_ref = _PARTS.get(boxes)
    parts = None if parts_ref is None else parts_ref()
    if parts is None:
        parts = BoxParts(boxes)
        _PARTS[boxes] = ref(parts)
    _LATEST_PARTS.append(parts)
    return parts


def _arrays_of_boxes(kind: type[CornerCells]) -> list[str]:
    """Return the fields that have an entry per box, on their second axis from the end."""
    shared = ("n_groups", "label_bet", "pieces")
    return [field.name for field in fields(kind) if field.name not in shared]


def _sum_of_bets(log_wealth: Array) -> Array:
    """Return what all bets together have become."""
    # Every bet starts with its stake, the stakes add up to 1, and each is a supermartingale where
    # the truth lies in the cell: so is their sum, which is the evidence (guarantees, 3.3).
    wealth = np.minimum(log_wealth, _MAX_LOG_WEALTH)
    evidence = np.asarray(np.exp(wealth, out=wealth).sum(axis=-1))
    # No comparison holds of a nan, so a cell with one would not stand: it counts as no evidence.
    evidence[np.isnan(evidence)] = 0.0
    return evidence


def _labels_needed(start: Array, growth: Array, bar: float) -> Array:
    """Return after how many labels each bet alone reaches the bar."""
    with np.errstate(divide="ignore", invalid="ignore"):  # some bets have no stake
        return np.where(growth > 1e-12, np.maximum(bar - start, 0.0) / growth, np.inf)


def _least_corner(by_corner: Array) -> Array:
    """Return the least of four numbers; the corner is the third axis from the end."""
    return np.asarray(by_corner.min(axis=-3))


def _log_factors_of_z(z: Array, sides: Sequence[SideFactors], no_gain: Array) -> Array:
    """Return the log factors of observations, the least over each one's ends, on the first axis."""
    low, high = z.reshape(2, -1, *(1,) * no_gain.ndim)
    log_factors_of_z = np.zeros((z.shape[1], *no_gain.shape))
    for side in sides:
        # A factor is linear in Z, so an outcome that is not known counts at one of its ends.
        factor = np.minimum(
            low * side.factor_one + (1.0 - low) * side.factor_zero,
            high * side.factor_one + (1.0 - high) * side.factor_zero,
        )
        log_factors_of_z += np.where(side.is_on_group, np.log(factor), 0.0)
    return log_factors_of_z


def rate_grid(bands: Sequence[Band], step: float, compare: GapScale) -> Array:
    """Return the ends of intervals of r over which no rate of a group moves more than ``step``."""
    points = np.linspace(0.0, 1.0, _GRID_POINTS + 1)
    # Low curves will do: how fine the grid is makes evidence weaker or stronger, never wrong.
    scaled = [compare.to_gap_units(band.low.value(points)) for band in bands]
    moves = np.max([np.abs(np.diff(rate)) for rate in scaled], axis=0)
    # Constants move nowhere: the small addend keeps their grid even.
    moved = np.concatenate([[0.0], np.cumsum(moves + 1e-9 / _GRID_POINTS)])
    n_intervals = max(1, int(np.ceil(moved[-1] / step)))
    ends = np.interp(np.linspace(0.0, moved[-1], n_intervals + 1), moved, points)
    # Exactly, because the cells above these intervals have to cover every unknown.
    ends[0] = 0.0
    ends[-1] = 1.0
    return ends
