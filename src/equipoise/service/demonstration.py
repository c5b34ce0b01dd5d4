"""A demonstration: simulated people arrive at the audit of a lender while the server runs."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress

from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Execute
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds.data import fico_lender

DEMONSTRATION = "Demonstration: a lender"
PAUSE = 0.5  # seconds between arrivals
AT_ONCE = 12
LATE = 8  # arrivals until an outcome is known


def demonstrate(ledger: str, stop: threading.Event) -> None:
    """Let people arrive at the audit of a lender while the server runs, so that its page lives."""
    lender = fico_lender()
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    costs = Costs(feature=500, label=100_000)
    with suppress(EquipoiseError):  # an earlier start may have made it
        LiveAudit.create(
            ledger, DEMONSTRATION, lender.history(), question, costs, budget=100_000_000,
            currency="EUR", decimals=2, max_in_flight=150, overdue_after=30.0, simulated=True,
            actor="simulation",
        ).close_ledger()  # fmt: skip
    live = LiveAudit.open(ledger, DEMONSTRATION, actor="simulation")
    waiting: deque[list[tuple[str, int]]] = deque()
    while live.finding is None and not stop.wait(PAUSE):
        came = live.status().people
        drawn = lender.world.draw(AT_ONCE, came + 1)
        people = {f"applicant-{came + i}": person for i, person in enumerate(drawn, 1)}
        with suppress(EquipoiseError):  # the database is busy; people keep arriving
            replies = live.ask_many((name, p.group, p.decision) for name, p in people.items())
            wanted = [reply.person for reply in replies if reply.want is Want.LABEL]
            live.run(Execute(name) for name in wanted[1:])  # one of them is left over
            known = [name for name, p in people.items() if p.decision or name in wanted]
            waiting.append([(name, people[name].outcome) for name in known])
            live.tell_many(waiting.popleft() if len(waiting) > LATE else ())
    live.close_ledger()
