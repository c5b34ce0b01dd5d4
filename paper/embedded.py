"""Mixture model, Adult (section 6 and its appendix): RS-Audit against Exp-Audit on an embedding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from equipoise.audits.exp import ExpAudit
from equipoise.question import Costs, Question
from paper.embedding import embed_adult
from paper.kept_work import Part, Result
from paper.mixture_runs import (
    DELTA,
    AdaptiveRuns,
    AuditRun,
    run_adaptive,
    run_published,
)
from paper.settings import Settings

__all__ = [
    "COST_PAIRS",
    "GAMMA_EPSILON",
    "NAME",
    "REGIMES",
    "Group",
    "Network",
    "Problem",
    "parts",
    "run_all",
]

NAME = "embedded"
GAMMA_EPSILON = ((0.5, 0.3), (0.4, 0.2), (0.0, 0.1), (0.0, 0.05), (0.0, 0.01))
COST_PAIRS = ((0.5, 0.25), (0.0, 1.0), (0.5, 1.0))
REGIMES = ("as run", "without caps")
PAST_ROWS = 20_000


@dataclass(frozen=True)
class Network(Result):
    """The network that embeds, and the true EOD of the classifier on top."""

    eod: float
    accuracy: float
    epochs: int


@dataclass(frozen=True)
class Group(Result):
    """The decision-maker in one group."""

    group: str
    p1: float
    p0: float
    s: float
    r: float
    true_positive_rate: float
    false_positive_rate: float


@dataclass(frozen=True)
class Problem(Result):
    """Why a past gave no model."""

    run: int
    why: str


def parts(settings: Settings) -> list[Part]:
    """Return one part: the network is trained once for all runs."""
    arguments = {
        "epochs": 3 if settings.quick else 30,
        "runs": 2 if settings.quick else 5,
        "adaptive": 2 if settings.quick else 10,
        "seed": settings.seed,
    }
    kinds = Network, Group, Problem, AuditRun, AdaptiveRuns
    return [Part(f"{NAME}/all", run_all, arguments, kinds)]


def run_all(epochs: int, runs: int, adaptive: int, seed: int) -> list[Result]:
    """Run both audits at every (gamma, epsilon), each run with a past of its own."""
    embedded = embed_adult(epochs, seed)
    world = embedded.world
    cells = world.as_cells
    eod = cells.difference("equalized_odds")
    made: list[Result] = [Network(eod, embedded.accuracy, embedded.epochs)]
    rates = cells.rates("equalized_odds")
    for group, row in cells.cells.items():
        both = (rates[f"{sign}_positive_rate"][group] for sign in ("true", "false"))
        made.append(Group(group, *row.shares, cells.r[group], *both))
    weights = [float(world.outcome[world.group == g].mean()) for g in range(len(world.groups))]
    smaller = min(min(q, 1.0 - q) for q in weights)
    questions = [Question(gamma=g, epsilon=e, delta=DELTA) for g, e in GAMMA_EPSILON]
    done, run = 0, -1
    while done < runs and run < 20 * runs:
        run += 1
        rng = np.random.default_rng([seed, run])
        model = embedded.fit_past(PAST_ROWS, rng)
        if model.problems:
            made.append(Problem(run, next(iter(model.problems.values()))))
            continue
        done += 1
        published = run_published(
            run, world, cells, model, questions, REGIMES, smaller, seed=seed + run, rng=rng
        )
        reasons = {
            q.epsilon: ExpAudit(world.past(), q, Costs(), model=model).fallback_reason
            for q in questions
        }
        made += [replace(r, test=reasons[r.epsilon]) for r in published]
    for question in questions if adaptive else ():
        made += [run_adaptive(cells, question, Costs(*c), adaptive, seed) for c in COST_PAIRS]
    return made
