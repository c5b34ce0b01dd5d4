"""How close the adaptive audit comes to C*, and how far RS-Audit is: docs/study.md.

``python -m study multiples`` runs 200 audits per instance and cost pair (hours on two cores);
``--runs`` and ``--costs`` take less.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.measure import table
from joblib import Parallel, delayed
from rich.table import Table

import equipoise as eq
from equipoise.bounds import rs_expectation
from equipoise.errors import InvalidInput
from study.bank import GAP, Instance, bank

PAGE = Path(__file__).parents[1] / "docs" / "study.md"
HEADINGS = ("instance", "groups", "question", "Delta", "truth", "costs", "C*", "multiple",
            "± 1 s.e.", "wrong", "RS-Audit / adaptive")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One instance at one cost pair."""

    instance: Instance
    costs: eq.Costs
    bound: float
    multiple: float
    error: float
    wrong: int
    against_rs: float | None

    def cells(self) -> tuple[str, ...]:
        question = self.instance.question
        return (
            self.instance.name,
            str(self.instance.groups),
            f"{question.metric.replace('_', ' ')}, {question.gamma:g}, {question.epsilon:g}",
            f"{self.instance.difference:.3f}",
            self.instance.kind,
            f"({self.costs.feature:g}, {self.costs.label:g})",
            f"{self.bound:,.0f}",
            f"{self.multiple:.2f}",
            f"{self.error:.2f}",
            str(self.wrong),
            "-" if self.against_rs is None else f"{self.against_rs:,.0f}",
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="audits per instance and cost pair")
    parser.add_argument(
        "--costs",
        nargs="+",
        default=["0,1", "0.05,1"],
        help="cost pairs as c_feat,c_lab",
    )
    parser.add_argument("--jobs", type=int, default=2)


def run(options: argparse.Namespace) -> Table:
    pairs = [eq.Costs(*(float(c) for c in pair.split(","))) for pair in options.costs]
    work = [(i, costs) for i in bank() if not i.is_free for costs in pairs]
    rows = Parallel(n_jobs=options.jobs)(delayed(_measure)(i, c, options.runs) for i, c in work)
    PAGE.write_text(_page(rows, options), encoding="utf-8")
    out = table(f"{options.runs} runs each; written to docs/{PAGE.name}", *HEADINGS)
    for row in rows:
        out.add_row(*row.cells())
    return out


def _measure(instance: Instance, costs: eq.Costs, runs: int) -> Row:
    world, question = instance.world, instance.question
    bound = float(eq.lower_bound(world, question, costs))
    simulation = eq.simulate("adaptive", world, question, costs, repeats=runs, seed=0)
    mean, error = simulation.cost.mean(), simulation.cost.std(ddof=1) / np.sqrt(runs)
    try:
        paper = rs_expectation(world, question, costs).cost / mean
    except InvalidInput:  # a metric that the paper's audit does not answer
        paper = None
    return Row(
        instance, costs, bound, mean / bound, error / bound, int(simulation.wrong.sum()), paper
    )


def _page(rows: Sequence[Row], options: argparse.Namespace) -> str:
    command = f"python -m study multiples --runs {options.runs} --costs {' '.join(options.costs)}"
    lines = [
        "# The adaptive audit against the limit",
        "",
        f"Made by `{command}` (Law School from its own path, see `study/bank.py`). Every",
        "instance is audited with unlimited past data at delta = 0.05; the multiple is mean cost",
        "over C\\*, the",
        "least that any audit with the same guarantee can pay on average. The last column is the",
        "expected cost of RS-Audit at the paper's tau over the adaptive audit's mean cost, where",
        "RS-Audit answers the metric. A gap-zone C\\* is an asymptotic reference only, and either",
        "verdict is right there.",
        "",
        *_summary(rows),
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
        *("| " + " | ".join(row.cells()) + " |" for row in rows),
        "",
    ]
    return "\n".join(lines)


def _summary(rows: Sequence[Row]) -> Iterable[str]:
    for groups in sorted({row.instance.groups for row in rows}):
        for costs in dict.fromkeys(row.costs for row in rows):
            some = [r for r in rows if r.instance.groups == groups and r.costs == costs]
            sure = [r.multiple for r in some if r.instance.kind != GAP]
            ratios = [r.against_rs for r in some if r.against_rs is not None]
            yield (
                f"- {groups} groups, c=({costs.feature:g}, {costs.label:g}): geometric mean "
                f"{np.exp(np.mean(np.log(sure))):.2f} x C\\* over {len(sure)} instances outside "
                f"the gap zone, largest {max(sure):.2f}; "
                f"wrong verdicts {sum(r.wrong for r in some)}; "
                f"RS-Audit costs {min(ratios):,.0f} to {max(ratios):,.0f} times as much"
            )
