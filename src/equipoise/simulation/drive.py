"""One loop that runs an audit, at two speeds: person by person, or in blocks of labels.

Whatever is run, the loop is :func:`drive`: people arrive at an audit until there is a finding,
nobody comes any more, or enough have come. Arrivals person by person (:class:`PersonByPerson`) work
for every audit and let outcomes come at once, late, out of order, or never. Arrivals in blocks
(:class:`InBlocks`) are the same audit far sooner, for those that can say whom they would label
until their plan changes and count these labels together.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.errors import InvalidInput, require_kind
from equipoise.finding import Finding
from equipoise.question import Costs, Ticket, Want
from equipoise.worlds import CellWorld, TableWorld, World
from equipoise.worlds.world import Person, Seed, require_world

__all__ = [
    "Arrivals",
    "Delay",
    "InBlocks",
    "PersonByPerson",
    "ScoredPeople",
    "drive",
    "require_prices_paid",
    "run",
]

Floats = NDArray[np.float64]
Delay = Callable[[int, np.random.Generator], int | None]
"""After how many further arrivals an outcome is told; None: the person vanishes."""


class Arrivals(Protocol):
    """People who come to an audit."""

    @property
    def finding(self) -> Finding | None:
        """The audit's answer, None while it goes on."""
        ...

    def come(self, most: int | None) -> int:
        """Let some more people come, at most so many; return how many came."""
        ...


def drive(arrivals: Arrivals, most: int | None = None) -> None:
    """Let people come until the audit has a finding, nobody comes, or ``most`` have come."""
    came = 0
    while arrivals.finding is None and (most is None or came < most):
        more = arrivals.come(None if most is None else most - came)
        if more == 0:
            return
        came += more


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
    >>> from equipoise.audits.tau_audits import RSAudit
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> audit = RSAudit(world.past(), Question(), Costs(), tau=100)
    >>> run(audit, world, delay=lambda outcome, rng: 50 if outcome else 5).verdict
    <Verdict.UNFAIR: 'UNFAIR'>
    """
    require_kind("audit", audit, Audit, "an audit, as AdaptiveAudit(history, question, costs)")
    require_world(world)
    require_prices_paid(world, audit.costs, getattr(audit, "assist", None))
    arrivals = PersonByPerson(audit, world, np.random.default_rng(seed), delay)
    drive(arrivals, people)
    arrivals.tell_until(None)
    return audit.conclude()


def require_prices_paid(world: World, costs: Costs, assist: object) -> None:
    """Raise if people have prices of their own and the audit would pay the label cost instead."""
    if assist is None and isinstance(world, TableWorld) and world.price is not None:
        labels = [costs.of(group).label for group in world.groups]
        dearest = max(*labels, float(np.nanmax(world.price)))
        raise InvalidInput(
            "people of this world have prices of their own, and an audit without assist= would "
            "pay the label cost instead: give the adaptive audit "
            f"assist=Assist(max_price={dearest!r}), with gate=1e-9 as well if it is to ask "
            "everybody at these prices, or make the world without price="
        )


class InBlocks:
    """Denied people who come to an adaptive audit in blocks, their outcomes known at once.

    Parameters
    ----------
    denied
        How often a denied person of each group comes, in the order of the audit's groups.
    r
        The share of outcome 1 among the denied of each group.
    looks
        The denied of each group as people to look at, for an audit that does.
    """

    def __init__(
        self,
        audit: AdaptiveAudit,
        denied: Floats,
        r: Floats,
        rng: np.random.Generator,
        looks: Sequence[ScoredPeople] = (),
    ) -> None:
        self._looks = looks
        self._audit = audit
        self._denied = denied
        self._r = r
        self._rng = rng

    @classmethod
    def of(cls, audit: AdaptiveAudit, world: World, rng: np.random.Generator) -> Self:
        """Return the denied people of a world."""
        cells = CellWorld(world.cells, world.r)
        order = [cells.groups.index(group) for group in audit.groups]
        r = np.array([world.r[group] for group in audit.groups])
        looks = [ScoredPeople.of(world, g) for g in audit.groups] if audit.assist else []
        return cls(audit, cells.joint[order, 2:].sum(axis=1), r, rng, looks)

    @property
    def finding(self) -> Finding | None:
        """The audit's answer, None while it goes on."""
        return self._audit.finding

    def come(self, most: int | None) -> int:
        """Label the people up to the audit's next change of plan; return how many were."""
        groups = self._audit.choose_block(self._denied, most, self._rng)
        if self._looks:
            return self._count_looks(groups)
        outcomes = (self._rng.random(len(groups)) < self._r[groups]).astype(np.intp)
        return self._audit.count_block(groups, outcomes)

    def _count_looks(self, groups: NDArray[np.intp]) -> int:
        outcomes, scores, prices = np.zeros((3, len(groups)))
        for group, looks in enumerate(self._looks):
            own = np.flatnonzero(groups == group)
            if len(own):
                rows = self._rng.integers(len(looks.outcome), size=len(own))
                outcomes[own], scores[own] = looks.outcome[rows], looks.score[rows]
                prices[own] = looks.price[rows]
        draws = self._rng.random(len(groups))
        return self._audit.count_block(groups, outcomes.astype(np.intp), scores, prices, draws)


@dataclass(frozen=True)
class ScoredPeople:
    """The denied of one group: outcomes, scores and prices, NaN where there is none."""

    outcome: Floats
    score: Floats
    price: Floats

    @classmethod
    def of(cls, world: World, group: str) -> Self:
        """Return a group's denied people of a world that is a table."""
        if not isinstance(world, TableWorld):
            raise InvalidInput(
                "an audit that looks before it asks needs a world with people to look at: "
                f"worlds.TableWorld.from_frame(..., score=...); got a {type(world).__name__}"
            )
        rows = world.denied_rows(group)
        nothing = np.full(len(rows), np.nan)
        columns = (nothing if c is None else c[rows] for c in (world.score, world.price))
        return cls(world.outcome[rows].astype(np.float64), *columns)


class PersonByPerson:
    """People of a world who come to an audit one by one."""

    def __init__(
        self, audit: Audit, world: World, rng: np.random.Generator, delay: Delay | None = None
    ) -> None:
        self._audit = audit
        self._world = world
        self._rng = rng
        self._delay = delay
        self._clock, self._batch = 0, 256
        self._due: list[tuple[int, int, Ticket, Person]] = []

    @property
    def finding(self) -> Finding | None:
        """The audit's answer, None while it goes on."""
        return self._audit.finding

    def come(self, most: int | None) -> int:
        """Let a batch of people arrive, larger every time."""
        size = self._batch if most is None else min(self._batch, most)
        people = self._world.draw(size, self._rng)
        looks = self._audit.assist is not None
        draws = self._rng.random(size).tolist() if looks else [None] * size
        for now, (person, draw) in enumerate(zip(people, draws, strict=True), start=self._clock):
            if person.decision and not self._audit.wants_approved:
                continue
            self.tell_until(now)
            score, price = (person.score, person.price) if looks else (None, None)
            ticket = self._audit.ask(
                *(person.group, person.decision), score=score, price=price, draw=draw
            )
            if ticket.want in (Want.LABEL, Want.FEATURES):
                self._answer(ticket, person, now)
            elif self._audit.finding is not None:
                break
        self._clock, self._batch = self._clock + size, min(2 * self._batch, 65_536)
        return size

    def tell_until(self, now: int | None) -> None:
        """Tell the outcomes that are due before ``now``, all of them if it is None."""
        while self._due and (now is None or self._due[0][0] < now):
            _, _, ticket, person = heapq.heappop(self._due)
            self._audit.tell(ticket, person.outcome, person.features)

    def _answer(self, ticket: Ticket, person: Person, now: int) -> None:
        if ticket.want is Want.FEATURES:
            self._audit.tell(ticket, features=person.features)
        elif self._delay is None:
            self._audit.tell(ticket, person.outcome, person.features)
        elif (wait := self._delay(person.outcome, self._rng)) is None:
            self._audit.withdraw(ticket)
        else:
            heapq.heappush(self._due, (now + wait, ticket.number, ticket, person))
