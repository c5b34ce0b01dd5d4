"""Mixture model, Adult (section 5 and its appendix): RS-Audit against Exp-Audit on an embedding."""

from __future__ import annotations

import numpy as np

from equipoise.audits.exp import ExpAudit
from equipoise.paper.embedding import embed_adult
from equipoise.paper.kept_work import Part, Record
from equipoise.paper.mixture_runs import DELTA, run_adaptive, run_published
from equipoise.paper.settings import Settings
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
    questions = [Question(gamma=g, epsilon=e, delta=DELTA) for g, e in GAMMA_EPSILON]
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
        made = run_published(
            world, cells, model, questions, REGIMES, smaller, seed=seed + run, rng=rng
        )
        reasons = {
            q.epsilon: ExpAudit(world.past(), q, Costs(), model=model).fallback_reason
            for q in questions
        }
        for record in made:
            record |= {"run": run, "test": reasons[float(record["epsilon"] or 0.0)]}
        records += made
    for question in questions if adaptive else ():
        records += [run_adaptive(cells, question, Costs(*c), adaptive, seed) for c in COST_PAIRS]
    return records
