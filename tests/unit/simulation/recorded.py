"""Same seeds, same verdicts and costs: runs on instances of the study, recorded in a file.

Run ``python -m tests.unit.simulation.recorded`` to record anew what was meant to change, and say
why in the commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, MixtureWorld

__all__ = ["FILE", "runs_of"]

FILE = Path(__file__).with_name("recorded.json")

ADAPTIVE: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "adaptive, finite past": {"history_size": 20_000},
    "adaptive, late, capped": {"delay": lambda outcome, rng: 30 if outcome else 3, "budget": 150.0},
}
TAU: dict[str, dict[str, Any]] = {
    "rs": {},
    "baseline": {},
    "rs, finite past": {"history_size": 20_000, "tau": 200},
    "baseline, one stream": {"tau": 200, "reuse_labels": True},
    "rs, few people": {"tau": 30, "people": 4_000},
}


def runs_of(instance: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Return verdicts, costs and labels of every setting that the instance is run in."""
    question = Question(**instance["question"])
    if instance["counts"] is None:
        world: CellWorld | MixtureWorld = MixtureWorld.synthetic(separation=14.0)
        settings = {"exp": {"coarse_tau": 50, "features": 500, "tau": 500}}
    else:
        world = CellWorld.from_counts(instance["counts"])
        settings = {name: TAU[name] for name in TAU if instance["tau_audits"]}
        settings |= ADAPTIVE if instance["adaptive"] else {}
    return {name: _run(name, world, question, setting) for name, setting in settings.items()}


def _run(
    name: str, world: CellWorld | MixtureWorld, question: Question, setting: dict[str, Any]
) -> dict[str, list[Any]]:
    audit = name.partition(",")[0]
    sim = simulate(audit, world, question, Costs(), repeats=3, seed=7, **setting)
    return {
        "verdict": sim.verdict.tolist(),
        "cost": sim.cost.tolist(),
        "labels": sim.labels.tolist(),
        "features": sim.features.tolist(),
    }


if __name__ == "__main__":
    table = json.loads(FILE.read_text())
    for row in table:
        row["runs"] = runs_of(row)
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, table)) + "\n]\n")
