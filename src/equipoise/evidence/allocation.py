"""Whom to label next: shares of labels that finish the pursued refutation at the least cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise._arrays import Array, Flags

EVEN_SHARE = 0.25  # of the labels, shared by all groups whatever the plan
SWITCH_SPEEDUP = 1.15  # another answer must promise this much more speed to be pursued
_ASCENT_STEPS = 40  # of the ascent: within half a percent of the best speed on average
_SHARPENING = 2.0  # by how much each step makes its soft minimum sharper


@dataclass(frozen=True)
class Allocation:
    """Planned share of labels per group, the verdict they pursue, and its speed.

    ``speed`` is the share of the remaining work that one unit of cost does at least, at the
    estimates.
    """

    shares: Array
    pursues_fair: bool
    speed: float


class BudgetPlan(NamedTuple):
    """Each group's share of the money, and the share of the work that a unit of money then does."""

    budget: Array
    speed: float


def allocate(
    unfair: tuple[Array, Array],
    fair: Sequence[tuple[Array, Array]],
    costs: Array,
    *,
    was_fair: bool | None,
) -> Allocation:
    """Return the shares for the verdict that is reached soonest at the current estimates.

    FAIR needs every cell of the UNFAIR set refuted, UNFAIR all cells of one cover of the FAIR set.

    Parameters
    ----------
    unfair, fair
        What stands between the audit and a refutation of the UNFAIR set, and of each cover of the
        FAIR set: the information that a label of each group carries against cells (nats, at the
        current estimates), shape (cells, groups), and the nats to go.
    costs
        Expected cost of a label per group.
    was_fair
        The verdict pursued so far, None at first.
    """
    to_fair = refute_all(*unfair, costs)
    # One refuted cover of the FAIR set is enough, so the one that falls soonest is pursued.
    to_unfair = max((refute_all(*cover, costs) for cover in fair), key=lambda plan: plan.speed)
    bias = 1.0  # of the verdict pursued so far, so that plans do not go to and fro
    if was_fair is not None:
        bias = SWITCH_SPEEDUP if was_fair else 1.0 / SWITCH_SPEEDUP
    pursues_fair = to_fair.speed * bias >= to_unfair.speed
    plan = to_fair if pursues_fair else to_unfair
    shares = plan.budget / costs
    # Estimates of a group without labels would stay wrong for ever, so each has some.
    shares = (1.0 - EVEN_SHARE) * (shares / shares.sum()) + EVEN_SHARE / len(costs)
    return Allocation(shares, bool(pursues_fair), (1.0 - EVEN_SHARE) * plan.speed)


def information(low: Array, high: Array, estimates: Array, is_scored: Flags) -> Array:
    """Return what a label of each group tells against boxes, in nats, shape (cells, groups).

    Observations that bets are sized for (``is_scored``) tell what a mean tells: unlike a label's,
    their variance does not vanish where r would be near 0 or 1.
    """
    # The best bet against a box grows by the divergence of the estimate from its nearest point.
    nearest = np.clip(np.clip(estimates, low, high), 1e-12, 1.0 - 1e-12)
    label_nats = estimates * np.log(estimates / nearest) + (1.0 - estimates) * np.log(
        (1.0 - estimates) / (1.0 - nearest)
    )
    if not is_scored.any():
        return np.asarray(label_nats)
    mean_nats = (estimates - nearest) ** 2 / (2.0 * estimates * (1.0 - estimates))
    return np.where(is_scored, np.minimum(mean_nats, label_nats), label_nats)


def mean_costs(prices: Array, r: Array) -> Array:
    """Return what a label of each group costs on average; labels count where none costs.

    ``prices`` has what a request and what an outcome of 0 costs, shape (2, groups).
    """
    costs = prices[0] + prices[1] * (1.0 - r)
    return np.maximum(costs, 1e-9) if costs.max() > 0.0 else np.ones_like(costs)


def refute_all(nats_per_label: Array, missing_nats: Array, costs: Array) -> BudgetPlan:
    """Maximise the slowest cell's speed over budget shares: concave, by soft-min ascent."""
    k = len(costs)
    budget = np.full(k, 1.0 / k)
    if missing_nats.size == 0:
        return BudgetPlan(budget, np.inf)
    # per cell, the share of its missing evidence that a unit of cost brings
    progress = nats_per_label / costs / np.maximum(missing_nats, 0.1)[:, None]
    if k == 2:
        return _divide_between_two(progress)
    best = budget
    best_speed = -1.0
    for step in range(_ASCENT_STEPS):
        speeds = progress @ budget
        slowest = float(speeds.min())
        if slowest > best_speed:
            best = budget
            best_speed = slowest
        # The slowest cells weigh most, and the more so the later the step: the soft minimum nears
        # the true one. The budget moves towards groups that speed these cells up.
        lead = speeds / max(slowest, 1e-12) - 1.0
        weight = np.exp(-np.minimum(lead * (_SHARPENING * (1.0 + step)), 500.0))
        slope = weight @ progress
        budget = budget * np.exp(1.5 / np.sqrt(1.0 + step) * slope / max(slope.max(), 1e-300))
        budget /= budget.sum()
    return BudgetPlan(best, best_speed)


def _divide_between_two(progress: Array) -> BudgetPlan:
    """Maximise ``min(x gain_a + (1-x) gain_b)`` over x in [0, 1], to a hundredth."""
    grid = np.linspace(0.0, 1.0, 41)
    for _ in range(2):
        speed = (progress @ np.stack([grid, 1.0 - grid])).min(axis=0)
        place = int(speed.argmax())
        best = np.array([grid[place], 1.0 - grid[place]])
        best_speed = float(speed[place])
        # The second round divides the two steps around the best share.
        low = grid[max(place - 1, 0)]
        high = grid[min(place + 1, len(grid) - 1)]
        grid = np.linspace(low, high, 11)
    return BudgetPlan(best, best_speed)
