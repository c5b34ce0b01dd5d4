"""An audit's present state, which is nothing but its events applied in order."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from equipoise._json import JsonValue
from equipoise.audits.base import Audit, Step, as_corrected
from equipoise.errors import EquipoiseError, LedgerError, ProtocolError
from equipoise.evidence import EDITION
from equipoise.finding import Finding
from equipoise.ledger.drift import DriftCounts, DriftTest, drift_tests
from equipoise.ledger.inputs import LIMIT
from equipoise.ledger.settings import Settings, build
from equipoise.ledger.verify import (
    COUNTED,
    MISREAD,
    Books,
    Data,
    Event,
    PersonRecord,
    PersonState,
    digest,
)
from equipoise.question import ScoreRecord, Ticket, Want

__all__ = [
    "SNAPSHOT_FORMAT",
    "AuditState",
    "EvidencePoint",
    "RequestLog",
    "replay",
    "to_score_event",
]

SNAPSHOT_FORMAT = 5
KINDS: tuple[Literal["asked", "told", "withdrawn", "corrected"], ...] = (
    "asked",
    "told",
    "withdrawn",
    "corrected",
)
WANTS = (Want.NOTHING, Want.LABEL, Want.SCORE_ONLY)


class AuditState:
    """The audit as of its latest event: the books, statistics as a log, and drift as counts.

    What an event does to people, money and the audit is the rule book's business
    (:class:`~equipoise.ledger.verify.Books`); here it is told to the statistics.

    Parameters
    ----------
    strict
        Keep everybody, make every decision anew and insist that it is the one recorded; otherwise
        what was decided is taken as it is. Decisions made under another edition of the statistics
        always are.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.books = Books({} if strict else None)
        self.settings: Settings
        self.log: RequestLog
        self.drift: DriftCounts
        self._strict = strict

    # -- events -----------------------------------------------------------------------------------

    def take(self, event: Event, own: str, *, ticket: Ticket | None = None) -> PersonRecord | None:
        """Apply the next event; ``ticket`` is given where it was just made by the audit.

        Raises
        ------
        ValueError, LedgerError
            If the event cannot follow those before it, or the statistics say otherwise.
        """
        kind, data, requests = event["type"], event["data"], self.books.requests
        if kind == "verdict" and self._repeats:
            self._check_verdict(event["seq"], data["finding"])
        person = self.books.take(event, own)
        if kind == "created":
            self.settings = Settings.from_data(data)
            self.log = RequestLog(self.settings)
            self.drift = DriftCounts(self.settings.groups)
        elif kind == "asked" and person is not None:
            self._asked(person, data, ticket, requests)
        elif kind == "budget":
            self.log.cap = self.books.head.cap
            self.log.forget()
        elif kind == "upgraded":
            self.log.forget()
        elif kind == "random_accepts":
            self.log.enter_random_accepts(data["random_accepts"], data["corrected"])
        elif person is not None:
            self._heard(kind, person, data)
        return person

    def _asked(
        self, person: PersonRecord, data: Data, ticket: Ticket | None, requests: int
    ) -> None:
        """Enter the request in the log, and insist on it where decisions are made anew."""
        self.drift.arrive(person.group_name, person.number, person.place)
        if person.request is None:
            return
        seen = data.get("observation")
        recorded = Ticket(
            *(person.request, person.group_name, person.decision),
            *(Want(person.want), float(person.hold)),
            None if seen is None else from_score_event(seen),
        )
        made = ticket is not None
        if not made and self._repeats:
            made = True
            self._decide_again(recorded, data, requests)
        # whoever ended the audit, or closed a group for good, has to be asked again in a replay
        if recorded.want is not Want.NOTHING or data.get("ended") or data.get("closed"):
            self.log.enter(Step("asked", recorded), done=made)

    def _heard(self, kind: str, person: PersonRecord, data: Data) -> None:
        """Tell drift and log what became of a person's outcome."""
        if kind in ("revealed", "noted", "corrected") and person.place is not None:
            if kind == "corrected":
                self.drift.reveal(person.group_name, person.place, 1 - data["outcome"], -1)
            self.drift.reveal(person.group_name, person.place, data["outcome"])
        if kind not in ("revealed", "corrected", "withdrawn", "written_off"):
            return
        if kind == "corrected" and data["was"] not in COUNTED:
            return
        assert person.request is not None
        ticket = self.log.tickets[person.request]
        if kind in ("withdrawn", "written_off"):
            step = Step("withdrawn", ticket, cost=float(data.get("cost", 0)))
        elif kind == "corrected" or data["was"] == PersonState.WRITTEN_OFF:
            step = Step("corrected", ticket, data["outcome"])
        else:
            step = Step("told", ticket, data["outcome"])
        self.log.enter(step)

    # -- decisions made anew ----------------------------------------------------------------------

    @property
    def _repeats(self) -> bool:
        return self._strict and not self.foreign

    def _decide_again(self, recorded: Ticket, data: Data, requests: int) -> None:
        audit, record = self.log.audit, recorded.score_record
        finding, closed, assist = audit.finding, audit.closed, self.settings.assist
        ticket = audit.ask(
            *(recorded.group, recorded.decision),
            score=None if record is None else record.score,
            price=None if record is None or not (assist and assist.max_price) else record.price,
            version="" if record is None else record.version,
            draw=None if record is None else record.draw,
            number=requests,
        )
        differs = _difference(ticket, recorded)
        if (audit.finding is not finding) != data.get("ended", False):
            differs = "whether the audit ended there"
        if (audit.closed != closed) != data.get("closed", False):
            differs = "whether the budget closed the group for good"
        if differs:
            raise LedgerError(
                f"event {self.books.head.seq} says that {recorded} was wanted; the audit says "
                f"{ticket}: {differs} is not the same"
            )

    def _check_verdict(self, seq: int, recorded: Mapping[str, Any] | None) -> None:
        found = self.finding()
        again = None if found is None else found.to_dict()
        for name in ("verdict", "lower", "upper", "estimate", "labels", "cost"):
            old = None if recorded is None else recorded[name]
            new = None if again is None else again[name]
            near = isinstance(old, float) and isinstance(new, float) and abs(old - new) < 1e-6
            if old != new and not near:
                raise LedgerError(f"event {seq} records the {name} {old}; the events say {new}")

    # -- what follows from the events -------------------------------------------------------------

    @property
    def foreign(self) -> bool:
        """Whether the audit is weighed by another edition of the statistics than this program's."""
        return self.books.edition != EDITION

    def require_edition(self) -> None:
        """Refuse to go on under statistics that are not this program's."""
        if self.foreign:
            name = self.settings.name
            raise ProtocolError(
                f"audit {name!r} is weighed by edition {self.books.edition} of the statistics "
                f"(equipoise {self.settings.software}), this program has edition {EDITION}: it "
                "can be read, and its chain, books and money verified, but not continued. Use "
                "that version, or let an approver weigh what is recorded by the present edition: "
                f"equipoise audit upgrade {shlex.quote(name)} --why REASON"
            )

    def statistics(self) -> RequestLog:
        """Return what statistics follow from, where this program can compute them."""
        self.require_edition()
        return self.log

    @property
    def ready(self) -> bool:
        """Whether statistics are at hand, or cannot be had here."""
        return self.foreign or self.log.ready

    def finding(self) -> Finding | None:
        """Return what the evidence supports by now, None while the audit is in progress.

        Its cost is the ledger's: what was spent when this verdict was reached.
        """
        books, recorded = self.books, self._recorded()
        if self.foreign:
            return recorded
        finding = self.log.audit.finding
        if finding is None and books.concluded is not None:
            finding = self.log.audit.so_far(books.concluded)
        if finding is None:
            return None
        if recorded is not None and recorded.verdict is finding.verdict and not books.unsettled:
            return replace(finding, cost=recorded.cost)
        return replace(finding, cost=float(books.head.spent + books.head.overrun))

    def _recorded(self) -> Finding | None:
        try:
            recorded = self.books.recorded
            return None if recorded is None else Finding.from_dict(recorded)
        except (EquipoiseError, LookupError, TypeError, ValueError):
            if self.foreign:  # another edition's findings may say other things
                return None
            raise

    def drift_tests(self) -> tuple[DriftTest, ...]:
        """Return whether the present is like the past."""
        return drift_tests(self.drift, self.settings.past, stream=self.settings.stream)

    def check_books(self) -> None:
        """Raise unless the audit object's account agrees with the ledger's."""
        if self.foreign or not self.log.ready:
            return
        head = self.books.head
        mine = head.spent + head.overrun + head.reserved
        theirs = self.log.audit.cost + self.log.audit.reserved
        if mine != theirs and mine < LIMIT:  # corrections may go beyond, where floats are inexact
            raise LedgerError(f"the ledger counts {mine} spent or held, the audit {theirs}")

    def check_tallies(self) -> None:
        """Raise unless the groups add up to the whole."""
        books, head = self.books, self.books.head
        groups = books.groups.values()
        found = [sum(getattr(g, name) for g in groups) for name in ("spent", "reserved", "overrun")]
        people = sum(g.approved + g.denied for g in groups)
        if (*found, people) != (head.spent, head.reserved, head.overrun, books.arrived):
            raise LedgerError("the groups do not add up to the whole")

    # -- snapshots --------------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """Return everything as plain data; of the statistics, the log."""
        return {
            "format": SNAPSHOT_FORMAT,
            "books": self.books.to_data(),
            "drift": self.drift.to_data(),
            "log": self.log.to_data(),
            "random_accepts": self.log.random_accepts,
        }

    def restore(self, data: Data, created: Event) -> None:
        """Become what :meth:`to_data` described, the first event being given."""
        self.take(created, "")
        self.books.restore(data["books"])
        self.drift.restore(data["drift"])
        self.log.restore(data["log"])
        self.log.random_accepts = data["random_accepts"]
        self.log.cap = self.books.head.cap


def replay(events: Iterable[str], state: AuditState) -> AuditState:
    """Apply events in order and return where they lead."""
    for body in events:
        try:
            state.take(json.loads(body), digest(body))
        except MISREAD as error:
            raise LedgerError(f"the events cannot be followed: {error!a}; run verify") from error
    return state


def _difference(ticket: Ticket, recorded: Ticket) -> str:
    """Say in what two decisions differ; computed numbers may do so in their last digits."""
    one, other = ticket.score_record, recorded.score_record
    same = replace(ticket, score_record=None) == replace(recorded, score_record=None)
    if not same or (one is None) != (other is None):
        return "what was wanted"
    for name in () if one is None else ("score", "version", "price", "draw"):
        if getattr(one, name) != getattr(other, name):
            return f"the {name}"
    for name in () if one is None else ("m", "pi", "low", "high"):
        value, known = getattr(one, name), getattr(other, name)
        if abs(value - known) > 1e-9 * max(1.0, abs(known)):
            return name
    return ""


# -- the log of requests --------------------------------------------------------------------------


@dataclass(frozen=True)
class EvidencePoint(JsonValue):
    """What was established about the gap when so many requests had been answered."""

    answers: int
    lower: float
    upper: float
    estimate: float | None


class RequestLog:
    """The log of one audit's requests and answers, and the audit rebuilt from it.

    The steps are the whole truth about the audit object: a fresh one that replays them, with the
    cap as it is now, is where the living one is. So nothing of an audit's inside is ever stored,
    and how evidence is weighed may change without a change of the format.

    ``ready`` says whether the audit object is at hand. It is not after a new cap, nor after a
    corrected answer that the audit cannot take in place; then :attr:`audit` restores it from the
    steps, which takes as long as there are many.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.steps: list[Step] = []
        self.tickets: dict[int, Ticket] = {}  # request -> what was wanted
        # later files of a test programme: after how many steps, counts, outcomes corrected
        self.random_accepts: list[list[Any]] = []
        self.cap = settings.budget
        self._audit: Audit | None = None

    @property
    def ready(self) -> bool:
        """Whether the audit need not be rebuilt."""
        return self._audit is not None

    @property
    def audit(self) -> Audit:
        """The audit as of the last step."""
        if self._audit is None:
            audit = build(self.settings, self.cap)
            try:
                start = 0
                for end, *accepts in self.random_accepts:
                    audit.restore(self.steps[start:end])
                    audit.set_random_accepts(*accepts)
                    start = end
                audit.restore(self.steps[start:])
            except ProtocolError as error:
                raise LedgerError(f"the requests cannot be followed: {error}") from error
            self._audit = audit
        return self._audit

    def trace(self, points: int) -> tuple[EvidencePoint, ...]:
        """Return how the evidence grew, at about so many moments.

        Labels of a test programme count from the beginning, as in its last file.
        """
        steps, audit = self.steps, build(self.settings, self.cap)
        for _, accepts, corrected in self.random_accepts:
            audit.set_random_accepts(accepts, corrected)
        if self.settings.assist is None:  # where scores decided, corrections come in order
            steps = as_corrected(steps)
        answers = [at for at, step in enumerate(steps, start=1) if step.kind != "asked"]
        every = max(1, len(answers) // max(1, points))
        drawn = {at: n for n, at in enumerate(answers, 1) if n % every == 0 or n == len(answers)}
        return (_look(audit, 0), *(_look(audit, drawn[at]) for at in audit.replay(steps, drawn)))

    def enter(self, step: Step, *, done: bool = False) -> None:
        """Enter what happened to a request; ``done`` if the audit object knows it already."""
        self.steps.append(step)
        if step.kind == "asked":
            self.tickets[step.ticket.number] = step.ticket
        if self._audit is None or done:
            return
        if step.kind == "corrected" and not self._audit.correctable:
            self.forget()
        else:
            self._audit.restore([step])

    def enter_random_accepts(self, *accepts: Mapping[str, Any]) -> None:
        """Enter a later file of a test programme, and how many of its outcomes were corrected."""
        self.random_accepts.append([len(self.steps), *accepts])
        if self._audit is not None:
            self._audit.set_random_accepts(*accepts)

    def forget(self) -> None:
        """Let the audit object go; it is rebuilt when it is needed, with the cap as it is then."""
        self._audit = None

    def to_data(self) -> list[list[Any]]:
        """Return a row of small numbers for every step."""
        groups = {group: i for i, group in enumerate(self.settings.groups)}
        rows: list[list[Any]] = []
        for kind, ticket, outcome, _, cost in self.steps:
            value = outcome if cost is None else int(cost)
            row: list[Any] = [KINDS.index(kind), ticket.number, value]
            if kind == "asked":
                want, record = WANTS.index(ticket.want), ticket.score_record
                row[2:] = [groups[ticket.group], ticket.decision, want, int(ticket.hold)]
                row += [] if record is None else [to_score_event(record)]
            rows.append(row)
        return rows

    def restore(self, rows: Iterable[Sequence[Any]]) -> None:
        """Become what :meth:`to_data` described."""
        for kind, number, value, *more in rows:
            if KINDS[kind] == "asked":
                decision, want, hold, *seen = more
                record = from_score_event(seen[0]) if seen else None
                about = (number, self.settings.groups[value], decision)
                self.enter(Step("asked", Ticket(*about, WANTS[want], float(hold), record)))
                continue
            cost = float(value) if KINDS[kind] == "withdrawn" else None
            outcome = value if cost is None else None
            self.enter(Step(KINDS[kind], self.tickets[number], outcome, cost=cost))


def to_score_event(record: ScoreRecord) -> dict[str, Any]:
    """Return a score record as an event holds it: money whole, the draw as a number of 53 bits."""
    return {
        "score": record.score,
        "version": record.version,
        "price": int(record.price),
        "m": record.m,
        "pi": record.pi,
        "range": [record.low, record.high],
        "draw": int(record.draw * 2**53),
    }


def from_score_event(data: Mapping[str, Any]) -> ScoreRecord:
    """Return the score record that an event holds."""
    low, high = data["range"]
    return ScoreRecord(
        *(data["score"], data["version"], float(data["price"]), data["m"], data["pi"], low, high),
        draw=data["draw"] / 2**53,
    )


def _look(audit: Audit, answers: int) -> EvidencePoint:
    finding = audit.so_far()
    return EvidencePoint(answers, finding.lower, finding.upper, finding.estimate)
