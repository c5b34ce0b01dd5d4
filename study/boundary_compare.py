"""Wrong verdicts at the boundaries against one group, in one direction, and within two strata."""

from __future__ import annotations

import argparse
from dataclasses import replace

from rich.table import Table
from tests.support.boundaries import COMPARISONS, QUESTION, Row, boundaries

from study import boundary
from study.boundary import fill


def add_options(parser: argparse.ArgumentParser) -> None:
    boundary.add_options(parser, runs=1000)


def run(options: argparse.Namespace) -> Table:
    rows = [
        Row(replace(edge, line=name), options.runs, past)
        for name, (line, compare) in COMPARISONS.items()
        for edge in boundaries(line, replace(QUESTION, compare=compare))
        for past in (None, 20_000)
    ]
    who = "; ".join(f"{name}: {compare.words[2:]}" for name, (_, compare) in COMPARISONS.items())
    return fill(
        rows,
        options,
        "boundary_compare",
        "Who is compared with whom",
        f"Outcomes come at once. Who is compared: {who}.",
    )
