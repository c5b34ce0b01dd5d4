"""Wrong verdicts at the boundaries of a ratio: the four-fifths rule asked of equalized odds.

The lowest true positive rate, or false positive rate, is just four fifths of the highest, or just
below half of it.
"""

from __future__ import annotations

import argparse

from rich.table import Table
from tests.support.boundaries import DELTA, Row, boundaries

import equipoise as eq
from study import boundary
from study.boundary import fill

QUESTION = eq.Question("equalized_odds", gamma=0.2, epsilon=0.3, delta=DELTA, compare="ratio")


def add_options(parser: argparse.ArgumentParser) -> None:
    boundary.add_options(parser, runs=1000)


def run(options: argparse.Namespace) -> Table:
    rows = [Row(edge, options.runs, None, None) for edge in boundaries("half approved", QUESTION)]
    return fill(
        rows, options, "boundary_ratio", "Ratios", "Outcomes come at once, past data are unlimited."
    )
