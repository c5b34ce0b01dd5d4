"""Exp-Audit over separations: error, cost, and the cheapest of the ways that were open to it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np
from bench.measure import table
from rich.table import Table

import equipoise as eq
from equipoise.mixture.exp_branches import ExpConstants, choose_branch
from equipoise.mixture.weight_precision import map_error_bound
from equipoise.planning.exp_forecast import exp_expectation
from equipoise.worlds import CellWorld, MixtureWorld

GAMMA, EPSILON, DELTA = 0.05, 0.25, 0.05
COSTS = eq.Costs(0.5, 3.0)
PASTS = 5  # over which the prices of the ways are averaged, each past with its own valid ways
SEPARATIONS = (0.5, 2.0, 4.0, 5.0, 7.0, 9.0, 12.0)
CLASSIFIERS = {"all of 0": -np.pi / 2.0, "across": 0.0}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500, help="half at either boundary")
    parser.add_argument("--rows", type=int, default=20_000, help="past people the laws come from")


def run(options: argparse.Namespace) -> Table:
    out = table(
        f"gamma={GAMMA}, epsilon={EPSILON}, delta={DELTA}, c_feat=0.5, c_lab=3, laws estimated "
        f"from {options.rows:,} past people, {options.runs} runs: half at Delta = gamma, half at "
        "gamma + epsilon",
        "classifier, separation",
        "wrong",
        "inconclusive",
        "by labels",
        "cost",
        "/ cheapest",
        "MAP counts",
        "likelihood",
        "labels",
    )
    for name, tilt in CLASSIFIERS.items():
        for separation in SEPARATIONS:
            row = f"{name}, {separation} sd", *_row(tilt, separation, options)
            print(*row, sep=" | ", file=sys.stderr, flush=True)
            out.add_row(*row)
    return out


def world_at(difference: float, separation: float, tilt: float, rows: int | None) -> MixtureWorld:
    """Return the synthetic world whose TPRs lie this far apart."""
    approval = {"1": 0.5 + difference / 2.0, "0": 0.5 - difference / 2.0}
    return MixtureWorld.synthetic(2.0 * separation, approval=approval, tilt=tilt, feature_rows=rows)


def _row(tilt: float, separation: float, options: argparse.Namespace) -> list[str]:
    question = eq.Question("equal_opportunity", gamma=GAMMA, epsilon=EPSILON, delta=DELTA)
    wrong, silent, labels = 0, 0, 0
    costs, cheapest, ways = [], [], []
    for difference in (GAMMA - 1e-9, GAMMA + 1.001 * EPSILON):
        world = world_at(difference, separation, tilt, options.rows)
        sim = eq.simulate("exp", world, question, COSTS, repeats=options.runs // 2)
        wrong += int(sim.wrong.sum())
        silent += int((sim.verdict == "INCONCLUSIVE").sum())
        labels += int((sim.features == 0).sum())
        open_ways = [_prices(world, question, seed) for seed in range(PASTS)]
        ways += open_ways
        costs.append(float(sim.cost.mean()))
        cheapest += [min(prices.values()) for prices in open_ways]
    mean = {way: float(np.mean([w[way] for w in ways])) for way in ways[0]}
    runs = 2 * (options.runs // 2)
    return [
        f"{wrong / runs:.3f}",
        f"{silent / runs:.3f}",
        f"{labels / runs:.3f}",
        f"{np.mean(costs):,.0f}",
        f"{np.mean(costs) / np.mean(cheapest):.2f}",
        *(f"{c:,.0f}" if np.isfinite(c) else "not valid" for c in mean.values()),
    ]


def _prices(world: MixtureWorld, question: eq.Question, seed: int) -> dict[str, float]:
    """Return the expected cost of every way, infinite where it is not valid, for one past."""
    constants = ExpConstants(EPSILON, DELTA / 2.0, 2)
    model, cells = world.past(seed=seed).model, CellWorld(world.cells, world.r)
    prices = {}
    for way in ("map", "likelihood"):
        branches = {}
        for group, mixture in world.mixtures.items():
            fits, coarse = model.of(group), (1.0 - mixture.q, mixture.q)
            branches[group] = choose_branch(fits, coarse, constants, weights=way)
            limit = EPSILON * 0.9 * min(coarse) / 36.0
            odds = coarse[1] / coarse[0]
            if way == "map" and map_error_bound(fits, odds, level=constants.level) > limit:
                branches[group] = replace(branches[group], way="fallback")
        valid = all(b.way != "fallback" for b in branches.values())
        price = exp_expectation(cells, question, COSTS, branches).cost
        prices[way] = price if valid else float("inf")
    nothing = {g: replace(b, way="fallback") for g, b in branches.items()}
    prices["labels"] = exp_expectation(cells, question, COSTS, nothing).cost
    return prices
