"""Where an audit stands, as one value that prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from equipoise import evidence
from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.display import Displayable, Row, format_money
from equipoise.errors import few_of
from equipoise.evidence.intervals import mean_ranges, success_estimates
from equipoise.finding import Finding, Interval
from equipoise.ledger.drift import DriftTest
from equipoise.ledger.state import AuditState
from equipoise.ledger.verify import OPEN, Approvals, GroupTally, people_by_state
from equipoise.ledger.waiting import WaitingGroup
from equipoise.messages.audit_words import PERSON_STATE_WORDS
from equipoise.question import Question


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
    them. ``left_out`` names the groups that are counted and not compared,
    ``waiting`` those that are needed and do not arrive. ``question`` is fixed for good.
    ``cache_differs_at`` is the event at which a cached state was found that the events do not lead
    to.

    Examples
    --------
    >>> from equipoise import Costs, History, LiveAudit, Question
    >>> counts = {"approved_positive": 6000, "approved_negative": 2000, "denied": 2000}
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
    left_out: tuple[str, ...] = ()
    waiting: tuple[WaitingGroup, ...] = ()
    question: Question | None = None
    cache_differs_at: int | None = None

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

    def short_money(self, amount: float) -> str:
        """Write minor units as :meth:`money` does, a whole amount without decimals."""
        unit = 10**self.decimals
        if amount % unit:
            return self.money(amount)
        return format_money(amount // unit, self.currency, 0)

    @property
    def no_more(self) -> str:
        """Which verdicts were reached and taken back, in words; empty if none."""
        if not self.taken_back:
            return ""
        verdicts = ", then ".join(self.taken_back)
        return f"{verdicts} was reached before and taken back: the log has what was corrected since"

    def __str__(self) -> str:
        finding = self._no_verdict if self.finding is None else str(self.finding)
        lines = [*self._heading_lines(), *self._group_lines(), *self._note_lines(), finding]
        return "\n".join(lines)

    def _lines(self) -> Sequence[str]:
        finding_lines = [self._no_verdict] if self.finding is None else self.finding._lines()
        return [*self._heading_lines(), *self._note_lines(), *finding_lines]

    @property
    def _no_verdict(self) -> str:
        return f"  verdict     none {'any more' if self.taken_back else 'yet'}"

    def _heading_lines(self) -> list[str]:
        """Return the audit's name, its question, its people by state and its money."""
        states = ", ".join(
            f"{PERSON_STATE_WORDS[state]}: {n:,}" for state, n in sorted(self.states.items())
        )
        cap = "no cap" if self.cap is None else f"cap {self.money(self.cap)}"
        lines = [
            f"{self.name}: {self.audit} audit, {_count(self.events, 'event')}, last at {self.time}",
            f"  question    {self.question}",
            f"  people      {self.people:,} ({states or 'none'})",
            f"  money       {self.money(self.spent)} spent + {self.money(self.reserved)} reserved, "
            f"{cap}",
        ]
        n_unasked = self.states.get("SCORE_ONLY", 0)
        if n_unasked:
            n_scored = sum(group.scored for group in self.groups.values())
            # At least 1: perhaps nobody who was looked at has been asked yet.
            per_label = n_scored / max(n_scored - n_unasked, 1)
            lines.append(f"  looks       {n_scored:,} people looked at, {per_label:.1f} per label")
        return lines

    def _group_lines(self) -> list[str]:
        lines = []
        for name, group in self.groups.items():
            if name in self.left_out:
                continue
            outcomes = _count(group.positive + group.negative, "outcome")
            lines.append(
                f"    {name}: {group.approved:,} approved, {group.denied:,} denied; "
                f"{outcomes} of denied people, {group.positive:,} good; "
                f"{group.in_flight:,} awaited"
            )
        if self.left_out:
            people = [self.groups[name] for name in self.left_out]
            n_people = sum(group.approved + group.denied for group in people)
            lines.append(
                f"    not compared: {few_of(self.left_out)} ({_count(n_people, 'person')})"
            )
        return lines

    def _note_lines(self) -> list[str]:
        return [f"  {label:<12}{text}" for label, text in self._notes()]

    def _notes(self) -> list[tuple[str, str]]:
        """Return what is unusual about the audit: a label and a sentence each."""
        notes: list[tuple[str, str]] = []
        if self.overrun:
            money = self.money(self.overrun)
            notes.append(("overrun", f"{money} beyond the cap through corrections"))
        if self.conflicts:
            notes.append(("conflicts", f"{self.conflicts:,} contradicted outcomes, none merged"))
        if self.late:
            notes.append(("late", f"{self.late:,} outcomes after a write-off or the verdict"))
        if self.erased:
            text = _count(self.erased, "person")
            if self.unscrubbed:
                text += f", {self.unscrubbed:,} of them still in the files: to be scrubbed"
            notes.append(("erased", text))
        if self.taken_back:
            notes.append(("earlier", self.no_more))
        if self.edition != evidence.EDITION:
            notes.append(
                (
                    "EDITION",
                    f"{self.edition} of the statistics; this program has {evidence.EDITION}: to be "
                    "read and verified, not continued before it is upgraded",
                )
            )
        if self.cache_differs_at is not None:
            notes.append(("CACHE", describe_difference(self.cache_differs_at)))
        notes += [("WAITING", str(group)) for group in self.waiting]
        if self.paused is not None:
            notes.append(("PAUSED", self.paused))
        for proposal in self.proposals:
            text = f"{proposal.number}: {proposal.command} by {proposal.actor}"
            notes.append(("PROPOSED", f"{text}, somebody else must approve"))
        notes += [("WARNING", str(test)) for test in self.drift if test.alarm]
        return notes

    @property
    def held(self) -> dict[str, int]:
        """The money that is held for open requests, by group."""
        return {name: group.reserved for name, group in self.groups.items()}

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


def describe_difference(event: int) -> str:
    """Return what it means that the state cached at an event differs from the chain."""
    return (
        f"the state cached at event {event} is not what the events lead to: the cache was changed "
        "from outside, and 'status' may have shown its numbers. This does not touch the chain, nor "
        "reports, which replay it. The state is kept for whoever looks into it, and no program "
        "uses it: empty the table state_cache after that"
    )


def _count(number: int, noun: str) -> str:
    plural = "people" if noun == "person" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def status_of(state: AuditState) -> Status:
    """Describe a state."""
    rules = state.rules
    settings = state.settings
    drift = state.drift_tests()
    return Status(
        name=settings.name,
        audit=settings.audit,
        edition=rules.edition,
        events=rules.head.seq,
        head=rules.head.hash,
        time=rules.head.time,
        groups={group: _copy_of(tally) for group, tally in rules.people.groups.items()},
        cap=rules.head.cap,
        spent=rules.head.spent,
        reserved=rules.head.reserved,
        overrun=rules.head.overrun,
        currency=settings.currency,
        decimals=settings.decimals,
        max_in_flight=rules.max_in_flight,
        max_in_flight_groups=rules.max_in_flight_groups,
        conflicts=len(rules.people.contradicted),
        late=rules.people.late,
        erased=rules.people.erased,
        unscrubbed=rules.people.erased - rules.people.scrubbed,
        concluded=rules.concluded,
        paused=rules.paused,
        proposals=_open_proposals(rules.approvals),
        actors=_sorted_acts(rules.acts),
        finding=_finding_with_alarms(state, drift),
        taken_back=tuple(rules.taken_back),
        drift=drift,
        left_out=settings.left_out,
        waiting=state.waiting_for(),
        question=settings.question,
    )


def _copy_of(tally: GroupTally) -> GroupTally:
    """Return a group's tally with the states that somebody is in, by name."""
    # A copy, because the rules go on counting in their own while the status is shown.
    states = {str(state): count for state, count in sorted(tally.states.items()) if count}
    return replace(tally, states=states)


def _open_proposals(approvals: Approvals) -> tuple[Proposal, ...]:
    return tuple(
        Proposal(
            number=number,
            command=proposal["command"],
            arguments=proposal["arguments"],
            actor=proposal["actor"],
            time=proposal["time"],
        )
        for number, proposal in approvals.proposals.items()
    )


def _sorted_acts(acts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return actor -> type of event -> how many, in alphabetical order."""
    return {actor: dict(sorted(acts[actor].items())) for actor in sorted(acts)}


def _finding_with_alarms(state: AuditState, drift: Sequence[DriftTest]) -> Finding | None:
    """Return the finding, warned of drift; None while the audit is in progress."""
    # A verdict is an event: while there is none nobody waits for statistics.
    if state.rules.recorded is None and state.rules.concluded is None:
        return None
    finding = _finding_of_chain(state)
    if finding is None:
        return None
    # Another edition's finding is the recorded one, with the alarms of its moment. Later ones are
    # in the status beside it.
    if state.has_other_edition:
        return finding
    alarms = [str(test) for test in drift if test.alarm]
    # A recorded finding may have some of them already.
    return replace(finding, warnings=tuple(dict.fromkeys((*finding.warnings, *alarms))))


def _finding_of_chain(state: AuditState) -> Finding | None:
    """Return the finding, as it was recorded where only a replay may say how it moved since."""
    recorded = state.rules.recorded
    rests_on_cache = not state.is_from_chain and state.has_steps_since_verdict
    if recorded is None or state.has_other_edition or not rests_on_cache:
        return state.finding()
    head = state.rules.head
    return replace(Finding.from_dict(recorded), cost=float(head.spent + head.overrun))


def good_shares_of(state: AuditState) -> dict[str, Interval]:
    """Return what :meth:`LiveAudit.good_shares` does.

    Where scores decide who is asked, the people asked are no fair sample. There the means of the
    observations take the place of shares.
    """
    state.require_edition()
    groups = state.rules.people.groups
    # Without scores the tallies are enough, and the audit need not be rebuilt for them.
    audit = None if state.settings.assist is None else state.audit
    if not isinstance(audit, AdaptiveAudit) or audit.evidence is None:
        return {group: _plain_share(tally) for group, tally in groups.items()}
    log = audit.evidence.log
    lower_means, upper_means = mean_ranges(log)
    estimates = success_estimates(log)
    shares: dict[str, Interval] = {}
    for index, group in enumerate(audit.groups):
        has_outcomes = bool(log.n_told[index])
        estimate = float(estimates[index]) if has_outcomes else None
        shares[group] = Interval(float(lower_means[index]), float(upper_means[index]), estimate)
    return {group: shares[group] for group in groups}


def _plain_share(tally: GroupTally) -> Interval:
    """Return the share of good outcomes, with unknown ones counted as bad and as good."""
    n_good = tally.positive
    n_told = tally.positive + tally.negative
    n_asked = n_told + tally.unknown
    if not n_asked:
        return Interval(0.0, 1.0)
    # Adding half an outcome keeps the estimate away from 0 and 1 while few are known.
    return Interval(
        n_good / n_asked,
        (n_good + tally.unknown) / n_asked,
        (n_good + 0.5) / (n_told + 1.0) if n_told else None,
    )
