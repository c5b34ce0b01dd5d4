"""Commands carried out one after the other, and the events that come of them.

A command is refused here, with its remedy, or becomes an event. What the event does is up to the
rule book (:class:`~equipoise.ledger.verify.LedgerRules`), which applies it before it is stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

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
from equipoise.ledger.decision import decide
from equipoise.ledger.settings import require_limits
from equipoise.ledger.state import AuditState
from equipoise.ledger.store import WriteTransaction
from equipoise.ledger.verify import (
    APPROVABLE,
    COUNTED,
    MOVES,
    UNASKED,
    PersonRecord,
    PersonState,
    canonical,
    digest,
    hash_pseudonym,
    person_facts,
)
from equipoise.protocol import Ticket, Want

COPIES_STAY = (
    "the name is in no table any more; copies stay in the database's files until somebody who may "
    "rewrite them scrubs the ledger"
)


class ChainNeeded(Exception):
    """A verdict is to be stored, and the state was not replayed from the chain.

    ``Driver._serve`` then replays the chain and tries again.
    """


@dataclass(frozen=True)
class _Origin:
    """Where an event comes from: who did it, when, under which key, by which proposal."""

    actor: str
    time: str
    key: str = ""
    proposal: int | None = None


class TransactionWriter:
    """Builds one transaction's events and the row changes they cause.

    A refused command leaves no trace, except that a conflict is itself an event. What is stored
    about the people, and under the keys, of the ``batch`` is read at once.

    Attributes
    ----------
    events
        Number and body of each new event.
    keys
        Client's key and number of the event that it led to.
    touched
        Number -> person whose row changed.
    """

    def __init__(
        self,
        state: AuditState,
        seed: bytes,
        transaction: WriteTransaction,
        batch: Sequence[Command],
    ) -> None:
        self.state = state
        self.rules = state.rules
        self.events: list[tuple[int, str]] = []
        self.keys: list[tuple[str, int]] = []
        self.touched: dict[int, PersonRecord] = {}
        self._seed = seed
        self._origin = _Origin("", "")
        # The keys come first: the events behind them name further people to read.
        self._events_by_key = transaction.events_of([c.key for c in batch if c.key])
        records = transaction.people(_names_in(batch), self._numbers_in(batch))
        # A million people do not fit into memory, so the rules see those of this batch only.
        self.rules.people.records = {record.number: record for record in records}
        self._records_by_pseudonym = {
            record.person: record for record in records if record.person is not None
        }

    def _numbers_in(self, batch: Sequence[Command]) -> list[int]:
        """Return the numbers of people whom the commands name by an event only.

        These are the people of proposals that are to be approved, and of events whose keys come
        again. All others are named by pseudonym.
        """
        approved = {command.proposal for command in batch if isinstance(command, commands.Approve)}
        event_arguments: list[Mapping[str, Any]] = []
        for number, proposal in self.rules.approvals.proposals.items():
            if number in approved:
                event_arguments.append(proposal["arguments"])
        events = self._events_by_key.values()
        event_arguments += [_arguments_of(event["data"]) for event in events]
        return [arguments["person"] for arguments in event_arguments if "person" in arguments]

    def run(self, command: Command, actor: str, time: str) -> Reply | EquipoiseError:
        """Carry out one command; return the reply or the reason why not."""
        self._origin = _Origin(actor, time, command.key)
        try:
            return self._answer_from_record(command) or self._carry_out(command)
        except (Conflict, InvalidInput, ProtocolError) as error:
            return error  # of this command; all else is about the ledger and ends the transaction

    def record_verdict(self, actor: str, time: str) -> None:
        """Append the finding if its verdict is new or gone, or if it may rest on what has changed.

        Raises
        ------
        ChainNeeded
            If the state came from the cache.
        """
        if self.state.has_other_edition:  # this program cannot repeat the other one's statistics
            return
        finding = self.state.finding()
        verdict = None if finding is None else finding.verdict.value
        # Also an unchanged verdict: a correction, budget, file of random accepts or edition may
        # move its ranges, and so may an outcome that comes after a write-off.
        must_repeat = self.rules.unsettled and verdict is not None
        if self.rules.verdict == verdict and not must_repeat:
            return
        if not self.state.is_from_chain:  # nobody trusts the cache with a verdict
            raise ChainNeeded
        data = None
        if finding is not None:
            # An alarm is a warning on the verdict: if the population has changed, the first
            # assumption of the guarantee does not hold.
            alarms = tuple(str(test) for test in self.state.drift_tests() if test.alarm)
            data = replace(finding, warnings=(*finding.warnings, *alarms)).to_dict()
        self._origin = _Origin(actor, time)
        self._append("verdict", {"finding": data, "supersedes": self.rules.verdict_seq})

    def _carry_out(self, command: Command) -> Reply:
        # An upgrade ends the difference of editions, and somebody must be able to approve it.
        if not isinstance(command, commands.Upgrade | commands.Approve | commands.Reject):
            self.state.require_edition()
        return HANDLERS[type(command)].carry_out(self, command)

    def _append(
        self, kind: str, data: dict[str, Any], *, ticket: Ticket | None = None
    ) -> PersonRecord | None:
        """Let the rule book apply the next event; return the person whom it changed."""
        head = self.rules.head
        origin = self._origin
        # By this number verify finds the proposal, and that another person approved it.
        if origin.proposal is not None:
            data = {**data, "proposal": origin.proposal}
        event = {
            "actor": origin.actor,
            "audit": self.rules.uid,
            "data": data,
            "prev": head.hash,  # chains the events: a change of an earlier one would show
            "seq": head.seq + 1,
            "time": origin.time,
            "type": kind,
        }
        # A conflict does not carry out the command, so that its key stays free for another try.
        if origin.key and kind != "conflict":
            event["key"] = origin.key
            # A later command of the same batch may bring the key again.
            self._events_by_key[origin.key] = event
            self.keys.append((origin.key, head.seq + 1))
        body = canonical(event)
        try:
            person = self.state.apply(event, digest(body), ticket=ticket)
        except (ProtocolError, ValueError) as error:  # too late to refuse this command alone
            raise LedgerError(f"the rules refused {kind!r}: {error}") from error
        self.events.append((head.seq, body))  # the head has moved on: this is the event's number
        if person is not None:
            self.touched[person.number] = person
        return person

    def _refuse(self, error_class: type[EquipoiseError], code: str, **facts: Any) -> EquipoiseError:
        """Return the error of a refusal, in the name of this audit."""
        return self.state.refuse(error_class, code, **facts)

    # -- duplicates -------------------------------------------------------------------------------

    def _answer_from_record(self, command: Command) -> Reply | None:
        """Answer a command whose key is known from the record; None if the key is new."""
        event = self._events_by_key.get(command.key) if command.key else None
        if event is None:
            return None
        kind = event["type"]
        data = event["data"]
        person = self._record_of(_arguments_of(data).get("person", 0))  # numbers begin at 1
        if not self._is_same_command(command, kind, data, person):
            raise self._refuse(
                Conflict, "key-used", key=command.key, event=event["seq"], event_type=kind
            )
        # A proposal is known by the number of its event.
        if kind == "proposed":
            return Reply("", state="PROPOSED", number=event["seq"], repeated=True)
        # The first answer to an erasure named no person, and the repeated one must not either.
        if person is not None and kind != "erased":
            return _reply(person, repeated=True)
        # A rejection answers with the proposal that it ended, all else with the person, if any.
        number = data.get("proposal") if kind == "rejected" else data.get("person")
        return self._reply_for_audit(kind, number, data.get("why", ""), repeated=True)

    def _is_same_command(
        self, command: Command, kind: str, data: Mapping[str, Any], person: PersonRecord | None
    ) -> bool:
        """Whether an event under a command's key is what this command leads to."""
        if person is not None and not self._may_be_about(command, person):
            return False
        possible_events = HANDLERS[type(command)].events
        event_kind = data["command"] if kind == "proposed" else kind
        if event_kind not in possible_events:
            return False
        return not self._differs(command, _arguments_of(data))

    def _may_be_about(self, command: Command, person: PersonRecord) -> bool:
        """Whether a command names a person, who may have been erased since."""
        pseudonym = commands.person_of(command)
        named = self._records_by_pseudonym.get(pseudonym) if pseudonym else None
        if named is not None:
            return named.number == person.number
        if not pseudonym:
            return True
        # Of an erased person nothing is left by which to compare. An ask is refused all the same:
        # the answer might want an outcome of somebody whom the ledger does not have.
        return person.person is None and not isinstance(command, commands.Ask)

    def _differs(self, command: Command, recorded: Mapping[str, Any]) -> bool:
        """Say whether what is recorded differs from a command in more than the reason."""
        # The command is written as its event would write it: groups by their names in the past.
        arguments: dict[str, Any] = {}
        for field in fields(command):
            value = getattr(command, field.name)
            is_by_group = isinstance(value, Mapping)
            arguments[field.name] = self._with_past_names(value) if is_by_group else value
        if isinstance(command, commands.SetRandomAccepts):
            # The event has every group, the command may leave out those without people.
            no_people = {group: [0, 0, 0] for group in self.rules.people.groups}
            by_group = no_people | arguments["random_accepts"]
            arguments["random_accepts"] = to_plain_data(by_group)
        if isinstance(command, commands.Ask):
            (arguments["group"],) = self._with_past_names({command.group: None})
        # An event has a number where the command has a pseudonym, which was compared before. What
        # an event does not record, such as a key, cannot be compared.
        compared = arguments.keys() & (recorded.keys() | {"proposal"}) - {"person", "why"}
        return any(arguments[name] != recorded.get(name) for name in compared)

    def _with_past_names(self, by_group: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mapping of groups by their names in the historical data."""
        names = self.state.settings.group_names
        return {names.get(group, group): value for group, value in by_group.items()}

    # -- people -----------------------------------------------------------------------------------

    def _ask(self, command: commands.Ask) -> Reply:
        settings = self.state.settings
        group = settings.group_names.get(command.group)
        stored = self._records_by_pseudonym.get(command.person)
        # Before the group is checked: a person who is known keeps the answer, whatever comes now.
        if stored is not None:
            if (stored.group_name, stored.decision) != (group, command.decision):
                raise self._refuse(
                    Conflict,
                    "person-conflict",
                    person=command.person,
                    stored_group=stored.group_name,
                    stored_decision=stored.decision,
                    group=command.group,
                    decision=command.decision,
                )
            return _reply(stored, repeated=True)
        if group is None:
            raise UnknownName("group", command.group, settings.groups)
        require_usable_score(settings.assist, command.score, command.price)
        # A salt per person: the hash in the chain says nothing once the salt is erased.
        salt = os.urandom(16).hex()
        number = self.rules.people.arrived + 1
        data: dict[str, Any] = {
            "person": number,
            "who": hash_pseudonym(salt, self.rules.uid, command.person),
            "group": group,
            "decision": command.decision,
        }
        # Drift tests count outcomes of the approved by this place, not in the order they come in.
        if command.decision == 1:
            data["place"] = self.rules.people.groups[group].approved
        decision = decide(self.state, self._seed, command, group, number)
        data |= decision.event_data()
        person = self._append("asked", data, ticket=decision.ticket)
        assert person is not None
        # Pseudonym and salt are in the table of people only, never in an event.
        person.person = command.person
        person.salt = salt
        self._records_by_pseudonym[command.person] = person
        return _reply(person)

    def _tell(self, command: commands.Tell) -> Reply:
        person = self._known_person(command.person)
        outcome = command.outcome
        if person.outcome is not None:
            return self._answer_second_outcome(person, outcome)
        if person.state in UNASKED:
            # Nobody asked, so it costs nothing and statistics of the denied never see it.
            return self._append_about("noted", person, outcome=outcome)
        cost = self.rules.money.price(person, outcome)
        return self._append_about("revealed", person, cost, outcome=outcome)

    def _answer_second_outcome(self, person: PersonRecord, outcome: int) -> Reply:
        """Answer a second outcome of a person: the same one is a duplicate, another a conflict."""
        if person.outcome == outcome:
            return _reply(person, repeated=True)
        # The conflict is stored although the command is refused: it must not be lost.
        if not person.conflicted:
            self._append_about("conflict", person, told=outcome)
        raise self._refuse(
            Conflict,
            "outcome-conflict",
            person=person.person,
            stored_outcome=person.outcome,
            outcome=outcome,
        )

    def _execute(self, command: commands.Execute) -> Reply:
        person = self._known_person(command.person)
        # All other states will do: the message may come after the outcome.
        if person.want != Want.LABEL or person.state == PersonState.WITHDRAWN:
            raise self._refuse(
                ProtocolError, "nothing-to-execute", person=person.person, state=str(person.state)
            )
        if person.executed:
            return _reply(person, repeated=True)
        return self._append_about("executed", person)

    def _move(self, command: commands.Withdraw | commands.MarkOverdue | commands.WriteOff) -> Reply:
        """Carry out what takes a person from certain states to another one."""
        person = self._known_person(command.person)
        (kind,) = HANDLERS[type(command)].events
        states_before, state = MOVES[kind]
        if person.state == state:
            return _reply(person, repeated=True)
        if person.state not in states_before:
            raise self._refuse(
                ProtocolError,
                "wrong-state",
                person=person.person,
                state=str(person.state),
                states=[str(state_before) for state_before in states_before],
                action=kind,
            )
        # An outcome that is given up may have been a failure, so it costs what was held for it.
        cost = person.hold if kind == "written_off" else None
        return self._append_about(kind, person, cost)

    def _correct(self, command: commands.Correct) -> Reply:
        person = self._known_person(command.person)
        outcome = command.outcome
        if person.outcome is None:
            raise self._refuse(ProtocolError, "no-outcome-yet", person=person.person)
        if person.outcome == outcome:
            return _reply(person, repeated=True)
        arguments = {"person": person.number, "outcome": outcome, "why": command.why}
        proposal_reply = self._propose("corrected", arguments)
        if proposal_reply is not None:
            return proposal_reply
        # An outcome of a person who was not asked was noted at no cost, and so is its correction.
        cost = self.rules.money.price(person, outcome) if person.state in COUNTED else None
        return self._append_about("corrected", person, cost, outcome=outcome, why=command.why)

    def _erase(self, command: commands.Erase) -> Reply:
        person = self._records_by_pseudonym.get(command.person)
        if person is None:  # erased before, or never known: nothing is left that could tell
            return self._reply_for_audit("erased", repeated=True)
        # Nobody could tell the outcome of an erased person, and the held money would stay held.
        if person.open:
            raise self._refuse(
                ProtocolError,
                "request-open",
                person=person.person,
                state=str(person.state),
            )
        proposal_reply = self._propose("erased", {"person": person.number})
        if proposal_reply is not None:
            return proposal_reply
        # A later command of the same batch must not find the erased person.
        del self._records_by_pseudonym[command.person]
        self._append_about("erased", person)
        return self._reply_for_audit("erased", person.number)

    def _append_about(
        self, kind: str, person: PersonRecord, cost: int | None = None, **facts: Any
    ) -> Reply:
        """Append an event about a person, with what they cost now if it is about money."""
        data = {**person_facts(person), **facts}
        if cost is not None:
            data["cost"], data["overrun"] = self.rules.money.bill(person, cost)
        self._append(kind, data)
        return _reply(person)

    def _known_person(self, pseudonym: str) -> PersonRecord:
        person = self._records_by_pseudonym.get(pseudonym)
        if person is None:
            raise self._refuse(UnknownPerson, "unknown-person", person=pseudonym)
        return person

    def _record_of(self, number: int) -> PersonRecord | None:
        return (self.rules.people.records or {}).get(number)

    # -- the audit --------------------------------------------------------------------------------

    def _reply_for_audit(
        self, kind: str, number: int | None = None, why: str = "", *, repeated: bool = False
    ) -> Reply:
        """Answer what happened to the audit, or to somebody who is erased by now."""
        rules = self.rules
        state = kind.upper()
        # The name is out of the tables, but not out of the unused space of the database's files.
        if kind == "erased" and rules.people.scrubbed < rules.people.erased:
            state = "UNLINKED"
            why = COPIES_STAY
        has_ended = rules.concluded is not None or rules.verdict is not None
        # "RESUMED" would promise that people are asked again.
        if kind in ("paused", "resumed") and has_ended:
            state = "DECIDED" if rules.concluded is None else "CONCLUDED"
            why = "nobody is asked any more"
        return Reply("", state=state, number=number, why=why, repeated=repeated)

    def _scrubbed(self, command: commands.Scrubbed) -> Reply:
        if command.erased > self.rules.people.scrubbed:
            self._append("scrubbed", {"erased": command.erased})
        return self._reply_for_audit("erased")

    def _conclude(self, command: commands.Conclude) -> Reply:
        if self.rules.concluded is not None:
            return self._reply_for_audit("concluded", why=self.rules.concluded, repeated=True)
        return self._change("concluded", {"why": command.why})

    def _pause(self, command: commands.Pause) -> Reply:
        if self.rules.paused is not None:
            return self._reply_for_audit("paused", why=self.rules.paused, repeated=True)
        return self._change("paused", {"why": command.why})

    def _resume(self, command: commands.Resume) -> Reply:
        if self.rules.paused is None:
            return self._reply_for_audit("resumed", repeated=True)
        return self._change("resumed", {"why": command.why})

    def _set_budget(self, command: commands.SetBudget) -> Reply:
        head = self.rules.head
        committed = head.spent + head.reserved  # what is held may still have to be paid
        if command.budget is not None and command.budget < committed:
            settings = self.state.settings
            raise self._refuse(
                ProtocolError,
                "budget-committed",
                least=committed,
                budget=command.budget,
                currency=settings.currency,
                decimals=settings.decimals,
            )
        return self._change(
            "budget",
            {"budget": command.budget, "why": command.why},
            is_noop=command.budget == head.cap,
            before=head.cap,
        )

    def _set_limits(self, command: commands.SetLimits) -> Reply:
        rules = self.rules
        by_group = self._with_past_names(command.max_in_flight_groups)
        require_limits(command.max_in_flight, by_group, self.state.settings.groups)
        has_same_total = command.max_in_flight == rules.max_in_flight
        has_same_groups = by_group == rules.max_in_flight_groups
        arguments = {
            "max_in_flight": command.max_in_flight,
            "max_in_flight_groups": by_group,
            "why": command.why,
        }
        return self._change("limits", arguments, is_noop=has_same_total and has_same_groups)

    def _set_random_accepts(self, command: commands.SetRandomAccepts) -> Reply:
        corrected = self._with_past_names(command.corrected)
        # The audit itself checks the counts. They are entered when the event is applied.
        counts = self.state.audit.set_random_accepts(
            self._with_past_names(command.random_accepts), corrected, dry_run=True
        )
        return self._change(
            "random_accepts",
            {"random_accepts": counts, "corrected": corrected, "why": command.why},
            is_noop=counts == self.rules.random_accepts,
        )

    def _upgrade(self, command: commands.Upgrade) -> Reply:
        return self._change(
            "upgraded",
            {"why": command.why},
            is_noop=not self.state.has_other_edition,
            edition=evidence.EDITION,
            software=__version__,
            before=self.rules.edition,
        )

    def _change(
        self, kind: str, arguments: dict[str, Any], *, is_noop: bool = False, **facts: Any
    ) -> Reply:
        """Change the audit, or propose to, unless nothing would change.

        ``arguments`` are those of the command, ``facts`` what its event says besides.
        """
        if is_noop:
            return self._reply_for_audit(kind, repeated=True)
        proposal_reply = self._propose(kind, arguments)
        if proposal_reply is not None:
            return proposal_reply
        self._append(kind, {**arguments, **facts})
        return self._reply_for_audit(kind, why=arguments["why"])

    # -- two people -------------------------------------------------------------------------------

    def _propose(self, kind: str, arguments: dict[str, Any]) -> Reply | None:
        """Record a proposal where a second person must approve; None where it may be done now."""
        # With a number of a proposal the second person has approved, and this is the change itself.
        if kind not in self.rules.approvals.required or self._origin.proposal is not None:
            return None
        for number, proposal in self.rules.approvals.proposals.items():
            # The same proposal twice would have to be approved twice.
            if (proposal["command"], proposal["arguments"]) == (kind, arguments):
                return Reply("", state="PROPOSED", number=number, repeated=True)
        self._append("proposed", {"command": kind, "arguments": arguments})
        return Reply("", state="PROPOSED", number=self.rules.head.seq)

    def _approve(self, command: commands.Approve) -> Reply:
        proposal = self._open_proposal(command.proposal, "approved")
        if isinstance(proposal, Reply):
            return proposal
        # The rules would refuse it too, but as an error of the whole transaction.
        if proposal["actor"] == self._origin.actor:
            raise self._refuse(
                ProtocolError,
                "own-proposal",
                proposal=command.proposal,
                actor=self._origin.actor,
            )
        self._origin = replace(self._origin, proposal=command.proposal)
        reply = self._carry_out(self._proposed_command(proposal))
        # Nothing would change, so no event came of it that could close the proposal.
        if reply.repeated:
            raise self._refuse(ProtocolError, "proposal-is-noop", proposal=command.proposal)
        return reply

    def _reject(self, command: commands.Reject) -> Reply:
        proposal = self._open_proposal(command.proposal, "rejected")
        if isinstance(proposal, Reply):
            return proposal
        self._append("rejected", {"proposal": command.proposal, "why": command.why})
        return self._reply_for_audit("rejected", command.proposal)

    def _open_proposal(self, number: int, decision: str) -> Mapping[str, Any] | Reply:
        """Return an open proposal, or the reply that was given when it was decided this way."""
        approvals = self.rules.approvals
        if number in approvals.proposals:
            return approvals.proposals[number]
        if number not in approvals.decided:
            raise UnknownName("proposal", number, approvals.proposals)
        # The event that closed the proposal: a rejection, or the change that was approved.
        kind, person, why = approvals.decided[number]
        earlier_decision = "rejected" if kind == "rejected" else "approved"
        if decision != earlier_decision:
            raise self._refuse(
                ProtocolError, "proposal-decided", proposal=number, earlier=earlier_decision
            )
        # As the first time: a rejection is about the proposal, a change about a person or nobody.
        if kind == "rejected":
            return self._reply_for_audit(kind, number, repeated=True)
        return self._reply_for_audit(kind, person, why, repeated=True)

    def _proposed_command(self, proposal: Mapping[str, Any]) -> Command:
        """Return the command that a proposal stands for; its arguments are the command's fields."""
        arguments = dict(proposal["arguments"])
        # An event has the person's number. The command needs the pseudonym, which may be erased.
        if "person" in arguments:
            number = arguments["person"]
            person = self._record_of(number)
            if person is None or person.person is None:
                raise self._refuse(ProtocolError, "proposal-of-erased-person", number=number)
            arguments["person"] = person.person
        for command_class, handler in HANDLERS.items():
            if proposal["command"] in handler.events:
                command: Command = command_class(**arguments)
                return command
        raise LedgerError(f"no command leads to {proposal['command']!r}")


def _arguments_of(event_data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of the command behind an event; a proposal keeps them apart."""
    arguments: Mapping[str, Any] = event_data.get("arguments", event_data)
    return arguments


def _names_in(batch: Sequence[Command]) -> list[str]:
    """Return the pseudonyms of the people whom commands are about."""
    names = [commands.person_of(command) for command in batch]
    return [name for name in names if name]


def _reply(person: PersonRecord, *, repeated: bool = False) -> Reply:
    """Return what is stored about a person as an answer."""
    return Reply(
        person=person.person or "",
        state=str(person.state),
        want=Want(person.want),
        hold=person.hold,
        number=person.number,
        request=person.request,
        why=person.why,
        outcome=person.outcome,
        repeated=repeated,
    )


W = TransactionWriter


class Handler(NamedTuple):
    """What carries out a command, and the events that it may lead to."""

    carry_out: Callable[[W, Any], Reply]
    events: tuple[str, ...]


HANDLERS: dict[type, Handler] = {
    commands.Ask: Handler(W._ask, ("asked",)),
    commands.Tell: Handler(W._tell, ("revealed", "noted")),
    commands.Execute: Handler(W._execute, ("executed",)),
    commands.Withdraw: Handler(W._move, ("withdrawn",)),
    commands.MarkOverdue: Handler(W._move, ("overdue",)),
    commands.WriteOff: Handler(W._move, ("written_off",)),
    commands.Correct: Handler(W._correct, ("corrected",)),
    commands.Erase: Handler(W._erase, ("erased",)),
    commands.Scrubbed: Handler(W._scrubbed, ("scrubbed",)),
    commands.Conclude: Handler(W._conclude, ("concluded",)),
    commands.Pause: Handler(W._pause, ("paused",)),
    commands.Resume: Handler(W._resume, ("resumed",)),
    commands.SetBudget: Handler(W._set_budget, ("budget",)),
    commands.SetLimits: Handler(W._set_limits, ("limits",)),
    commands.SetRandomAccepts: Handler(W._set_random_accepts, ("random_accepts",)),
    commands.Upgrade: Handler(W._upgrade, ("upgraded",)),
    commands.Approve: Handler(W._approve, APPROVABLE),
    commands.Reject: Handler(W._reject, ("rejected",)),
}
