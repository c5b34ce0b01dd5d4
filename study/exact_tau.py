"""The smallest threshold that our bounds prove, beside the printed one: tau and mean cost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.audits.estimated_rates import outcomes_to_estimate, paper_tau
from equipoise.audits.exact_tau import WaitingTimes
from equipoise.audits.thresholds import ExactThreshold
from equipoise.bounds import expectation
from equipoise.worlds import CellWorld
from equipoise.worlds.data import fico_lender
from study._pages import COSTS, write_section

COLUMNS = (
    *("groups", "epsilon", "audit", "tau, printed", "tau, exact", "tau, exact, past known"),
    *("cost, printed", "cost, exact", "cost, exact, past known", "printed / exact"),
)
EPSILONS = (0.05, 0.1, 0.2)
AUDITS = {"rs": "RS-Audit", "baseline": "Baseline"}


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--output", type=Path, default=COSTS, help="the page to write")


def exact_tau(audit: str, world: CellWorld, question: eq.Question, *, known_past: bool) -> int:
    """Return the smallest threshold for which our bounds prove the error probability."""
    counts = WaitingTimes(known_past, shared_people=audit == "baseline")
    comparison = question.resolve(world.groups)
    outcomes = len(outcomes_to_estimate(question))
    return ExactThreshold(question, comparison, counts, outcomes).tau


def run(options: argparse.Namespace) -> Table:
    out = table("", *COLUMNS)
    for world in (fico_lender(groups=("White", "Black")).world, fico_lender().world):
        for epsilon in EPSILONS:
            for audit in AUDITS:
                out.add_row(*_row(world, epsilon, audit))
    write_section(
        options.output,
        "exact_tau",
        'The smallest threshold that our bounds prove, tau="exact"',
        "Made by `python -m study exact_tau`. The lender of the demonstration, two groups (White "
        "and Black) and four, equalized odds, gamma = 0.05, delta = 0.05, c = (0, 1). *Printed*: "
        "tau = 576 log(8K/delta)/epsilon². *Exact*: the smallest tau for which our bounds prove "
        'the same error probability (`tau="exact"`, [proof](../understand/guarantees.md)), the '
        "past counted until tau people. "
        "*Past known*: historical data are unlimited, so their shares are used as known. Costs are "
        "exact means.",
        [out],
    )
    return out


def _row(world: CellWorld, epsilon: float, audit: str) -> Iterator[str]:
    question, costs = eq.Question(gamma=0.05, epsilon=epsilon, delta=0.05), eq.Costs()
    printed = paper_tau(question, len(world.cells))
    drawn = exact_tau(audit, world, question, known_past=False)
    known = exact_tau(audit, world, question, known_past=True)
    mean_costs = [
        expectation(audit, world, question, costs, tau=tau).cost for tau in (printed, drawn, known)
    ]
    yield str(len(world.cells))
    yield f"{epsilon:g}"
    yield AUDITS[audit]
    yield from (f"{tau:,}" for tau in (printed, drawn, known))
    yield from (f"{cost:,.0f}" for cost in mean_costs)
    yield f"{printed / drawn:.1f} (past known: {printed / known:.1f})"
