"""Wrong verdicts and missed intervals when outcomes of approved people are not known.

Audits at the boundaries, ``unknown`` mode by mode, with unlimited and with finite past data. Where
nothing is assumed the unknown outcomes are those that mislead most: what is hidden puts the truth
on the edge of what the reader has to allow. Where unknown outcomes are like the known ones, two
cohorts differ in both how good and how late they are. The second table counts how often the
interval of ``check`` misses Delta.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.progress import Progress
from scipy.optimize import brentq
from tests.support.tables import table

import equipoise as eq
from equipoise.free_check import check
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from study._open_book import PAGE, Kinds, OpenBook, tally, write_section
from study.boundary import ASIDE

QUESTION = eq.Question("equalized_odds", gamma=0.1, epsilon=0.2, delta=0.05)
SHARES = {"A": (0.40, 0.20, 0.40, 0.35), "B": (0.36, 0.18, 0.46, 0.35)}
HIDDEN = 0.01  # share of a group's people whose outcome is hidden, where nothing is assumed
KNOWN = {"A": (0.95, 0.6), "B": (0.8, 0.3)}  # share of known outcomes, old and young cohort
MODES = ("bounds", "like_known")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="of every row")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


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
                f"Delta is {ASIDE:g} inside gamma (truth FAIR) or {ASIDE:g} beyond gamma + epsilon "
                "(truth UNFAIR). `bounds`: the outcomes that are hidden are those that put the "
                "truth on the edge of what has to be allowed. `like_known`: two cohorts, the "
                "younger one worse and less known.",
                [audits, checks],
            )
    return Group(audits, checks)


def edge(mode: str, truth: str) -> OpenBook:
    """Return a world on the edge of a wrong answer."""
    at = QUESTION.gamma - ASIDE if truth == "FAIR" else QUESTION.threshold + ASIDE
    p1, p0, s, least = SHARES["B"]

    def world(r: float) -> CellWorld:
        return CellWorld.from_shares({**SHARES, "B": (p1, p0, s, r)})

    r = brentq(lambda r: world(r).gap(QUESTION.metric) - at, least, 1.0, xtol=1e-12)
    made = world(float(r))
    if mode == "like_known":
        return OpenBook(made, {g: cohorts(made, g) for g in made.groups}, like_known=True)
    rate, rates = max(made.rates(QUESTION.metric).items(), key=lambda pair: _gap(pair[1]))
    above = max(rates, key=lambda group: rates[group])
    # What is hidden makes the widest gap look smaller where that would be called FAIR, and larger
    # where it would be called UNFAIR; a hidden good outcome lowers TPR, a hidden bad one FPR.
    lowers = (rate == "true_positive_rate") == (truth == "UNFAIR")
    good = {above} if lowers else set(made.groups) - {above}
    return OpenBook(made, hidden(made, dict.fromkeys(made.groups, HIDDEN), good), like_known=False)


def _gap(rates: Mapping[str, float]) -> float:
    return max(rates.values()) - min(rates.values())


def hidden(world: CellWorld, sizes: Mapping[str, float], good: set[str]) -> dict[str, Kinds]:
    """Hide good outcomes in some groups and bad ones in the others."""
    kinds: dict[str, Kinds] = {}
    for group, counts in world.cells.items():
        p1, p0, _ = counts.shares
        own = sizes[group]
        kinds[group] = ((p1 - own, p0, own),) if group in good else ((p1, p0 - own, own),)
    return kinds


def cohorts(world: CellWorld, group: str) -> Kinds:
    """Split the approved into an older and a younger half; the younger is worse and less known."""
    p1, p0, _ = world.cells[group].shares
    good = p1 / (p1 + p0)
    halves = []
    for share, known in zip((good + 0.1, good - 0.1), KNOWN[group], strict=True):
        half = (p1 + p0) / 2.0
        halves.append((half * share * known, half * (1.0 - share) * known, half * (1.0 - known)))
    return tuple(halves)


def misses(mode: str, metric: str, runs: int, seed: int) -> int:
    """Count pasts of which the interval misses Delta, which lies at the end of what is allowed.

    The denied of one group all succeed, those of the other all fail, so that nothing but the
    luck of the past is left between Delta and the interval's upper end.
    """
    (a1, a0, a, _), (b1, b0, b, _) = SHARES.values()
    world = CellWorld.from_shares({"A": (a1, a0, a, 0.0), "B": (b1, b0, b, 1.0)})
    book = (
        OpenBook(world, {g: cohorts(world, g) for g in world.groups}, like_known=True)
        if mode == "like_known"
        else OpenBook(world, hidden(world, {"A": 0.1, "B": 0.08}, {"A"}), like_known=False)
    )
    question = eq.Question(metric, 0.1, 0.1, QUESTION.delta)
    truth, missed = world.gap(metric), 0
    for one in np.random.SeedSequence(seed).spawn(runs):
        found = check(book.past(1000, np.random.default_rng(one)), question)
        missed += not found.lower <= truth <= found.upper
    return missed
