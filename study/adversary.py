"""Opponents who decide what is told: whom to withhold, when, and which labels to write off.

An opponent knows every outcome requested so far and wants a wrong verdict. The audit promises that
nobody gets one more often than delta. *Blind* is an audit that must not be built: it divides stakes
among pairs of groups when a label is counted, by what has been told by then. Whoever then decides
which of the earlier labels are told decides among strategies, and the best of them is what counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from bench.measure import table
from joblib import Parallel, delayed
from rich.table import Table

import equipoise as eq
from equipoise.bands import clopper_pearson
from equipoise.evidence.directions import likely_extremes
from equipoise.evidence.staircase import OUT, Division
from equipoise.evidence.weighing import Weighing
from equipoise.question import Verdict, Want
from equipoise.worlds import CellWorld

PAGE = Path(__file__).parents[1] / "docs" / "adversary.md"
QUESTION = eq.Question("false_omission_parity", gamma=0.0, epsilon=0.15, delta=0.05)
PATTERNS = 8


def fair_world(groups: int) -> CellWorld:
    """Return groups that are alike: UNFAIR is wrong."""
    return CellWorld.from_shares({f"g{i}": (0.3, 0.2, 0.5, 0.5) for i in range(groups)})


def edge_world(groups: int) -> CellWorld:
    """Return groups of which one is just too different: FAIR is wrong."""
    r = [0.4] + [0.4 + QUESTION.threshold + 1e-4] * (groups - 1)
    return CellWorld.from_shares({f"g{i}": (0.3, 0.2, 0.5, x) for i, x in enumerate(r)})


# -- what an opponent does ------------------------------------------------------------------------

Opponent = Callable[[eq.AdaptiveAudit, CellWorld, np.random.Generator, int], None]


def _ask(audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """Let denied people come until one is asked; return ticket and outcome."""
    while audit.finding is None:
        group = world.groups[int(rng.integers(len(world.groups)))]
        ticket = audit.ask(group, 0)
        if ticket.want is Want.LABEL:
            return ticket, int(rng.random() < world.r[group])
    return None, 0


def late_successes(
    audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
) -> None:
    """Failures are told at once, successes after 60 further requests."""
    waiting = []
    for _ in range(labels):
        ticket, outcome = _ask(audit, world, rng)
        if ticket is None:
            return
        if outcome:
            waiting.append((audit.labels, ticket))
        else:
            audit.tell(ticket, 0)
        while waiting and waiting[0][0] <= audit.labels - 60 and audit.finding is None:
            audit.tell(waiting.pop(0)[1], 1)


def hides(value: int, share: float) -> Opponent:
    """Return somebody who never tells a share of the successes, or of the failures."""

    def opponent(
        audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
    ) -> None:
        for _ in range(labels):
            ticket, outcome = _ask(audit, world, rng)
            if ticket is None:
                return
            if outcome == value and rng.random() < share:
                audit.withdraw(ticket)
            else:
                audit.tell(ticket, outcome)

    return opponent


def toggles(
    audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
) -> None:
    """Write off a tenth, bring some of it late; stop when it helps."""
    settled = []
    for _ in range(labels):
        ticket, outcome = _ask(audit, world, rng)
        if ticket is None:
            return
        if rng.random() < 0.1:
            audit.withdraw(ticket)
        else:
            audit.tell(ticket, outcome)
        settled.append((ticket, outcome))
        if rng.random() < 0.02 and audit.finding is None:
            audit.correct(*settled[int(rng.integers(len(settled)))])


def with_foresight(
    audit: eq.AdaptiveAudit, world: CellWorld, rng: np.random.Generator, labels: int
) -> None:
    """Hold the pilot's labels back until the deadline; write off those whose silence helps most.

    The same people are labelled and the same strategies tried in both audits; who comes next goes
    round. Only the evidence is used: what is told late changes no request.
    """
    evidence, k = audit.evidence, len(world.groups)
    assert evidence is not None
    r = np.array(list(world.r.values()))
    pilot, outcomes = 5 * k, []
    for number in range(labels):
        group = number % k
        outcomes.append(int(rng.random() < r[group]))
        evidence.request(group)
        if number >= pilot:
            evidence._note(number, outcomes[-1])
            evidence._keep_up()
    good = np.array(outcomes[:pilot], dtype=bool)
    patterns = [np.ones(pilot, dtype=bool), good, ~good]
    patterns += [rng.random(pilot) < 0.7 for _ in range(PATTERNS - len(patterns))]
    for pattern in patterns:
        trial = deepcopy(evidence)
        del trial.unfair_set[1:]
        trial.unfair_set[0].bar = np.inf  # a right verdict does not stop the opponent
        for number, tell in enumerate(pattern.tolist()):
            trial._note(number, outcomes[number] if tell else OUT)
        trial._count_settled()
        if trial.verdict is Verdict.UNFAIR:
            audit._finding = audit._decided(trial.verdict)
            return


OPPONENTS: dict[str, Opponent] = {
    "successes told late": late_successes,
    "half of the successes hidden": hides(1, 0.5),
    "half of the failures hidden": hides(0, 0.5),
    "write-offs, late tells, corrections": toggles,
    "held to the deadline, with foresight": with_foresight,
}


# -- the audit that must not be built -------------------------------------------------------------


class BlindWeighing(Weighing):
    """Divides stakes when labels are counted, by those counted and told until then, all at once."""

    def _divide_from_here_on(self) -> None:
        """Nothing is fixed at the request."""

    def _count_settled(self) -> None:
        pilot = 5 * len(self.ones)
        if self.counted == 0 and None not in self._outcomes[:pilot]:
            groups, outcomes = np.array(self._groups[:pilot]), np.array(self._outcomes[:pilot])
            ones, zeros = (
                np.bincount(groups, outcomes == y, len(self.ones)).astype(float) for y in (1, 0)
            )
            self._divisions[pilot] = [
                Division(1.0, likely_extremes([band.low for band in bands.values()], ones, zeros))
                for bands in self._against_fair.values()
            ]
        super()._count_settled()

    def _look_ahead(self) -> None:
        """What a label will meet is not known before it is counted."""


class BlindAudit(eq.AdaptiveAudit):
    """The adaptive audit with bets fixed when labels are counted."""

    name = "blind"

    def _start(self) -> Weighing:
        weighing = super()._start()
        weighing.__class__ = BlindWeighing
        return weighing


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One opponent against one audit."""

    opponent: str
    groups: int
    audit: type[eq.AdaptiveAudit] = eq.AdaptiveAudit
    wrong: Verdict = Verdict.UNFAIR
    past: int | None = None

    def play(self, runs: int, labels: int, seed: int, jobs: int = 1) -> int:
        """Return how many of so many audits ended with the wrong verdict."""
        seeds = np.random.SeedSequence(seed).spawn(runs)
        ended = Parallel(n_jobs=jobs)(delayed(self.once)(labels, each) for each in seeds)
        return sum(ended)

    def once(self, labels: int, seed: np.random.SeedSequence) -> bool:
        rng = np.random.default_rng(seed)
        world = (fair_world if self.wrong is Verdict.UNFAIR else edge_world)(self.groups)
        audit = self.audit(world.past(self.past, rng), QUESTION, eq.Costs())
        OPPONENTS[self.opponent](audit, world, rng, labels)
        return audit.finding is not None and audit.finding.verdict is self.wrong


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="of the attack with foresight")
    parser.add_argument("--other-runs", type=int, default=200, help="of every other opponent")
    parser.add_argument("--labels", type=int, default=400, help="requested at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    foresight = "held to the deadline, with foresight"
    rows = [
        *(Row(foresight, k, audit) for k, audit in product((8, 4), (eq.AdaptiveAudit, BlindAudit))),
        *(Row(name, k) for name, k in product(OPPONENTS, (2, 4, 8)) if name != foresight),
        Row("half of the successes hidden", 4, BlindAudit),
        *(Row(name, 2, wrong=Verdict.FAIR) for name in OPPONENTS if name != foresight),
        *(Row(name, 2, past=20_000) for name in OPPONENTS if name != foresight),
    ]
    columns = ("opponent", "groups", "audit", "wrong verdict", "past", "runs", "wrong", "share")
    columns += ("95% interval", "within delta")
    out = table(f"wrong verdicts, delta = {QUESTION.delta:g}", *columns)
    lines = [
        "# Opponents",
        "",
        "<!-- generated: do not edit -->",
        "",
        f"Made by `python -m study adversary --runs {options.runs} --other-runs "
        f"{options.other_runs} --labels {options.labels}`. The opponents, and the audit called "
        "*blind*, which must not be built, are in `study/adversary.py`.",
        "",
        "| " + " | ".join(columns) + " |",
        "| " + " | ".join(["---"] * len(columns)) + " |",
    ]
    for row in rows:
        runs = options.runs if row.opponent == foresight else options.other_runs
        wrong = row.play(runs, options.labels, options.seed, options.jobs)
        low, high = clopper_pearson(wrong, runs, 0.025)
        cells = [
            row.opponent,
            str(row.groups),
            "blind" if row.audit is BlindAudit else "adaptive",
            row.wrong.value,
            "unlimited" if row.past is None else f"{row.past:,}",
            f"{runs:,}",
            str(wrong),
            f"{wrong / runs:.3f}",
            f"{low:.3f} to {high:.3f}",
            "yes" if low <= QUESTION.delta else "NO",
        ]
        out.add_row(*cells)
        lines.append("| " + " | ".join(cells) + " |")
        options.output.write_text("\n".join([*lines, ""]))  # long runs may be cut short
    return out
