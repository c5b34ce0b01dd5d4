"""Deciders as if at random: how often the check's interval misses, and how much narrower it is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.progress import Progress
from rich.table import Table
from tests.support.courts import Court, pooled
from tests.support.tables import table

import equipoise as eq
from equipoise.rates import clopper_pearson
from study._pages import ERRORS, tally, write_section

DELTA = 0.05
MIN_CASES = 100
METRICS = ("equal_opportunity", "equalized_odds")
STEERED = {"at random": 0.0, "slightly steered": 0.1, "steered": 0.4}
SIZES = {"1,000 to 10,000 cases": (1e3, 1e4), "10,000 to 100,000 cases": (1e4, 1e5)}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="courts per row of cases dealt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Group:
    covered = table(
        "Intervals of check", "cases fall to judges", "cases of a court", "metric", "courts",
        "interval misses", "share", "95% interval", "within delta", "wrong verdicts",
        "called contradictory", "verdicts, without deciders", "with",
    )  # fmt: skip
    widths = table(
        "Mean width of the gap's interval, cases dealt at random",
        "cases of a court", "metric", "without deciders", "with", f"pooled below {MIN_CASES} cases",
    )  # fmt: skip
    jobs = [(d, s, m) for d in STEERED for s in SIZES for m in METRICS]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for dealt, size, metric in bar.track(jobs, description="deciders"):
            _add_row(covered, widths, dealt, size, metric, options)
    chosen = _chosen_by_approvals(options)
    write_section(
        options.output,
        "deciders",
        "Deciders as if at random",
        f"Made by `python -m study deciders --runs {options.runs}`: courts of 5 to 50 judges and "
        f"two groups, gamma 0.05, epsilon 0.1, delta {DELTA:g}. Judges differ in how many they "
        "release, and everything else about a court is drawn at random. *Steered*: the share who "
        "would come rises from the strictest judge's cases to the most lenient one's by 0.1 "
        "(slightly) or by 0.4. The last table is a mistake that must not be made: the five of "
        "fifty judges who approve most are counted together, chosen on the rows that are counted; "
        "it shows how often their bound of q, at 2.5%, is above q.",
        [covered, widths, chosen],
    )
    return Group(covered, widths, chosen)


def _courts(
    options: argparse.Namespace, steered: float, size: tuple[float, float]
) -> Iterator[tuple[Court, eq.history.Past]]:
    rng = np.random.default_rng([options.seed, round(1000 * steered), round(size[0])])
    for _ in range(options.runs // len(SIZES)):
        court = Court(rng, int(rng.integers(5, 51)), steered)
        yield court, court.past(rng, int(np.exp(rng.uniform(*np.log(size)))))


def _add_row(
    covered: Table,
    widths: Table,
    dealt: str,
    size: str,
    metric: str,
    options: argparse.Namespace,
) -> None:
    question = eq.Question(metric, gamma=0.05, epsilon=0.1, delta=DELTA)
    missed = wrong = against = runs = 0
    verdicts, wide = [0, 0], [0.0, 0.0, 0.0]
    for court, past in _courts(options, STEERED[dealt], SIZES[size]):
        truth, runs = court.gap(question), runs + 1
        found = [
            eq.check(past, question),
            eq.check(past, question, deciders="as_random"),
            eq.check(pooled(past, MIN_CASES), question, deciders="as_random"),
        ]
        used = found[1]
        against += bool(used.warnings)
        missed += not used.lower <= truth <= used.upper
        decided = [one.verdict is not eq.Verdict.INCONCLUSIVE for one in found[:2]]
        verdicts = [n + more for n, more in zip(verdicts, decided, strict=True)]
        wrong += decided[1] and used.verdict not in question.truth(truth)
        wide = [w + one.upper - one.lower for w, one in zip(wide, found, strict=True)]
    covered.add_row(
        *(dealt, size, metric.replace("_", " "), *tally(missed, runs, DELTA)),
        *(f"{wrong:,}", f"{against:,}", *(f"{n / runs:.0%}" for n in verdicts)),
    )
    if not STEERED[dealt]:
        widths.add_row(size, metric.replace("_", " "), *(f"{w / runs:.3f}" for w in wide))


def _chosen_by_approvals(options: argparse.Namespace) -> Table:
    """Count how often the five judges who approve most, of fifty alike, bound q wrongly."""
    made = table("Judges chosen by how often they approve", "pool", "runs", "bound above q")
    rng = np.random.default_rng(options.seed)
    q, cases = 0.6, 200
    good = rng.binomial(cases, q, size=(options.runs, 50))  # all fifty release whoever would come
    pools = {
        "the five who approve most": np.sort(good, axis=1)[:, -5:],
        "five named beforehand": good[:, :5],
    }
    for name, own in pools.items():
        bounds = [clopper_pearson(n, 5 * cases, 0.025)[0] for n in own.sum(axis=1)]
        made.add_row(name, f"{options.runs:,}", f"{np.mean(np.array(bounds) > q):.1%}")
    return made
