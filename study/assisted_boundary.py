"""Audits that look, at the boundaries: helpful, useless and lying scores, delays and write-offs."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table
from tests.support.score_audits import MOST, POINTS, QUESTION, one
from tests.support.tables import table

from equipoise.rates import clopper_pearson
from study._resumed import add_options as add_run_options
from study._resumed import collect, made_by, mean

PAGE = Path(__file__).parents[1] / "docs" / "assisted-boundary.md"
HEADER = (
    *("truth, score", "audits", "wrong", "share", "95%", "inconclusive"),
    "within delta",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser, 1_000)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    runs = collect(options, POINTS, one)
    out, rows = table("wrong verdicts at the boundaries, delta = 0.05", *HEADER), []
    for point, made in runs.items():
        wrong, n = int(mean(made, "wrong") * len(made) + 0.5), len(made)
        low, high = clopper_pearson(wrong, n, 0.025)
        rows.append(
            [
                *(point, f"{n:,}", f"{wrong}", f"{wrong / n:.4f}", f"{low:.4f} to {high:.4f}"),
                *(f"{mean(made, 'none'):.3f}", "yes" if low <= QUESTION.delta else "NO"),
            ]
        )
        out.add_row(*rows[-1])
    lines = [
        *("# Looking before asking, at the boundaries", "", "<!-- generated: do not edit -->", ""),
        *(made_by(options, runs), ""),
        "Two groups whose false omission rates differ by exactly gamma (truth FAIR) or by just "
        "more than gamma + epsilon (UNFAIR). The *lying* score knows every outcome, is right until "
        "it is trusted, and turns round every 40 labels. *Late*: the scores in turn; failures show "
        f"soon, successes late, a tenth of the outcomes never. At most {MOST:,} people come. All "
        "others tell their outcome at once.",
        *("", "| " + " | ".join(HEADER) + " |", "| --- " + "| ---: " * (len(HEADER) - 1) + "|"),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return out
