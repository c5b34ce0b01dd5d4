"""Find a typical audit of the embedded lender: ``python tools/typical_run.py``.

Runs the audit of ``equipoise demo`` with the seeds 0 to 199 and writes the seed whose cost is the
median, with the spread, to ``src/equipoise/worlds/fico/typical_run.json``. Demonstration, README
and pictures show this run, neither a lucky nor an unlucky one. The record also has the 80% range
that a plan forecasts for the lender's true shares, and how many of the costs lie in it. Takes
minutes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

import equipoise as eq
from equipoise.cli.demo import COSTS, QUESTION
from equipoise.simulation import run

TARGET = Path(eq.__file__).parent / "worlds" / "fico" / "typical_run.json"
SEEDS = 200


def audit_once(seed: int) -> dict[str, object]:
    """Run one audit and return what is summarised."""
    lender = eq.data.fico_lender()
    finding = run(eq.AdaptiveAudit(lender.history(), QUESTION, COSTS), lender.world, seed)
    return {"cost": finding.cost, "labels": finding.labels, "verdict": finding.verdict.value}


def forecast_range() -> tuple[float, float]:
    """Return the 80% range of a plan that knows how often the lender's denied people repay."""
    lender = eq.data.fico_lender()
    plan = eq.plan(lender.history(), QUESTION, COSTS, denied_rate=lender.world.r)
    low, _, high = plan.cases[0].cost.values()
    assert low is not None
    assert high is not None
    return low, high


def round_half_up(value: float) -> int:
    """Round to a whole number, and 326.5 to 327: the same rule for every median shown."""
    return math.floor(value + 0.5)


def main() -> None:
    """Run all seeds, and write the median run."""
    runs = Parallel(n_jobs=2)(delayed(audit_once)(seed) for seed in range(SEEDS))
    costs = np.array([audit["cost"] for audit in runs], dtype=float)
    labels = np.array([audit["labels"] for audit in runs], dtype=float)
    in_order = np.argsort(costs, kind="stable")
    spread = dict(zip(("10%", "50%", "90%"), np.quantile(costs, [0.1, 0.5, 0.9]), strict=True))
    lowest, highest = forecast_range()
    record = {
        "command": "python tools/typical_run.py",
        "seeds": SEEDS,
        "seed": int(in_order[(SEEDS - 1) // 2]),
        "verdicts": {name: int(sum(audit["verdict"] == name for audit in runs))
                     for name in ("FAIR", "UNFAIR", "INCONCLUSIVE")},
        "cost": {share: round_half_up(cost) for share, cost in spread.items()},
        "median_labels": round_half_up(np.median(labels)),
        "forecast": {"10%": round_half_up(lowest), "90%": round_half_up(highest),
                     "costs_between": int(((lowest <= costs) & (costs <= highest)).sum())},
    }  # fmt: skip
    TARGET.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
