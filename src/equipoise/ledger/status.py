"""Where an audit stands, as one value that prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from equipoise._json import JsonValue
from equipoise.finding import Finding
from equipoise.ledger.drift import DriftTest, drift_tests
from equipoise.ledger.projection import Projection
from equipoise.ledger.rows import OPEN

__all__ = ["GroupStatus", "Status", "status_of"]


@dataclass(frozen=True)
class GroupStatus(JsonValue):
    """One group's people and money (minor units); ``states`` counts people by state."""

    approved: int
    denied: int
    states: Mapping[str, int]
    in_flight: int
    positive: int
    negative: int
    spent: int
    reserved: int
    overrun: int


@dataclass(frozen=True)
class Status(JsonValue):
    """An audit as of one event."""

    name: str
    audit: str
    events: int
    head: str
    time: str
    groups: Mapping[str, GroupStatus]
    cap: int | None
    spent: int
    reserved: int
    overrun: int
    conflicts: int
    late: int
    closed: str | None
    finding: Finding | None
    drift: tuple[DriftTest, ...]

    @property
    def states(self) -> dict[str, int]:
        """People by state, over all groups."""
        total: dict[str, int] = {}
        for group in self.groups.values():
            for state, count in group.states.items():
                total[state] = total.get(state, 0) + count
        return total

    @property
    def people(self) -> int:
        """Everybody asked about."""
        return sum(g.approved + g.denied for g in self.groups.values())

    @property
    def pending(self) -> int:
        """Requests without an answer."""
        return sum(count for state, count in self.states.items() if state in OPEN)

    def __str__(self) -> str:
        cap = "no cap" if self.cap is None else f"cap {self.cap:,}"
        states = ", ".join(f"{n:,} {state.lower()}" for state, n in sorted(self.states.items()))
        lines = [
            f"{self.name}: {self.audit} audit, {_count(self.events, 'event')}, last at {self.time}",
            f"  people      {self.people:,} ({states or 'none'})",
            f"  money       {self.spent:,} spent + {self.reserved:,} reserved, {cap} (minor units)",
        ]
        for group, g in self.groups.items():
            lines.append(
                f"    {group}: {g.approved:,} approved, {g.denied:,} denied; "
                f"{_count(g.positive + g.negative, 'outcome')} of denied people, "
                f"{g.positive:,} good; "
                f"{g.in_flight:,} in flight"
            )
        if self.overrun:
            lines.append(f"  overrun     {self.overrun:,} beyond the cap through corrections")
        if self.conflicts:
            lines.append(f"  conflicts   {self.conflicts:,} contradicted outcomes, none merged")
        if self.late:
            lines.append(f"  late        {self.late:,} outcomes after a write-off or the verdict")
        lines += [f"  WARNING     {test}" for test in self.drift if test.alarm]
        lines.append(str(self.finding) if self.finding else "  verdict     none yet")
        return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def status_of(projection: Projection) -> Status:
    """Describe a projection."""
    settings = projection.settings
    tests = drift_tests(projection.drift, settings.past, stream=settings.stream)
    finding = projection.finding()
    if finding is not None:
        alarms = tuple(str(test) for test in tests if test.alarm)
        new = tuple(line for line in alarms if line not in finding.warnings)
        finding = replace(finding, warnings=(*finding.warnings, *new))
    return Status(
        name=settings.name,
        audit=settings.audit,
        events=projection.seq,
        head=projection.head,
        time=projection.time,
        groups={
            group: GroupStatus(
                approved=g.approved,
                denied=g.denied,
                states={state: count for state, count in g.states.items() if count},
                in_flight=g.in_flight,
                positive=g.positive,
                negative=g.negative,
                spent=g.spent,
                reserved=g.reserved,
                overrun=g.overrun,
            )
            for group, g in projection.groups.items()
        },
        cap=settings.budget,
        spent=projection.spent,
        reserved=projection.reserved,
        overrun=projection.overrun,
        conflicts=projection.conflicts,
        late=projection.late,
        closed=projection.closed,
        finding=finding,
        drift=tests,
    )
