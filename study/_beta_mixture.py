"""The plain alternative to bets at corners: a Beta(1/2, 1/2) mixture for each of two groups.

``E(lam) = prod_a B(k_a + 1/2, l_a + 1/2) / B(1/2, 1/2) / (lam_a^k_a (1 - lam_a)^l_a)`` is a
martingale at every point lam, so its least value over a cell refutes the cell. Over a box the least
value separates: each group's likelihood is largest where its unknown is nearest to k_a / n_a.
Cells, plan and stopping are those of the adaptive audit; only the evidence differs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.evidence import Evidence, NullCells
from equipoise.evidence.null_cells import Cells

Array = NDArray[np.float64]


class BetaCells(NullCells):
    """The same cells, refuted by the mixture's least value over each: one bet per cell."""

    def __init__(self, like: NullCells) -> None:
        vars(self).update(vars(like))

    def log_wealth(self, counts: Array, cells: Cells) -> Array:
        if counts[..., 2].any():
            raise ValueError("the comparison is for labels that all come")
        zeros, ones = counts[..., None, :, 0], counts[..., None, :, 1]
        lam = np.clip(ones / np.maximum(ones + zeros, 1.0), self.low[cells], self.high[cells])
        mixture = betaln(ones + 0.5, zeros + 0.5) - betaln(0.5, 0.5)
        return (mixture - xlogy(ones, lam) - xlog1py(zeros, -lam)).sum(axis=-1)[..., None]


class BetaAudit(AdaptiveAudit):
    """The adaptive audit with mixtures instead of bets, for two groups."""

    name = "beta mixture"

    def _start(self) -> Evidence:
        if len(self.cells) != 2:
            raise ValueError("the comparison is for two groups")
        evidence = super()._start()
        for against in (evidence._against_unfair, evidence._against_fair):
            against.covers = tuple(BetaCells(cells) for cells in against.covers)
        return evidence
