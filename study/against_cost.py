"""What an audit against one group costs beside one of all pairs: the FICO lender and the bank."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.bank import bank
from tests.support.tables import table

import equipoise as eq
from equipoise.worlds import CellWorld
from study._pages import COSTS, write_section

COLUMNS = (
    "world",
    "groups",
    "question",
    "truth",
    "C* all pairs",
    "C* against",
    "cost all pairs",
    "cost against",
    "ratio",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="of every row and question")
    parser.add_argument("--fico", action="store_true", help="the FICO lender only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=COSTS, help="the page to write")


def instances(*, fico: bool) -> Iterator[tuple[str, CellWorld, eq.Question]]:
    """Yield worlds of three groups and more with a question of all pairs."""
    for metric in ("equal_opportunity", "predictive_equality", "equalized_odds"):
        for gamma, epsilon in ((0.05, 0.05), (0.1, 0.1), (0.3, 0.1)):
            yield "FICO lender", eq.data.fico_lender().world, eq.Question(metric, gamma, epsilon)
    for one in () if fico else bank():
        if one.groups > 2 and not one.is_free:
            yield one.name, one.world, one.question


def run(options: argparse.Namespace) -> Table:
    out = table("All pairs, and each group against the largest", *COLUMNS)
    ratios: list[float] = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for name, world, question in bar.track([*instances(fico=options.fico)]):
            largest = max(world.groups, key=lambda group: world.cells[group].total)
            against = replace(question, compare=eq.Compare(against=largest))
            asked = (question, against)
            truths = [q.truth(world.gap(q.metric, q.compare)) for q in asked]
            if truths[0] != truths[1] or len(truths[0]) > 1:
                continue  # another answer, or two
            bounds = [float(eq.lower_bound(world, q, eq.Costs())) for q in asked]
            if not all(5.0 < bound < 5000.0 for bound in bounds):
                continue
            costs = [
                eq.simulate(
                    *("adaptive", world, q, eq.Costs()),
                    repeats=options.runs,
                    seed=options.seed,
                    n_jobs=options.jobs,
                ).cost.mean()
                for q in asked
            ]
            words = f"{question.metric} {question.gamma:g} {question.epsilon:g}"
            ratios.append(costs[1] / costs[0])
            means = [f"{x:,.0f}" for x in (*bounds, *costs)]
            out.add_row(
                name, str(len(world.groups)), words, *truths[0], *means, f"{ratios[-1]:.2f}"
            )
            write_section(
                options.output,
                "against_cost",
                "Each group against one only",
                f"Made by `python -m study against_cost --runs {options.runs}`: the adaptive audit "
                "of all pairs beside one of each group against the largest, where both have the "
                f"same answer, at c=(0, 1). The median ratio of costs is {np.median(ratios):.2f}.",
                [out],
            )
    return out
