"""Wrong verdicts where they are most likely: Delta at gamma, and at gamma + epsilon.

Each line of worlds moves one group's r until Delta is just on the far side of a boundary, by 1e-5:
a world that is only just FAIR, and one that is only just UNFAIR. ``boundary_late`` does the same
with late outcomes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.boundaries import ASIDE, DELTA, ArrivalOrder, Row, boundaries
from tests.support.tables import table

from equipoise.rates import clopper_pearson
from equipoise.simulation import Simulation

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
    question = replace(question, compare=question.comparison.by)
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
