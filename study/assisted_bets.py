"""Bets on observations under their null: the largest mean of a factor, over random cases."""

from __future__ import annotations

import argparse

from rich.table import Table
from tests.support.observations import largest_mean
from tests.support.tables import table


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checks", type=int, default=500_000)


def run(options: argparse.Namespace) -> Table:
    worst, least = largest_mean(options.checks, seed=1)
    out = table(
        "bets on observations, under their null", "checks", "largest mean - 1", "least factor"
    )
    out.add_row(f"{options.checks:,}", f"{worst:.2e}", f"{least:.4f}")
    return out
