"""``tell`` while many outcomes are pending: an audit of two or eight groups that does not end."""

from __future__ import annotations

import argparse
import time
from collections import deque

import numpy as np
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.protocol import Want
from equipoise.worlds import CellWorld

MARGIN = 0.03  # small, and the gap is in its middle: the audit lasts
GROUPS = (2, 8)
PASTS = (None, 10_000)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pending", type=int, nargs="+", default=[0, 1_000])
    parser.add_argument("--answers", type=int, default=3_000)


def run(options: argparse.Namespace) -> Table:
    out = table(
        "outcomes that come late", "groups", "past rows", "pending", "answers", "CPU ms per tell"
    )
    for groups in GROUPS:
        for size in PASTS:
            for pending in options.pending:
                answers, seconds = tell_late(groups, size, pending, options.answers)
                past = "unlimited" if size is None else f"{size:,}"
                each = f"{1e3 * seconds / max(answers, 1):.2f}"
                out.add_row(str(groups), past, f"{pending:,}", f"{answers:,}", each)
    return out


def world_of(groups: int) -> CellWorld:
    shares = {}
    for i in range(groups):
        moved = 0.05 * i / (groups - 1)
        shares[f"g{i}"] = (0.30 - moved, 0.10 + moved, 0.60, 0.30)
    return CellWorld.from_shares(shares)


def tell_late(groups: int, size: int | None, pending: int, answers: int) -> tuple[int, float]:
    """Return how many outcomes were told, and the CPU seconds of that alone."""
    world = world_of(groups)
    gap = world.gap("equalized_odds")
    question = eq.Question("equalized_odds", max(gap - MARGIN / 2, 0.0), MARGIN, delta=1e-6)
    audit = eq.AdaptiveAudit(world.past(size, 1), question, eq.Costs(), give_up="never")
    rng = np.random.default_rng(0)
    names = list(world.groups)
    waiting: deque[tuple[object, int]] = deque()
    seconds = 0.0
    told = 0
    while told < answers and audit.finding is None:
        group = names[int(rng.integers(groups))]
        ticket = audit.ask(group, 0)
        if ticket.want is Want.LABEL:
            waiting.append((ticket, int(rng.random() < world.r[group])))
        if len(waiting) > pending:
            late, outcome = waiting.popleft()
            start = time.process_time()
            audit.tell(late, outcome)  # type: ignore[arg-type]
            seconds += time.process_time() - start
            told += 1
    return told, seconds
