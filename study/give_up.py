"""How often an audit that gives up would have decided, and what giving up saves.

Audits of the fresh bank run on pasts of several sizes. One that gives up is run again with the same
past and the same people and ``give_up="never"``, until it has a verdict or so many labels that it
is broken off. A run is *decidable* if one of the two has a verdict, and *lost* if only the second
has. Every run is kept in a file as soon as it is done: a study that was cut short goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.bank import Instance, fresh_bank
from tests.support.tables import CACHE, table

import equipoise as eq
from equipoise.planning.forecasts import DECIDED_VERDICTS
from equipoise.rates import clopper_pearson
from equipoise.simulation.drive import DeniedPeople, run_in_blocks
from study._pages import COSTS as PAGE_OF_COSTS
from study._pages import write_section

KEPT = CACHE.parent / "study" / "give_up.json"
SIZES = (3_000, 10_000, 50_000)

Row = dict[str, Any]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=30, help="of every instance and size")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="past rows")
    parser.add_argument("--groups", type=int, nargs="+", default=[2, 4])
    parser.add_argument(
        "--labels", type=int, default=20_000, help="after which a run is broken off"
    )
    parser.add_argument("--kept", type=Path, default=KEPT, help="file of runs made so far")
    parser.add_argument("--output", type=Path, default=PAGE_OF_COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    kept = json.loads(options.kept.read_text()) if options.kept.is_file() else {}
    instances = [instance for instance in fresh_bank() if instance.groups in options.groups]
    cases = list(product(options.groups, options.sizes))
    rows: dict[tuple[int, int], list[Row]] = {case: [] for case in cases}
    work = list(product(range(options.runs), instances, options.sizes))
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for seed, instance, size in bar.track(work, description="runs"):
            key = f"{instance.name}, {instance.question}, {size} rows, run {seed}, {options.labels}"
            if key not in kept:
                kept[key] = measure(instance, size, seed, options.labels)
                options.kept.parent.mkdir(parents=True, exist_ok=True)
                options.kept.write_text(json.dumps(kept))
            rows[instance.groups, size].append(kept[key])
    columns = ("past rows", "runs", "gave up", "decidable", "lost", "share lost", "95% up to")
    costs = ("mean cost where it gave up", "without giving up")
    out = table("", "groups", *columns, *costs)
    for groups, size in cases:
        out.add_row(str(groups), f"{size:,}", *judge(rows[groups, size]))
    out.add_row("all", "", *judge([row for case in rows.values() for row in case]))
    write_section(
        options.output,
        "give_up",
        "Giving up",
        f"Made by `python -m study give_up --runs {options.runs} --labels {options.labels}`: the "
        "instances that nothing was fitted on, with new pasts in every run. A run that gives up is "
        'run again with the same past and people and `give_up="never"`, until it has a verdict or '
        f"{options.labels:,} labels. *Decidable* runs have a verdict in one of the two, *lost* "
        "ones only in the second. The last two columns are means over the runs that gave up.",
        [out],
    )
    return out


def measure(instance: Instance, size: int, seed: int, most: int) -> Row:
    """Return how a run ended and, if it gave up, how it would have gone on."""
    first = play(instance, size, seed, most, "early")
    # An audit that was broken off or has a verdict did not give up.
    gave_up = first.finding is not None and first.finding.verdict not in DECIDED_VERDICTS
    last = play(instance, size, seed, most, "never") if gave_up else first
    return {
        "gave_up": gave_up,
        "is_decided": is_decided(first),
        "would_decide": is_decided(last),
        "cost": first.cost,
        "cost_without": last.cost,
    }


def play(
    instance: Instance, size: int, seed: int, most: int, give_up: Literal["early", "never"]
) -> eq.AdaptiveAudit:
    """Return an audit at its end, or after so many labels."""
    past_rng, people_rng = (
        np.random.default_rng(child) for child in np.random.SeedSequence([43, seed]).spawn(2)
    )
    past = instance.world.past(size, past_rng)
    audit = eq.AdaptiveAudit(past, instance.question, eq.Costs(), give_up=give_up)
    denied = DeniedPeople.of_world(audit, instance.world)
    run_in_blocks(audit, denied, people_rng, most)
    return audit


def is_decided(audit: eq.AdaptiveAudit) -> bool:
    return audit.finding is not None and audit.finding.verdict in DECIDED_VERDICTS


def judge(rows: Sequence[Row]) -> list[str]:
    """Return the entries of some runs: how many gave up, were decidable and lost, and costs."""
    gave_up = [row for row in rows if row["gave_up"]]
    decidable = sum(row["is_decided"] or row["would_decide"] for row in rows)
    lost = sum(row["would_decide"] and not row["is_decided"] for row in rows)
    means = ["–", "–"]
    if gave_up:
        means = [
            f"{np.mean([row[key] for row in gave_up]):,.0f}" for key in ("cost", "cost_without")
        ]
    return [
        f"{len(rows):,}",
        f"{len(gave_up):,}",
        f"{decidable:,}",
        f"{lost:,}",
        f"{lost / decidable:.1%}" if decidable else "–",
        f"{clopper_pearson(lost, decidable, 0.05)[1]:.1%}" if decidable else "–",
        *means,
    ]
