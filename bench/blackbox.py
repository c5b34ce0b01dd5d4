"""The paper's black-box sweep and single audits at any precision, drawn exactly."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rich.table import Table
from tests.support.tables import table

from bench.measure import measure

TAUS = (5, 10, 25, 50, 100, 200, 400, 500, 600, 750, 900, 1000)
RUNS = 5
PRECISIONS = (0.1, 0.01, 0.001)


def run(options: argparse.Namespace) -> Table:
    out = table("Black-box audits, Adult by sex, logistic regression", "task", "CPU ms", "result")
    sweep = measure(_sweep)
    runs = 2 * len(TAUS) * RUNS
    what = f"sweep: 2 audits, {len(TAUS)} tau, {RUNS} runs each"
    out.add_row(
        what, f"{1000 * sweep.cpu:.1f}", f"{runs} runs, RS/Baseline cost {sweep.result:.3f}"
    )
    for epsilon in PRECISIONS:
        once = measure(_one_audit, epsilon)
        out.add_row(f"one RS-Audit, epsilon={epsilon:g}", f"{1000 * once.cpu:.2f}", once.result)
    walked = measure(_person_by_person, runs=1)
    out.add_row(
        "one RS-Audit person by person, tau=1000", f"{1000 * walked.cpu:.0f}", walked.result
    )
    return out


def _sweep() -> Callable[[], float]:
    import equipoise as eq

    world, costs = eq.data.adult_world(), eq.Costs()
    question = eq.Question(gamma=0.0, delta=0.01)

    def task() -> float:
        spent = {"rs": 0.0, "baseline": 0.0}
        for audit in spent:
            for tau in TAUS:
                sim = eq.simulate(audit, world, question, costs, repeats=RUNS, tau=tau)
                spent[audit] += float(sim.cost.sum())
        return spent["rs"] / spent["baseline"]

    return task


def _one_audit(epsilon: float) -> Callable[[], str]:
    import equipoise as eq

    world = eq.data.adult_world()
    question = eq.Question(gamma=0.05, epsilon=epsilon)

    def task() -> str:
        sim = eq.simulate("rs", world, question, eq.Costs(), repeats=1)
        return f"{sim.verdict[0]}, {sim.labels[0]:.3e} labels"

    return task


def _person_by_person() -> Callable[[], str]:
    import equipoise as eq
    from equipoise.simulation import run as walk

    world = eq.data.adult_world()

    def task() -> str:
        audit = eq.RSAudit(world.past(), eq.Question(), eq.Costs(), tau=1000)
        finding = walk(audit, world)
        return f"{finding.verdict}, {finding.labels:,} labels"

    return task
