"""The theorems: what Baseline, RS-Audit and the adaptive audit cost as epsilon shrinks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.bounds import baseline_bound, exp_bound, family_bound, lower_bound, rs_bound
from equipoise.question import Costs, Question
from equipoise.simulation import Simulation, simulate
from equipoise.worlds import CellWorld, MixtureWorld
from paper.chapter import Chapter, make_chapter, words_of
from paper.kept_work import Part, Result, of_kind
from paper.proof_worlds import lower_bound_pair
from paper.settings import Settings
from paper.style import AUDITS, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Priced", "parts", "run_epsilon", "tell"]

NAME = "theorems"
EPSILONS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
ADAPTIVE = (0.1, 0.05, 0.02)  # label by label: smaller ones need hundreds of thousands
THEOREMS = {"baseline": 1, "rs": 2, "exp": 4}  # audit -> the theorem that bounds its cost
DELTA, P, Q = 0.01, 0.2, 0.2
COSTS = Costs(feature=0.0, label=1.0)
MIXTURE_COSTS = Costs(feature=0.5, label=3.0)


@dataclass(frozen=True)
class Priced(Result):
    """One audit in one world: mean cost, how often it is within its theorem's bound, and wrong.

    ``bound`` is the upper bound of Theorem 1, 2 or 4; ``least`` is C*, ``theorem_3`` the paper's
    own lower bound.
    """

    world: str
    epsilon: float
    audit: str
    runs: int
    cost: float
    se: float
    wrong: float
    bound: float = math.nan
    within: float = math.nan
    least: float = math.nan
    theorem_3: float = math.nan

    @classmethod
    def of(
        cls, world: str, audit: str, sim: Simulation, bound: float = math.nan, **others: float
    ) -> Priced:
        """Return a simulation's figures."""
        runs = len(sim.cost)
        return cls(
            world,
            sim.question.epsilon,
            audit,
            runs,
            cost=float(sim.cost.mean()),
            se=float(sim.cost.std(ddof=1)) / runs**0.5,
            wrong=float(sim.wrong.mean()),
            bound=bound,
            within=math.nan if math.isnan(bound) else float(np.mean(sim.cost <= bound)),
            **others,
        )


def parts(settings: Settings) -> list[Part]:
    """Return one part per world and epsilon."""
    chosen = ADAPTIVE[:1] if settings.quick else ADAPTIVE
    runs = 2 if settings.quick else 6
    made = []
    for epsilon in EPSILONS:
        repeats = 20 if settings.quick else 200
        mixture = {"epsilon": epsilon, "repeats": repeats, "seed": settings.seed}
        made.append(Part(f"{NAME}/mixture-{epsilon:g}", run_mixture, mixture, (Priced,)))
        for world in ("fair", "unfair"):
            arguments = {
                "world": world,
                "epsilon": epsilon,
                "repeats": 50 if settings.quick else 1000,
                "adaptive": runs if epsilon in chosen else 0,
                "seed": settings.seed,
            }
            made.append(Part(f"{NAME}/{world}-{epsilon:g}", run_epsilon, arguments, (Priced,)))
    return made


def run_epsilon(world: str, epsilon: float, repeats: int, adaptive: int, seed: int) -> list[Priced]:
    """Price one world of the lower-bound family."""
    place = dict(zip(("fair", "unfair"), lower_bound_pair(epsilon, P, Q), strict=True))[world]
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    floors = {
        "least": float(lower_bound(place, question, COSTS)),
        "theorem_3": family_bound(epsilon, DELTA, P, Q, COSTS).cost,
    }
    made = []
    for audit, bound in (("baseline", baseline_bound), ("rs", rs_bound)):
        sim = simulate(audit, place, question, COSTS, repeats=repeats, seed=seed)
        most = bound(place, question, COSTS).cost
        made.append(Priced.of(world, audit, sim, most, **floors))
    if adaptive:
        sim = simulate("adaptive", place, question, COSTS, repeats=adaptive, seed=seed)
        made.append(Priced.of(world, "adaptive", sim, **floors))
    return made


def run_mixture(epsilon: float, repeats: int, seed: int) -> list[Priced]:
    """Price Exp-Audit as published where its assumptions hold: known laws, 7 sigma apart."""
    world = MixtureWorld.synthetic(14.0)
    cells = CellWorld(world.cells, world.r)
    question = Question(gamma=0.0, epsilon=epsilon, delta=DELTA)
    exp = simulate(
        "exp", world, question, MIXTURE_COSTS, repeats=repeats, seed=seed, weights="published"
    )
    rs = simulate("rs", cells, question, MIXTURE_COSTS, repeats=repeats, seed=seed)
    most, most_rs = (bound(cells, question, MIXTURE_COSTS).cost for bound in (exp_bound, rs_bound))
    return [Priced.of("mixture", "exp", exp, most), Priced.of("mixture", "rs", rs, most_rs)]


def tell(results: Sequence[Result], settings: Settings) -> Chapter:
    """Return the chapter."""
    order = ("fair", "unfair", "mixture")
    rows = sorted(of_kind(results, Priced), key=lambda r: (order.index(r.world), -r.epsilon))
    return make_chapter(
        NAME,
        values={"p": P, "q": Q, "delta": DELTA, "seed": settings.seed},
        found=_findings(rows),
        tables={
            "costs": [r for r in rows if r.world != "mixture"],
            "theorem-4": [r for r in rows if r.world == "mixture"],
        },
        pictures={"costs": lambda: _draw(rows)},
    )


def _findings(rows: Sequence[Priced]) -> list[str]:
    frames = words_of(NAME)["found"]
    pair = [r for r in rows if r.world != "mixture"]
    baseline, rs = (_of(pair, "unfair", audit) for audit in ("baseline", "rs"))
    ours, exp = [r for r in pair if r.audit == "adaptive"], _of(rows, "mixture", "exp")
    first, last = rs[0], rs[-1]
    shrinks = math.log(last.epsilon / first.epsilon)
    multiples = [r.cost / r.least for r in ours]
    bounded = [r for r in pair if r.audit != "adaptive"]
    least = [r.least for r in (first, last)]
    return [
        frames["bounds"].format(
            within=min(r.within for r in bounded),
            wrong=max(r.wrong for r in bounded),
            delta=DELTA,
        ),
        frames["order"].format(
            first=first.epsilon,
            last=last.epsilon,
            slope_rs=math.log(last.cost / first.cost) / shrinks,
            slope_bound=math.log(least[1] / least[0]) / shrinks,
        ),
        frames["constant"].format(
            last=last.epsilon,
            rs=last.cost,
            bound=least[1],
            multiple=last.cost / least[1],
            theorem_3=last.theorem_3,
            baseline=baseline[-1].cost / last.cost,
        ),
        frames["adaptive"].format(low=min(multiples), high=max(multiples)),
        frames["theorem_4"].format(
            within=min(r.within for r in exp),
            wrong=max(r.wrong for r in exp),
            share=exp[-1].cost / exp[-1].bound,
            epsilon=exp[-1].epsilon,
        ),
    ]


def _of(rows: Sequence[Priced], world: str, audit: str) -> list[Priced]:
    return [r for r in rows if r.world == world and r.audit == audit]


def _draw(rows: Sequence[Priced]) -> Figure:
    figure, panels = new_figure(2, 2, height=4.0)
    titles = {
        "fair": "Delta = 0: FAIR",
        "unfair": "Delta > epsilon: UNFAIR",
        "mixture": "Mixture, c_feat = 0.5, c_lab = 3",
    }
    flat = [*panels[0], *panels[1]]
    for axes, (world, title) in zip(flat, titles.items(), strict=False):
        _draw_world(axes, [r for r in rows if r.world == world])
        cost = "cost (log scale)" if world == "mixture" else "cost (failed overrides, log scale)"
        axes.set(title=title, xscale="log", yscale="log", ylabel=cost)
    _draw_shares(flat[-1], rows)
    for axes in flat:
        axes.set_xlabel("epsilon (log scale)")
    legend_below(figure, flat[:-1], columns=3)
    return figure


def _draw_world(axes: Axes, rows: Sequence[Priced]) -> None:
    """Draw every audit's cost, the upper bound of its theorem, and the lower bounds."""
    for audit in dict.fromkeys(r.audit for r in rows):
        here = [r for r in rows if r.audit == audit]
        x, (name, colour, marker, dashes) = [r.epsilon for r in here], AUDITS[audit]
        errors = [2 * r.se for r in here]
        axes.errorbar(
            x, [r.cost for r in here], errors,
            color=colour, marker=marker, linestyle=dashes, capsize=2, label=name,
        )  # fmt: skip
        if audit in THEOREMS:
            label = f"Theorem {THEOREMS[audit]}, upper bound"
            axes.plot(x, [r.bound for r in here], color=colour, lw=0.8, alpha=0.7, label=label)
    floor = [r for r in rows if r.audit == "rs" and not math.isnan(r.least)]
    if floor:
        x, (name, colour, *_) = [r.epsilon for r in floor], AUDITS["bound"]
        axes.plot(x, [r.least for r in floor], color=colour, label=name)
        third = [r.theorem_3 for r in floor]
        axes.plot(x, third, color=colour, linestyle=":", label="Theorem 3, lower bound")


def _draw_shares(axes: Axes, rows: Sequence[Priced]) -> None:
    """Draw every audit's mean cost as a share of its theorem's bound."""
    for audit, theorem in THEOREMS.items():
        here = _of(rows, "mixture" if audit == "exp" else "unfair", audit)
        name, colour, marker, dashes = AUDITS[audit]
        shares = [r.cost / r.bound for r in here]
        x, label = [r.epsilon for r in here], f"{name} / Theorem {theorem}"
        axes.plot(x, shares, color=colour, marker=marker, linestyle=dashes, label=label)
    axes.axhline(1.0, color="#555555", lw=1.2)
    axes.text(0.05, 1.003, "the theorem's bound", fontsize=8.5, ha="center", va="bottom")
    axes.set(
        title="Cost as a share of the bound",
        xscale="log",
        ylim=(0.8, 1.05),
        ylabel="mean cost / upper bound",
    )
    axes.legend(fontsize=8.5, loc="lower center")
