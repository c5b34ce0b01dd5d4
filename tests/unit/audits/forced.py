"""Requests that an audit did not choose itself, as a log of another one brings them."""

from __future__ import annotations

from equipoise.audits.base import Audit, Step
from equipoise.protocol import Ticket, Want


def ask_for_label(audit: Audit, group: str) -> Ticket:
    """Enter a denied person whose label is asked for, whatever the audit would want."""
    hold = audit.costs.of(group).worst
    ticket = Ticket(audit._next_number, group, 0, Want.LABEL, hold)
    audit.restore([Step("asked", ticket)])
    return ticket
