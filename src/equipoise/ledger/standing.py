"""Where an audit stands after its latest event, and what follows from that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from equipoise.errors import LedgerError
from equipoise.finding import Finding
from equipoise.ledger.drift import DriftCounts, DriftTest, drift_tests
from equipoise.ledger.inputs import LIMIT
from equipoise.ledger.memory import FeaturesGone, FeaturesOf, Memory
from equipoise.ledger.settings import Settings
from equipoise.ledger.verify import GENESIS

__all__ = ["OLDER_SNAPSHOTS", "SNAPSHOT_FORMAT", "Data", "Event", "GroupTally", "Standing"]

Event = Mapping[str, Any]
Data = Mapping[str, Any]

SNAPSHOT_FORMAT = 2
OLDER_SNAPSHOTS = (1,)
PLAIN = (
    *("seq", "head", "time", "people", "requests", "cap", "spent", "reserved", "overrun"),
    *("max_in_flight", "max_in_flight_groups", "concluded", "paused", "features_erased"),
    *("recorded", "verdict_seq", "unsettled", "conflicts", "late", "erased"),
)
"""Attributes that a snapshot holds as they are."""


@dataclass
class GroupTally:
    """What happened in one group, as counts and minor units."""

    approved: int = 0
    denied: int = 0
    states: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    positive: int = 0  # outcome 1 among the denied people whose label was asked and told
    negative: int = 0
    spent: int = 0
    reserved: int = 0
    overrun: int = 0


class Standing:
    """People and money as counts, statistics as a log; a snapshot holds exactly this."""

    def __init__(self, features_of: FeaturesOf = lambda _: None) -> None:
        self.seq = 0
        self.head = GENESIS
        self.time = ""
        self.settings: Settings
        self.memory: Memory
        self.groups: dict[str, GroupTally] = {}
        self.drift: DriftCounts
        self.people = 0
        self.requests = 0  # how often the audit was consulted
        self.cap: int | None = None
        self.spent = 0  # money gone
        self.reserved = 0  # money held for requests without an answer
        self.overrun = 0  # money beyond the cap, possible only through corrections
        self.max_in_flight: int | None = None
        self.max_in_flight_groups: dict[str, int] = {}
        self.concluded: str | None = None
        self.paused: str | None = None
        self.features_erased = False
        self.recorded: dict[str, Any] | None = None  # the finding in the last verdict event
        self.verdict_seq: int | None = None
        self.unsettled = False  # an answer or the cap changed and no verdict event has come since
        self.blind = False  # features are gone: money can be counted, statistics cannot be repeated
        self.conflicts = 0
        self.late = 0
        self.erased = 0
        self.proposals: dict[int, dict[str, Any]] = {}  # that are open
        self.decided: dict[int, list[Any]] = {}  # kind of event, its person and reason
        self.acts: Counter[tuple[str, str]] = Counter()  # events per actor and kind
        self._features_of = features_of

    def begin(self, data: Data) -> None:
        """Start from the first event's data."""
        self.settings = Settings.from_data(data)
        self.memory = Memory(self.settings, self._features_of)
        self.groups = {group: GroupTally() for group in self.settings.groups}
        self.drift = DriftCounts(self.settings.groups)
        self.cap = self.settings.budget
        self.max_in_flight = self.settings.max_in_flight
        self.max_in_flight_groups = dict(self.settings.max_in_flight_groups)

    # -- what follows from the events -------------------------------------------------------------

    def in_flight_limit_reached(self, group: str) -> bool:
        """Whether delay forbids another request now.

        The answer must not depend on the person who arrived, only on the past; and where one
        stream of everybody is counted (Baseline) nobody may pass while a single group waits.
        """
        limit, limits = self.max_in_flight, self.max_in_flight_groups
        if limit is not None and sum(g.in_flight for g in self.groups.values()) >= limit:
            return True
        if not limits:
            return False
        within = getattr(self.memory.audit, "within_group", True)
        whom = [group] if within else self.settings.groups
        return any(g in limits and self.groups[g].in_flight >= limits[g] for g in whom)

    def finding(self) -> Finding | None:
        """Return what the evidence supports by now, None while the audit goes on.

        Its cost is the ledger's: what was spent when this verdict was reached.
        """
        recorded = None if self.recorded is None else Finding.from_dict(self.recorded)
        if self.features_erased:
            return recorded
        if self.blind:
            raise FeaturesGone("features are gone, so the statistics cannot be repeated")
        finding = self.memory.finding
        if finding is None and self.concluded is not None:
            finding = self.memory.concluded(self.concluded)
        if finding is None:
            return None
        if recorded is not None and recorded.verdict is finding.verdict and not self.unsettled:
            return replace(finding, cost=recorded.cost)
        return replace(finding, cost=float(self.spent + self.overrun))

    def known_finding(self) -> Finding | None:
        """Return the same, without statistics while the audit goes on: a verdict is an event."""
        going_on = self.recorded is None and self.concluded is None
        return None if going_on else self.finding()

    @property
    def ready(self) -> bool:
        """Whether statistics are at hand, or will never be needed again."""
        return self.features_erased or self.memory.ready

    def drift_tests(self) -> tuple[DriftTest, ...]:
        """Return whether the present is like the past."""
        return drift_tests(self.drift, self.settings.past, stream=self.settings.stream)

    def check_books(self) -> None:
        """Raise unless the audit object's account agrees with the ledger's."""
        if not self.memory.ready:
            return
        mine = self.spent + self.overrun + self.reserved
        theirs = self.memory.audit.cost + self.memory.audit.reserved
        if mine != theirs and mine < LIMIT:  # corrections may go beyond, where floats are inexact
            raise LedgerError(f"the ledger counts {mine} spent or held, the audit {theirs}")

    def check_tallies(self) -> None:
        """Raise unless the groups add up to the whole."""
        groups = self.groups.values()
        found = [sum(getattr(g, name) for g in groups) for name in ("spent", "reserved", "overrun")]
        people = sum(g.approved + g.denied for g in groups)
        if (*found, people) != (self.spent, self.reserved, self.overrun, self.people):
            raise LedgerError("the groups do not add up to the whole")

    # -- snapshots --------------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """Return everything as plain data; of the statistics, the log."""
        return {
            "format": SNAPSHOT_FORMAT,
            **{name: getattr(self, name) for name in PLAIN},
            "groups": {g: {**asdict(t), "states": dict(t.states)} for g, t in self.groups.items()},
            "drift": self.drift.to_data(),
            "proposals": {str(seq): proposal for seq, proposal in self.proposals.items()},
            "decided": {str(seq): decision for seq, decision in self.decided.items()},
            "acts": [[actor, kind, n] for (actor, kind), n in self.acts.items()],
            "log": self.memory.log,
        }

    def restore(self, data: Data, created: Event) -> None:
        """Become what :meth:`to_data` described, the first event being given."""
        self.begin(created["data"])
        for name in PLAIN:
            setattr(self, name, data[name])
        for group, tally in data["groups"].items():
            self.groups[group] = GroupTally(**{**tally, "states": Counter(tally["states"])})
        self.drift.restore(data["drift"])
        self.proposals = {int(seq): proposal for seq, proposal in data["proposals"].items()}
        self.decided = {int(seq): decision for seq, decision in data["decided"].items()}
        self.acts = Counter({(actor, kind): n for actor, kind, n in data["acts"]})
        self.memory = Memory(self.settings, self._features_of, data["log"])
        self.memory.cap = self.cap
