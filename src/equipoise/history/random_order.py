"""A random order of people, revealed only as far as it is asked for.

Give every person an independent uniform time and sort: the order is uniformly random. The time
of the tau-th person of one kind is then a Beta variable, and given it the other kinds' counts are
independent binomials. For an endless stream the times are Poisson processes: Gamma and Poisson
take their place. So "how many people until the tau-th of this kind" is answered by a handful of
draws, for a history of any length, and later questions refine the same order.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RandomOrder"]

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class _Mark:
    """A person whose place is known: its time, its kind, and everybody counted up to it."""

    time: float
    kind: int
    counts: Counts


class RandomOrder:
    """A uniformly random order of people of several kinds.

    Parameters
    ----------
    rng
        Where the draws come from.
    counts
        How many people of each kind there are.
    shares
        Given instead of ``counts``: each kind's probability in an endless stream.

    Examples
    --------
    >>> order = RandomOrder(np.random.default_rng(0), counts=[3, 7])
    >>> order.until(0, 3).tolist()[0], order.until(0, 4)
    (3, None)
    """

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        counts: list[int] | None = None,
        shares: list[float] | None = None,
    ) -> None:
        self._rng = rng
        self._counts = None if counts is None else np.asarray(counts, dtype=np.int64)
        self._shares = None if shares is None else np.asarray(shares, dtype=np.float64)
        kinds = len(counts if counts is not None else shares or [])
        self._marks = [_Mark(0.0, -1, np.zeros(kinds, dtype=np.int64))]

    def until(self, kind: int, tau: int) -> Counts | None:
        """Return everybody, per kind, up to and including the tau-th of ``kind``.

        None if there are fewer than ``tau`` of them.
        """
        place = bisect_left(self._marks, tau, key=lambda mark: int(mark.counts[kind]))
        if place == len(self._marks):
            mark = self._beyond(kind, tau)
        else:
            mark = self._between(place, kind, tau)
        return None if mark is None else mark.counts

    def _between(self, place: int, kind: int, tau: int) -> _Mark:
        before, after = self._marks[place - 1], self._marks[place]
        if after.kind == kind and after.counts[kind] == tau:
            return after
        inside = after.counts - before.counts
        inside[after.kind] -= 1
        return self._insert(place, before, inside, after.time, kind, tau)

    def _beyond(self, kind: int, tau: int) -> _Mark | None:
        last = self._marks[-1]
        if self._counts is not None:
            if self._counts[kind] < tau:
                return None
            rest = self._counts - last.counts
            return self._insert(len(self._marks), last, rest, 1.0, kind, tau)
        assert self._shares is not None
        if self._shares[kind] == 0.0:
            return None
        wait = self._rng.gamma(tau - last.counts[kind]) / self._shares[kind]
        counts = last.counts + self._rng.poisson(self._shares * wait)
        counts[kind] = tau
        mark = _Mark(last.time + wait, kind, counts)
        self._marks.append(mark)
        return mark

    def _insert(
        self, place: int, before: _Mark, inside: Counts, end: float, kind: int, tau: int
    ) -> _Mark:
        rank = tau - before.counts[kind]
        part = self._rng.beta(rank, inside[kind] - rank + 1)
        counts = before.counts + self._rng.binomial(inside, part)
        counts[kind] = tau
        mark = _Mark(before.time + (end - before.time) * part, kind, counts)
        self._marks.insert(place, mark)
        return mark
