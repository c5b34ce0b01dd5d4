"""What looking before asking saves: cost over the uniform audit's, for good and for bad scores."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from bench.measure import table
from rich.table import Table

import equipoise as eq
from study._looking import Case, adult, asking, audit_once, law_school, synthetic
from study._resumed import Run, collect, mean
from study._resumed import add_options as add_run_options
from study.bank import LAW_SCHOOL

PAGE = Path(__file__).parents[1] / "docs" / "assisted.md"
SYNTHETIC = eq.Question(gamma=0.1, epsilon=0.05)


def _plain(auc: float, groups: int = 2, **options: int) -> Callable[[], Case]:
    return lambda: Case(synthetic(auc, groups), SYNTHETIC, **options)  # type: ignore[arg-type]


CASES: dict[str, Callable[[], Case]] = {
    **{
        f"Adult by sex, cut {cut}": lambda cut=cut: Case(adult(cut), asking(adult(cut)))  # type: ignore[misc]
        for cut in (0.35, 0.5, 0.65)
    },
    "Adult by sex and race, cut 0.5": lambda: Case(adult(0.5, "both"), asking(adult(0.5, "both"))),
    **(
        {"Law School by sex, cut 0.9": lambda: Case(law_school(0.9), asking(law_school(0.9)))}
        if LAW_SCHOOL.is_file()
        else {}
    ),
    **{f"synthetic, AUC {auc}": _plain(auc) for auc in (0.5, 0.6, 0.7, 0.8, 0.9)},
    "synthetic, AUC 0.1 (inverted)": _plain(0.1),
    "synthetic, AUC 0.9, noise after 150 labels": _plain(0.9, noise_after=150),
    "synthetic, AUC 0.9, four groups": _plain(0.9, 4),
    "synthetic, AUC 0.9, past of 200,000": _plain(0.9, past=200_000),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser, 200)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    made: dict[str, Case] = {}

    def one(point: str, seed: int) -> Run:
        case = made.setdefault(point, CASES[point]())
        pair = {n: audit_once(case, seed, helped=n == "helped") for n in ("helped", "uniform")}
        return {f"{n} {key}": value for n, run in pair.items() for key, value in run.items()}

    runs = collect(options, list(CASES), one)
    out = table("cost over the uniform audit's", *HEADER)
    rows = [cells(point, runs[point]) for point in CASES]
    for row in rows:
        out.add_row(*row)
    options.output.write_text(page(WORDS, "assisted", rows), encoding="utf-8")
    return out


HEADER = (
    *("case", "runs", "uniform", "assisted", "ratio", "±", "labels", "people looked at per label"),
    *("wrong, uniform", "wrong, assisted", "inconclusive"),
)
WORDS = (
    "The adaptive audit with `assist=Assist()` against the same audit without help, c_feat = 0, "
    "c_lab = 1, delta = 0.05. *Ratio* is mean cost over mean cost with its standard error, "
    "*labels* what the assisted audit asks for. On tables the score is the decision-maker's own; "
    "synthetic scores are normal with the given area under the curve, and the one that turns to "
    "noise does so unannounced. Nothing is refitted."
)


def cells(point: str, runs: Sequence[Run]) -> list[str]:
    """Return a row: costs, their ratio, and the price in calendar time."""
    helped, uniform = (np.array([r[f"{n} cost"] for r in runs]) for n in ("helped", "uniform"))
    ratio = helped.mean() / uniform.mean()
    apart = (helped - ratio * uniform).std(ddof=1) if len(runs) > 1 else np.inf
    return [
        point,
        f"{len(runs)}",
        f"{uniform.mean():,.0f}",
        f"{helped.mean():,.0f}",
        f"{ratio:.2f}",
        f"{apart / uniform.mean() / np.sqrt(len(runs)):.2f}",
        f"{mean(runs, 'helped labels'):,.0f}",
        f"{mean(runs, 'helped looks') / mean(runs, 'helped labels'):.1f}",
        f"{mean(runs, 'uniform wrong') * len(runs):.0f}",
        f"{mean(runs, 'helped wrong') * len(runs):.0f}",
        f"{mean(runs, 'helped inconclusive') * len(runs):.0f}",
    ]


def page(words: str, name: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a page with the table."""
    lines = [
        "# What looking before asking saves" if name == "assisted" else "# Prices of people",
        *("", "<!-- generated: do not edit -->", "", f"Made by `python -m study {name}`.", ""),
        *(words, "", "| " + " | ".join(HEADER) + " |"),
        "| --- " + "| ---: " * (len(HEADER) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join([*lines, ""])
