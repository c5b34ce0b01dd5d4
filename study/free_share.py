"""What share of the error level finite past data should get: cost and undecided audits by share."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from study.bank import GAP, Instance, bank

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
PAST = (10_000, 100_000)  # people per group


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--instances", type=int, default=10, help="spread over the bank")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Table:
    chosen = _chosen(options.instances)
    out = table(
        f"mean cost over C* and share of INCONCLUSIVE audits, geometric means over "
        f"{len(chosen)} two-group instances, {options.runs} runs each",
        "share of delta for the past",
        *(f"{past:,} past people per group" for past in PAST),
    )
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for share in bar.track(SHARES, description="shares"):
            out.add_row(f"{share:g}", *(_cell(chosen, past, share, options) for past in PAST))
    return out


def _chosen(count: int) -> list[Instance]:
    paid = [i for i in bank() if i.groups == 2 and i.kind != GAP and not i.is_free]
    return [paid[k] for k in np.linspace(0, len(paid) - 1, count).round().astype(int)]


def _cell(chosen: list[Instance], past: int, share: float, options: argparse.Namespace) -> str:
    multiples, open_ended = [], []
    for instance in chosen:
        sim = eq.simulate(
            "adaptive",
            instance.world,
            instance.question,
            eq.Costs(),
            repeats=options.runs,
            seed=options.seed,
            history_size=past * instance.groups,
            n_jobs=options.jobs,
            free_share=share,
        )
        multiples.append(sim.cost.mean() / float(instance.bound))
        open_ended.append(np.mean(sim.verdict == "INCONCLUSIVE"))
    mean = float(np.exp(np.mean(np.log(multiples))))
    return f"{mean:.2f} x C*, {np.mean(open_ended):.1%} undecided"
