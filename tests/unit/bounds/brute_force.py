"""C* the slow way: scan one group's unknown, find the other's by bisection, try every budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equipoise.metrics import METRICS
from equipoise.question import Costs, Question
from equipoise.rates import Rate
from equipoise.worlds import CellWorld

__all__ = ["brute_force", "deltas", "kl"]

Array = NDArray[np.float64]
Values = Callable[[Array], Array]
ENDS = np.array([0.0, 1.0])


def rate_at(rate: Rate, shares: tuple[float, float, float], lam: Array) -> Array:
    """The rate by its definition as a fraction of cells."""
    p1, p0, s = shares
    part, whole = rate.fraction(p1, p0, s * lam, s * (1 - lam))
    return np.asarray(np.broadcast_to(np.divide(part, whole), lam.shape), dtype=float)


def deltas(world: CellWorld, metric: str, lam: Array, compare: str = "difference") -> Array:
    """The gap at rows of unknowns."""
    worst = np.zeros(len(lam))
    for rate in METRICS[metric].rates:
        by_group = [
            rate_at(rate, cells.shares, lam[:, i]) for i, cells in enumerate(world.cells.values())
        ]
        low, high = np.min(by_group, axis=0), np.max(by_group, axis=0)
        gap = high - low
        if compare == "ratio":
            gap = np.where(high > 0, gap / np.where(high > 0, high, 1), 0)
        worst = np.maximum(worst, gap)
    return worst


def kl(r: float, lam: Array) -> Array:
    lam = np.clip(lam, 1e-300, 1 - 1e-16)
    one = r * np.log(r / lam) if r > 0 else 0.0
    zero = (1 - r) * np.log((1 - r) / (1 - lam)) if r < 1 else 0.0
    return np.asarray(one + zero)


def brute_force(world: CellWorld, question: Question, costs: Costs) -> float:
    """C* of a two-group world outside the gap zone, for a metric that needs labels."""
    (name_a, cells_a), (name_b, cells_b) = world.cells.items()
    r_a, r_b = world.r[name_a], world.r[name_b]
    lam_b = np.unique(np.concatenate([np.linspace(0, 1, 6001), [r_b]]))
    near_b = kl(r_b, lam_b)
    rates = [
        (
            bool(rate_at(rate, cells_a.shares, ENDS)[1] < rate_at(rate, cells_a.shares, ENDS)[0]),
            lambda lam, rate=rate: rate_at(rate, cells_a.shares, lam),
            rate_at(rate, cells_b.shares, lam_b),
        )
        for rate in METRICS[question.metric].rates
    ]
    if world.gap(question.metric, question.compare) <= question.gamma:
        gap, pieces = question.gamma + question.epsilon, []
        for falls, of_a, at_b in rates:
            # a above b, and a below b: at the near end of each range of lam_a
            up, down = _above(question, at_b, gap), _below(question, at_b, gap)
            pieces += [_towards(of_a, up, falls, r_a, above=True)]
            pieces += [_towards(of_a, down, falls, r_a, above=False)]
        rows = [(kl(r_a, lam)[ok], near_b[ok]) for lam, ok in pieces]
    else:
        low, high = np.zeros_like(lam_b), np.ones_like(lam_b)
        for falls, of_a, at_b in rates:
            gamma = question.gamma
            up, down = _above(question, at_b, gamma), _below(question, at_b, gamma)
            first = _cross(of_a, up if falls else down, falls)
            last = _cross(of_a, down if falls else up, falls)
            low, high = np.maximum(low, first), np.minimum(high, last)
        ok = (low <= high) & (low <= 1) & (high >= 0)
        nearest = np.clip(r_a, np.clip(low, 0, 1), np.clip(high, 0, 1))
        rows = [(kl(r_a, nearest)[ok], near_b[ok])]
    k_a, k_b = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
    if len(k_a) == 0:
        return 0.0
    c_a, c_b = costs.of(name_a).expected(r_a), costs.of(name_b).expected(r_b)
    shares = np.linspace(0, 1, 1001)
    speed = max(float((x * k_a / c_a + (1 - x) * k_b / c_b).min()) for x in shares)
    d = question.delta
    return float(kl(d, np.array([1 - d]))[0]) / speed


def _above(question: Question, rate: Array, gap: float) -> Array:
    return rate + gap if question.compare == "difference" else rate / (1 - gap)


def _below(question: Question, rate: Array, gap: float) -> Array:
    return rate - gap if question.compare == "difference" else rate * (1 - gap)


def _cross(of_a: Values, value: Array, falls: bool) -> Array:
    """The lam where the rate passes the value; -1 if it is past it at 0, 2 if never."""
    low, high = np.zeros_like(value), np.ones_like(value)
    for _ in range(60):
        middle = (low + high) / 2
        past = of_a(middle) <= value if falls else of_a(middle) >= value
        low, high = np.where(past, low, middle), np.where(past, middle, high)
    at_zero, at_one = of_a(np.zeros_like(value)), of_a(np.ones_like(value))
    past_at_zero = at_zero <= value if falls else at_zero >= value
    never = at_one > value if falls else at_one < value
    return np.where(past_at_zero, -1.0, np.where(never, 2.0, high))


def _towards(
    of_a: Values, value: Array, falls: bool, r: float, *, above: bool
) -> tuple[Array, NDArray[np.bool_]]:
    """The lam nearest to r whose rate is at least (above) or at most the value, if any is."""
    cross = _cross(of_a, value, falls)
    if above == falls:  # reached on the left
        return np.minimum(r, np.clip(cross, 0, 1)), cross >= 0
    return np.maximum(r, np.clip(cross, 0, 1)), cross <= 1
