"""What each step against the FAIR set of several groups saves: the bank without one or both.

Boxes are not tightened by the other rates, all pairs of groups get the same stake, or both. This
is switched off for the study alone: an audit has no such option. The runs of an instance draw the
same people in every row.
"""

from __future__ import annotations

import argparse
import math
from unittest.mock import patch

import numpy as np
from rich.table import Table
from tests.support.bank import Instance, bank
from tests.support.tables import table

import equipoise as eq
from equipoise.evidence import level_cells
from equipoise.evidence.wrong_answers import fair_covers
from equipoise.question import Verdict

VERDICTS = (Verdict.FAIR, Verdict.UNFAIR)
COSTS = eq.Costs(0.0, 1.0)
STEPS = {
    "as it is": {},
    "boxes not tightened": {"TIGHTENING_ROUNDS": 0},
    "the same stake on all pairs": {"UNIFORM_PAIR_SHARE": 1.0},
    "neither": {"TIGHTENING_ROUNDS": 0, "UNIFORM_PAIR_SHARE": 1.0},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--instances", type=int, help="the first so many of each verdict")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Table:
    out = table("cost over C*, geometric means (largest)", "steps", *map(str, VERDICTS))
    chosen = [
        [i for i in bank() if i.groups == options.groups and i.kind == kind][: options.instances]
        for kind in VERDICTS
    ]
    for name, changes in STEPS.items():
        with patch.multiple(level_cells, **changes) if changes else patch.dict({}):
            found = [[_multiple(one, options) for one in instances] for instances in chosen]
        fair_covers.cache_clear()
        cells = [f"{math.exp(np.log(own).mean()):.2f} ({max(own):.2f})" for own in found]
        out.add_row(name, *cells)
    return out


def _multiple(instance: Instance, options: argparse.Namespace) -> float:
    fair_covers.cache_clear()  # covers are kept by question and past
    runs = eq.simulate(
        *("adaptive", instance.world, instance.question, COSTS),
        repeats=options.runs,
        seed=options.seed,
        n_jobs=1,
    )
    bound = float(eq.lower_bound(instance.world, instance.question, COSTS))
    return float(runs.cost.mean()) / bound
