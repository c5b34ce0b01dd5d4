"""Commands carried out one after the other, and the events that come of them."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from equipoise.errors import (
    Conflict,
    EquipoiseError,
    InvalidInput,
    LedgerError,
    ProtocolError,
    UnknownName,
    UnknownPerson,
)
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command, Reply
from equipoise.ledger.schema import Head, PersonRow
from equipoise.ledger.settings import require_limits
from equipoise.ledger.state import State
from equipoise.ledger.verify import canonical, digest, draw, keyed
from equipoise.question import Ticket, Want

__all__ = ["NotReady", "Writer", "stamp"]


class NotReady(Exception):
    """Statistics must be rebuilt before this command, and not while others wait for the turn."""


class Writer:
    """Commands of one transaction, carried out one after the other on one state.

    A refused command leaves no trace, except that a conflict is itself an event.
    """

    def __init__(
        self, state: State, head: Head, *, uid: str, seed: bytes, people: Sequence[PersonRow]
    ) -> None:
        self.state = state
        self.head = replace(head)
        self.events: list[tuple[int, str]] = []
        self.vectors: list[tuple[int, str, str]] = []
        self.new: dict[int, PersonRow] = {}
        self.changed: dict[int, PersonRow] = {}
        self.erased: list[int] = []
        self.erase_features = False
        self._uid = uid
        self._seed = seed
        self._actor = ""
        self._now = ""
        self._proposal: int | None = None  # the one that is being carried out
        self._people = {row.person: row for row in people if row.person is not None}
        self._by_number = {row.number: row for row in people}

    def run(self, command: Command, actor: str, now: str) -> Reply | EquipoiseError:
        """Carry out one command; return the reply or the reason why not."""
        self._actor, self._now, self._proposal = actor, now, None
        try:
            return RULES[type(command)](self, command)
        except (Conflict, InvalidInput, ProtocolError) as error:
            return error

    def record_verdict(self, actor: str, now: str) -> None:
        """Append the verdict if it is not the one recorded last."""
        state = self.state
        if not state.ready:
            return  # whoever has rebuilt the statistics records what they say
        finding = state.finding()
        was = None if state.recorded is None else state.recorded["verdict"]
        verdict = None if finding is None else finding.verdict.value
        if was == verdict and not (state.unsettled and was is not None):
            return
        if finding is not None:
            alarms = tuple(str(test) for test in state.drift_tests() if test.alarm)
            finding = replace(finding, warnings=(*finding.warnings, *alarms))
        self._actor, self._now, self._proposal = actor, now, None
        data = None if finding is None else finding.to_dict()
        self._append("verdict", {"finding": data, "supersedes": state.verdict_seq})

    # -- people -----------------------------------------------------------------------------------

    def _ask(self, command: do.Ask) -> Reply:
        name, decision, state = command.person, command.decision, self.state
        row = self._people.get(name)
        group = state.settings.group_names.get(command.group)
        if row is not None:
            if (row.group_name, row.decision) != (group, decision):
                raise Conflict(
                    f"person {name!r} was asked about as group {row.group_name!r}, decision "
                    f"{row.decision}; got {command.group!r}, {decision!r}"
                )
            return _reply(row, repeated=True)
        if group is None:
            raise UnknownName("group", command.group, state.groups)
        salt, number = secrets.token_hex(16), state.people + 1
        who = keyed(salt, self._uid, name)
        data: dict[str, Any] = {"person": number, "who": who, "group": group, "decision": decision}
        if decision == 1:
            data["place"] = state.drift.approved[group]
        ticket, why = self._decide(name, group, decision, data)
        want = Want.NOTHING if ticket is None else ticket.want
        data["want"] = want.value
        data["hold"] = 0 if ticket is None else int(ticket.hold)
        data["request"] = None if ticket is None else ticket.number
        data["why"] = why
        self._append("asked", data, ticket=ticket)
        row = PersonRow(
            number=number,
            person=name,
            salt=salt,
            who=who,
            group_name=group,
            decision=decision,
            want=want.value,
            state="SKIPPED" if want is Want.NOTHING else "RESERVED",
            why=why,
            request=data["request"],
            place=data.get("place"),
            hold=data["hold"],
            paid=0,
            overrun=0,
            outcome=None,
            asked=self.head.time,
            executed=0,
            conflicted=0,
        )
        self._people[name] = self._by_number[number] = self.new[number] = row
        return _reply(row)

    def _decide(
        self, name: str, group: str, decision: int, data: dict[str, Any]
    ) -> tuple[Ticket | None, str]:
        state = self.state
        if state.concluded is not None:
            return None, "concluded"
        if state.paused is not None:
            return None, "paused"
        if not state.ready:
            raise NotReady
        audit = state.memory.audit
        if decision == 1 and not audit.looks_at_approved:
            return None, "approved"
        chance = state.settings.lottery
        if chance < 1.0:
            data["drawn"] = draw(self._seed, name) < chance * 2**53
            if not data["drawn"]:
                return None, "lottery"
        if state.in_flight_limit_reached(group):
            return None, "in_flight"
        before = audit.finding
        ticket = audit.ask(group, decision, number=state.requests)
        if ticket.want is not Want.NOTHING:
            return ticket, ""
        if audit.finding is not before:
            data["ended"] = True
        if decision == 1:
            return ticket, "approved"
        if audit.is_broke or audit.costs.of(group).worst > audit.available:
            return ticket, "budget"
        return ticket, "not_wanted" if audit.finding is None else "decided"

    def _tell(self, command: do.Tell) -> Reply:
        row = self._row(command.person)
        if command.outcome is None:
            return self._describe(row, command.features)
        outcome = command.outcome
        if row.want == Want.FEATURES:
            raise ProtocolError(f"features of person {row.person!r} were asked for, not an outcome")
        if row.outcome is not None:
            return self._told_again(row, outcome)
        if row.state in ("SKIPPED", "WITHDRAWN"):
            # Nobody asked, so it costs nothing and statistics of the denied never see it.
            self._append("noted", {**_facts(row), "outcome": outcome})
        else:
            data = self._post(row, self._price(row, outcome))
            data["late"] = row.state == "WRITTEN_OFF"
            data["after_verdict"] = self.state.recorded is not None
            data["outcome"] = outcome
            self._keep(row, command.features, data)
            self._append("revealed", data, features=command.features)
            row.state = "REVEALED"
        row.outcome = outcome
        return self._changed_reply(row)

    def _told_again(self, row: PersonRow, outcome: int) -> Reply:
        if row.outcome == outcome:
            return _reply(row, repeated=True)
        if not row.conflicted:
            self._append("conflict", {**_facts(row), "told": outcome, "stored": row.outcome})
            row.conflicted = 1
            self._changed_reply(row)
        raise Conflict(
            f"outcome {row.outcome} of person {row.person!r} is stored; got {outcome}. The "
            "conflict is recorded and the stored outcome stands; use a correction to change it"
        )

    def _describe(self, row: PersonRow, features: tuple[float, ...] | None) -> Reply:
        if row.state == "DESCRIBED":
            return _reply(row, repeated=True)
        if row.want != Want.FEATURES or not row.open:
            raise ProtocolError(f"no features of person {row.person!r} were asked for")
        if not self.state.ready:
            raise NotReady
        if not self.state.features_erased:
            self.state.memory.audit.check_features(row.group_name, np.asarray(features))
        data = self._post(row, row.hold)
        self._keep(row, features, data)
        self._append("described", data, features=features)
        row.state = "DESCRIBED"
        return self._changed_reply(row)

    def _execute(self, command: do.Execute) -> Reply:
        row = self._row(command.person)
        if row.want == Want.NOTHING or row.state == "WITHDRAWN":
            raise ProtocolError(f"nothing to carry out for {row.person!r}: {row.state}")
        if row.executed:
            return _reply(row, repeated=True)
        moved = row.state == "RESERVED"  # the message may come after the outcome
        self._append("executed", {**_facts(row), "moved": moved})
        row.executed = 1
        row.state = "EXECUTED" if moved else row.state
        return self._changed_reply(row)

    def _withdraw(self, command: do.Withdraw) -> Reply:
        row = self._row(command.person)
        if row.state == "WITHDRAWN":
            return _reply(row, repeated=True)
        if row.state != "RESERVED":
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; only a RESERVED request can be withdrawn"
            )
        self._append("withdrawn", {**_facts(row), "cost": 0, "overrun": 0})
        row.state = "WITHDRAWN"
        return self._changed_reply(row)

    def _mark_overdue(self, command: do.MarkOverdue) -> Reply:
        row = self._row(command.person)
        if row.state == "OVERDUE":
            return _reply(row, repeated=True)
        if row.state not in ("RESERVED", "EXECUTED"):
            raise ProtocolError(f"person {row.person!r} is {row.state} and cannot be overdue")
        self._append("overdue", _facts(row))
        row.state = "OVERDUE"
        return self._changed_reply(row)

    def _write_off(self, command: do.WriteOff) -> Reply:
        row = self._row(command.person)
        if row.state == "WRITTEN_OFF":
            return _reply(row, repeated=True)
        if row.state != "OVERDUE":
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; only an OVERDUE request can be written off"
            )
        self._append("written_off", self._post(row, row.hold))
        row.state = "WRITTEN_OFF"
        return self._changed_reply(row)

    def _correct(self, command: do.Correct) -> Reply:
        row, outcome = self._row(command.person), command.outcome
        if row.outcome is None:
            raise ProtocolError(f"no outcome of person {row.person!r} is known; tell it instead")
        if row.outcome == outcome:
            return _reply(row, repeated=True)
        own = {"person": row.number, "outcome": outcome, "reason": command.why}
        if (waiting := self._propose("corrected", own)) is not None:
            return waiting
        counted = row.state in ("REVEALED", "CORRECTED")
        data = self._post(row, self._price(row, outcome)) if counted else _facts(row)
        self._append("corrected", {**data, **own})
        row.outcome = outcome
        row.state = "CORRECTED" if counted else row.state
        return self._changed_reply(row)

    def _erase(self, command: do.Erase) -> Reply:
        row = self._row(command.person)
        if row.open:
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; settle the request first: withdraw it, "
                "tell the outcome, or write it off"
            )
        if row.state == "DESCRIBED" and not self.state.features_erased:
            raise ProtocolError(
                f"features of person {row.person!r} serve the statistics; erase the audit's "
                "features first, after the verdict"
            )
        if (waiting := self._propose("erased", {"person": row.number})) is not None:
            return waiting
        self._append("erased", _facts(row))
        self.erased.append(row.number)
        assert row.person is not None
        del self._people[row.person]
        row.person = row.salt = None
        self.changed[row.number] = row
        return Reply("", state="ERASED", number=row.number)

    # -- the audit --------------------------------------------------------------------------------

    def _conclude(self, command: do.Conclude) -> Reply:
        if self.state.concluded is not None:
            return Reply("", state="CONCLUDED", why=self.state.concluded, repeated=True)
        return self._change("concluded", {"why": command.why}, "CONCLUDED")

    def _pause(self, command: do.Pause) -> Reply:
        if self.state.paused is not None:
            return Reply("", state="PAUSED", why=self.state.paused, repeated=True)
        return self._change("paused", {"why": command.why}, "PAUSED")

    def _resume(self, command: do.Resume) -> Reply:
        if self.state.paused is None:
            return Reply("", state="RESUMED", repeated=True)
        return self._change("resumed", {"why": command.why}, "RESUMED")

    def _set_budget(self, command: do.SetBudget) -> Reply:
        state, budget = self.state, command.budget
        if budget == state.cap:
            return Reply("", state="BUDGET", repeated=True)
        bound = state.spent + state.reserved
        if budget is not None and budget < bound:
            raise InvalidInput(
                f"'budget' must be at least what is spent or held, {state.settings.money(bound)}; "
                f"got {state.settings.money(budget)}"
            )
        return self._change("budget", {"budget": budget, "why": command.why}, "BUDGET")

    def _set_limits(self, command: do.SetLimits) -> Reply:
        groups = {
            self.state.settings.group_names.get(group, group): limit
            for group, limit in command.max_in_flight_groups.items()
        }
        require_limits(command.max_in_flight, groups, self.state.settings.groups)
        if (command.max_in_flight, groups) == (
            *(self.state.max_in_flight, self.state.max_in_flight_groups),
        ):
            return Reply("", state="LIMITS", repeated=True)
        own = {"max_in_flight": command.max_in_flight, "max_in_flight_groups": groups}
        return self._change("limits", {**own, "why": command.why}, "LIMITS")

    def _erase_features(self, command: do.EraseFeatures) -> Reply:
        if self.state.features_erased:
            return Reply("", state="ERASED", repeated=True)
        if self.state.recorded is None:
            raise ProtocolError("features can be erased once there is a verdict; there is none yet")
        self.erase_features = True
        self._append("features_erased", {})
        return Reply("", state="ERASED")

    def _change(self, kind: str, own: dict[str, Any], done: str) -> Reply:
        if (waiting := self._propose(kind, own)) is not None:
            return waiting
        more = {"before": self.state.cap} if kind == "budget" else {}
        self._append(kind, {**own, **more})
        return Reply("", state=done, why=own["why"])

    # -- two people -------------------------------------------------------------------------------

    def _propose(self, kind: str, arguments: dict[str, Any]) -> Reply | None:
        """Record a proposal where a second person must approve; None where it may be done now."""
        if kind not in self.state.settings.approvals or self._proposal is not None:
            return None
        for seq, known in self.state.proposals.items():
            if (known["command"], known["arguments"]) == (kind, arguments):
                return Reply("", state="PROPOSED", number=seq, repeated=True)
        self._append("proposed", {"command": kind, "arguments": arguments})
        return Reply("", state="PROPOSED", number=self.head.seq)

    def _approve(self, command: do.Approve) -> Reply:
        proposal = self._open_proposal(command.proposal)
        if proposal["actor"] == self._actor:
            raise ProtocolError(
                f"proposal {command.proposal} is {self._actor!r}'s own; another person must approve"
            )
        self._proposal = command.proposal
        made = self._as_command(proposal)
        return RULES[type(made)](self, made)

    def _reject(self, command: do.Reject) -> Reply:
        self._open_proposal(command.proposal)
        self._append("rejected", {"proposal": command.proposal, "why": command.why})
        return Reply("", state="REJECTED", number=command.proposal)

    def _open_proposal(self, number: int) -> Mapping[str, Any]:
        if number not in self.state.proposals:
            raise UnknownName("proposal", number, self.state.proposals)
        return self.state.proposals[number]

    def _as_command(self, proposal: Mapping[str, Any]) -> Command:
        kind, own = proposal["command"], proposal["arguments"]
        if kind in ("corrected", "erased"):
            row = self._by_number.get(own["person"])
            if row is None or row.person is None:
                raise ProtocolError(f"person {own['person']} was erased since")
            if kind == "erased":
                return do.Erase(row.person)
            return do.Correct(row.person, own["outcome"], own["reason"])
        if kind == "concluded":
            return do.Conclude(own["why"])
        if kind == "resumed":
            return do.Resume(own["why"])
        if kind == "budget":
            return do.SetBudget(own["budget"], own["why"])
        return do.SetLimits(own["max_in_flight"], own["max_in_flight_groups"], own["why"])

    # -- events -----------------------------------------------------------------------------------

    def _append(self, kind: str, data: dict[str, Any], **known: Any) -> None:
        head, time = self.head, self._now
        if self._proposal is not None:
            data = {**data, "proposal": self._proposal}
        event = {
            "actor": self._actor,
            "audit": self._uid,
            "data": data,
            "prev": head.hash,
            "seq": head.seq + 1,
            "time": time,
            "type": kind,
        }
        body = canonical(event)
        head.seq, head.hash, head.time = head.seq + 1, digest(body), time
        self.events.append((head.seq, body))
        state = self.state
        try:
            state.take(event, head.hash, **known)
        except (InvalidInput, ProtocolError) as error:  # too late to refuse this command alone
            raise LedgerError(f"the audit refused {kind!r}: {error}") from error
        head.spent, head.reserved = state.spent, state.reserved
        head.overrun, head.cap = state.overrun, state.cap

    def _post(self, row: PersonRow, cost: int) -> dict[str, Any]:
        """Return the facts with what the person costs now; what the cap cannot hold is overrun."""
        head, room = self.head, cost
        if head.cap is not None:
            reserved = head.reserved - (row.hold if row.open else 0)
            room = head.cap - (head.spent - row.paid) - reserved
        data = _facts(row)
        if row.paid or row.overrun:
            data["before"] = [row.paid, row.overrun]
        row.paid = min(cost, room)
        row.overrun = cost - row.paid
        return {**data, "cost": row.paid, "overrun": row.overrun}

    def _price(self, row: PersonRow, outcome: int) -> int:
        if row.decision == 1:
            return 0
        costs = self.state.settings.costs.of(row.group_name)
        return int(costs.feature) + (int(costs.label) if outcome == 0 else 0)

    def _keep(self, row: PersonRow, features: Sequence[float] | None, data: dict[str, Any]) -> None:
        """Store features apart from the event, which holds only a salted hash of them."""
        if features is not None:
            salt, text = secrets.token_hex(16), json.dumps(list(features))
            data["features"] = hashlib.sha256((salt + text).encode()).hexdigest()
            self.vectors.append((row.number, salt, text))

    def _row(self, person: str) -> PersonRow:
        row = self._people.get(person)
        if row is None:
            name = self.state.settings.name
            raise UnknownPerson(f"unknown person {person!r}: audit {name!r} was never asked about")
        return row

    def _changed_reply(self, row: PersonRow) -> Reply:
        if row.number not in self.new:
            self.changed[row.number] = row
        return _reply(row)


RULES: dict[type, Callable[[Writer, Any], Reply]] = {
    do.Ask: Writer._ask,
    do.Tell: Writer._tell,
    do.Execute: Writer._execute,
    do.Withdraw: Writer._withdraw,
    do.MarkOverdue: Writer._mark_overdue,
    do.WriteOff: Writer._write_off,
    do.Correct: Writer._correct,
    do.Erase: Writer._erase,
    do.Conclude: Writer._conclude,
    do.Pause: Writer._pause,
    do.Resume: Writer._resume,
    do.SetBudget: Writer._set_budget,
    do.SetLimits: Writer._set_limits,
    do.Approve: Writer._approve,
    do.Reject: Writer._reject,
    do.EraseFeatures: Writer._erase_features,
}


def stamp(moment: datetime) -> str:
    """Write a moment so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def _facts(row: PersonRow) -> dict[str, Any]:
    data: dict[str, Any] = {
        "person": row.number,
        "group": row.group_name,
        "decision": row.decision,
        "want": row.want,
        "was": row.state,
        "request": row.request,
    }
    if row.place is not None:
        data["place"] = row.place
    return data


_WANTS = {want.value: want for want in Want}  # quicker than Want(...)


def _reply(row: PersonRow, *, repeated: bool = False) -> Reply:
    return Reply(
        person=row.person or "",
        state=row.state,
        want=_WANTS[row.want],
        hold=row.hold,
        number=row.number,
        request=row.request,
        why=row.why,
        outcome=row.outcome,
        repeated=repeated,
    )
