"""An audit that another one hands over to: driven through its own ask/tell protocol."""

from __future__ import annotations

from dataclasses import replace

from equipoise.audits.base import Answer, Audit
from equipoise.finding import Finding
from equipoise.question import Ticket, Want

__all__ = ["Fallback"]


class Fallback:
    """The audit that finishes the job, and which of its tickets stands for which of ours."""

    def __init__(self, audit: Audit, why: str) -> None:
        self.audit = audit
        self.why = why
        self._offered: Ticket | None = None
        self._tickets: dict[int, Ticket] = {}

    @property
    def finding(self) -> Finding | None:
        """The inner audit's finding, with the reason for the hand-over."""
        found = self.audit.finding
        return None if found is None else self._explained(found)

    def wants(self, group: str, decision: int) -> Want:
        """Say what the inner audit wants of somebody."""
        self._offered = self.audit.ask(group, decision)
        return self._offered.want

    def asked(self, ticket: Ticket) -> None:
        """Note that our ticket stands for what was offered last."""
        if self._offered is not None and self._offered.want is ticket.want:
            self._tickets[ticket.number] = self._offered
        self._offered = None

    def learn(self, answer: Answer) -> None:
        """Pass an answer on, in request order."""
        ticket = self._tickets.pop(answer.ticket.number, None)
        if ticket is not None and self.audit.finding is None:
            if answer.outcome is None:
                self.audit.withdraw(ticket)
            else:
                self.audit.tell(ticket, answer.outcome)

    def conclude(self) -> Finding:
        """Return the inner audit's finding when nobody else will come."""
        return self._explained(self.audit.so_far("nobody else is to come"))

    def _explained(self, finding: Finding) -> Finding:
        return replace(finding, reason=f"{finding.reason} (by labels, because {self.why})")
