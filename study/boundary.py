"""Wrong verdicts where they are most likely: Delta at gamma, and at gamma + epsilon.

Each line of worlds moves one group's r until Delta is just on the far side of a boundary, by 1e-5:
a world that is only just FAIR, and one that is only just UNFAIR. ``boundary_late`` does the same
with late outcomes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Answer, Audit
from equipoise.question import Ticket
from equipoise.rates import clopper_pearson
from equipoise.simulation import Delay, Simulation, simulate
from equipoise.worlds import CellWorld

PAGE = Path(__file__).parents[1] / "docs" / "boundary.md"
COLUMNS = (
    "line",
    "groups",
    "truth",
    "past per group",
    "late outcomes",
    "runs",
    "wrong",
    "share",
    "95% interval",
    "inconclusive",
    "labels",
    "within delta",
)
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
    "eight groups": {
        f"g{i}": (0.38 + 0.005 * (i % 3), 0.11, 0.51 - 0.005 * (i % 3), 0.33 + 0.005 * (i % 4))
        for i in range(8)
    },
}


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

    def _book_request(self, ticket: Ticket) -> None:
        Audit._book_request(self, ticket)

    def _take_in(self, answer: Answer) -> None:
        if self._finding is None and self.evidence is not None and answer.outcome is not None:
            number = self.evidence.request(self._index[answer.ticket.group])
            self.evidence.record(number, answer.outcome)
            self._look()


def good_news_is_late(outcome: int, rng: np.random.Generator) -> int:
    return int(rng.geometric(0.002 if outcome else 0.5))


def boundaries(line: str, question: eq.Question = QUESTION) -> list[Boundary]:
    """Return the world just inside gamma and the one just beyond gamma + epsilon."""
    return [
        Boundary(line, _world_at(line, question, question.gamma - ASIDE), question, "FAIR"),
        Boundary(line, _world_at(line, question, question.threshold + ASIDE), question, "UNFAIR"),
    ]


def add_options(parser: argparse.ArgumentParser, runs: int = 4000, page: Path = PAGE) -> None:
    parser.add_argument("--runs", type=int, default=runs, help="of every row")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=page, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    rows = [
        Row(boundary, options.runs, None)
        for line in ("few approved", "half approved")
        for boundary in boundaries(line)
    ]
    return fill(rows, options, "boundary", "Outcomes come at once, past data are unlimited.")


def fill(rows: list[Row], options: argparse.Namespace, name: str, setting: str) -> Table:
    """Run the rows; write a page after each, for long runs may be cut short."""
    question = rows[0].boundary.question
    out = table(f"wrong verdicts at the boundaries, {question}", *COLUMNS)
    shown: list[list[str]] = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for row in bar.track(rows, description="boundaries"):
            shown.append(_cells(row, row.simulate(options.seed, options.jobs)))
            out.add_row(*shown[-1])
            lines = [
                "# How often the adaptive audit errs where errors are most likely",
                "",
                "<!-- generated: do not edit -->",
                "",
                f"Made by `python -m study {name} --runs {options.runs}`: {question}. The true "
                f"Delta is {ASIDE:g} inside gamma (truth FAIR) or {ASIDE:g} beyond gamma + epsilon "
                f"(truth UNFAIR). {setting}",
                "",
                "| " + " | ".join(COLUMNS) + " |",
                "| " + " | ".join(["---"] * len(COLUMNS)) + " |",
                *("| " + " | ".join(cells) + " |" for cells in shown),
                "",
            ]
            options.output.write_text("\n".join(lines))
    return out


def _cells(row: Row, sim: Simulation) -> list[str]:
    wrong, runs = int(sim.wrong.sum()), len(sim)
    low, high = clopper_pearson(wrong, runs, 0.025)
    order = "in arrival order" if row.audit is ArrivalOrder else "in request order"
    return [
        row.boundary.line,
        str(len(row.boundary.world.groups)),
        row.boundary.truth,
        "unlimited" if row.past is None else f"{row.past:,}",
        order if row.late else "none",
        f"{runs:,}",
        f"{wrong:,}",
        f"{wrong / runs:.4f}",
        f"{low:.4f} to {high:.4f}",
        f"{np.mean(sim.verdict == 'INCONCLUSIVE'):.3f}",
        f"{sim.labels.mean():,.0f}",
        "yes" if low <= DELTA else "NO",
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
