"""One audit run to its end, at two speeds: person by person, or in blocks of labels.

:func:`run` works for every audit and lets outcomes come at once, late, out of order, or never.
:func:`run_in_blocks` does the same much faster for the adaptive audit, which can say whom it would
label until its plan changes and counts these labels together.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import Generator, default_rng

from equipoise._arrays import Array
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.errors import InvalidInput, require_kind
from equipoise.finding import Finding
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs
from equipoise.worlds import TableWorld, World
from equipoise.worlds.world import Person, Seed, require_world

Delay = Callable[[int, Generator], int | None]
"""From an outcome to the arrivals after which it is told; None: the person vanishes."""


def run(
    audit: Audit,
    world: World,
    seed: Seed = 0,
    *,
    delay: Delay | None = None,
    people: int | None = None,
) -> Finding:
    """Let people arrive one by one until the audit has a finding; return it.

    Parameters
    ----------
    delay
        From an outcome and a generator to the number of further arrivals after which that outcome
        is told; None for somebody who vanishes. At once if left out.
    people
        How many people will ever come; the audit has to conclude with them.

    Examples
    --------
    >>> from equipoise.audits.rs_audit import RSAudit
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> audit = RSAudit(world.past(), Question(), Costs(), tau=100)
    >>> run(audit, world, delay=lambda outcome, rng: 50 if outcome else 5).verdict
    <Verdict.UNFAIR: 'UNFAIR'>
    """
    require_kind("audit", audit, Audit, "an audit, as AdaptiveAudit(history, question, costs)")
    require_world(world)
    require_prices_paid(world, audit.costs, audit.assist)
    rng, uses_scores = default_rng(seed), audit.assist is not None
    outcomes_due: list[
        tuple[int, int, Ticket, Person]
    ] = []  # a heap of outcomes, by when they are told

    def has_ended() -> bool:
        return audit.finding is not None

    def tell_outcomes_due(moment: float) -> None:
        while outcomes_due and outcomes_due[0][0] < moment:
            _, _, ticket, person = heapq.heappop(outcomes_due)
            audit.tell(ticket, person.outcome, person.features)

    arrived, batch_size = 0, 256
    while not has_ended() and (people is None or arrived < people):
        size = batch_size if people is None else min(batch_size, people - arrived)
        arrivals = world.draw(size, rng)
        draws = rng.random(size).tolist() if uses_scores else [None] * size
        for moment, (person, draw) in enumerate(zip(arrivals, draws, strict=True), start=arrived):
            if person.decision and not audit.wants_approved:
                continue
            tell_outcomes_due(moment)
            score, price = (person.score, person.price) if uses_scores else (None, None)
            ticket = audit.ask(person.group, person.decision, score=score, price=price, draw=draw)
            if ticket.want is Want.FEATURES:
                audit.tell(ticket, features=person.features)
            elif ticket.want is Want.LABEL:
                wait_for_outcome = 0 if delay is None else delay(person.outcome, rng)
                if wait_for_outcome is None:
                    audit.withdraw(ticket)
                else:
                    heapq.heappush(
                        outcomes_due, (moment + wait_for_outcome, ticket.number, ticket, person)
                    )
            elif has_ended():
                break
        arrived, batch_size = arrived + size, min(2 * batch_size, 65_536)
    tell_outcomes_due(np.inf)
    return audit.conclude()


def require_prices_paid(world: World, costs: Costs, assist: object) -> None:
    """Raise if people have prices of their own and the audit would not pay these."""
    if assist is None and isinstance(world, TableWorld) and world.price is not None:
        labels = [costs.of(group).label for group in world.groups]
        largest = max(*labels, float(np.nanmax(world.price)))
        raise InvalidInput(
            "people of this world have prices of their own, and an audit without assist= would "
            "pay the label cost instead: give the adaptive audit "
            f"assist=Assist(max_price={largest!r}), with gate=1e-9 as well if it is to ask "
            "everybody at these prices, or make the world without price="
        )


@dataclass
class DeniedPeople:
    """The denied whom an adaptive audit meets, in the order of its groups.

    Attributes
    ----------
    arrival_rates
        How often a denied person of each group comes.
    r
        The share of outcome 1 among the denied of each group.
    scored_people
        For an audit with scores or prices, per group: outcomes, scores and prices of the people
        to draw from, NaN where there is none.
    """

    arrival_rates: Array
    r: Array
    scored_people: list[Array]

    @classmethod
    def of(cls, audit: AdaptiveAudit, world: World) -> Self:
        """Return the denied people of a world."""
        scored_people = []
        if audit.assist is not None:
            if not isinstance(world, TableWorld):
                raise InvalidInput(
                    "an audit that looks before it asks needs a world with people to look at: "
                    f"worlds.TableWorld.from_frame(..., score=...); got a {type(world).__name__}"
                )
            none = np.full(len(world), np.nan)
            known = [none if c is None else c for c in (world.outcome, world.score, world.price)]
            scored_people = [np.stack(known)[:, world.denied_rows(group)] for group in audit.groups]
        arrival_rates = [world.cells[group].denied / world.cells.total for group in audit.groups]
        return cls(
            np.array(arrival_rates),
            np.array([world.r[group] for group in audit.groups]),
            scored_people,
        )


def run_in_blocks(
    audit: AdaptiveAudit, denied: DeniedPeople, rng: Generator, max_people: int | None = None
) -> None:
    """Label denied people, outcomes known at once, until there is a finding or enough came."""
    for _ in run_block_by_block(audit, denied, rng, max_people):
        pass


def run_block_by_block(
    audit: AdaptiveAudit, denied: DeniedPeople, rng: Generator, max_people: int | None = None
) -> Iterator[int]:
    """Label the people up to the audit's next change of plan, again and again; yield how many."""
    arrived = 0
    while audit.finding is None and (max_people is None or arrived < max_people):
        groups = audit.choose_block(
            denied.arrival_rates, None if max_people is None else max_people - arrived, rng
        )
        if denied.scored_people:
            outcomes, scores, prices = np.zeros((3, len(groups)))
            for group, people in enumerate(denied.scored_people):
                members = np.flatnonzero(groups == group)
                if len(members):
                    rows = rng.integers(people.shape[1], size=len(members))
                    outcomes[members], scores[members], prices[members] = people[:, rows]
            draws = rng.random(len(groups))
            counted = audit.count_block(groups, outcomes.astype(np.intp), scores, prices, draws)
        else:
            are_good = (rng.random(len(groups)) < denied.r[groups]).astype(np.intp)
            counted = audit.count_block(groups, are_good)
        if counted == 0:
            return
        arrived += counted
        yield counted
