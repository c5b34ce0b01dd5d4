"""What a plan forecasts, fitted and checked: audits of random populations with pasts of every size.

Each case is a random population with two to eight groups, a question, one past of 1,000 to a
million rows (or an unlimited one) and what the denied would have done. Audits are run on that past;
the median of their costs, where most end with a verdict, is compared with the forecast at the same
r. The cases below 78 fitted the constants in ``planning/forecasts.py``; others say how good the
forecast is, those from 400 on without having been looked at before (``--first 400``).
``--fit`` prints the constants to paste.

Every case is kept in a file as soon as it is done: a study that was cut short goes on from there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.support.tables import CACHE, table

import equipoise as eq
from equipoise.errors import EquipoiseError
from equipoise.history.past import Past
from equipoise.planning.forecasts import (
    FITTED_CONSTANTS,
    ForecastConstants,
    Forecaster,
    ForecastParts,
    median_cost,
    range_factors,
)
from equipoise.planning.scenarios import Scenario, scenarios
from equipoise.planning.trial_runs import run_trial
from equipoise.question import Verdict
from equipoise.worlds import CellWorld

KEPT = CACHE.parent / "study" / "forecast.json"
METRICS = ("equal_opportunity", "equalized_odds", "predictive_equality", "accuracy_parity")
GROUPS = (2, 2, 2, 3, 4, 6, 8)
COSTS = (eq.Costs(), eq.Costs(0.1, 1.0), eq.Costs(0.5, 1.0))
FITTING = 78  # cases below this number fit the constants
LABELS = 8_000  # after which an audit is broken off
MOST = 2_000.0  # a case whose forecast is above is left out, so that the study ends

Array = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A past, a question, prices, and what the denied would have done."""

    past: Past
    question: eq.Question
    costs: eq.Costs
    scenario: Scenario


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--runs", type=int, default=8, help="audits of each case")
    parser.add_argument(
        "--fit", action="store_true", help=f"print constants fitted to cases below {FITTING}"
    )
    parser.add_argument("--anew", action="store_true", help="forget what was kept")


def run(options: argparse.Namespace) -> Table:
    kept = {} if options.anew or not KEPT.is_file() else json.loads(KEPT.read_text())
    with Progress(console=Console(stderr=True), transient=True) as bar:
        numbers = range(options.first, options.first + options.cases)
        for number in bar.track(numbers, description="cases"):
            key = f"{number}, {options.runs} runs"
            if key not in kept:
                kept[key] = measure(draw(number), options.runs)
                KEPT.parent.mkdir(parents=True, exist_ok=True)
                KEPT.write_text(json.dumps(kept))
    rows = [(n, kept[f"{n}, {options.runs} runs"]) for n in numbers]
    fitting = [row for n, row in rows if row and n < FITTING]
    others = [row for n, row in rows if row and n >= FITTING]
    fitted = fit(fitting) if options.fit else FITTED_CONSTANTS
    if options.fit:
        print(fitted)
    out = table("forecasts of cases that nothing was fitted to", "what", "share", "cases")
    for line in judge(others, fitted):
        out.add_row(*line)
    return out


def draw(number: int) -> Case | None:
    """Return a random case; None where the past decides, or lacks a group."""
    rng = np.random.default_rng([27, number])
    k = int(rng.choice(GROUPS))
    common = rng.dirichlet([3.0, 2.0, 5.0])
    shares = [rng.dirichlet(40.0 * common) for _ in range(k)]
    ratio = rng.uniform(0.1, 1.0)
    world = CellWorld.from_shares(
        {
            f"g{i}": (
                *s,
                float(np.clip(ratio * s[0] / (s[0] + s[1]) * rng.uniform(0.7, 1.4), 0, 1)),
            )
            for i, s in enumerate(shares)
        },
        {f"g{i}": float(w) for i, w in enumerate(rng.dirichlet([4.0] * k))},
    )
    gamma, epsilon = float(rng.choice([0.05, 0.1, 0.2])), float(rng.choice([0.05, 0.1, 0.2]))
    compare = "ratio" if rng.random() < 0.2 else "difference"
    question = eq.Question(str(rng.choice(METRICS)), gamma, epsilon, compare=compare)
    costs = COSTS[int(rng.integers(len(COSTS)))]
    size = None if rng.random() < 0.15 else int(10 ** rng.uniform(3.0, 6.0))
    try:
        past = world.past(size, number)
        if eq.AdaptiveAudit(past, question, costs).finding is not None:
            return None
        (case,) = scenarios(past.cells, question, world.r)
    except EquipoiseError:
        return None
    return Case(past, question, costs, case)


def measure(case: Case | None, runs: int) -> Row | None:
    """Return the parts of a case's forecast and what audits cost; None if it was left out."""
    if case is None:
        return None
    maker = Forecaster(case.past, case.question, case.costs)
    seen, parts = maker.forecast_case(case.scenario), maker.split_case(case.scenario)
    if seen.median is not None and seen.median > MOST:
        return None
    audit = eq.AdaptiveAudit(case.past, case.question, case.costs)
    luck = [np.random.default_rng(seed) for seed in np.random.SeedSequence(0).spawn(runs)]
    trials = [run_trial(audit, case.scenario, rng, LABELS) for rng in luck]
    return {
        "parts": {
            "verdict": parts.verdict.value,
            "work": parts.work if np.isfinite(parts.work) else None,
            "other": parts.other_work if np.isfinite(parts.other_work) else None,
            "pilot": parts.pilot_cost,
            "far": parts.distance,
            "open": parts.is_open_ended,
        },
        "rows": case.past.cells.total if not case.past.exact else None,
        "groups": len(case.past.cells),
        "compare": case.question.compare,
        "decides": float(np.isfinite([trial.cost for trial in trials]).mean()),
        "costs": [trial.cost if np.isfinite(trial.cost) else None for trial in trials],
    }


def parts_of(row: Row) -> ForecastParts:
    kept = {name: np.inf if figure is None else figure for name, figure in row["parts"].items()}
    return ForecastParts(
        verdict=Verdict(kept["verdict"]),
        work=kept["work"],
        other_work=kept["other"],
        pilot_cost=kept["pilot"],
        distance=kept["far"],
        labels=np.zeros(0),
        is_open_ended=bool(kept["open"]),
    )


def decided(rows: Sequence[Row]) -> list[Row]:
    """Return the cases that the forecast calls decidable and that most audits decide."""
    return [r for r in rows if r["parts"]["work"] is not None and r["decides"] > 0.5]


def median(row: Row) -> float:
    costs = [np.inf if cost is None else cost for cost in row["costs"]]
    return max(float(np.median(costs)), 0.5)


def fit(rows: Sequence[Row]) -> ForecastConstants:
    """Return the constants with the least mean absolute log ratio, and the spread around them."""
    from scipy.optimize import minimize

    known = decided(rows)
    truth = np.log([median(row) for row in known])
    parts = [parts_of(row) for row in known]

    def constants(
        x: Array, spread: Mapping[Verdict, Any] = FITTED_CONSTANTS.spread
    ) -> ForecastConstants:
        scale = {Verdict.FAIR: float(np.exp(x[0])), Verdict.UNFAIR: float(np.exp(x[1]))}
        return ForecastConstants(scale, float(np.exp(x[2])), float(x[3]), float(x[4]), spread)

    def loss(x: Array) -> float:
        made = np.log([max(median_cost(p, constants(x)), 0.5) for p in parts])
        return float(np.abs(made - truth).mean() + 0.002 * (x**2).sum())

    rng = np.random.default_rng(0)
    starts = np.array([-0.3, -0.3, -0.3, 0.2, 0.2]) + 0.2 * rng.normal(size=(4, 5))
    found_at = [minimize(loss, x, method="Nelder-Mead", options={"maxiter": 3000}) for x in starts]
    best = min(found_at, key=lambda one: float(one.fun))
    found = constants(best.x)
    spread = {
        verdict: tuple(_range(known, found, verdict, near) for near in (False, True))
        for verdict in (Verdict.FAIR, Verdict.UNFAIR)
    }
    return constants(best.x, spread)


def _range(
    rows: Sequence[Row], by: ForecastConstants, verdict: Verdict, near: bool
) -> tuple[float, float]:
    """Return where 10% and 90% of audits end over the forecast median."""
    ratios = [
        np.inf if cost is None else cost / median_cost(parts_of(row), by)
        for row in rows
        if row["parts"]["verdict"] == verdict.value and (row["parts"]["far"] < 1.0) == near
        for cost in row["costs"]
    ]
    if not ratios:
        return FITTED_CONSTANTS.spread[verdict][near]
    low, high = np.quantile(ratios, [0.1, 0.9], method="higher")
    return round(float(low), 2), round(min(float(high), 9.0), 2)


def judge(rows: Sequence[Row], by: ForecastConstants) -> list[tuple[str, str, str]]:
    """Return how many medians are within a factor of 2, and so on."""
    known = decided(rows)
    ratio = np.array([median(row) / median_cost(parts_of(row), by) for row in known])
    inside, audits = 0, 0
    for row in known:
        parts = parts_of(row)
        low, high = range_factors(parts, row["groups"], by)
        if parts.is_open_ended:  # where a plan gives no upper figure
            high = np.inf
        middle = median_cost(parts, by)
        costs = [np.inf if cost is None else cost for cost in row["costs"]]
        inside += sum(low * middle <= cost <= high * middle for cost in costs)
        audits += len(costs)
    undecidable = [r for r in rows if r["parts"]["work"] is None]
    decidable = [r for r in rows if r["parts"]["work"] is not None]

    def share(count: float, of: int) -> str:
        return f"{count / of:.1%}" if of else "-"

    return [
        ("median within a factor of 2", share(((ratio > 0.5) & (ratio < 2)).sum(), len(known)),
         str(len(known))),
        ("geometric mean of median over forecast",
         f"{np.exp(np.log(ratio).mean()):.2f}" if len(known) else "-", str(len(known))),
        ("audits between the 10% and 90% figures", share(inside, audits), str(audits)),
        ("called undecidable, mostly decided",
         share(sum(r["decides"] > 0.5 for r in undecidable), len(undecidable)),
         str(len(undecidable))),
        ("called decidable, mostly not decided",
         share(sum(r["decides"] <= 0.5 for r in decidable), len(decidable)), str(len(decidable))),
    ]  # fmt: skip
