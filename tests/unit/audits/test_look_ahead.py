"""What the adaptive audit may conclude from labels that came before an earlier one."""

from __future__ import annotations

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.protocol import Ticket
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from tests.unit.audits.forced import ask_for_label

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.0), "B": (0.3, 0.1, 0.6, 1.0)})
QUESTION = Question("false_omission_parity", gamma=0.05, epsilon=0.05)


def requests(audit: AdaptiveAudit, labels: int) -> list[Ticket]:
    return [ask_for_label(audit, WORLD.groups[i % 2]) for i in range(labels)]


def test_one_label_that_is_out_holds_nothing_up() -> None:
    """What each label meets is fixed at its request, so labels may be weighed beyond the first."""
    audit = AdaptiveAudit(WORLD.past(), QUESTION, Costs())
    for ticket in requests(audit, 80)[1:]:
        audit.tell(ticket, int(WORLD.r[ticket.group]))
    assert audit.finding is not None
    assert audit.finding.verdict is Verdict.UNFAIR
    assert audit.pending > 0


def test_many_labels_that_are_out_could_all_be_otherwise() -> None:
    audit = AdaptiveAudit(WORLD.past(), QUESTION, Costs())
    tickets = requests(audit, 80)
    for ticket in tickets[::2]:  # one group's only
        audit.tell(ticket, int(WORLD.r[ticket.group]))
    assert audit.finding is None
