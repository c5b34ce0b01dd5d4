"""People who cost differently: what knowing their prices saves, with a score and without."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.table import Table

from equipoise.audits.scores import Assist
from study._looking import Case, pairs, synthetic
from study._pages import COSTS
from study._resumed import add_options as add_run_options
from study.assisted import TWO


def _priced(auc: float | None, prices: str) -> Case:
    world = synthetic(auc or 0.8, prices=prices)
    return Case(world if auc else replace(world, score=None), TWO, Assist(max_price=20.0))


CASES = {
    "prices over a factor of 20, no score": partial(_priced, None, "spread"),
    "prices over a factor of 20, AUC 0.8": partial(_priced, 0.8, "spread"),
    "failures dearer, no score": partial(_priced, None, "telling"),
    "failures dearer, AUC 0.8": partial(_priced, 0.8, "telling"),
}
WORDS = (
    "Labels of outcome 0 cost between 1 and 20, by the person; the uniform audit pays the same "
    "and does not look at prices. Where *failures are dearer*, price and outcome depend on each "
    "other. Everything else is as in [what looking before asking saves]"
    "(#what-looking-before-asking-saves)."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser, 200)
    parser.add_argument("--output", type=Path, default=COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    return pairs(options, CASES, "Prices of people", WORDS)
