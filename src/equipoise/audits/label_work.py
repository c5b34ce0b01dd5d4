"""How many labels a verdict takes, and at which cost, if each label tells as much as the mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.audits.design import AuditDesign
from equipoise.evidence import null_cells
from equipoise.evidence.allocation import EVEN_SHARE, information, mean_costs, refute_all
from equipoise.evidence.evidence import PILOT_LABELS
from equipoise.evidence.null_cells import NullCells, fair_covers, unfair_covers
from equipoise.history.past import Past
from equipoise.question import Costs, Question, Verdict

SLOWEST_CELLS = 300  # cells of a cover that count for its work, those with the least information
SLOWEST_CELLS_PER_PAIR = 12  # … and so many of every pair of groups


@dataclass(frozen=True)
class Work:
    """What a verdict costs if every label tells what it tells on average, and labels per group."""

    cost: float
    labels: Array


class LabelWork:
    """The labels that a verdict takes, at the best allocation, if each tells as much as the mean.

    Both wrong answers are cut into the adaptive audit's own null cells, from the bands of the past.
    Bets against a cell are fixed, so for a given r it is known how fast each grows, and hence what
    it costs to refute the slowest cell: the work. The forecasts of a plan are multiples of the
    work, and Exp-Audit compares it with the price of features.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> work = LabelWork(world.past(), Question(epsilon=0.4), Costs())
    >>> fair = work.for_verdict(Verdict.FAIR, world.r)
    >>> unfair = work.for_verdict(Verdict.UNFAIR, world.r)
    >>> fair.cost < unfair.cost
    True
    """

    def __init__(self, past: Past, question: Question, costs: Costs) -> None:
        design = AuditDesign(past, question)
        self.groups, self.reachable = design.groups, design.reachable
        self._start, self._prices = (
            design.label_counts(design.random_accept_counts),
            design.prices(costs),
        )
        wrong = design.wrong_answers()
        fair, unfair = (unfair_covers, wrong.level_fair), (fair_covers, wrong.level_unfair)
        self._to_refute = {Verdict.FAIR: fair, Verdict.UNFAIR: unfair}
        self._covers = cache(lambda make: make(wrong))

    def pilot_cost(self, r: Mapping[str, float]) -> float:
        """Return what the first labels of each group cost, with which every audit begins."""
        return PILOT_LABELS * float(mean_costs(self._prices, self._rates(r))[self.reachable].sum())

    def for_verdict(self, verdict: Verdict, r: Mapping[str, float]) -> Work:
        """Return what a verdict takes, FAIR or UNFAIR."""
        make, level = self._to_refute[verdict]
        covers = self._covers(make)
        bar = float(np.log(len(covers) / level))
        every = [self._refute(cover, self._rates(r), bar) for cover in covers]
        return min(every, key=lambda one: one.cost)

    def _rates(self, r: Mapping[str, float]) -> Array:
        """Return every group's r, inside (0, 1)."""
        return np.clip([r[group] for group in self.groups], 1e-6, 1.0 - 1e-6)

    def _refute(self, cover: NullCells, r: Array, bar: float) -> Work:
        prices, nothing = mean_costs(self._prices, r), np.zeros(len(r))
        info = information(cover.low, cover.high, r, nothing > 0.0) * self.reachable
        cells = _slowest(cover, info @ (1.0 / prices))
        if not len(cells):
            return Work(0.0, nothing)
        start = cover.log_wealth(self._start, cells)
        missing = bar - np.log(np.maximum(null_cells.evidence(start), 1e-300))
        if missing.max() <= 0.0:
            return Work(0.0, nothing)
        budget, _ = refute_all(info[cells], np.maximum(missing, 0.0), prices)
        shares, even = budget / prices * self.reachable, EVEN_SHARE * self.reachable
        shares = (1.0 - EVEN_SHARE) * shares / shares.sum() + even / self.reachable.sum()
        label = np.stack([shares * (1.0 - r), shares * r, nothing], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # some bets have no stake
            growth = cover.log_wealth(label, cells) - cover.log_stake[cells]
            needed = np.where(growth > 1e-12, np.maximum(bar - start, 0.0) / growth, np.inf)
        number = float(np.where(missing > 0.0, needed.min(axis=1), 0.0).max())
        if not np.isfinite(number):
            return Work(np.inf, nothing)
        return Work(number * float(shares @ prices), number * shares)


def _slowest(cover: NullCells, gain: Array) -> Ints:
    """Return the cells about which labels tell least, some of every pair of groups."""
    order = np.argsort(gain, kind="stable")
    a, b = cover.groups
    if a.shape[1] > 1:  # boxes of all groups
        return order[:SLOWEST_CELLS]
    pair = (a * cover.low.shape[1] + b)[order, 0]
    by_pair = np.argsort(pair, kind="stable")
    place = np.empty_like(order)
    place[by_pair] = np.arange(len(pair)) - np.searchsorted(pair[by_pair], pair[by_pair])
    return order[(place < SLOWEST_CELLS_PER_PAIR) | (np.arange(len(order)) < SLOWEST_CELLS)]
