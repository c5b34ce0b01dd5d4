"""A demonstration audit of a lender whose applicants keep arriving, so that the page lives."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from equipoise.errors import EquipoiseError
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question, Want
from equipoise.service.settings import ServiceSettings

__all__ = ["demonstration"]

NAME = "Demonstration: a lender"
PAUSE = 0.5  # seconds between arrivals
AT_ONCE = 12
LATE = 8  # arrivals until an outcome is known
AFTER = 40  # rounds that go on after the verdict


@contextmanager
def demonstration(settings: ServiceSettings) -> Iterator[None]:
    """Let people arrive while the server runs, if it was asked to."""
    if not settings.demo:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_live, args=(settings.ledger, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5.0)


def _live(ledger: str, stop: threading.Event) -> None:
    from equipoise.worlds.data import fico_lender

    lender = fico_lender()
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.05)
    costs = Costs(feature=500, label=100_000)
    with suppress(EquipoiseError):  # another worker, or an earlier start, may have made it
        LiveAudit.create(
            ledger, NAME, lender.history(), question, costs, budget=100_000_000, currency="EUR",
            decimals=2, max_in_flight=150, overdue_after=30.0, simulated=True, actor="simulation",
        ).close_ledger()  # fmt: skip
    live = LiveAudit.open(ledger, NAME, actor="simulation")
    waiting: deque[tuple[int, str, int]] = deque()
    round_, came, left = 0, live.status().people, AFTER
    while left and not stop.wait(PAUSE):
        round_ += 1
        people = list(lender.world.draw(AT_ONCE, came + 1))
        names = [f"applicant-{came + i + 1}" for i in range(len(people))]
        came += len(people)
        try:
            replies = live.ask_many(
                (n, p.group, p.decision) for n, p in zip(names, people, strict=True)
            )
            for reply, person in zip(replies, people, strict=True):
                if person.decision == 1 or reply.want is Want.LABEL:
                    delay = 2 if person.outcome == 0 else LATE
                    waiting.append((round_ + delay, reply.person, person.outcome))
                if reply.want is Want.LABEL and round_ % 5:
                    live.executed(reply.person)
            live.tell_many((n, y) for due, n, y in waiting if due <= round_)
            waiting = deque(one for one in waiting if one[0] > round_)
            left -= live.finding is not None
        except EquipoiseError:
            continue  # the database is busy or gone; people keep arriving
    live.close_ledger()
