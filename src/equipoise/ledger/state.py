"""An audit's present state, which is nothing but its events applied in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.errors import LedgerError
from equipoise.ledger.memory import FeaturesGone, FeaturesOf, from_score_event, hold_of
from equipoise.ledger.standing import Data, Event, Standing
from equipoise.ledger.verify import FIRST_STATES, OPEN, digest
from equipoise.question import ScoreRecord, Ticket, Want

__all__ = ["State", "replay"]


class State(Standing):
    """The audit as of its latest event: people and money as counts, statistics as a log.

    Parameters
    ----------
    features_of
        Where the feature vector of a person is found, by number.
    strict
        Make every decision anew and insist that it is the one recorded; otherwise what was
        decided is taken as it is.
    """

    def __init__(self, features_of: FeaturesOf = lambda _: None, *, strict: bool = False) -> None:
        super().__init__(features_of)
        self._strict = strict

    # -- events -----------------------------------------------------------------------------------

    def take(
        self,
        event: Event,
        own: str,
        *,
        ticket: Ticket | None = None,
        features: Sequence[float] | None = None,
    ) -> None:
        """Apply the next event; ``ticket`` is given where it was just made by the audit."""
        kind, data = event["type"], event["data"]
        self.seq, self.time, self.head = event["seq"], event["time"], own
        try:
            if kind == "asked":
                self._asked(data, ticket)
            elif kind == "revealed":
                self._revealed(data, features)
            elif kind == "described":
                self._described(data, features)
            else:
                RULES[kind](self, data, event)
        except FeaturesGone:  # the last thing that a rule does is to tell the statistics
            self.blind, self._strict = True, False
            self.memory.forget()
        self.acts[event["actor"], kind] += 1
        if "proposal" in data:
            self.proposals.pop(data["proposal"], None)
            self.decided[data["proposal"]] = [kind, data.get("person"), data.get("why", "")]

    def _created(self, data: Data, _: Event) -> None:
        self.begin(data)

    def _asked(self, data: Data, ticket: Ticket | None) -> None:
        group, decision, want = data["group"], data["decision"], data["want"]
        tally = self.groups[group]
        self.people += 1
        if decision:
            tally.approved += 1
        else:
            tally.denied += 1
        self.drift.arrive(group, decision)
        self._consult(data, ticket)
        state = FIRST_STATES.get(want, "RESERVED")
        tally.states[state] += 1
        if state == "SCORE_ONLY":
            tally.spent += data["hold"]
            self.spent += data["hold"]
        if state != "RESERVED":
            return
        tally.reserved += data["hold"]
        self.reserved += data["hold"]
        tally.in_flight += decision == 0

    def _consult(self, data: Data, ticket: Ticket | None) -> None:
        """Enter the request in the log, and insist on it where decisions are made anew."""
        if data["request"] is None:
            return
        seen = data.get("observation")
        record = None if seen is None else from_score_event(seen)
        recorded = _ticket(data, data["hold"], record)
        made = ticket is not None
        if not made and self._strict:
            made = True
            self._decide_again(recorded, data)
        self.requests = recorded.number + 1
        # whoever ended the audit, or closed a group for good, has to be asked again in a replay
        if recorded.want is not Want.NOTHING or data.get("ended") or data.get("closed"):
            self.memory.asked(recorded, by_audit=made)

    def _decide_again(self, recorded: Ticket, data: Data) -> None:
        audit = self.memory.audit
        finding, closed = audit.finding, audit.closed
        ticket = self._ask_again(recorded)
        differs = _difference(ticket, recorded)
        if (audit.finding is not finding) != data.get("ended", False):
            differs = "whether the audit ended there"
        if (audit.closed != closed) != data.get("closed", False):
            differs = "whether the budget closed the group for good"
        if differs:
            raise LedgerError(
                f"event {self.seq} says that {recorded} was wanted; the audit says {ticket}: "
                f"{differs} is not the same"
            )

    def _executed(self, data: Data, _: Event) -> None:
        if data["moved"]:
            self._move(data["group"], "RESERVED", "EXECUTED")

    def _overdue(self, data: Data, _: Event) -> None:
        self._move(data["group"], data["was"], "OVERDUE")

    def _revealed(self, data: Data, features: Sequence[float] | None) -> None:
        group, outcome = data["group"], data["outcome"]
        self.late += data["late"] or data["after_verdict"]
        ticket = self._settle(data, "REVEALED")
        if data["decision"] == 0:
            self._count(group, outcome, +1)
        else:
            self.drift.reveal(group, data["place"], outcome)
        if data["late"]:
            self.unsettled = True
            self.memory.corrected(ticket, outcome)
        else:
            person = data["person"] if "features" in data else 0
            self.memory.told(ticket, outcome, person, features)

    def _described(self, data: Data, features: Sequence[float] | None) -> None:
        self.memory.told(self._settle(data, "DESCRIBED"), None, data["person"], features)

    def _noted(self, data: Data, _: Event) -> None:
        if data["decision"] == 1:
            self.drift.reveal(data["group"], data["place"], data["outcome"])

    def _withdrawn(self, data: Data, _: Event) -> None:
        self.memory.withdrawn(self._settle(data, "WITHDRAWN"), 0)

    def _written_off(self, data: Data, _: Event) -> None:
        self.memory.withdrawn(self._settle(data, "WRITTEN_OFF"), data["cost"])

    def _corrected(self, data: Data, _: Event) -> None:
        group, outcome = data["group"], data["outcome"]
        if data["decision"] == 1:
            self.drift.reveal(group, data["place"], 1 - outcome, -1)
            self.drift.reveal(group, data["place"], outcome)
        if data["was"] not in ("REVEALED", "CORRECTED"):
            return
        ticket = self._settle(data, "CORRECTED")
        if data["decision"] == 0:
            self._count(group, 1 - outcome, -1)
            self._count(group, outcome, +1)
        self.unsettled = True
        self.memory.corrected(ticket, outcome)

    def _conflict(self, data: Data, _: Event) -> None:
        self.conflicts += 1

    def _erased(self, data: Data, _: Event) -> None:
        self.erased += 1

    def _features_erased(self, data: Data, _: Event) -> None:
        self.features_erased = True
        self.memory.forget()
        self.concluded = self.concluded or "the features were erased"

    def _concluded(self, data: Data, _: Event) -> None:
        self.concluded = data["why"]

    def _paused(self, data: Data, _: Event) -> None:
        self.paused = data["why"]

    def _resumed(self, data: Data, _: Event) -> None:
        self.paused = None

    def _budget(self, data: Data, _: Event) -> None:
        self.cap = data["budget"]
        self.memory.set_cap(self.cap)
        self.unsettled = True

    def _limits(self, data: Data, _: Event) -> None:
        self.max_in_flight = data["max_in_flight"]
        self.max_in_flight_groups = dict(data["max_in_flight_groups"])

    def _proposed(self, data: Data, event: Event) -> None:
        self.proposals[event["seq"]] = {**data, "actor": event["actor"], "time": event["time"]}

    def _rejected(self, data: Data, _: Event) -> None:
        """Leave it to :meth:`take`, which drops whatever proposal an event names."""

    def _verdict(self, data: Data, _: Event) -> None:
        if self._strict:
            self._check_verdict(data["finding"])
        self.recorded = data["finding"]
        self.verdict_seq = self.seq
        self.unsettled = False

    # -- helpers ----------------------------------------------------------------------------------

    def _check_verdict(self, recorded: Mapping[str, Any] | None) -> None:
        found = self.finding()
        again = None if found is None else found.to_dict()
        for name in ("verdict", "lower", "upper", "estimate", "labels", "cost"):
            old = None if recorded is None else recorded[name]
            new = None if again is None else again[name]
            near = isinstance(old, float) and isinstance(new, float) and abs(old - new) < 1e-6
            if old != new and not near:
                raise LedgerError(
                    f"event {self.seq} records the {name} {old}; the events say {new}"
                )

    def _settle(self, data: Data, state: str) -> Ticket:
        """Move money and state; return the request."""
        record = None if data["request"] is None else self.memory.score_record_of(data["request"])
        costs, want = self.settings.costs.of(data["group"]), _WANTS[data["want"]]
        tally = self.groups[data["group"]]
        hold = int(hold_of(costs, data["decision"], want, record))
        if data["was"] in OPEN:
            tally.reserved -= hold
            self.reserved -= hold
            tally.in_flight -= data["decision"] == 0
        paid, overrun = data.get("before", (0, 0))
        tally.spent += data["cost"] - paid
        tally.overrun += data["overrun"] - overrun
        self.spent += data["cost"] - paid
        self.overrun += data["overrun"] - overrun
        self._move(data["group"], data["was"], state)
        return _ticket(data, hold, record)

    def _ask_again(self, recorded: Ticket) -> Ticket:
        """Let the audit decide anew, with what was seen then."""
        record, assist = recorded.score_record, self.settings.assist
        return self.memory.audit.ask(
            *(recorded.group, recorded.decision),
            score=None if record is None else record.score,
            price=None if record is None or not (assist and assist.max_price) else record.price,
            version="" if record is None else record.version,
            draw=None if record is None else record.draw,
            number=self.requests,
        )

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


RULES: dict[str, Callable[[State, Data, Event], None]] = {
    "created": State._created,
    "executed": State._executed,
    "noted": State._noted,
    "withdrawn": State._withdrawn,
    "overdue": State._overdue,
    "written_off": State._written_off,
    "corrected": State._corrected,
    "conflict": State._conflict,
    "erased": State._erased,
    "features_erased": State._features_erased,
    "concluded": State._concluded,
    "paused": State._paused,
    "resumed": State._resumed,
    "budget": State._budget,
    "limits": State._limits,
    "proposed": State._proposed,
    "rejected": State._rejected,
    "verdict": State._verdict,
}


def replay(events: Iterable[str], state: State) -> State:
    """Apply events in order and return where they lead."""
    body = ""
    for body in events:
        state.take(json.loads(body), "")
    if body:
        state.head = digest(body)
    return state


_WANTS = {want.value: want for want in Want}  # quicker than Want(...)


def _ticket(data: Data, hold: int, record: ScoreRecord | None) -> Ticket:
    want = _WANTS[data["want"]]
    return Ticket(data["request"], data["group"], data["decision"], want, float(hold), record)


def _difference(ticket: Ticket, recorded: Ticket) -> str:
    """Say in what two decisions differ; computed numbers may do so in their last digits."""
    one, other = ticket.score_record, recorded.score_record
    if replace(ticket, score_record=None) != replace(recorded, score_record=None) or (
        one is None
    ) != (other is None):
        return "what was wanted"
    for name in () if one is None else ("score", "version", "price", "draw"):
        if getattr(one, name) != getattr(other, name):
            return f"the {name}"
    for name in () if one is None else ("m", "pi", "low", "high"):
        value, known = getattr(one, name), getattr(other, name)
        if abs(value - known) > 1e-9 * max(1.0, abs(known)):
            return name
    return ""
