"""How many people of every kind have come when the tau-th of some kinds comes, drawn exactly.

The order is that of :class:`equipoise.history.random_order.RandomOrder`, for many repeats at once.
Give every person a random time. Endless stream: the kinds are independent Poisson processes, and
the tau-th of a kind comes after a Gamma time. Finite sample: independent uniform times, and the
tau-th of n comes at a Beta time. Either way the tau - 1 before it are uniform over the time until
then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    def came(start: Floats, time: Floats) -> Ints:
        return rng.poisson(shares * np.maximum(time - start, 0.0))

    reached = np.ones(stops.shape, dtype=bool)
    return _counts_at(rng, tau, goals, len(shares), stops, reached, came)


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
    enough = totals[:, list(goals)] >= tau
    stops = rng.beta(tau, np.where(enough, totals[:, list(goals)] - tau + 1, 1))
    stops = np.where(enough, stops, 1.0)
    rest = totals.copy()
    rest[:, list(goals)] -= np.where(enough, tau, 0)

    def came(start: Floats, time: Floats) -> Ints:
        nonlocal rest
        left = np.where(start < 1.0, 1.0 - start, 1.0)
        drawn = rng.binomial(rest, np.clip((time - start) / left, 0.0, 1.0))
        rest = rest - drawn
        return drawn

    return _counts_at(rng, tau, goals, totals.shape[1], stops, enough, came), enough


def _counts_at(
    rng: np.random.Generator,
    tau: int,
    goals: Sequence[int],
    kinds: int,
    stops: Floats,
    reached: NDArray[np.bool_],
    came: Callable[[Floats, Floats], Ints],
) -> Ints:
    """Return the counts at each stop; ``came(start, time)`` draws who comes after the stops."""
    repeats = len(stops)
    stop, ahead = np.zeros((repeats, kinds)), np.zeros((repeats, kinds), np.int64)
    stop[:, list(goals)] = np.where(reached, stops, 0.0)
    ahead[:, list(goals)] = np.where(reached, tau, 0)
    before = np.maximum(ahead - 1, 0)  # those who come uniformly before their kind's stop
    seen, later = np.zeros_like(ahead), np.zeros_like(ahead)
    counts = np.zeros((repeats, len(goals), kinds), np.int64)
    places = np.argsort(stops, axis=1)
    times, now = np.take_along_axis(stops, places, axis=1), np.zeros((repeats, 1))
    for place in range(len(goals)):
        time = times[:, place : place + 1]
        waiting, left = time < stop, stop - now
        part = np.where(waiting, (time - now) / np.where(left > 0.0, left, 1.0), 0.0)
        seen += rng.binomial(before - seen, part)
        later += came(np.maximum(now, stop), time)
        counts[:, place] = np.where(waiting, seen, ahead) + later
        now = time
    return np.take_along_axis(counts, np.argsort(places, axis=1)[:, :, None], axis=1)
