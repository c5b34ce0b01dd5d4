"""Mixture model, synthetic (section 6 and its appendix): RS-Audit against Exp-Audit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from equipoise.bounds import rs_expectation
from equipoise.mixture.model import MixtureModel, PastFeatures, fit_model
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from equipoise.worlds.mixture import MixtureWorld
from paper.kept_work import Part, Result
from paper.mixture_runs import (
    DELTA,
    AdaptiveRuns,
    AuditRun,
    Constants,
    run_adaptive,
    run_exp,
    run_published,
)
from paper.settings import Settings
from paper.synthetic_world import find_world

__all__ = [
    "COST_PAIRS",
    "DELTA",
    "EPSILONS",
    "NAME",
    "NEEDED_FEATURES",
    "PROOF_FEATURES",
    "REGIMES",
    "BreakEven",
    "Constants",
    "Expected",
    "break_even",
    "constants_of",
    "parts",
    "past_rows",
]

NAME = "synthetic"
EPSILONS = (0.8, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001)
COST_PAIRS = ((0.0, 1.0), (0.5, 0.25), (0.5, 0.5), (0.5, 1.0), (0.5, 3.0))
PAST_ROWS = 200_000
# R over log(14K/delta)/(q_m epsilon^2): as printed, and what the Chernoff step of the proof needs.
PROOF_FEATURES, NEEDED_FEATURES = 3430.0, 3.0 * 18.5**2 / 0.9 * 36.0 / 35.0

REGIMES = ("as run", "capped", "without caps")
"""The authors' constants with the paper's caps; the theorems' with these caps; the theorems'."""


def parts(settings: Settings) -> list[Part]:
    """Return the runs in batches: in each run one past of 200,000 people serves every epsilon."""
    batches, size = (1, 2) if settings.quick else (6, 5)
    made = [
        Part(
            f"{NAME}/runs-{batch}",
            run_batch,
            {
                "first": batch * size,
                "size": size,
                "seed": settings.seed,
                "past_rows": past_rows(settings),
                "tested": batch == 0,
            },
            (AuditRun,),
        )
        for batch in range(batches)
    ]
    made += [
        Part(
            f"{NAME}/adaptive-{feature:g}-{label:g}",
            run_costs,
            {
                "feature": feature,
                "label": label,
                "seed": settings.seed,
                "repeats": 2 if settings.quick else 20,
            },
            (AdaptiveRuns,),
        )
        for feature, label in COST_PAIRS
    ]
    return made


def past_rows(settings: Settings) -> int:
    """Return how many past people the laws are estimated from."""
    return 20_000 if settings.quick else PAST_ROWS


def constants_of(regime: str, epsilon: float) -> dict[str, Constants]:
    """Return each group's constants; the rarer outcome has weight 0.3 and 0.4."""
    return {"1": Constants.of(regime, epsilon, 0.3), "0": Constants.of(regime, epsilon, 0.4)}


def run_batch(first: int, size: int, seed: int, past_rows: int, tested: bool) -> list[AuditRun]:
    """Run RS-Audit and Exp-Audit as published, each run with a past of its own.

    ``tested``: also Exp-Audit with its tests, and with laws by TruncEst in place of exact fits.
    """
    world, _ = find_world()
    cells = CellWorld(world.cells, world.r)
    questions = [Question(gamma=0.0, epsilon=e, delta=DELTA) for e in EPSILONS]
    made: list[AuditRun] = []
    for run in range(first, first + size):
        rng = np.random.default_rng([seed, run])
        features = world.with_feature_rows(past_rows).past(None, rng).features
        past = replace(features, held_out=0.0)  # the paper fits to all of them and buys the rest

        def published(
            model: MixtureModel, run: int = run, rng: np.random.Generator = rng
        ) -> list[AuditRun]:
            return run_published(
                run, world, cells, model, questions, REGIMES, 0.3, seed=seed + run, rng=rng
            )

        made += published(past.model)
        if tested:
            for question in questions:
                auto = run_exp(
                    run, "without caps", world, question, past.model, seed + run, weights="auto"
                )
                made.append(replace(auto, audit="exp auto"))
            rough = published(_by_trunc_est(past))
            made += [replace(r, audit="exp sgd") for r in rough if r.audit == "exp"]
    return made


def _by_trunc_est(past: PastFeatures) -> MixtureModel:
    """Fit the laws anew by the paper's projected gradient method."""
    return fit_model(*past.approved, past.accepts, past.family, method="sgd")


def run_costs(feature: float, label: float, seed: int, repeats: int) -> list[AdaptiveRuns]:
    """Run the adaptive audit at every epsilon."""
    world, _ = find_world()
    cells, costs = CellWorld(world.cells, world.r), Costs(feature, label)
    return [
        run_adaptive(cells, Question(gamma=0.0, epsilon=e, delta=DELTA), costs, repeats, seed)
        for e in EPSILONS
    ]


@dataclass(frozen=True)
class Expected:
    """Expected requests and failures of the phases: what any pair of costs is paid for.

    ``coarse`` are Exp-Audit's labels; ``features`` and ``features_of_1`` what it looks at in both
    groups and in group 1.
    """

    rs: float
    rs_failures: float
    coarse: float
    coarse_failures: float
    features: float
    features_of_1: float

    @classmethod
    def of(cls, world: MixtureWorld, regime: str, epsilon: float) -> Expected:
        """Return them for one regime."""
        cells = CellWorld(world.cells, world.r)
        question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
        per_group = constants_of(regime, epsilon)
        rs, coarse = (
            rs_expectation(cells, question, Costs(0.0, 1.0), tau=tau)
            for tau in (per_group["1"].tau, per_group["1"].coarse)
        )
        seen = {g: world.cells[g].shares[2] * c.features for g, c in per_group.items()}
        return cls(rs.labels, rs.cost, coarse.labels, coarse.cost, sum(seen.values()), seen["1"])


@dataclass(frozen=True)
class BreakEven(Result):
    """How dear labels must be for Exp-Audit to be the cheaper audit, None if it never is."""

    regime: str
    epsilon: float
    requests_rs: float
    requests_exp: float
    failures_rs: float
    failures_exp: float
    threshold: float | None
    threshold_needed: float | None

    @property
    def cheaper_above(self) -> float | str:
        """The threshold, or a word."""
        return "never" if self.threshold is None else self.threshold


def break_even(world: MixtureWorld, regime: str, epsilon: float) -> BreakEven:
    """Compare the expected costs of RS-Audit and Exp-Audit."""
    at = Expected.of(world, regime, epsilon)

    def threshold(features: float) -> float | None:
        saved = at.rs_failures - at.coarse_failures
        more = at.coarse + features - at.rs
        return None if saved <= 0 else max(0.0, more / saved * at.rs_failures / at.rs)

    needed = threshold(at.features * NEEDED_FEATURES / PROOF_FEATURES)
    return BreakEven(
        regime,
        epsilon,
        requests_rs=at.rs,
        requests_exp=at.coarse + at.features,
        failures_rs=at.rs_failures,
        failures_exp=at.coarse_failures,
        threshold=threshold(at.features),
        threshold_needed=needed if regime == "without caps" else None,
    )
