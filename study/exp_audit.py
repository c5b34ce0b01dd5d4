"""Exp-Audit: error rates at the boundaries, what happens without separation, cost against RS."""

from __future__ import annotations

import argparse

import numpy as np
from bench.measure import table
from rich.console import Group
from rich.table import Table

import equipoise as eq
from equipoise.worlds import CellWorld, MixtureWorld

GAMMA, DELTA = 0.05, 0.05
EPSILONS = (0.5, 0.25, 0.1)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--rows", type=int, default=50_000, help="past people the laws come from")


def run(options: argparse.Namespace) -> Group:
    return Group(
        _error_rates(options.runs, options.rows),
        _without_separation(max(options.runs // 25, 5), options.rows),
        _costs(),
    )


def world_at(difference: float, separation: float, rows: int | None) -> MixtureWorld:
    """Return the synthetic world with this equalized-odds difference."""
    middle = {"1": 0.5 + difference / 2.0, "0": 0.5 - difference / 2.0}
    return MixtureWorld.synthetic(separation, approval=middle, feature_rows=rows)


def _error_rates(runs: int, rows: int) -> Table:
    fewer = max(runs // 5, 5)
    out = table(
        f"Means 14 (7 standard deviations) apart, gamma={GAMMA}, delta={DELTA}: share of wrong "
        f"verdicts; laws known ({runs} runs) or estimated from {rows:,} past people ({fewer} runs)",
        "epsilon, truth",
        "published, known",
        "default, known",
        "default, estimated",
        "of these by labels",
        "features, default",
    )
    costs = eq.Costs(0.5, 3.0)
    for epsilon in EPSILONS:
        for truth, difference in (("FAIR", GAMMA), ("UNFAIR", GAMMA + 1.001 * epsilon)):
            question = eq.Question(gamma=GAMMA, epsilon=epsilon, delta=DELTA)
            world = world_at(difference - 1e-9 * (truth == "FAIR"), 14.0, None)
            published = eq.simulate("exp", world, question, costs, repeats=runs, weights="map")
            known = eq.simulate("exp", world, question, costs, repeats=runs)
            estimated = eq.simulate(
                "exp", world.with_feature_rows(rows), question, costs, repeats=fewer
            )
            by_labels = estimated.labels > 3 * np.median(known.labels)
            out.add_row(
                f"{epsilon}, {truth}",
                f"{published.wrong.mean():.3f}",
                f"{known.wrong.mean():.3f}",
                f"{estimated.wrong.mean():.3f}",
                f"{by_labels.mean():.3f}",
                f"{known.features.mean():,.0f}",
            )
    return out


def _without_separation(runs: int, rows: int) -> Table:
    out = table(
        f"Means 2 (1 standard deviation) apart, FAIR (Delta = 0), {runs} runs",
        "epsilon, laws",
        "wrong, default",
        "wrong, published",
        "estimate, published",
        "features, default",
        "labels, default",
    )
    for epsilon in (0.5, 0.25):
        for known in (False, True):
            question = eq.Question(gamma=GAMMA, epsilon=epsilon, delta=DELTA)
            world = world_at(0.0, 2.0, None if known else rows)
            default, published = (
                eq.simulate("exp", world, question, eq.Costs(0.5, 3.0), repeats=runs, **options)
                for options in ({}, {"weights": "map"})
            )
            out.add_row(
                f"{epsilon}, {'known' if known else 'estimated'}",
                f"{default.wrong.mean():.3f}",
                f"{published.wrong.mean():.3f}",
                f"{published.estimate.mean():.3f}",
                f"{default.features.mean():,.0f}",
                f"{default.labels.mean():,.0f}",
            )
    return out


def _costs(runs: int = 5) -> Table:
    out = table(
        f"Cost against RS-Audit at the proofs' constants, delta=0.01, laws known, mean of {runs}",
        "epsilon, c_feat, c_lab",
        "RS-Audit",
        "published",
        "/ RS",
        "default",
        "/ RS",
        "likelihood",
        "/ RS",
    )
    world = MixtureWorld.synthetic(14.0)
    cells = CellWorld(world.cells, world.r)
    for epsilon in (0.8, 0.5, 0.25, 0.1, 0.05):
        for feature, label in ((0.5, 0.25), (0.5, 0.5), (0.5, 1.0), (0.5, 3.0), (0.0, 1.0)):
            question = eq.Question(gamma=0.0, epsilon=epsilon, delta=0.01)
            costs = eq.Costs(feature, label)
            rs = eq.simulate("rs", cells, question, costs, repeats=runs).cost.mean()
            row = [f"{epsilon}, {feature}, {label}", f"{rs:,.0f}"]
            for weights in ("map", "auto", "likelihood"):
                cost = eq.simulate(
                    "exp", world, question, costs, repeats=runs, weights=weights
                ).cost.mean()
                row += [f"{cost:,.0f}", f"{cost / rs:.2f}"]
            out.add_row(*row)
    return out
