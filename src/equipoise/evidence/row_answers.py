"""Both wrong answers where the past is finite: pieces of two groups, refuted by rows and labels.

The boxes that cover a piece are those of :mod:`equipoise.evidence.boxes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import exp

import numpy as np

from equipoise._arrays import Array, Flags
from equipoise.cells import GroupCells
from equipoise.comparison import Block, GapScale
from equipoise.evidence.bets import fair_sizes, unfair_sizes
from equipoise.evidence.boxes import PieceBoxes
from equipoise.evidence.claims import Claim, Piece
from equipoise.evidence.null_cells import FAR_SIDE_FADE, CornerCells, NullCells
from equipoise.evidence.past_rows import PastRows
from equipoise.evidence.shared_gains import SharedGains
from equipoise.rates import Rate

BOX_STEP = 0.2  # width of a box in epsilons: how far a rate moves over a side, two groups
BOX_STEP_OF_MORE = 0.3  # … and with more groups, whose pairs need more boxes
MOST_FADE = 700.0  # exp(-746) is 0, and what a bet without a stake has won is 0/0: no number


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
            # Errors of two groups are independent, so they add up as squares do.
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
    # A box may be refuted part by part. So it matters whether a part that past rows leave has them.
    if not cover.can_be_cut(boxes_around).all():
        return True
    return any(_holds(parts, lam_a, lam_b).any() for parts, _ in cover.parts(boxes_around))


def _holds(cells: NullCells, lam_a: Array, lam_b: Array) -> Flags:
    """Say which boxes hold these unknowns of their groups a and b."""
    a, b = cells.sides.T
    lam = np.stack([lam_a[a], lam_b[b]], axis=1)
    return np.asarray(((cells.side_low <= lam) & (lam <= cells.side_high)).all(axis=1))


# The arguments are frozen and hold all that boxes follow from: counts, question and levels. Trial
# runs of one audit begin alike, so the last two covers are kept.
@lru_cache(maxsize=2)
def _unfair_covers(answers: RowAnswers) -> tuple[NullCells, ...]:
    gap = answers.gamma + answers.epsilon
    sizes = answers.epsilon * np.asarray(fair_sizes(gap, answers.epsilon))
    shared = SharedGains(answers, sizes, 1.0 / answers.level_fair)
    cover = _boxes_of(_unfair_pieces(answers), shared)
    shared.forget_gains()
    return (cover,)


@lru_cache(maxsize=2)
def _fair_covers(answers: RowAnswers) -> tuple[NullCells, ...]:
    """Return a cover for every two groups that are compared.

    Each has the same part of the level, whatever the counts are.
    """
    pairs: list[tuple[int, int]] = []
    for block in answers.blocks:
        pairs += _unordered(block, answers.counts)
    sizes = answers.epsilon * np.asarray(unfair_sizes(answers.epsilon))
    shared = SharedGains(answers, sizes, len(pairs) / answers.level_unfair)
    covers = [_boxes_of(_fair_pieces(answers, a, b), shared) for a, b in pairs]
    shared.forget_gains()
    return tuple(covers)


def _boxes_of(pieces: Iterable[Piece], shared: SharedGains) -> CornerCells:
    """Return the boxes of pieces that past rows alone do not refute, with bets on labels."""
    return CornerCells.joined([PieceBoxes(shared, piece).standing_boxes() for piece in pieces])


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
    # A rate that falls in its unknown is too high where the unknown is too low, so a is ``high``.
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
    # The side is where a truth beyond the claim has its unknown: a rate that is lower than claimed
    # belongs to a larger unknown if it falls in it (trend -1), and to a smaller one if it rises.
    for place, rate in enumerate(answers.rates):
        if (b, a) in answers.pairs:  # b may not be far above a
            claims.append(Claim(place, gamma, above=False, at_least=True, side=-rate.trend))
        if (a, b) in answers.pairs:
            claims.append(Claim(place, gamma, above=True, at_least=False, side=rate.trend))
    if (a, b) not in answers.pairs or (b, a) not in answers.pairs:
        far_share = 0.0 if len({claim.side for claim in claims}) == 1 else 0.5
        yield Piece(a, b, tuple(claims), claims[0].side, far_share)
        return
    far_share = 0.5 * exp(-min(FAR_SIDE_FADE * gamma / answers.epsilon, MOST_FADE))
    # With gamma = 0 both halves are the populations with equal rates: one piece is enough.
    for near in (1, -1) if gamma > 0.0 else (1,):
        claims_of_half = []
        for claim in claims:
            is_cut = claim.rate == 0 and claim.side != near
            claims_of_half.append(replace(claim, gap=0.0) if is_cut else claim)
        yield Piece(a, b, tuple(claims_of_half), near, far_share)
