"""Commands carried out one after the other, and the events that come of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from equipoise.errors import Conflict, EquipoiseError, InvalidInput, ProtocolError, UnknownName
from equipoise.ledger import commands as do
from equipoise.ledger.commands import Command, Reply
from equipoise.ledger.pen import stamp
from equipoise.ledger.people_writer import PeopleWriter
from equipoise.ledger.settings import require_limits

__all__ = ["Writer", "stamp"]


class Writer(PeopleWriter):
    """Commands of one transaction, carried out one after the other on one state.

    A refused command leaves no trace, except that a conflict is itself an event.
    """

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
            raise ProtocolError(
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

    def _change(self, kind: str, own: dict[str, Any], done: str) -> Reply:
        if (waiting := self._propose(kind, own)) is not None:
            return waiting
        more = {"before": self.state.cap} if kind == "budget" else {}
        self._append(kind, {**own, **more})
        return Reply("", state=done, why=own["why"])

    # -- two people -------------------------------------------------------------------------------

    def _approve(self, command: do.Approve) -> Reply:
        if (before := self._decided(command.proposal, "approved")) is not None:
            return before
        proposal = self._open_proposal(command.proposal)
        if proposal["actor"] == self._actor:
            raise ProtocolError(
                f"proposal {command.proposal} is {self._actor!r}'s own; another person must approve"
            )
        self._proposal = command.proposal
        made = self._as_command(proposal)
        return RULES[type(made)](self, made)

    def _reject(self, command: do.Reject) -> Reply:
        if (before := self._decided(command.proposal, "rejected")) is not None:
            return before
        self._open_proposal(command.proposal)
        self._append("rejected", {"proposal": command.proposal, "why": command.why})
        return Reply("", state="REJECTED", number=command.proposal)

    def _decided(self, proposal: int, how: str) -> Reply | None:
        """Answer what was decided before as it was answered then; it cannot be decided anew."""
        if proposal not in self.state.decided:
            return None
        kind, person, why = self.state.decided[proposal]
        was = "rejected" if kind == "rejected" else "approved"
        if how != was:
            raise ProtocolError(f"proposal {proposal} was {was} before")
        if kind == "rejected":
            return Reply("", state="REJECTED", number=proposal, repeated=True)
        return Reply("", state=kind.upper(), number=person, why=why, repeated=True)

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
}
