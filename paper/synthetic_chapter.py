"""What the synthetic experiment shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.bounds import lower_bound
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from equipoise.worlds.mixture import MixtureWorld
from paper.chapter import Chapter, make_chapter, words_of
from paper.kept_work import Result, of_kind
from paper.mixture_pictures import Line, Pair, draw_costs, draw_estimates
from paper.mixture_runs import DELTA, AdaptiveRuns, AuditRun, runs_of
from paper.settings import Settings
from paper.synthetic import (
    COST_PAIRS,
    EPSILONS,
    NAME,
    REGIMES,
    BreakEven,
    Expected,
    break_even,
    past_rows,
)
from paper.synthetic_world import distance, find_world

__all__ = ["correctness", "tell"]


@dataclass(frozen=True)
class Group(Result):
    """One group of the population."""

    group: str
    share: float
    q: float
    tpr: float
    fpr: float
    denied: float
    r: float


@dataclass(frozen=True)
class CostRow(Result):
    """Mean costs, rightly booked and as published."""

    regime: str
    epsilon: float
    feature_cost: float
    label_cost: float
    rs: float
    exp: float
    exp_over_rs: float
    rs_published: float
    exp_published: float
    adaptive: float
    bound: float


@dataclass(frozen=True)
class Correctness(Result):
    """Shares of right verdicts under both definitions of the truth."""

    regime: str
    epsilon: float
    truth_paper: str
    exp_paper: float
    rs_paper: float
    truth_definition: str
    exp_definition: float
    rs_definition: float


@dataclass(frozen=True)
class Fits(Result):
    """Exp-Audit's estimates by how its laws were fitted."""

    regime: str
    epsilon: float
    exact: float
    exact_sd: float
    sgd: float
    sgd_sd: float
    sgd_runs: int


def tell(results: Sequence[Result], settings: Settings) -> Chapter:
    """Return the chapter."""
    world, seed = find_world()
    eod = world.difference("equalized_odds")
    runs, adaptive = of_kind(results, AuditRun), of_kind(results, AdaptiveRuns)
    bounds = {pair: _bounds(world, pair) for pair in COST_PAIRS}
    costs = _cost_rows(runs, adaptive, world, bounds)
    even = [break_even(world, regime, epsilon) for regime in REGIMES for epsilon in EPSILONS]
    past = past_rows(settings)
    published = {pair: _published(world, "as run", pair) for pair in COST_PAIRS}
    return make_chapter(
        NAME,
        values={
            "distance": distance(),
            "world_seed": seed,
            "eod": eod,
            "delta": DELTA,
            "runs": len({r.run for r in runs}),
            "seed": settings.seed,
            "past": past,
        },
        found=_findings(world, even, costs, runs, past),
        tables={
            "costs": [r for r in costs if r.epsilon in (0.5, 0.1, 0.01)],
            "break-even": even,
            "correctness": correctness(runs, eod),
            "fits": [_fits(runs, g, e) for g in ("as run", "without caps") for e in EPSILONS],
            "world": [_group(world, group) for group in world.groups],
            "all-costs": costs,
            "runs": [*runs, *adaptive],
        },
        pictures={
            "as-run": lambda: draw_costs(
                results, "as run", COST_PAIRS, published=published, bounds=bounds
            ),
            "without-caps": lambda: draw_costs(results, "without caps", COST_PAIRS, bounds=bounds),
            "estimates": lambda: draw_estimates(results, eod),
        },
    )


def correctness(runs: Sequence[AuditRun], eod: float) -> list[Correctness]:
    """Return the paper's correctness table under both definitions of the truth."""
    rows = []
    for regime in REGIMES:
        for epsilon in EPSILONS:
            truth = Question(gamma=0.0, epsilon=epsilon, delta=DELTA).truth(eod)
            table = "FAIR" if eod <= epsilon else "UNFAIR"
            exp, rs = (
                [r.verdict for r in runs_of(runs, regime, a, epsilon)] for a in ("exp", "rs")
            )
            rows.append(
                Correctness(
                    regime,
                    epsilon,
                    truth_paper=table,
                    exp_paper=float(np.mean([v == table for v in exp])),
                    rs_paper=float(np.mean([v == table for v in rs])),
                    truth_definition=" or ".join(sorted(truth)),
                    exp_definition=float(np.mean([v in truth for v in exp])),
                    rs_definition=float(np.mean([v in truth for v in rs])),
                )
            )
    return rows


def _group(world: MixtureWorld, group: str) -> Group:
    mixture = world.mixtures[group]
    fpr, tpr = (law.acceptance for law in mixture.laws)
    denied = world.cells[group].shares[2]
    return Group(group, mixture.share, mixture.q, tpr, fpr, denied, world.r[group])


def _cost_rows(
    runs: Sequence[AuditRun],
    adaptive: Sequence[AdaptiveRuns],
    world: MixtureWorld,
    bounds: dict[Pair, Line],
) -> list[CostRow]:
    ours = {((a.feature_cost, a.label_cost), a.epsilon): a.cost for a in adaptive}
    rows = []
    for regime in ("as run", "without caps"):
        for pair in COST_PAIRS:
            published = _published(world, regime, pair)
            for at, epsilon in enumerate(EPSILONS):
                rs, exp = (
                    float(np.mean([r.cost(*pair) for r in runs_of(runs, regime, audit, epsilon)]))
                    for audit in ("rs", "exp")
                )
                booked = published["rs"][at][1], published["exp"][at][1]
                ends = ours[pair, epsilon], bounds[pair][at][1]
                rows.append(CostRow(regime, epsilon, *pair, rs, exp, exp / rs, *booked, *ends))
    return rows


def _published(world: MixtureWorld, regime: str, pair: Pair) -> dict[str, Line]:
    """Return the expected costs as the authors' code books them."""
    feature, label = pair
    all_of = [(epsilon, Expected.of(world, regime, epsilon)) for epsilon in EPSILONS]
    return {
        "rs": [(e, feature * x.features_of_1 + label * x.rs_failures) for e, x in all_of],
        "exp": [(e, feature * x.coarse + label * x.coarse_failures) for e, x in all_of],
    }


def _bounds(world: MixtureWorld, pair: Pair) -> Line:
    cells, costs = CellWorld(world.cells, world.r), Costs(*pair)
    questions = [Question(gamma=0.0, epsilon=epsilon, delta=DELTA) for epsilon in EPSILONS]
    return [(q.epsilon, float(lower_bound(cells, q, costs))) for q in questions]


def _findings(
    world: MixtureWorld,
    even: Sequence[BreakEven],
    costs: Sequence[CostRow],
    runs: Sequence[AuditRun],
    past: int,
) -> list[str]:
    frames, ratios, free = words_of(NAME)["found"], {}, {}
    for regime in ("as run", "without caps"):
        here = [r for r in costs if r.regime == regime and r.epsilon == 0.1]
        priced = [r for r in here if r.feature_cost == 0.5]
        free[regime] = next(r.exp_over_rs for r in here if r.feature_cost == 0.0)
        ratios[regime] = ", ".join(
            f"{r.exp_over_rs:.2f} at c_lab = {r.label_cost:g}" for r in priced
        )
    last = next(r for r in even if r.regime == "without caps" and r.epsilon == EPSILONS[-1])
    return [
        frames["free"].format(as_run=free["as run"], without=free["without caps"]),
        frames["costs"].format(without=ratios["without caps"], as_run=ratios["as run"]),
        frames["sentence"].format(
            factor=last.threshold,
            needed=last.threshold_needed,
            bad=" and ".join(f"{1.0 - r:.2f}" for r in world.r.values()),
        ),
        *_tests(runs, past),
    ]


def _tests(runs: Sequence[AuditRun], past: int) -> list[str]:
    """Say what Exp-Audit does that tests its assumptions, if it is what the words say."""

    def requests(audit: str) -> float:
        return float(np.mean([r.requests for r in runs_of(runs, "without caps", audit, 0.25)]))

    def failures(audit: str) -> float:
        return float(np.mean([r.failures for r in runs_of(runs, "without caps", audit, 0.001)]))

    auto, counts = requests("exp auto"), requests("exp")
    if auto >= counts or failures("exp auto") <= failures("rs"):
        return []
    return [words_of(NAME)["found"]["tests"].format(auto=auto, map=counts, past=past)]


def _fits(runs: Sequence[AuditRun], regime: str, epsilon: float) -> Fits:
    """Compare Exp-Audit's estimates by how its laws were fitted."""
    exact, sgd = (
        [r.estimate for r in runs_of(runs, regime, audit, epsilon)] for audit in ("exp", "exp sgd")
    )
    (mean, spread), (mean_sgd, spread_sgd) = (
        (float(np.mean(x)), float(np.std(x, ddof=1))) if len(x) > 1 else (math.nan, math.nan)
        for x in (exact, sgd)
    )
    return Fits(regime, epsilon, mean, spread, mean_sgd, spread_sgd, len(sgd))
