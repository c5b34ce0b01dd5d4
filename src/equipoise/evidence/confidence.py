"""Where the unknowns lie, at any time: exact intervals that hold for all sample sizes at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, lgamma, log, pi

import numpy as np

from equipoise._arrays import Array
from equipoise.evidence.observation import MAX_LOSS, ScoredBatch

_BET_MOVES = (0.01, 0.03, 0.1, 0.3)  # how far from r bets on observations expect their mean to be
_GRID_CELLS = 1_000
_VALUES_AT_ONCE = 500  # values of Z to work on at a time, for the sake of memory
_HALVINGS = 60  # that bring the end of an interval within the precision of a float


def anytime_interval(
    n_good: float, n_bad: float, n_unknown: float, level: float, scored: Sequence[ScoredBatch] = ()
) -> tuple[float, float]:
    """Return an interval for r that ever misses it with probability at most ``level``.

    The Beta(1/2, 1/2) mixture likelihood over the likelihood at r is a nonnegative martingale with
    mean 1 (Ville's inequality); the interval holds every r at which it is below ``1/level``.
    ``n_unknown`` labels count as 0 for the lower end and as 1 for the upper. Where there are
    observations that bets are sized for (``scored``), the martingale is multiplied by another one:
    a mixture of bets, each the product of ``1 + W (Z - r)``, over sizes W of both signs that are
    fixed before the observations. One whose outcome is unknown is taken at its worst.

    Examples
    --------
    >>> low, high = anytime_interval(20, 80, 0, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.091, 0.352)
    """
    # Labels alone rule out all r beyond two points, which halving finds. With bets on observations
    # there may be gaps between, so a grid takes its place.
    if scored:
        return _mixture_interval(n_good, n_bad, n_unknown, level, scored)
    lower = _interval_end(n_good, n_bad + n_unknown, level, 0.0)
    upper = _interval_end(n_good + n_unknown, n_bad, level, 1.0)
    return lower, upper


def _mixture_interval(
    n_good: float, n_bad: float, n_unknown: float, level: float, scored: Sequence[ScoredBatch]
) -> tuple[float, float]:
    """Return the hull of the cells of a grid in which some r is likely (not ruled out).

    Within a cell the labels' part is least at an end or at their mean, and every bet is monotone.
    An r that the labels' mean may turn out to be, once the unknown ones are known, is likely.
    """
    grid = np.linspace(0.0, 1.0, _GRID_CELLS + 1)
    start = grid[:-1]
    end = grid[1:]
    label_evidence = np.minimum(
        _least_label_evidence(n_good, n_bad + n_unknown, start, end),
        _least_label_evidence(n_good + n_unknown, n_bad, start, end),
    )
    # A bet that the mean lies above r wins least at the largest r of a cell; one that it lies below
    # wins least at the smallest.
    bet_wealth = np.logaddexp(_bet_wealth(scored, end, +1), _bet_wealth(scored, start, -1))
    is_likely = label_evidence + bet_wealth < -log(level)
    if n_unknown > 0:
        n_labels = n_good + n_bad + n_unknown
        # One label more at either end, so that rounding leaves out none of these means.
        is_likely |= (end >= (n_good - 1) / n_labels) & (
            start <= (n_good + n_unknown + 1) / n_labels
        )
    likely = np.flatnonzero(is_likely)
    if not len(likely):  # an error that the level allows for: every r is ruled out
        return 0.0, 1.0
    return float(start[likely[0]]), float(end[likely[-1]])


def _least_label_evidence(n_good: float, n_bad: float, start: Array, end: Array) -> Array:
    """Return the least log of the Beta mixture over the likelihood in each cell."""
    if n_good + n_bad == 0:
        return np.zeros_like(start)
    r = np.clip(n_good / (n_good + n_bad), start, end)
    with np.errstate(divide="ignore"):
        of_good = n_good * np.log(r) if n_good else 0.0  # also where r = 0
        of_bad = n_bad * np.log1p(-r) if n_bad else 0.0
    return np.asarray(_log_mixture(n_good, n_bad) - (of_good + of_bad))


def _bet_wealth(scored: Sequence[ScoredBatch], r: Array, side: int) -> Array:
    """Return the log wealth at each r of a mixture of bets that the mean lies above (below) it."""
    log_wealth = np.full((len(_BET_MOVES), len(r)), -log(2 * len(_BET_MOVES)))
    for batch in scored:
        bet_scale = batch.bet_scale
        # How far Z may lie on the losing side of some r in [0, 1], by the range that was declared.
        largest_loss = (1.0 - min(bet_scale.low, 0.0)) if side > 0 else max(bet_scale.high, 1.0)
        # An outcome that is not known counts at its worst for the bet.
        z = batch.low if side > 0 else batch.high
        z_values, counts = np.unique(z, return_counts=True)
        for row, move in enumerate(_BET_MOVES):
            size = side * min(move / (bet_scale.variance + move * move), MAX_LOSS / largest_loss)
            # The wealth of a bet is a product over observations, which is summed in logarithms.
            for first in range(0, len(z_values), _VALUES_AT_ONCE):
                part = slice(first, first + _VALUES_AT_ONCE)
                factors = 1.0 + size * (z_values[part, None] - r)
                log_wealth[row] += counts[part] @ np.log(factors)
    return np.asarray(np.logaddexp.reduce(log_wealth, axis=0))


def _interval_end(n_good: float, n_bad: float, level: float, outside: float) -> float:
    """Return the point towards 0, or 1, nearest to the mean that is certainly not likely."""
    if n_good + n_bad == 0:
        return outside
    inside = n_good / (n_good + n_bad)
    # the likelihood that an r must fall below to be out
    least_log_likelihood = _log_mixture(n_good, n_bad) + log(level)
    for _ in range(_HALVINGS):
        r = (inside + outside) / 2.0
        log_likelihood = -inf
        if 0.0 < r < 1.0:
            log_likelihood = n_good * log(r) + n_bad * log(1.0 - r)
        if log_likelihood > least_log_likelihood:
            inside = r
        else:
            outside = r
    # The outer of both points, so that rounding never makes the interval too short.
    return outside


def _log_mixture(n_good: float, n_bad: float) -> float:
    """Return the log of the mixture likelihood of labels: B(1/2 + n_good, 1/2 + n_bad) / pi."""
    return lgamma(n_good + 0.5) + lgamma(n_bad + 0.5) - lgamma(n_good + n_bad + 1.0) - log(pi)
