"""The label plan: how the labels to come are divided among the groups, and whom that welcomes.

The shares are those that finish the pursued refutation at the least cost
(:mod:`equipoise.evidence.allocation`), by estimates from the log and by what each null cell that
stands still lacks. They stand until the number of told labels has grown by a fifth. A plan may
follow from everything that was told: no bet rests on it.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence.allocation import Allocation, allocate, information, mean_costs
from equipoise.evidence.intervals import success_estimates
from equipoise.evidence.refutation import CoverProgress, Refutation
from equipoise.evidence.request_log import CountPath, RequestLog

PILOT_LABELS = 5  # labels per group before the first plan
REPLAN_GROWTH = 1.2  # labels grow by this factor between two plans
MAX_LEAD = 1.1  # a group may run this far ahead of its share while another is waited for
PLAN_SHRINKAGE = 0.5  # with n labels, information i counts as i * n i / (n i + 0.5)
_CELLS_OF_TWO_GROUPS = 1000  # cells of a piece that a plan looks at …
_CELLS_OF_MORE_GROUPS = 125  # … and with more groups
_MOST_PLAN_CELLS = 8_000  # … but no more than this in all
_ALMOST_NO_LABELS = 1e-9  # in place of 0 labels: one observation exceeds it
_COUNT_TOLERANCE = 1e-9  # by which rounding may keep label equivalents from a whole number


class LabelPlan:
    """Whom to label next.

    Parameters
    ----------
    log
        What was asked and told.
    refutation
        What is still to be refuted.
    prices
        What a request costs, and what a label of 0 costs besides, shape (2, groups).
    reachable
        Which groups have denied people to label.

    Attributes
    ----------
    shares
        Of the labels to come, per group.
    next_plan
        How many labels are told when the shares are next planned anew.
    """

    def __init__(
        self, log: RequestLog, refutation: Refutation, prices: Array, reachable: Flags
    ) -> None:
        self._log = log
        self._refutation = refutation
        self._prices = prices
        self._reachable = reachable
        n_reachable = int(reachable.sum())
        self.shares = reachable / max(n_reachable, 1)
        self.next_plan = PILOT_LABELS * max(n_reachable, 1)
        self._pursues_fair: bool | None = None

    # -- whom to label ----------------------------------------------------------------------------

    def eligible(self) -> Flags:
        """Say of which groups a label is welcome, given the labels requested so far."""
        n_requested = self._log.n_requested
        bound = MAX_LEAD * self.shares * (n_requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (n_requested <= bound))

    def choose(self, arrivals: Array, count: float, rng: np.random.Generator) -> Ints:
        """Return who is observed next, people of the groups arriving at these rates.

        They count as ``count`` labels together; fewer come back, or none, when nobody who is
        welcome arrives. The shares must stand for all of them, and no label be pending.
        """
        # No bet rests on who is asked, so the choice may follow from all that was told (3.6).
        # Plain lists: for a few groups they are faster than arrays, and people come one by one.
        rates = (arrivals * self._reachable).tolist()
        paces = (MAX_LEAD * self.shares).tolist()
        n_requested = self._log.n_requested.tolist()
        weights = self._log.label_equivalents.tolist()
        total = sum(n_requested)
        goal = total + count * (1.0 - _COUNT_TOLERANCE)
        chosen: list[int] = []
        for draw in rng.random(ceil(count / min(weights))).tolist():
            group = _draw_group(_welcome_rates(rates, paces, n_requested, total), draw)
            if group is None:
                break
            chosen.append(group)
            n_requested[group] += weights[group]
            total += weights[group]
            if total >= goal:
                break
        return np.array(chosen, dtype=np.intp)

    # -- plans ------------------------------------------------------------------------------------

    @property
    def labels_until_plan(self) -> float:
        """Labels until the plan changes; if that is due, so few that one observation exceeds it."""
        return max(self.next_plan - float(self._log.n_told.sum()), _ALMOST_NO_LABELS)

    def is_due(self) -> bool:
        """Say whether enough was told since the last plan for another one."""
        return bool(self._log.n_told.sum() >= self.next_plan)

    def renew(self) -> None:
        """Divide the labels to come anew."""
        self.next_plan = ceil(REPLAN_GROWTH * float(self._log.n_told.sum()))
        plan = self._allocation(is_shrunk=True)
        self._pursues_fair = plan.pursues_fair
        shares = np.where(self._reachable, plan.shares, 0.0)
        self.shares = shares / max(shares.sum(), 1e-300)

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation(is_shrunk=False)
        estimates = success_estimates(self._log)
        if plan.speed <= 0.0 or self._refutation.is_undecidable(estimates, estimates):
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        bet_scales = self._log.bet_scales
        share_asked = [1.0 if scale is None else scale.share_asked for scale in bet_scales]
        # Observations are planned, of which some are labels and each counts as so many labels.
        labels = shares * share_asked / self._log.label_equivalents
        return np.asarray(labels / plan.speed / (shares * self._costs(estimates)).sum())

    def _allocation(self, *, is_shrunk: bool) -> Allocation:
        """Return the best shares at the estimates.

        They may be shrunk: little is known from few labels, so their information counts as less.
        """
        look = self._log.current_counts()
        estimates = success_estimates(self._log)
        # The first cover is that of the UNFAIR set, the others are of the FAIR set.
        tasks = [self._task(cover, look, estimates, is_shrunk) for cover in self._refutation.covers]
        costs = self._costs(estimates)
        return allocate(tasks[0], tasks[1:], costs, was_fair=self._pursues_fair)

    def _task(
        self, cover: CoverProgress, look: CountPath, estimates: Array, is_shrunk: bool
    ) -> tuple[Array, Array]:
        """Return what a label of each group tells against cells of a cover, and what they lack."""
        # This settles the cover, so it comes before the cells that stand are read.
        missing = self._refutation.missing_nats(cover, look)
        places = self._planned_places(cover)
        chosen = cover.standing[places]
        cells = cover.cells
        sides = cells.sides_of(chosen)
        is_scored = ~self._log.epochs.takes_labels[-1]
        of_sides = information(
            cells.side_low[chosen], cells.side_high[chosen], estimates[sides], is_scored[sides]
        )
        nats_per_label = cells.by_group(of_sides, 0.0, chosen)
        if is_shrunk:
            gathered = self._log.n_told * nats_per_label
            nats_per_label = nats_per_label * gathered / (gathered + PLAN_SHRINKAGE)
        return nats_per_label, missing[places]

    def _planned_places(self, cover: CoverProgress) -> slice:
        """Return which of the cells that stand a plan looks at: about as many of every part."""
        n_groups = len(self._reachable)
        is_of_unfair_set = cover is self._refutation.covers[0]
        n_pairs = n_groups * (n_groups - 1) if is_of_unfair_set else 1
        per_pair = _CELLS_OF_TWO_GROUPS if n_groups == 2 else _CELLS_OF_MORE_GROUPS
        most_cells = min(per_pair * n_pairs, _MOST_PLAN_CELLS)
        n_standing = len(cover.standing)
        # Cells stand in the order of pieces and intervals, so every n-th of them samples all parts.
        return slice(None, None, max(ceil(n_standing / most_cells), 1))

    def _costs(self, estimates: Array) -> Array:
        """Return what as much information as one label of each group costs on average."""
        costs = mean_costs(self._prices, estimates)
        for group, bet_scale in enumerate(self._log.bet_scales):
            if bet_scale is not None:
                costs[group] = bet_scale.price
        return costs


def _welcome_rates(
    rates: list[float], paces: list[float], n_requested: list[float], total: float
) -> list[float]:
    """Return the arrival rates of groups within their share of the labels; 0 for the others.

    The rule is that of :meth:`LabelPlan.eligible`.
    """
    bounds = [pace * (total + 1.0) + 1.0 for pace in paces]
    return [
        rate if labels <= bound else 0.0
        for rate, labels, bound in zip(rates, n_requested, bounds, strict=True)
    ]


def _draw_group(weights: list[float], draw: float) -> int | None:
    """Return a group drawn with these weights; None if all are 0. ``draw`` is uniform on [0, 1)."""
    point = draw * sum(weights)
    chosen = None
    for group, weight in enumerate(weights):
        if weight > 0.0:
            chosen = group
            point -= weight
            if point < 0.0:
                break
    return chosen
