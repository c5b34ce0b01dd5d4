"""An audit's present state, which is nothing but its events applied in order."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

from equipoise import evidence
from equipoise._json import JsonValue
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit, Step, apply_corrections
from equipoise.errors import EquipoiseError, LedgerError, ProtocolError
from equipoise.finding import Finding
from equipoise.ledger.drift import DriftCounts, DriftTest, drift_tests
from equipoise.ledger.inputs import LIMIT
from equipoise.ledger.settings import Settings, build
from equipoise.ledger.verify import (
    DRAW_RANGE,
    FORGED_DATA_ERRORS,
    UNASKED,
    Data,
    Event,
    LedgerRules,
    PersonRecord,
    PersonState,
    digest,
)
from equipoise.ledger.waiting import ArrivalRecord, WaitingGroup
from equipoise.messages.refusals import Refusal, to_python
from equipoise.protocol import ScoreRecord, Ticket, Want
from equipoise.question import Verdict

COMPARED_FINDING_FIELDS = (
    *("verdict", "question", "lower", "upper", "estimate", "rates", "decided_by"),
    *("labels", "features", "score_only", "cost", "p_hat", "q_hat"),
)
"""What of a recorded finding must be computed again; its sentences may be worded otherwise."""

COMPARED_PROOF_FIELDS = ("guaranteed", "proof", "error_level", "range_level")
"""The same, of findings that record a proof. Older ones used "guaranteed" in a wider sense."""


@dataclass(frozen=True)
class EvidencePoint(JsonValue):
    """What was established when so many requests had been answered.

    Attributes
    ----------
    answers, people
        Requests that were answered, and people who had arrived.
    lower, upper, estimate
        The range of the gap, and the estimate where there is one.
    for_fair, for_unfair
        The smallest e-value against the ways in which this answer is wrong
        (:meth:`~equipoise.evidence.Evidence.evidence_for`). The answer is given once it reaches
        ``fair_needs`` or ``unfair_needs``. None for the published audits, which have no e-values.
    """

    answers: int
    lower: float
    upper: float
    estimate: float | None
    people: int = 0
    for_fair: float | None = None
    for_unfair: float | None = None
    fair_needs: float | None = None
    unfair_needs: float | None = None


@dataclass(frozen=True)
class SpendingPoint(JsonValue):
    """What was spent, in minor units, when so many people had arrived."""

    people: int
    spent: int


class AuditState:
    """The audit as of its latest event: the rules, a log of requests and answers, drift counts.

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
        self.arrivals = ArrivalRecord()
        self.steps: list[Step] = []
        self.steps_before_verdict = 0  # how many of them the last verdict event came after
        # later files of a test programme: after how many steps, counts, outcomes corrected
        self.random_accepts: list[tuple[Any, ...]] = []
        self.tickets: dict[int, Ticket] = {}  # request -> what was wanted
        # the event whose state came from the cache (ledger/state_cache.py); None if none did
        self.cached_seq: int | None = None
        # request -> people who had arrived when it was answered; of a state from the chain
        self.people_at_answer: dict[int, int] = {}
        self.spending_points: list[SpendingPoint] = []  # whenever the amount changed; the same
        self._audit: Audit | None = None
        # the last steps of the log, which the audit object does not have yet
        self._corrections: list[Step] = []
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
        kind = event["type"]
        data = event["data"]
        # Before the event is applied: rules.apply counts the request that an arrival takes, and the
        # verdict must follow from the events before it.
        request = self.rules.requests
        if kind == "verdict" and self._decides_again:
            self._check_verdict(event["seq"], data["finding"])
        person = self.rules.apply(event, event_hash)
        if kind == "created":
            self.settings = Settings.from_data(data)
            self.drift = DriftCounts(self.settings.groups)
            self.arrivals.began = event["time"]
        elif kind == "asked" and person is not None:
            self.arrivals.arrive(person.group_name, person.decision, person.why, event["time"])
            self._enter_arrival(person, data, ticket, request)
        elif kind in ("budget", "upgraded"):
            # Both change what the audit would have asked, so the object is built anew.
            self.forget()
        elif kind == "random_accepts":
            self._enter_random_accepts(data["random_accepts"], data["corrected"])
        elif kind == "verdict":
            self.steps_before_verdict = len(self.steps)
        elif person is not None:
            self._enter_outcome(kind, person, data)
        self._note_spending()
        return person

    def _note_spending(self) -> None:
        spent = self.rules.head.spent
        last_spent = self.spending_points[-1].spent if self.spending_points else 0
        if spent != last_spent:
            self.spending_points.append(SpendingPoint(self._people_arrived, spent))

    @property
    def _people_arrived(self) -> int:
        tallies = self.rules.people.groups.values()
        return sum(tally.approved + tally.denied for tally in tallies)

    def _enter_arrival(
        self, person: PersonRecord, data: Data, ticket: Ticket | None, request: int
    ) -> None:
        """Enter an arrival in the log; where decisions are made anew, check it first."""
        self.drift.arrive(person.group_name, person.number, person.place)
        if person.request is None:
            return
        observation = data.get("observation")
        recorded = Ticket(
            person.request,
            person.group_name,
            person.decision,
            Want(person.want),
            float(person.hold),
            None if observation is None else _from_score_event(observation),
        )
        if ticket is None and self._decides_again:
            self._decide_again(recorded, data, request)
        # A replay has to ask again about whoever ended the audit or closed a group for good.
        if recorded.want is not Want.NOTHING or data.get("ended") or data.get("closed"):
            self.tickets[recorded.number] = recorded
            knows_step = ticket is not None or self._decides_again
            self._enter(Step("asked", recorded), knows_step=knows_step)

    def _enter_random_accepts(self, counts: Data, corrected: Data) -> None:
        """Enter a later file of a test programme."""
        self.random_accepts.append((len(self.steps), counts, corrected))
        if self._audit is not None:
            self.audit.set_random_accepts(counts, corrected)

    def _enter_outcome(self, kind: str, person: PersonRecord, data: Data) -> None:
        """Enter what became of a person's outcome in the drift counts and in the log."""
        outcome = data.get("outcome")
        if outcome is not None and person.place is not None:
            if kind == "corrected":
                # The outcome that was counted before is taken out.
                self.drift.reveal(person.group_name, person.place, 1 - outcome, -1)
            self.drift.reveal(person.group_name, person.place, outcome)
        # The log has what the audit must know: answers to what it asked. Outcomes that nobody asked
        # for, and events that bring none, stay out of it.
        is_given_up = kind in ("withdrawn", "written_off")
        if not is_given_up and (outcome is None or data["was"] in UNASKED):
            return
        assert person.request is not None
        ticket = self.tickets[person.request]
        if is_given_up:
            self._enter(Step("withdrawn", ticket, cost=float(data.get("cost", 0))))
        else:
            # To the audit a write-off was an answer, so an outcome after it corrects that answer.
            is_revised = kind == "corrected" or data["was"] == PersonState.WRITTEN_OFF
            self._enter(Step("corrected" if is_revised else "told", ticket, outcome))

    def _enter(self, step: Step, *, knows_step: bool = False) -> None:
        """Enter a step in the log, and in the audit object unless it knows the step already."""
        self.steps.append(step)
        # Of several answers the first counts: a correction does not move the point in time.
        if step.kind != "asked":
            self.people_at_answer.setdefault(step.ticket.number, self._people_arrived)
        # Without an object there is nothing to tell: one is built from the whole log when needed.
        if self._audit is None or knows_step:
            return
        if step.kind != "corrected":
            self.audit.restore([step])
        elif self._audit.correctable:
            # A run of corrections is weighed once, at its end: that takes as long as for one.
            self._corrections.append(step)
        else:
            # Some audits cannot change an answer in place: later requests depend on it.
            self.forget()

    # -- statistics -------------------------------------------------------------------------------

    @property
    def audit(self) -> Audit:
        """The audit as of the last step.

        It is rebuilt from the log, which takes as long as that is, when the program has just
        started, after a new cap, and after a corrected answer that it cannot take in place.
        """
        self.require_edition()
        try:
            if self._audit is None:
                self._audit = self._rebuild()
            elif self._corrections:
                self._audit.restore(self._corrections)
        except (ProtocolError, AssertionError, *FORGED_DATA_ERRORS) as error:
            raise LedgerError(f"the requests cannot be followed: {error!a}; run verify") from error
        self._corrections = []
        return self._audit

    @property
    def audit_in_memory(self) -> Audit | None:
        """The audit as of the last step if it was built and not forgotten since, else None."""
        return self._audit

    def _rebuild(self) -> Audit:
        """Return a new audit object that has gone through the whole log."""
        audit = build(self.settings, self.rules.head.cap)
        # A later file of the test programme takes effect at its place in the log.
        start = 0
        for end, counts, corrected in self.random_accepts:
            audit.restore(self.steps[start:end])
            audit.set_random_accepts(counts, corrected)
            start = end
        audit.restore(self.steps[start:])
        return audit

    def forget(self) -> None:
        """Let the audit object go; it is rebuilt when it is needed, with the cap as it is then."""
        self._audit = None
        self._corrections = []

    def evidence_history(self, points: int) -> tuple[EvidencePoint, ...]:
        """Return how the evidence grew, at about so many moments.

        Labels of a test programme count from the beginning, as in its last file.
        """
        self.require_edition()
        audit = build(self.settings, self.rules.head.cap)
        for _, counts, corrected in self.random_accepts:
            audit.set_random_accepts(counts, corrected)
        steps = self.steps
        if self.settings.assist is None:  # where scores decided, corrections come in order
            steps = apply_corrections(steps)
        answer_places = [place for place, step in enumerate(steps, start=1) if step.kind != "asked"]
        n_answers = len(answer_places)
        stride = max(1, n_answers // max(1, points))
        # place in the log -> how many answers there are until there
        answers_at = {
            place: number
            for number, place in enumerate(answer_places, start=1)
            if number % stride == 0 or number == n_answers
        }
        history = [_evidence_point(audit, 0, 0)]
        for place in audit.replay(steps, answers_at):
            people = self.people_at_answer.get(steps[place - 1].ticket.number, 0)
            history.append(_evidence_point(audit, answers_at[place], people))
        return tuple(history)

    def spending_history(self, points: int) -> tuple[SpendingPoint, ...]:
        """Return what was spent over time, at about so many moments, the last one now."""
        path = [SpendingPoint(0, 0), *self.spending_points]
        stride = max(1, len(path) // max(1, points))
        current_point = SpendingPoint(self._people_arrived, self.rules.head.spent)
        return (*path[:-1:stride], path[-1], current_point)

    @property
    def is_from_chain(self) -> bool:
        """Whether every event was applied, so that nothing rests on the cache."""
        return self.cached_seq is None

    # -- decisions made anew ----------------------------------------------------------------------

    @property
    def _decides_again(self) -> bool:
        """Whether decisions are made anew, which only their own edition can do."""
        return self._strict and not self.has_other_edition

    def _decide_again(self, recorded: Ticket, data: Data, request: int) -> None:
        """Ask the audit again and refuse an event that records another decision."""
        audit = self.audit
        finding_before = audit.finding
        closed_before = audit.closed
        ticket = audit.ask(
            recorded.group,
            recorded.decision,
            number=request,
            **self._score_arguments(recorded.score_record),
        )
        repeated = {
            "ended": audit.finding is not finding_before,
            "closed": audit.closed != closed_before,
        }
        stored = {name: data.get(name, False) for name in repeated}
        if repeated != stored or not _same_decision(ticket, recorded):
            raise LedgerError(
                f"event {self.rules.head.seq} says that {recorded!r} was wanted, {stored}; the "
                f"audit says {ticket!r}, {repeated}"
            )

    def _score_arguments(self, record: ScoreRecord | None) -> dict[str, Any]:
        """Return the arguments of ``ask`` that a recorded score stands for."""
        if record is None:
            return {}
        # Without prices of their own the record has the common one, which ask refuses to be told.
        assist = self.settings.assist
        has_own_price = assist is not None and bool(assist.max_price)
        return {
            "score": record.score,
            "price": record.price if has_own_price else None,
            "version": record.version,
            "draw": record.draw,
        }

    @property
    def has_steps_since_verdict(self) -> bool:
        """Whether answers came after the last verdict event, which its finding does not count."""
        return self.steps_before_verdict < len(self.steps)

    def check_recorded_finding(self) -> None:
        """Raise unless the log led to the finding in the last verdict event, when that came."""
        rules = self.rules
        if rules.recorded is None or rules.verdict_seq is None:
            return
        if not self.has_steps_since_verdict:
            self._check_verdict(rules.verdict_seq, rules.recorded)
            return
        earlier = copy.copy(self)
        earlier.steps = self.steps[: self.steps_before_verdict]
        earlier.forget()
        # The books have what was spent since, and were compared with the tables.
        fields = tuple(name for name in COMPARED_FINDING_FIELDS if name != "cost")
        earlier._check_verdict(rules.verdict_seq, rules.recorded, fields)

    def _check_verdict(
        self,
        seq: int,
        recorded: Mapping[str, Any] | None,
        fields: tuple[str, ...] = COMPARED_FINDING_FIELDS,
    ) -> None:
        """Raise unless a recorded finding is the one that follows from the events before it."""
        finding = self.finding()
        recomputed = None if finding is None else finding.to_dict()
        if recorded is None or recomputed is None:
            if recorded is not recomputed:  # one of them says that the audit is in progress
                raise LedgerError(
                    f"event {seq} records {_verdict_of(recorded)}; the events before it lead to "
                    f"{_verdict_of(recomputed)}"
                )
            return
        if "proof" in recorded:
            fields += COMPARED_PROOF_FIELDS
        for name in fields:
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
            raise self.refuse(
                ProtocolError,
                "other-edition",
                edition=self.rules.edition,
                software=self.settings.software,
                program_edition=evidence.EDITION,
            )

    def refuse(self, error_class: type[EquipoiseError], code: str, **facts: Any) -> EquipoiseError:
        """Return the error of a refusal, which carries it as data (``error.refusal``)."""
        refusal = Refusal(code, facts, self.settings.name)
        error = error_class(to_python(refusal))
        error.refusal = refusal
        return error

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
        head = self.rules.head
        return replace(
            self.audit.so_far(why),
            cost=float(head.spent + head.overrun),
            currency=self.settings.currency,
            decimals=self.settings.decimals,
        )

    def drift_tests(self) -> tuple[DriftTest, ...]:
        """Return whether the present is like the historical data."""
        settings = self.settings
        return drift_tests(self.drift, settings.compared_past, stream=settings.stream)

    def waiting_for(self, time: str | None = None) -> tuple[WaitingGroup, ...]:
        """Return the groups that an adaptive audit wants outcomes of and that do not arrive.

        Days are counted to ``time``, or to the last event: a replay must not depend on the clock.
        """
        has_ended = self.rules.recorded is not None or self.rules.concluded is not None
        if has_ended or not self.arrivals.is_stalled or self.has_other_edition:
            return ()
        audit = self.audit
        if not isinstance(audit, AdaptiveAudit) or audit.finding is not None:
            return ()
        return self.arrivals.waiting_for(audit.wanted_groups(), time or self.rules.head.time)

    def check_books(self) -> None:
        """Raise unless the audit object's account agrees with the ledger's."""
        if self.has_other_edition:
            return
        head = self.rules.head
        in_ledger = head.spent + head.overrun + head.reserved
        in_audit = self.audit.cost + self.audit.reserved
        # Corrections may go beyond the limit, where floats are inexact.
        if in_ledger != in_audit and in_ledger < LIMIT:
            raise LedgerError(f"the ledger counts {in_ledger} spent or held, the audit {in_audit}")


def replay(events: Iterable[str], state: AuditState) -> AuditState:
    """Apply events in order and return where they lead."""
    for body in events:
        try:
            state.apply(json.loads(body), digest(body))
        except FORGED_DATA_ERRORS as error:
            raise LedgerError(f"the events cannot be followed: {error!a}; run verify") from error
    return state


def _same_decision(ticket: Ticket, recorded: Ticket) -> bool:
    """Whether two decisions are one; computed numbers may differ in their last digits."""
    if replace(ticket, score_record=None) != replace(recorded, score_record=None):
        return False
    if ticket.score_record is None or recorded.score_record is None:
        return ticket.score_record is recorded.score_record
    pairs = zip(astuple(ticket.score_record), astuple(recorded.score_record), strict=True)
    return all(_is_close(computed, stored) for computed, stored in pairs)


def _is_close(computed: object, stored: object) -> bool:
    if isinstance(computed, float) and isinstance(stored, float):
        return computed == stored or math.isclose(computed, stored, abs_tol=1e-9)
    return computed == stored


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
        "draw": int(record.draw * DRAW_RANGE),
    }


def _from_score_event(data: Mapping[str, Any]) -> ScoreRecord:
    """Return the score record that an event holds."""
    low, high = data["range"]
    return ScoreRecord(
        score=data["score"],
        version=data["version"],
        price=float(data["price"]),
        m=data["m"],
        pi=data["pi"],
        low=low,
        high=high,
        draw=data["draw"] / DRAW_RANGE,
    )


def _evidence_point(audit: Audit, answers: int, people: int) -> EvidencePoint:
    gap = audit.gap_so_far()
    point = EvidencePoint(answers, gap.lower, gap.upper, gap.estimate, people)
    if not isinstance(audit, AdaptiveAudit) or audit.evidence is None:
        return point
    for_fair = audit.evidence.refutation.evidence_for(Verdict.FAIR)
    for_unfair = audit.evidence.refutation.evidence_for(Verdict.UNFAIR)
    return replace(
        point,
        for_fair=for_fair.e_value,
        for_unfair=for_unfair.e_value,
        fair_needs=for_fair.needed,
        unfair_needs=for_unfair.needed,
    )
