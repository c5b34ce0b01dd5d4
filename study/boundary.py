"""Wrong verdicts where they are most likely: the gap at gamma, and at gamma + epsilon.

Each line of worlds moves one group's r until the gap is just beyond a boundary, by 1e-5:
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

from equipoise.simulation import Simulation
from study._pages import ERRORS, tally, write_section

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
    "within delta",
    "inconclusive",
    "labels",
)


def add_options(parser: argparse.ArgumentParser, runs: int = 4000) -> None:
    parser.add_argument("--runs", type=int, default=runs, help="of every row")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    rows = [
        Row(boundary, options.runs, None)
        for line in ("few approved", "half approved")
        for boundary in boundaries(line)
    ]
    setting = "Outcomes come at once, past data are unlimited."
    return fill(rows, options, "boundary", "At the boundaries", setting)


def fill(
    rows: list[Row], options: argparse.Namespace, name: str, title: str, setting: str
) -> Table:
    """Run the rows; write the section after each, for long runs may be cut short."""
    question = rows[0].boundary.question
    question = replace(question, compare=question.comparison.by)
    out = table(f"Wrong verdicts, {question}", *COLUMNS)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for row in bar.track(rows, description="boundaries"):
            out.add_row(*_cells(row, row.simulate(options.seed, options.jobs)))
            write_section(
                options.output,
                name,
                title,
                f"Made by `python -m study {name} --runs {options.runs}`. The true gap is "
                f"{ASIDE:g} inside gamma (truth FAIR) or {ASIDE:g} beyond gamma + epsilon (truth "
                f"UNFAIR). {setting}",
                [out],
            )
    return out


def _cells(row: Row, sim: Simulation) -> list[str]:
    order = "in arrival order" if row.audit is ArrivalOrder else "in request order"
    return [
        row.boundary.line,
        str(len(row.boundary.world.groups)),
        row.boundary.truth,
        "unlimited" if row.past is None else f"{row.past:,}",
        order if row.late else "none",
        *tally(int(sim.wrong.sum()), len(sim), DELTA),
        f"{np.mean(sim.verdict == 'INCONCLUSIVE'):.3f}",
        f"{sim.labels.mean():,.0f}",
    ]
