"""Every audit that the conformance suite runs over, and small worlds to run it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.audits.base import Audit
from equipoise.audits.baseline import BaselineAudit
from equipoise.audits.rs import RSAudit
from equipoise.history.past import Past
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld, World

Build = Callable[[Question, Costs, Past, float | None], Audit]


@dataclass(frozen=True)
class Case:
    """An audit, how to build it so that it ends within a few hundred people, and a world for it."""

    name: str
    build: Build
    world: World
    question: Question
    metrics: tuple[str, ...]

    def start(self, costs: Costs, *, budget: float | None = None, seed: int = 0) -> Audit:
        past = self.world.past(None, np.random.default_rng(seed))
        return self.build(self.question, costs, past, budget)

    def __str__(self) -> str:
        return self.name


LENDER = CellWorld.from_shares(
    {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 0.7, "B": 0.3}
)
BLACK_BOX = ("equalized_odds", "equal_opportunity", "predictive_equality", "demographic_parity")


def _stopping(kind: type[RSAudit] | type[BaselineAudit], *, reuse: bool) -> Build:
    def build(question: Question, costs: Costs, past: Past, budget: float | None) -> Audit:
        return kind(question, costs, past, tau=20, reuse_labels=reuse, budget=budget)

    return build


QUESTION = Question(gamma=0.1, epsilon=0.2, delta=0.1)

CASES = [
    Case("baseline", _stopping(BaselineAudit, reuse=False), LENDER, QUESTION, BLACK_BOX),
    Case("baseline, reuse", _stopping(BaselineAudit, reuse=True), LENDER, QUESTION, BLACK_BOX),
    Case("rs", _stopping(RSAudit, reuse=False), LENDER, QUESTION, BLACK_BOX),
    Case("rs, reuse", _stopping(RSAudit, reuse=True), LENDER, QUESTION, BLACK_BOX),
]
