"""What audits cost on real and synthetic instances, as multiples of the least possible, C*."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from pathlib import Path

from paper.synthetic import find_world
from paper.tables import LAW_SCHOOL, classify, read_people
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.audits.estimated_rates import paper_tau
from equipoise.bounds import expectation
from equipoise.display import format_figures, format_number
from equipoise.worlds import CellWorld, MixtureWorld
from equipoise.worlds.data import adult_world, fico_lender
from study._pages import COSTS, write_section
from study.exact_tau import exact_tau

COLUMNS = (
    *("instance", "gamma, epsilon", "gap", "truth", "C*", "adaptive", "Exp-Audit"),
    *("RS-Audit", "RS-Audit, tau exact", "Baseline", "RS-Audit, oracle"),
)
QUESTIONS = ((0.05, 0.05), (0.1, 0.05), (0.05, 0.02), (0.0, 0.1))
ORACLE_RUNS = 2000


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--runs", type=int, default=20, help="runs of the adaptive audit")
    command.add_argument("--seed", type=int, default=0, help="where randomness starts")
    command.add_argument("--jobs", type=int, default=1, help="processes")
    command.add_argument("--only", action="append", metavar="INSTANCE", help="only this instance")
    command.add_argument("--output", type=Path, default=COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    out = table("", *COLUMNS)
    for name, world in _instances(options.only):
        for gamma, epsilon in QUESTIONS:
            out.add_row(*_row(name, world, eq.Question(gamma=gamma, epsilon=epsilon), options))
    write_section(
        options.output,
        "costs",
        "All audits side by side",
        f"Made by `python -m study costs --runs {options.runs}`, with `EQUIPOISE_LAW_SCHOOL` "
        "naming the Law School table. Equalized odds at c=(0, 1), delta = 0.05, past data "
        "unlimited. C* is a reference, not a bound, where *either* answer is right; where it is 0, "
        "past data alone decide. Baseline and RS-Audit: exact expectations at the paper's tau; "
        "*tau exact*: at the smallest tau for which our bounds prove the same error probability "
        '(`tau="exact"`). '
        "*Oracle*: RS-Audit at the smallest tau that errs at most 0.05 of "
        f"{ORACLE_RUNS:,} times on the instance itself, which no user can know: it keeps delta "
        "nowhere else and may cost less than C*. Exp-Audit with MAP weights, where there are "
        "features (5 runs).",
        [out],
    )
    return out


def _instances(only: list[str] | None) -> Iterator[tuple[str, CellWorld | MixtureWorld]]:
    law = os.environ.get(LAW_SCHOOL)
    makers = {
        "adult": lambda: adult_world(),
        "law": (lambda: classify(read_people("law", Path(law)), "all_LR").as_cells)
        if law
        else None,
        "fico-2": lambda: fico_lender(groups=("White", "Black")).world,
        "fico-4": lambda: fico_lender().world,
        "synthetic": lambda: find_world()[0],
    }
    for name, make in makers.items():
        if only and name not in only:
            continue
        if make is None:
            print(f"law was left out: set {LAW_SCHOOL} to your copy of law_school_clean.csv")
        else:
            yield name, make()


def _row(
    name: str, world: CellWorld | MixtureWorld, question: eq.Question, options: argparse.Namespace
) -> Iterator[str]:
    cells, costs = CellWorld(world.cells, world.r), eq.Costs()
    difference = cells.gap(question.metric)
    truth = question.truth(difference)
    tau = oracle_tau(cells, question, options.seed)
    yield name
    yield f"{question.gamma:g}, {question.epsilon:g}"
    yield f"{difference:.3f}"
    yield "either" if len(truth) > 1 else next(iter(truth)).value
    yield format_figures(float(eq.lower_bound(cells, question, costs)))
    sims: list[tuple[str, CellWorld | MixtureWorld, int]] = [("adaptive", cells, options.runs)]
    if isinstance(world, MixtureWorld):
        sims.append(("exp", world, 5))
    for audit, place, runs in sims:
        extra = {"weights": "map"} if audit == "exp" else {}
        sim = eq.simulate(
            *(audit, place, question, costs),
            repeats=runs,
            seed=options.seed,
            n_jobs=options.jobs,
            **extra,
        )
        spread = sim.cost.std(ddof=1) / math.sqrt(runs)
        mean = f"{format_figures(sim.cost.mean())} ± {format_number(spread, 2)}"
        yield f"{mean}, {int(sim.wrong.sum())} of {runs} wrong"
    if len(sims) == 1:
        yield "–"
    yield format_figures(expectation("rs", cells, question, costs).cost)
    yield exact_tau_cost(cells, question)
    yield format_figures(expectation("baseline", cells, question, costs).cost)
    oracle = expectation("rs", cells, question, costs, tau=tau).cost
    yield f"{format_figures(oracle)} (tau {tau:,})"


def exact_tau_cost(cells: CellWorld, question: eq.Question) -> str:
    """Return RS-Audit's mean cost at the exact tau, and that tau; the past is known."""
    tau = exact_tau("rs", cells, question, known_past=True)
    cost = expectation("rs", cells, question, eq.Costs(), tau=tau).cost
    return f"{format_figures(cost)} (tau {tau:,})"


def oracle_tau(world: CellWorld, question: eq.Question, seed: int) -> int:
    """Return the smallest tau at which RS-Audit errs at most delta of the time on this world.

    By bisection on a logarithmic scale: the error falls in tau but for chance.
    """

    def errs(tau: int) -> bool:
        sim = eq.simulate(
            "rs", world, question, eq.Costs(), repeats=ORACLE_RUNS, seed=seed, tau=tau
        )
        return float(sim.wrong.mean()) > question.delta

    if not errs(1):
        return 1
    low, high = 1, paper_tau(question, len(world.cells))
    while high > low + 1 and high / low > 1.01:
        middle = max(low + 1, math.isqrt(low * high))
        low, high = (middle, high) if errs(middle) else (low, middle)
    return high
