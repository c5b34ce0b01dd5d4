"""Where the unknowns lie, at any time: exact intervals that hold for all sample sizes at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, lgamma, log, pi

import numpy as np

from equipoise._arrays import Array
from equipoise.evidence.observation import MAX_LOSS, ScoredBatch

_BET_MOVES = (0.01, 0.03, 0.1, 0.3)  # how far from r bets on observations expect their mean to be
_GRID_CELLS = 1_000


def anytime_interval(
    ones: float, zeros: float, unknown: float, level: float, scored: Sequence[ScoredBatch] = ()
) -> tuple[float, float]:
    """Return an interval for r that ever misses it with probability at most ``level``.

    The Beta(1/2, 1/2) mixture likelihood over the likelihood at r is a nonnegative martingale with
    mean 1 (Ville's inequality); the interval holds every r at which it is below ``1/level``.
    ``unknown`` labels count as 0 for the lower end and as 1 for the upper. Where there are
    observations that bets are sized for (``scored``), the martingale is multiplied by another one:
    a mixture of bets, each the product of ``1 + W (Z - r)``, over sizes W of both signs that are
    fixed before the observations. One whose outcome is unknown is taken at its worst.

    Examples
    --------
    >>> low, high = anytime_interval(20, 80, 0, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.091, 0.352)
    """
    if scored:
        return _mixture_interval(ones, zeros, unknown, level, scored)
    return _end(ones, zeros + unknown, level, 0.0), _end(ones + unknown, zeros, level, 1.0)


def _mixture_interval(
    ones: float, zeros: float, unknown: float, level: float, scored: Sequence[ScoredBatch]
) -> tuple[float, float]:
    """Return the hull of the cells of a grid in which some r is likely (not ruled out).

    Within a cell the labels' part is least at an end or at their mean, and every bet is monotone.
    An r that the labels' mean may turn out to be, once the unknown ones are known, is likely.
    """
    grid = np.linspace(0.0, 1.0, _GRID_CELLS + 1)
    start, end = grid[:-1], grid[1:]
    least = np.minimum(
        _labels(ones, zeros + unknown, start, end), _labels(ones + unknown, zeros, start, end)
    )
    wealth = np.logaddexp(_bets(scored, end, +1), _bets(scored, start, -1))
    labels = max(ones + zeros + unknown, 1.0)
    amid = (unknown > 0) & (end >= (ones - 1) / labels) & (start <= (ones + unknown + 1) / labels)
    likely = np.flatnonzero(amid | (least + wealth < -log(level)))
    if not len(likely):  # an error that the level allows for: every r is ruled out
        return 0.0, 1.0
    return float(start[likely[0]]), float(end[likely[-1]])


def _labels(ones: float, zeros: float, start: Array, end: Array) -> Array:
    """Return the least log of the Beta mixture over the likelihood in each cell."""
    if ones + zeros == 0:
        return np.zeros_like(start)
    r = np.clip(ones / (ones + zeros), start, end)
    with np.errstate(divide="ignore"):
        likelihood = (ones * np.log(r) if ones else 0.0) + (zeros * np.log1p(-r) if zeros else 0.0)
    return np.asarray(_log_mixture(ones, zeros) - likelihood)


def _bets(scored: Sequence[ScoredBatch], r: Array, side: int) -> Array:
    """Return the log wealth at each r of a mixture of bets that the mean lies above (below) it."""
    logs = np.full((len(_BET_MOVES), len(r)), -log(2 * len(_BET_MOVES)))
    for part in scored:
        s = part.bet_scale
        worst = (1.0 - min(s.low, 0.0)) if side > 0 else max(s.high, 1.0)
        z = part.low if side > 0 else part.high
        values, counts = np.unique(z, return_counts=True)
        for row, move in enumerate(_BET_MOVES):
            size = side * min(move / (s.variance + move * move), MAX_LOSS / worst)
            for few in range(0, len(values), 500):
                factors = 1.0 + size * (values[few : few + 500, None] - r)
                logs[row] += counts[few : few + 500] @ np.log(factors)
    return np.asarray(np.logaddexp.reduce(logs, axis=0))


def _end(ones: float, zeros: float, level: float, outside: float) -> float:
    """Return the point towards 0, or 1, nearest to the mean that is certainly not likely."""
    if ones + zeros == 0:
        return outside
    inside = ones / (ones + zeros)
    # the likelihood that an r must fall below to be out
    bar = _log_mixture(ones, zeros) + log(level)
    for _ in range(60):
        r = (inside + outside) / 2.0
        likelihood = -inf
        if 0.0 < r < 1.0:
            likelihood = (ones and ones * log(r)) + (zeros and zeros * log(1.0 - r))
        inside, outside = (r, outside) if likelihood > bar else (inside, r)
    return outside


def _log_mixture(ones: float, zeros: float) -> float:
    """Return the log of the mixture likelihood of labels: B(1/2 + ones, 1/2 + zeros) / pi."""
    return lgamma(ones + 0.5) + lgamma(zeros + 0.5) - lgamma(ones + zeros + 1.0) - log(pi)
