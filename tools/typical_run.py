"""Find a typical audit of the embedded lender: ``python tools/typical_run.py``.

Runs the audit of ``equipoise demo`` with the seeds 0 to 199 and writes the seed whose cost is the
median, with the spread, to ``src/equipoise/worlds/fico/typical_run.json``. Demonstration, README
and pictures show this run, neither a lucky nor an unlucky one. Takes minutes.
"""

from __future__ import annotations

import json
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


def main() -> None:
    """Run all seeds, and write the median run."""
    runs = Parallel(n_jobs=2)(delayed(audit_once)(seed) for seed in range(SEEDS))
    costs = np.array([audit["cost"] for audit in runs], dtype=float)
    labels = np.array([audit["labels"] for audit in runs], dtype=float)
    in_order = np.argsort(costs, kind="stable")
    low_cost, median_cost, high_cost = np.quantile(costs, [0.1, 0.5, 0.9])
    record = {
        "command": "python tools/typical_run.py",
        "seeds": SEEDS,
        "seed": int(in_order[(SEEDS - 1) // 2]),
        "verdicts": {name: int(sum(audit["verdict"] == name for audit in runs))
                     for name in ("FAIR", "UNFAIR", "INCONCLUSIVE")},
        "cost": {"10%": float(low_cost), "50%": float(median_cost), "90%": float(high_cost)},
        "median_labels": float(np.median(labels)),
    }  # fmt: skip
    TARGET.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
