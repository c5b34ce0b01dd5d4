"""What the two mixture-model experiments share: runs, priced afterwards, and their pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame, Series

from equipoise.audits.tau_audits import paper_tau
from equipoise.mixture.exp_model import ExpConstants
from equipoise.mixture.model import MixtureModel
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, World
from paper.label_phases import run_phases
from paper.style import AUDITS, TRUTH, band, legend_below, new_figure
from paper.work import Rows, Value, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DELTA",
    "Constants",
    "cost_of",
    "decide",
    "draw_costs",
    "draw_estimates",
    "run_adaptive",
    "run_exp",
    "run_published",
]

DELTA = 0.01
WHOLE_PAST = 10**8  # rows counted of a past whose shares are known
TAU_CAP, R_CAP = 1000, 20_000

Pair = tuple[float, float]


@dataclass(frozen=True)
class Constants:
    """tau, tau' and R of one group in one regime."""

    tau: int
    coarse: int
    features: int

    @classmethod
    def of(cls, regime: str, epsilon: float, smaller: float) -> Constants:
        """Return them; ``smaller`` is the weight of the group's rarer outcome.

        "as run": the authors' constants with the paper's caps; "capped": the theorems' with these
        caps; "without caps": the theorems'.
        """
        if regime == "as run":
            log_24, log_8 = math.log(24.0 / DELTA), math.log(8.0 / DELTA)
            tau = math.ceil(2.0 * log_24 / epsilon**2)
            features = math.ceil(500.0 * log_8 / (smaller * epsilon**2))
            return cls(min(tau, TAU_CAP), math.ceil(0.5 * log_24 / 0.2**2), min(features, R_CAP))
        proof = ExpConstants(epsilon, DELTA, 2)
        tau = paper_tau(Question(gamma=0.0, epsilon=epsilon, delta=DELTA), 2)
        features = proof.map_features(smaller)
        if regime == "capped":
            return cls(min(tau, TAU_CAP), proof.coarse_tau, min(features, R_CAP))
        return cls(tau, proof.coarse_tau, features)

    def options(self) -> dict[str, object]:
        """Return Exp-Audit's options where its constants are not the proof's."""
        return {"tau": WHOLE_PAST, "coarse_tau": self.coarse, "features": self.features}


def run_published(
    run: int,
    world: World,
    cells: CellWorld,
    model: MixtureModel,
    questions: Sequence[Question],
    regimes: Sequence[str],
    smaller: float,
    *,
    seed: int,
    rng: np.random.Generator,
) -> Rows:
    """Run RS-Audit and Exp-Audit as published on every question, with one model of the past.

    A row has the requests to denied people (labels and features) and the failures among the labels,
    so that any pair of costs can be put on it.
    """
    rows: Rows = []
    capped: dict[Constants, dict[str, Value]] = {}  # one run serves every question alike
    for question in questions:
        for regime in regimes:
            constants = Constants.of(regime, question.epsilon, smaller)
            phases = run_phases("rs", cells, constants.tau, repeats=1, rng=rng)
            rs: dict[str, Value] = {
                "requests": int(phases.labels[0]),
                "failures": int(phases.failures[0]),
                "estimate": float(phases.estimate[0]),
            }
            options = {} if regime == "without caps" else constants.options()
            if not options or constants not in capped:
                capped[constants] = run_exp(
                    world, question, model, seed, weights="published", **options
                )
            asked: dict[str, Value] = {
                "run": run,
                "regime": regime,
                "gamma": question.gamma,
                "epsilon": question.epsilon,
            }
            for audit, found in (("rs", rs), ("exp", capped[constants])):
                verdict = decide(float(found["estimate"] or 0.0), question)
                rows.append({**asked, "audit": audit, **found, "verdict": verdict})
    return rows


def run_exp(
    world: World, question: Question, model: MixtureModel, seed: int, **options: object
) -> dict[str, Value]:
    """Run Exp-Audit once."""
    sim = simulate(
        "exp", world, question, Costs(0.0, 1.0), repeats=1, seed=seed,
        model=model, **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return {
        "requests": int(sim.labels[0] + sim.features[0]),
        "failures": int(sim.cost[0]),
        "estimate": float(sim.estimate[0]),
    }


def run_adaptive(
    cells: CellWorld, question: Question, costs: Costs, repeats: int, seed: int
) -> dict[str, Value]:
    """Run the adaptive audit at one pair of costs, which its choice of groups depends on."""
    sim = simulate("adaptive", cells, question, costs, repeats=repeats, seed=seed)
    return {
        "gamma": question.gamma,
        "epsilon": question.epsilon,
        "feature": costs.feature,
        "label": costs.label,
        "repeats": repeats,
        "cost": float(sim.cost.mean()),
        "cost_sd": float(sim.cost.std(ddof=1)),
        "wrong": int(sim.wrong.sum()),
    }


def decide(estimate: float, question: Question) -> str:
    """Return the paper's verdict on an estimate."""
    return "UNFAIR" if estimate > question.gamma + question.epsilon / 2.0 else "FAIR"


def cost_of(runs: DataFrame, pair: Pair) -> Series[float]:
    """Return what runs cost: every request at c_feat, every failure c_lab more."""
    return pair[0] * runs.requests + pair[1] * runs.failures


# -- pictures --------------------------------------------------------------------------------------


def draw_costs(
    runs: DataFrame,
    adaptive: DataFrame,
    regime: str,
    pairs: Sequence[Pair],
    *,
    others: DataFrame | None = None,
) -> Figure:
    """Draw cost against epsilon, a panel per pair of costs.

    ``others`` has exact lines by ``feature``, ``label`` and ``epsilon``: the bound C*, and costs as
    the authors' code books them.
    """
    figure, panels = new_figure(-(-len(pairs) // 2), 2, height=3.3)
    flat = [axes for row in panels for axes in row]
    for axes, pair in zip(flat, pairs, strict=False):
        draw_cost(axes, where(runs, regime=regime), adaptive, pair, others)
    for axes in flat[len(pairs) :]:
        axes.set_visible(False)
    legend_below(figure, flat[: len(pairs)], columns=2)
    return figure


def draw_cost(
    axes: Axes,
    runs: DataFrame,
    adaptive: DataFrame,
    pair: Pair,
    others: DataFrame | None = None,
) -> None:
    """Draw cost against epsilon at one pair of costs."""
    lines = DataFrame() if others is None else _at(others, pair)
    for audit in ("rs", "exp"):
        mine = runs[runs.audit == audit]
        _band(axes, audit, mine.epsilon, cost_of(mine, pair))
        if f"{audit}_booked" in lines:
            name, colour, *_ = AUDITS[audit]
            label = f"{name} as the authors' code books it"
            booked = lines[f"{audit}_booked"]
            axes.plot(lines.epsilon, booked, color=colour, ls=(0, (1, 2)), lw=1.2, label=label)
    ours = _at(adaptive, pair).query("cost > 0")  # what is free has no place on a log scale
    if len(ours):
        band(axes, "adaptive", ours.epsilon, ours.cost, ours.cost_sd)
    if "bound" in lines:
        name, colour, _, dashes = AUDITS["bound"]
        axes.plot(lines.epsilon, lines.bound, color=colour, ls=dashes, lw=1.4, label=name)
    axes.set(title=f"c_feat = {pair[0]:g}, c_lab = {pair[1]:g}", xscale="log", yscale="log")
    axes.set(xlabel="epsilon (log scale)", ylabel="cost (log scale)")


def draw_estimates(runs: DataFrame, truth: float) -> Figure:
    """Draw the estimated EOD against epsilon, a panel per regime, the true value marked."""
    figure, panels = new_figure(1, 2, height=3.8)
    for axes, regime in zip(panels[0], ("as run", "without caps"), strict=True):
        draw_estimate(axes, where(runs, regime=regime), truth)
        axes.set_title({"as run": "as run, with caps"}.get(regime, regime))
    legend_below(figure, panels[0], columns=3)
    return figure


def draw_estimate(axes: Axes, runs: DataFrame, truth: float) -> None:
    """Draw the estimated EOD against epsilon."""
    for audit in ("rs", "exp"):
        if len(mine := runs[runs.audit == audit]):
            _band(axes, audit, mine.epsilon, mine.estimate)
    axes.axhline(truth, color=TRUTH, lw=1.5, label="true EOD")
    axes.set(xscale="log", xlabel="epsilon (log scale)", ylabel="estimated EOD", ylim=(0, None))


def _at(rows: DataFrame, pair: Pair) -> DataFrame:
    return rows[(rows.feature == pair[0]) & (rows.label == pair[1])].sort_values("epsilon")


def _band(axes: Axes, audit: str, epsilon: Series[float], values: Series[float]) -> None:
    """Draw the mean over the runs at every epsilon, and their spread."""
    by_epsilon = values.groupby(epsilon).agg(["mean", "std"])
    band(axes, audit, by_epsilon.index, by_epsilon["mean"], by_epsilon["std"])
