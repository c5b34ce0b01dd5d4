"""Wrong verdicts at the boundaries when outcomes come late, and later if they are good.

Two and four groups, finite and unlimited past data. The last
rows count labels as they arrive instead of as they were asked for: an audit that must not be built,
to show that the harness would notice.
"""

from __future__ import annotations

import argparse

from rich.table import Table
from tests.support.boundaries import ArrivalOrder, Row, boundaries

from study import boundary
from study.boundary import fill


def add_options(parser: argparse.ArgumentParser) -> None:
    boundary.add_options(parser, runs=500)


def run(options: argparse.Namespace) -> Table:
    rows = [
        Row(edge, options.runs, past, late=True)
        for line in ("half approved", "four groups")
        for edge in boundaries(line)
        for past in (None, 100_000, 10_000)
    ]
    rows += [
        Row(edge, options.runs, None, late=True, audit=ArrivalOrder)
        for edge in boundaries("few approved")
    ]
    return fill(
        rows,
        options,
        "boundary_late",
        "Outcomes that come late",
        "Outcomes are told after a geometric number of arrivals, 2 on average if they are bad and "
        "500 if they are good. *In arrival order* counts a label when it arrives, an audit "
        "that must not be built: its rows show that the harness would notice.",
    )
