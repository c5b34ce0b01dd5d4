"""Attacks on the labels of random accepts: chosen silence, weekly looks, names of groups.

Groups whose false positive rates differ by gamma: FAIR is true, and UNFAIR is wrong. A test
programme accepts people of every group alike, and somebody wants a wrong verdict. They may hide
outcomes after having seen all of them, or look at the file every week for one and a half years,
failures being known after 4 weeks and successes after 26. *Known outcomes only* is a file that
must not be used: people enter it when their outcome is known, so failures come first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.question import Verdict
from equipoise.worlds import CellWorld
from study._open_book import PAGE, tally, write_section

Array = NDArray[np.float64]
Files = Iterator[Array]
"""Counts of one file after the other: 0, 1 and unknown per group."""

GAMMA = 0.1
ACCEPTED = 312  # per group, six a week for a year
WEEKS, FAILURE, SUCCESS = 52, 4, 26
HIDDEN = 3  # outcomes of a group, at most
SETTINGS = list(product((2, 3, 5), (0.05, 0.1)))


def world(groups: int) -> CellWorld:
    """Return groups of which one is gamma below the others, by rather different unknowns."""
    p0, s, r = 0.12, 0.6, 0.6
    rate = p0 / (p0 + s * (1.0 - r)) + GAMMA - 1e-9
    other = 1.0 - 0.3 * (1.0 / rate - 1.0) / 0.436
    shares = [(0.28, p0, s, r)] + [(0.264, 0.3, 0.436, other)] * (groups - 1)
    return CellWorld.from_shares({f"g{i}": own for i, own in enumerate(shares)})


def silence(outcomes: NDArray[np.intp]) -> Files:
    """Yield the file with up to three outcomes of the extreme groups hidden, in every way."""
    ones = outcomes.sum(axis=1)
    counts = np.stack([ACCEPTED - ones, ones, 0 * ones], axis=1).astype(float)
    ways = [(0, 0)] + [(kind, n) for kind in (0, 1) for n in range(1, HIDDEN + 1)]
    for low, high in product(ways, ways):
        less = counts.copy()
        for group, (kind, n) in ((ones.argmin(), low), (ones.argmax(), high)):
            less[group, kind] -= n
            less[group, 2] += n
        yield less


def weekly(outcomes: NDArray[np.intp], *, listed: bool = True) -> Files:
    """Yield the file of every week; without pending people if they are not listed."""
    accepted = np.arange(ACCEPTED) * WEEKS // ACCEPTED
    known = accepted + np.where(outcomes == 1, SUCCESS, FAILURE)
    for week in range(1, WEEKS + SUCCESS + 1):
        told, there = known < week, accepted < week
        zeros, ones = ((told & (outcomes == y)).sum(axis=1) for y in (0, 1))
        pending = (there & ~told).sum(axis=1) * listed
        yield np.stack([zeros, ones, pending], axis=1).astype(float)


def known_only(outcomes: NDArray[np.intp]) -> Files:
    """Yield weekly files of those whose outcome is known."""
    return weekly(outcomes, listed=False)


ATTACKS: dict[str, Callable[[NDArray[np.intp]], Files]] = {
    "chosen silence": silence,
    "weekly looks": weekly,
    "known outcomes only": known_only,
}


def misled(attack: str, groups: int, delta: float, seed: np.random.SeedSequence) -> bool:
    """Say whether some file leads to UNFAIR."""
    rng, truth = np.random.default_rng(seed), world(groups)
    question = eq.Question("predictive_equality", GAMMA, 0.1, delta)
    audit = eq.AdaptiveAudit(truth.past(), question, eq.Costs())
    evidence = audit.evidence
    assert evidence is not None
    r = np.array([truth.r[group] for group in audit.groups])
    outcomes = (rng.random((groups, ACCEPTED)) < r[:, None]).astype(np.intp)
    for counts in ATTACKS[attack](outcomes):
        evidence.set_random_accepts(counts)
        if evidence.advance(replan=False) is Verdict.UNFAIR:
            return True
    return False


def count_misled(
    attack: str, groups: int, delta: float, runs: int, seed: int = 0, jobs: int = 1
) -> int:
    """Return how many of so many programmes an attack turns into a wrong verdict."""
    seeds = np.random.SeedSequence(seed).spawn(runs)
    return sum(Parallel(jobs)(delayed(misled)(attack, groups, delta, each) for each in seeds))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="programmes of every row")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    columns = ("groups", "delta", "runs", "wrong", "share", "95% interval", "within delta")
    out = table("Wrong verdicts under attack", "attack", *columns)
    for attack, (groups, delta) in product(ATTACKS, SETTINGS):
        must_not = attack == "known outcomes only"
        runs = max(options.runs // 20, 5) if must_not else options.runs
        wrong = count_misled(attack, groups, delta, runs, options.seed, options.jobs)
        out.add_row(attack, str(groups), f"{delta:g}", *tally(wrong, runs, delta))
    write_section(
        options.output,
        "random_accepts_attacks",
        "Attacks on random accepts",
        f"Made by `python -m study random_accepts_attacks --runs {options.runs}`: {ACCEPTED} "
        f"people of every group accepted within {WEEKS} weeks, rates that differ by gamma = "
        f"{GAMMA:g}. *Chosen silence* hides up to {HIDDEN} outcomes of the two extreme groups, in "
        "every way; *weekly looks* are at files that list everybody accepted so far, failures "
        f"being known after {FAILURE} weeks and successes after {SUCCESS}. *Known outcomes only* "
        "must not be used.",
        [out],
    )
    return out
