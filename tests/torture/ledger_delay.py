"""Outcomes that come late and bad ones first: errors in request order, and in arrival order."""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from equipoise.audits.base import Audit
from equipoise.audits.catalogue import AUDITS
from equipoise.ledger import LiveAudit
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld
from tests.support import boundaries

# On the edge: the difference is just above gamma + epsilon, so FAIR is wrong.
QUESTION = Question("equal_opportunity", gamma=0.1, epsilon=0.15, delta=0.1)
A = (0.30, 0.10, 0.60, 0.10)
B = (0.20, 0.10, 0.70, 0.2042)
AT_ONCE = 20
EARLY, LATE = 20.0, 1500.0  # mean delay of bad and good outcomes, in arrivals


class ArrivalOrder(boundaries.ArrivalOrder):
    """A double that counts outcomes as they come, which the ledger never does."""

    name = "arrival order"
    replay = Audit.replay  # step by step: a log says nothing about what was told before


@dataclass(frozen=True)
class DelayResult:
    """How often audits answered what."""

    order: str
    audits: int
    wrong: int
    right: int

    def __str__(self) -> str:
        return (
            f"{self.order}: {self.wrong} of {self.audits} wrong "
            f"({self.wrong / self.audits:.1%}, allowed {QUESTION.delta:.0%}), {self.right} right, "
            f"{self.audits - self.wrong - self.right} undecided when people ran out"
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--audits", type=int, default=500)
    parser.add_argument("--people", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1)


def run(options: argparse.Namespace) -> str:
    lines = [f"true difference {world().gap(QUESTION.metric):.4f}; FAIR is wrong"]
    lines += [
        str(delayed_audits(order, options.audits, options.seed, options.people, options.jobs))
        for order in ("request order", "arrival order")
    ]
    return "\n".join(lines)


def world() -> CellWorld:
    """Return the population."""
    return CellWorld.from_shares({"A": A, "B": B})


def delayed_audits(order: str, audits: int, seed: int, people: int, jobs: int = 1) -> DelayResult:
    """Run audits whose bad outcomes come early; return how many were wrong."""
    seeds = range(seed, seed + audits)
    if jobs == 1:
        verdicts = [one_audit(order, number, people) for number in seeds]
    else:
        verdicts = Parallel(n_jobs=jobs)(
            delayed(one_audit)(order, number, people) for number in seeds
        )
    wrong = sum(v == Verdict.FAIR for v in verdicts)
    return DelayResult(order, audits, wrong, sum(v == Verdict.UNFAIR for v in verdicts))


def one_audit(order: str, seed: int, people: int) -> str | None:
    """Run one live audit with delays and return its verdict."""
    if order == "arrival order":
        AUDITS[order] = "tests.torture.ledger_delay:ArrivalOrder"
    rng, population = np.random.default_rng(seed), world()
    arrival = order == "arrival order"
    live = LiveAudit.create(
        "sqlite://",
        "delays",
        population.past(None, seed),
        QUESTION,
        Costs(label=1),
        audit="arrival order" if arrival else "adaptive",
        max_in_flight=400,
        stream="denied",
    )
    due: list[tuple[float, str, int]] = []
    drawn = population.draw(people, rng)
    denied = [(i, p.group, p.outcome) for i, p in enumerate(drawn) if p.decision == 0]
    for start in range(0, len(denied), AT_ONCE):
        part = denied[start : start + AT_ONCE]
        for reply, (at, _, outcome) in zip(
            live.ask_many([(f"p{i}", g, 0) for i, g, _ in part]), part, strict=True
        ):
            if reply.want is Want.LABEL:
                delay = rng.exponential(LATE if outcome else EARLY)
                heapq.heappush(due, (at + delay, reply.person, outcome))
        now, told = part[-1][0], []
        while due and due[0][0] <= now:
            _, person, outcome = heapq.heappop(due)
            told.append((person, outcome))
        live.tell_many(told)
        finding = live._driver.read(lambda state: state.audit.finding)
        if finding is not None:
            return finding.verdict.value
    return None
