"""People who cost differently: what knowing their prices saves, with a score and without."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from bench.measure import table
from rich.table import Table

from equipoise.assist import Assist
from study._looking import Case, audit_once, synthetic
from study._resumed import Run, collect
from study._resumed import add_options as add_run_options
from study.assisted import HEADER, SYNTHETIC, cells, page

PAGE = Path(__file__).parents[1] / "docs" / "prices.md"
POINTS = {
    "prices over a factor of 20, no score": (0.5, "spread", False),
    "prices over a factor of 20, AUC 0.8": (0.8, "spread", True),
    "failures dearer, no score": (0.5, "telling", False),
    "failures dearer, AUC 0.8": (0.8, "telling", True),
}
WORDS = (
    "Labels of outcome 0 cost between 1 and 20, by the person; the uniform audit pays the same "
    "and does not look at prices. Where *failures are dearer*, price and outcome depend on each "
    "other. Everything else is as in [what looking before asking saves](assisted.md)."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser, 200)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    def one(point: str, seed: int) -> Run:
        auc, prices, scored = POINTS[point]
        world = synthetic(auc, prices=prices)
        world = world if scored else replace(world, score=None)
        case = Case(world, SYNTHETIC, Assist(max_price=20.0))
        pair = {n: audit_once(case, seed, helped=n == "helped") for n in ("helped", "uniform")}
        return {f"{name} {key}": value for name, run in pair.items() for key, value in run.items()}

    runs = collect(options, list(POINTS), one)
    out = table("cost over the audit that does not look at prices", *HEADER)
    rows = [cells(point, runs[point]) for point in POINTS]
    for row in rows:
        out.add_row(*row)
    options.output.write_text(page(WORDS, "prices", rows), encoding="utf-8")
    return out
