"""Groups that an audit waits for: their outcomes are wanted, and nobody of them arrives.

Such an audit turns away the denied people of all other groups. Whether it does follows from the
replies that are recorded: a run of denied people who were not wanted, none of them of the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from equipoise._json import JsonValue

# Denied people in a row, before an audit is said to wait. A group with a quarter of the denied is
# absent from ten in a row with a probability of 6%, so shorter runs are mostly chance.
MIN_TURNED_AWAY = 10


@dataclass(frozen=True)
class WaitingGroup(JsonValue):
    """A group whose denied people are wanted and do not arrive.

    Attributes
    ----------
    group
        The group.
    days
        Whole days since its last denied person arrived, or since the audit began.
    has_arrived
        Whether a denied person of the group ever arrived.
    turned_away
        Denied people of other groups who came since then and were not needed.
    """

    group: str
    days: int
    has_arrived: bool
    turned_away: int

    def __str__(self) -> str:
        days = f"{self.days:,} day{'' if self.days == 1 else 's'}"
        since = f"the last one arrived {days} ago" if self.has_arrived else (
            f"none has arrived since the audit began {days} ago"
        )  # fmt: skip
        return (
            f"only denied people of group {self.group!r} are needed now; {since}. "
            f"{self.turned_away:,} denied people of other groups were not needed meanwhile. If no "
            "more of this group will come, conclude this audit and begin a new one that leaves "
            "the group out: the question of an audit cannot change"
        )


@dataclass
class ArrivalRecord:
    """When denied people of each group arrived last, and who was turned away since."""

    began: str = ""
    last_arrival: dict[str, str] = field(default_factory=dict)
    turned_away: Counter[str] = field(default_factory=Counter)

    def arrive(self, group: str, decision: int, why: str, time: str) -> None:
        """Record an arrival; ``why`` says why nothing was wanted, and is empty if something was."""
        if decision == 1:
            return
        self.last_arrival[group] = time
        if why == "not_wanted":
            self.turned_away[group] += 1
        elif not why:  # somebody was wanted, so the run of those turned away has ended
            self.turned_away.clear()

    @property
    def is_stalled(self) -> bool:
        """Whether many denied people in a row were turned away."""
        return self.turned_away.total() >= MIN_TURNED_AWAY

    def waiting_for(self, wanted_groups: Iterable[str], time: str) -> tuple[WaitingGroup, ...]:
        """Return those of the wanted groups of which nobody came while others were turned away."""
        if not self.is_stalled:
            return ()
        waiting = []
        for group in wanted_groups:
            # People of this group came and were not needed then, so it is not missing.
            if self.turned_away[group]:
                continue
            last = self.last_arrival.get(group)
            waiting.append(
                WaitingGroup(
                    group=group,
                    days=_days_between(last or self.began, time),
                    has_arrived=last is not None,
                    turned_away=self.turned_away.total(),
                )
            )
        return tuple(waiting)


def _days_between(start: str, end: str) -> int:
    return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).days, 0)
