"""How often attacks on the labels of random accepts mislead the audit."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from rich.table import Table
from tests.support.random_accepts import (
    ACCEPTED,
    ATTACKS,
    FAILURE,
    GAMMA,
    HIDDEN,
    SETTINGS,
    SUCCESS,
    WEEKS,
    count_misled,
)
from tests.support.tables import table

from study._pages import ERRORS, tally, write_section


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, help="programmes of every row")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


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
