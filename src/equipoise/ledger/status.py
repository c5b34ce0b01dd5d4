"""Where an audit stands, as one value that prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from equipoise import evidence
from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Displayable, Row, format_money
from equipoise.finding import Finding, Interval
from equipoise.ledger.drift import DriftTest
from equipoise.ledger.state import AuditState
from equipoise.ledger.verify import OPEN, GroupTally, people_by_state


@dataclass(frozen=True)
class Proposal(JsonValue):
    """What somebody proposed and somebody else must approve."""

    number: int
    command: str
    arguments: Mapping[str, object]
    actor: str
    time: str


@dataclass(frozen=True)
class Status(JsonValue, Displayable):
    """An audit as of one event; money in minor units.

    FAIR and UNFAIR are final unless an outcome is corrected; the finding's ranges and cost follow
    outcomes that come after it. ``taken_back`` has the verdicts that corrections undid,
    ``conflicts`` counts those that no correction has settled, ``actors`` counts events by who did
    them.

    Examples
    --------
    >>> from equipoise import Costs, History, LiveAudit, Question
    >>> counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> past = History.from_cells({"A": counts, "B": counts})
    >>> live = LiveAudit.create("sqlite://", "loans", past, Question(), Costs(label=100))
    >>> live.ask("p-17", "A", 0).state
    'RESERVED'
    >>> live.status().pending, live.status().groups["A"].reserved
    (1, 100)
    """

    name: str
    audit: str
    edition: int
    events: int
    head: str
    time: str
    groups: Mapping[str, GroupTally]
    cap: int | None
    spent: int
    reserved: int
    overrun: int
    currency: str
    decimals: int
    max_in_flight: int | None
    max_in_flight_groups: Mapping[str, int]
    conflicts: int
    late: int
    erased: int
    unscrubbed: int
    concluded: str | None
    paused: str | None
    proposals: tuple[Proposal, ...]
    actors: Mapping[str, Mapping[str, int]]
    finding: Finding | None
    taken_back: tuple[str, ...]
    drift: tuple[DriftTest, ...]

    @property
    def states(self) -> dict[str, int]:
        """People by state, over all groups."""
        return people_by_state(self.groups.values())

    @property
    def people(self) -> int:
        """Everybody asked about."""
        return sum(g.approved + g.denied for g in self.groups.values())

    @property
    def pending(self) -> int:
        """Requests without an answer."""
        return sum(count for state, count in self.states.items() if state in OPEN)

    def money(self, amount: float) -> str:
        """Write minor units as people read money."""
        return format_money(amount, self.currency, self.decimals)

    @property
    def no_more(self) -> str:
        """Which verdicts were reached and taken back, in words; empty if none."""
        said = f"{', then '.join(self.taken_back)} was reached before and taken back"
        return f"{said}: the log has what was corrected since" if self.taken_back else ""

    def __str__(self) -> str:
        cap = "no cap" if self.cap is None else f"cap {self.money(self.cap)}"
        states = ", ".join(f"{n:,} {state.lower()}" for state, n in sorted(self.states.items()))
        held = f"{self.money(self.spent)} spent + {self.money(self.reserved)} reserved, {cap}"
        lines = [
            f"{self.name}: {self.audit} audit, {_count(self.events, 'event')}, last at {self.time}",
            f"  people      {self.people:,} ({states or 'none'})",
            f"  money       {held}",
        ]
        if unasked := self.states.get("SCORE_ONLY", 0):
            looked = sum(g.scored for g in self.groups.values())
            each = looked / max(looked - unasked, 1)
            lines.append(f"  looks       {looked:,} people looked at, {each:.1f} per label")
        lines += [
            f"    {group}: {g.approved:,} approved, {g.denied:,} denied; "
            f"{_count(g.positive + g.negative, 'outcome')} of denied people, {g.positive:,} good; "
            f"{g.in_flight:,} in flight"
            for group, g in self.groups.items()
        ]
        left = f", {self.unscrubbed:,} of them still in the files: run audit scrub"
        other = (
            f"{self.edition} of the statistics; this program has {evidence.EDITION}: to be read "
            "and verified, not continued (equipoise audit upgrade)"
        )
        beyond = f"{self.money(self.overrun)} beyond the cap through corrections"
        notes: list[tuple[str, object, object]] = [  # what, whether there is any, words
            ("overrun", self.overrun, beyond),
            ("conflicts", self.conflicts, f"{self.conflicts:,} contradicted outcomes, none merged"),
            ("late", self.late, f"{self.late:,} outcomes after a write-off or the verdict"),
            ("erased", self.erased, _count(self.erased, "person") + left * bool(self.unscrubbed)),
            ("earlier", self.taken_back, self.no_more),
            ("EDITION", self.edition != evidence.EDITION, other),
            ("PAUSED", self.paused is not None, self.paused),
        ]
        notes += [
            ("PROPOSED", True, f"{p.number}: {p.command} by {p.actor}, somebody else must approve")
            for p in self.proposals
        ]
        notes += [("WARNING", test.alarm, test) for test in self.drift]
        lines += [f"  {what:<12}{words}" for what, any_, words in notes if any_]
        if self.finding is None:
            return "\n".join(
                [*lines, f"  verdict     none {'any more' if self.taken_back else 'yet'}"]
            )
        return "\n".join([*lines, str(self.finding)])

    def _rows(self) -> Sequence[Row]:
        return [
            {
                "group": group,
                "approved": g.approved,
                "denied": g.denied,
                "good": g.positive,
                "bad": g.negative,
                "in_flight": g.in_flight,
                "spent": g.spent,
                "reserved": g.reserved,
            }
            for group, g in self.groups.items()
        ]


def _count(number: int, what: str) -> str:
    many = "people" if what == "person" else f"{what}s"
    return f"{number:,} {what if number == 1 else many}"


def status_of(state: AuditState) -> Status:
    """Describe a state."""
    rules, settings, tests = state.rules, state.settings, state.drift_tests()
    # A verdict is an event: while there is none nobody waits for statistics.
    running = rules.recorded is None and rules.concluded is None
    if (finding := None if running else state.finding()) is not None:
        alarms = tuple(str(test) for test in tests if test.alarm)
        new = tuple(line for line in alarms if line not in finding.warnings)
        finding = replace(finding, warnings=(*finding.warnings, *new))
    # what settings, books and head say under the same name
    known = vars(settings) | vars(rules) | vars(rules.head)
    own = {field.name: known[field.name] for field in fields(Status) if field.name in known}
    own |= {
        "events": rules.head.seq,
        "head": rules.head.hash,
        "groups": {
            group: replace(tally, states={str(s): n for s, n in sorted(tally.states.items()) if n})
            for group, tally in rules.groups.items()
        },
        "conflicts": len(rules.contradicted),
        "taken_back": tuple(rules.taken_back),
        "unscrubbed": rules.erased - rules.scrubbed,
        "proposals": tuple(Proposal(number, **p) for number, p in rules.proposals.items()),
        "actors": {who: dict(sorted(acts.items())) for who, acts in sorted(rules.acts.items())},
        "finding": finding,
        "drift": tests,
    }
    return Status(**own)


def good_shares_of(state: AuditState) -> dict[str, Interval]:
    """Return what :meth:`LiveAudit.good_shares` does.

    Whoever is asked after a look is no fair sample, so there the observations' means take the
    place of shares.
    """
    state.require_edition()
    audit = None if state.settings.assist is None else state.audit
    if not isinstance(audit, AdaptiveAudit) or audit.evidence is None:
        return {group: _plain_share(g) for group, g in state.rules.groups.items()}
    evidence = audit.evidence
    guesses = [
        guess if told else None
        for guess, told in zip(evidence.estimates.tolist(), evidence.told.tolist(), strict=True)
    ]
    low, high = (mean.tolist() for mean in evidence.means())
    found = {g: Interval(*own) for g, *own in zip(audit.groups, low, high, guesses, strict=True)}
    return {group: found[group] for group in state.rules.groups}


def _plain_share(group: GroupTally) -> Interval:
    good, told = group.positive, group.positive + group.negative
    everybody = told + group.unknown
    if not everybody:
        return Interval(0.0, 1.0)
    return Interval(
        good / everybody,
        (good + group.unknown) / everybody,
        (good + 0.5) / (told + 1.0) if told else None,
    )
