"""Run audits one by one, with outcomes that may come at once, late, out of order, or never."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit, Features
from equipoise.errors import BadData
from equipoise.finding import Finding
from equipoise.question import Ticket, Verdict, Want
from equipoise.simulation.blocks import run_by_blocks
from equipoise.simulation.result import Draws
from equipoise.simulation.setting import Delay, Setting
from equipoise.worlds import People, World
from equipoise.worlds.base import as_generator

if TYPE_CHECKING:
    from numpy.random import SeedSequence

__all__ = ["Delay", "run", "run_repeats"]

Row = tuple[str, float, int, int, float, float, float]
"""Verdict, cost, labels, features, estimate, lower, upper."""


def run(
    audit: Audit,
    world: World,
    rng: np.random.Generator | int = 0,
    *,
    delay: Delay | None = None,
    people: int | None = None,
) -> Finding:
    """Let people arrive until the audit has a finding; return it.

    Parameters
    ----------
    delay
        From an outcome and a generator to the number of further arrivals after which that outcome
        is told; None for somebody who vanishes. At once if left out.
    people
        How many people will ever come; the audit has to conclude with them.

    Examples
    --------
    >>> from equipoise.audits.rs import RSAudit
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> audit = RSAudit(world.past(), Question(), Costs(), tau=100)
    >>> run(audit, world, delay=lambda outcome, rng: 50 if outcome else 5).verdict
    <Verdict.UNFAIR: 'UNFAIR'>
    """
    generator = as_generator(rng)
    post = _Post(audit, delay, generator)
    arrived, batch = 0, 256
    while audit.finding is None and (people is None or arrived < people):
        size = batch if people is None else min(batch, people - arrived)
        arrivals = world.draw(size, generator)
        _let_arrive(audit, arrivals, arrived, post)
        arrived, batch = arrived + size, min(2 * batch, 65_536)
    post.deliver_all()
    return audit.conclude()


def run_repeats(
    setting: Setting, *, jobs: int = 1, on_done: Callable[[], object] = lambda: None
) -> Draws:
    """Run a setting's audit once per repeat, in blocks where it can, else person by person."""
    seeds = np.random.SeedSequence(setting.seed).spawn(setting.repeats)
    rows = []
    if jobs == 1:
        for seed in seeds:
            rows.append(_run_once(setting, seed))
            on_done()
    else:
        from joblib import Parallel, delayed

        work = (delayed(_run_once)(setting, seed) for seed in seeds)
        for row in Parallel(n_jobs=jobs, return_as="generator")(work):
            rows.append(row)
            on_done()
    verdict, cost, labels, features, estimate, lower, upper = zip(*rows, strict=True)
    return Draws(
        np.array(verdict),
        np.array(cost, dtype=np.float64),
        np.array(labels, dtype=np.int64),
        np.array(features, dtype=np.int64),
        np.array(estimate, dtype=np.float64),
        np.array(lower, dtype=np.float64),
        np.array(upper, dtype=np.float64),
    )


def _run_once(setting: Setting, seed: SeedSequence) -> Row:
    rng = np.random.default_rng(seed)
    try:
        past = setting.world.past(setting.history_size, rng)
    except BadData:  # a past without one of the groups: nothing can be said
        return Verdict.INCONCLUSIVE.value, 0.0, 0, 0, np.nan, 0.0, 1.0
    audit = setting.audit(past, setting.question, setting.costs, **setting.options)  # type: ignore[arg-type]
    finding = _run(audit, setting, rng)
    estimate = np.nan if finding.estimate is None else finding.estimate
    # The audit's own books, not the finding's: labels still out at the verdict cost money too.
    return (
        finding.verdict.value,
        audit.cost,
        audit.labels,
        audit.features,
        estimate,
        finding.lower,
        finding.upper,
    )


def _run(audit: Audit, setting: Setting, rng: np.random.Generator) -> Finding:
    at_once = setting.delay is None and setting.people is None and audit.budget is None
    if type(audit) is AdaptiveAudit and at_once:
        return run_by_blocks(audit, setting.world, rng)
    return run(audit, setting.world, rng, delay=setting.delay, people=setting.people)


def _let_arrive(audit: Audit, arrivals: People, clock: int, post: _Post) -> None:
    names, group, decision = arrivals.groups, arrivals.group.tolist(), arrivals.decision.tolist()
    everybody = range(len(arrivals))
    seen = everybody if audit.looks_at_approved else [i for i in everybody if not decision[i]]
    for i in seen:
        post.deliver_until(clock + i)
        ticket = audit.ask(names[group[i]], decision[i])
        if ticket.want is not Want.NOTHING:
            features = None if arrivals.features is None else arrivals.features[i]
            post.send(_Letter(ticket, int(arrivals.outcome[i]), features), clock + i)
        elif audit.finding is not None:
            return


@dataclass(frozen=True)
class _Letter:
    """What a ticket asked for."""

    ticket: Ticket
    outcome: int
    features: Features | None


class _Post:
    """Answers on their way to the audit."""

    def __init__(self, audit: Audit, delay: Delay | None, rng: np.random.Generator) -> None:
        self._audit = audit
        self._delay = delay
        self._rng = rng
        self._due: list[tuple[int, int, _Letter]] = []

    def send(self, letter: _Letter, now: int) -> None:
        if letter.ticket.want is Want.FEATURES:
            self._audit.tell(letter.ticket, features=letter.features)
        elif self._delay is None:
            self._deliver(letter)
        else:
            wait = self._delay(letter.outcome, self._rng)
            if wait is None:
                self._audit.withdraw(letter.ticket)
            else:
                heapq.heappush(self._due, (now + wait, letter.ticket.number, letter))

    def deliver_until(self, now: int) -> None:
        while self._due and self._due[0][0] < now:
            self._deliver(heapq.heappop(self._due)[2])

    def deliver_all(self) -> None:
        while self._due:
            self._deliver(heapq.heappop(self._due)[2])

    def _deliver(self, letter: _Letter) -> None:
        self._audit.tell(letter.ticket, letter.outcome, letter.features)
