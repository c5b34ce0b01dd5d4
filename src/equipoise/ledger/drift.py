"""Is the present still like the past? Tested for free, at every moment, on what everybody sees.

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
        now = "nobody yet" if self.now is None else f"now {self.now:.3f} of {self.people:,} people"
        verdict = "has moved" if self.alarm else "shows no drift"
        return f"{self.what} of group {self.group!r} {verdict}: past {self.past:.3f}, {now}"


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
        if place is not None and place % BLOCK == 0:
            self.outcomes[group].append([0, 0])

    def reveal(self, group: str, place: int, outcome: int, step: int = 1) -> None:
        """Count the outcome of the group's approved person number ``place``."""
        self.outcomes[group][place // BLOCK][outcome] += step


def drift_tests(
    counts: DriftCounts, past: Past, *, stream: str = "everybody", level: float = LEVEL
) -> tuple[DriftTest, ...]:
    """Return every test that the stream allows; wrong alarms with probability <= ``level``.

    With ``stream="denied"`` approved people are not reported, so nothing can be compared.
    """
    if stream != "everybody":
        return ()
    cells, alpha = past.cells, level / (3 * len(counts.groups))
    arrivals = np.array(counts.arrivals, dtype=float).reshape(-1, len(counts.groups), 2)
    seen = arrivals.cumsum(axis=0)
    everybody = seen.sum(axis=(1, 2))
    tests = []
    for index, group in enumerate(counts.groups):
        own, approved, c = seen[:, index, :].sum(axis=1), seen[:, index, 1], cells[group]
        shares = {
            "share of all people": (c.total, cells.total, own, own, everybody),
            "approval rate": (c.approved, c.total, approved, approved, own),
        }
        if c.approved > 0 and not c.approved_unknown:  # else nothing is there to compare with
            told = np.array(counts.outcomes[group], dtype=float).reshape(-1, 2).cumsum(axis=0)
            everyone = approved[-1] if len(approved) else 0.0
            people = np.minimum(BLOCK * np.arange(1.0, len(told) + 1.0), everyone)
            most = people - told[:, 0]
            good = (c.approved_positive, c.approved, told[:, 1], most, people)
            shares["good outcomes among the approved"] = good
        tests += [_test(what, group, *of, past.exact, alpha) for what, of in shares.items()]
    return tuple(tests)


def _test(
    what: str,
    group: str,
    successes: float,
    total: float,
    fewest: Array,
    most: Array,
    people: Array,
    exact: bool,
    alpha: float,
) -> DriftTest:
    """Test one share; the number of successes is only known to lie between two bounds."""
    low = high = successes / total
    if not exact:
        low, high = clopper_pearson(successes, total, alpha * SHARE_FOR_PAST / 2.0)
    threshold = -math.log(alpha if exact else alpha * (1.0 - SHARE_FOR_PAST))
    evidence = share_evidence(_nearest(fewest, most, people, low, high), people, low, high)
    best = float(evidence.max(initial=0.0))
    n = int(people[-1]) if len(people) else 0
    unknown = int(most[-1] - fewest[-1]) if n else 0
    now = float(fewest[-1]) / (n - unknown) if n > unknown else None
    return DriftTest(
        what,
        group,
        past=successes / total,
        now=now,
        people=n,
        unknown=unknown,
        evidence=best / math.log(10.0),
        threshold=threshold / math.log(10.0),
        alarm=best >= threshold,
    )


def _nearest(fewest: Array, most: Array, people: Array, low: float, high: float) -> Array:
    """Return the possible number of successes that lies nearest to the past's range.

    The log evidence is convex on either side of the range and not positive inside it, so where it
    is positive its smallest value over the possible numbers is at the end nearest to the range.
    """
    return np.where(
        most < low * people,
        most,
        np.where(fewest > high * people, fewest, people * (low + high) / 2),
    )
