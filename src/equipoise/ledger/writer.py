"""Commands carried out one after the other, and the events that come of them.

A command is refused here, with its remedy, or becomes an event. What the event does is up to the
rule book (:class:`~equipoise.ledger.verify.LedgerRules`), which applies it before it is stored.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise import evidence
from equipoise._json import to_plain_data
from equipoise._version import __version__
from equipoise.audits.scores import require_usable_score
from equipoise.errors import (
    Conflict,
    EquipoiseError,
    InvalidInput,
    LedgerError,
    ProtocolError,
    UnknownName,
    UnknownPerson,
)
from equipoise.ledger import commands
from equipoise.ledger.commands import Command, Reply
from equipoise.ledger.settings import require_limits
from equipoise.ledger.state import AuditState, to_score_event
from equipoise.ledger.store import WriteTransaction
from equipoise.ledger.verify import (
    APPROVABLE,
    COUNTED,
    MOVES,
    SWITCHES,
    UNASKED,
    PersonRecord,
    PersonState,
    canonical,
    digest,
    draw,
    draw_of_score,
    facts_of,
    keyed,
)
from equipoise.protocol import Ticket, Want

STILL_THERE = (
    "the name is in no table any more; copies stay in the database's files until somebody who may "
    "rewrite them runs: equipoise audit scrub {}"
)


class TransactionWriter:
    """Builds one transaction's events and the row changes they cause.

    A refused command leaves no trace, except that a conflict is itself an event. What is stored
    about the people, and under the keys, of the ``batch`` is read
    at once.
    """

    def __init__(
        self,
        state: AuditState,
        seed: bytes,
        transaction: WriteTransaction,
        batch: Sequence[Command],
    ) -> None:
        self.state, self.rules = state, state.rules
        self.events: list[tuple[int, str]] = []
        self.keys: list[tuple[str, int]] = []
        self.touched: dict[int, PersonRecord] = {}
        self._seed = seed
        self._keyed = transaction.events_of([command.key for command in batch if command.key])
        approved = [command.proposal for command in batch if isinstance(command, commands.Approve)]
        about = [own["arguments"] for n, own in self.rules.proposals.items() if n in approved]
        about += [event["data"].get("arguments", event["data"]) for event in self._keyed.values()]
        names = [name for command in batch if (name := commands.person_of(command))]
        people = transaction.people(names, [own["person"] for own in about if "person" in own])
        self._people = {row.person: row for row in people if row.person is not None}
        self._actor = self._now = self._key = ""
        self._proposal: int | None = None  # the one that is being carried out
        self.rules.people = {row.number: row for row in people}

    def run(self, command: Command, actor: str, now: str) -> Reply | EquipoiseError:
        """Carry out one command; return the reply or the reason why not."""
        self._actor, self._now, self._proposal, self._key = actor, now, None, command.key
        try:
            return self._answered(command) or self._carry_out(command)
        except (Conflict, InvalidInput, ProtocolError) as error:
            return error

    def record_verdict(self, actor: str, now: str) -> None:
        """Append the verdict if it is not the one recorded last."""
        state, rules = self.state, self.rules
        if state.has_other_edition:
            return
        finding = state.finding()
        verdict = None if finding is None else finding.verdict.value
        if rules.verdict == verdict and not (rules.unsettled and verdict is not None):
            return
        if finding is not None:
            alarms = tuple(str(test) for test in state.drift_tests() if test.alarm)
            finding = replace(finding, warnings=(*finding.warnings, *alarms))
        self._actor, self._now, self._proposal, self._key = actor, now, None, ""
        data = None if finding is None else finding.to_dict()
        self._append("verdict", {"finding": data, "supersedes": rules.verdict_seq})

    def _carry_out(self, command: Command) -> Reply:
        if not isinstance(command, commands.Upgrade | commands.Approve | commands.Reject):
            self.state.require_edition()
        return HANDLERS[type(command)][0](self, command)

    def _append(
        self, kind: str, data: dict[str, Any], *, ticket: Ticket | None = None
    ) -> PersonRecord | None:
        """Let the rule book apply the next event; return the person whom it changed."""
        head = self.rules.head
        if self._proposal is not None:
            data = {**data, "proposal": self._proposal}
        event = {
            "actor": self._actor,
            "audit": self.rules.uid,
            "data": data,
            "prev": head.hash,
            "seq": head.seq + 1,
            "time": self._now,
            "type": kind,
        }
        if self._key and kind != "conflict":  # a conflict does not carry out the command
            event["key"] = self._key
            self._keyed[self._key] = event
            self.keys.append((self._key, head.seq + 1))
        body = canonical(event)
        try:
            person = self.state.apply(event, digest(body), ticket=ticket)
        except (ProtocolError, ValueError) as error:  # too late to refuse this command alone
            raise LedgerError(f"the rules refused {kind!r}: {error}") from error
        self.events.append((head.seq, body))
        if person is not None:
            self.touched[person.number] = person
        return person

    # -- duplicates -------------------------------------------------------------------------------

    def _answered(self, command: Command) -> Reply | None:
        """Answer a command whose key is known from the record."""
        event = self._keyed.get(command.key) if command.key else None
        if event is None:
            return None
        kind, data = event["type"], event["data"]
        made = data["command"] if kind == "proposed" else kind
        recorded = data.get("arguments", data)
        row = (self.rules.people or {}).get(recorded.get("person", 0))
        about, known = commands.person_of(command), None if row is None else row.person
        other = bool(about) and known not in (None, about)
        if other or made not in HANDLERS[type(command)][1] or self._differs(command, recorded):
            raise Conflict(
                f"'key' {command.key!r} was used for another command, event {event['seq']} "
                f"({kind}); give every command a key of its own"
            )
        if kind == "proposed":
            return Reply("", state="PROPOSED", number=event["seq"], repeated=True)
        if row is not None and kind != "erased":
            return _reply(row, repeated=True)
        number = data.get("proposal" if kind == "rejected" else "person")
        return self._done(kind, number, data.get("why", ""), repeated=True)

    def _differs(self, command: Command, recorded: Mapping[str, Any]) -> bool:
        """Say whether what is recorded differs from a command in more than the reason."""
        own = {
            name: self._by_group(value) if isinstance(value, Mapping) else value
            for name, value in vars(command).items()
        }
        if isinstance(command, commands.SetRandomAccepts):
            nobody = {group: [0, 0, 0] for group in self.rules.groups}
            own["random_accepts"] = to_plain_data(nobody | own["random_accepts"])
        if isinstance(command, commands.Ask):
            (own["group"],) = self._by_group({command.group: None})
        names = own.keys() & (recorded.keys() | {"proposal"}) - {"person", "why", "command"}
        return any(own[name] != recorded.get(name) for name in names)

    def _by_group(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mapping of groups with their names in the past data."""
        names = self.state.settings.group_names
        return {names.get(group, group): own for group, own in given.items()}

    # -- people -----------------------------------------------------------------------------------

    def _ask(self, command: commands.Ask) -> Reply:
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
            raise UnknownName("group", command.group, state.settings.groups)
        require_usable_score(state.settings.assist, command.score, command.price)
        salt, number = os.urandom(16).hex(), self.rules.arrived + 1
        who = keyed(salt, self.rules.uid, name)
        data: dict[str, Any] = {"person": number, "who": who, "group": group, "decision": decision}
        if decision == 1:
            data["place"] = self.rules.groups[group].approved
        ticket, data["why"] = self._decide(command, group, data)
        data["want"] = Want.NOTHING.value if ticket is None else ticket.want.value
        data["hold"] = 0 if ticket is None else int(ticket.hold)
        data["request"] = None if ticket is None else ticket.number
        row = self._append("asked", data, ticket=ticket)
        assert row is not None
        row.person, row.salt = name, salt
        self._people[name] = row
        return _reply(row)

    def _decide(
        self, command: commands.Ask, group: str, data: dict[str, Any]
    ) -> tuple[Ticket | None, str]:
        """Return what the audit wants (None: it was not asked), why if nothing; add to ``data``."""
        state, name, decision = self.state, command.person, command.decision
        if self.rules.concluded is not None:
            return None, "concluded"
        if self.rules.paused is not None:
            return None, "paused"
        audit = state.audit
        if decision == 1 and not audit.wants_approved:
            return None, "approved"
        chance = state.settings.lottery
        if chance < 1.0:
            data["drawn"] = draw(self._seed, name) < chance * 2**53
            if not data["drawn"]:
                return None, "lottery"
        # Where one stream of everybody is counted (Baseline) nobody may pass while a single group
        # waits: the answer must depend on the past alone, not on the person who arrived.
        within = getattr(audit, "within_group", True)
        if self.rules.is_full([group] if within else state.settings.groups):
            return None, "in_flight"
        before, closed, number = audit.finding, audit.closed, data["person"]
        uses_scores = state.settings.assist is not None
        ticket = audit.ask(
            *(group, decision),
            score=command.score,
            price=command.price,
            version=command.version,
            draw=draw_of_score(self._seed, number, name) / 2**53 if uses_scores else None,
            number=self.rules.requests,
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
        if group in audit.question.resolve(audit.cells).left_out:
            return ticket, "left_out"
        if audit.is_broke or group in audit.closed or audit.costs.of(group).worst > audit.available:
            return ticket, "budget"
        return ticket, "not_wanted" if audit.finding is None else "decided"

    def _tell(self, command: commands.Tell) -> Reply:
        row, outcome = self._row(command.person), command.outcome
        if row.outcome is not None:
            return self._told_again(row, outcome)
        if row.state in UNASKED:
            # Nobody asked, so it costs nothing and statistics of the denied never see it.
            return self._happens("noted", row, outcome=outcome)
        return self._happens("revealed", row, self.rules.price(row, outcome), outcome=outcome)

    def _told_again(self, row: PersonRecord, outcome: int) -> Reply:
        if row.outcome == outcome:
            return _reply(row, repeated=True)
        if not row.conflicted:
            self._happens("conflict", row, told=outcome)
        old, new = ("bad", "good") if outcome else ("good", "bad")
        about = shlex.join([self.state.settings.name, str(row.person), new])
        raise Conflict(
            f"outcome {row.outcome} ({old}) of person {row.person!r} is stored; got {outcome} "
            f"({new}). The conflict is recorded and the stored outcome stands; if {new} is right: "
            f"correct({row.person!r}, {outcome}, why) "
            f"(equipoise audit correct {about} --why REASON)"
        )

    def _execute(self, command: commands.Execute) -> Reply:
        row = self._row(command.person)
        if row.want != Want.LABEL or row.state == PersonState.WITHDRAWN:
            raise ProtocolError(f"nothing to carry out for {row.person!r}: {row.state}")
        if row.executed:
            return _reply(row, repeated=True)
        return self._happens("executed", row)

    def _move(self, command: commands.Withdraw | commands.MarkOverdue | commands.WriteOff) -> Reply:
        """Carry out what takes a person from certain states to another one."""
        row, (_, (kind,)) = self._row(command.person), HANDLERS[type(command)]
        sources, target = MOVES[kind]
        if row.state == target:
            return _reply(row, repeated=True)
        if row.state not in sources:
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; a request must be {' or '.join(sources)} "
                f"to be {kind.replace('_', ' ')}"
            )
        return self._happens(kind, row, row.hold if kind == "written_off" else None)

    def _correct(self, command: commands.Correct) -> Reply:
        row, outcome = self._row(command.person), command.outcome
        if row.outcome is None:
            raise ProtocolError(f"no outcome of person {row.person!r} is known; tell it instead")
        if row.outcome == outcome:
            return _reply(row, repeated=True)
        own = {"person": row.number, "outcome": outcome, "why": command.why}
        if (waiting := self._propose("corrected", own)) is not None:
            return waiting
        cost = self.rules.price(row, outcome) if row.state in COUNTED else None
        return self._happens("corrected", row, cost, outcome=outcome, why=command.why)

    def _erase(self, command: commands.Erase) -> Reply:
        row = self._people.get(command.person)
        if row is None:  # erased before, or never known: nothing is left that could tell
            return self._done("erased", repeated=True)
        if row.open:
            way = {
                "RESERVED": "withdraw it, or tell the outcome",
                "EXECUTED": "tell the outcome, or mark it overdue and write it off",
                "OVERDUE": "tell the outcome, or write it off",
            }[row.state]
            raise ProtocolError(
                f"person {row.person!r} is {row.state}; settle the request first: {way}"
            )
        if (waiting := self._propose("erased", {"person": row.number})) is not None:
            return waiting
        del self._people[command.person]
        self._happens("erased", row)
        return self._done("erased", row.number)

    def _happens(self, kind: str, row: PersonRecord, cost: int | None = None, **own: Any) -> Reply:
        """Append an event about a person, with what they cost now if it is about money."""
        data = {**facts_of(row), **own}
        if cost is not None:
            data["cost"], data["overrun"] = self.rules.bill(row, cost)
        self._append(kind, data)
        return _reply(row)

    def _row(self, person: str) -> PersonRecord:
        row = self._people.get(person)
        if row is None:
            name = self.state.settings.name
            raise UnknownPerson(
                f"person {person!r} is unknown to audit {name!r}: nobody has asked about them yet"
            )
        return row

    # -- the audit --------------------------------------------------------------------------------

    def _done(
        self, kind: str, number: int | None = None, why: str = "", *, repeated: bool = False
    ) -> Reply:
        """Answer what happened to the audit, or to somebody who is erased by now."""
        state = kind.upper()
        if kind == "erased" and self.rules.scrubbed < self.rules.erased:
            state, why = "UNLINKED", STILL_THERE.format(shlex.quote(self.state.settings.name))
        concluded, verdict = self.rules.concluded, self.rules.verdict
        ended = "CONCLUDED" if concluded is not None else "DECIDED" if verdict is not None else ""
        if kind in ("paused", "resumed") and ended:
            state, why = ended, "nobody is asked any more"
        return Reply("", state=state, number=number, why=why, repeated=repeated)

    def _scrubbed(self, command: commands.Scrubbed) -> Reply:
        if command.erased > self.rules.scrubbed:
            self._append("scrubbed", {"erased": command.erased})
        return self._done("erased")

    def _switch(self, command: commands.Conclude | commands.Pause | commands.Resume) -> Reply:
        """Bring the audit into a state, unless it is in it already."""
        (kind,) = HANDLERS[type(command)][1]
        name, on = SWITCHES[kind]
        reason = getattr(self.rules, name)
        if (reason is not None) == on:
            return self._done(kind, why=reason or "", repeated=True)
        return self._change(kind, {"why": command.why}, False)

    def _set_budget(self, command: commands.SetBudget) -> Reply:
        head, budget, money = self.rules.head, command.budget, self.state.settings.money
        bound = head.spent + head.reserved
        if budget is not None and budget < bound:
            raise ProtocolError(
                f"'budget' must be at least what is spent or held, {money(bound)}; "
                f"got {money(budget)}"
            )
        own = {"budget": budget, "why": command.why}
        return self._change("budget", own, budget == head.cap, before=head.cap)

    def _set_limits(self, command: commands.SetLimits) -> Reply:
        settings, rules = self.state.settings, self.rules
        groups = self._by_group(command.max_in_flight_groups)
        require_limits(command.max_in_flight, groups, settings.groups)
        own = {"max_in_flight": command.max_in_flight, "max_in_flight_groups": groups}
        is_noop = tuple(own.values()) == (rules.max_in_flight, rules.max_in_flight_groups)
        return self._change("limits", {**own, "why": command.why}, is_noop)

    def _set_random_accepts(self, command: commands.SetRandomAccepts) -> Reply:
        given, corrected = self._by_group(command.random_accepts), self._by_group(command.corrected)
        now = self.state.audit.set_random_accepts(given, corrected, dry_run=True)
        own = {"random_accepts": now, "corrected": corrected, "why": command.why}
        return self._change("random_accepts", own, now == self.rules.random_accepts)

    def _upgrade(self, command: commands.Upgrade) -> Reply:
        made = {"edition": evidence.EDITION, "software": __version__, "before": self.rules.edition}
        return self._change(
            "upgraded", {"why": command.why}, not self.state.has_other_edition, **made
        )

    def _change(self, kind: str, own: dict[str, Any], is_noop: bool, **more: Any) -> Reply:
        """Change the audit, or propose to, unless it is so already."""
        if is_noop:
            return self._done(kind, repeated=True)
        if (waiting := self._propose(kind, own)) is not None:
            return waiting
        self._append(kind, {**own, **more})
        return self._done(kind, why=own["why"])

    # -- two people -------------------------------------------------------------------------------

    def _propose(self, kind: str, arguments: dict[str, Any]) -> Reply | None:
        """Record a proposal where a second person must approve; None where it may be done now."""
        if kind not in self.state.settings.approvals or self._proposal is not None:
            return None
        for seq, known in self.rules.proposals.items():
            if (known["command"], known["arguments"]) == (kind, arguments):
                return Reply("", state="PROPOSED", number=seq, repeated=True)
        self._append("proposed", {"command": kind, "arguments": arguments})
        return Reply("", state="PROPOSED", number=self.rules.head.seq)

    def _approve(self, command: commands.Approve) -> Reply:
        proposal = self._proposal_of(command.proposal, "approved")
        if isinstance(proposal, Reply):
            return proposal
        if proposal["actor"] == self._actor:
            raise ProtocolError(
                f"proposal {command.proposal} is {self._actor!r}'s own; another person must approve"
            )
        self._proposal = command.proposal
        reply = self._carry_out(self._as_command(proposal))
        if reply.repeated:
            raise ProtocolError(
                f"proposal {command.proposal} would change nothing, it is so by now; reject it"
            )
        return reply

    def _reject(self, command: commands.Reject) -> Reply:
        proposal = self._proposal_of(command.proposal, "rejected")
        if isinstance(proposal, Reply):
            return proposal
        self._append("rejected", {"proposal": command.proposal, "why": command.why})
        return self._done("rejected", command.proposal)

    def _proposal_of(self, number: int, how: str) -> Mapping[str, Any] | Reply:
        """Return an open proposal, or the reply that was given when it was decided this way."""
        if number in self.rules.proposals:
            return self.rules.proposals[number]
        if number not in self.rules.decided:
            raise UnknownName("proposal", number, self.rules.proposals)
        kind, person, why = self.rules.decided[number]
        was = "rejected" if kind == "rejected" else "approved"
        if how != was:
            raise ProtocolError(f"proposal {number} was {was} before")
        about = (number, "") if was == "rejected" else (person, why)
        return self._done(kind, *about, repeated=True)

    def _as_command(self, proposal: Mapping[str, Any]) -> Command:
        """Return the command that a proposal stands for; its arguments are the command's fields."""
        kind, own = proposal["command"], dict(proposal["arguments"])
        if "person" in own:
            row = (self.rules.people or {}).get(own["person"])
            if row is None or row.person is None:
                raise ProtocolError(f"person {own['person']} was erased since; reject the proposal")
            own["person"] = row.person
        made: Command = next(c for c, (_, events) in HANDLERS.items() if kind in events)(**own)
        return made


def _reply(row: PersonRecord, *, repeated: bool = False) -> Reply:
    """Return what is stored about a person as an answer."""
    known = {name: getattr(row, name) for name in ("hold", "number", "request", "why", "outcome")}
    return Reply(row.person or "", str(row.state), Want(row.want), **known, repeated=repeated)


W = TransactionWriter
HANDLERS: dict[type, tuple[Callable[[W, Any], Reply], tuple[str, ...]]] = {
    commands.Ask: (W._ask, ("asked",)),
    commands.Tell: (W._tell, ("revealed", "noted")),
    commands.Execute: (W._execute, ("executed",)),
    commands.Withdraw: (W._move, ("withdrawn",)),
    commands.MarkOverdue: (W._move, ("overdue",)),
    commands.WriteOff: (W._move, ("written_off",)),
    commands.Correct: (W._correct, ("corrected",)),
    commands.Erase: (W._erase, ("erased",)),
    commands.Scrubbed: (W._scrubbed, ("scrubbed",)),
    commands.Conclude: (W._switch, ("concluded",)),
    commands.Pause: (W._switch, ("paused",)),
    commands.Resume: (W._switch, ("resumed",)),
    commands.SetBudget: (W._set_budget, ("budget",)),
    commands.SetLimits: (W._set_limits, ("limits",)),
    commands.SetRandomAccepts: (W._set_random_accepts, ("random_accepts",)),
    commands.Upgrade: (W._upgrade, ("upgraded",)),
    commands.Approve: (W._approve, APPROVABLE),
    commands.Reject: (W._reject, ("rejected",)),
}
"""Command -> what carries it out, and the events that it may lead to."""
