"""The adaptive audit: a whole audit, one label late in a long one, twenty groups."""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from bench.measure import measure
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Step
from equipoise.protocol import Ticket, Want
from equipoise.simulation import run as run_audit
from equipoise.simulation.drive import DeniedPeople, run_in_blocks
from equipoise.worlds import CellWorld

SHARES = {"A": (0.30, 0.10, 0.60, 0.30), "B": (0.25, 0.12, 0.63, 0.32)}
TWO = CellWorld.from_shares(SHARES)
TWO_QUESTION = "equalized_odds"
ABOUT_1000 = eq.Question(gamma=0.1, epsilon=0.03, delta=0.05)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=100_000, help="before one label is timed")


def run(options: argparse.Namespace) -> Table:
    out = table("the adaptive audit", "task", "labels", "CPU seconds", "per label", "MB")
    for way, task in (("in simulation", in_blocks), ("person by person", person_by_person)):
        whole = measure(task, runs=3)
        labels = int(str(whole.result))
        out.add_row(
            f"two groups, a whole audit {way}",
            f"{labels:,}",
            f"{whole.cpu:.2f}",
            f"{1e3 * whole.cpu / labels:.2f} ms",
            f"{whole.megabytes:.0f}",
        )
    late = measure(late_labels, options.labels, runs=1)
    out.add_row(
        f"two groups, median of ask + tell after {options.labels:,} labels",
        "2,000",
        "",
        f"{1e3 * float(str(late.result)):.2f} ms",
        f"{late.megabytes:.0f}",
    )
    for groups, alike in ((2, True), (2, False), (4, False), (20, False)):
        many = measure(many_groups, groups, alike, runs=1)
        past = ", the same past" if alike else ""
        out.add_row(
            f"{groups} groups{past}, 10,000 labels person by person",
            str(many.result),
            f"{many.cpu:.1f}",
            f"{1e3 * many.cpu / 10_000:.2f} ms",
            f"{many.megabytes:.0f}",
        )
    again = measure(rebuilt, options.labels, runs=1)
    out.add_row(
        f"two groups, {options.labels:,} requests of a log rebuilt, 50 pending at a time",
        str(again.result),
        f"{again.cpu:.1f}",
        f"{1e3 * again.cpu / options.labels:.3f} ms",
        f"{again.megabytes:.0f}",
    )
    return out


def rebuilt(labels: int) -> Callable[[], object]:
    """A log of asks and tells, answers 50 requests late, taken in by another audit."""
    question = eq.Question(TWO_QUESTION, gamma=TWO.gap(TWO_QUESTION) - 5e-4, epsilon=1e-3)
    question = replace(question, delta=1e-6)
    rng, log, pending = np.random.default_rng(0), [], deque()
    for number in range(labels):
        group = "AB"[number % 2]
        ticket = Ticket(number, group, 0, Want.LABEL, 1.0)
        log.append(Step("asked", ticket))
        pending.append((ticket, int(rng.random() < TWO.r[group])))
        if len(pending) > 50:
            log.append(Step("told", *pending.popleft()))

    def task() -> str:
        audit = AdaptiveAudit(TWO.past(), question, eq.Costs())
        audit.restore(log)
        return f"{audit.labels:,}"

    return task


def in_blocks() -> Callable[[], object]:
    """An audit that ends after about 1,000 labels, as `simulate` runs it."""
    return lambda: int(eq.simulate("adaptive", TWO, ABOUT_1000, eq.Costs(), repeats=1).labels[0])


def person_by_person() -> Callable[[], object]:
    """The same audit through ask and tell."""
    return lambda: run_audit(AdaptiveAudit(TWO.past(), ABOUT_1000, eq.Costs()), TWO, 0).labels


def late_labels(labels: int) -> Callable[[], object]:
    """Both answers are right and neither is near, so that the audit lasts."""
    difference = TWO.gap("equalized_odds")
    question = eq.Question(gamma=difference - 5e-4, epsilon=1e-3, delta=1e-6)
    audit = AdaptiveAudit(TWO.past(), question, eq.Costs())
    rng = np.random.default_rng(0)

    def label() -> bool:
        asked = False
        for group in audit.cells:
            ticket = audit.ask(group, 0)
            if ticket.want is Want.LABEL:
                audit.tell(ticket, int(rng.random() < TWO.r[group]))
                asked = True
        return asked

    r = np.array(list(TWO.r.values()))
    run_in_blocks(audit, DeniedPeople(np.ones(2), r, []), rng, labels)

    def task() -> float:
        times = []
        while len(times) < 2_000 and audit.finding is None:
            start, before = time.perf_counter(), audit.labels
            label()
            if audit.labels > before:
                times.append((time.perf_counter() - start) / (audit.labels - before))
        if not times:
            raise RuntimeError(f"the audit ended after {audit.labels:,} labels")
        return float(np.median(times))

    return task


def many_groups(groups: int, alike: bool) -> Callable[[], object]:
    """Groups in the gap zone, ``alike`` if their past is, stopped after 10,000 labels."""
    rng = np.random.default_rng(0)
    shares = {f"g{i}": (0.30 + 0.002 * i * (not alike), 0.10) for i in range(groups)}
    world = CellWorld.from_shares(
        {g: (p1, p0, 1.0 - p1 - p0, 0.30 + 0.05 * rng.uniform()) for g, (p1, p0) in shares.items()}
    )
    width = 0.04 if groups > 4 else 0.01
    question = eq.Question(gamma=world.gap("equalized_odds") - width / 2.0, epsilon=width)

    def task() -> str:
        costs = eq.Costs(feature=1.0, label=0.0)
        audit = AdaptiveAudit(world.past(), question, costs, budget=10_000.0)
        finding = run_audit(audit, world, 0)
        return f"{finding.labels:,}"

    return task
