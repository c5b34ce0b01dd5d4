"""What the study's instances answer, seed by seed, so that a change of structure shows any change.

``python -m tests.recorded.answers`` writes the table anew; do so only where the statistics were
meant to change, and say in the changelog which part did. Left out: Law School, whose table is not
part of the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.cells import Cells
from equipoise.worlds import CellWorld

__all__ = ["TABLE", "answers", "instance"]

TABLE = Path(__file__).with_name("answers.json")
SEED = 11
FINITE = 40_000  # past people in every third instance
COSTS = eq.Costs(feature=0.05, label=1.0)


def instance(row: dict[str, Any]) -> tuple[CellWorld, eq.Question]:
    """Build the world and the question of a row."""
    return CellWorld(Cells.from_dict(row["cells"]), row["r"]), eq.Question(**row["question"])


def answers(world: CellWorld, question: eq.Question, *, finite: bool) -> dict[str, Any]:
    """Return what the free check, the lower bound and seeded audits say."""
    free = eq.check(world.past(), question)
    bound = eq.lower_bound(world, question, COSTS)
    found: dict[str, Any] = {
        "check": [free.verdict.value, free.lower, free.upper],
        "bound": bound.cost if bound.cost < float("inf") else "infinite",
        "adaptive": _runs("adaptive", world, question, repeats=2),
    }
    if finite:
        found["finite"] = _runs("adaptive", world, question, repeats=1, history_size=FINITE)
    if question.metric in ("equalized_odds", "equal_opportunity", "predictive_equality"):
        found["rs"] = _runs("rs", world, question, repeats=3, tau=500)
        found["baseline"] = _runs("baseline", world, question, repeats=3, tau=200)
    return found


def _runs(audit: str, world: CellWorld, question: eq.Question, **options: Any) -> dict[str, Any]:
    sim = eq.simulate(audit, world, question, COSTS, seed=SEED, **options)
    return {"verdict": sim.verdict.tolist(), "cost": sim.cost.tolist()}


def main() -> None:
    """Write the table."""
    from tests.support.bank import bank

    rows = []
    for item in bank():
        if item.source == "Law School":
            continue
        asked = {k: getattr(item.question, k) for k in ("metric", "gamma", "epsilon", "delta")}
        row = {
            "name": item.name,
            "cells": item.world.cells.to_dict(),
            "r": dict(item.world.r),
            "question": asked,
        }
        finite = len(rows) % 3 == 0 and item.groups == 2
        rows.append({**row, "answers": answers(*instance(row), finite=finite)})
    TABLE.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
