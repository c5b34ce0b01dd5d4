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
from equipoise.evidence import Staircase, Weighing
from equipoise.evidence.staircase import Block, Kind

Array = NDArray[np.float64]

MOST_NATS = 300.0  # more than any threshold, less than overflow


class BetaStaircase(Staircase):
    """The same cells, refuted by the mixture's least value over each."""

    def __init__(self, like: Staircase) -> None:
        vars(self).update(vars(like))
        self.ones, self.zeros = np.zeros(self.low.shape[1]), np.zeros(self.low.shape[1])

    @property
    def evidence(self) -> Array:
        ones, zeros = self.ones, self.zeros
        lam = np.clip(ones / np.maximum(ones + zeros, 1.0), self.low, self.high)
        mixture = betaln(ones + 0.5, zeros + 0.5) - betaln(0.5, 0.5)
        log = (mixture - xlogy(ones, lam) - xlog1py(zeros, -lam)).sum(axis=1)
        return np.asarray(np.exp(np.minimum(log, MOST_NATS)))

    def update(self, kind: Kind) -> None:
        group, low, high = kind
        if low != high:
            raise ValueError("the comparison is for labels that all come")
        (self.ones if low else self.zeros)[group] += 1
        self._refute(self.evidence >= self.bar)
        if not self.refuted:
            self._drop_refuted()

    def update_block(self, block: Block) -> int:
        for place, kind in enumerate(block.kinds(np.arange(len(block)))):
            if self.refuted:
                return place
            self.update(kind)
        return len(block) if self.refuted else len(block) + 1


class BetaAudit(AdaptiveAudit):
    """The adaptive audit with mixtures instead of bets, for two groups."""

    name = "beta mixture"

    def _start(self) -> Weighing:
        if len(self.cells) != 2:
            raise ValueError("the comparison is for two groups")
        weighing = super()._start()
        weighing.unfair_set = [BetaStaircase(s) for s in weighing.unfair_set]
        weighing.fair_set = [BetaStaircase(s) for s in weighing.fair_set]
        return weighing
