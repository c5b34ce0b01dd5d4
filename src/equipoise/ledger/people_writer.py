"""What may happen to a person, and the events that come of it."""

from __future__ import annotations

from typing import Any

from equipoise.assist.options import require_seen
from equipoise.errors import Conflict, ProtocolError, UnknownName
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Reply
from equipoise.ledger.memory import to_score_event
from equipoise.ledger.pen import NotReady, Pen, facts_of, reply_about
from equipoise.ledger.schema import PersonRow
from equipoise.ledger.verify import FIRST_STATES, draw, draw_of_look, keyed
from equipoise.question import Ticket, Want

__all__ = ["PeopleWriter"]


class PeopleWriter(Pen):
    """Carries out commands about people."""

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
            return reply_about(row, repeated=True)
        if group is None:
            raise UnknownName("group", command.group, state.groups)
        require_seen(state.settings.assist, command.score, command.price)
        salt, number = self._salt(), state.people + 1
        who = keyed(salt, self._uid, name)
        data: dict[str, Any] = {"person": number, "who": who, "group": group, "decision": decision}
        if decision == 1:
            data["place"] = state.drift.approved[group]
        ticket, why = self._decide(command, group, data)
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
            state=FIRST_STATES.get(want.value, "RESERVED"),
            why=why,
            request=data["request"],
            place=data.get("place"),
            hold=data["hold"],
            paid=data["hold"] if want is Want.SCORE_ONLY else 0,
            overrun=0,
            outcome=None,
            asked=self.head.time,
            executed=0,
            conflicted=0,
        )
        self._people[name] = self._by_number[number] = self.new[number] = row
        return reply_about(row)

    def _decide(
        self, command: do.Ask, group: str, data: dict[str, Any]
    ) -> tuple[Ticket | None, str]:
        state, name, decision = self.state, command.person, command.decision
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
        before, closed = audit.finding, audit.closed
        ticket = audit.ask(
            *(group, decision),
            score=command.score,
            price=command.price,
            version=command.version,
            draw=self._draw_of_look(data["person"], name),
            number=state.requests,
        )
        if ticket.score_record is not None:
            data["observation"] = to_score_event(ticket.score_record)
        if ticket.want is not Want.NOTHING:
            return ticket, ""
        if audit.finding is not before:
            data["ended"] = True
        if audit.closed != closed:
            data["closed"] = True
        if decision == 1:
            return ticket, "approved"
        if audit.is_broke or group in audit.closed or audit.costs.of(group).worst > audit.available:
            return ticket, "budget"
        return ticket, "not_wanted" if audit.finding is None else "decided"

    def _draw_of_look(self, number: int, name: str) -> float | None:
        if "assist" not in self.state.settings.options:
            return None
        return draw_of_look(self._seed, number, name) / 2**53

    def _tell(self, command: do.Tell) -> Reply:
        row = self._row(command.person)
        outcome = command.outcome
        if row.want == Want.FEATURES:
            raise ProtocolError(f"features of person {row.person!r} were asked for, not an outcome")
        if row.outcome is not None:
            return self._told_again(row, outcome)
        if row.state in ("SKIPPED", "SCORE_ONLY", "WITHDRAWN"):
            # Nobody asked, so it costs nothing and statistics of the denied never see it.
            self._append("noted", {**facts_of(row), "outcome": outcome})
        else:
            data = self._post(row, self._price(row, outcome))
            data["late"] = row.state == "WRITTEN_OFF"
            data["after_verdict"] = self.state.recorded is not None
            data["outcome"] = outcome
            self._append("revealed", data)
            row.state = "REVEALED"
        row.outcome = outcome
        return self._changed_reply(row)

    def _told_again(self, row: PersonRow, outcome: int) -> Reply:
        if row.outcome == outcome:
            return reply_about(row, repeated=True)
        if not row.conflicted:
            self._append("conflict", {**facts_of(row), "told": outcome, "stored": row.outcome})
            row.conflicted = 1
            self._changed_reply(row)
        raise Conflict(
            f"outcome {row.outcome} of person {row.person!r} is stored; got {outcome}. The "
            "conflict is recorded and the stored outcome stands; if the new one is right: "
            f"correct({row.person!r}, {outcome}, why) (equipoise audit correct "
            f"{self.state.settings.name} {row.person} {outcome} --why REASON)"
        )

    def _execute(self, command: do.Execute) -> Reply:
        row = self._row(command.person)
        if row.want in (Want.NOTHING, Want.SCORE_ONLY) or row.state == "WITHDRAWN":
            raise ProtocolError(f"nothing to carry out for {row.person!r}: {row.state}")
        if row.executed:
            return reply_about(row, repeated=True)
        moved = row.state == "RESERVED"  # the message may come after the outcome
        self._append("executed", {**facts_of(row), "moved": moved})
        row.executed = 1
        row.state = "EXECUTED" if moved else row.state
        return self._changed_reply(row)

    def _withdraw(self, command: do.Withdraw) -> Reply:
        row = self._row(command.person)
        if row.state == "WITHDRAWN":
            return reply_about(row, repeated=True)
        if row.state != "RESERVED":
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; only a RESERVED request can be withdrawn"
            )
        self._append("withdrawn", {**facts_of(row), "cost": 0, "overrun": 0})
        row.state = "WITHDRAWN"
        return self._changed_reply(row)

    def _mark_overdue(self, command: do.MarkOverdue) -> Reply:
        row = self._row(command.person)
        if row.state == "OVERDUE":
            return reply_about(row, repeated=True)
        if row.state not in ("RESERVED", "EXECUTED"):
            raise ProtocolError(f"person {row.person!r} is {row.state} and cannot be overdue")
        self._append("overdue", facts_of(row))
        row.state = "OVERDUE"
        return self._changed_reply(row)

    def _write_off(self, command: do.WriteOff) -> Reply:
        row = self._row(command.person)
        if row.state == "WRITTEN_OFF":
            return reply_about(row, repeated=True)
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
            return reply_about(row, repeated=True)
        own = {"person": row.number, "outcome": outcome, "reason": command.why}
        if (waiting := self._propose("corrected", own)) is not None:
            return waiting
        counted = row.state in ("REVEALED", "CORRECTED")
        data = self._post(row, self._price(row, outcome)) if counted else facts_of(row)
        self._append("corrected", {**data, **own})
        row.outcome = outcome
        row.state = "CORRECTED" if counted else row.state
        return self._changed_reply(row)

    def _erase(self, command: do.Erase) -> Reply:
        row = self._people.get(command.person)
        if row is None:  # erased before, or never known: nothing is left that could tell
            return Reply("", state="ERASED", repeated=True)
        if row.open:
            way = {
                "RESERVED": "withdraw it, or tell the outcome",
                "EXECUTED": "tell the outcome, or mark it overdue and write it off",
                "OVERDUE": "tell the outcome, or write it off",
            }[row.state]
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; settle the request first: {way}"
            )
        if row.state == "DESCRIBED" and not self.state.features_erased:
            raise ProtocolError(
                f"features of person {row.person!r} serve the statistics; erase the audit's "
                "features first, after the verdict"
            )
        if (waiting := self._propose("erased", {"person": row.number})) is not None:
            return waiting
        self._append("erased", facts_of(row))
        self.erased.append(row.number)
        assert row.person is not None
        del self._people[row.person]
        row.person = row.salt = None
        self.changed[row.number] = row
        return Reply("", state="ERASED", number=row.number)
