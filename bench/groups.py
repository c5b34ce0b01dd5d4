"""Forty groups (race by sex by age): what check and plan take."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from rich.table import Table
from tests.support.tables import table

from bench.measure import measure

RACES = ("white", "black", "asian", "hispanic", "other")
AGES = ("under 30", "30 to 45", "45 to 60", "over 60")


def run(options: object) -> Table:
    out = table("Forty groups", "task", "metric", "CPU s", "peak MB")
    for metric, gamma, epsilon in (("equal_opportunity", 0.1, 0.1), ("equalized_odds", 0.2, 0.2)):
        for name, task in (("check", check), ("plan", plan)):
            seen = measure(task, metric, gamma, epsilon, runs=1)
            out.add_row(name, metric, f"{seen.cpu:.2f}", f"{seen.megabytes:,.0f}")
    return out


def check(metric: str, gamma: float, epsilon: float) -> Callable[[], object]:
    import equipoise as eq

    history, question = _history(), eq.Question(metric, gamma, epsilon)
    return lambda: eq.check(history, question).verdict


def plan(metric: str, gamma: float, epsilon: float) -> Callable[[], object]:
    import equipoise as eq

    history, question = _history(), eq.Question(metric, gamma, epsilon)
    return lambda: eq.plan(history, question, eq.Costs()).recommended


def _history() -> object:
    import equipoise as eq

    rng = np.random.default_rng(0)
    names = ("approved_positive", "approved_negative", "denied")
    cells = {}
    for attributes in product(RACES, ("female", "male"), AGES):
        size, shares = int(rng.integers(2_000, 60_000)), rng.dirichlet([40, 10, 50])
        counts = rng.multinomial(size, shares).tolist()
        cells[" & ".join(attributes)] = dict(zip(names, counts, strict=True))
    return eq.History.from_cells(cells)
