"""Courts whose truth is known: judges who differ, and cases that fall to them by chance or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.cells import Cells, Decider, GroupCells
from equipoise.history import Past
from equipoise.metrics import gap_given_r
from equipoise.question import Question

__all__ = ["Court", "pooled"]

Array = NDArray[np.float64]


class Court:
    """Two groups and some judges, drawn at random.

    Parameters
    ----------
    steered
        0 if cases fall to judges at random. Else the most lenient judges get easier cases: from
        the strictest to the most lenient the share who would come rises by this much.
    """

    def __init__(self, rng: np.random.Generator, judges: int, steered: float = 0.0) -> None:
        self.judges = judges
        self.share = rng.dirichlet(np.full(judges, 3.0))  # of all cases, per judge
        lenient = rng.uniform(size=judges)
        rank = (np.argsort(np.argsort(lenient)) - (judges - 1) / 2) / max(judges - 1, 1)
        base = rng.uniform(0.4, 0.9, size=(2, 1))
        self.q: Array = np.clip(base + steered * rank, 0.02, 0.98)  # would come, per group, judge
        stricter = np.array([[1.0], [rng.uniform(0.8, 1.0)]])
        self.good: Array = stricter * (0.6 + 0.4 * lenient)  # released of those who would come
        self.bad: Array = self.good * (0.2 + 0.75 * lenient)  # released of the others

    def shares(self) -> Array:
        """Return p1, p0 and the good and the bad among the denied, shape (group, judge, 4)."""
        q, good, bad = np.broadcast_arrays(self.q, self.good, self.bad)
        return np.stack([q * good, (1 - q) * bad, q * (1 - good), (1 - q) * (1 - bad)], axis=-1)

    def gap(self, question: Question) -> float:
        """Return the true gap."""
        p1, p0, fn, tn = np.moveaxis(np.einsum("j,gjk->gk", self.share, self.shares()), -1, 0)
        cells = Cells({g: GroupCells(p1[at], p0[at], fn[at] + tn[at]) for at, g in _GROUPS})
        r = {g: float(fn[at] / (fn[at] + tn[at])) for at, g in _GROUPS}
        return gap_given_r(cells, r, question.metric, question.compare)

    def past(self, rng: np.random.Generator, cases: int) -> Past:
        """Draw past decisions: who decides each case, and what then comes of it."""
        shares, groups, deciders = self.shares(), {}, []
        for at, group in _GROUPS:
            dealt = rng.multinomial(cases // 2, self.share)
            drawn = np.array([rng.multinomial(n, shares[at, j]) for j, n in enumerate(dealt)])
            good, bad, *denied = drawn.sum(axis=0)
            groups[group] = GroupCells(int(good), int(bad), int(sum(denied)))
            deciders.append(
                tuple(
                    Decider(f"judge {j}", int(own[0]), int(own[1]), int(dealt[j]))
                    for j, own in enumerate(drawn)
                    if dealt[j]
                )
            )
        return Past(Cells(groups), deciders=tuple(deciders))


_GROUPS = tuple(enumerate(("A", "B")))


def pooled(past: Past, min_cases: int) -> Past:
    """Return the past with small deciders counted together, as reading with ``min_cases`` does."""
    every = []
    for own in past.deciders:
        few = [decider[1:] for decider in own if decider.cases < min_cases]
        many = [decider for decider in own if decider.cases >= min_cases]
        rest = [Decider("others", *map(sum, zip(*few, strict=True)))] if few else []
        every.append((*many, *rest))
    return Past(past.cells, deciders=tuple(every))
