"""The theorems: what Baseline, RS-Audit and the adaptive audit cost as epsilon shrinks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.bounds import (
    baseline_bound,
    baseline_expectation,
    family_bound,
    lower_bound,
    rs_bound,
    rs_expectation,
)
from equipoise.paper.chapter import Chapter, make_chapter, words_of
from equipoise.paper.kept_work import Part, Record, real
from equipoise.paper.settings import Settings
from equipoise.paper.style import AUDITS, legend_below, new_figure
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import lower_bound_pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["parts", "run_epsilon", "tell"]

NAME = "theorems"
EPSILONS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
ADAPTIVE = (0.1, 0.05, 0.02, 0.01)
DELTA, P, Q = 0.01, 0.2, 0.2
COSTS = Costs(feature=0.0, label=1.0)


def parts(settings: Settings) -> list[Part]:
    """Return one part per world and epsilon."""
    chosen = ADAPTIVE[:1] if settings.quick else ADAPTIVE
    runs = 2 if settings.quick else 6
    return [
        Part(
            f"{NAME}/{world}-{epsilon:g}",
            run_epsilon,
            {
                "world": world,
                "epsilon": epsilon,
                "repeats": 50 if settings.quick else 1000,
                "adaptive": runs if epsilon in chosen else 0,
                "seed": settings.seed,
            },
        )
        for epsilon in EPSILONS
        for world in ("fair", "unfair")
    ]


def run_epsilon(world: str, epsilon: float, repeats: int, adaptive: int, seed: int) -> list[Record]:
    """Price one world of the lower-bound family."""
    place = dict(zip(("fair", "unfair"), lower_bound_pair(epsilon, P, Q), strict=True))[world]
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    record: Record = {"world": world, "epsilon": epsilon, "eod": place.difference("equalized_odds")}
    for audit, expectation, bound in (
        ("baseline", baseline_expectation, baseline_bound),
        ("rs", rs_expectation, rs_bound),
    ):
        sim = simulate(audit, place, question, COSTS, repeats=repeats, seed=seed)
        most = bound(place, question, COSTS).cost
        record |= {
            f"{audit}_cost": float(sim.cost.mean()),
            f"{audit}_se": float(sim.cost.std(ddof=1)) / repeats**0.5,
            f"{audit}_expected": expectation(place, question, COSTS).cost,
            f"{audit}_bound": most,
            f"{audit}_within": float(np.mean(sim.cost <= most)),
            f"{audit}_wrong": float(sim.wrong.mean()),
        }
    record["theorem_3"] = family_bound(epsilon, DELTA, P, Q, COSTS).cost
    record["bound"] = float(lower_bound(place, question, COSTS))
    if adaptive:
        sim = simulate("adaptive", place, question, COSTS, repeats=adaptive, seed=seed)
        record |= {
            "adaptive_cost": float(sim.cost.mean()),
            "adaptive_se": float(sim.cost.std(ddof=1)) / adaptive**0.5,
            "adaptive_wrong": float(sim.wrong.mean()),
            "adaptive_runs": adaptive,
        }
    return [record]


def tell(records: Sequence[Record], settings: Settings) -> Chapter:
    """Return the chapter."""
    rows = sorted(records, key=lambda r: (str(r["world"]), -real(r, "epsilon")))
    return make_chapter(
        NAME,
        values={"p": P, "q": Q, "delta": DELTA, "seed": settings.seed},
        found=_findings(rows),
        records={"costs": rows},
        pictures={"costs": lambda: _draw(rows)},
    )


def _findings(rows: Sequence[Record]) -> list[str]:
    frames, audits = words_of(NAME)["found"], ("baseline", "rs")
    unfair = [r for r in rows if r["world"] == "unfair"]
    first, last = unfair[0], unfair[-1]

    def slope(key: str) -> float:
        rise = math.log(real(last, key) / real(first, key))
        return rise / math.log(real(last, "epsilon") / real(first, "epsilon"))

    some = [r for r in rows if r.get("adaptive_cost") is not None]
    multiples = [real(r, "adaptive_cost") / real(r, "bound") for r in some]
    return [
        frames["bounds"].format(
            within=min(real(r, f"{a}_within") for r in rows for a in audits),
            wrong=max(real(r, f"{a}_wrong") for r in rows for a in audits),
            delta=DELTA,
        ),
        frames["order"].format(
            first=first["epsilon"],
            last=last["epsilon"],
            slope_rs=slope("rs_cost"),
            slope_bound=slope("bound"),
        ),
        frames["constant"].format(
            last=last["epsilon"],
            rs=last["rs_cost"],
            bound=last["bound"],
            multiple=real(last, "rs_cost") / real(last, "bound"),
            theorem_3=last["theorem_3"],
            baseline=real(last, "baseline_cost") / real(last, "rs_cost"),
        ),
        frames["adaptive"].format(low=min(multiples), high=max(multiples)),
    ]


def _draw(rows: Sequence[Record]) -> Figure:
    figure, panels = new_figure(1, 2, height=4.4)
    for axes, world in zip(panels[0], ("fair", "unfair"), strict=True):
        here = [r for r in rows if r["world"] == world]
        x = [real(r, "epsilon") for r in here]
        for audit, theorem in (("baseline", "Theorem 1"), ("rs", "Theorem 2")):
            name, colour, marker, dashes = AUDITS[audit]
            costs, bounds = ([real(r, f"{audit}_{k}") for r in here] for k in ("cost", "bound"))
            axes.plot(x, costs, color=colour, marker=marker, linestyle=dashes, label=name)
            label = f"{theorem}, upper bound"
            axes.plot(x, bounds, color=colour, lw=0.8, alpha=0.7, label=label)
        name, colour, marker, _ = AUDITS["adaptive"]
        some = [r for r in here if r.get("adaptive_cost") is not None]
        axes.errorbar(
            [real(r, "epsilon") for r in some],
            [real(r, "adaptive_cost") for r in some],
            yerr=[2 * real(r, "adaptive_se") for r in some],
            color=colour,
            marker=marker,
            capsize=2,
            label=f"{name} ± 2 s.e.",
        )
        name, colour, *_ = AUDITS["bound"]
        axes.plot(x, [real(r, "bound") for r in here], color=colour, label=name)
        third = [real(r, "theorem_3") for r in here]
        axes.plot(x, third, color=colour, linestyle=":", label="Theorem 3, lower bound")
        axes.set(
            title="Delta = 0: FAIR" if world == "fair" else "Delta > epsilon: UNFAIR",
            xscale="log",
            yscale="log",
            xlabel="epsilon (log scale)",
            ylabel="cost (failed overrides, log scale)",
        )
    legend_below(figure, panels[0], columns=3)
    return figure
