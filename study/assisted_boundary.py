"""Audits that look, at the boundaries: helpful, useless and lying scores, delays and write-offs."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table
from tests.support.score_audits import MOST, POINTS, QUESTION, one
from tests.support.tables import table

from study._pages import ERRORS, tally, write_section
from study._resumed import add_options as add_run_options
from study._resumed import collect, made_by, mean

HEADER = (
    *("truth, score", "audits", "wrong", "share", "95% interval", "within delta"),
    "inconclusive",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser, 1_000)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    runs = collect(options, POINTS, one)
    out = table("Wrong verdicts, delta = 0.05", *HEADER)
    for point, made in runs.items():
        wrong = round(mean(made, "wrong") * len(made))
        out.add_row(point, *tally(wrong, len(made), QUESTION.delta), f"{mean(made, 'none'):.3f}")
    write_section(
        options.output,
        "assisted_boundary",
        "Looking before asking, at the boundaries",
        f"{made_by(options, runs)} Two groups whose false omission rates differ by exactly gamma "
        "(truth FAIR) or by just more than gamma + epsilon (UNFAIR). The *lying* score knows every "
        "outcome, is right until it is trusted, and turns round every 40 labels. *Late*: the "
        "scores in turn; failures show soon, successes late, a tenth of the outcomes never. At "
        f"most {MOST:,} people come. All others tell their outcome at once.",
        [out],
    )
    return out
