"""An audit's present state, which is nothing but its events applied in order."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.audits.base import Audit
from equipoise.errors import LedgerError
from equipoise.finding import Finding
from equipoise.ledger.drift import DriftCounts
from equipoise.ledger.settings import Settings, build
from equipoise.ledger.verify import GENESIS
from equipoise.question import Ticket, Want

__all__ = ["GroupTally", "Projection", "answers_revised", "replay"]

Event = Mapping[str, Any]


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

    @property
    def answered(self) -> int:
        """Requests that are settled, one way or another."""
        settled = ("REVEALED", "CORRECTED", "DESCRIBED", "WITHDRAWN", "WRITTEN_OFF")
        return sum(self.states[state] for state in settled)


class Projection:
    """The audit as of its latest event.

    The audit object sees requests and answers; money, people and drift are counted here. An
    answer that is changed after statistics have seen it (a correction, an outcome after the
    write-off) cannot be taken back from the audit object: then ``stale`` is set and the projection
    must be made anew, with ``answers`` saying what those people's outcomes are by now.
    """

    def __init__(
        self, answers: Mapping[str, int] | None = None, upto: int = 0, *, strict: bool = False
    ) -> None:
        self.seq = 0
        self.head = GENESIS
        self.time = ""
        self.settings: Settings
        self.audit: Audit
        self.groups: dict[str, GroupTally] = {}
        self.drift: DriftCounts
        self.spent = 0  # money gone
        self.reserved = 0  # money held for requests without an answer
        self.overrun = 0  # money beyond the cap, possible only through corrections
        self.closed: str | None = None
        self.erased = False
        self.recorded: dict[str, Any] | None = None  # the finding in the last verdict event
        self.verdict_seq: int | None = None
        self.conflicts = 0
        self.late = 0
        self.revised = 0
        self.stale = False
        self.blind = False  # features are gone: money can be counted, statistics cannot be repeated
        self._answers = dict(answers or {})
        self._answers_upto = upto  # the event up to which they include all changes
        self._strict = strict and not self._answers
        self._open: dict[str, Ticket] = {}

    # -- what follows from the events -------------------------------------------------------------

    @property
    def open_requests(self) -> int:
        """Requests without an answer."""
        return len(self._open)

    def in_flight_limit_reached(self, group: str) -> bool:
        """Whether delay forbids another request now.

        The answer must not depend on the person who arrived, only on the past; and where one
        stream of everybody is counted (Baseline) nobody may pass while a single group waits.
        """
        settings = self.settings
        limit, limits = settings.max_in_flight, settings.max_in_flight_groups
        if limit is not None and sum(g.in_flight for g in self.groups.values()) >= limit:
            return True
        whom = [group] if getattr(self.audit, "within_group", True) else self.settings.groups
        return any(g in limits and self.groups[g].in_flight >= limits[g] for g in whom)

    def finding(self) -> Finding | None:
        """Return what the evidence supports by now, None while the audit goes on."""
        if self.erased:
            return None if self.recorded is None else Finding.from_dict(self.recorded)
        if self.blind:
            raise LedgerError("features are missing, so the statistics cannot be repeated")
        if self.audit.finding is not None or self.closed is None:
            return self.audit.finding
        # A copy concludes, so that outcomes which arrive later can still be taken in.
        return copy.deepcopy(self.audit).conclude(self.closed)

    def check_books(self) -> None:
        """Raise unless the audit object's account agrees with the ledger's."""
        mine = self.spent + self.overrun + self.reserved
        theirs = self.audit.cost + self.audit.reserved
        if not (self.stale or self.blind or self.erased) and mine != theirs:
            raise LedgerError(f"the ledger counts {mine} spent or held, the audit {theirs}")

    def knowledge(self) -> dict[str, Any]:
        """Return all that the events determine, however the projection was made."""
        made = ("_answers", "_answers_upto", "_strict", "stale")
        return {name: value for name, value in vars(self).items() if name not in made}

    # -- events -----------------------------------------------------------------------------------

    def take(
        self,
        event: Event,
        digest: str,
        *,
        ticket: Ticket | None = None,
        features: Sequence[float] | None = None,
    ) -> None:
        """Apply the next event; ``ticket`` is given where it was just made by the audit."""
        kind, data = event["type"], event["data"]
        self.seq, self.time, self.head = event["seq"], event["time"], digest
        if kind == "asked":
            self._asked(data, ticket)
        elif kind in ("revealed", "described"):
            getattr(self, f"_{kind}")(data, features)
        else:
            getattr(self, f"_{kind}")(data)

    def _created(self, data: Mapping[str, Any]) -> None:
        self.settings = Settings.from_data(data)
        self.audit = build(self.settings)
        self.groups = {group: GroupTally() for group in self.settings.groups}
        self.drift = DriftCounts(self.settings.groups)

    def _asked(self, data: Mapping[str, Any], ticket: Ticket | None) -> None:
        group, decision, want = data["group"], data["decision"], data["want"]
        tally = self.groups[group]
        if decision:
            tally.approved += 1
        else:
            tally.denied += 1
        self.drift.arrive(group, decision)
        if ticket is None and data["number"] is not None:
            ticket = self._ask_again(data)
            if ticket.number != data["number"] or ticket.want != want:
                raise LedgerError(
                    f"event {self.seq} says request {data['number']} was {want}; the audit says "
                    f"{ticket}"
                )
        if want == "NOTHING":
            tally.states["SKIPPED"] += 1
            return
        assert ticket is not None
        tally.states["RESERVED"] += 1
        tally.reserved += data["hold"]
        self.reserved += data["hold"]
        tally.in_flight += decision == 0
        self._open[data["person"]] = ticket

    def _ask_again(self, data: Mapping[str, Any]) -> Ticket:
        group, decision, want = data["group"], data["decision"], Want(data["want"])
        if self.blind:
            return Ticket(data["number"], group, decision, want, data["hold"])
        return self.audit.ask(group, decision, decided=None if self._strict else want)

    def _executed(self, data: Mapping[str, Any]) -> None:
        if data["moved"]:
            self._move(data["group"], "RESERVED", "EXECUTED")

    def _overdue(self, data: Mapping[str, Any]) -> None:
        self._move(data["group"], data["was"], "OVERDUE")

    def _revealed(self, data: Mapping[str, Any], features: Sequence[float] | None) -> None:
        person, group, outcome = data["person"], data["group"], data["outcome"]
        self.late += data["late"] or data["after_verdict"]
        ticket = self._settle(data, "REVEALED")
        if data["decision"] == 0:
            self._count(group, outcome, +1)
        else:
            self.drift.reveal(group, data["place"], outcome)
        if ticket is None:
            self._revise(person)
        elif not (self.stale or self.blind):
            vector = None if features is None else np.asarray(features, dtype=np.float64)
            self.audit.tell(ticket, self._answers.get(person, outcome), vector)

    def _described(self, data: Mapping[str, Any], features: Sequence[float] | None) -> None:
        ticket = self._settle(data, "DESCRIBED")
        assert ticket is not None
        if features is None:
            self.blind = True
        elif not (self.stale or self.blind):
            self.audit.tell(ticket, features=np.asarray(features, dtype=np.float64))

    def _noted(self, data: Mapping[str, Any]) -> None:
        if data["decision"] == 1:
            self.drift.reveal(data["group"], data["place"], data["outcome"])
        else:
            self.late += 1

    def _withdrawn(self, data: Mapping[str, Any]) -> None:
        self._give_up(data, "WITHDRAWN", 0)

    def _written_off(self, data: Mapping[str, Any]) -> None:
        self._give_up(data, "WRITTEN_OFF", data["cost"])

    def _corrected(self, data: Mapping[str, Any]) -> None:
        group, outcome = data["group"], data["outcome"]
        if data["decision"] == 1:
            self.drift.reveal(group, data["place"], 1 - outcome, -1)
            self.drift.reveal(group, data["place"], outcome)
        if data["was"] not in ("REVEALED", "CORRECTED"):
            return
        self._settle(data, "CORRECTED")
        if data["decision"] == 0:
            self._count(group, 1 - outcome, -1)
            self._count(group, outcome, +1)
        self._revise(data["person"])

    def _conflict(self, data: Mapping[str, Any]) -> None:
        self.conflicts += 1

    def _closed(self, data: Mapping[str, Any]) -> None:
        self.closed = data["why"]

    def _erased(self, data: Mapping[str, Any]) -> None:
        self.erased = True

    def _verdict(self, data: Mapping[str, Any]) -> None:
        self.recorded = data["finding"]
        self.verdict_seq = self.seq

    # -- helpers ----------------------------------------------------------------------------------

    def _give_up(self, data: Mapping[str, Any], state: str, cost: int) -> None:
        person = data["person"]
        ticket = self._settle(data, state)
        assert ticket is not None
        if self.stale or self.blind:
            return
        if state == "WRITTEN_OFF" and person in self._answers:
            self.audit.tell(ticket, self._answers[person])
        else:
            self.audit.withdraw(ticket, cost=float(cost))

    def _settle(self, data: Mapping[str, Any], state: str) -> Ticket | None:
        """Move money and state; return the request if it was open until now."""
        person, tally = data["person"], self.groups[data["group"]]
        ticket = self._open.pop(person, None)
        if ticket is not None:
            tally.reserved -= int(ticket.hold)
            self.reserved -= int(ticket.hold)
            tally.in_flight -= ticket.decision == 0
        paid, overrun = data.get("before", (0, 0))
        tally.spent += data["cost"] - paid
        tally.overrun += data["overrun"] - overrun
        self.spent += data["cost"] - paid
        self.overrun += data["overrun"] - overrun
        self._move(data["group"], data["was"], state)
        return ticket

    def _move(self, group: str, before: str, after: str) -> None:
        states = self.groups[group].states
        states[before] -= 1
        states[after] += 1

    def _count(self, group: str, outcome: int, step: int) -> None:
        tally = self.groups[group]
        if outcome == 1:
            tally.positive += step
        else:
            tally.negative += step

    def _revise(self, person: str) -> None:
        self.revised = self.seq
        if self.seq > self._answers_upto:
            self.stale = True


def replay(
    bodies: Iterable[tuple[str, str]],
    *,
    start: Projection | None = None,
    features_of: Callable[[str], Sequence[float] | None] | None = None,
) -> Projection:
    """Apply events ``(hash, body)`` in order and return where they lead."""
    projection = Projection() if start is None else start
    for digest, body in bodies:
        event = json.loads(body)
        data, features = event["data"], None
        if "features" in data and "person" in data and features_of is not None:
            features = features_of(data["person"])
        projection.take(event, digest, features=features)
    return projection


def answers_revised(bodies: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the present outcomes of people whose answer changed after it was settled."""
    answers: dict[str, int] = {}
    for _, body in bodies:
        if '"type":"corrected"' in body or '"late":true' in body:
            data = json.loads(body)["data"]
            if data.get("was") in ("REVEALED", "CORRECTED", "WRITTEN_OFF"):
                answers[data["person"]] = data["outcome"]
    return answers
