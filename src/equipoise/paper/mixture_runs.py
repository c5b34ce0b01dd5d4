"""Single runs of RS-Audit and Exp-Audit, booked so that any pair of costs can be put on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.bounds import paper_tau
from equipoise.mixture.exp_branches import ExpConstants
from equipoise.mixture.model import MixtureModel
from equipoise.paper.kept_work import Record
from equipoise.paper.label_phases import run_phases
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, World

__all__ = [
    "DELTA",
    "Constants",
    "cost_of",
    "decide",
    "run_adaptive",
    "run_exp",
    "run_published",
    "run_rs",
]

DELTA = 0.01
WHOLE_PAST = 10**8  # rows counted of a past whose shares are known
TAU_CAP, R_CAP = 1000, 20_000


@dataclass(frozen=True)
class Constants:
    """tau, tau' and R of one group in one regime."""

    tau: int
    coarse: int
    features: int

    @classmethod
    def of(cls, regime: str, epsilon: float, smaller: float) -> Constants:
        """Return them; ``smaller`` is the weight of the group's rarer outcome."""
        if regime == "as run":
            log_24, log_8 = math.log(24.0 / DELTA), math.log(8.0 / DELTA)
            tau = math.ceil(2.0 * log_24 / epsilon**2)
            features = math.ceil(500.0 * log_8 / (smaller * epsilon**2))
            return cls(min(tau, TAU_CAP), math.ceil(0.5 * log_24 / 0.2**2), min(features, R_CAP))
        proof = ExpConstants(epsilon, DELTA, 2)
        tau = paper_tau(Question(gamma=0.0, epsilon=epsilon, delta=DELTA), 2)
        features = proof.map_features(smaller)
        if regime == "capped":
            return cls(min(tau, TAU_CAP), proof.coarse_tau, min(features, R_CAP))
        return cls(tau, proof.coarse_tau, features)

    def options(self) -> dict[str, object]:
        """Return Exp-Audit's options where its constants are not the proof's."""
        return {"tau": WHOLE_PAST, "coarse_tau": self.coarse, "features": self.features}


def run_published(
    world: World,
    cells: CellWorld,
    model: MixtureModel,
    questions: Sequence[Question],
    regimes: Sequence[str],
    smaller: float,
    *,
    seed: int,
    rng: np.random.Generator,
) -> list[Record]:
    """Run RS-Audit and Exp-Audit as published on every question, with one model of the past."""
    records: list[Record] = []
    capped: dict[Constants, Record] = {}  # one run serves every question alike
    for question in questions:
        for regime in regimes:
            constants = Constants.of(regime, question.epsilon, smaller)
            at: Record = {"regime": regime, "gamma": question.gamma, "epsilon": question.epsilon}
            records.append({**at, **run_rs(cells, question, constants.tau, rng)})
            if regime == "without caps":
                found = run_exp(world, question, model, seed, weights="map")
            elif constants in capped:
                found = capped[constants]
            else:
                options = constants.options()
                found = run_exp(world, question, model, seed, weights="map", **options)
                capped[constants] = found
            records.append({**at, **found, "verdict": decide(found, question)})
    return records


def run_rs(cells: CellWorld, question: Question, tau: int, rng: np.random.Generator) -> Record:
    """Run RS-Audit once: requests to denied people, failures among the labels, estimate."""
    phases = run_phases("rs", cells, tau, repeats=1, rng=rng)
    record: Record = {
        "kind": "run",
        "audit": "rs",
        "requests": int(phases.labels[0]),
        "failures": int(phases.failures[0]),
        "estimate": float(phases.estimate[0]),
    }
    return {**record, "verdict": decide(record, question)}


def run_exp(
    world: World, question: Question, model: MixtureModel, seed: int, **options: object
) -> Record:
    """Run Exp-Audit once; requests are labels and feature vectors."""
    sim = simulate(
        "exp", world, question, Costs(0.0, 1.0), repeats=1, seed=seed,
        **{"model": model, "trust_model": True, **options},  # type: ignore[arg-type]
    )  # fmt: skip
    return {
        "kind": "run",
        "audit": "exp",
        "requests": int(sim.labels[0] + sim.features[0]),
        "failures": int(sim.cost[0]),
        "estimate": float(sim.estimate[0]),
        "verdict": str(sim.verdict[0]),
    }


def run_adaptive(
    cells: CellWorld, question: Question, costs: Costs, repeats: int, seed: int
) -> Record:
    """Run the adaptive audit at one pair of costs, which its choice of groups depends on."""
    sim = simulate("adaptive", cells, question, costs, repeats=repeats, seed=seed)
    return {
        "kind": "adaptive",
        "audit": "adaptive",
        "gamma": question.gamma,
        "epsilon": question.epsilon,
        "feature_cost": costs.feature,
        "label_cost": costs.label,
        "repeats": repeats,
        "cost": float(sim.cost.mean()),
        "cost_sd": float(sim.cost.std(ddof=1)),
        "wrong": int(sim.wrong.sum()),
    }


def decide(record: Record, question: Question) -> str:
    """Return the paper's verdict on an estimate."""
    limit = question.gamma + question.epsilon / 2.0
    return "UNFAIR" if float(record["estimate"] or 0.0) > limit else "FAIR"


def cost_of(record: Record, feature: float, label: float) -> float:
    """Return the price of a run: every request at ``feature``, every failure ``label`` more."""
    return feature * float(record["requests"] or 0) + label * float(record["failures"] or 0)
