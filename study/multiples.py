"""What the adaptive audit costs: multiples of C*, wrong verdicts, RS-Audit."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.bank import GAP, Instance, bank
from tests.support.tables import table

import equipoise as eq
from equipoise.audits.estimated_rates import can_answer
from equipoise.bounds import expectation
from equipoise.question import Verdict
from equipoise.rates import clopper_pearson
from equipoise.simulation import Simulation
from study._pages import COSTS as PAGE_OF_COSTS
from study._pages import write_section

COSTS = (eq.Costs(0.0, 1.0), eq.Costs(0.05, 1.0))


@dataclass(frozen=True)
class Result:
    """One instance at one price."""

    instance: Instance
    costs: eq.Costs
    bound: float
    runs: Simulation
    rs: float | None

    @property
    def multiple(self) -> float:
        return float(self.runs.cost.mean()) / self.bound

    @property
    def error(self) -> float:
        """The standard error of the multiple."""
        return float(self.runs.cost.std(ddof=1)) / math.sqrt(len(self.runs)) / self.bound

    @property
    def rs_ratio(self) -> float | None:
        mean = float(self.runs.cost.mean())
        return None if self.rs is None or mean == 0.0 else self.rs / mean


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="two groups, outside the gap zone")
    parser.add_argument("--other-runs", type=int, default=60, help="more groups, or the gap zone")
    parser.add_argument("--prices", type=int, default=len(COSTS), help="how many of the two")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=PAGE_OF_COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    results = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        work = [(instance, costs) for instance in bank() for costs in COSTS[: options.prices]]
        for instance, costs in bar.track(work, description="instances"):
            results.append(_measure(instance, costs, options))
            _write(options, results)  # a page after every instance: long runs may be cut short
    return _means(results)


def _measure(instance: Instance, costs: eq.Costs, options: argparse.Namespace) -> Result:
    world, question = instance.world, instance.question

    plain = instance.groups == 2 and instance.kind != GAP
    return Result(
        instance,
        costs,
        float(eq.lower_bound(world, question, costs)),
        eq.simulate(
            "adaptive",
            world,
            question,
            costs,
            repeats=options.runs if plain else options.other_runs,
            seed=options.seed,
            n_jobs=options.jobs,
        ),
        expectation("rs", world, question, costs).cost if can_answer(question) else None,
    )


def _families(results: Sequence[Result]) -> Iterable[tuple[str, list[Result]]]:
    """Yield the instances in groups; past data decide the rest."""
    paid = [r for r in results if not r.instance.is_free]
    outside = [r for r in paid if r.instance.kind != GAP]
    yield "two groups, outside the gap zone", [r for r in outside if r.instance.groups == 2]
    for groups, name in ((4, "four"), (8, "eight")):
        same = [r for r in outside if r.instance.groups == groups]
        yield f"{name} groups, outside the gap zone", same
        for kind in Verdict:
            yield f"{name} groups, {kind}", [r for r in same if r.instance.kind == kind]
    yield "in the gap zone (C* is a reference)", [r for r in paid if r.instance.kind == GAP]


def _write(options: argparse.Namespace, results: Sequence[Result]) -> None:
    command = (
        f"python -m study multiples --runs {options.runs} --other-runs {options.other_runs} "
        f"--prices {options.prices}"
    )
    wrong = sum(int(r.runs.wrong.sum()) for r in results)
    runs = sum(len(r.runs) for r in results)
    write_section(
        options.output,
        "multiples",
        "The adaptive audit over C*",
        f"Made by `{command}`. C* is the lower bound for any audit with the same error probability "
        "(`eq.lower_bound`); *multiple* is the adaptive audit's mean cost over C*, with its "
        "standard error. *RS-Audit* is its expected cost at the paper's tau over the adaptive "
        "audit's mean cost. The instances, and the rule by which they were taken, are in "
        "`tests/support/bank.py`; past data are unlimited, delta is 0.05. "
        f"Wrong verdicts: {wrong:,} of {runs:,} runs.",
        [_means(results)] + [_rows(results, costs) for costs in COSTS[: options.prices]],
    )


def _means(results: Sequence[Result]) -> Table:
    columns = ("number", "multiple, geometric", "±", "largest", "RS-Audit")
    out = table("Geometric means", "instances", "c", *columns)
    for name, chosen in _families(results):
        for costs in COSTS:
            column = [r for r in chosen if r.costs == costs]
            if not column:
                continue
            rs = [ratio for r in column if (ratio := r.rs_ratio) is not None]
            mean = _geometric([r.multiple for r in column])
            error = math.sqrt(sum((r.error / r.multiple) ** 2 for r in column)) / len(column)
            out.add_row(
                name,
                f"({costs.feature:g}, {costs.label:g})",
                str(len(column)),
                f"{mean:.2f}",
                f"{mean * error:.2f}",
                f"{max(r.multiple for r in column):.2f}",
                _shown(_geometric(rs), ",.0f"),
            )
    return out


def _rows(results: Sequence[Result], costs: eq.Costs) -> Table:
    question_columns = ("groups", "metric", "gamma", "epsilon", "gap", "truth")
    columns = ("C*", "mean cost", "multiple", "±", "wrong", "95% up to", "RS-Audit")
    title = f"c_feat = {costs.feature:g}, c_lab = {costs.label:g}"
    out = table(title, "instance", *question_columns, *columns)
    for r in results:
        if r.costs != costs:
            continue
        instance, question = r.instance, r.instance.question
        wrong, runs = int(r.runs.wrong.sum()), len(r.runs)
        paid = r.bound > 0.0
        out.add_row(
            instance.name,
            str(instance.groups),
            question.metric.replace("_", " "),
            f"{question.gamma:g}",
            f"{question.epsilon:g}",
            f"{instance.difference:.3f}",
            instance.kind,
            f"{r.bound:,.0f}",
            f"{r.runs.cost.mean():,.0f}",
            f"{r.multiple:.2f}" if paid else "–",
            f"{r.error:.2f}" if paid else "–",
            f"{wrong} of {runs}",
            f"{clopper_pearson(wrong, runs, 0.05)[1]:.3f}",
            _shown(r.rs_ratio, ",.0f"),
        )
    return out


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else math.nan


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None or math.isnan(value) else format(value, form)
