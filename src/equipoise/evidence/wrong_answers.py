"""Both wrong answers as sets of what the groups' unknowns may be: cut into cells, bet against."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.comparison import GapScale
from equipoise.evidence.bets import fair_sizes, unfair_sizes
from equipoise.evidence.corners import corridor_cells, level_cells, unfair_cells
from equipoise.evidence.geometry import Limits, Pair, fair_pairs, unfair_pairs
from equipoise.evidence.staircase import Staircase
from equipoise.rates import RATES, Band, Bands

__all__ = ["Levels", "WrongAnswers"]

Array = NDArray[np.float64]
Stakes = tuple[list[Staircase], list[Staircase]]

FINENESS = 0.04  # width of a cell: how far a rate moves over it, in epsilons
_FINEST = 1 / 2000  # … but not finer than this, for the sake of memory


@dataclass(frozen=True)
class Levels:
    """The error probability that evidence may use against each wrong answer."""

    wrong_fair: float
    wrong_unfair: float


@dataclass(frozen=True)
class WrongAnswers:
    """The UNFAIR set, which FAIR has to refute, and the FAIR set, which UNFAIR has to refute.

    ``rates`` has, of the FAIR set, whether a rate falls and its band in every group; ``step`` is
    the width of cells.
    """

    unfair_pairs: tuple[Pair, ...]
    fair_pairs: tuple[Pair, ...]
    rates: tuple[tuple[bool, tuple[Band, ...]], ...]
    gamma: float
    epsilon: float
    levels: Levels
    step: float
    compare: GapScale
    fair_limits: tuple[tuple[float, float], ...] | None

    @classmethod
    def of(
        cls,
        against_unfair: Bands,
        against_fair: Bands,
        gamma: float,
        epsilon: float,
        levels: Levels,
        *,
        fineness: float = FINENESS,
        compare: GapScale = GapScale.DIFFERENCE,
        limits: tuple[Limits | None, Limits | None] = (None, None),
    ) -> WrongAnswers:
        """Return what the bands allow."""
        in_unfair, in_fair = limits
        return cls(
            tuple(unfair_pairs(against_unfair, compare, in_unfair)),
            tuple(fair_pairs(against_fair, compare, in_fair)),
            tuple((RATES[rate].falls, tuple(by.values())) for rate, by in against_fair.items()),
            gamma,
            epsilon,
            levels,
            max(fineness * epsilon, _FINEST),
            compare,
            None if in_fair is None else tuple(in_fair),
        )

    def first_stakes(self) -> Stakes:
        """Return staircases against the UNFAIR set and against the FAIR set, nothing counted."""
        return deepcopy(_first_stakes(self))

    def both_allowed(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both; a cell reaches beyond its set by a step."""
        unfair = self.gamma + self.epsilon - self.step
        if not any(
            pair.unfair_below(low[[pair.b]], unfair).at[0] >= high[pair.a]
            for pair in self.unfair_pairs
        ):
            return False
        fair = self.gamma + self.step
        return all(
            pair.fair_from(high[[pair.b]], fair).at[0] <= low[pair.a]
            and pair.fair_to(low[[pair.b]], fair).at[0] >= high[pair.a]
            for pair in self.fair_pairs
        )


@lru_cache(maxsize=2)  # rehearsals of one audit begin alike
def _first_stakes(wrong: WrongAnswers) -> Stakes:
    gamma, epsilon, step = wrong.gamma, wrong.epsilon, wrong.step
    k, gap = len(wrong.rates[0][1]), gamma + epsilon
    against_unfair = [
        Staircase(
            unfair_cells(pair, gap, step, k),
            epsilon * np.asarray(fair_sizes(gap, epsilon)),
            1.0 / wrong.levels.wrong_fair,
        )
        for pair in wrong.unfair_pairs
    ]
    if k == 2:
        cells = [corridor_cells(wrong.fair_pairs[0], gamma, epsilon, step, k)]
    else:  # each rate has its own cover of the FAIR set, at its share of the level
        cells = [
            level_cells(bands, falls, gamma, step, wrong.compare, wrong.fair_limits)
            for falls, bands in wrong.rates
        ]
    steps = epsilon * np.asarray(unfair_sizes(epsilon))
    bar = len(cells) / wrong.levels.wrong_unfair
    return against_unfair, [Staircase(each, steps, bar) for each in cells]
