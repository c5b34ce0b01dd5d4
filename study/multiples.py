"""What the adaptive audit costs: multiples of C*, wrong verdicts, RS-Audit.

The costs of every instance are kept in a file as soon as they are there: a study that was cut short
goes on from there.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.bank import GAP, Instance, bank, fresh_bank
from tests.support.tables import CACHE, table

import equipoise as eq
from equipoise.audits.estimated_rates import can_answer
from equipoise.bounds import expectation
from equipoise.question import Verdict
from equipoise.rates import clopper_pearson
from study._pages import COSTS as PAGE_OF_COSTS
from study._pages import write_section

COSTS = (eq.Costs(0.0, 1.0), eq.Costs(0.05, 1.0))
SIZES = (10_000, 50_000)  # past rows, besides an unlimited past
KEPT = CACHE.parent / "study" / "multiples.json"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """One instance at one price with past data of one size.

    ``bound`` is C*_n, of audits that always answer; ``bound_of_share`` that of audits which give a
    right verdict as often as these runs do.
    """

    instance: Instance
    costs: eq.Costs
    history_size: int | None
    bound: float
    bound_of_share: float
    decided: float
    cost: Array
    wrong: int
    rs: float | None

    @property
    def is_measured(self) -> bool:
        """Whether both bounds are positive and finite; other rows stand apart."""
        return 0.0 < self.bound_of_share < math.inf and 0.0 < self.bound < math.inf

    @property
    def mean_cost(self) -> float:
        """The mean over all runs, with and without a verdict."""
        return float(self.cost.mean())

    @property
    def share_multiple(self) -> float:
        """Mean cost over all runs, over the bound at the share decided."""
        return self.mean_cost / self.bound_of_share

    @property
    def multiple(self) -> float:
        return self.mean_cost / self.bound

    @property
    def error(self) -> float:
        """The standard error of the multiple."""
        return float(self.cost.std(ddof=1)) / math.sqrt(len(self.cost)) / self.bound

    @property
    def rs_ratio(self) -> float | None:
        return None if self.rs is None or self.mean_cost == 0.0 else self.rs / self.mean_cost


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="two groups, outside the gap zone")
    parser.add_argument("--other-runs", type=int, default=60, help="more groups, or the gap zone")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=list(SIZES), help="past rows, besides unlimited"
    )
    parser.add_argument(
        "--groups", type=int, nargs="*", default=[2, 4, 8], help="instances of so many groups"
    )
    parser.add_argument("--fresh", action="store_true", help="instances that nothing was fitted on")
    parser.add_argument("--prices", type=int, default=len(COSTS), help="how many of the two")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=KEPT, help="file of costs measured so far")
    parser.add_argument("--output", type=Path, default=PAGE_OF_COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    results = []
    kept = json.loads(options.kept.read_text()) if options.kept.is_file() else {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        prices = COSTS[: options.prices]
        instances = fresh_bank() if options.fresh else bank()
        by_groups = sorted(instances, key=lambda instance: instance.groups)
        chosen = [instance for instance in by_groups if instance.groups in options.groups]
        work = list(product(chosen, prices, [*options.sizes, None]))
        for instance, costs, size in bar.track(work, description="instances"):
            plain = instance.groups == 2 and instance.kind != GAP and size is None
            repeats = options.runs if plain else options.other_runs
            key = (
                f"{instance.name}, {instance.question}, {costs.feature:g} and {costs.label:g}, "
                f"{_rows_of_past(size)} rows, {repeats} runs, seed {options.seed}"
            )
            if key not in kept:
                kept[key] = _simulate(instance, costs, size, repeats, options)
                options.kept.parent.mkdir(parents=True, exist_ok=True)
                options.kept.write_text(json.dumps(kept))
            results.append(_result(instance, costs, size, **kept[key]))
            # A page after every instance: long runs may be cut short.
            _write(options, results, n_rows=len(work))
    return _means(results)


def _simulate(
    instance: Instance,
    costs: eq.Costs,
    size: int | None,
    repeats: int,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return what audits cost and how many were wrong or right."""
    runs = eq.simulate(
        "adaptive",
        instance.world,
        instance.question,
        costs,
        repeats=repeats,
        seed=options.seed,
        history_size=size,
        n_jobs=options.jobs,
    )
    is_right = ~runs.wrong & (runs.verdict != Verdict.INCONCLUSIVE.value)
    return {
        "cost": runs.cost.tolist(),
        "wrong": int(runs.wrong.sum()),
        "right": int(is_right.sum()),
    }


def _result(
    instance: Instance,
    costs: eq.Costs,
    size: int | None,
    *,
    cost: list[float],
    wrong: int,
    right: int,
) -> Result:
    world, question = instance.world, instance.question
    decided = right / len(cost)
    bound = eq.lower_bound(world, question, costs, history_size=size)
    bound_of_share = bound
    # A share above 1 - delta is luck: the guarantee asks for no more.
    if decided < 1.0 - question.delta:
        bound_of_share = eq.lower_bound(world, question, costs, history_size=size, decided=decided)
    return Result(
        instance=instance,
        costs=costs,
        history_size=size,
        bound=float(bound),
        bound_of_share=float(bound_of_share),
        decided=decided,
        cost=np.array(cost),
        wrong=wrong,
        rs=expectation("rs", world, question, costs).cost if can_answer(question) else None,
    )


def _families(results: Sequence[Result]) -> Iterable[tuple[str, list[Result]]]:
    """Yield the instances in groups; past data decide the rest."""
    paid = [r for r in results if not r.instance.is_free and r.is_measured]
    outside = [r for r in paid if r.instance.kind != GAP]
    yield "two groups, outside the gap zone", [r for r in outside if r.instance.groups == 2]
    for groups, name in ((4, "four"), (8, "eight")):
        same = [r for r in outside if r.instance.groups == groups]
        yield f"{name} groups, outside the gap zone", same
        for kind in Verdict:
            yield f"{name} groups, {kind}", [r for r in same if r.instance.kind == kind]
    yield "in the gap zone (C* is a reference)", [r for r in paid if r.instance.kind == GAP]


def _write(options: argparse.Namespace, results: Sequence[Result], n_rows: int) -> None:
    words = [
        f"python -m study multiples --runs {options.runs} --other-runs {options.other_runs}",
        f"--prices {options.prices}",
        *("--sizes", *map(str, options.sizes)),
        *("--groups", *map(str, options.groups)),
    ]
    if options.fresh:
        words.append("--fresh")
    command = " ".join(words)
    name = "multiples_past" if options.sizes else "multiples"
    title = "The adaptive audit over C*"
    if options.sizes:
        title += ", with finite pasts"
    if options.fresh:
        name += "_fresh"
        title += ", instances that nothing was fitted on"
    stopped = ""
    if len(results) < n_rows:
        stopped = f", stopped after {len(results)} of {n_rows} rows in the order of the bank"
    wrong = sum(r.wrong for r in results)
    runs = sum(len(r.cost) for r in results)
    write_section(
        options.output,
        name,
        title,
        f"Made by `{command}`{stopped}. C* is the lower bound for any audit with the same error "
        "probability (`eq.lower_bound`); *multiple* is the adaptive audit's mean cost over C*, "
        "with its standard error. *RS-Audit* is its expected cost at the paper's tau over the "
        "adaptive audit's mean cost. The instances, and the rule by which they were taken, are in "
        "`tests/support/bank.py`; delta is 0.05. With n past rows C* is C*_n, and "
        "*multiple at share* divides by the bound of audits that give a right verdict as often "
        "as these runs do. Rows "
        "whose bound is 0 or infinite have no multiple. "
        f"Wrong verdicts: {wrong:,} of {runs:,} runs.",
        [_means(results)] + [_rows(results, costs) for costs in COSTS[: options.prices]],
    )


def _means(results: Sequence[Result]) -> Table:
    columns = ("number", "multiple at share", "multiple", "±", "largest", "decided", "RS-Audit")
    out = table("Geometric means", "instances", "c", "past rows", *columns)
    sizes = sorted({r.history_size for r in results}, key=lambda size: size or math.inf)
    for (name, chosen), costs, size in product(_families(results), COSTS, sizes):
        column = [r for r in chosen if r.costs == costs and r.history_size == size]
        if not column:
            continue
        rs = [ratio for r in column if (ratio := r.rs_ratio) is not None]
        mean = _geometric([r.multiple for r in column])
        error = math.sqrt(sum((r.error / r.multiple) ** 2 for r in column)) / len(column)
        out.add_row(
            name,
            f"({costs.feature:g}, {costs.label:g})",
            _rows_of_past(size),
            str(len(column)),
            f"{_geometric([r.share_multiple for r in column]):.2f}",
            f"{mean:.2f}",
            f"{mean * error:.2f}",
            f"{max(r.multiple for r in column):.2f}",
            f"{np.mean([r.decided for r in column]):.0%}",
            _shown(_geometric(rs), ",.0f"),
        )
    return out


def _rows(results: Sequence[Result], costs: eq.Costs) -> Table:
    question_columns = ("groups", "metric", "gamma", "epsilon", "gap", "truth", "past rows")
    columns = ("C*", "mean cost", "multiple at share", "multiple", "±", "decided", "wrong")
    title = f"c_feat = {costs.feature:g}, c_lab = {costs.label:g}"
    out = table(title, "instance", *question_columns, *columns, "95% up to", "RS-Audit")
    for r in results:
        if r.costs != costs:
            continue
        instance, question = r.instance, r.instance.question
        runs = len(r.cost)
        out.add_row(
            instance.name,
            str(instance.groups),
            question.metric.replace("_", " "),
            f"{question.gamma:g}",
            f"{question.epsilon:g}",
            f"{instance.difference:.3f}",
            instance.kind,
            _rows_of_past(r.history_size),
            f"{r.bound:,.0f}",
            f"{r.mean_cost:,.0f}",
            f"{r.share_multiple:.2f}" if r.is_measured else "–",
            f"{r.multiple:.2f}" if r.is_measured else "–",
            f"{r.error:.2f}" if r.is_measured else "–",
            f"{r.decided:.0%}",
            f"{r.wrong} of {runs}",
            f"{clopper_pearson(r.wrong, runs, 0.05)[1]:.3f}",
            _shown(r.rs_ratio, ",.0f"),
        )
    return out


def _rows_of_past(size: int | None) -> str:
    return "unlimited" if size is None else f"{size:,}"


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else math.nan


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None or math.isnan(value) else format(value, form)
