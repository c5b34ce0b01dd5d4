"""The theorems: what Baseline, RS-Audit and the adaptive audit cost as epsilon shrinks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.bounds import (
    baseline_bound,
    baseline_expectation,
    exp_bound,
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
from equipoise.worlds import CellWorld, MixtureWorld, lower_bound_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["parts", "run_epsilon", "tell"]

NAME = "theorems"
EPSILONS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
ADAPTIVE = (0.1, 0.05, 0.02)  # label by label: smaller ones need hundreds of thousands
DELTA, P, Q = 0.01, 0.2, 0.2
COSTS = Costs(feature=0.0, label=1.0)
MIXTURE_COSTS = Costs(feature=0.5, label=3.0)


def parts(settings: Settings) -> list[Part]:
    """Return one part per world and epsilon."""
    chosen = ADAPTIVE[:1] if settings.quick else ADAPTIVE
    runs = 2 if settings.quick else 6
    mixture = [
        Part(
            f"{NAME}/mixture-{epsilon:g}",
            run_mixture,
            {"epsilon": epsilon, "repeats": 20 if settings.quick else 200, "seed": settings.seed},
        )
        for epsilon in EPSILONS
    ]
    return mixture + [
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


def run_mixture(epsilon: float, repeats: int, seed: int) -> list[Record]:
    """Price Exp-Audit as published where its assumptions hold: known laws, 7 sigma apart."""
    world = MixtureWorld.synthetic(14.0)
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    sim = simulate("exp", world, question, MIXTURE_COSTS, repeats=repeats, seed=seed, weights="map")
    cells = CellWorld(world.cells, world.r)
    most = exp_bound(cells, question, MIXTURE_COSTS).cost
    return [
        {
            "world": "mixture",
            "epsilon": epsilon,
            "exp_cost": float(sim.cost.mean()),
            "exp_se": float(sim.cost.std(ddof=1)) / repeats**0.5,
            "exp_bound": most,
            "exp_within": float(np.mean(sim.cost <= most)),
            "exp_wrong": float(sim.wrong.mean()),
            "rs_expected": rs_expectation(cells, question, MIXTURE_COSTS).cost,
        }
    ]


def tell(records: Sequence[Record], settings: Settings) -> Chapter:
    """Return the chapter."""
    rows = sorted(
        (r for r in records if r["world"] != "mixture"),
        key=lambda r: (str(r["world"]), -real(r, "epsilon")),
    )
    mixture = sorted(
        (r for r in records if r["world"] == "mixture"), key=lambda r: -real(r, "epsilon")
    )
    return make_chapter(
        NAME,
        values={"p": P, "q": Q, "delta": DELTA, "seed": settings.seed},
        found=[*_findings(rows), *_about_theorem_4(mixture)],
        records={"costs": rows, "theorem-4": mixture},
        pictures={"costs": lambda: _draw(rows, mixture)},
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


def _about_theorem_4(rows: Sequence[Record]) -> list[str]:
    small = rows[-1]
    return [
        words_of(NAME)["found"]["theorem_4"].format(
            within=min(real(r, "exp_within") for r in rows),
            wrong=max(real(r, "exp_wrong") for r in rows),
            share=real(small, "exp_cost") / real(small, "exp_bound"),
            epsilon=small["epsilon"],
        )
    ]


def _draw(rows: Sequence[Record], mixture: Sequence[Record]) -> Figure:
    figure, panels = new_figure(2, 2, height=4.0)
    _draw_theorem_4(panels[1][0], mixture)
    _draw_shares(panels[1][1], [r for r in rows if r["world"] == "unfair"], mixture)
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
    legend_below(figure, [*panels[0], panels[1][0]], columns=3)
    return figure


def _draw_theorem_4(axes: Axes, rows: Sequence[Record]) -> None:
    """Draw Exp-Audit's cost beside its bound, and RS-Audit's in the same world."""
    x = [real(r, "epsilon") for r in rows]
    for audit, key in (("exp", "exp_cost"), ("rs", "rs_expected")):
        name, colour, marker, dashes = AUDITS[audit]
        costs = [real(r, key) for r in rows]
        axes.plot(x, costs, color=colour, marker=marker, linestyle=dashes, label=name)
    bounds = [real(r, "exp_bound") for r in rows]
    colour = AUDITS["exp"][1]
    axes.plot(x, bounds, color=colour, lw=0.8, alpha=0.7, label="Theorem 4, upper bound")
    axes.set(
        title="Mixture, c_feat = 0.5, c_lab = 3",
        xscale="log",
        yscale="log",
        xlabel="epsilon (log scale)",
        ylabel="cost (log scale)",
    )


def _draw_shares(axes: Axes, rows: Sequence[Record], mixture: Sequence[Record]) -> None:
    """Draw every audit's mean cost as a share of its theorem's bound."""
    for audit, here, theorem in (("baseline", rows, 1), ("rs", rows, 2), ("exp", mixture, 4)):
        name, colour, marker, dashes = AUDITS[audit]
        shares = [real(r, f"{audit}_cost") / real(r, f"{audit}_bound") for r in here]
        x = [real(r, "epsilon") for r in here]
        label = f"{name} / Theorem {theorem}"
        axes.plot(x, shares, color=colour, marker=marker, linestyle=dashes, label=label)
    axes.axhline(1.0, color="#555555", lw=1.2)
    axes.text(0.05, 1.003, "the theorem's bound", fontsize=8.5, ha="center", va="bottom")
    axes.set(
        title="Cost as a share of the bound",
        xscale="log",
        ylim=(0.8, 1.05),
        xlabel="epsilon (log scale)",
        ylabel="mean cost / upper bound",
    )
    axes.legend(fontsize=8.5, loc="lower center")
