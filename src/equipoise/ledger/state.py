"""An audit's present state, which is nothing but its events applied in order."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from equipoise import evidence
from equipoise._json import JsonValue
from equipoise.audits.base import Audit, Step, apply_corrections
from equipoise.errors import EquipoiseError, LedgerError, ProtocolError
from equipoise.finding import Finding
from equipoise.ledger.drift import DriftCounts, DriftTest, drift_tests
from equipoise.ledger.inputs import LIMIT
from equipoise.ledger.settings import Settings, build
from equipoise.ledger.verify import (
    MISREAD,
    UNASKED,
    Data,
    Event,
    LedgerRules,
    PersonRecord,
    PersonState,
    digest,
)
from equipoise.protocol import ScoreRecord, Ticket, Want

COMPARED_FINDING_FIELDS = (
    *("verdict", "question", "lower", "upper", "estimate", "rates", "decided_by", "guaranteed"),
    *("labels", "features", "score_only", "cost", "p_hat", "q_hat"),
)
"""What of a recorded finding must be computed again; its sentences may be worded otherwise."""


@dataclass(frozen=True)
class EvidencePoint(JsonValue):
    """What was established about the gap when so many requests had been answered."""

    answers: int
    lower: float
    upper: float
    estimate: float | None


class AuditState:
    """The audit as of its latest event: the books, a log of requests and answers, drift as counts.

    What an event does to people, money and the audit is up to the rule book
    (:class:`~equipoise.ledger.verify.LedgerRules`); this class passes it on to the statistics. The
    log determines the audit object: a new one that replays it, with the cap as it is now, is in the
    same state. So nothing of an audit object is ever stored, and how evidence is weighed may change
    without a change of the format.

    Parameters
    ----------
    strict
        Keep everybody, make every decision anew and insist that it is the one recorded. Otherwise,
        and for decisions made under another edition of the statistics, what is recorded is taken
        as it is.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.rules = LedgerRules({} if strict else None)
        self.settings: Settings
        self.drift: DriftCounts
        self.steps: list[Step] = []
        # later files of a test programme: after how many steps, counts, outcomes corrected
        self.random_accepts: list[tuple[Any, ...]] = []
        self._tickets: dict[int, Ticket] = {}  # request -> what was wanted
        self._audit: Audit | None = None
        self._strict = strict

    # -- events -----------------------------------------------------------------------------------

    def apply(
        self, event: Event, event_hash: str, *, ticket: Ticket | None = None
    ) -> PersonRecord | None:
        """Apply the next event; return the person whom it is about.

        ``ticket`` is given where the audit has just issued it.

        Raises
        ------
        ValueError, LedgerError
            If the event cannot follow those before it, or the statistics say otherwise.
        """
        kind, data, requests = event["type"], event["data"], self.rules.requests
        if kind == "verdict" and self._repeats:
            self._check_verdict(event["seq"], data["finding"])
        person = self.rules.apply(event, event_hash)
        if kind == "created":
            self.settings = Settings.from_data(data)
            self.drift = DriftCounts(self.settings.groups)
        elif kind == "asked" and person is not None:
            self._asked(person, data, ticket, requests)
        elif kind in ("budget", "upgraded"):
            self.forget()
        elif kind == "random_accepts":
            accepts = data["random_accepts"], data["corrected"]
            self.random_accepts.append((len(self.steps), *accepts))
            if self._audit is not None:
                self._audit.set_random_accepts(*accepts)
        elif person is not None:
            self._learn(kind, person, data)
        return person

    def _asked(
        self, person: PersonRecord, data: Data, ticket: Ticket | None, requests: int
    ) -> None:
        """Enter the request in the log; where decisions are made anew, check it first."""
        self.drift.arrive(person.group_name, person.number, person.place)
        if person.request is None:
            return
        seen = data.get("observation")
        recorded = Ticket(
            *(person.request, person.group_name, person.decision),
            *(Want(person.want), float(person.hold)),
            None if seen is None else _from_score_event(seen),
        )
        if ticket is None and self._repeats:
            self._decide_again(recorded, data, requests)
        # whoever ended the audit, or closed a group for good, has to be asked again in a replay
        if recorded.want is not Want.NOTHING or data.get("ended") or data.get("closed"):
            self._tickets[recorded.number] = recorded
            self._enter(Step("asked", recorded), knows=ticket is not None or self._repeats)

    def _learn(self, kind: str, person: PersonRecord, data: Data) -> None:
        """Enter what became of a person's outcome in the drift counts and in the log."""
        outcome = data.get("outcome")
        if outcome is not None and person.place is not None:
            if kind == "corrected":
                self.drift.reveal(person.group_name, person.place, 1 - outcome, -1)
            self.drift.reveal(person.group_name, person.place, outcome)
        given_up = kind in ("withdrawn", "written_off")
        if not given_up and (outcome is None or data["was"] in UNASKED):
            return
        assert person.request is not None
        ticket = self._tickets[person.request]
        if given_up:
            self._enter(Step("withdrawn", ticket, cost=float(data.get("cost", 0))))
        else:
            revised = kind == "corrected" or data["was"] == PersonState.WRITTEN_OFF
            self._enter(Step("corrected" if revised else "told", ticket, outcome))

    def _enter(self, step: Step, *, knows: bool = False) -> None:
        """Enter a step in the log, and in the audit object unless it ``knows`` the step already."""
        self.steps.append(step)
        if self._audit is None or knows:
            return
        if step.kind == "corrected" and not self._audit.correctable:
            self.forget()
        else:
            self._audit.restore([step])

    # -- statistics -------------------------------------------------------------------------------

    @property
    def audit(self) -> Audit:
        """The audit as of the last step.

        It is rebuilt from the log, which takes as long as that is, when the program has just
        started, after a new cap, and after a corrected answer that it cannot take in place.
        """
        self.require_edition()
        if self._audit is None:
            try:
                audit, start = build(self.settings, self.rules.head.cap), 0
                for end, *accepts in self.random_accepts:
                    audit.restore(self.steps[start:end])
                    audit.set_random_accepts(*accepts)
                    start = end
                audit.restore(self.steps[start:])
            except (ProtocolError, AssertionError, *MISREAD) as error:  # of a forged log
                raise LedgerError(
                    f"the requests cannot be followed: {error!a}; run verify"
                ) from error
            self._audit = audit
        return self._audit

    def forget(self) -> None:
        """Let the audit object go; it is rebuilt when it is needed, with the cap as it is then."""
        self._audit = None

    def trace(self, points: int) -> tuple[EvidencePoint, ...]:
        """Return how the evidence grew, at about so many moments.

        Labels of a test programme count from the beginning, as in its last file.
        """
        self.require_edition()
        steps, audit = self.steps, build(self.settings, self.rules.head.cap)
        for _, accepts, corrected in self.random_accepts:
            audit.set_random_accepts(accepts, corrected)
        if self.settings.assist is None:  # where scores decided, corrections come in order
            steps = apply_corrections(steps)
        answers = [at for at, step in enumerate(steps, start=1) if step.kind != "asked"]
        every = max(1, len(answers) // max(1, points))
        drawn = {at: n for n, at in enumerate(answers, 1) if n % every == 0 or n == len(answers)}
        return (_point(audit, 0), *(_point(audit, drawn[at]) for at in audit.replay(steps, drawn)))

    # -- decisions made anew ----------------------------------------------------------------------

    @property
    def _repeats(self) -> bool:
        return self._strict and not self.has_other_edition

    def _decide_again(self, recorded: Ticket, data: Data, requests: int) -> None:
        audit, record = self.audit, recorded.score_record
        finding, closed, assist = audit.finding, audit.closed, self.settings.assist
        ticket = audit.ask(
            *(recorded.group, recorded.decision),
            score=None if record is None else record.score,
            price=None if record is None or not (assist and assist.max_price) else record.price,
            version="" if record is None else record.version,
            draw=None if record is None else record.draw,
            number=requests,
        )
        made = {"ended": audit.finding is not finding, "closed": audit.closed != closed}
        known = {name: data.get(name, False) for name in made}
        if made != known or not _same_decision(ticket, recorded):
            raise LedgerError(
                f"event {self.rules.head.seq} says that {recorded!r} was wanted, {known}; the "
                f"audit says {ticket!r}, {made}"
            )

    def _check_verdict(self, seq: int, recorded: Mapping[str, Any] | None) -> None:
        """Raise unless a recorded finding is the one that follows from the events before it."""
        finding = self.finding()
        recomputed = None if finding is None else finding.to_dict()
        if recorded is None or recomputed is None:
            if recorded is not recomputed:
                raise LedgerError(
                    f"event {seq} records {_verdict_of(recorded)}; the events before it lead to "
                    f"{_verdict_of(recomputed)}"
                )
            return
        for name in COMPARED_FINDING_FIELDS:
            stored = recorded.get(name)
            expected = recomputed.get(name)
            if not _same_numbers(stored, expected):
                raise LedgerError(
                    f"event {seq} records the {name} {stored}; the events say {expected}"
                )

    # -- what follows from the events -------------------------------------------------------------

    @property
    def has_other_edition(self) -> bool:
        """Whether the audit is weighed by another edition of the statistics than this program's."""
        return self.rules.edition != evidence.EDITION

    def require_edition(self) -> None:
        """Refuse to go on under statistics that are not this program's."""
        if self.has_other_edition:
            name = self.settings.name
            raise ProtocolError(
                f"audit {name!r} is weighed by edition {self.rules.edition} of the statistics "
                f"(equipoise {self.settings.software}), this program has edition "
                f"{evidence.EDITION}: it can be read, and its chain, books and money verified, but "
                "not continued. Use that version, or let an approver weigh what is recorded by the "
                f"present edition: equipoise audit upgrade {shlex.quote(name)} --why REASON"
            )

    def finding(self) -> Finding | None:
        """Return what the evidence supports by now, None while the audit is in progress."""
        rules = self.rules
        if self.has_other_edition:
            try:
                return None if rules.recorded is None else Finding.from_dict(rules.recorded)
            except (EquipoiseError, LookupError, TypeError, ValueError):
                return None  # another edition's findings may say other things
        if self.audit.finding is None and rules.concluded is None:
            return None
        return self.so_far(f"concluded ({rules.concluded!r}) before the evidence decided")

    def so_far(self, why: str = "the audit goes on") -> Finding:
        """Return what the evidence would support if nobody else came; the cost is the ledger's."""
        head, said = self.rules.head, self.settings
        found, cost = self.audit.so_far(why), float(head.spent + head.overrun)
        return replace(found, cost=cost, currency=said.currency, decimals=said.decimals)

    def drift_tests(self) -> tuple[DriftTest, ...]:
        """Return whether the present is like the past."""
        return drift_tests(self.drift, self.settings.past, stream=self.settings.stream)

    def check_books(self) -> None:
        """Raise unless the audit object's account agrees with the ledger's."""
        if self.has_other_edition:
            return
        head = self.rules.head
        mine = head.spent + head.overrun + head.reserved
        theirs = self.audit.cost + self.audit.reserved
        if mine != theirs and mine < LIMIT:  # corrections may go beyond, where floats are inexact
            raise LedgerError(f"the ledger counts {mine} spent or held, the audit {theirs}")


def replay(events: Iterable[str], state: AuditState) -> AuditState:
    """Apply events in order and return where they lead."""
    for body in events:
        try:
            state.apply(json.loads(body), digest(body))
        except MISREAD as error:
            raise LedgerError(f"the events cannot be followed: {error!a}; run verify") from error
    return state


def _same_decision(one: Ticket, other: Ticket) -> bool:
    """Whether two decisions are one; computed numbers may differ in their last digits."""
    (*own, seen), (*known, recorded) = astuple(one), astuple(other)
    if own != known or (seen is None) != (recorded is None):
        return False
    return all(
        a == b
        or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, abs_tol=1e-9))
        for a, b in zip(seen or (), recorded or (), strict=True)
    )


def _verdict_of(finding: Mapping[str, Any] | None) -> str:
    return "no verdict" if finding is None else f"the verdict {finding['verdict']}"


def _same_numbers(stored: object, recomputed: object) -> bool:
    """Whether two plain values are one; computed numbers may differ in their last digits."""
    if isinstance(stored, float) and isinstance(recomputed, float):
        return abs(stored - recomputed) < 1e-6
    if isinstance(stored, Mapping) and isinstance(recomputed, Mapping):
        return stored.keys() == recomputed.keys() and all(
            _same_numbers(stored[name], recomputed[name]) for name in stored
        )
    if isinstance(stored, list) and isinstance(recomputed, list):
        return len(stored) == len(recomputed) and all(map(_same_numbers, stored, recomputed))
    return stored == recomputed


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


def _from_score_event(data: Mapping[str, Any]) -> ScoreRecord:
    """Return the score record that an event holds."""
    low, high = data["range"]
    return ScoreRecord(
        *(data["score"], data["version"], float(data["price"]), data["m"], data["pi"], low, high),
        draw=data["draw"] / 2**53,
    )


def _point(audit: Audit, answers: int) -> EvidencePoint:
    finding = audit.so_far()
    return EvidencePoint(answers, finding.lower, finding.upper, finding.estimate)
