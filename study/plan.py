"""Does a plan tell the truth: how often does an audit cost what was planned?

Worlds of the bank's sources in their fixed order, real and random, of two and of four groups;
those with C* between 20 and 150 are taken, so that the study ends. Each has a finite past, drawn
once. The plan is told what the denied would have done (``denied_rate``) and makes trial runs; then
audits are run, person by person, in the world itself, and their
costs compared with the planned range from the 10% to the 90% quantile.

Every world is kept in a file as soon as it is done: a study that was cut short goes on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.bank import sources
from tests.support.tables import CACHE, table

import equipoise as eq
from equipoise.history import Past
from equipoise.worlds import CellWorld

PAGE = Path(__file__).parents[1] / "docs" / "plan-study.md"
KEPT = CACHE.parent / "study" / "plan.json"
COSTS = eq.Costs()
TOLERANCES = ((0.05, 0.1), (0.1, 0.1), (0.1, 0.05))
FEWEST, MOST = 20.0, 150.0
RUNS = 40  # trial runs of a case
PEOPLE = {2: 40_000, 4: 80_000}  # of the past

Row = dict[str, object]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worlds", type=int, nargs=2, default=(66, 40), metavar=("TWO", "FOUR"))
    parser.add_argument("--runs", type=int, default=4, help="audits of each world")
    parser.add_argument("--anew", action="store_true", help="forget what was kept")
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")


def run(options: argparse.Namespace) -> Table:
    kept = {} if options.anew or not KEPT.is_file() else json.loads(KEPT.read_text())
    wanted = [case for k, n in zip((2, 4), options.worlds, strict=True) for case in _cases(k, n)]
    rows: list[Row] = []
    done: set[str] = set()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for seed, name, world, question in bar.track(wanted, description="worlds"):
            key = f"{name}, {question.to_json()}, {options.runs} runs"
            if key in done:  # a source with few worlds comes back to them
                continue
            done.add(key)
            if key not in kept:
                kept[key] = _measure(name, world, question, options.runs, seed)
                KEPT.parent.mkdir(parents=True, exist_ok=True)
                KEPT.write_text(json.dumps(kept))
            rows.append(kept[key])
            _write(options, rows)
    out = table("audits that cost what was planned", "groups", "worlds", "audits", "in the range")
    for cells in _summary(rows):
        out.add_row(*cells)
    return out


def _cases(groups: int, number: int) -> Iterator[tuple[int, str, CellWorld, eq.Question]]:
    """Yield numbered worlds of all sources in turn, each with a question worth an audit."""
    found = 0
    turns = zip_longest(*sources(groups).values())
    for at, (name, world, metric) in enumerate(one for turn in turns for one in turn if one):
        question = eq.Question(metric, *TOLERANCES[at % len(TOLERANCES)])
        if FEWEST <= float(eq.lower_bound(world, question, COSTS)) <= MOST:
            yield found, name, world, question
            found += 1
            if found == number:
                return


def _measure(name: str, world: CellWorld, question: eq.Question, runs: int, seed: int) -> Row:
    past = world.past(PEOPLE[len(world.groups)], seed)
    made = eq.plan(past, question, COSTS, denied_rate=world.r, trial_runs=RUNS)
    row: Row = {
        "world": name,
        "groups": len(world.groups),
        "metric": question.metric,
        "gamma": question.gamma,
        "epsilon": question.epsilon,
        "free": not made.cases,
    }
    if made.cases:
        (seen,) = made.cases
        low, middle, high = seen.cost.values()
        row |= {"low": low, "middle": middle, "high": high, "audits": seen.trial_runs}
    row["costs"] = [_cost(world, past, question, seed=1000 * (seed + 1) + i) for i in range(runs)]
    return row


def _cost(world: CellWorld, past: Past, question: eq.Question, seed: int) -> float | None:
    """Return what an audit costs, None if it ends without a verdict."""
    audit = eq.AdaptiveAudit(past, question, COSTS)
    found = eq.run(audit, world, seed)
    return None if found.verdict is eq.Verdict.INCONCLUSIVE else audit.cost


def _inside(row: Row) -> list[bool]:
    low, high = (np.inf if row[name] is None else row[name] for name in ("low", "high"))
    costs = (np.inf if cost is None else cost for cost in row["costs"])  # type: ignore[attr-defined]
    return [bool(low <= cost <= high) for cost in costs]  # type: ignore[operator]


def _summary(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for groups in sorted({row["groups"] for row in rows}):  # type: ignore[type-var]
        here = [_inside(row) for row in rows if row["groups"] == groups and not row["free"]]
        if not here:
            continue
        shares = np.array([np.mean(one) for one in here])
        error = shares.std(ddof=1) / len(shares) ** 0.5 if len(shares) > 1 else np.nan
        audits = sum(map(len, here))
        yield str(groups), str(len(here)), str(audits), f"{shares.mean():.1%} ± {error:.1%}"


def _write(options: argparse.Namespace, rows: Sequence[Row]) -> None:
    two, four = options.worlds
    lines = [
        "# Does a plan tell the truth?",
        "",
        "<!-- generated: do not edit -->",
        "",
        f"Made by `python -m study plan --worlds {two} {four} --runs {options.runs}`.",
        "",
        "A plan says what 80% of audits cost if the denied are as assumed. Here the assumption is "
        "true: the plan knows what the denied would have done, and nothing else. Its range, from "
        "the 10% to the 90% quantile of its trial runs, should hold the cost of about eight audits "
        "in ten. Worlds are real and random ones, taken by a rule (`study/plan.py`), with a past "
        f"of {PEOPLE[2]:,} people in two groups or {PEOPLE[4]:,} in four; ± is the standard error "
        "over worlds.",
        "",
        "| groups | worlds | audits run | cost in the planned range |",
        "| ---: | ---: | ---: | ---: |",
        *(f"| {' | '.join(cells)} |" for cells in _summary(rows)),
        "",
        "Bold: outside the range. *none* is an audit without a verdict.",
        "",
        "| world | groups | metric | gamma | epsilon | planned: 10% | 50% | 90% | audits cost |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |",
        *(_line(row) for row in rows if not row["free"]),
        "",
    ]
    options.output.write_text("\n".join(lines))


def _line(row: Row) -> str:
    planned = [_shown(row[name]) for name in ("low", "middle", "high")]
    costs: Sequence[object] = row["costs"]  # type: ignore[assignment]
    shown = [
        _shown(cost) if inside else f"**{_shown(cost)}**"
        for cost, inside in zip(costs, _inside(row), strict=True)
    ]
    metric = str(row["metric"]).replace("_", " ")
    cells = [row["world"], row["groups"], metric, row["gamma"], row["epsilon"], *planned]
    return f"| {' | '.join(map(str, cells))} | {', '.join(shown)} |"


def _shown(cost: object) -> str:
    return "none" if cost is None else f"{cost:,.0f}"
