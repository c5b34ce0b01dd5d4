"""What the adaptive audit may conclude from labels that came before an earlier one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.question import Costs, Question, Ticket, Verdict, Want
from equipoise.worlds import CellWorld

Array = NDArray[np.float64]
WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.0), "B": (0.3, 0.1, 0.6, 1.0)})
QUESTION = Question("false_omission_parity", gamma=0.05, epsilon=0.05)


def request(audit: AdaptiveAudit, labels: int) -> list[Ticket]:
    tickets = (audit.ask(group, 0) for _ in range(labels) for group in WORLD.groups)
    return [ticket for ticket in tickets if ticket.want is Want.LABEL][:labels]


def start(pending: str) -> tuple[AdaptiveAudit, list[Ticket]]:
    """All of 80 labels are told except for the first; the two groups could not differ more."""
    audit = AdaptiveAudit(WORLD.past(), QUESTION, Costs(), pending=pending)  # type: ignore[arg-type]
    tickets = request(audit, 80)
    for ticket in tickets[1:]:
        audit.tell(ticket, int(WORLD.r[ticket.group]))
    return audit, tickets


def test_a_prefix_waits_for_the_first_label() -> None:
    audit, tickets = start("prefix")
    assert audit.finding is None
    audit.tell(tickets[0], int(WORLD.r[tickets[0].group]))
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR


def test_labels_that_will_meet_other_bets_are_not_judged_by_these() -> None:
    """The first bets hold for the pilot; 80 labels would decide if they all met them."""
    audit, tickets = start("worst_case")
    weighing = audit.evidence
    assert weighing is not None
    window = weighing.labels_until_change
    assert window == 10
    assert weighing.verdict_with(*_counts(tickets)) is Verdict.UNFAIR
    assert weighing.verdict_with(*_counts(tickets[:window])) is None
    assert audit.finding is None


def _counts(tickets: list[Ticket]) -> tuple[Array, Array, Array]:
    ones, zeros, unknown = (np.zeros(2) for _ in range(3))
    for ticket in tickets:
        index = WORLD.groups.index(ticket.group)
        known = ones if WORLD.r[ticket.group] else zeros
        (unknown if ticket is tickets[0] else known)[index] += 1
    return ones, zeros, unknown
