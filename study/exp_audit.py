"""Exp-Audit's cost against RS-Audit over the paper's grid of prices."""

from __future__ import annotations

import argparse

from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.bounds import expectation
from equipoise.worlds import CellWorld, MixtureWorld

PRICES = ((0.5, 0.25), (0.5, 0.5), (0.5, 1.0), (0.5, 3.0), (0.0, 1.0))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=5)


def run(options: argparse.Namespace) -> Table:
    out = table(
        "Cost against RS-Audit at the proofs' constants, delta=0.01, laws known and 7 standard "
        f"deviations apart, mean of {options.runs} runs",
        "epsilon, c_feat, c_lab",
        "RS-Audit",
        "published",
        "/ RS",
        "default",
        "/ RS",
    )
    world = MixtureWorld.synthetic(14.0)
    cells = CellWorld(world.cells, world.r)
    for epsilon in (0.5, 0.1):
        for feature, label in PRICES:
            question = eq.Question(gamma=0.0, epsilon=epsilon, delta=0.01)
            costs = eq.Costs(feature, label)
            rs = expectation("rs", cells, question, costs).cost
            row = [f"{epsilon}, {feature}, {label}", f"{rs:,.0f}"]
            for weights in ("published", "auto"):
                sim = eq.simulate(
                    "exp", world, question, costs, repeats=options.runs, weights=weights
                )
                row += [f"{sim.cost.mean():,.0f}", f"{sim.cost.mean() / rs:.3g}"]
            out.add_row(*row)
    return out
