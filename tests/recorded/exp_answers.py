"""What Exp-Audit answers, seed by seed, in populations of features whose truth is known.

``python -m tests.recorded.exp_answers`` writes the table anew; do so only where its statistics were
meant to change, and say in the changelog which part did.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.worlds import MixtureWorld

__all__ = ["CASES", "TABLE", "answers"]

TABLE = Path(__file__).with_name("exp_answers.json")
SEED = 11
COSTS = eq.Costs(feature=0.5, label=3.0)
QUESTION = eq.Question("equalized_odds", gamma=0.05, epsilon=0.2, delta=0.1)

APPROVAL = {"1": 0.6, "0": 0.3}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "apart": ({"separation": 12.0}, {}),
    "apart, by MAP counts": ({"separation": 12.0}, {"weights": "map"}),
    "close": ({"separation": 6.0}, {}),
    "unequal": ({"separation": 12.0, "approval": APPROVAL, "tilt": 0.8}, {}),
    "a fitted past": ({"separation": 12.0}, {"history_size": 40_000}),
}
"""Per name: how the population is made, and the audit's options."""


def answers(name: str) -> dict[str, Any]:
    """Return verdicts and costs of seeded audits."""
    made, options = CASES[name]
    world = MixtureWorld.synthetic(dimension=2, seed=3, **made)
    sim = eq.simulate("exp", world, QUESTION, COSTS, repeats=3, seed=SEED, **options)
    return {"verdict": sim.verdict.tolist(), "cost": sim.cost.tolist()}


def main() -> None:
    """Write the table."""
    TABLE.write_text(json.dumps({name: answers(name) for name in CASES}, indent=1) + "\n")


if __name__ == "__main__":
    main()
