"""What the cells' width costs: little, against five times finer ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.evidence import Evidence, WrongAnswers
from equipoise.evidence.wrong_answers import FINENESS
from equipoise.free_check import bands_from_past
from equipoise.question import Verdict
from equipoise.worlds import CellWorld
from tests.profiles import quick
from tests.unit.evidence.states import count, missing

WORLDS = [
    CellWorld.from_shares({"A": a, "B": b})
    for a, b in (
        ((0.026, 0.023, 0.951, 0.0875), (0.0762, 0.0285, 0.8953, 0.2542)),
        ((0.30, 0.10, 0.60, 0.20), (0.25, 0.12, 0.63, 0.22)),
        ((0.45, 0.15, 0.40, 0.50), (0.15, 0.15, 0.70, 0.30)),
        ((0.30, 0.10, 0.60, 0.30), (0.20, 0.15, 0.65, 0.50)),
    )
]
GAMMA, EPSILON, LEVEL = 0.1, 0.1, 0.05


@dataclass
class Audit:
    """Evidence at one fineness, and the nats that were missing for each verdict at each label."""

    evidence: Evidence
    missing: list[dict[Verdict, float]]

    def count(self, group: int, outcome: int) -> Verdict | None:
        verdict = count(self.evidence, group, outcome)
        if verdict is None:
            most = dict(zip((Verdict.FAIR, Verdict.UNFAIR), missing(self.evidence), strict=True))
            self.missing.append({v: float(m.max(initial=0.0)) for v, m in most.items()})
        return verdict


def start(world: CellWorld, fineness: float) -> Audit:
    bands = bands_from_past(world.past(), "equalized_odds", None)
    rates = tuple(tuple(by.values()) for by in bands.values())
    wrong = WrongAnswers(rates, rates, GAMMA, EPSILON, LEVEL, LEVEL, fineness=fineness)
    return Audit(Evidence(wrong, np.array([[0.0] * 2, [1.0] * 2]), np.ones(2, dtype=bool)), [])


def loss(world: CellWorld, seed: int) -> float:
    """Return the nats that the default grid lacks just before the first of the two decides."""
    rng = np.random.default_rng(seed)
    usual, fine = start(world, FINENESS), start(world, FINENESS / 5.0)
    r = list(world.r.values())
    for _ in range(20_000):
        group = int(rng.choice(np.flatnonzero(usual.evidence.plan.eligible())))
        outcome = int(rng.random() < r[group])
        verdict = usual.count(group, outcome), fine.count(group, outcome)
        if reached := verdict[0] or verdict[1]:
            before = min(len(usual.missing), len(fine.missing)) - 1
            return usual.missing[before][reached] - fine.missing[before][reached]
    raise AssertionError("neither grid decided within 20,000 labels")


def test_the_default_grid_loses_little() -> None:
    losses = [
        loss(world, seed)
        for world in quick(WORLDS[2:], full=WORLDS)
        for seed in range(quick(1, full=3))
    ]
    print("nats lost:", np.round(losses, 3))
    assert np.median(losses) <= 0.3
