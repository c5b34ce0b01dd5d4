"""Test whether the people who arrive now are like those in the historical data.

An audit joins past data with people who arrive now, so it assumes that both come from one
population. Three shares show whether that holds: the groups' shares of the stream, the approval
rate of each group, and the share of good outcomes among each group's approved people.

Each is tested by an e-process (Ville's inequality: under the null it ever reaches ``1/alpha`` with
probability at most ``alpha``, so one may look at any time):

    E_n = [Beta(1/2, 1/2) mixture likelihood of the stream] / [largest likelihood over C]

where C is the exact Clopper-Pearson set for the share in the past, at a fifth of the level.
Outcomes of approved people come late, good ones later than bad ones; so they count in the order in
which people arrived, and the unknown are completed in the way that speaks least for a drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise._arrays import Array
from equipoise._json import JsonValue
from equipoise.evidence.stream_shares import share_evidence
from equipoise.history.past import Past
from equipoise.rates import clopper_pearson

BLOCK = 100  # looks happen at the end of every so many people
SHARE_FOR_PAST = 0.2  # of each test's level, for the uncertainty of the past
LEVEL = 0.01


@dataclass(frozen=True)
class DriftTest(JsonValue):
    """One share, past against present.

    ``evidence`` is the largest log10 e-value seen; ``alarm`` says whether it passed the threshold
    that all tests together pass by chance with probability at most the level.
    """

    what: str
    group: str
    past: float
    now: float | None
    people: int
    unknown: int
    evidence: float
    threshold: float
    alarm: bool

    def __str__(self) -> str:
        present = "nobody yet"
        if self.now is not None:
            present = f"now {self.now:.3f} of {self.people:,} people"
        verdict = "has moved" if self.alarm else "shows no drift"
        return f"{self.what} of group {self.group!r} {verdict}: past {self.past:.3f}, {present}"


class DriftCounts:
    """Counts per block of arrivals, from which the tests can be made at any time."""

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups = tuple(groups)
        self.arrivals: list[list[int]] = []  # per block: denied, approved of each group in turn
        self.outcomes: dict[str, list[list[int]]] = {g: [] for g in self.groups}
        self._column = {group: 2 * i for i, group in enumerate(self.groups)}

    def arrive(self, group: str, number: int, place: int | None) -> None:
        """Count the person of this number, who has a place among the group's approved or none."""
        if (number - 1) % BLOCK == 0:
            self.arrivals.append([0] * (2 * len(self.groups)))
        self.arrivals[-1][self._column[group] + (place is not None)] += 1
        # Blocks of outcomes are blocks of approved people, however late their outcomes come.
        if place is not None and place % BLOCK == 0:
            self.outcomes[group].append([0, 0])

    def reveal(self, group: str, place: int, outcome: int, step: int = 1) -> None:
        """Count the outcome of the group's approved person number ``place``."""
        self.outcomes[group][place // BLOCK][outcome] += step


def drift_tests(
    counts: DriftCounts, past: Past, *, stream: str = "everybody", level: float = LEVEL
) -> tuple[DriftTest, ...]:
    """Return every test that the stream allows; wrong alarms with probability <= ``level``.

    Only groups of ``past`` are tested, and a share of all people is one of people in these groups:
    whoever is left out of the comparison raises no alarm. With ``stream="denied"`` approved people
    are not reported, so nothing can be compared.
    """
    if stream != "everybody":
        return ()
    groups = [group for group in counts.groups if group in past.cells]
    alpha = level / (3 * len(groups))  # three tests per group share the level
    # axes: block of arrivals, group, decision (denied, approved)
    arrivals = np.array(counts.arrivals, dtype=float).reshape(-1, len(counts.groups), 2)
    arrivals = arrivals[:, [counts.groups.index(group) for group in groups], :]
    arrived = arrivals.cumsum(axis=0)
    tests = []
    for index, group in enumerate(groups):
        shares = _shares_of(group, past, arrived, index, counts.outcomes[group])
        tests += [_test_share(share, group, past.exact, alpha) for share in shares]
    return tuple(tests)


@dataclass(frozen=True)
class _Share:
    """A share in the historical data and in the stream.

    Attributes
    ----------
    label
        What the share is of, in words.
    past_successes, past_total
        Counts in the historical data.
    fewest, most
        Bounds on the successes in the stream until the end of each block; they differ where
        outcomes are unknown.
    people
        People in the stream until the end of each block.
    """

    label: str
    past_successes: float
    past_total: float
    fewest_successes: Array
    most_successes: Array
    people: Array


def _shares_of(
    group: str, past: Past, arrived: Array, index: int, outcomes: list[list[int]]
) -> list[_Share]:
    """Return the shares of a group that can be compared with the historical data.

    Parameters
    ----------
    arrived
        People until the end of each block; axes: block, group, decision (denied, approved).
    index
        The position of the group in ``arrived``.
    outcomes
        Bad and good outcomes that were told, per block of the group's approved people.
    """
    cells = past.cells[group]
    everybody = arrived.sum(axis=(1, 2))
    members = arrived[:, index, :].sum(axis=1)
    approved = arrived[:, index, 1]
    shares = [
        _Share("share of all people", cells.total, past.cells.total, members, members, everybody),
        _Share("approval rate", cells.approved, cells.total, approved, approved, members),
    ]
    # Outcomes are compared only if all of them are known in the historical data.
    if cells.approved > 0 and not cells.approved_unknown:
        # axes: block of approved people, outcome (bad, good)
        outcome_counts = np.array(outcomes, dtype=float).reshape(-1, 2).cumsum(axis=0)
        n_approved = approved[-1] if len(approved) else 0.0
        # Every block is full, except perhaps the last one.
        people = np.minimum(BLOCK * np.arange(1.0, len(outcome_counts) + 1.0), n_approved)
        shares.append(
            _Share(
                "good outcomes among the approved",
                cells.approved_positive,
                cells.approved,
                fewest_successes=outcome_counts[:, 1],
                most_successes=people - outcome_counts[:, 0],
                people=people,
            )
        )
    return shares


def _test_share(share: _Share, group: str, exact: bool, alpha: float) -> DriftTest:
    """Test one share at the level ``alpha``; ``exact`` says that the past share is no sample."""
    past_share = share.past_successes / share.past_total
    if exact:
        low = high = past_share
        threshold = -math.log(alpha)
    else:
        low, high = clopper_pearson(
            share.past_successes, share.past_total, alpha * SHARE_FOR_PAST / 2.0
        )
        # What the past's range leaves of the level is for the stream.
        threshold = -math.log(alpha * (1.0 - SHARE_FOR_PAST))
    successes = _nearest(share.fewest_successes, share.most_successes, share.people, low, high)
    log_evidence = share_evidence(successes, share.people, low, high)
    largest = float(log_evidence.max(initial=0.0))
    n_people = int(share.people[-1]) if len(share.people) else 0
    n_unknown = int(share.most_successes[-1] - share.fewest_successes[-1]) if n_people else 0
    present_share = None
    if n_people > n_unknown:
        present_share = float(share.fewest_successes[-1]) / (n_people - n_unknown)
    return DriftTest(
        share.label,
        group,
        past=past_share,
        now=present_share,
        people=n_people,
        unknown=n_unknown,
        evidence=largest / math.log(10.0),
        threshold=threshold / math.log(10.0),
        alarm=largest >= threshold,
    )


def _nearest(
    fewest_successes: Array, most_successes: Array, people: Array, low: float, high: float
) -> Array:
    """Return the possible number of successes that lies nearest to the past's range.

    The log evidence is convex on either side of the range and not positive inside it, so where it
    is positive its smallest value over the possible numbers is at the end nearest to the range.
    """
    return np.where(
        most_successes < low * people,
        most_successes,
        np.where(fewest_successes > high * people, fewest_successes, people * (low + high) / 2),
    )
