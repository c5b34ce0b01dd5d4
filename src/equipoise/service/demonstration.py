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

DEMONSTRATION_AUDIT = "Demonstration: a lender"
ARRIVAL_PAUSE_SECONDS = 0.5  # seconds between arrivals
PEOPLE_PER_ARRIVAL = 12
OUTCOME_DELAY_ARRIVALS = 8  # arrivals until an outcome is known


def demonstrate(ledger: str, stop: threading.Event) -> None:
    """Let people arrive at the audit of a lender while the server runs, so that its page lives."""
    lender = fico_lender()
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    costs = Costs(feature=500, label=100_000)
    with suppress(EquipoiseError):  # an earlier start may have made it
        LiveAudit.create(
            ledger, DEMONSTRATION_AUDIT, lender.history(), question, costs, budget=100_000_000,
            currency="EUR", decimals=2, max_in_flight=150, overdue_after=30.0, simulated=True,
            actor="simulation",
        ).close_ledger()  # fmt: skip
    live = LiveAudit.open(ledger, DEMONSTRATION_AUDIT, actor="simulation")
    pending_outcomes: deque[list[tuple[str, int]]] = deque()
    while live.finding is None and not stop.wait(ARRIVAL_PAUSE_SECONDS):
        arrived_before = live.status().people
        new_people = lender.world.draw(PEOPLE_PER_ARRIVAL, arrived_before + 1)
        people = {
            f"applicant-{arrived_before + i}": person for i, person in enumerate(new_people, 1)
        }
        with suppress(EquipoiseError):  # the database is busy; people keep arriving
            replies = live.ask_many(
                (name, person.group, person.decision) for name, person in people.items()
            )
            wanted_people = [reply.person for reply in replies if reply.want is Want.LABEL]
            live.run(Execute(name) for name in wanted_people[1:])  # one of them is left over
            with_outcome = [
                name for name, person in people.items() if person.decision or name in wanted_people
            ]
            pending_outcomes.append([(name, people[name].outcome) for name in with_outcome])
            live.tell_many(
                pending_outcomes.popleft() if len(pending_outcomes) > OUTCOME_DELAY_ARRIVALS else ()
            )
    live.close_ledger()
