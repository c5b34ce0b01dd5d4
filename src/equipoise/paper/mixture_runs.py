"""Single runs of RS-Audit and Exp-Audit, booked so that any pair of costs can be put on them."""

from __future__ import annotations

import numpy as np

from equipoise.mixture.model import MixtureModel
from equipoise.paper.kept_work import Record
from equipoise.paper.label_phases import run_phases
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, World

__all__ = ["cost_of", "decide", "run_adaptive", "run_exp", "run_rs"]


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
