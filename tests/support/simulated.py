"""Live audits of people who do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question
from equipoise.worlds import World

AT_ONCE = 50  # people who arrive together


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
    rng, came = np.random.default_rng(seed + 1), 0
    while live.finding is None and came < people:
        drawn = list(world.draw(min(AT_ONCE, people - came), rng))
        names = [str(came + i) for i in range(len(drawn))]
        replies = live.ask_many(
            (name, person.group, person.decision) for name, person in zip(names, drawn, strict=True)
        )
        live.tell_many(
            (reply.person, person.outcome)
            for reply, person in zip(replies, drawn, strict=True)
            if reply.want is Want.LABEL or person.decision == 1
        )
        came += len(drawn)
    if live.finding is None:
        live.conclude("the simulated people are used up")
    return live
