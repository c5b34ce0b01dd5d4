"""What the two mixture-model experiments share: runs, priced afterwards, and their pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pandas import DataFrame, Series

from equipoise.audits.estimated_rates import paper_tau
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.weights import ExpConstants
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, World
from paper.blackbox import run_phases
from paper.page import where
from paper.pictures import AUDITS, TRUTH, band, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTA = 0.01
REGIMES = ("as run", "without caps")
WHOLE_PAST = 10**8  # rows counted of a past whose shares are known
TAU_CAP, R_CAP = 1000, 20_000

Pair = tuple[float, float]
Row = dict[str, object]


@dataclass(frozen=True)
class Constants:
    """tau, tau' and R of one group in one regime."""

    tau: int
    coarse: int
    features: int

    @classmethod
    def of(cls, regime: str, epsilon: float, smaller: float) -> Constants:
        """Return them; ``smaller`` is the weight of the group's rarer outcome.

        "as run": the authors' constants with the paper's caps; "without caps": the theorems'.
        """
        if regime == "as run":
            log_24, log_8 = math.log(24.0 / DELTA), math.log(8.0 / DELTA)
            tau = math.ceil(2.0 * log_24 / epsilon**2)
            features = math.ceil(500.0 * log_8 / (smaller * epsilon**2))
            return cls(min(tau, TAU_CAP), math.ceil(0.5 * log_24 / 0.2**2), min(features, R_CAP))
        proof = ExpConstants(epsilon, DELTA, 2)
        tau = paper_tau(Question(gamma=0.0, epsilon=epsilon, delta=DELTA), 2)
        return cls(tau, proof.coarse_tau, proof.map_features(smaller))


def run_published(
    at: int,
    world: World,
    cells: CellWorld,
    model: MixtureModel,
    questions: Sequence[Question],
    smaller: float,
    *,
    seed: int,
    rng: np.random.Generator,
) -> list[Row]:
    """Run RS-Audit and Exp-Audit as published on every question, with one model of the past.

    A row has the requests to denied people (labels and features) and the failures among the labels,
    so that any pair of costs can be put on it.
    """
    rows = []
    for question in questions:
        for regime in REGIMES:
            constants = Constants.of(regime, question.epsilon, smaller)
            phases = run_phases("rs", cells, constants.tau, repeats=1, rng=rng)
            options: dict[str, object] = {"weights": "published", "model": model}
            if regime == "as run":
                options |= {"tau": WHOLE_PAST, "coarse_tau": constants.coarse}
                options |= {"features": constants.features}
            sim = simulate(
                "exp", world, question, Costs(0.0, 1.0), repeats=1, seed=seed,
                **options,  # type: ignore[arg-type]
            )  # fmt: skip
            found = {
                "rs": (phases.labels[0], phases.failures[0], phases.estimate[0]),
                "exp": (sim.labels[0] + sim.features[0], sim.cost[0], sim.estimate[0]),
            }
            for audit, (requests, failures, estimate) in found.items():
                unfair = estimate > question.gamma + question.epsilon / 2.0
                rows.append(
                    {
                        "run": at,
                        "regime": regime,
                        "gamma": question.gamma,
                        "epsilon": question.epsilon,
                        "audit": audit,
                        "requests": int(requests),
                        "failures": int(failures),
                        "estimate": float(estimate),
                        "verdict": "UNFAIR" if unfair else "FAIR",
                    }
                )
    return rows


def run_adaptive(
    cells: CellWorld, questions: Sequence[Question], pairs: Sequence[Pair], repeats: int, seed: int
) -> DataFrame:
    """Run the adaptive audit at every pair of costs, which its choice of groups depends on."""
    rows = []
    for question in questions:
        for pair in pairs:
            sim = simulate("adaptive", cells, question, Costs(*pair), repeats=repeats, seed=seed)
            at = {"epsilon": question.epsilon, "c_feat": pair[0], "c_lab": pair[1]}
            rows.append({**at, "cost": sim.cost.mean(), "cost_sd": sim.cost.std(ddof=1)})
    return DataFrame(rows)


def cost_of(runs: DataFrame, pair: Pair) -> Series[float]:
    """Return what runs cost: every request at c_feat, every failure c_lab more."""
    return pair[0] * runs.requests + pair[1] * runs.failures


# -- pictures --------------------------------------------------------------------------------------


def draw_all(
    runs: DataFrame,
    adaptive: DataFrame,
    pairs: Sequence[Pair],
    truth: float,
    booked: DataFrame | None = None,
) -> Figure:
    """Draw cost against epsilon, a row per pair of costs, and the estimated EOD below.

    Left as run, right without caps. ``booked`` has exact costs as the authors' code books them.
    """
    figure, panels = new_figure(len(pairs) + 1, 2, height=2.6)
    for column, regime in enumerate(REGIMES):
        here = where(runs, regime=regime)
        for row, pair in zip(panels, pairs, strict=False):
            mine = None if booked is None else where(booked, regime=regime)
            draw_cost(row[column], here, adaptive, pair, mine)
        draw_estimate(panels[-1][column], here, truth)
        panels[0][column].set_title(f"{regime}: {panels[0][column].get_title()}")
    legend_below(figure, [axes for row in panels for axes in row], columns=3)
    return figure


def draw_cost(
    axes: Axes,
    runs: DataFrame,
    adaptive: DataFrame,
    pair: Pair,
    booked: DataFrame | None = None,
) -> None:
    """Draw cost against epsilon at one pair of costs."""
    at = {"c_feat": pair[0], "c_lab": pair[1]}
    for audit in ("rs", "exp"):
        mine = where(runs, audit=audit)
        by_epsilon = cost_of(mine, pair).groupby(mine.epsilon).agg(["mean", "std"])
        band(axes, audit, by_epsilon.index, by_epsilon["mean"], by_epsilon["std"])
        if booked is not None:
            name, colour, *_ = AUDITS[audit]
            lines, label = where(booked, **at), f"{name} as the authors' code books it"
            y = lines[f"{audit}_booked"]
            axes.plot(lines.epsilon, y, color=colour, ls=(0, (1, 2)), lw=1.2, label=label)
    ours = where(adaptive, **at).query("cost > 0")  # what is free has no place on a log scale
    if len(ours):
        band(axes, "adaptive", ours.epsilon, ours.cost, ours.cost_sd)
    axes.set(title=f"c_feat = {pair[0]:g}, c_lab = {pair[1]:g}", xscale="log", yscale="log")
    axes.set(xlabel="epsilon (log scale)", ylabel="cost (log scale)")


def draw_estimate(axes: Axes, runs: DataFrame, truth: float) -> None:
    """Draw the estimated EOD against epsilon."""
    for audit in ("rs", "exp"):
        by_epsilon = where(runs, audit=audit).groupby("epsilon").estimate.agg(["mean", "std"])
        band(axes, audit, by_epsilon.index, by_epsilon["mean"], by_epsilon["std"])
    axes.axhline(truth, color=TRUTH, lw=1.5, label="true EOD")
    axes.set(xscale="log", xlabel="epsilon (log scale)", ylabel="estimated EOD", ylim=(0, None))
