"""Wrong verdicts at the boundaries with four and eight groups, and with a finite past."""

from __future__ import annotations

import argparse

from rich.table import Table
from tests.support.boundaries import Row, boundaries

from study import boundary
from study.boundary import fill


def add_options(parser: argparse.ArgumentParser) -> None:
    boundary.add_options(parser, runs=1000)


def run(options: argparse.Namespace) -> Table:
    rows = [
        Row(edge, options.runs, past)
        for line, past in (("half approved", 10_000), ("four groups", None), ("eight groups", None))
        for edge in boundaries(line)
    ]
    return fill(
        rows, options, "boundary_groups", "More groups, and a finite past", "Outcomes come at once."
    )
