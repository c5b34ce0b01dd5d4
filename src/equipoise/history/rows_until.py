"""How many past people are read until the tau-th success: Past(tau, y, a) of the paper.

Rows are independent draws, so their order carries no information. The number of rows that are read
until then is drawn from the counts. This is the same law as reading rows in a random order, and it
gives the same answer on every engine.

Give every person a random time. In an unlimited past the kinds of people arrive as independent
Poisson processes, so the tau-th of a kind comes after a Gamma time. In a finite past the times are
independent and uniform, so the tau-th of n people comes at a Beta time. In both cases the tau - 1
people before the tau-th come uniformly until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array

Ints = NDArray[np.int64]
Random = np.random.Generator | np.random.RandomState
KINDS_PER_GROUP = 3  # approved with outcome 0, approved with outcome 1, everybody else


def draw_rows_until(
    rng: Random,
    tau: int,
    outcomes: Sequence[int],
    blocks: Sequence[Sequence[int]],
    kinds: Array | Ints,
    n_unlimited: int | None = None,
) -> Array:
    """Draw how many past people are read until tau approved ones of each outcome and group came.

    Parameters
    ----------
    outcomes
        The outcomes, 0 or 1, whose tau-th person is waited for.
    blocks
        Groups, by index, whose people are read together.
    kinds
        Numbers of approved people with outcome 0, approved people with outcome 1 and other people,
        shape (repeats, groups, 3). For unlimited pasts: their shares, shape (1, groups, 3).
    n_unlimited
        How many unlimited pasts are drawn. None if the pasts are finite.

    Returns
    -------
    Numbers of rows of shape (repeats, outcomes, groups), NaN where a past has too few people.
    """
    repeats = len(kinds) if n_unlimited is None else n_unlimited
    rows = np.full((repeats, len(outcomes), kinds.shape[1]), np.nan)
    for block in blocks:
        # The kinds of all groups of the block stand side by side: shape (repeats or 1, kinds).
        block_kinds = kinds[:, list(block)].reshape(len(kinds), -1)
        goals: list[tuple[int, int]] = []  # (index of the outcome, group)
        goal_kinds: list[int] = []
        for outcome_index, outcome in enumerate(outcomes):
            for place, group in enumerate(block):
                if kinds[:, group, outcome].any():
                    goals.append((outcome_index, group))
                    goal_kinds.append(KINDS_PER_GROUP * place + outcome)
        if n_unlimited is None:
            counts = draw_counts_in_finite_past(rng, tau, goal_kinds, block_kinds)
        else:
            counts = draw_counts_in_unlimited_past(rng, tau, goal_kinds, block_kinds, n_unlimited)
        people = counts.sum(axis=2)  # shape (repeats, goals)
        for goal_index, (outcome_index, group) in enumerate(goals):
            read = people[:, goal_index]
            rows[:, outcome_index, group] = np.where(read > 0, read, np.nan)
    return rows


def draw_counts_in_unlimited_past(
    rng: Random, tau: int, goal_kinds: Sequence[int], shares: Array | Ints, repeats: int
) -> Ints:
    """Draw how many people of each kind came when the tau-th of a goal's kind did.

    Parameters
    ----------
    goal_kinds
        The kinds, by index, whose tau-th person is waited for.
    shares
        Each kind's share of the stream, those of goals positive, shape (kinds,) or (1, kinds).
    repeats
        How many streams are drawn.

    Returns
    -------
    Counts of shape (repeats, goals, kinds).
    """
    n_kinds = shares.shape[-1]
    goal_shares = shares[..., list(goal_kinds)]
    # People arrive as a Poisson process, so the tau-th of a kind comes after a Gamma(tau) time.
    goal_times = rng.gamma(tau, size=(repeats, len(goal_kinds))) / goal_shares
    is_reached = np.ones(goal_times.shape, dtype=bool)
    stops = _Stops(tau, goal_kinds, goal_times, is_reached, n_kinds)

    def draw_arrivals(start: Array, end: Array) -> Ints:
        arrivals: Ints = rng.poisson(shares * np.maximum(end - start, 0.0))
        return arrivals

    return _draw_counts_at_stops(rng, stops, draw_arrivals)


def draw_counts_in_finite_past(
    rng: Random, tau: int, goal_kinds: Sequence[int], totals: Array | Ints
) -> Ints:
    """Draw how many people of each kind were read when the tau-th of a goal's kind was.

    Parameters
    ----------
    goal_kinds
        The kinds, by index, whose tau-th person is waited for.
    totals
        How many people of each kind the past has, shape (repeats, kinds).

    Returns
    -------
    Counts of shape (repeats, goals, kinds), all 0 where there are fewer than tau of a goal's kind.
    """
    goal_totals = totals[..., list(goal_kinds)]
    is_reached = goal_totals >= tau
    # In random order everybody comes at a uniform time in [0, 1], and the tau-th of n of them at a
    # Beta(tau, n - tau + 1) time.
    goal_times = rng.beta(tau, np.where(is_reached, goal_totals - tau + 1, 1))
    goal_times = np.where(is_reached, goal_times, 1.0)
    stops = _Stops(tau, goal_kinds, goal_times, is_reached, totals.shape[-1])
    remaining = totals.astype(np.int64) - stops.people_at_stop

    def draw_arrivals(start: Array, end: Array) -> Ints:
        time_left = np.where(start < 1.0, 1.0 - start, 1.0)
        share_of_time = np.clip((end - start) / time_left, 0.0, 1.0)
        arrivals: Ints = rng.binomial(remaining, share_of_time)
        np.subtract(remaining, arrivals, out=remaining)
        return arrivals

    return _draw_counts_at_stops(rng, stops, draw_arrivals)


class _Stops:
    """When the tau-th person of each goal's kind comes, by goal and by kind.

    Attributes
    ----------
    goal_times, is_reached
        The time of each goal, and whether the past has tau people for it: (repeats, goals).
    kind_times, people_at_stop
        The time of each kind's goal and the tau people who came until then, 0 for kinds without a
        goal and for goals that are not reached: (repeats, kinds).
    """

    def __init__(
        self,
        tau: int,
        goal_kinds: Sequence[int],
        goal_times: Array,
        is_reached: NDArray[np.bool_],
        n_kinds: int,
    ) -> None:
        self.goal_times = goal_times
        self.is_reached = is_reached
        self.kind_times = np.zeros((len(goal_times), n_kinds))
        self.people_at_stop = np.zeros((len(goal_times), n_kinds), np.int64)
        self.kind_times[:, list(goal_kinds)] = np.where(is_reached, goal_times, 0.0)
        self.people_at_stop[:, list(goal_kinds)] = np.where(is_reached, tau, 0)


def _draw_counts_at_stops(
    rng: Random, stops: _Stops, draw_arrivals: Callable[[Array, Array], Ints]
) -> Ints:
    """Draw how many people of each kind came until each goal's stop, earliest stops first.

    ``draw_arrivals(start, end)`` draws who comes between two times after their own kind's stop.
    The counts have the shape (repeats, goals, kinds).
    """
    repeats, n_goals = stops.goal_times.shape
    n_kinds = stops.kind_times.shape[1]
    # Of the tau people until a kind's stop, the last one comes at the stop, the others uniformly.
    before_stop = np.maximum(stops.people_at_stop - 1, 0)
    came_before_stop = np.zeros_like(before_stop)
    came_after_stop = np.zeros_like(before_stop)
    counts = np.zeros((repeats, n_goals, n_kinds), np.int64)
    order = np.argsort(stops.goal_times, axis=1)
    last_time = np.zeros((repeats, 1))
    for place in range(n_goals):
        time = np.take_along_axis(stops.goal_times, order[:, place : place + 1], axis=1)
        is_waiting = time < stops.kind_times  # shape (repeats, kinds)
        share_of_wait = _share_of_wait(stops.kind_times, last_time, time)
        came_before_stop += rng.binomial(before_stop - came_before_stop, share_of_wait)
        came_after_stop += draw_arrivals(np.maximum(last_time, stops.kind_times), time)
        until_stop = np.where(is_waiting, came_before_stop, stops.people_at_stop)
        counts[:, place] = until_stop + came_after_stop
        last_time = time
    # Back from the order of times to the order of goals; the new axis is that of kinds.
    place_of_goal = np.argsort(order, axis=1)[:, :, None]
    counts = np.take_along_axis(counts, place_of_goal, axis=1)
    return np.where(stops.is_reached[:, :, None], counts, 0)


def _share_of_wait(kind_times: Array, last_time: Array, time: Array) -> Array:
    """Return how much of the time until each kind's stop passes from ``last_time`` to ``time``.

    It is 0 for kinds whose stop is over. The shape is (repeats, kinds).
    """
    time_left = kind_times - last_time
    share = (time - last_time) / np.where(time_left > 0.0, time_left, 1.0)
    return np.where(time < kind_times, share, 0.0)
