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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import exp, log

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.cells import GroupCells
from equipoise.comparison import Block, GapScale
from equipoise.evidence.bets import bet_shares, fair_sizes, move_gap, unfair_sizes
from equipoise.evidence.null_cells import (
    FAR_SIDE_FADE,
    CornerCells,
    LabelBets,
    NullCells,
    rate_grid,
)
from equipoise.evidence.past_rows import (
    ABOVE_ALL_LEVELS,
    Gains,
    Levels,
    PastRows,
    level_lines,
    range_of,
)
from equipoise.rates import Band, Curve, Rate

BOX_STEP = 0.2  # width of a box in epsilons: how far a rate moves over a side, two groups
BOX_STEP_OF_MORE = 0.3  # … and with more groups, whose pairs need more boxes
BOX_STEP_IN_ERRORS = 2.5  # it is at least so many times as many standard errors of the past
FLOOR_SHARE = 0.05  # of a stake goes to bets on labels alone
BOLD_SHARE_PER_ERROR = 0.8  # … and, for each epsilon that a gap of past rows is guessed to be off,
LEAST_BOLD_SHARE = 0.05  # … but at least so much …
MOST_BOLD_SHARE = 0.25  # … and at most so much to bets that expect rows off by ``BOLD_TILT`` errors
BOLD_TILT = 2.6
BOLD_RATIO = 1.5  # sizes of such bets are rounded to powers of this
STRONG_SHARE = 0.06  # … and to bets on past rows alone, which refute boxes before the first label
NEAR_ZONE = 0.55  # boxes deeper than this share of the third size rest on labels alone
LEAST_LABEL_SHARE = 0.1  # of the size of a bet on labels, where past rows have won the rest
PARTS = 4  # of either side of a box, if it is cut because it keeps an answer from being given
N_DIRECTIONS = 3  # of bets on labels: both groups move, a alone, b alone
MOST_KEPT_GAINS = 1_000_000  # numbers: gains over cut sides that are kept, for the sake of memory
_CORNERS = 4


@dataclass(frozen=True)
class Claim:
    """What a piece of a wrong answer says of one rate of a, given that of b.

    Parameters
    ----------
    rate
        The place of the rate.
    gap
        How far the level of a is above or below that of b.
    above
        Whether it is above.
    at_least
        Whether a's rate is at least that level, or at most.
    side
        +1 if populations outside the piece have a larger unknown of a, -1 if a smaller one.
    """

    rate: int
    gap: float
    above: bool
    at_least: bool
    side: int

    @property
    def sign(self) -> int:
        """The sign of bets on rows of a; those on rows of b have the other one."""
        return -1 if self.at_least else 1

    def level(self, t: Array, compare: GapScale) -> Array:
        """Return the level of a's rate that belongs to a rate t of b."""
        return compare.above(t, self.gap) if self.above else compare.below(t, self.gap)


@dataclass(frozen=True)
class Piece:
    """A set of populations of two groups: those for which all of its claims hold.

    ``near`` is the side that most of the stake expects the truth on; ``far_share`` of it expects
    the truth on the other side.
    """

    a: int
    b: int
    claims: tuple[Claim, ...]
    near: int = 1
    far_share: float = 0.0

    def on_side(self, side: int) -> tuple[Claim, ...]:
        """Return the claims that a truth on one side contradicts."""
        return tuple(claim for claim in self.claims if claim.side == side)


@dataclass(frozen=True)
class RowAnswers:
    """Both wrong answers about groups with finite pasts, refuted by past rows and labels together.

    Parameters
    ----------
    rates, counts
        The metric's rates, and every group's counts.
    gamma, epsilon, compare, blocks
        The question; every group is compared with every other if there are no blocks.
    level_fair, level_unfair
        The error probability that evidence may use for a wrong FAIR, and for a wrong UNFAIR.
    box_step
        Width of a box in epsilons; by the number of groups if left out.
    """

    rates: tuple[Rate, ...]
    counts: tuple[GroupCells, ...]
    gamma: float
    epsilon: float
    level_fair: float
    level_unfair: float
    compare: GapScale = GapScale.DIFFERENCE
    blocks: tuple[Block, ...] = ()
    box_step: float | None = None

    def __post_init__(self) -> None:
        everybody = tuple(range(len(self.counts)))
        object.__setattr__(self, "blocks", self.blocks or (Block("", everybody),))
        if self.box_step is None:
            step = BOX_STEP if len(everybody) == 2 else BOX_STEP_OF_MORE
            object.__setattr__(self, "box_step", step)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The higher and the lower group of every gap that counts."""
        return tuple(pair for block in self.blocks for pair in block.pairs)

    def error_of_gap(self, r: Array) -> float:
        """Return the largest standard error of a gap that counts, by past rows alone, at r."""
        return self._largest_error(r, lambda rows, lam, _: float(rows.standard_error(lam)))

    def label_error_of_gap(self, r: Array, errors: Array) -> float:
        """Return the largest standard error of a gap that counts, by errors of r alone."""

        def error_of_rate(rows: PastRows, lam: Array, group: int) -> float:
            return float(np.abs(rows.curve.slope(lam))) * float(errors[group])

        return self._largest_error(r, error_of_rate)

    def _largest_error(
        self, r: Array, error_of_rate: Callable[[PastRows, Array, int], float]
    ) -> float:
        """Return the largest standard error of a gap that counts, given that of a group's rate."""
        largest = 0.0
        for rate in self.rates:
            errors = []
            values = []
            for group, counts in enumerate(self.counts):
                rows = PastRows(rate, counts)
                errors.append(error_of_rate(rows, r[group], group))
                values.append(float(rows.curve.value(r[group])))
            for high, low in self.pairs:
                higher = np.asarray(max(values[high], values[low]))
                unit = float(self.compare.rate_per_gap(higher))
                largest = max(largest, float(np.hypot(errors[high], errors[low])) / unit)
        return largest

    def unfair_covers(self) -> tuple[NullCells, ...]:
        """Return the one cover of the UNFAIR set: the boxes of every rate and pair of groups."""
        return _unfair_covers(self)

    def fair_covers(self) -> tuple[NullCells, ...]:
        """Return covers of the FAIR set, one for every two groups that are compared."""
        return _fair_covers(self)

    def both_allowed(self, low: Array, high: Array) -> bool:
        """Say whether past rows leave both wrong answers possible for every unknown in a box.

        Labels can refute no box that holds the unknowns themselves.
        """
        # A larger unknown of a, or a smaller one of b, leads out of an unfair piece; that or the
        # opposite leads out of a fair one. These corners of the box are the nearest to its outside.
        (unfair,) = self.unfair_covers()
        if not _is_held(unfair, high, low):
            return False
        return all(
            _is_held(cover, low, high) and _is_held(cover, high, low)
            for cover in self.fair_covers()
        )


def _is_held(cover: NullCells, lam_a: Array, lam_b: Array) -> bool:
    """Say whether some part of a box holds these unknowns of its groups a and b."""
    assert isinstance(cover, CornerCells)
    boxes_around = np.flatnonzero(_holds(cover, lam_a, lam_b))
    if not cover.can_be_cut(boxes_around).all():
        return True
    return any(_holds(parts, lam_a, lam_b).any() for parts, _ in cover.parts(boxes_around))


def _holds(cells: NullCells, lam_a: Array, lam_b: Array) -> Flags:
    """Say which boxes hold these unknowns of their groups a and b."""
    a, b = cells.sides.T
    lam = np.stack([lam_a[a], lam_b[b]], axis=1)
    return np.asarray(((cells.side_low <= lam) & (lam <= cells.side_high)).all(axis=1))


# -- pieces ---------------------------------------------------------------------------------------


@lru_cache(maxsize=2)  # trial runs of one audit begin alike
def _unfair_covers(answers: RowAnswers) -> tuple[NullCells, ...]:
    gap = answers.gamma + answers.epsilon
    sizes = answers.epsilon * np.asarray(fair_sizes(gap, answers.epsilon))
    maker = BoxMaker(answers, sizes, 1.0 / answers.level_fair)
    cover = CornerCells.joined([maker.boxes(piece) for piece in _unfair_pieces(answers)])
    maker.forget_gains()
    return (cover,)


@lru_cache(maxsize=2)
def _fair_covers(answers: RowAnswers) -> tuple[NullCells, ...]:
    """Uniform stakes: each cover has the same part of the level, whatever the counts are."""
    pairs = [pair for block in answers.blocks for pair in _unordered(block, answers.counts)]
    sizes = answers.epsilon * np.asarray(unfair_sizes(answers.epsilon))
    maker = BoxMaker(answers, sizes, len(pairs) / answers.level_unfair)
    covers = [
        CornerCells.joined([maker.boxes(piece) for piece in _fair_pieces(answers, a, b)])
        for a, b in pairs
    ]
    maker.forget_gains()
    return tuple(covers)


def _unordered(block: Block, counts: Sequence[GroupCells]) -> list[tuple[int, int]]:
    """Return every two groups of a block that are compared, the one with more past rows first.

    Neither what rows show nor a name decides which of them is a: where both have as many rows,
    both orders are there.
    """
    compared = set(block.pairs)
    ordered_pairs = []
    for pair in combinations(block.groups, 2):
        if not compared & {pair, pair[::-1]}:
            continue
        n_first = counts[pair[0]].total
        n_second = counts[pair[1]].total
        if n_first >= n_second:
            ordered_pairs.append(pair)
        if n_second >= n_first:
            ordered_pairs.append(pair[::-1])
    return ordered_pairs


def _unfair_pieces(answers: RowAnswers) -> Iterator[Piece]:
    """Yield "the rate of high is too far above that of low", a being whose unknown is too low."""
    gap = answers.gamma + answers.epsilon
    for high, low in answers.pairs:
        for place, rate in enumerate(answers.rates):
            if rate.trend < 0:
                claim = Claim(place, gap, above=True, at_least=True, side=1)
                yield Piece(high, low, (claim,))
            else:
                claim = Claim(place, gap, above=False, at_least=False, side=1)
                yield Piece(low, high, (claim,))


def _fair_pieces(answers: RowAnswers, a: int, b: int) -> Iterator[Piece]:
    """Yield the populations in which no rate of a and b differs by more than gamma.

    They are cut in two by which of the groups has the larger first rate, so that the claim of the
    far side is about equality there. Where only one direction counts there is one piece.
    """
    gamma = answers.gamma
    claims = []
    for place, rate in enumerate(answers.rates):
        if (b, a) in answers.pairs:  # b may not be far above a
            claims.append(Claim(place, gamma, above=False, at_least=True, side=-rate.trend))
        if (a, b) in answers.pairs:
            claims.append(Claim(place, gamma, above=True, at_least=False, side=rate.trend))
    if (a, b) not in answers.pairs or (b, a) not in answers.pairs:
        far_share = 0.0 if len({claim.side for claim in claims}) == 1 else 0.5
        yield Piece(a, b, tuple(claims), claims[0].side, far_share)
        return
    far_share = 0.5 * exp(-FAR_SIDE_FADE * gamma / answers.epsilon)
    for near in (1, -1) if gamma > 0.0 else (1,):
        halved = [
            Claim(0, 0.0, claim.above, claim.at_least, claim.side)
            if claim.rate == 0 and claim.side != near
            else claim
            for claim in claims
        ]
        yield Piece(a, b, tuple(halved), near, far_share)


# -- boxes ----------------------------------------------------------------------------------------


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
    of_a
        Whether the group is a, or b.
    """

    rates: tuple[int, ...]
    bold: float
    needed: float
    of_a: bool


@dataclass
class BoxMaker:
    """Makes the boxes of pieces with bets of certain sizes; what groups share is kept.

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
        self._gains: dict[object, Gains] = {}
        self._opposites: dict[object, Array] = {}
        self._grids: dict[object, Array] = {}
        self._gains_of_cut_sides: dict[object, dict[int, Gains]] = {}
        self._opposite_of_cut_sides: dict[object, dict[int, Flags]] = {}
        self._n_kept_gains = 0  # numbers

    def boxes(self, piece: Piece) -> CornerCells:
        """Return the boxes of a piece that past rows alone do not refute, with bets on labels."""
        return PieceBoxes(self, piece).standing_boxes()

    def rows(self, rate: int, group: int) -> PastRows:
        """Return a group's past rows as bets on a rate."""
        return _past_rows(self.answers.rates[rate], self.answers.counts[group])

    def grid(self, rates: tuple[int, ...], group: int) -> Array:
        """Return ends of cells of a group's unknown over which none of the rates moves far."""
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
        possible = level[:-1] <= 1.0 if claim.at_least else level[1:] >= 0.0
        return np.stack([lines[:-1], lines[1:]], axis=1)[possible]

    def bold_tilt(self, a: int, b: int) -> float:
        """Return how large a bet is that expects ``BOLD_TILT`` errors, from group totals alone.

        The standard error of a difference is guessed for rates of one half among half of the rows.
        """
        error = self.guessed_error(a, b)
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
        counts = self.answers.counts
        return float(sum(0.5 / counts[group].total for group in (a, b)) ** 0.5)

    def levels(self, claim: Claim, bold: float, *, of_a: bool) -> Levels:
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
        tilts = np.concatenate([by_size, bolder[:, None]], axis=1) / unit
        if of_a:
            return Levels(claim.level(t, compare), level, tilts / slope)
        return Levels(t, middle, tilts)

    def gains(self, claim: Claim, group: int, place: Place) -> Gains:
        """Return what a group's rows make of bets against a claim, as group a or as b."""
        key = (claim, group, place)
        if key not in self._gains:
            sign = claim.sign if place.of_a else -claim.sign
            levels = self.levels(claim, place.bold, of_a=place.of_a)
            sides = adjacent_sides(self.grid(place.rates, group))
            rows = self.rows(claim.rate, group)
            self._gains[key] = rows.gains(sides, levels, sign, place.needed)
        return self._gains[key]

    def opposite(self, claim: Claim, group: int, rates: tuple[int, ...]) -> Array:
        """Return the strong bet of b's rows on the other side: b's rate is exactly t."""
        key = (claim, group, rates)
        if key not in self._opposites:
            levels = self.levels(claim, 1.0, of_a=False)
            rows = self.rows(claim.rate, group)
            sides = adjacent_sides(self.grid(rates, group))
            self._opposites[key] = rows.strong_gains(sides, levels, claim.sign)
        return self._opposites[key]

    def gains_of_cut_sides(self, claim: Claim, group: int, place: Place, cells: Ints) -> Gains:
        """Return what a group's rows gain over the parts of some cells of its grid.

        The parts of a cell are the same for all boxes that it is a side of, so they are worked out
        once.
        """
        kept = self._gains_of_cut_sides.setdefault((claim, group, place), {})
        missing = np.array([cell for cell in cells.tolist() if cell not in kept], dtype=np.intp)
        if len(missing):
            sign = claim.sign if place.of_a else -claim.sign
            levels = self.levels(claim, place.bold, of_a=place.of_a)
            ends = parts_of_sides(self.grid(place.rates, group), missing)
            gains = self.rows(claim.rate, group).gains(ends, levels, sign, place.needed)
            for n, cell in enumerate(missing.tolist()):
                kept[cell] = gains.select(slice(n * PARTS, (n + 1) * PARTS))
            self._n_kept_gains += gains.main.size
        return Gains.joined([kept[cell] for cell in cells.tolist()])

    def opposite_of_cut_sides(
        self, claim: Claim, group: int, place: Place, cells: Ints
    ) -> tuple[Ints, Ints]:
        """Return the first and the last level that b's strong bet on the other side leaves.

        Over the parts of some cells of b's grid, and worked out once as well.
        """
        kept = self._opposite_of_cut_sides.setdefault((claim, group, place), {})
        missing = np.array([cell for cell in cells.tolist() if cell not in kept], dtype=np.intp)
        if len(missing):
            levels = self.levels(claim, place.bold, of_a=False)
            ends = parts_of_sides(self.grid(place.rates, group), missing)
            strong = self.rows(claim.rate, group).strong_gains(ends, levels, claim.sign)
            is_left = (strong < place.needed).reshape(len(missing), PARTS, -1)
            kept.update(zip(missing.tolist(), is_left, strict=True))
        return range_of(np.concatenate([kept[cell] for cell in cells.tolist()]))

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


def adjacent_sides(grid: Array) -> Array:
    """Return both ends of every cell of a grid, shape (cells, 2)."""
    return np.stack([grid[:-1], grid[1:]], axis=1)


def parts_of_sides(grid: Array, cells: Ints) -> Array:
    """Return both ends of all parts of some cells of a grid, shape (cells times parts, 2)."""
    lines = np.linspace(grid[cells], grid[cells + 1], PARTS + 1, axis=1)
    return np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2)


@lru_cache(maxsize=512)
def _past_rows(rate: Rate, counts: GroupCells) -> PastRows:
    return PastRows(rate, counts)


class PieceBoxes:
    """The boxes of one piece.

    A candidate is a cell of a's grid times one of b's. It is near if some bet against past rows
    may help labels there; all deeper candidates of a row of b share one box, against which labels
    alone bet.
    """

    def __init__(self, maker: BoxMaker, piece: Piece) -> None:
        self.maker = maker
        self.piece = piece
        self.compare = maker.answers.compare
        self.rates = tuple(sorted({claim.rate for claim in piece.claims}))
        self.grid_a = maker.grid(self.rates, piece.a)
        self.grid_b = maker.grid(self.rates, piece.b)
        self.sides = [piece.near] + ([-piece.near] if piece.on_side(-piece.near) else [])
        n_strong = sum(2 if self._has_opposite(claim) else 3 for claim in piece.claims)
        self.needed = log(maker.bar) - log(STRONG_SHARE / n_strong)
        self.bold = maker.bold_tilt(piece.a, piece.b)
        self.bold_share = maker.bold_share(piece.a, piece.b)

    def standing_boxes(self) -> CornerCells:
        """Return the boxes that stand before the first label."""
        first, last = self._windows()
        is_open = (first <= last).all(axis=0)
        is_near = is_open & self._is_near()
        near_boxes = self._near_boxes(is_near, first, last)
        return CornerCells.joined([near_boxes, self._deep_boxes(is_open & ~is_near)])

    def _near_boxes(self, is_near: Flags, first: Ints, last: Ints) -> CornerCells:
        """Return a box for every near candidate that past rows alone do not refute.

        ``first`` and ``last`` are the levels that strong bets leave, as :meth:`_windows` has them.
        """
        i, j = np.nonzero(is_near)
        gains = {}
        for claim in self.piece.claims:
            place = self.rates.index(claim.rate)
            a = self._gains(claim, of_a=True), i
            b = self._gains(claim, of_a=False), j
            gains[claim] = _least_gain(a, b, first[place, i, j], last[place, i, j])
        origin = np.stack([np.zeros_like(i), i, j], axis=1)
        boxes = self._with_bets(self._box(i, i, j), gains, origin)
        return boxes.select(self._places_standing(boxes))

    def _deep_boxes(self, is_deep: Flags) -> CornerCells:
        """Return one box for the deep candidates of every row of b."""
        row = np.flatnonzero(is_deep.any(axis=0))
        first, last = range_of(is_deep.T)
        box = self._box(first[row], last[row], row)
        return self._with_bets(box, {}, _no_origin(len(row)))

    def parts(self, i: Ints, j: Ints, bets: LabelBets) -> tuple[CornerCells, Ints]:
        """Return the parts of candidates that past rows alone do not refute, and whose they are.

        They have the bets of the whole. So at every population of a part the whole and all of its
        parts are at most one and the same supermartingale: labels may decide which are cut.
        """
        cut = CutBoxes.of(self.grid_a, self.grid_b, i, j)
        self.maker.keep_few_cut_sides()
        gains_by_claim = self._gains_of_cut_sides(cut)
        first, last = self._windows_of_parts(cut, gains_by_claim)
        is_open = np.flatnonzero((first <= last).all(axis=0))
        cut = cut.select(is_open)
        gains = {}
        for claim, (gains_a, gains_b) in gains_by_claim.items():
            place = self.rates.index(claim.rate)
            a = gains_a, cut.side_a
            b = gains_b, cut.side_b
            gains[claim] = _least_gain(a, b, first[place, is_open], last[place, is_open])
        origin = _no_origin(len(is_open))
        parts = self._with_bets(cut.ends, gains, origin, bets.select(cut.parent))
        standing = self._places_standing(parts)
        return parts.select(standing), cut.parent[standing]

    def _gains_of_cut_sides(self, cut: CutBoxes) -> dict[Claim, tuple[Gains, Gains]]:
        """Return what rows of a and of b make of bets on each claim over sides that were cut."""
        gains_by_claim = {}
        for claim in self.piece.claims:
            gains_a = self.maker.gains_of_cut_sides(
                claim, self.piece.a, self._place(of_a=True), cut.cells_a
            )
            gains_b = self.maker.gains_of_cut_sides(
                claim, self.piece.b, self._place(of_a=False), cut.cells_b
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
            if not self._has_opposite(claim):
                start, end = self.maker.opposite_of_cut_sides(
                    claim, self.piece.b, self._place(of_a=False), cut.cells_b
                )
                windows.append((start[cut.side_b], end[cut.side_b]))
            for start, end in windows:
                first[place] = np.maximum(first[place], start)
                last[place] = np.minimum(last[place], end)
        return first, last

    def _places_standing(self, boxes: CornerCells) -> Ints:
        """Return the places of the boxes that past rows alone do not refute."""
        return np.flatnonzero(boxes.evidence(boxes.log_stake) < self.maker.bar)

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
            gains_a = self._gains(claim, of_a=True)
            gains_b = self._gains(claim, of_a=False)
            windows_b = [(gains_b.first, gains_b.last)]
            # At a level b's rate is exactly t, so that its rows bet against it both ways.
            if not self._has_opposite(claim):
                strong = self.maker.opposite(claim, self.piece.b, self.rates)
                windows_b.append(range_of(strong < self.needed))
            first[place] = np.maximum(first[place], gains_a.first[:, None])
            last[place] = np.minimum(last[place], gains_a.last[:, None])
            for start, end in windows_b:
                first[place] = np.maximum(first[place], start)
                last[place] = np.minimum(last[place], end)
        return first, last

    def _has_opposite(self, claim: Claim) -> bool:
        """Say whether another claim bets on rows of b in the other direction."""
        return any(
            other.rate == claim.rate and other.sign != claim.sign for other in self.piece.claims
        )

    def _is_near(self) -> Flags:
        """Say where some claim is hardly met by the estimates, shape (a, b)."""
        zone = NEAR_ZONE * float(self.maker.sizes[:3].max())
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
        rate_a = self.maker.rows(claim.rate, self.piece.a).curve.value(lam_a)
        rate_b = self.maker.rows(claim.rate, self.piece.b).curve.value(lam_b)
        level = claim.level(rate_b, self.compare)
        beyond = level - rate_a if claim.at_least else rate_a - level
        return beyond, self.compare.rate_per_gap(np.maximum(rate_a, rate_b))

    def _box(self, first_a: Ints, last_a: Ints, row: Ints) -> tuple[Array, Array]:
        """Return low and high of a's and b's unknowns, shape (boxes, 2) each."""
        low = np.stack([self.grid_a[first_a], self.grid_b[row]], axis=1)
        high = np.stack([self.grid_a[last_a + 1], self.grid_b[row + 1]], axis=1)
        return low, high

    # -- what past rows have won -----------------------------------------------------------------

    def _gains(self, claim: Claim, *, of_a: bool) -> Gains:
        """Return what rows of a, or of b, make of bets on a claim over the whole of its grid."""
        group = self.piece.a if of_a else self.piece.b
        return self.maker.gains(claim, group, self._place(of_a=of_a))

    def _place(self, *, of_a: bool) -> Place:
        return Place(self.rates, self.bold, self.needed, of_a)

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
        stakes_by_side = [self._stakes_of_side(side, gains, len(box[0])) for side in self.sides]
        log_stake = np.concatenate([stakes.log_stake for stakes in stakes_by_side], axis=2)
        share_before = np.concatenate([stakes.log_share_before for stakes in stakes_by_side])
        # Bets on labels of all sides stand in turn.
        label_bet = np.concatenate(
            [
                place * self._n_label_bets + stakes.label_bet
                for place, stakes in enumerate(stakes_by_side)
            ]
        )
        if bets is None:
            share_left = self._share_left_to_labels(log_stake, share_before, label_bet)
            bets = self._label_bets(box).scaled(share_left)
        return self._assembled(box, log_stake, bets, label_bet, origin)

    @property
    def _n_label_bets(self) -> int:
        """How many bets on labels a side has: one of every size in every direction."""
        return N_DIRECTIONS * len(self.maker.sizes)

    def _stakes_of_side(self, side: int, gains: dict[Claim, Array], n_boxes: int) -> SideStakes:
        """Return the stakes of a side's bets: those on its claims in turn, then on labels alone."""
        weight = self.piece.far_share if side != self.piece.near else 1 - self.piece.far_share
        claims = self.piece.on_side(side)
        shares = BetShares.of(len(self.maker.sizes), weight, len(claims), self.bold_share)
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
        needed = log(self.maker.bar)
        share_left = (needed - log_stake.min(axis=0)) / (needed - log_share_before)
        share = np.full((log_stake.shape[1], self._n_label_bets * len(self.sides)), 1.0)
        # Several bets on past rows go with one bet on labels: what has won most decides.
        for bet, place in enumerate(label_bet.tolist()):
            share[:, place] = np.minimum(share[:, place], share_left[:, bet])
        return np.asarray(np.clip(share, LEAST_LABEL_SHARE, 1.0))

    def _label_bets(self, box: tuple[Array, Array]) -> LabelBets:
        """Return the bets on labels of boxes, those of all sides in turn."""
        bets_by_side = [self._label_bets_of_side(box, side) for side in self.sides]
        starts = [np.broadcast_to(start[..., None], slope.shape) for start, slope in bets_by_side]
        slopes = [slope for _, slope in bets_by_side]
        return LabelBets(np.concatenate(starts, axis=2), np.concatenate(slopes, axis=2))

    def _label_bets_of_side(self, box: tuple[Array, Array], side: int) -> tuple[Array, Array]:
        """Return where label bets of a side start, and their slopes.

        They start where a leaves the box and go by the rate that labels move out of it soonest.
        """
        low, high = box
        corner = np.stack([high[:, 0], low[:, 1]] if side > 0 else [low[:, 0], high[:, 1]])
        active, depth, unit = self._soonest_rate(side, corner)
        gap_steps = self.maker.sizes * unit[:, None] + depth[:, None]
        direction = np.full((len(low), 1, 1), side)
        aim = self._aim(side, active)
        rho = move_gap(corner[..., None, None], aim, direction, gap_steps[:, None])
        rho = rho[:, :, 0]  # there is one corner
        start = corner[..., None]
        return corner, (rho - start) / np.maximum(start * (1.0 - start), 1e-9)

    def _soonest_rate(self, side: int, corner: Array) -> tuple[Ints, Array, Array]:
        """Return by which claim labels leave each box soonest, how deep it is there, and the unit.

        ``corner`` has the unknowns of a and b, shape (2, boxes); claims are numbered on the side.
        """
        claims = self.piece.on_side(side)
        measured = [self._beyond(claim, *corner) for claim in claims]
        units = np.stack([unit for _, unit in measured])
        depths = np.stack([np.maximum(-beyond, 0.0) for beyond, _ in measured])
        paces = np.stack([self._pace(claim, corner) for claim in claims])
        # labels needed to move the gap out of the piece by epsilon, up to a common factor
        effort = (depths + self.maker.answers.epsilon * units) ** 2 / np.maximum(paces, 1e-12)
        active = effort.argmin(axis=0)
        depth = np.take_along_axis(depths, active[None], 0)[0]
        unit = np.take_along_axis(units, active[None], 0)[0]
        return active, depth, unit

    def _pace(self, claim: Claim, corner: Array) -> Array:
        """Return what a label of either group tells about the gap of a claim's rate."""
        slopes = np.stack(
            [
                self.maker.rows(claim.rate, group).curve.slope(lam)
                for group, lam in zip((self.piece.a, self.piece.b), corner, strict=True)
            ]
        )
        return np.asarray((corner * (1.0 - corner) * slopes**2).sum(axis=0))

    def _aim(self, side: int, active: Ints) -> Curve:
        """Return the curves of a and b, first axis, of the active rate of every box."""
        curves = [
            self.maker.rows(claim.rate, group).curve
            for group in (self.piece.a, self.piece.b)
            for claim in self.piece.on_side(side)
        ]
        stacked = Curve.stack(curves)
        coefficients = (stacked.a, stacked.b, stacked.c, stacked.d)
        return Curve(
            *(np.asarray(x).reshape(2, -1)[:, active][..., None, None] for x in coefficients)
        )

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
        factors = np.log(np.stack([1.0 - slope * lam, 1.0 + slope * (1.0 - lam)], axis=1))
        sides = np.repeat(np.array([[self.piece.a, self.piece.b]]), len(low), axis=0)
        return CornerCells(
            n_groups=len(self.maker.answers.counts),
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
    def of(cls, grid_a: Array, grid_b: Array, i: Ints, j: Ints) -> CutBoxes:
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


def _least_gain(a: tuple[Gains, Ints], b: tuple[Gains, Ints], first: Ints, last: Ints) -> Array:
    """Return the log gain of past rows at the corners of boxes, shape (boxes, 4, sizes).

    It is the least over the levels from ``first`` to ``last``, which strong bets leave. Of both
    groups there is what their rows gain over some sides, and the side of every box.
    """
    gains_a, side_a = a
    gains_b, side_b = b
    n_sizes = gains_a.main.shape[-1]
    least = np.full((len(side_a), 2, 2, n_sizes), np.inf)
    for step in range(int((last - first).max(initial=-1)) + 1):
        boxes = np.flatnonzero(first + step <= last)  # those that have so many levels
        level = first[boxes] + step
        # The levels of a side begin with its own first one.
        level_a = level - gains_a.first[side_a[boxes]]
        level_b = level - gains_b.first[side_b[boxes]]
        # axes: box, end of a, end of b, end of the level, size
        gain_a = gains_a.main[side_a[boxes], :, level_a][:, :, None]
        gain_b = gains_b.main[side_b[boxes], :, level_b][:, None]
        gain = gain_a + gain_b
        at_either_end = np.minimum(gain[..., 0, :], gain[..., 1, :])
        least[boxes] = np.minimum(least[boxes], at_either_end)
    return least.reshape(len(side_a), _CORNERS, n_sizes)


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
    def of(cls, n_sizes: int, weight: float, n_claims: int, bold_share: float) -> BetShares:
        """Return the shares for so many sizes and claims of a side that has this weight."""
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
