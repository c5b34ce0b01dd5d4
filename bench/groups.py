"""Many groups: what check, plan, and ask with tell take."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from tests.support.tables import table

from bench.measure import measure

if TYPE_CHECKING:  # a measured process imports the package itself
    from equipoise.history.past import Past

QUESTIONS = (("equal_opportunity", 0.1, 0.1), ("equalized_odds", 0.2, 0.2))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--groups", type=int, nargs="+", default=[40, 60, 200], help="of a plan")
    parser.add_argument("--labels", type=int, default=5_000, help="of the audit of twenty groups")


def run(options: argparse.Namespace) -> Table:
    out = table("Many groups", "task", "groups", "metric", "CPU s", "peak MB")
    for groups in options.groups:
        for metric, gamma, epsilon in QUESTIONS:
            for name, task in (("check", check), ("plan", plan)):
                seen = measure(task, groups, metric, gamma, epsilon, runs=1)
                cells = (f"{seen.cpu:.2f}", f"{seen.megabytes:,.0f}")
                out.add_row(name, f"{groups:,}", metric, *cells)
    seen = measure(ask_and_tell, 20, options.labels, runs=1)
    task_name = f"{seen.result} ms: 50% and 99% of ask + tell"
    out.add_row(task_name, "20", "equalized_odds", f"{seen.cpu:.2f}", f"{seen.megabytes:,.0f}")
    return out


def check(groups: int, metric: str, gamma: float, epsilon: float) -> Callable[[], object]:
    import equipoise as eq

    history, question = _history(groups), eq.Question(metric, gamma, epsilon)
    return lambda: eq.check(history, question).verdict


def plan(groups: int, metric: str, gamma: float, epsilon: float) -> Callable[[], object]:
    import equipoise as eq

    history, question = _history(groups), eq.Question(metric, gamma, epsilon)
    return lambda: eq.plan(history, question, eq.Costs()).recommended


def ask_and_tell(groups: int, labels: int) -> Callable[[], object]:
    """An audit of many groups that does not end; milliseconds of CPU per label."""
    import equipoise as eq
    from equipoise.protocol import Want

    rng = np.random.default_rng(0)
    # Both answers are right and neither is near, so that the audit lasts.
    question = eq.Question("equalized_odds", 0.2, 0.02)

    def task() -> str:
        audit = eq.AdaptiveAudit(_history(groups), question, eq.Costs(), give_up="never")
        names = list(audit.cells)
        times: list[float] = []
        while len(times) < labels and audit.finding is None:
            group = names[int(rng.integers(groups))]
            start = time.process_time()
            ticket = audit.ask(group, 0)
            if ticket.want is not Want.LABEL:
                continue
            audit.tell(ticket, int(rng.random() < 0.3))
            times.append(time.process_time() - start)
        half, nearly_all = 1e3 * np.quantile(times, [0.5, 0.99])
        return f"{half:.2f} and {nearly_all:.2f}"

    return task


def _history(groups: int) -> Past:
    """Return a past of groups that are so much alike that it leaves every question open."""
    import equipoise as eq

    rng = np.random.default_rng(0)
    names = ("approved_positive", "approved_negative", "denied")
    cells = {}
    for number in range(groups):
        size, shares = int(rng.integers(2_000, 60_000)), rng.dirichlet([400, 100, 500])
        counts = rng.multinomial(size, shares).tolist()
        cells[f"group {number}"] = dict(zip(names, counts, strict=True))
    return eq.History.from_cells(cells)
