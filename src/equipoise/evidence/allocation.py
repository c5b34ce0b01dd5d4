"""Whom to label next: shares of labels that finish the pursued refutation at the least cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.staircase import Standing

__all__ = ["Allocation", "allocate"]

Array = NDArray[np.float64]

_FLOOR = 0.25  # of the labels, shared by all groups whatever the plan
_STICKY = 1.15  # another answer must promise this much more speed to be pursued


@dataclass(frozen=True)
class Allocation:
    """Planned share of labels per group, the verdict they pursue, and its speed.

    ``speed`` is the share of the remaining work that one unit of cost does at least, at the
    estimates.
    """

    shares: Array
    pursues_fair: bool
    speed: float


def allocate(
    unfair: Standing, fair: Standing, costs: Array, *, was_fair: bool | None
) -> Allocation:
    """Return the shares for the verdict that is reached soonest at the current estimates.

    FAIR needs every cell of the UNFAIR set refuted, UNFAIR all cells of one pair of the FAIR set.

    Parameters
    ----------
    unfair, fair
        What is left of the UNFAIR and of the FAIR set.
    costs
        Expected cost of a label per group.
    was_fair
        The verdict pursued so far, None at first.
    """
    k = len(costs)
    to_fair, fair_speed = _refute_all(unfair, costs)
    to_unfair, unfair_speed = _refute_one_pair(fair, costs)
    bias = 1.0 if was_fair is None else (_STICKY if was_fair else 1.0 / _STICKY)
    pursues_fair = fair_speed * bias >= unfair_speed
    budget = to_fair if pursues_fair else to_unfair
    shares = budget / costs
    shares = shares / shares.sum()
    shares = (1.0 - _FLOOR) * shares + _FLOOR / k
    speed = fair_speed if pursues_fair else unfair_speed
    return Allocation(shares, bool(pursues_fair), (1.0 - _FLOOR) * speed)


def _refute_all(cells: Standing, costs: Array) -> tuple[Array, float]:
    """Maximise the slowest cell's speed over budget shares: concave, by soft-min ascent."""
    k = len(costs)
    if cells.missing.size == 0:
        return np.full(k, 1.0 / k), np.inf
    gain_a, gain_b = _gains(cells, costs)
    if k == 2:
        gains = np.zeros((len(gain_a), 2))
        np.put_along_axis(gains, cells.a[:, None], gain_a[:, None], axis=1)
        np.put_along_axis(gains, cells.b[:, None], gain_b[:, None], axis=1)
        share, speed = _two_way(gains[:, 0], gains[:, 1])
        return np.array([share, 1.0 - share]), speed
    budget = np.full(k, 1.0 / k)
    best, best_speed = budget, -1.0
    for step in range(80):
        speeds = budget[cells.a] * gain_a + budget[cells.b] * gain_b
        slowest = float(speeds.min())
        if slowest > best_speed:
            best, best_speed = budget, slowest
        scale = max(slowest, 1e-12)
        weight = np.exp(-np.minimum((speeds - slowest) / scale * (4.0 + step), 500.0))
        weight /= weight.sum()
        slope = np.bincount(cells.a, weight * gain_a, k) + np.bincount(cells.b, weight * gain_b, k)
        budget = budget * np.exp(1.5 / np.sqrt(1.0 + step) * slope / max(slope.max(), 1e-300))
        budget /= budget.sum()
    return best, best_speed


def _refute_one_pair(cells: Standing, costs: Array) -> tuple[Array, float]:
    """Return the budget of the pair whose cells fall soonest, and its speed."""
    k = len(costs)
    best, best_speed = np.full(k, 1.0 / k), -1.0
    if cells.missing.size == 0:
        return best, np.inf
    gain_a, gain_b = _gains(cells, costs)
    order = np.argsort(cells.pair, kind="stable")
    pairs, first = np.unique(cells.pair[order], return_index=True)
    for _, rows in zip(pairs, np.split(order, first[1:]), strict=True):
        share, speed = _two_way(gain_a[rows], gain_b[rows])
        if speed > best_speed:
            best = np.zeros(k)
            best[cells.a[rows[0]]], best[cells.b[rows[0]]] = share, 1.0 - share
            best_speed = speed
    return best, best_speed


def _gains(cells: Standing, costs: Array) -> tuple[Array, Array]:
    """Return, per cell, the share of its missing evidence that a unit of cost brings."""
    missing = np.maximum(cells.missing, 0.1)
    return cells.info_a / costs[cells.a] / missing, cells.info_b / costs[cells.b] / missing


def _two_way(gain_a: Array, gain_b: Array) -> tuple[float, float]:
    """Maximise ``min(x gain_a + (1-x) gain_b)`` over x in [0, 1], to a hundredth."""
    x = np.linspace(0.0, 1.0, 41)
    for _ in range(2):
        speed = (gain_a[:, None] * x + gain_b[:, None] * (1.0 - x)).min(axis=0)
        best = int(speed.argmax())
        low, high = x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)]
        result = float(x[best]), float(speed[best])
        x = np.linspace(low, high, 11)
    return result
