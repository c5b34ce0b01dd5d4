"""Both wrong answers as sets of what the groups' unknowns may be, where bands hold the rates.

FAIR is wrong in the UNFAIR set, where some gap that is compared reaches gamma + epsilon. UNFAIR is
wrong in the FAIR set, where no gap exceeds gamma in any stratum. Both are covered by null cells:

- The UNFAIR set is a union of pieces ``lam_a <= u(lam_b)``, one per ordered pair of groups, and so
  is the FAIR set of two groups, a corridor ``L(lam_b) <= lam_a <= U(lam_b)``
  (:mod:`equipoise.evidence.pair_cells`).
- The FAIR set of more groups has a rate of every group within gamma above some level, or within
  gamma of the reference's, for each rate (:mod:`equipoise.evidence.level_cells`).

u, L and U do not fall, so what lies above an interval of ``lam_b``, or belongs to an interval of
levels, is inside a box that is read off the interval's ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from equipoise._arrays import Array
from equipoise.comparison import Block, GapScale
from equipoise.evidence.bets import unfair_sizes
from equipoise.evidence.level_cells import level_cells
from equipoise.evidence.null_cells import NullCells
from equipoise.evidence.pair_cells import (
    BandsByRate,
    corridor,
    corridor_cells,
    largest_unfair,
    pair_cells,
    unfair_pieces,
)

FINENESS = 0.04  # width of a cell: how far a rate moves over it, in epsilons
FEW_GROUPS = 8  # with more groups cells are wider, in proportion to their number …
WIDEST_CELL = 0.5  # … up to this many epsilons
_MIN_STEP = 1 / 2000  # … but not finer than this, for the sake of memory


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
        everybody = tuple(range(self.n_groups))
        object.__setattr__(self, "blocks", self.blocks or (Block("", everybody),))

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return len(self.bands_for_unfair[0])

    @property
    def threshold(self) -> float:
        """The gap that the UNFAIR set begins with."""
        return self.gamma + self.epsilon

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The higher and the lower group of every gap that counts."""
        return frozenset(pair for block in self.blocks for pair in block.pairs)

    @property
    def step(self) -> float:
        """How far a rate moves over a cell.

        There are cells for every pair of groups, so many groups have wider ones: validity does not
        rest on it, and cells do not outgrow the memory.
        """
        crowd = max(self.n_groups / FEW_GROUPS, 1.0)
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
        # A cell may reach a step beyond its set, and what lies in a cell no label refutes.
        least_unfair_gap = self.threshold - self.step
        pieces = unfair_pieces(self, self.bands_for_fair)
        # In a piece a's unknown is too low beside b's, so the box's hardest corner has a's upper
        # end and b's lower one.
        frontier, _ = largest_unfair(
            self.bands_for_fair, pieces, low[pieces.b], least_unfair_gap, self.compare
        )
        if not (frontier >= high[pieces.a]).any():
            return False
        return all(
            self._corridor_holds(a, b, low, high) for a, b in combinations(range(len(low)), 2)
        )

    def _corridor_holds(self, a: int, b: int, low: Array, high: Array) -> bool:
        """Say whether the corridor of two groups, a cell wider, holds their side of a box."""
        gap = self.gamma + self.step
        # L and U do not fall: L is largest at b's upper end, U least at b's lower end.
        lowest_of_a, _ = corridor(self, a, b, high[[b]], gap)
        _, highest_of_a = corridor(self, a, b, low[[b]], gap)
        return bool(lowest_of_a.max() <= low[a] and highest_of_a.min() >= high[a])


# Cells follow from past data and question alone, which the frozen argument holds. Trial runs of one
# audit begin alike, so the last two are kept.
@lru_cache(maxsize=2)
def unfair_covers(wrong: WrongAnswers) -> tuple[NullCells, ...]:
    """Return the cover of the UNFAIR set: the cells of all pairs of groups."""
    return (pair_cells(wrong),)


@lru_cache(maxsize=2)
def fair_covers(wrong: WrongAnswers) -> tuple[NullCells, ...]:
    """Return covers of the FAIR set: of each block, one for two groups, one per rate for more.

    Who is FAIR is so in every block. The corridor of two groups is cut along one of them. Where
    the past tells them apart, their order follows from it; where it does not, there is a cover
    for either order.
    """
    rates = wrong.bands_for_unfair
    sizes = wrong.epsilon * np.asarray(unfair_sizes(wrong.epsilon))
    covers: list[NullCells] = []
    for block in wrong.blocks:
        if len(block.groups) > 2:
            covers += [level_cells(wrong, block, bands, sizes) for bands in rates]
            continue
        # Groups are ordered by the counts of the past, so a and b do not depend on names or labels.
        a, b = block.groups
        covers.append(corridor_cells(wrong, a, b, sizes))
        if all(bands[a] == bands[b] for bands in rates):
            covers.append(corridor_cells(wrong, b, a, sizes))
    return tuple(covers)
