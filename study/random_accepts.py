"""What a test programme is worth, and how often an audit that uses it errs at the boundary.

Files of 100,000 past decisions in which 2% of the denied were accepted at random. The first table
has verdict and cost with and without the programme; the second the wrong verdicts where they are
most likely, from counts and from files sorted by outcome, which are read as files. Its last row
takes the programme's outcomes in the order of the sorted file, an audit that must not be built: it
shows that the harness would notice.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.progress import Progress
from tests.support.boundaries import ASIDE, QUESTION, boundaries
from tests.support.random_accepts import (
    PEOPLE,
    SHARE,
    FileOrder,
    RandomAccepts,
    audit_of,
    sorted_is_the_same,
)
from tests.support.tables import table

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.history.past import Past
from equipoise.simulation.drive import DeniedPeople, run_in_blocks
from equipoise.worlds import CellWorld
from study._pages import ERRORS, tally, write_section

FILES = 20  # files of which the cost is compared with and without the programme
CASES = {
    "fair": {"A": (0.40, 0.10, 0.50, 0.35), "B": (0.36, 0.12, 0.52, 0.35)},
    "unfair": {"A": (0.40, 0.10, 0.50, 0.10), "B": (0.36, 0.12, 0.52, 0.80)},
    "grey zone": {"A": (0.40, 0.10, 0.50, 0.25), "B": (0.36, 0.12, 0.52, 0.55)},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="files of every row")
    parser.add_argument("--read", type=int, default=100, help="of them are written and read")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Group:
    worth = table(
        f"With and without a programme, means of {FILES} files", "case", "gap",
        "verdict of check with", "without", "paid labels with", "without", "cost with", "without",
    )  # fmt: skip
    edges = table(
        "Audits at the boundary", "truth", "programme taken", "runs", "wrong", "share",
        "95% interval", "within delta", "decided for free",
    )  # fmt: skip
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for name in bar.track(CASES, description="worth"):
            worth.add_row(name, *_worth(CellWorld.from_shares(CASES[name]), options.seed))
        read = 0
        for edge in bar.track(boundaries("half approved"), description="boundaries"):
            world = RandomAccepts(edge.world, SHARE)
            seeds = np.random.SeedSequence(options.seed).spawn(options.runs)
            kinds: list[tuple[type[AdaptiveAudit], str, int]] = [
                (AdaptiveAudit, "as one block", options.runs)
            ]
            if edge.truth == "UNFAIR":  # failures first look alike in every group: FAIR
                kinds += [(FileOrder, "as the file has them", max(10, options.runs // 10))]
            for kind, words, runs in kinds:
                found = [audit_of(kind, world, seed) for seed in seeds[:runs]]
                wrong = sum(verdict not in (edge.truth, "INCONCLUSIVE") for verdict, _ in found)
                free = np.mean([labels == 0 for _, labels in found])
                counted = tally(wrong, len(found), QUESTION.delta)
                edges.add_row(edge.truth, words, *counted, f"{free:.3f}")
            read += sum(sorted_is_the_same(world, seed) for seed in seeds[: options.read])
    write_section(
        options.output,
        "random_accepts",
        "Test programmes",
        f"Made by `python -m study random_accepts --runs {options.runs} --read {options.read}`: "
        f"files of {PEOPLE:,} people, of whose denied {SHARE:.0%} were accepted at random; "
        f"{QUESTION}. At the boundary the gap is {ASIDE:g} inside gamma (FAIR) or {ASIDE:g} beyond "
        f"gamma + epsilon (UNFAIR). {read:,} of the files were written out sorted by outcome and "
        "read: each had "
        "the same counts and the same first finding as its counts alone. *As the file has them* "
        "takes labels in that order, an audit that must not be built.",
        [worth, edges],
    )
    return Group(worth, edges)


def _worth(world: CellWorld, seed: int) -> list[str]:
    checks: list[list[str]] = [[], []]
    labels: list[list[float]] = [[], []]
    cost: list[list[float]] = [[], []]
    for one in np.random.SeedSequence(seed).spawn(FILES):
        for at, share in enumerate((SHARE, 0.0)):
            rng = np.random.default_rng(one)
            past: Past = RandomAccepts(world, share).past(PEOPLE, rng)
            checks[at].append(eq.check(past, QUESTION).verdict.value)
            audit = AdaptiveAudit(past, QUESTION, eq.Costs())
            run_in_blocks(audit, DeniedPeople.of_world(audit, world), rng)
            finding = audit.conclude()
            labels[at].append(finding.labels)
            cost[at].append(finding.cost)
    return [
        f"{world.gap(QUESTION.metric):.3f}",
        *(_most(names) for names in checks),
        *(f"{np.mean(own):,.1f}" for own in (*labels, *cost)),
    ]


def _most(names: list[str]) -> str:
    return ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))
