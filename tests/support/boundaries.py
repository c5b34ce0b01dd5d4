"""Worlds on the edge of a wrong answer: Delta at gamma, and at gamma + epsilon.

Each line of worlds moves one group's r until Delta is just on the far side of a boundary, by 1e-5:
a world that is only just FAIR, and one that is only just UNFAIR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit, Step
from equipoise.metrics import METRICS, gap_given_r, rates_given_r
from equipoise.protocol import Ticket
from equipoise.simulation import Delay, Simulation, simulate
from equipoise.simulation.drive import DeniedPeople, run_in_blocks
from equipoise.worlds import CellWorld

DELTA = 0.05
ASIDE = 1e-5
MOST_PEOPLE = 200_000  # who ever come where outcomes are late; who needs more is INCONCLUSIVE
QUESTION = eq.Question("equalized_odds", gamma=0.1, epsilon=0.2, delta=DELTA)
LINES = {
    "few approved": {"A": (0.06, 0.03, 0.91, 0.15), "B": (0.08, 0.03, 0.89, 0.25)},
    "half approved": {"A": (0.40, 0.10, 0.50, 0.35), "B": (0.36, 0.12, 0.52, 0.30)},
    "four groups": {
        "A": (0.40, 0.10, 0.50, 0.35),
        "B": (0.36, 0.12, 0.52, 0.32),
        "C": (0.38, 0.12, 0.50, 0.36),
        "D": (0.37, 0.11, 0.52, 0.34),
    },
    "one approved less": {
        "A": (0.40, 0.10, 0.50, 0.35),
        "B": (0.36, 0.12, 0.52, 0.32),
        "C": (0.38, 0.12, 0.50, 0.36),
        "D": (0.20, 0.16, 0.64, 0.14),
    },
    "two strata": {
        "x | A": (0.40, 0.10, 0.50, 0.35),
        "x | B": (0.36, 0.12, 0.52, 0.32),
        "y | A": (0.20, 0.08, 0.72, 0.25),
        "y | B": (0.18, 0.08, 0.74, 0.22),
    },
    "eight groups": {
        f"g{i}": (0.38 + 0.005 * (i % 3), 0.11, 0.51 - 0.005 * (i % 3), 0.33 + 0.005 * (i % 4))
        for i in range(8)
    },
}
COMPARISONS = {
    "against A": ("four groups", eq.Compare(against="A")),
    "below A": ("one approved less", eq.Compare(against="A", direction="below")),
    "within two strata": ("two strata", eq.Compare(within=True)),
}
"""Comparisons other than all pairs, and a line of worlds for each."""


@dataclass(frozen=True)
class Boundary:
    """A world on the edge of a wrong answer."""

    line: str
    world: CellWorld
    question: eq.Question
    truth: str


@dataclass(frozen=True)
class Row:
    """One combination to run."""

    boundary: Boundary
    runs: int
    past: int | None  # people per group
    late: bool = False  # outcomes come after a while, bad ones first
    audit: type[Audit] = AdaptiveAudit

    def simulate(self, seed: int, jobs: int) -> Simulation:
        world = self.boundary.world
        delay: Delay | None = good_news_is_late if self.late else None
        return simulate(
            self.audit,
            world,
            self.boundary.question,
            eq.Costs(),
            repeats=self.runs,
            seed=seed,
            history_size=None if self.past is None else self.past * len(world.groups),
            delay=delay,
            people=None if delay is None else MOST_PEOPLE,
            n_jobs=jobs,
        )


class ArrivalOrder(AdaptiveAudit):
    """Counts a label when it arrives: the first ones to arrive are failures."""

    def _request_labels(self, tickets: Sequence[Ticket]) -> None:
        pass

    def _record_answers(self, answers: Sequence[Step]) -> None:
        for step in answers:
            if self._finding is None and self.evidence is not None and step.outcome is not None:
                number = self.evidence.request(np.array([self._group_positions[step.ticket.group]]))
                self.evidence.record(number, np.array([step.outcome]))


def good_news_is_late(outcome: int, rng: np.random.Generator) -> int:
    return int(rng.geometric(0.002 if outcome else 0.5))


def boundaries(line: str, question: eq.Question = QUESTION) -> list[Boundary]:
    """Return the world just inside gamma and the one just beyond gamma + epsilon."""
    return [
        Boundary(line, _world_at(line, question, question.gamma - ASIDE), question, "FAIR"),
        Boundary(line, _world_at(line, question, question.threshold + ASIDE), question, "UNFAIR"),
    ]


def _world_at(line: str, question: eq.Question, difference: float) -> CellWorld:
    """Move the last group's r up until Delta is as given."""
    from scipy.optimize import brentq

    shares = LINES[line]
    last = list(shares)[-1]
    p1, p0, s, r = shares[last]

    def world(moved: float) -> CellWorld:
        return CellWorld.from_shares({**shares, last: (p1, p0, s, moved)})

    def beyond(moved: float) -> float:
        return world(moved).gap(question.metric, question.compare) - difference

    return world(float(brentq(beyond, r, 1.0, xtol=1e-12)))


def all_rates_missed(row: Row, seed: int) -> tuple[int, int, int]:
    """Run audits; return wrong verdicts, tables of all rates that miss one, and either of the two.

    A table is looked at when its audit ends. It misses if the true value of any rate of any group,
    or of any metric's gap, is outside.
    """
    world, question = row.boundary.world, row.boundary.question
    truth = {
        name: (
            rates_given_r(world.cells, world.r, name),
            gap_given_r(world.cells, world.r, name, question.compare),
        )
        for name in METRICS
    }
    right = question.truth(gap_given_r(world.cells, world.r, question.metric, question.compare))
    wrong = missed = either = 0
    for at in range(row.runs):
        rng = np.random.default_rng([seed, at])
        size = None if row.past is None else row.past * len(world.groups)
        audit = AdaptiveAudit(world.past(size, rng), question, eq.Costs())
        run_in_blocks(audit, DeniedPeople.of_world(audit, world), rng)
        found = audit.conclude()
        by_rate, by_metric = found.all_rates(), found.all_metrics()
        misses = any(
            not by_rate[rate][group].lower - 1e-12 <= value <= by_rate[rate][group].upper + 1e-12
            for every, _ in truth.values()
            for rate, by_group in every.items()
            for group, value in by_group.items()
        ) or any(
            not by_metric[name].lower - 1e-12 <= size <= by_metric[name].upper + 1e-12
            for name, (_, size) in truth.items()
        )
        errs = found.verdict is not eq.Verdict.INCONCLUSIVE and found.verdict not in right
        wrong, missed, either = wrong + errs, missed + misses, either + (errs or misses)
    return wrong, missed, either
