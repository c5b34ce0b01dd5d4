"""Mixture model, Adult (section 5 and its appendix): RS-Audit against Exp-Audit on an embedding."""

from __future__ import annotations

import numpy as np

from equipoise.audits.exp import ExpAudit
from equipoise.paper.embedding import embed_adult
from equipoise.paper.kept_work import Part, Record
from equipoise.paper.mixture_runs import decide, run_adaptive, run_exp, run_rs
from equipoise.paper.settings import Settings
from equipoise.paper.synthetic import DELTA, Constants
from equipoise.question import Costs, Question

__all__ = ["COST_PAIRS", "GAMMA_EPSILON", "NAME", "parts", "run_all"]

NAME = "embedded"
GAMMA_EPSILON = ((0.5, 0.3), (0.4, 0.2), (0.0, 0.1), (0.0, 0.05), (0.0, 0.01))
COST_PAIRS = ((0.5, 0.25), (0.0, 1.0), (0.5, 1.0))
REGIMES = ("as run", "without caps")
PAST_ROWS = 20_000


def parts(settings: Settings) -> list[Part]:
    """Return one part: the network is trained once for all runs."""
    arguments = {
        "epochs": 3 if settings.quick else 30,
        "runs": 2 if settings.quick else 5,
        "adaptive": 2 if settings.quick else 10,
        "seed": settings.seed,
    }
    return [Part(f"{NAME}/all", run_all, arguments)]


def run_all(epochs: int, runs: int, adaptive: int, seed: int) -> list[Record]:
    """Run both audits at every (gamma, epsilon), each run with a past of its own."""
    embedded = embed_adult(epochs, seed)
    world = embedded.world
    cells = world.as_cells
    records: list[Record] = [
        {
            "kind": "world",
            "eod": cells.difference("equalized_odds"),
            "accuracy": embedded.accuracy,
            "epochs": embedded.epochs,
        }
    ]
    for group, row in cells.cells.items():
        p1, p0, denied = row.shares
        shares: Record = {"p1": p1, "p0": p0, "s": denied, "r": cells.r[group]}
        rates = {rate: by[group] for rate, by in cells.rates("equalized_odds").items()}
        records.append({"kind": "group", "group": group, **shares, **rates})
    weights = [float(world.outcome[world.group == g].mean()) for g in range(len(world.groups))]
    smaller = min(min(q, 1.0 - q) for q in weights)
    done, run = 0, -1
    while done < runs and run < 20 * runs:
        run += 1
        rng = np.random.default_rng([seed, run])
        model = embedded.fit_past(PAST_ROWS, rng)
        if model.problems:
            records.append(
                {"kind": "problem", "run": run, "why": next(iter(model.problems.values()))}
            )
            continue
        done += 1
        capped: dict[Constants, Record] = {}  # one run serves every question alike
        for gamma, epsilon in GAMMA_EPSILON:
            question = Question(gamma=gamma, epsilon=epsilon, delta=DELTA)
            tested = ExpAudit(world.past(), question, Costs(), model=model)
            for regime in REGIMES:
                constants = Constants.of(regime, epsilon, smaller)
                setting: Record = {"regime": regime, "gamma": gamma, "epsilon": epsilon, "run": run}
                records.append({**setting, **run_rs(cells, question, constants.tau, rng)})
                if regime == "without caps":
                    found = run_exp(world, question, model, seed + run, weights="map")
                else:
                    if constants not in capped:
                        capped[constants] = run_exp(
                            world, question, model, seed + run, weights="map", **constants.options()
                        )
                    found = {**capped[constants], "verdict": decide(capped[constants], question)}
                records.append({**setting, **found, "test": tested.fallback_reason})
    for gamma, epsilon in GAMMA_EPSILON if adaptive else ():
        question = Question(gamma=gamma, epsilon=epsilon, delta=DELTA)
        records += [run_adaptive(cells, question, Costs(*c), adaptive, seed) for c in COST_PAIRS]
    return records
