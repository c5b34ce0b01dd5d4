"""What looking before asking saves: cost over the uniform audit's, for good and for bad scores."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.table import Table
from tests.support.bank import LAW_SCHOOL

import equipoise as eq
from study._looking import Case, adult, asking, law_school, pairs, synthetic
from study._pages import COSTS
from study._resumed import add_options as add_run_options

TWO, FOUR = eq.Question(gamma=0.1, epsilon=0.05), eq.Question(gamma=0.05, epsilon=0.05)


def _adult(model: str) -> Case:
    return Case(adult(model), asking(adult(model), most=3_000.0))


def _adult_four() -> Case:
    world = adult(group="both")
    return Case(world, asking(world, "false_omission_parity", most=500.0))


def _law_school() -> Case:
    # Equal opportunity is decided there by a dozen failures, too few to learn a score from.
    return Case(law_school(0.9), asking(law_school(0.9), "false_omission_parity"))


def _plain(auc: float, groups: int = 2, **options: int) -> Case:
    return Case(synthetic(auc, groups), TWO if groups == 2 else FOUR, **options)  # type: ignore[arg-type]


CASES: dict[str, Callable[[], Case]] = {
    **{
        f"Adult by sex, {model}": partial(_adult, model)
        for model in ("logistic regression", "boosted trees", "one tree")
    },
    "Adult by sex and race, logistic regression": _adult_four,
    **({"Law School by sex, logistic regression": _law_school} if LAW_SCHOOL.is_file() else {}),
    **{f"synthetic, AUC {auc}": partial(_plain, auc) for auc in (0.5, 0.6, 0.7, 0.8, 0.9)},
    "synthetic, AUC 0.1 (inverted)": partial(_plain, 0.1),
    "synthetic, AUC 0.9, noise after 150 labels": partial(_plain, 0.9, noise_after=150),
    "synthetic, AUC 0.5, four groups": partial(_plain, 0.5, 4),
    "synthetic, AUC 0.9, four groups": partial(_plain, 0.9, 4),
    "synthetic, AUC 0.9, past of 200,000": partial(_plain, 0.9, past=200_000),
}
WORDS = (
    "The adaptive audit with `assist=Assist()` against the same audit without help, c_feat = 0, "
    "c_lab = 1, delta = 0.05. *Ratio* is mean cost over mean cost with its standard error, "
    "*labels* what the assisted audit asks for. On tables the score is the decision-maker's own, "
    "and the question the hardest of a fixed list; "
    "synthetic scores are normal with the given area under the curve, and the one that turns to "
    "noise does so unannounced. Nothing is refitted. *Bias*: observations less what they should be "
    "on average, summed up to the end."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_run_options(parser, 200)
    parser.add_argument("--output", type=Path, default=COSTS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    return pairs(options, CASES, "What looking before asking saves", WORDS)
