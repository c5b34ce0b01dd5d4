"""Every rate from the same labels: verdict and all intervals are right together."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.boundaries import LINES, QUESTION, Row, all_rates_missed, boundaries
from tests.support.tables import table

from study._pages import ERRORS, tally, write_section


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="audits of every row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    made = table(
        "", "truth", "past per group", "wrong verdicts", "tables that miss", "audits", "either",
        "share", "95% interval", "within delta",
    )  # fmt: skip
    rows = [
        Row(edge, options.runs, past)
        for edge in boundaries("half approved", QUESTION)
        for past in (None, 20_000)
    ]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for row in bar.track(rows, description="all_rates"):
            wrong, missed, either = all_rates_missed(row, options.seed)
            past = "unlimited" if row.past is None else f"{row.past:,}"
            counted = tally(either, row.runs, QUESTION.delta)
            made.add_row(row.boundary.truth, past, f"{wrong:,}", f"{missed:,}", *counted)
    shares = LINES["half approved"]
    write_section(
        options.output,
        "all_rates",
        "Every rate from the same labels",
        f"Made by `python -m study all_rates --runs {options.runs}`: {QUESTION}, {len(shares)} "
        "groups at the boundary. When an audit ends, all ten rates of every group and the gaps of "
        "all thirteen metrics must lie in their intervals, and the verdict must be right.",
        [made],
    )
    return made
