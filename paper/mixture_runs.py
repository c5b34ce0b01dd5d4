"""Single runs of RS-Audit and Exp-Audit, booked so that any pair of costs can be put on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from equipoise.audits.tau_audits import paper_tau
from equipoise.mixture.exp_model import ExpConstants
from equipoise.mixture.model import MixtureModel
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, World
from paper.kept_work import Result, of_kind
from paper.label_phases import run_phases

__all__ = [
    "DELTA",
    "AdaptiveRuns",
    "AuditRun",
    "Constants",
    "run_adaptive",
    "run_exp",
    "run_published",
    "runs_of",
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


@dataclass(frozen=True)
class AuditRun(Result):
    """One run: requests to denied people (labels and features), failures among the labels.

    ``test`` says why Exp-Audit's own tests would have refused its model, if they would have.
    """

    run: int
    regime: str
    gamma: float
    epsilon: float
    audit: str
    requests: int
    failures: int
    estimate: float
    verdict: str
    test: str | None = None

    def cost(self, feature: float, label: float) -> float:
        """Return its price: every request at ``feature``, every failure ``label`` more."""
        return feature * self.requests + label * self.failures


@dataclass(frozen=True)
class AdaptiveRuns(Result):
    """Runs of the adaptive audit at one pair of costs, which its choice of groups depends on."""

    gamma: float
    epsilon: float
    feature_cost: float
    label_cost: float
    repeats: int
    cost: float
    cost_sd: float
    wrong: int


def runs_of(
    results: Sequence[Result], regime: str, audit: str, epsilon: float | None = None
) -> list[AuditRun]:
    """Return an audit's runs under one set of constants, at one epsilon or at all."""
    runs = [r for r in of_kind(results, AuditRun) if (r.regime, r.audit) == (regime, audit)]
    return [r for r in runs if epsilon in (None, r.epsilon)]


def run_published(
    run: int,
    world: World,
    cells: CellWorld,
    model: MixtureModel,
    questions: Sequence[Question],
    regimes: Sequence[str],
    smaller: float,
    *,
    seed: int,
    rng: np.random.Generator,
) -> list[AuditRun]:
    """Run RS-Audit and Exp-Audit as published on every question, with one model of the past."""
    made: list[AuditRun] = []
    capped: dict[Constants, AuditRun] = {}  # one run serves every question alike
    for question in questions:
        for regime in regimes:
            constants = Constants.of(regime, question.epsilon, smaller)
            phases = run_phases("rs", cells, constants.tau, repeats=1, rng=rng)
            guess = float(phases.estimate[0])
            requests, failures = int(phases.labels[0]), int(phases.failures[0])
            asked = run, regime, question.gamma, question.epsilon
            made.append(AuditRun(*asked, "rs", requests, failures, guess, decide(guess, question)))
            options = {} if regime == "without caps" else constants.options()
            if not options or constants not in capped:
                capped[constants] = run_exp(
                    run, regime, world, question, model, seed, weights="published", **options
                )
            found = replace(capped[constants], regime=regime, gamma=asked[2], epsilon=asked[3])
            made.append(replace(found, verdict=decide(found.estimate, question)))
    return made


def run_exp(
    run: int,
    regime: str,
    world: World,
    question: Question,
    model: MixtureModel,
    seed: int,
    **options: object,
) -> AuditRun:
    """Run Exp-Audit once."""
    sim = simulate(
        "exp", world, question, Costs(0.0, 1.0), repeats=1, seed=seed,
        **{"model": model, **options},  # type: ignore[arg-type]
    )  # fmt: skip
    return AuditRun(
        run,
        regime,
        question.gamma,
        question.epsilon,
        "exp",
        requests=int(sim.labels[0] + sim.features[0]),
        failures=int(sim.cost[0]),
        estimate=float(sim.estimate[0]),
        verdict=str(sim.verdict[0]),
    )


def run_adaptive(
    cells: CellWorld, question: Question, costs: Costs, repeats: int, seed: int
) -> AdaptiveRuns:
    """Run the adaptive audit at one pair of costs."""
    sim = simulate("adaptive", cells, question, costs, repeats=repeats, seed=seed)
    return AdaptiveRuns(
        question.gamma,
        question.epsilon,
        costs.feature,
        costs.label,
        repeats,
        cost=float(sim.cost.mean()),
        cost_sd=float(sim.cost.std(ddof=1)),
        wrong=int(sim.wrong.sum()),
    )


def decide(estimate: float, question: Question) -> str:
    """Return the paper's verdict on an estimate."""
    return "UNFAIR" if estimate > question.gamma + question.epsilon / 2.0 else "FAIR"
