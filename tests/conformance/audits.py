"""Every audit that the conformance suite runs over, and small worlds to run it in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.audits.base import Audit
from equipoise.audits.baseline import BaselineAudit
from equipoise.audits.exp_audit import ExpAudit
from equipoise.audits.rs_audit import RSAudit
from equipoise.history.past import Past
from equipoise.mixture import Gaussian, HalfSpace, MixtureModel
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld, GroupMixture, MixtureWorld, World

Build = Callable[[Past, Question, Costs, float | None], Audit]


@dataclass(frozen=True)
class Case:
    """An audit, how to build it so that it ends within a few hundred people, and a world for it."""

    name: str
    build: Build
    world: World
    question: Question
    metrics: tuple[str, ...]
    same_people: bool = True  # whether late answers leave it asking the same people

    def start(self, costs: Costs, *, budget: float | None = None, seed: int = 0) -> Audit:
        past = self.world.past(None, np.random.default_rng(seed))
        return self.build(past, self.question, costs, budget)

    def __str__(self) -> str:
        return self.name


LENDER = CellWorld.from_shares(
    {"A": (0.45, 0.15, 0.40, 0.5), "B": (0.15, 0.15, 0.70, 0.3)}, shares={"A": 0.7, "B": 0.3}
)
BLACK_BOX = ("equalized_odds", "equal_opportunity", "predictive_equality", "demographic_parity")


def _stopping(kind: type[RSAudit] | type[BaselineAudit], *, reuse: bool) -> Build:
    def build(past: Past, question: Question, costs: Costs, budget: float | None) -> Audit:
        return kind(past, question, costs, tau=20, reuse_labels=reuse, budget=budget)

    return build


def _adaptive(past: Past, question: Question, costs: Costs, budget: float | None) -> Audit:
    return AdaptiveAudit(past, question, costs, budget=budget)


def _exp(weights: str, *, modelled: bool) -> Build:
    def build(past: Past, question: Question, costs: Costs, budget: float | None) -> Audit:
        model = None if modelled else MixtureModel({}, {"A": "too few samples"})
        return ExpAudit(
            past,
            question,
            costs,
            model=model,
            weights=weights,
            tau=20,
            coarse_tau=20,
            features=60,
            budget=budget,
        )

    return build


def _scored_lender() -> MixtureWorld:
    family = Gaussian("spherical")
    mixtures = {}
    for group, share, q, offset in (("A", 0.7, 0.7, -0.2), ("B", 0.3, 0.4, 0.8)):
        thetas = tuple(family.pack([0.0, y], np.eye(2)) for y in (0.0, 9.0))
        cut = HalfSpace([1.0, 0.0], offset)
        mixtures[group] = GroupMixture.of(share, q, family, (thetas[0], thetas[1]), cut)
    return MixtureWorld(mixtures)


SCORED = _scored_lender()
QUESTION = Question(gamma=0.1, epsilon=0.2, delta=0.1)

ADAPTIVE = (*BLACK_BOX, "false_omission_parity", "accuracy_parity", "predictive_parity")

CASES = [
    # While answers are out the adaptive audit goes by an older plan, so it asks other people.
    Case("adaptive", _adaptive, LENDER, QUESTION, ADAPTIVE, same_people=False),
    Case("baseline", _stopping(BaselineAudit, reuse=False), LENDER, QUESTION, BLACK_BOX),
    Case("baseline, reuse", _stopping(BaselineAudit, reuse=True), LENDER, QUESTION, BLACK_BOX),
    Case("rs", _stopping(RSAudit, reuse=False), LENDER, QUESTION, BLACK_BOX),
    Case("rs, reuse", _stopping(RSAudit, reuse=True), LENDER, QUESTION, BLACK_BOX),
    Case("exp, map", _exp("map", modelled=True), SCORED, QUESTION, BLACK_BOX, same_people=False),
    Case("exp", _exp("auto", modelled=True), SCORED, QUESTION, BLACK_BOX, same_people=False),
    Case("exp, fall-back", _exp("auto", modelled=False), SCORED, QUESTION, BLACK_BOX),
]
