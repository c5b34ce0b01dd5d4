"""What the experiment on embedded Adult shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.question import Question
from paper.chapter import Chapter, make_chapter, words_of
from paper.embedded import (
    COST_PAIRS,
    GAMMA_EPSILON,
    NAME,
    REGIMES,
    Group,
    Network,
    Problem,
)
from paper.kept_work import Result, of_kind
from paper.mixture_pictures import draw_costs, draw_estimates
from paper.mixture_runs import DELTA, AdaptiveRuns, AuditRun, runs_of
from paper.settings import Settings

__all__ = ["tell"]


@dataclass(frozen=True)
class Row(Result):
    """Both audits at one question: estimate and its spread, share right, costs by c_feat."""

    regime: str
    gamma: float
    epsilon: float
    truth: str
    rs_estimate: float
    rs_sd: float
    rs_right: float
    rs_cost: float
    rs_free: float
    exp_estimate: float
    exp_sd: float
    exp_right: float
    exp_cost: float
    exp_free: float
    adaptive_cost: float | None


def tell(results: Sequence[Result], settings: Settings) -> Chapter:
    """Return the chapter."""
    (network,) = of_kind(results, Network)
    runs = of_kind(results, AuditRun)
    adaptive = of_kind(results, AdaptiveRuns)
    rows = [
        _row(runs, adaptive, regime, Question(gamma=g, epsilon=e, delta=DELTA), network.eod)
        for regime in REGIMES
        for g, e in GAMMA_EPSILON
    ]
    return make_chapter(
        NAME,
        values={
            **network.values(),
            "runs": len({r.run for r in runs}),
            "seed": settings.seed,
            "delta": DELTA,
        },
        found=_findings(runs, of_kind(results, Problem), rows, network.eod),
        tables={
            "audits": rows,
            "groups": of_kind(results, Group),
            "runs": [*runs, *adaptive],
        },
        pictures={
            "costs": lambda: draw_costs(results, "as run", COST_PAIRS),
            "without-caps": lambda: draw_costs(results, "without caps", COST_PAIRS),
            "estimates": lambda: draw_estimates(results, network.eod),
        },
    )


def _row(
    runs: Sequence[AuditRun],
    adaptive: Sequence[AdaptiveRuns],
    regime: str,
    question: Question,
    eod: float,
) -> Row:
    truth = question.truth(eod)

    def figures(audit: str) -> tuple[float, float, float, float, float]:
        mine = runs_of(runs, regime, audit, question.epsilon)
        estimates, right = [r.estimate for r in mine], [r.verdict in truth for r in mine]
        paid, free = (np.mean([r.cost(feature, 1.0) for r in mine]) for feature in (0.5, 0.0))
        found = np.mean(estimates), np.std(estimates, ddof=1), np.mean(right), paid, free
        a, b, c, d, e = map(float, found)
        return a, b, c, d, e

    ours = {(a.epsilon, a.feature_cost, a.label_cost): a.cost for a in adaptive}
    words = " or ".join(sorted(truth))
    asked, spent = (question.gamma, question.epsilon), ours.get((question.epsilon, 0.5, 1.0))
    return Row(regime, *asked, words, *figures("rs"), *figures("exp"), spent)


def _findings(
    runs: Sequence[AuditRun], problems: Sequence[Problem], rows: Sequence[Row], eod: float
) -> list[str]:
    frames = words_of(NAME)["found"]
    exp = [r for r in runs if r.audit == "exp"]
    guesses = [r.estimate for r in exp if r.regime == "without caps"]
    refused = [r.test for r in exp if r.test is not None]
    (small,) = (r for r in rows if r.regime == "as run" and r.epsilon == 0.01)
    lines = [
        frames["estimates"].format(
            low=min(guesses),
            high=max(guesses),
            eod=eod,
            exp_right=min(r.exp_right for r in rows),
            rs_right=min(r.rs_right for r in rows),
        ),
        frames["cost"].format(**small.values()),
    ]
    if refused:
        lines.append(frames["tests"].format(refused=len(refused), all=len(exp), why=refused[0]))
    if problems:
        lines.append(frames["problems"].format(problems=len(problems), why=problems[0].why))
    return lines
