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

Array = NDArray[np.float64]

MOST_NATS = 300.0  # more than any threshold, less than overflow


class BetaStaircase(Staircase):
    """The same cells, refuted by the mixture's least value over each."""

    def __init__(self, like: Staircase, groups: int) -> None:
        self.__dict__.update(like.__dict__)
        self.ones, self.zeros = np.zeros(groups), np.zeros(groups)

    def update(self, group: int, outcome: int | None) -> None:
        if outcome is None:
            raise ValueError("the comparison is for labels that all come")
        (self.ones if outcome else self.zeros)[group] += 1
        rows = self._rows
        log = self._least(self._a[rows.pair], rows.box[:, :2])
        log += self._least(self._b[rows.pair], rows.box[:, 2:])
        rows.stake[:] = 0.0
        rows.stake[:, 0] = np.exp(np.minimum(log, MOST_NATS))
        for factor in (rows.a_one, rows.a_zero, rows.b_one, rows.b_zero):
            factor[:] = 1.0
        super().update(group, outcome)

    def aim(self, estimates: Array, counts: Array) -> None:
        """Nothing is aimed."""

    def _least(self, group: NDArray[np.intp], ends: Array) -> Array:
        """Return the log of one group's least factor over an interval of its unknown."""
        ones, zeros = self.ones[group], self.zeros[group]
        best = np.divide(ones, ones + zeros, out=np.full(len(ones), 0.5), where=ones + zeros > 0)
        lam = np.clip(best, ends[:, 0], ends[:, 1])
        mixture = betaln(ones + 0.5, zeros + 0.5) - betaln(0.5, 0.5)
        return np.asarray(mixture - xlogy(ones, lam) - xlog1py(zeros, -lam))


class BetaAudit(AdaptiveAudit):
    """The adaptive audit with mixtures instead of bets, for two groups."""

    name = "beta mixture"

    def _start(self) -> Weighing:
        weighing = super()._start()
        if weighing.fair_set is None:
            raise ValueError("the comparison is for two groups")
        groups = len(self.cells)
        weighing.unfair_set = BetaStaircase(weighing.unfair_set, groups)
        weighing.fair_set = BetaStaircase(weighing.fair_set, groups)
        return weighing
