"""A demonstration: three audits of a lender, one of which simulated people keep arriving at.

The first audit is in progress, and people arrive at a steady pace until the server stops. The
second waits for the approval of a larger budget. The third has ended with a verdict.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.ledger.commands import Execute, SetBudget
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds.data import Lender, fico_lender

NAME_PREFIX = "Demonstration: "  # of every audit's name
DEMONSTRATION_AUDIT = f"{NAME_PREFIX}a lender"
WAITING_AUDIT = f"{NAME_PREFIX}waits for approval"
ENDED_AUDIT = f"{NAME_PREFIX}has ended"
ARRIVAL_PAUSE_SECONDS = 1.0
PEOPLE_PER_ARRIVAL = 2
PEOPLE_PER_DAY = 100  # who come at once before the visitor does
PEOPLE_AT_START = {DEMONSTRATION_AUDIT: 3000, WAITING_AUDIT: 1500, ENDED_AUDIT: 30_000}
"""Audit -> how many people have come before the visitor does; fewer if it ends before."""
OUTCOME_DELAY_ARRIVALS = 20  # arrivals until an outcome is known
ACTOR = "simulation"
PROPOSER = "second auditor"


class _AuditPlan(NamedTuple):
    """What an audit of the demonstration asks, what it may spend, and what needs approval."""

    question: Question
    budget: int
    approvals: tuple[str, ...] = ()


# Around a tolerance that is close to the true gap of 17.8 points an audit takes tens of thousands
# of people. So the first one is still in progress whenever a visitor comes.
_LONG = Question("equal_opportunity", gamma=0.10, epsilon=0.05)
_SHORT = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
_COSTS = Costs(feature=0, label=40_000)  # cents
_PLANS = {
    WAITING_AUDIT: _AuditPlan(_SHORT, 5_000_000, ("budget",)),
    ENDED_AUDIT: _AuditPlan(_SHORT, 30_000_000),
}


def demonstrate(ledger: str, stop: threading.Event) -> None:
    """Prepare three audits, and let people arrive at the first one until ``stop`` is set."""
    lender = fico_lender()
    live = _open_running_audit(ledger, lender, stop)
    for name, plan in _PLANS.items():
        side_audit = _open_audit(ledger, name, plan, lender, stop)
        if name == WAITING_AUDIT:
            _propose_budget(side_audit, ledger)
        side_audit.close_ledger()
    arrivals = _DemonstrationPeople(live, lender)
    while not stop.wait(ARRIVAL_PAUSE_SECONDS):
        with suppress(EquipoiseError):  # the database is busy; people keep arriving
            if live.finding is not None:
                live.close_ledger()
                live = _open_running_audit(ledger, lender, stop)
                arrivals = _DemonstrationPeople(live, lender)
            arrivals.arrive(PEOPLE_PER_ARRIVAL)
    live.close_ledger()


def _open_running_audit(ledger: str, lender: Lender, stop: threading.Event) -> LiveAudit:
    """Return the first audit that is in progress, a new one if the others have ended."""
    number = 1
    while True:
        name = DEMONSTRATION_AUDIT if number == 1 else f"{DEMONSTRATION_AUDIT} ({number})"
        live = _open_audit(ledger, name, _AuditPlan(_LONG, 100_000_000), lender, stop)
        if live.finding is None:
            return live
        live.close_ledger()
        number += 1


def _open_audit(
    ledger: str, name: str, plan: _AuditPlan, lender: Lender, stop: threading.Event
) -> LiveAudit:
    """Return an audit of the demonstration, to which people came before the visitor does."""
    try:
        live = LiveAudit.open(ledger, name, actor=ACTOR)
    except EquipoiseError:  # no earlier start of the server began it
        live = _begin_audit(ledger, name, plan, lender)
    arrivals = _DemonstrationPeople(live, lender, delay=1)
    while live.finding is None and live.status().people < PEOPLE_AT_START.get(name, 0):
        if stop.is_set():
            break
        arrivals.arrive(PEOPLE_PER_DAY)
    return live


def _begin_audit(ledger: str, name: str, plan: _AuditPlan, lender: Lender) -> LiveAudit:
    return LiveAudit.create(
        ledger,
        name,
        lender.history(),
        plan.question,
        _COSTS,
        budget=plan.budget,
        currency="EUR",
        decimals=2,
        overdue_after=30.0,
        approvals=plan.approvals,
        simulated=True,
        actor=ACTOR,
    )


def _propose_budget(live: LiveAudit, ledger: str) -> None:
    """Propose a larger budget, unless that was done or decided before."""
    if live.status().cap != _PLANS[WAITING_AUDIT].budget:
        return
    budget = 2 * _PLANS[WAITING_AUDIT].budget
    proposer = LiveAudit.open(ledger, WAITING_AUDIT, actor=PROPOSER)
    proposer.do(SetBudget(budget, "the first budget is nearly spent"))
    proposer.close_ledger()


class _DemonstrationPeople:
    """People who come to an audit; the outcomes of those who are asked for come some time later."""

    def __init__(
        self, live: LiveAudit, lender: Lender, delay: int = OUTCOME_DELAY_ARRIVALS
    ) -> None:
        self._live = live
        self._lender = lender
        self._delay = delay  # arrivals until an outcome is known
        self._pending_outcomes: deque[list[tuple[str, int]]] = deque()

    def arrive(self, n_people: int) -> None:
        """Ask about new people, and tell the outcomes of those who came some time ago."""
        self._pending_outcomes.append(self._ask(n_people))
        if len(self._pending_outcomes) > self._delay:
            self._live.tell_many(self._pending_outcomes.popleft())

    def _ask(self, n_people: int) -> list[tuple[str, int]]:
        """Ask about new people, and return the outcomes that will be known later."""
        # The number of arrivals is the seed, so that a restart goes on with other people.
        arrived_before = self._live.status().people
        arrivals = self._lender.world.draw(n_people, arrived_before + 1)
        people = {
            f"applicant-{number}": person
            for number, person in enumerate(arrivals, start=arrived_before + 1)
        }
        replies = self._live.ask_many(
            (name, person.group, person.decision) for name, person in people.items()
        )
        overrides = [reply.person for reply in replies if reply.want is Want.LABEL]
        # One override stays unconfirmed, so that the list of overrides to carry out is not empty.
        self._live.run(Execute(name) for name in overrides[1:])
        return [
            (name, person.outcome)
            for name, person in people.items()
            if person.decision or name in overrides
        ]
