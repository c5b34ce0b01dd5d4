"""What the experiment on embedded Adult shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.paper.chapter import Chapter, make_chapter, words_of
from equipoise.paper.embedded import COST_PAIRS, GAMMA_EPSILON, NAME, REGIMES
from equipoise.paper.kept_work import Record, real
from equipoise.paper.mixture_pictures import draw_costs, draw_estimates
from equipoise.paper.mixture_runs import DELTA, cost_of
from equipoise.paper.settings import Settings
from equipoise.question import Question

__all__ = ["tell"]


def tell(records: Sequence[Record], settings: Settings) -> Chapter:
    """Return the chapter."""
    world = next(r for r in records if r["kind"] == "world")
    eod = real(world, "eod")
    rows = [_row(records, regime, g, e, eod) for regime in REGIMES for g, e in GAMMA_EPSILON]
    titles = ("as run, with caps", "without caps")
    return make_chapter(
        NAME,
        values={
            **world,
            "runs": len({r["run"] for r in records if r["kind"] == "run"}),
            "seed": settings.seed,
            "delta": DELTA,
        },
        found=_findings(records, rows, eod),
        records={
            "audits": rows,
            "groups": [r for r in records if r["kind"] == "group"],
            "runs": [r for r in records if r["kind"] in ("run", "adaptive")],
        },
        pictures={
            "costs": lambda: draw_costs(records, "as run", COST_PAIRS, published={}),
            "without-caps": lambda: draw_costs(records, "without caps", COST_PAIRS, published={}),
            "estimates": lambda: draw_estimates(records, REGIMES, eod, titles),
        },
    )


def _row(
    records: Sequence[Record], regime: str, gamma: float, epsilon: float, eod: float
) -> Record:
    truth = Question(gamma=gamma, epsilon=epsilon, delta=DELTA).truth(eod)
    row: Record = {"regime": regime, "gamma": gamma, "epsilon": epsilon}
    row["truth"] = " or ".join(sorted(truth))
    here = [r for r in records if r["kind"] == "run"]
    here = [r for r in here if r["regime"] == regime and r["epsilon"] == epsilon]
    for audit in ("rs", "exp"):
        runs = [r for r in here if r["audit"] == audit]
        estimates = [real(r, "estimate") for r in runs]
        row |= {
            f"{audit}_estimate": float(np.mean(estimates)),
            f"{audit}_sd": float(np.std(estimates, ddof=1)),
            f"{audit}_right": float(np.mean([r["verdict"] in truth for r in runs])),
            f"{audit}_cost": float(np.mean([cost_of(r, 0.5, 1.0) for r in runs])),
            f"{audit}_free": float(np.mean([cost_of(r, 0.0, 1.0) for r in runs])),
        }
    adaptive = [r for r in records if r["kind"] == "adaptive" and r["epsilon"] == epsilon]
    for r in adaptive:
        if (r["feature_cost"], r["label_cost"]) == (0.5, 1.0):
            row["adaptive_cost"] = r["cost"]
    return row


def _findings(records: Sequence[Record], rows: Sequence[Record], eod: float) -> list[str]:
    frames = words_of(NAME)["found"]
    exp = [r for r in records if r["kind"] == "run" and r["audit"] == "exp"]
    guesses = [real(r, "estimate") for r in exp if r["regime"] == "without caps"]
    refused = [str(r["test"]) for r in exp if r["test"] is not None]
    problems = [str(r["why"]) for r in records if r["kind"] == "problem"]
    (small,) = (r for r in rows if r["regime"] == "as run" and r["epsilon"] == 0.01)
    lines = [
        frames["estimates"].format(
            low=min(guesses),
            high=max(guesses),
            eod=eod,
            exp_right=min(real(r, "exp_right") for r in rows),
            rs_right=min(real(r, "rs_right") for r in rows),
        ),
        frames["cost"].format(**small),
    ]
    if refused:
        lines.append(frames["tests"].format(refused=len(refused), all=len(exp), why=refused[0]))
    if problems:
        lines.append(frames["problems"].format(problems=len(problems), why=problems[0]))
    return lines
