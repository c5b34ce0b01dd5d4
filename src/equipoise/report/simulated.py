"""A live audit of people who do not exist, so that a simulation gets the same report."""

from __future__ import annotations

from typing import Any

from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question, Want
from equipoise.worlds import World

__all__ = ["simulate_live"]

AT_ONCE = 50


def simulate_live(
    world: World,
    question: Question,
    costs: Costs,
    *,
    people: int = 20_000,
    history_size: int | None = 20_000,
    seed: int = 0,
    name: str = "simulation",
    ledger: str = "sqlite://",
    **settings: Any,
) -> LiveAudit:
    """Run an audit on a world until it ends or ``people`` have arrived; return it closed.

    Parameters
    ----------
    settings
        Further arguments of :meth:`LiveAudit.create`, such as ``audit`` and ``budget``.
    """
    past = world.past(history_size, seed)
    live = LiveAudit.create(
        ledger, name, past, question, costs, simulated=True, seed=f"{seed:064x}", **settings
    )
    drawn = list(world.draw(people, seed + 1))
    for start in range(0, people, AT_ONCE):
        part = drawn[start : start + AT_ONCE]
        rows = [(f"{start + i}", p.group, p.decision) for i, p in enumerate(part)]
        replies = live.ask_many(rows)
        told = [
            (reply.person, person.outcome)
            for reply, person in zip(replies, part, strict=True)
            if reply.want is Want.LABEL or person.decision == 1
        ]
        live.tell_many(told)
        if live.status().finding is not None:
            return live
    live.close("the simulated people are used up")
    return live
