"""How many labels a verdict takes, and at which cost, if each label tells as much as the mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.audits.design import AuditDesign
from equipoise.evidence.allocation import EVEN_SHARE, information, mean_costs, refute_all
from equipoise.evidence.label_plan import PILOT_LABELS
from equipoise.evidence.null_cells import CornerCells, NullCells
from equipoise.evidence.wrong_answers import FEW_GROUPS
from equipoise.history.past import Past
from equipoise.question import Costs, Question, Verdict

SLOWEST_CELLS = 300  # cells of a cover that count for its work, those with the least information
SLOWEST_CELLS_PER_PAIR = 12  # cells of every pair of groups that count as well
# With more than ``FEW_GROUPS`` groups …
MOST_CANDIDATES = 20_000  # … cells are chosen among so many,
MOST_CELLS = 1_200  # … so many count in all,
MOST_BETS = 60_000  # … and so many bets against boxes of all groups,
LEAST_BOXES = 12  # … but at least so many boxes
BOXES_CUT_AT_ONCE = 16  # boxes that are cut, those that fall last first, …
CUT_ROUNDS = 8  # … and how often


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
        self.groups = design.groups
        self.reachable = design.reachable
        self._past_labels = design.label_counts(design.random_accept_counts)
        self._prices = design.prices(costs)
        self._wrong = design.wrong_answers()
        self._design = design
        self._covers: dict[Verdict, list[NullCells]] = {}  # computed when they are needed

    def pilot_cost(self, r: Mapping[str, float]) -> float:
        """Return what the first labels of each group cost, with which every audit begins."""
        label_costs = mean_costs(self._prices, self._rates(r))
        return PILOT_LABELS * float(label_costs[self.reachable].sum())

    def for_verdict(self, verdict: Verdict, r: Mapping[str, float]) -> Work:
        """Return what a verdict takes, FAIR or UNFAIR: all that would make it wrong is refuted."""
        wrong = self._wrong
        is_fair = verdict is Verdict.FAIR
        if verdict not in self._covers:
            covers_to_refute = wrong.unfair_covers() if is_fair else wrong.fair_covers()
            self._covers[verdict] = list(covers_to_refute)
        covers = self._covers[verdict]
        level = wrong.level_fair if is_fair else wrong.level_unfair
        # One cover that is refuted at the bar suffices, so the one that takes least counts.
        bar = float(np.log(len(covers) / level))
        works = [self._refute(cover, self._rates(r), bar) for cover in covers]
        return min(works, key=lambda work: work.cost)

    def past_error_of_gap(self, r: Mapping[str, float]) -> float | None:
        """Return the largest standard error of a gap that counts, by past rows alone.

        None where past rows are no evidence, as in an unlimited past.
        """
        if not self._design.weighs_past_rows:
            return None
        return self._design.row_answers().error_of_gap(self._rates(r))

    def _rates(self, r: Mapping[str, float]) -> Array:
        """Return every group's r, inside (0, 1)."""
        return np.clip([r[group] for group in self.groups], 1e-6, 1.0 - 1e-6)

    def _refute(self, cover: NullCells, r: Array, bar: float) -> Work:
        """Return the work that brings the log evidence against every cell to the bar."""
        nothing = np.zeros(len(r))
        prices = mean_costs(self._prices, r)
        nats_per_label = self._nats_per_label(cover, r)
        cells = _slowest(cover, (nats_per_label / prices[cover.sides]).sum(axis=1))
        if not len(cells):
            return Work(0.0, nothing)
        slowest = cover.select(cells)  # bets of the others are not made
        log_wealth = slowest.log_wealth(self._past_labels, slice(None))
        missing = bar - np.log(np.maximum(slowest.evidence(log_wealth), 1e-300))
        if missing.max() <= 0.0:
            return Work(0.0, nothing)
        nats_by_group = slowest.by_group(nats_per_label[cells], 0.0)
        plan = refute_all(nats_by_group, np.maximum(missing, 0.0), prices)
        shares = self._label_shares(plan.budget / prices)
        needed = _labels_needed(slowest, r, shares, log_wealth, bar)
        # All bets of a cell together may be at the bar although none is alone.
        needed = np.where(missing > 0.0, needed, 0.0)
        if isinstance(slowest, CornerCells):
            needed = self._cut_slowest(slowest, needed, r, shares, bar)
        n_labels = float(needed.max())
        if not np.isfinite(n_labels):
            return Work(np.inf, nothing)
        return Work(n_labels * float(shares @ prices), n_labels * shares)

    def _nats_per_label(self, cover: NullCells, r: Array) -> Array:
        """Return what a label of each side's group tells against every cell, shape (cells, sides).

        It is 0 for groups without people to label.
        """
        sides = cover.sides
        is_scored = np.zeros(sides.shape, bool)
        nats = information(cover.side_low, cover.side_high, r[sides], is_scored)
        return np.asarray(nats * self.reachable[sides])

    def _cut_slowest(
        self, boxes: CornerCells, needed: Array, r: Array, shares: Array, bar: float
    ) -> Array:
        """Return the labels after which every part of a box is refuted, as far as boxes are cut.

        Like an audit, cut those that keep an answer from being given; ``needed`` has the labels
        that refute whole boxes.
        """
        needed = needed.copy()
        is_cut = ~boxes.can_be_cut(np.arange(len(boxes)))
        for _ in range(CUT_ROUNDS):
            slowest = np.argsort(-needed, kind="stable")[:BOXES_CUT_AT_ONCE]
            if is_cut[slowest[0]] or needed[slowest[0]] <= 0.0:
                break
            slowest = slowest[~is_cut[slowest]]
            is_cut[slowest] = True
            of_parts = np.zeros_like(needed)
            for parts, box_of_part in boxes.parts(slowest):
                log_wealth = parts.log_wealth(self._past_labels, slice(None))
                stands = parts.evidence(log_wealth.copy()) < np.exp(bar)
                # A box takes as long as its slowest part that stands.
                of_part = _labels_needed(parts, r, shares, log_wealth, bar)
                np.maximum.at(of_parts, box_of_part, np.where(stands, of_part, 0.0))
            needed[slowest] = of_parts[slowest]
        return needed

    def _label_shares(self, allocated: Array) -> Array:
        """Return each group's share of the labels; like an audit, give some to every group."""
        shares = allocated * self.reachable
        even = EVEN_SHARE * self.reachable
        return np.asarray((1.0 - EVEN_SHARE) * shares / shares.sum() + even / self.reachable.sum())


def _labels_needed(
    cover: NullCells, r: Array, shares: Array, log_wealth: Array, bar: float
) -> Array:
    """Return the labels after which some bet against each cell has grown enough.

    ``log_wealth`` is the log of each bet by now, and ``bar`` that of what it takes.
    """
    # What one label brings on average: outcomes 0, 1 and unknown of each group.
    mean_label = np.stack([shares * (1.0 - r), shares * r, np.zeros(len(r))], axis=1)
    # The log of a bet is linear in the counts, so it grows by this much with every mean label.
    with np.errstate(invalid="ignore"):  # some bets have no stake
        all_cells = slice(None)
        growth = cover.log_wealth(mean_label, all_cells) - cover.log_wealth(
            0.0 * mean_label, all_cells
        )
    return cover.labels_needed(log_wealth, growth, bar)


def _slowest(cover: NullCells, gain: Array) -> Ints:
    """Return the cells about which labels tell least, some of every pair of groups.

    ``gain`` is what labels for one unit of money tell about each cell.
    """
    # The slowest cells decide how long a refutation takes. Some of every pair are kept, because a
    # budget for the slowest ones alone could leave the groups of other pairs without labels.
    has_many_groups = cover.n_groups > FEW_GROUPS
    candidates = np.arange(len(gain))
    if has_many_groups and len(candidates) > MOST_CANDIDATES:
        candidates = np.sort(np.argpartition(gain, MOST_CANDIDATES)[:MOST_CANDIDATES])
    order = candidates[np.argsort(gain[candidates], kind="stable")]
    first, second = cover.groups
    if first.shape[1] > 1:  # boxes of all groups
        most_boxes = max(LEAST_BOXES, MOST_BETS // cover.numbers_per_cell)
        return order[: min(most_boxes, SLOWEST_CELLS) if has_many_groups else SLOWEST_CELLS]
    pair = first[order, 0] * cover.n_groups + second[order, 0]
    # The rank of each cell among those of its pair: its place in the pair's run of a sorted list.
    by_pair = np.argsort(pair, kind="stable")
    run_starts = np.searchsorted(pair[by_pair], pair[by_pair])
    rank_in_pair = np.empty_like(order)
    rank_in_pair[by_pair] = np.arange(len(pair)) - run_starts
    is_slow_of_all = np.arange(len(order)) < SLOWEST_CELLS
    chosen = np.flatnonzero((rank_in_pair < SLOWEST_CELLS_PER_PAIR) | is_slow_of_all)
    if has_many_groups and len(chosen) > MOST_CELLS:  # fewer of every pair
        chosen = chosen[np.argsort(rank_in_pair[chosen], kind="stable")[:MOST_CELLS]]
    return order[chosen]
