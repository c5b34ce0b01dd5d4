"""Wrong verdicts and missed intervals when outcomes of approved people are not known.

Audits at the boundaries, ``unknown`` mode by mode, with unlimited and with finite past data. Where
nothing is assumed the unknown outcomes are those that mislead most: what is hidden puts the truth
on the edge of what the reader has to allow. Where unknown outcomes are like the known ones, two
cohorts differ in both how good and how late they are. The second table counts how often the
interval of ``check`` misses the gap.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.progress import Progress
from tests.support.boundaries import ASIDE
from tests.support.open_books import QUESTION, edge, misses
from tests.support.tables import table

import equipoise as eq
from equipoise.simulation import simulate
from study._pages import ERRORS, tally, write_section

MODES = ("bounds", "like_known")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="of every row")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Group:
    counted = ("runs", "wrong", "share", "95% interval", "within delta")
    audits = table(
        "Audits at the boundary", "unknown", "truth", "past per group", *counted,
        "inconclusive", "labels",
    )  # fmt: skip
    checks = table("Intervals of check", "unknown", "metric", "past per group", *counted)
    pasts = {"bounds": (20_000, None), "like_known": (20_000,)}  # without end these are a point
    rows = [(m, t, p) for m in MODES for p in pasts[m] for t in ("FAIR", "UNFAIR")]
    for mode in MODES:
        for metric in ("predictive_parity", "accuracy_parity", "equalized_odds"):
            missed = misses(mode, metric, options.runs, options.seed)
            checks.add_row(mode, metric, "500", *tally(missed, options.runs, QUESTION.delta))
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for mode, truth, past in bar.track(rows, description="unknown"):
            sim = simulate(
                "adaptive",
                edge(mode, truth),
                QUESTION,
                eq.Costs(),
                repeats=options.runs,
                seed=options.seed,
                history_size=None if past is None else 2 * past,
                n_jobs=options.jobs,
            )
            audits.add_row(
                mode,
                truth,
                "unlimited" if past is None else f"{past:,}",
                *tally(int(sim.wrong.sum()), len(sim), QUESTION.delta),
                f"{np.mean(sim.verdict == 'INCONCLUSIVE'):.3f}",
                f"{sim.labels.mean():,.0f}",
            )
            write_section(
                options.output,
                "unknown",
                "Approved people whose outcome is not known",
                f"Made by `python -m study unknown --runs {options.runs}`: {QUESTION}. The true "
                f"gap is {ASIDE:g} inside gamma (truth FAIR) or {ASIDE:g} beyond gamma + epsilon "
                "(truth UNFAIR). `bounds`: the outcomes that are hidden are those that put the "
                "truth on the edge of what has to be allowed. `like_known`: two cohorts, the "
                "younger one worse and less known.",
                [audits, checks],
            )
    return Group(audits, checks)
