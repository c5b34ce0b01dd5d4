"""How many past people are read until the tau-th success: Past(tau, y, a) of the paper.

Rows are independent draws, so their order carries no information, and how many are read until then
is drawn from the counts: the same law as reading rows in a random order, on every engine.
Give every person a random time. Unlimited past: the kinds are independent Poisson processes, and
the tau-th of a kind comes after a Gamma time. Finite past: independent uniform times, and the
tau-th of n comes at a Beta time. Either way the tau - 1 before it come uniformly until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array

Ints = NDArray[np.int64]
Random = np.random.Generator | np.random.RandomState


def draw_rows_until(
    rng: Random,
    tau: int,
    outcomes: Sequence[int],
    blocks: Sequence[Sequence[int]],
    kinds: Array | Ints,
    unlimited: int | None = None,
) -> Array:
    """Draw how many past people are read until tau approved ones of each outcome and group came.

    ``blocks`` are groups, by index, whose people are read together. ``kinds`` are the counts of
    approved with outcome 0, approved with outcome 1 and other people, shape (repeats, groups, 3);
    for so many ``unlimited`` pasts their shares, shape (1, groups, 3). The answer has the shape
    (repeats, outcomes, groups), NaN where a past runs dry.
    """
    repeats = len(kinds) if unlimited is None else unlimited
    rows = np.full((repeats, len(outcomes), kinds.shape[1]), np.nan)
    for block in blocks:
        goals = [
            (i, a, 3 * place + y)
            for i, y in enumerate(outcomes)
            for place, a in enumerate(block)
            if kinds[:, a, y].any()
        ]
        own = kinds[:, list(block)].reshape(len(kinds), -1)
        counts = counts_until(rng, tau, [kind for *_, kind in goals], own, unlimited).sum(axis=2)
        for at, (i, a, _) in enumerate(goals):
            rows[:, i, a] = np.where(counts[:, at] > 0, counts[:, at], np.nan)
    return rows


def counts_until(
    rng: Random, tau: int, goals: Sequence[int], kinds: Array | Ints, unlimited: int | None = None
) -> Ints:
    """Draw how many people of each kind came when the tau-th of a goal's kind did.

    Parameters
    ----------
    goals
        The kinds whose tau-th person is waited for.
    kinds
        How many people of each kind there are, shape (repeats, kinds); for so many ``unlimited``
        pasts or streams each kind's share, those of goals positive.

    Returns
    -------
    Counts of shape (repeats, goals, kinds), all 0 where there are fewer than tau of a goal's kind.
    """
    wanted, size = kinds[..., list(goals)], kinds.shape[-1]
    if unlimited is None:
        reached = wanted >= tau
        times = rng.beta(tau, np.where(reached, wanted - tau + 1, 1))
        times = np.where(reached, times, 1.0)
    else:
        times = rng.gamma(tau, size=(unlimited, len(goals))) / wanted
        reached = np.ones(times.shape, dtype=bool)
    stop, ahead = np.zeros((len(times), size)), np.zeros((len(times), size), np.int64)
    stop[:, list(goals)] = np.where(reached, times, 0.0)
    ahead[:, list(goals)] = np.where(reached, tau, 0)
    before = np.maximum(ahead - 1, 0)  # those who come uniformly before their kind's stop
    rest: NDArray[Any] = kinds  # those who come after it
    if unlimited is None:
        rest = kinds.astype(np.int64) - ahead
    seen, later = np.zeros_like(ahead), np.zeros_like(ahead)
    counts = np.zeros((*times.shape, size), np.int64)
    places, now = np.argsort(times, axis=1), np.zeros((len(times), 1))
    for place in range(len(goals)):
        time = np.take_along_axis(times, places[:, place : place + 1], axis=1)
        waiting, left = time < stop, stop - now
        part = np.where(waiting, (time - now) / np.where(left > 0.0, left, 1.0), 0.0)
        seen += rng.binomial(before - seen, part)
        start = np.maximum(now, stop)
        if unlimited is None:
            part = (time - start) / np.where(start < 1.0, 1.0 - start, 1.0)
            came = rng.binomial(rest, np.clip(part, 0.0, 1.0))
            rest = rest - came
        else:
            came = rng.poisson(rest * np.maximum(time - start, 0.0))
        later += came
        counts[:, place] = np.where(waiting, seen, ahead) + later
        now = time
    counts = np.take_along_axis(counts, np.argsort(places, axis=1)[:, :, None], axis=1)
    return np.where(reached[:, :, None], counts, 0)
