"""Mixture model, synthetic (section 5 and its appendix): RS-Audit against Exp-Audit."""

from __future__ import annotations

import numpy as np

from equipoise.bounds import Price, rs_expectation
from equipoise.mixture.model import MixtureModel, fit_model
from equipoise.paper.kept_work import Part, Record
from equipoise.paper.mixture_runs import DELTA, Constants, run_adaptive, run_exp, run_published
from equipoise.paper.settings import Settings
from equipoise.paper.synthetic_world import find_world
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from equipoise.worlds.mixture import MixturePast, MixtureWorld

__all__ = [
    "COST_PAIRS",
    "DELTA",
    "EPSILONS",
    "NAME",
    "NEEDED_FEATURES",
    "PROOF_FEATURES",
    "REGIMES",
    "Constants",
    "break_even",
    "constants_of",
    "expected",
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
        )
        for feature, label in COST_PAIRS
    ]
    return [*made, Part(f"{NAME}/world", describe_world, {})]


def past_rows(settings: Settings) -> int:
    """Return how many past people the laws are estimated from."""
    return 20_000 if settings.quick else PAST_ROWS


def constants_of(regime: str, epsilon: float) -> dict[str, Constants]:
    """Return each group's constants; the rarer outcome has weight 0.3 and 0.4."""
    return {"1": Constants.of(regime, epsilon, 0.3), "0": Constants.of(regime, epsilon, 0.4)}


def run_batch(first: int, size: int, seed: int, past_rows: int, tested: bool) -> list[Record]:
    """Run RS-Audit and Exp-Audit as published, each run with a past of its own.

    ``tested``: also Exp-Audit with its tests, and with laws by TruncEst in place of exact fits.
    """
    world, _ = find_world()
    cells = CellWorld(world.cells, world.r)
    questions = [Question(gamma=0.0, epsilon=e, delta=DELTA) for e in EPSILONS]
    records: list[Record] = []
    for run in range(first, first + size):
        rng = np.random.default_rng([seed, run])
        past = world.with_feature_rows(past_rows).past(None, rng)
        made = run_published(
            world, cells, past.model, questions, REGIMES, 0.3, seed=seed + run, rng=rng
        )
        if tested:
            for question in questions:
                auto = run_exp(world, question, past.model, seed + run, weights="auto")
                at: Record = {"regime": "without caps", "epsilon": question.epsilon}
                made.append({**at, **auto, "audit": "exp auto"})
            rough = run_published(
                world, cells, _by_trunc_est(past), questions, REGIMES, 0.3, seed=seed + run, rng=rng
            )
            made += [{**r, "audit": "exp sgd"} for r in rough if r["audit"] == "exp"]
        records += [{**record, "run": run} for record in made]
    return records


def _by_trunc_est(past: MixturePast) -> MixtureModel:
    """Fit the laws anew by the paper's projected gradient method."""
    people, family = past.people, past.family
    assert people is not None
    assert people.features is not None
    assert family is not None
    approved = people.decision == 1
    accepts = {g: m.accepts for g, m in find_world()[0].mixtures.items()}
    names = np.array(people.groups)[people.group[approved]]
    features, outcomes = people.features[approved], people.outcome[approved]
    return fit_model(features, names, outcomes, accepts, family, method="sgd")


def run_costs(feature: float, label: float, seed: int, repeats: int) -> list[Record]:
    """Run the adaptive audit at every epsilon."""
    world, _ = find_world()
    cells, costs = CellWorld(world.cells, world.r), Costs(feature, label)
    return [
        run_adaptive(cells, Question(gamma=0.0, epsilon=e, delta=DELTA), costs, repeats, seed)
        for e in EPSILONS
    ]


def describe_world() -> list[Record]:
    """Return the population's figures."""
    world, seed = find_world()
    rows: list[Record] = [
        {"kind": "world", "seed": seed, "eod": world.difference("equalized_odds")}
    ]
    for group, mixture in world.mixtures.items():
        rows.append(
            {
                "kind": "group",
                "group": group,
                "share": mixture.share,
                "q": mixture.q,
                "fpr": mixture.laws[0].acceptance,
                "tpr": mixture.laws[1].acceptance,
                "denied": world.cells[group].shares[2],
                "r": world.r[group],
            }
        )
    return rows


def expected(world: MixtureWorld, regime: str, epsilon: float) -> dict[str, tuple[float, float]]:
    """Return expected requests and failures of the phases: what any pair of costs is paid for.

    Keys: "rs", "coarse" (Exp-Audit's labels), "map" and "map of group 1" (its features).
    """
    cells = CellWorld(world.cells, world.r)
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    per_group = constants_of(regime, epsilon)

    def labels(tau: int) -> tuple[float, float]:
        price: Price = rs_expectation(cells, question, Costs(0.0, 1.0), tau=tau)
        return price.labels, price.cost

    denied = {g: world.cells[g].shares[2] * per_group[g].features for g in per_group}
    return {
        "rs": labels(per_group["1"].tau),
        "coarse": labels(per_group["1"].coarse),
        "map": (sum(denied.values()), 0.0),
        "map of group 1": (denied["1"], 0.0),
    }


def break_even(world: MixtureWorld, regime: str, epsilon: float) -> Record:
    """Return how dear labels must be for Exp-Audit to be the cheaper audit."""
    phases = expected(world, regime, epsilon)
    (rs, rs_failures), (coarse, failures) = phases["rs"], phases["coarse"]
    features = phases["map"][0]

    def threshold(asked: float) -> float | None:
        saved = rs_failures - failures
        return None if saved <= 0 else max(0.0, (coarse + asked - rs) / saved * rs_failures / rs)

    shown = threshold(features)
    needed = threshold(features * NEEDED_FEATURES / PROOF_FEATURES)
    return {
        "regime": regime,
        "epsilon": epsilon,
        "requests_rs": rs,
        "requests_exp": coarse + features,
        "failures_rs": rs_failures,
        "failures_exp": failures,
        "threshold": "never" if shown is None else shown,
        "threshold_needed": needed if regime == "without caps" else None,
    }
