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
from equipoise.worlds.data import Lender, fico_lender

DEMONSTRATION_AUDIT = "Demonstration: a lender"
ARRIVAL_PAUSE_SECONDS = 0.5
PEOPLE_PER_ARRIVAL = 12
OUTCOME_DELAY_ARRIVALS = 8  # arrivals until an outcome is known
ACTOR = "simulation"


def demonstrate(ledger: str, stop: threading.Event) -> None:
    """Let people arrive at the audit of a lender until it ends or ``stop`` is set."""
    lender = fico_lender()
    _begin_audit(ledger, lender)
    live = LiveAudit.open(ledger, DEMONSTRATION_AUDIT, actor=ACTOR)
    pending_outcomes: deque[list[tuple[str, int]]] = deque()
    while live.finding is None and not stop.wait(ARRIVAL_PAUSE_SECONDS):
        with suppress(EquipoiseError):  # the database is busy; people keep arriving
            pending_outcomes.append(_let_people_arrive(live, lender))
            if len(pending_outcomes) > OUTCOME_DELAY_ARRIVALS:
                live.tell_many(pending_outcomes.popleft())
    live.close_ledger()


def _begin_audit(ledger: str, lender: Lender) -> None:
    """Begin the demonstration audit, unless an earlier start of the server has begun it."""
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    costs = Costs(feature=500, label=100_000)  # cents
    with suppress(EquipoiseError):
        live = LiveAudit.create(
            ledger,
            DEMONSTRATION_AUDIT,
            lender.history(),
            question,
            costs,
            budget=100_000_000,
            currency="EUR",
            decimals=2,
            max_in_flight=150,
            overdue_after=30.0,
            simulated=True,
            actor=ACTOR,
        )
        live.close_ledger()


def _let_people_arrive(live: LiveAudit, lender: Lender) -> list[tuple[str, int]]:
    """Ask about a few new people, and return the outcomes that will be known later."""
    # The number of arrivals is the seed, so that a restart goes on with other people.
    arrived_before = live.status().people
    arrivals = lender.world.draw(PEOPLE_PER_ARRIVAL, arrived_before + 1)
    people = {
        f"applicant-{number}": person
        for number, person in enumerate(arrivals, start=arrived_before + 1)
    }
    replies = live.ask_many(
        (name, person.group, person.decision) for name, person in people.items()
    )
    overrides = [reply.person for reply in replies if reply.want is Want.LABEL]
    # One override stays unconfirmed, so that the list of overrides to carry out is not empty.
    live.run(Execute(name) for name in overrides[1:])
    return [
        (name, person.outcome)
        for name, person in people.items()
        if person.decision or name in overrides
    ]
