"""Run one audit to its end, at two speeds: person by person, or in blocks of labels.

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

from equipoise._arrays import Array, Ints
from equipoise._seeds import accepts_random_state
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.errors import InvalidInput, require_kind
from equipoise.finding import Finding
from equipoise.protocol import Ticket, Want
from equipoise.question import Costs
from equipoise.worlds import TableWorld, World
from equipoise.worlds.world import Person, Seed, require_world

Delay = Callable[[int, Generator], int | None]
"""From an outcome to the arrivals after which it is told; None if the person vanishes."""

# People are drawn in batches that grow: short audits draw few people too many, long ones are fast.
FIRST_BATCH = 256
LARGEST_BATCH = 65_536


@accepts_random_state
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
    audit
        An audit that has not ended.
    world
        The population from which people are drawn.
    seed
        Where the randomness starts: a number or a numpy generator.
    delay
        From an outcome and a generator to the number of further arrivals after which that outcome
        is told; None if the person vanishes. Outcomes are told at once if it is left out.
    people
        How many people will ever come; the audit has to conclude with them. None: no limit.

    Raises
    ------
    InvalidInput
        If people of the world have prices of their own and the audit would not pay these.

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
    rng = default_rng(seed)
    waiting = _WaitingOutcomes(audit)
    arrived = 0
    batch_size = FIRST_BATCH
    while audit.finding is None and (people is None or arrived < people):
        size = batch_size if people is None else min(batch_size, people - arrived)
        batch = world.draw(size, rng)
        # By the run's own generator, so that a seed determines the whole run.
        draws = [None] * size if audit.assist is None else rng.random(size).tolist()
        for moment, (person, draw) in enumerate(zip(batch, draws, strict=True), start=arrived):
            if person.decision and not audit.wants_approved:
                continue
            # Outcomes that are due go first: they may change what is wanted of this person.
            waiting.tell_until(moment)
            ticket = _ask_about(audit, person, draw)
            if ticket.want is Want.FEATURES:
                audit.tell(ticket, features=person.features)
            elif ticket.want is Want.LABEL:
                arrivals_until_told = 0 if delay is None else delay(person.outcome, rng)
                if arrivals_until_told is None:
                    audit.withdraw(ticket)
                else:
                    waiting.add(moment + arrivals_until_told, ticket, person)
            # Looked at only if nothing is wanted, because an audit that has ended wants nothing.
            elif _has_ended(audit):
                break
        arrived += size
        batch_size = min(2 * batch_size, LARGEST_BATCH)
    # Outcomes that are still out come all the same: they were paid for and may bring a verdict.
    waiting.tell_until(np.inf)
    return audit.conclude()


def _ask_about(audit: Audit, person: Person, draw: float | None) -> Ticket:
    """Report a person's arrival, with score, price and draw if the audit uses scores."""
    if audit.assist is None:
        return audit.ask(person.group, person.decision)
    return audit.ask(
        person.group, person.decision, score=person.score, price=person.price, draw=draw
    )


def _has_ended(audit: Audit) -> bool:
    # A type checker believes that a finding which was None stays None; a call makes it look again.
    return audit.finding is not None


class _WaitingOutcomes:
    """Outcomes that were asked for and are told later, the earliest first."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        # A heap by moment; ticket numbers break ties, so that tickets are never compared.
        self._heap: list[tuple[int, int, Ticket, Person]] = []

    def add(self, moment: int, ticket: Ticket, person: Person) -> None:
        """Have a person's outcome told once ``moment`` people have arrived."""
        heapq.heappush(self._heap, (moment, ticket.number, ticket, person))

    def tell_until(self, moment: float) -> None:
        """Tell the outcomes that are due before a moment."""
        while self._heap and self._heap[0][0] < moment:
            _, _, ticket, person = heapq.heappop(self._heap)
            self._audit.tell(ticket, person.outcome, person.features)


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
    """The denied people whom an adaptive audit meets, in the order of its groups.

    Attributes
    ----------
    arrival_rates
        How often a denied person of each group comes.
    r
        The share of outcome 1 among the denied of each group.
    scored_people
        For an audit with scores or prices, per group: an array with rows for outcomes, scores and
        prices and a column per person to draw from, NaN where a person has none. Empty otherwise.
    """

    arrival_rates: Array
    r: Array
    scored_people: list[Array]

    @classmethod
    def of_world(cls, audit: AdaptiveAudit, world: World) -> Self:
        """Return the denied people of a world.

        Raises
        ------
        InvalidInput
            If the audit uses scores and the world has no rows of people.
        """
        arrival_rates = [world.cells[group].denied / world.cells.total for group in audit.groups]
        r = [world.r[group] for group in audit.groups]
        scored_people = [] if audit.assist is None else _scored_people(audit, world)
        return cls(np.array(arrival_rates), np.array(r), scored_people)


def _scored_people(audit: AdaptiveAudit, world: World) -> list[Array]:
    """Return outcomes, scores and prices of the denied of each group of a table."""
    if not isinstance(world, TableWorld):
        raise InvalidInput(
            "an audit that looks before it asks needs a world with people to look at: "
            f"worlds.TableWorld.from_frame(..., score=...); got a {type(world).__name__}"
        )
    missing = np.full(len(world), np.nan)
    score = missing if world.score is None else world.score
    price = missing if world.price is None else world.price
    table = np.stack([world.outcome, score, price])  # axes: outcome, score, price; person
    return [table[:, world.denied_rows(group)] for group in audit.groups]


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
        people_left = None if max_people is None else max_people - arrived
        # Whom to label is chosen before an outcome is drawn, as in a real audit.
        groups = audit.choose_block(denied.arrival_rates, people_left, rng)
        if denied.scored_people:
            counted = _count_scored_block(audit, groups, denied.scored_people, rng)
        else:
            outcomes = (rng.random(len(groups)) < denied.r[groups]).astype(np.intp)
            counted = audit.count_block(groups, outcomes)
        if counted == 0:  # nobody comes whose label is welcome, so the audit would wait for ever
            return
        arrived += counted
        yield counted


def _count_scored_block(
    audit: AdaptiveAudit, groups: Ints, scored_people: list[Array], rng: Generator
) -> int:
    """Draw a person of each group in the block, with score and price, and let the audit count.

    ``scored_people`` is that of :class:`DeniedPeople`.
    """
    outcomes = np.zeros(len(groups))
    scores = np.zeros(len(groups))
    prices = np.zeros(len(groups))
    for group, people in enumerate(scored_people):
        places = np.flatnonzero(groups == group)
        if len(places):
            # Outcome, score and price of one row, so that they go together as in the table.
            drawn_people = people[:, rng.integers(people.shape[1], size=len(places))]
            outcomes[places] = drawn_people[0]
            scores[places] = drawn_people[1]
            prices[places] = drawn_people[2]
    # The lottery that decides whom to ask, a number per person whether or not it is needed.
    draws = rng.random(len(groups))
    return audit.count_block(groups, outcomes.astype(np.intp), scores, prices, draws)
