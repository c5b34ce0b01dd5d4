"""Wrong verdicts when opponents decide what is told, and when."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from rich.table import Table
from tests.support.opponents import (
    FORESIGHT,
    HIDDEN,
    OPPONENTS,
    QUESTION,
    QUESTION_OF_ROWS,
    Row,
)
from tests.support.tables import table

from equipoise.question import Verdict
from study._pages import ERRORS, tally, write_section


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs", type=int, default=1000, help="of the audit that must not be built"
    )
    parser.add_argument("--foresight-runs", type=int, default=1000, help="of the attack on ours")
    parser.add_argument("--other-runs", type=int, default=200, help="of every other opponent")
    parser.add_argument("--labels", type=int, default=200, help="requested at most")
    parser.add_argument("--past", type=int, help="rows: only audits with a past of this size")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ERRORS, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    rows = rows_with_past(options.past) if options.past else all_rows()
    columns = ("opponent", "groups", "audit", "wrong verdict", "past", "runs", "wrong", "share")
    columns += ("95% interval", "within delta")
    out = table(f"Wrong verdicts, {rows[0].question}", *columns)
    for row in rows:
        foresight = row.opponent == FORESIGHT
        others = options.foresight_runs if foresight else options.other_runs
        runs = options.runs if row.blind else others
        wrong = row.play(runs, options.labels, options.seed, options.jobs)
        out.add_row(
            row.opponent,
            str(row.groups),
            "blind" if row.blind else "adaptive",
            row.wrong.value,
            "unlimited" if row.past is None else f"{row.past:,}",
            *tally(wrong, runs, QUESTION.delta),
        )
        write_page(out, options)  # after every row: long runs may be cut short
    return out


def all_rows() -> list[Row]:
    rest = [name for name in OPPONENTS if name != FORESIGHT]
    return [
        *(Row(FORESIGHT, k, blind=True) for k in (8, 4)),
        *(Row(HIDDEN, k, blind=True) for k in (8, 4)),
        *(Row(FORESIGHT, k) for k in (4, 8)),
        *(Row(name, k) for k, name in product((2, 4, 8), rest)),
        *(Row(name, 2, wrong=Verdict.FAIR) for name in rest),
        *(Row(name, 2, past=20_000) for name in rest),
    ]


def rows_with_past(past: int) -> list[Row]:
    """Return rows of audits whose past rows are evidence, of our audit alone."""
    asked = QUESTION_OF_ROWS
    rest = [name for name in OPPONENTS if name != FORESIGHT]
    return [
        Row(FORESIGHT, 4, past=past, question=asked),
        *(Row(name, k, past=past, question=asked) for k, name in product((2, 4), rest)),
        *(Row(name, 2, wrong=Verdict.FAIR, past=past, question=asked) for name in rest),
    ]


def write_page(out: Table, options: argparse.Namespace) -> None:
    command = (
        f"python -m study adversary --runs {options.runs} --foresight-runs "
        f"{options.foresight_runs} --other-runs {options.other_runs} --labels {options.labels}"
    )
    name, title = "adversary", "Opponents who decide what is told"
    if options.past:
        command += f" --past {options.past}"
        name += "_past"
        title += ", finite pasts"
    write_section(
        options.output,
        name,
        title,
        f"Made by `{command}`. The opponents, and the audit called *blind*, which must not be "
        "built, are in `tests/support/opponents.py`.",
        [out],
    )
