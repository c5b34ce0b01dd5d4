"""How often audits of many groups stay below a plan's 90% figure, the grey zone included.

Cases are random populations of four and of eight groups with pasts of 10,000 to 50,000 rows. In the
grey zone the true gap lies halfway between tolerance and margin, where either verdict is right and
some audits end without one. Such an audit counts as one that costs more than any figure. Cases
whose plan gives no 90% figure are counted apart: the plan calls them open-ended.

Cases with numbers below 40 were looked at when the rule for open-ended cases was chosen, and how
much the 90% figure grows with the number of groups.
Every case is kept in a file as soon as it is done: a study that was cut short goes on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.tables import CACHE, table

import equipoise as eq
from equipoise.audits.design import AuditDesign
from equipoise.errors import EquipoiseError
from equipoise.history.past import Past
from equipoise.planning.forecasts import Forecast, Forecaster
from equipoise.planning.scenarios import scenarios
from equipoise.planning.trial_runs import run_trial
from equipoise.worlds import CellWorld
from study._pages import COSTS as PAGE_OF_COSTS
from study._pages import write_section
from study.forecast import METRICS, Case, Row

KEPT = CACHE.parent / "study" / "forecast_grey.json"
GROUPS = (4, 8)
ZONES = ("grey zone", "elsewhere")
EPSILONS = (0.1, 0.2)
LEAST_COST, MOST_COST = 5.0, 400.0  # forecasts outside are left out: over at once, or too slow
MOST_PAST_ERROR = 0.08  # epsilons: the standard error of a gap in the grey zone by past rows
SIMILARITY = 80.0  # of the groups of a population
LABELS = 4_000  # after which an audit is broken off
SEEN = 40  # cases below this number were looked at


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=20, help="of every class")
    parser.add_argument("--first", type=int, default=SEEN, help="number of the first case")
    parser.add_argument("--runs", type=int, default=40, help="audits of each case")
    parser.add_argument("--groups", type=int, nargs="+", default=list(GROUPS))
    parser.add_argument("--kept", type=Path, default=KEPT, help="file of cases made so far")
    parser.add_argument("--output", type=Path, default=PAGE_OF_COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    kept = json.loads(options.kept.read_text()) if options.kept.is_file() else {}
    numbers = range(options.first, options.first + options.cases)
    work = list(product(numbers, options.groups, ZONES))
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for number, n_groups, zone in bar.track(work, description="cases"):
            key = f"{zone}, {n_groups} groups, case {number}, {options.runs} runs"
            if key not in kept:
                kept[key] = measure(draw(n_groups, zone, number), options.runs)
                options.kept.parent.mkdir(parents=True, exist_ok=True)
                options.kept.write_text(json.dumps(kept))
    out = table("", "class", "cases", "of these open-ended", "audits", "at most the 90% figure",
                "without a verdict", "… where open-ended")  # fmt: skip
    for n_groups, zone in product(options.groups, ZONES):
        rows = [kept[f"{zone}, {n_groups} groups, case {n}, {options.runs} runs"] for n in numbers]
        out.add_row(f"{n_groups} groups, {zone}", *judge(row for row in rows if row))
    write_section(
        options.output,
        "forecast_grey",
        "Plans of many groups, the grey zone included",
        f"Made by `python -m study forecast_grey --cases {options.cases} --runs {options.runs}`: "
        "random populations with pasts of 10,000 to 50,000 rows, drawn after the constants of "
        "the forecast were chosen. That more than four groups are open-ended in the grey zone was "
        "decided on these cases. In the grey zone the true gap lies halfway between tolerance and "
        "tolerance plus margin. Audits that end without a verdict count as above every figure.",
        [out],
    )
    return out


def draw(n_groups: int, zone: str, number: int) -> Case:
    """Return a random case of a class that a plan calls decidable and neither free nor very dear.

    Draws are repeated until one is.
    """
    rng = np.random.default_rng([41, n_groups, ZONES.index(zone), number])
    while True:
        case = _draw_once(n_groups, zone, rng)
        if case is None:
            continue
        median = forecast_of(case).median
        if median is None or not LEAST_COST <= median <= MOST_COST:
            continue
        if eq.AdaptiveAudit(case.past, case.question, case.costs).finding is None:
            return case


def _draw_once(n_groups: int, zone: str, rng: np.random.Generator) -> Case | None:
    """Return a random case; None where the past decides or the question is not possible."""
    common = rng.dirichlet([3.0, 2.0, 5.0])
    ratio = rng.uniform(0.1, 1.0)
    groups = {}
    for i in range(n_groups):
        p1, p0, s = rng.dirichlet(SIMILARITY * common)
        r = float(np.clip(ratio * p1 / (p1 + p0) * rng.uniform(0.7, 1.4), 0.0, 1.0))
        groups[f"g{i}"] = (p1, p0, s, r)
    weights = dict(zip(groups, rng.dirichlet([4.0] * n_groups).tolist(), strict=True))
    world = CellWorld.from_shares(groups, weights)
    metric = str(rng.choice(METRICS))
    epsilon = float(rng.choice(EPSILONS))
    gap = world.gap(metric)
    gamma = round(gap - 0.5 * epsilon, 3) if zone == ZONES[0] else float(rng.choice(EPSILONS))
    past = world.past(int(10 ** rng.uniform(4.0, 4.7)), int(rng.integers(2**31)))
    try:
        question = eq.Question(metric, gamma, epsilon)
        if zone != ZONES[0] and gamma < gap < gamma + epsilon:
            return None
        if eq.check(past, question).verdict is not eq.Verdict.INCONCLUSIVE:
            return None  # mostly sooner said than by the audit below
        if zone == ZONES[0] and past_error(past, question, world.r) > MOST_PAST_ERROR * epsilon:
            return None  # hardly any of these can be decided
        (scenario,) = scenarios(past.cells, question, world.r)
    except EquipoiseError:
        return None
    return Case(past, question, eq.Costs(), scenario)


def past_error(past: Past, question: eq.Question, r: Mapping[str, float]) -> float:
    """Return the largest standard error of a gap by past rows alone."""
    design = AuditDesign(past, question)
    return design.row_answers().error_of_gap(np.array([r[group] for group in design.groups]))


def forecast_of(case: Case) -> Forecast:
    return Forecaster(case.past, case.question, case.costs).forecast_case(case.scenario)


def measure(case: Case, runs: int) -> Row:
    """Return what a case's plan says and what its audits cost."""
    maker = Forecaster(case.past, case.question, case.costs)
    plan = maker.forecast_case(case.scenario)
    parts = maker.split_case(case.scenario)
    audit = eq.AdaptiveAudit(case.past, case.question, case.costs)
    luck = [np.random.default_rng(seed) for seed in np.random.SeedSequence(7).spawn(runs)]
    costs = [run_trial(audit, case.scenario, rng, LABELS).cost for rng in luck]
    return {
        "plan": dict(plan.cost),
        "parts": parts._replace(labels=np.zeros(0))._asdict() | {"labels": []},
        "costs": [cost if np.isfinite(cost) else None for cost in costs],
        "question": [case.question.metric, case.question.gamma, case.question.epsilon],
        "gap": case.scenario.gap,
        "rows": case.past.cells.total,
    }


def judge(rows: Iterable[Row]) -> list[str]:
    """Return the entries of a class: cases, open-ended ones, audits, shares."""
    closed, open_ended = [], []
    for row in rows:
        (open_ended if row["plan"]["0.9"] is None else closed).append(row)
    costs = [(cost, row["plan"]["0.9"]) for row in closed for cost in row["costs"]]
    inside = sum(cost is not None and cost <= most for cost, most in costs)
    open_costs = [cost for row in open_ended for cost in row["costs"]]

    def share(count: int, of: int) -> str:
        return f"{count / of:.1%}" if of else "–"

    return [
        str(len(closed) + len(open_ended)),
        str(len(open_ended)),
        f"{len(costs):,}",
        share(inside, len(costs)),
        share(sum(cost is None for cost, _ in costs), len(costs)),
        share(sum(cost is None for cost in open_costs), len(open_costs)),
    ]
