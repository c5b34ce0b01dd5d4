"""What an audit wants of a person who has just arrived, and why it wants nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.audits.base import Audit
from equipoise.ledger.commands import Ask
from equipoise.ledger.state import AuditState, to_score_event
from equipoise.ledger.verify import DRAW_RANGE, draw, draw_of_score
from equipoise.protocol import Ticket, Want


@dataclass(frozen=True)
class Decision:
    """The answer to one arrival.

    Attributes
    ----------
    ticket
        What the audit itself answered; None if it was not consulted.
    why
        One of the ledger's reasons if nothing is wanted, else empty.
    won_lottery
        Whether the lottery drew the person; None if it was not held.
    ended
        Whether this arrival ended the audit.
    closed
        Whether this arrival closed a group for good.
    """

    ticket: Ticket | None
    why: str = ""
    won_lottery: bool | None = None
    ended: bool = False
    closed: bool = False

    def event_data(self) -> dict[str, Any]:
        """Return the decision as fields of the event ``asked``, without flags that are false."""
        data: dict[str, Any] = {"why": self.why}
        if self.ticket is None:
            data |= {"want": Want.NOTHING.value, "hold": 0, "request": None}
        else:
            data["want"] = self.ticket.want.value
            data["hold"] = int(self.ticket.hold)
            data["request"] = self.ticket.number
            if self.ticket.score_record is not None:
                data["observation"] = to_score_event(self.ticket.score_record)
        if self.won_lottery is not None:
            data["drawn"] = self.won_lottery
        if self.ended:
            data["ended"] = True
        if self.closed:
            data["closed"] = True
        return data


def decide(state: AuditState, seed: bytes, ask: Ask, group: str, number: int) -> Decision:
    """Decide about a person: first by what the ledger knows, then by asking the audit.

    Parameters
    ----------
    state
        The audit as of the event before.
    seed
        The ledger's secret, from which all draws follow.
    ask
        The command.
    group
        The person's group, by its name in the historical data.
    number
        The person's number in order of arrival.
    """
    rules = state.rules
    if rules.concluded is not None:
        return Decision(None, "concluded")
    if rules.paused is not None:
        return Decision(None, "paused")
    audit = state.audit
    if ask.decision == 1 and not audit.wants_approved:
        return Decision(None, "approved")
    won_lottery = None
    # The draw follows from seed and pseudonym alone, so it does not depend on who asks first.
    if state.settings.lottery < 1.0:
        won_lottery = draw(seed, ask.person) < state.settings.lottery * DRAW_RANGE
        if not won_lottery:
            return Decision(None, "lottery", won_lottery)
    # Baseline counts one stream of everybody. There nobody may pass while a single group waits: the
    # answer must depend on earlier people alone, not on the person who arrived.
    counts_by_group = getattr(audit, "within_group", True)
    if rules.is_full([group] if counts_by_group else state.settings.groups):
        return Decision(None, "in_flight", won_lottery)
    score_draw = None
    # The audit could draw by itself. Here the sealed seed decides, so that verify can check it.
    if state.settings.assist is not None:
        score_draw = draw_of_score(seed, number, ask.person) / DRAW_RANGE
    return _consult(audit, ask, group, won_lottery, score_draw, rules.requests)


def _consult(
    audit: Audit,
    ask: Ask,
    group: str,
    won_lottery: bool | None,
    score_draw: float | None,
    request: int,
) -> Decision:
    """Ask the audit itself, and say why if it wants nothing."""
    # An arrival may end the audit, or close a group, for lack of money. The event says so, because
    # a replay has to ask about this person again.
    finding_before = audit.finding
    closed_before = audit.closed
    ticket = audit.ask(
        group,
        ask.decision,
        score=ask.score,
        price=ask.price,
        version=ask.version,
        draw=score_draw,
        number=request,
    )
    if ticket.want is not Want.NOTHING:
        return Decision(ticket, won_lottery=won_lottery)
    return Decision(
        ticket,
        _reason_for_nothing(audit, group, ask.decision),
        won_lottery,
        ended=audit.finding is not finding_before,
        closed=audit.closed != closed_before,
    )


def _reason_for_nothing(audit: Audit, group: str, decision: int) -> str:
    """Return why the audit, which was consulted, wants nothing of a person."""
    if decision == 1:
        return "approved"
    if group in audit.question.resolve(audit.cells).left_out:
        return "left_out"
    cannot_pay = audit.costs.of(group).worst > audit.available
    if audit.is_broke or group in audit.closed or cannot_pay:
        return "budget"
    return "not_wanted" if audit.finding is None else "decided"
