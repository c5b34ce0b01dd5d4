"""What the synthetic experiment shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.bounds import lower_bound
from equipoise.paper.chapter import Chapter, make_chapter, words_of
from equipoise.paper.kept_work import Record, real
from equipoise.paper.mixture_pictures import draw_costs, draw_estimates
from equipoise.paper.mixture_runs import DELTA, cost_of
from equipoise.paper.settings import Settings
from equipoise.paper.synthetic import (
    COST_PAIRS,
    EPSILONS,
    NAME,
    REGIMES,
    break_even,
    expected,
    past_rows,
)
from equipoise.paper.synthetic_world import distance, find_world
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld
from equipoise.worlds.mixture import MixtureWorld

__all__ = ["correctness", "tell"]


def tell(records: Sequence[Record], settings: Settings) -> Chapter:
    """Return the chapter."""
    world, seed = find_world()
    eod = world.difference("equalized_odds")
    runs = [r for r in records if r["kind"] == "run"]
    bounds = _bounds(world)
    costs = _cost_rows(records, world, bounds)
    even = [break_even(world, regime, epsilon) for regime in REGIMES for epsilon in EPSILONS]
    past = past_rows(settings)
    titles = ("as run, with caps", "without caps")
    return make_chapter(
        NAME,
        values={
            "distance": distance(),
            "world_seed": seed,
            "eod": eod,
            "delta": DELTA,
            "runs": len({r["run"] for r in runs}),
            "seed": settings.seed,
            "past": past,
        },
        found=_findings(world, even, costs, runs, past),
        records={
            "costs": [r for r in costs if r["epsilon"] in (0.5, 0.1, 0.01)],
            "break-even": even,
            "correctness": correctness(runs, eod),
            "fits": _fits(runs),
            "world": [r for r in records if r["kind"] == "group"],
            "all-costs": costs,
            "runs": [r for r in records if r["kind"] in ("run", "adaptive")],
        },
        pictures={
            "as-run": lambda: draw_costs(
                records, "as run", COST_PAIRS, published=_published(world, "as run"), bounds=bounds
            ),
            "without-caps": lambda: draw_costs(
                records, "without caps", COST_PAIRS, published={}, bounds=bounds
            ),
            "estimates": lambda: draw_estimates(records, ("as run", "without caps"), eod, titles),
        },
    )


def correctness(runs: Sequence[Record], eod: float) -> list[Record]:
    """Return the paper's correctness table under both definitions of the truth."""
    rows: list[Record] = []
    for regime in REGIMES:
        for epsilon in EPSILONS:
            truth = Question(gamma=0.0, epsilon=epsilon, delta=DELTA).truth(eod)
            table = "FAIR" if eod <= epsilon else "UNFAIR"
            row: Record = {"regime": regime, "epsilon": epsilon, "truth_paper": table}
            row["truth_definition"] = " or ".join(sorted(truth))
            for audit in ("exp", "rs"):
                said = [r["verdict"] for r in _at(runs, regime, epsilon) if r["audit"] == audit]
                row[f"{audit}_paper"] = float(np.mean([v == table for v in said]))
                row[f"{audit}_definition"] = float(np.mean([v in truth for v in said]))
            rows.append(row)
    return rows


def _cost_rows(
    records: Sequence[Record], world: MixtureWorld, bounds: Sequence[Record]
) -> list[Record]:
    rows: list[Record] = []
    runs = [r for r in records if r["kind"] == "run"]
    for regime in ("as run", "without caps"):
        published = _published(world, regime)
        for pair in COST_PAIRS:
            for at, epsilon in enumerate(EPSILONS):
                mean = {
                    audit: float(np.mean([cost_of(r, *pair) for r in here]))
                    for audit in ("rs", "exp")
                    for here in [[r for r in _at(runs, regime, epsilon) if r["audit"] == audit]]
                }
                adaptive = [r for r in records if r["kind"] == "adaptive"]
                rows.append(
                    {
                        "regime": regime,
                        "epsilon": epsilon,
                        "feature_cost": pair[0],
                        "label_cost": pair[1],
                        **mean,
                        "exp_over_rs": mean["exp"] / mean["rs"],
                        "rs_published": published[pair]["rs"][at][1],
                        "exp_published": published[pair]["exp"][at][1],
                        "adaptive": _priced(adaptive, pair, epsilon)["cost"],
                        "bound": _priced(bounds, pair, epsilon)["bound"],
                    }
                )
    return rows


def _published(
    world: MixtureWorld, regime: str
) -> dict[tuple[float, float], dict[str, list[tuple[float, float]]]]:
    """Return the expected costs as the authors' code books them."""
    made = {}
    for feature, label in COST_PAIRS:
        lines: dict[str, list[tuple[float, float]]] = {"rs": [], "exp": []}
        for epsilon in EPSILONS:
            phases = expected(world, regime, epsilon)
            (coarse, coarse_failures), (_, failures) = phases["coarse"], phases["rs"]
            misplaced = phases["map of group 1"][0]
            lines["rs"].append((epsilon, feature * misplaced + label * failures))
            lines["exp"].append((epsilon, feature * coarse + label * coarse_failures))
        made[feature, label] = lines
    return made


def _bounds(world: MixtureWorld) -> list[Record]:
    cells = CellWorld(world.cells, world.r)
    made: list[Record] = []
    for feature, label in COST_PAIRS:
        for epsilon in EPSILONS:
            question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
            bound = float(lower_bound(cells, question, Costs(feature, label)))
            made.append(
                {"feature_cost": feature, "label_cost": label, "epsilon": epsilon, "bound": bound}
            )
    return made


def _findings(
    world: MixtureWorld,
    even: Sequence[Record],
    costs: Sequence[Record],
    runs: Sequence[Record],
    past: int,
) -> list[str]:
    frames = words_of(NAME)["found"]
    ratios = {
        regime: ", ".join(
            f"{real(r, 'exp_over_rs'):.2f} at c_lab = {real(r, 'label_cost'):g}"
            for r in _at(costs, regime, 0.1)
            if r["feature_cost"] == 0.5
        )
        for regime in ("as run", "without caps")
    }
    free = {
        regime: next(r for r in _at(costs, regime, 0.1) if r["feature_cost"] == 0.0)
        for regime in ratios
    }
    (last,) = _at(even, "without caps", EPSILONS[-1])
    lines = [
        frames["free"].format(
            as_run=real(free["as run"], "exp_over_rs"),
            without=real(free["without caps"], "exp_over_rs"),
        ),
        frames["costs"].format(without=ratios["without caps"], as_run=ratios["as run"]),
        frames["sentence"].format(
            factor=real(last, "threshold"),
            needed=real(last, "threshold_needed"),
            bad=" and ".join(f"{1.0 - r:.2f}" for r in world.r.values()),
        ),
    ]
    return [*lines, *_tests(runs, past)]


def _tests(runs: Sequence[Record], past: int) -> list[str]:
    """Say what Exp-Audit does that tests its assumptions, if it is what the words say."""

    def mean(audit: str, epsilon: float, key: str) -> float:
        here = [r for r in _at(runs, "without caps", epsilon) if r["audit"] == audit]
        return float(np.mean([real(r, key) for r in here]))

    fewer = mean("exp auto", 0.25, "requests") < mean("exp", 0.25, "requests")
    labels = mean("exp auto", 0.001, "failures") > mean("rs", 0.001, "failures")
    if not fewer or not labels:
        return []
    asked = {a: mean(a, 0.25, "requests") for a in ("exp", "exp auto")}
    frame = words_of(NAME)["found"]["tests"]
    return [frame.format(auto=asked["exp auto"], map=asked["exp"], past=past)]


def _fits(runs: Sequence[Record]) -> list[Record]:
    """Compare Exp-Audit's estimates by how its laws were fitted."""
    rows: list[Record] = []
    for regime in ("as run", "without caps"):
        for epsilon in EPSILONS:
            row: Record = {"regime": regime, "epsilon": epsilon}
            for audit in ("exp", "exp sgd"):
                here = [r for r in _at(runs, regime, epsilon) if r["audit"] == audit]
                found = [real(r, "estimate") for r in here]
                row[f"{audit}_runs"] = len(found)
                row[audit] = float(np.mean(found)) if found else None
                row[f"{audit}_sd"] = float(np.std(found, ddof=1)) if len(found) > 1 else None
            rows.append(row)
    return rows


def _at(rows: Sequence[Record], regime: str, epsilon: float) -> list[Record]:
    return [r for r in rows if r["regime"] == regime and r["epsilon"] == epsilon]


def _priced(rows: Sequence[Record], pair: tuple[float, float], epsilon: float) -> Record:
    return next(
        r for r in rows if (r["feature_cost"], r["label_cost"]) == pair and r["epsilon"] == epsilon
    )
