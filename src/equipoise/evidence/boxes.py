"""Boxes of two unknowns and a level: both wrong answers where the past is finite.

A piece of a wrong answer says of two groups a and b that ``rate_a >= g(t)`` or ``rate_a <= g(t)``
for ``t = rate_b``: a **claim**. Such a population has a place ``(t, lam_a, lam_b)``. Rows of both
groups bet against the claim (:mod:`equipoise.evidence.past_rows`), labels of both multiply a bet by
``1 + b (Y - lam)``. With eta and b fixed, the log of a bet is concave in t, in lam_a and in lam_b,
each by itself, because every factor is linear in each of them. So over a box of the three it is
least at a corner, and a box's evidence is the sum over its bets of the least corner. It is at
most the evidence at every population in the box, which is one supermartingale from 1.

Which boxes there are and how far labels bet may follow the past's counts. Everything else follows
from the question, the number of groups and the lattice of ``past_rows``. Boxes that past rows
refute are not made. The levels that past rows do not refute share one box, each bet at its least.
Section 3.21 of ``docs/understand/guarantees.md`` has the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence.bets import bet_shares, map_coefficients, move_gap
from equipoise.evidence.claims import Claim, Piece
from equipoise.evidence.null_cells import CornerCells, LabelBets
from equipoise.evidence.past_rows import ABOVE_ALL_LEVELS, Gains, range_of
from equipoise.evidence.shared_gains import PARTS, Place, SharedGains, parts_of_sides
from equipoise.rates import Curve

FLOOR_SHARE = 0.05  # of a stake goes to bets on labels alone
STRONG_SHARE = 0.06  # … and to bets on past rows alone, which refute boxes before the first label
NEAR_ZONE = 0.55  # boxes deeper than this share of the third size rest on labels alone
LEAST_LABEL_SHARE = 0.1  # of the size of a bet on labels, where past rows have won the rest
N_DIRECTIONS = 3  # of bets on labels: both groups move, a alone, b alone
_CORNERS = 4


class PieceBoxes:
    """The boxes of one piece.

    A candidate is a cell of a's grid times one of b's. It is near if some bet against past rows
    may help labels there; all deeper candidates of a row of b share one box, against which labels
    alone bet.
    """

    def __init__(self, shared: SharedGains, piece: Piece) -> None:
        self.shared = shared
        self.piece = piece
        self.compare = shared.answers.compare
        self.rates = tuple(sorted({claim.rate for claim in piece.claims}))
        self.grid_a = shared.grid(self.rates, piece.a)
        self.grid_b = shared.grid(self.rates, piece.b)
        self.sides = [piece.near] + ([-piece.near] if piece.on_side(-piece.near) else [])
        # Rows of a bet strongly, rows of b do, and those of b the other way too, because the rate
        # of b is exactly t. Where an opposite claim has this third bet, it is not there twice.
        n_strong = sum(2 if piece.has_opposite(claim) else 3 for claim in piece.claims)
        # The log gain with which one strong bet, of its small part of the stake, is at the bar.
        self.needed = log(shared.bar) - log(STRONG_SHARE / n_strong)
        self.bold = shared.bold_tilt(piece.a, piece.b)
        self.bold_share = shared.bold_share(piece.a, piece.b)

    def standing_boxes(self) -> CornerCells:
        """Return the boxes that stand before the first label."""
        first, last = self._windows()
        # A population has a level of every rate. So a candidate that is left without a level of
        # some rate holds no population that past rows leave. Counts may decide which boxes there
        # are, and how far labels bet, but nothing else (guarantees, 3.21).
        is_open = (first <= last).all(axis=0)
        is_near = is_open & self._is_near()
        near_boxes = self._near_boxes(is_near, first, last)
        return CornerCells.joined([near_boxes, self._deep_boxes(is_open & ~is_near)])

    def _near_boxes(self, is_near: Flags, first: Ints, last: Ints) -> CornerCells:
        """Return a box for every near candidate that past rows alone do not refute.

        ``first`` and ``last`` are the levels that strong bets leave, as :meth:`_windows` has them.
        """
        i, j = np.nonzero(is_near)
        sides = {}
        for claim in self.piece.claims:
            side_a = SideGains(self._gains(claim, is_group_a=True), i)
            side_b = SideGains(self._gains(claim, is_group_a=False), j)
            sides[claim] = side_a, side_b
        gains = self._least_gains(sides, first[:, i, j], last[:, i, j])
        origin = np.stack([np.zeros_like(i), i, j], axis=1)
        boxes = self._with_bets(self._box(i, i, j), gains, origin)
        return boxes.select(self._places_standing(boxes))

    def _deep_boxes(self, is_deep: Flags) -> CornerCells:
        """Return one box for the deep candidates of every row of b."""
        row = np.flatnonzero(is_deep.any(axis=0))
        # From the first deep candidate of a row to its last: a box that is too large only has less
        # evidence, and the candidate nearest to the outside is the hardest for labels anyway.
        first, last = range_of(is_deep.T)
        box = self._box(first[row], last[row], row)
        return self._with_bets(box, {}, _no_origin(len(row)))

    def parts(self, i: Ints, j: Ints, bets: LabelBets) -> tuple[CornerCells, Ints]:
        """Return the parts of candidates that past rows alone do not refute, and whose they are.

        They have the bets of the whole. So at every population of a part the whole and all of its
        parts are at most one and the same supermartingale: labels may decide which are cut.
        """
        cut = CutBoxes.cut_sides(self.grid_a, self.grid_b, i, j)
        self.shared.keep_few_cut_sides()
        gains_by_claim = self._gains_of_cut_sides(cut)
        first, last = self._windows_of_parts(cut, gains_by_claim)
        open_parts = np.flatnonzero((first <= last).all(axis=0))
        cut = cut.select(open_parts)
        sides = {}
        for claim, (gains_a, gains_b) in gains_by_claim.items():
            sides[claim] = SideGains(gains_a, cut.side_a), SideGains(gains_b, cut.side_b)
        gains = self._least_gains(sides, first[:, open_parts], last[:, open_parts])
        # A part is cut no further, so nobody asks where it comes from.
        origin = _no_origin(len(open_parts))
        parts = self._with_bets(cut.ends, gains, origin, bets.select(cut.parent))
        standing = self._places_standing(parts)
        return parts.select(standing), cut.parent[standing]

    def _least_gains(
        self, sides: dict[Claim, tuple[SideGains, SideGains]], first: Ints, last: Ints
    ) -> dict[Claim, Array]:
        """Return the log gain of past rows at the corners of boxes, by claim.

        ``sides`` are those of a and of b; ``first`` and ``last`` the levels that strong bets leave,
        shape (rates, boxes).
        """
        gains = {}
        for claim, (side_a, side_b) in sides.items():
            place = self.rates.index(claim.rate)
            gains[claim] = _least_gain(side_a, side_b, first[place], last[place])
        return gains

    def _gains_of_cut_sides(self, cut: CutBoxes) -> dict[Claim, tuple[Gains, Gains]]:
        """Return what rows of a and of b make of bets on each claim over sides that were cut."""
        gains_by_claim = {}
        for claim in self.piece.claims:
            gains_a = self.shared.gains_of_cut_sides(
                claim, self.piece.a, self._place(is_group_a=True), cut.cells_a
            )
            gains_b = self.shared.gains_of_cut_sides(
                claim, self.piece.b, self._place(is_group_a=False), cut.cells_b
            )
            gains_by_claim[claim] = gains_a, gains_b
        return gains_by_claim

    def _windows_of_parts(
        self, cut: CutBoxes, gains_by_claim: dict[Claim, tuple[Gains, Gains]]
    ) -> tuple[Ints, Ints]:
        """Return the first and the last level that strong bets leave, shape (rates, parts)."""
        shape = len(self.rates), len(cut.parent)
        first = np.zeros(shape, dtype=np.intp)
        last = np.full(shape, ABOVE_ALL_LEVELS)
        for claim, (gains_a, gains_b) in gains_by_claim.items():
            place = self.rates.index(claim.rate)
            # Rows of a and of b, and those of b once more as in `_windows`.
            windows = [
                (gains_a.first[cut.side_a], gains_a.last[cut.side_a]),
                (gains_b.first[cut.side_b], gains_b.last[cut.side_b]),
            ]
            if not self.piece.has_opposite(claim):
                start, end = self.shared.opposite_of_cut_sides(
                    claim, self.piece.b, self._place(is_group_a=False), cut.cells_b
                )
                windows.append((start[cut.side_b], end[cut.side_b]))
            # Several claims may be about one rate: only a level that all of them leave is left.
            for start, end in windows:
                first[place] = np.maximum(first[place], start)
                last[place] = np.minimum(last[place], end)
        return first, last

    def _places_standing(self, boxes: CornerCells) -> Ints:
        """Return the places of the boxes that past rows alone do not refute."""
        # Before the first label all bets together may be at the bar although no strong one is.
        return np.flatnonzero(boxes.evidence(boxes.log_stake) < self.shared.bar)

    # -- which boxes there are -------------------------------------------------------------------

    def _windows(self) -> tuple[Ints, Ints]:
        """Return the first and the last level that strong bets leave, shape (rates, a, b).

        Past rows of a, or of b, refute every level outside by themselves.
        """
        shape = len(self.rates), len(self.grid_a) - 1, len(self.grid_b) - 1
        first = np.zeros(shape, dtype=np.intp)
        last = np.full(shape, ABOVE_ALL_LEVELS)
        for claim in self.piece.claims:
            place = self.rates.index(claim.rate)
            gains_a = self._gains(claim, is_group_a=True)
            gains_b = self._gains(claim, is_group_a=False)
            windows_b = [(gains_b.first, gains_b.last)]
            # At a level b's rate is exactly t, so that its rows bet against it both ways.
            if not self.piece.has_opposite(claim):
                strong = self.shared.opposite(claim, self.piece.b, self.rates)
                windows_b.append(range_of(strong < self.needed))
            # axes: cell of a's grid, cell of b's grid
            first[place] = np.maximum(first[place], gains_a.first[:, None])
            last[place] = np.minimum(last[place], gains_a.last[:, None])
            for start, end in windows_b:
                first[place] = np.maximum(first[place], start)
                last[place] = np.minimum(last[place], end)
        return first, last

    def _is_near(self) -> Flags:
        """Say where some claim is hardly met by the estimates, shape (a, b)."""
        zone = NEAR_ZONE * float(self.shared.sizes[:3].max())
        near = np.zeros((len(self.grid_a) - 1, len(self.grid_b) - 1), dtype=bool)
        for side in self.sides:
            # The corner of a candidate at which a truth on this side leaves the piece soonest.
            ends_a = self.grid_a[1:] if side > 0 else self.grid_a[:-1]
            ends_b = self.grid_b[:-1] if side > 0 else self.grid_b[1:]
            for claim in self.piece.on_side(side):
                beyond, unit = self._beyond(claim, ends_a[:, None], ends_b)
                near |= beyond >= -zone * unit
        return near

    def _beyond(self, claim: Claim, lam_a: Array, lam_b: Array) -> tuple[Array, Array]:
        """Return how far a's estimated rate is beyond the claim's level, and a gap's unit."""
        rate_a = self.shared.rows(claim.rate, self.piece.a).curve.value(lam_a)
        rate_b = self.shared.rows(claim.rate, self.piece.b).curve.value(lam_b)
        level = claim.level(rate_b, self.compare)
        beyond = level - rate_a if claim.at_least else rate_a - level
        return beyond, self.compare.rate_per_gap(np.maximum(rate_a, rate_b))

    def _box(self, first_a: Ints, last_a: Ints, row: Ints) -> tuple[Array, Array]:
        """Return low and high of a's and b's unknowns, shape (boxes, 2) each."""
        low = np.stack([self.grid_a[first_a], self.grid_b[row]], axis=1)
        high = np.stack([self.grid_a[last_a + 1], self.grid_b[row + 1]], axis=1)
        return low, high

    # -- what past rows have won -----------------------------------------------------------------

    def _gains(self, claim: Claim, *, is_group_a: bool) -> Gains:
        """Return what rows of a, or of b, make of bets on a claim over the whole of its grid."""
        group = self.piece.a if is_group_a else self.piece.b
        return self.shared.gains(claim, group, self._place(is_group_a=is_group_a))

    def _place(self, *, is_group_a: bool) -> Place:
        return Place(self.rates, self.bold, self.needed, is_group_a)

    # -- bets ------------------------------------------------------------------------------------

    def _with_bets(
        self,
        box: tuple[Array, Array],
        gains: dict[Claim, Array],
        origin: Ints,
        bets: LabelBets | None = None,
    ) -> CornerCells:
        """Return boxes with bets; where there are no gains labels alone bet.

        ``origin`` says where boxes come from. Parts of boxes have the bets on labels of the whole.
        """
        log_stakes = []
        shares_before = []
        label_bets = []
        for place, side in enumerate(self.sides):
            stakes = self._stakes_of_side(side, gains, len(box[0]))
            log_stakes.append(stakes.log_stake)
            shares_before.append(stakes.log_share_before)
            # Bets on labels of all sides stand in turn.
            label_bets.append(place * self._n_label_bets + stakes.label_bet)
        log_stake = np.concatenate(log_stakes, axis=2)
        label_bet = np.concatenate(label_bets)
        # Sizes of label bets follow the past's counts, which are all there before the first label.
        # Given the rows a label is a coin with mean lam, whatever they were (3.21, lemma 2).
        if bets is None:
            share_before = np.concatenate(shares_before)
            share_left = self._share_left_to_labels(log_stake, share_before, label_bet)
            bets = self._label_bets(box).scaled(share_left)
        return self._assembled(box, log_stake, bets, label_bet, origin)

    @property
    def _n_label_bets(self) -> int:
        """How many bets on labels a side has: one of every size in every direction."""
        return N_DIRECTIONS * len(self.shared.sizes)

    def _stakes_of_side(self, side: int, gains: dict[Claim, Array], n_boxes: int) -> SideStakes:
        """Return the stakes of a side's bets: those on its claims in turn, then on labels alone."""
        weight = self.piece.far_share if side != self.piece.near else 1 - self.piece.far_share
        claims = self.piece.on_side(side)
        shares = BetShares.divide(len(self.shared.sizes), weight, len(claims), self.bold_share)
        log_stakes = [shares.main_and_bold(gains.get(claim), n_boxes) for claim in claims]
        floor_shape = (_CORNERS, n_boxes, len(shares.log_floor))
        log_stakes.append(np.broadcast_to(shares.log_floor, floor_shape))
        label_bets_of_claim = np.append(np.arange(self._n_label_bets), shares.bold_bets)
        return SideStakes(
            np.concatenate(log_stakes, axis=2),
            np.append(np.tile(np.log(shares.of_claim), len(claims)), shares.log_floor),
            np.append(np.tile(label_bets_of_claim, len(claims)), shares.floor_bets),
        )

    def _share_left_to_labels(
        self, log_stake: Array, log_share_before: Array, label_bet: Ints
    ) -> Array:
        """Return the share of the nats of every bet on labels that past rows leave, (boxes, bets).

        Where past rows have nearly refuted a box, bets on labels have to win little, and small ones
        win it at populations that are hardly outside of the box.
        """
        needed = log(self.shared.bar)
        # Of the four corners the one counts at which the bet has won least.
        share_left = (needed - log_stake.min(axis=0)) / (needed - log_share_before)
        share = np.full((log_stake.shape[1], self._n_label_bets * len(self.sides)), 1.0)
        # Several bets on past rows go with one bet on labels: what has won most decides.
        for bet, place in enumerate(label_bet.tolist()):
            share[:, place] = np.minimum(share[:, place], share_left[:, bet])
        return np.asarray(np.clip(share, LEAST_LABEL_SHARE, 1.0))

    def _label_bets(self, box: tuple[Array, Array]) -> LabelBets:
        """Return the bets on labels of boxes, those of all sides in turn."""
        starts = []
        slopes = []
        for side in self.sides:
            start, slope = self._label_bets_of_side(box, side)
            starts.append(np.broadcast_to(start[..., None], slope.shape))
            slopes.append(slope)
        return LabelBets(np.concatenate(starts, axis=2), np.concatenate(slopes, axis=2))

    def _label_bets_of_side(self, box: tuple[Array, Array], side: int) -> tuple[Array, Array]:
        """Return where label bets of a side start, and their slopes.

        They start where a leaves the box and go by the rate that labels move out of it soonest.
        """
        low, high = box
        corner = np.stack([high[:, 0], low[:, 1]] if side > 0 else [low[:, 0], high[:, 1]])
        way_out = self._soonest_way_out(side, corner)
        # From inside the piece the gap has to move to its edge before it moves by a bet's size.
        gap_steps = self.shared.sizes * way_out.unit[:, None] + way_out.depth[:, None]
        # axes: box, corner (one), size
        direction = np.full((len(low), 1, 1), side)
        aim = self._aim(side, way_out.claim)
        rho = move_gap(corner[..., None, None], aim, direction, gap_steps[:, None])
        rho = rho[:, :, 0]  # there is one corner
        start = corner[..., None]
        # The factor rho / x of an outcome of 1 is 1 + slope (1 - x), which is solved for the slope.
        return corner, (rho - start) / np.maximum(start * (1.0 - start), 1e-9)

    def _soonest_way_out(self, side: int, corner: Array) -> WayOut:
        """Return by which claim labels leave each box soonest.

        ``corner`` has the unknowns of a and b, shape (2, boxes).
        """
        depths_by_claim = []
        units_by_claim = []
        paces_by_claim = []
        for claim in self.piece.on_side(side):
            beyond, unit = self._beyond(claim, *corner)
            depths_by_claim.append(np.maximum(-beyond, 0.0))
            units_by_claim.append(unit)
            paces_by_claim.append(self._pace(claim, corner))
        # axes: claim of the side, box
        depths = np.stack(depths_by_claim)
        units = np.stack(units_by_claim)
        paces = np.stack(paces_by_claim)
        # labels needed to move the gap out of the piece by epsilon, up to a common factor
        effort = (depths + self.shared.answers.epsilon * units) ** 2 / np.maximum(paces, 1e-12)
        claim_places = effort.argmin(axis=0)
        depth = np.take_along_axis(depths, claim_places[None], 0)[0]
        unit = np.take_along_axis(units, claim_places[None], 0)[0]
        return WayOut(claim_places, depth, unit)

    def _pace(self, claim: Claim, corner: Array) -> Array:
        """Return what a label of either group tells about the gap of a claim's rate."""
        slopes = np.stack(
            [
                self.shared.rows(claim.rate, group).curve.slope(lam)
                for group, lam in zip((self.piece.a, self.piece.b), corner, strict=True)
            ]
        )
        return np.asarray((corner * (1.0 - corner) * slopes**2).sum(axis=0))

    def _aim(self, side: int, claim_places: Ints) -> Curve:
        """Return the curves of a and b, first axis, of the rate by which every box is left."""
        curves: list[Curve] = []
        for group in (self.piece.a, self.piece.b):
            claims = self.piece.on_side(side)
            curves += [self.shared.rows(claim.rate, group).curve for claim in claims]

        def of_boxes(coefficient: Array) -> Array:
            # axes: group, claim; then group, box, corner (one), size (the same curve for all)
            return coefficient.reshape(2, -1)[:, claim_places][..., None, None]

        return map_coefficients(Curve.stack(curves), of_boxes)

    def _assembled(
        self,
        box: tuple[Array, Array],
        log_stake: Array,
        bets: LabelBets,
        label_bet: Ints,
        origin: Ints,
    ) -> CornerCells:
        """Return boxes with these bets."""
        low, high = box
        # axes: side, end of the side, box, bet
        lam = np.stack([low.T, high.T], axis=1)[..., None]
        slope = bets.slope[:, None]
        # A bet's log is concave in lam, so the ends of a side are all that its least value needs
        # (3.21, lemma 3).
        factors = np.log(np.stack([1.0 - slope * lam, 1.0 + slope * (1.0 - lam)], axis=1))
        # No comparison holds of a nan, so evidence that is one would look like a refutation.
        if np.isnan(factors).any():
            raise FloatingPointError("a bet on labels has no size, so evidence would be no number")
        sides = np.repeat(np.array([[self.piece.a, self.piece.b]]), len(low), axis=0)
        return CornerCells(
            n_groups=len(self.shared.answers.counts),
            sides=sides,
            side_low=low,
            side_high=high,
            groups=np.asarray(sides.T[..., None]),
            log_stake=log_stake,
            log_factor=factors,
            bet_start=bets.start,
            label_bet=label_bet,
            origin=origin,
            pieces=(self,),
        )


class WayOut(NamedTuple):
    """How labels leave every box soonest, where a truth on one side does.

    Attributes
    ----------
    claim
        The place, among the claims of the side, of the one whose gap moves out soonest.
    depth
        How far the box's corner is inside the piece, as the difference of a's rate.
    unit
        How far the rate moves per unit of the gap.
    """

    claim: Ints
    depth: Array
    unit: Array


class SideGains(NamedTuple):
    """What a group's rows gain over some sides, and which of these sides every box has."""

    gains: Gains
    side: Ints


@dataclass(frozen=True)
class CutBoxes:
    """The parts of boxes: every part of a's side goes with every part of b's.

    Parameters
    ----------
    cells_a, cells_b
        The cells of a's grid and of b's that are cut, each once.
    ends_a, ends_b
        Both ends of the parts of a's sides, and of b's, shape (sides, 2).
    side_a, side_b
        The places there of each part's sides.
    parent
        The place of the box that each part is of.
    """

    cells_a: Ints
    cells_b: Ints
    ends_a: Array
    ends_b: Array
    side_a: Ints
    side_b: Ints
    parent: Ints

    @classmethod
    def cut_sides(cls, grid_a: Array, grid_b: Array, i: Ints, j: Ints) -> CutBoxes:
        """Cut boxes that are cells i of a's grid by cells j of b's."""
        cells_a, place_a = np.unique(i, return_inverse=True)
        cells_b, place_b = np.unique(j, return_inverse=True)
        # the places of the parts of every box's side, shape (boxes, parts)
        sides_of_box_a = place_a[:, None] * PARTS + np.arange(PARTS)
        sides_of_box_b = place_b[:, None] * PARTS + np.arange(PARTS)
        return cls(
            cells_a,
            cells_b,
            parts_of_sides(grid_a, cells_a),
            parts_of_sides(grid_b, cells_b),
            np.repeat(sides_of_box_a, PARTS, axis=1).ravel(),
            np.tile(sides_of_box_b, PARTS).ravel(),
            np.repeat(np.arange(len(i)), PARTS * PARTS),
        )

    def select(self, parts: Ints) -> CutBoxes:
        """Return some of the parts."""
        return replace(
            self,
            side_a=self.side_a[parts],
            side_b=self.side_b[parts],
            parent=self.parent[parts],
        )

    @property
    def ends(self) -> tuple[Array, Array]:
        """Low and high of a's and b's unknowns in every part, shape (parts, 2) each."""
        sides = np.stack([self.ends_a[self.side_a], self.ends_b[self.side_b]], axis=1)
        return sides[..., 0], sides[..., 1]


def _no_origin(n_boxes: int) -> Ints:
    """Return the origin of boxes that cannot be cut into parts."""
    return np.full((n_boxes, 3), -1)


def _least_gain(a: SideGains, b: SideGains, first: Ints, last: Ints) -> Array:
    """Return the log gain of past rows at the corners of boxes, shape (boxes, 4, sizes).

    It is the least over the levels from ``first`` to ``last``, which strong bets leave.
    """
    n_boxes = len(a.side)
    n_sizes = a.gains.main.shape[-1]
    least = np.full((n_boxes, 2, 2, n_sizes), np.inf)
    for step in range(int((last - first).max(initial=-1)) + 1):
        boxes = np.flatnonzero(first + step <= last)  # those that have so many levels
        level = first[boxes] + step
        # The levels of a side begin with its own first one.
        level_a = level - a.gains.first[a.side[boxes]]
        level_b = level - b.gains.first[b.side[boxes]]
        # axes: box, end of a, end of b, end of the level, size
        gain_a = a.gains.main[a.side[boxes], :, level_a][:, :, None]
        gain_b = b.gains.main[b.side[boxes], :, level_b][:, None]
        # Rows of both groups meet at the same end: t is one number. As the log of a bet is concave
        # in t, it is least at an end of the lattice cell (3.21, lemma 3).
        gain = gain_a + gain_b
        at_either_end = np.minimum(gain[..., 0, :], gain[..., 1, :])
        least[boxes] = np.minimum(least[boxes], at_either_end)
    return least.reshape(n_boxes, _CORNERS, n_sizes)


@dataclass(frozen=True)
class SideStakes:
    """The stakes of one side's bets against boxes.

    Attributes
    ----------
    log_stake
        Stakes after the past, shape (4, boxes, bets).
    log_share_before
        What they were before it, shape (bets,).
    label_bet
        The bet on labels of the side that goes with each bet.
    """

    log_stake: Array
    log_share_before: Array
    label_bet: Ints


@dataclass(frozen=True)
class BetShares:
    """How the stake of one side is divided among its bets: by the question alone.

    Attributes
    ----------
    main, bold, log_floor
        Stakes of bets on past rows and labels of one size, of bold ones on past rows, and of those
        on labels alone.
    bold_bets, floor_bets
        Which label bets the latter two go with: (directions times sizes) in turn.
    """

    main: Array
    bold: Array
    log_floor: Array
    bold_bets: Ints
    floor_bets: Ints

    @classmethod
    def divide(cls, n_sizes: int, weight: float, n_claims: int, bold_share: float) -> BetShares:
        """Return the shares for so many sizes and claims of a side that has this weight."""
        # No count of the past may enter here: stakes are there before the rows that bets are on.
        shares = bet_shares(n_sizes)
        bold_bets = np.arange(1, min(3, n_sizes))  # both groups move, by the main sizes
        bets_by_direction = np.arange(N_DIRECTIONS * n_sizes).reshape(N_DIRECTIONS, n_sizes)
        floor_bets = bets_by_direction[:, -2:].ravel()  # the two largest sizes
        main_share = 1.0 - FLOOR_SHARE - STRONG_SHARE - bold_share
        bold = shares[bold_bets] / shares[bold_bets].sum()
        floor = shares[floor_bets] / shares[floor_bets].sum()
        return cls(
            weight * main_share / n_claims * shares,
            weight * bold_share / n_claims * bold,
            np.log(weight * FLOOR_SHARE * floor),
            bold_bets,
            floor_bets,
        )

    @property
    def of_claim(self) -> Array:
        """The stakes of the bets on one claim: of all sizes, then the bold ones."""
        return np.append(self.main, self.bold)

    def main_and_bold(self, gain: Array | None, n_boxes: int) -> Array:
        """Return log stakes after the past, shape (4, boxes, bets); none if there is no gain.

        ``gain`` has shape (boxes, 4, sizes + 1), the bold one last.
        """
        if gain is None:
            return np.full((_CORNERS, n_boxes, len(self.of_claim)), -np.inf)
        by_corner = gain.swapaxes(0, 1)
        by_size = np.tile(by_corner[..., :-1], N_DIRECTIONS)  # the same in all of them
        bold = np.repeat(by_corner[..., -1:], len(self.bold), axis=2)
        return np.asarray(np.log(self.of_claim) + np.concatenate([by_size, bold], axis=2))
