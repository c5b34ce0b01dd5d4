"""Money by phase, for an audit that asks different things at different times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.audits.base import Spending
from equipoise.errors import UnknownName
from equipoise.question import Costs, Ticket, Want

__all__ = ["PhaseBooks"]


class PhaseBooks:
    """Requests to denied people per phase and group; they add up to the audit's own spending."""

    def __init__(self, phases: Sequence[str], groups: Iterable[str]) -> None:
        names = tuple(groups)
        self.spending = {phase: {group: Spending() for group in names} for phase in phases}
        self._of: dict[int, str] = {}  # phase of every request without an answer

    def request(self, ticket: Ticket, phase: str) -> None:
        """Book a request that was just made."""
        self._of[ticket.number] = phase
        if ticket.decision == 0:
            labels = int(ticket.want is Want.LABEL)
            self.add(phase, ticket.group, labels=labels, features=1 - labels, pending=labels)

    def settle(self, ticket: Ticket, outcome: int | None) -> None:
        """Book an answer, or that none will come."""
        if ticket.decision == 0 and ticket.want is Want.LABEL:
            failures = int(outcome == 0)
            self.add(self.phase_of(ticket), ticket.group, failures=failures, pending=-1)

    def close(self, ticket: Ticket) -> str:
        """Forget a request whose answer has been counted; return its phase."""
        return self._of.pop(ticket.number)

    def phase_of(self, ticket: Ticket) -> str:
        """Return the phase in which an open request was made."""
        return self._of[ticket.number]

    def add(
        self,
        phase: str,
        group: str,
        *,
        labels: int = 0,
        failures: int = 0,
        features: int = 0,
        pending: int = 0,
    ) -> None:
        """Add to a phase's counts."""
        spending = self.spending[phase][group]
        spending.labels += labels
        spending.failures += failures
        spending.features += features
        spending.pending += pending

    def cost(self, phase: str, costs: Costs) -> float:
        """Return what a phase has cost so far."""
        if phase not in self.spending:
            raise UnknownName("phase", phase, self.spending)
        return sum(s.cost(costs.of(g)) for g, s in self.spending[phase].items())
