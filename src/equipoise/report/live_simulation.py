"""A live audit of people who do not exist, so that a simulation gets the same report."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.finding import Finding
from equipoise.ledger import LiveAudit
from equipoise.question import Costs, Question, Want
from equipoise.simulation.drive import drive
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
    drive(_Applicants(live, world, np.random.default_rng(seed + 1)), people)
    if live.finding is None:
        live.conclude("the simulated people are used up")
    return live


class _Applicants:
    """People of a world who come to a live audit, some at a time."""

    def __init__(self, live: LiveAudit, world: World, rng: np.random.Generator) -> None:
        self._live = live
        self._world = world
        self._rng = rng
        self._came = 0

    @property
    def finding(self) -> Finding | None:
        return self._live.finding

    def come(self, most: int | None) -> int:
        people = list(self._world.draw(AT_ONCE if most is None else min(AT_ONCE, most), self._rng))
        names = [str(self._came + i) for i in range(len(people))]
        replies = self._live.ask_many(
            (name, person.group, person.decision)
            for name, person in zip(names, people, strict=True)
        )
        self._live.tell_many(
            (reply.person, person.outcome)
            for reply, person in zip(replies, people, strict=True)
            if reply.want is Want.LABEL or person.decision == 1
        )
        self._came += len(people)
        return len(people)
