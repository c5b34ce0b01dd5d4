"""How many people of every kind have come when the tau-th of some kinds comes, drawn exactly.

The order is that of :class:`equipoise.history.random_order.RandomOrder`, for many repeats at once.
Give every person a random time. Endless stream: the kinds are independent Poisson processes, and
the tau-th of a kind comes after a Gamma time. Finite sample: independent uniform times, and the
tau-th of n comes at a Beta time. Either way the tau - 1 before it are uniform over the time until
then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["endless_counts", "finite_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def endless_counts(
    rng: np.random.Generator, tau: int, goals: Sequence[int], shares: Floats, repeats: int
) -> Ints:
    """Return the counts, shape (repeats, goals, kinds), in an endless stream.

    Parameters
    ----------
    goals
        The kinds whose tau-th person is waited for; their shares must be positive.
    shares
        Each kind's share of the stream.

    Examples
    --------
    >>> counts = endless_counts(np.random.default_rng(0), 100, [1], np.array([0.9, 0.1]), 3)
    >>> counts[:, 0, 1].tolist()
    [100, 100, 100]
    """
    stops = rng.gamma(tau, size=(repeats, len(goals))) / shares[list(goals)]
    times, counts = np.sort(stops, axis=1), np.zeros((repeats, len(goals), len(shares)), np.int64)
    for kind, share in enumerate(shares.tolist()):
        stop = stops[:, goals.index(kind)] if kind in goals else np.zeros(repeats)
        count = _Count(rng, stop, tau if kind in goals else 0)
        for place, time in enumerate(times.T):
            later = rng.poisson(share * np.maximum(time - np.maximum(count.time, stop), 0.0))
            counts[:, place, kind] = count.advance(time, later)
    return _unsort(counts, stops)


def finite_counts(
    rng: np.random.Generator, tau: int, goals: Sequence[int], totals: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the counts in a finite sample, and where there are at least tau of a goal.

    Parameters
    ----------
    totals
        How many people of each kind there are, shape (repeats, kinds).

    Examples
    --------
    >>> totals = np.array([[50, 7], [50, 30]])
    >>> counts, enough = finite_counts(np.random.default_rng(0), 20, [1], totals)
    >>> enough[:, 0].tolist(), int(counts[1, 0, 1])
    ([False, True], 20)
    """
    repeats, kinds = totals.shape
    enough = totals[:, list(goals)] >= tau
    stops = rng.beta(tau, np.where(enough, totals[:, list(goals)] - tau + 1, 1))
    stops = np.where(enough, stops, 1.0)
    times, counts = np.sort(stops, axis=1), np.zeros((repeats, len(goals), kinds), np.int64)
    for kind in range(kinds):
        if kind in goals:
            reached = enough[:, goals.index(kind)]
            stop, ahead = np.where(reached, stops[:, goals.index(kind)], 0.0), reached * tau
        else:
            stop, ahead = np.zeros(repeats), np.zeros(repeats, np.int64)
        count = _Count(rng, stop, ahead)
        rest = totals[:, kind] - ahead
        for place, time in enumerate(times.T):
            start = np.maximum(count.time, stop)
            part = np.where(start < 1.0, (time - start) / np.where(start < 1.0, 1.0 - start, 1), 1)
            later = rng.binomial(rest, np.clip(part, 0.0, 1.0))
            rest = rest - later
            counts[:, place, kind] = count.advance(time, later)
    return _unsort(counts, stops), enough


class _Count:
    """One kind's count as time goes on: ``ahead`` people until ``stop``, the last of them at it."""

    def __init__(self, rng: np.random.Generator, stop: Floats, ahead: int | Ints) -> None:
        self._rng = rng
        self._stop = stop
        self._before = np.maximum(np.broadcast_to(ahead, stop.shape) - 1, 0)
        self._ahead = np.broadcast_to(ahead, stop.shape)
        self._seen = np.zeros(stop.shape, np.int64)
        self._later = np.zeros(stop.shape, np.int64)
        self.time = np.zeros(stop.shape)

    def advance(self, time: Floats, later: Ints) -> Ints:
        """Move on to ``time``; ``later`` people came after the stop. Return the count."""
        left = self._stop - self.time
        before_stop = time < self._stop
        part = np.where(before_stop, (time - self.time) / np.where(left > 0.0, left, 1.0), 1.0)
        self._seen += self._rng.binomial(self._before - self._seen, np.clip(part, 0.0, 1.0))
        self._later += later
        self.time = time
        return np.where(before_stop, self._seen, self._ahead) + self._later


def _unsort(counts: Ints, stops: Floats) -> Ints:
    places = np.argsort(np.argsort(stops, axis=1), axis=1)
    return np.take_along_axis(counts, places[:, :, None], axis=1)
