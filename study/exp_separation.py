"""Exp-Audit over separations: error, and cost against the cheapest way that was open to it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.bounds import expectation
from equipoise.bounds.theorems import per_arrival, shares_of_outcomes
from equipoise.mixture import MixtureModel
from equipoise.mixture.exp_model import Branch, ExpConstants, choose_branch
from equipoise.worlds import CellWorld, MixtureWorld
from study import _resumed
from study._resumed import Run, mean

GAMMA, EPSILON, DELTA = 0.05, 0.25, 0.05
QUESTION = eq.Question("equal_opportunity", gamma=GAMMA, epsilon=EPSILON, delta=DELTA)
SEPARATIONS = (0.5, 3.0, 4.0, 5.0, 7.0, 12.0)
CLASSIFIERS = {"all of outcome 0": -np.pi / 2.0, "across": 0.0}


class Point(NamedTuple):
    """The classifier's tilt and mean approval of outcome 1, the laws' distance, past, price."""

    tilt: float
    separation: float
    approval: float = 0.5
    rows: int = 20_000
    feature: float = 0.5

    @property
    def costs(self) -> eq.Costs:
        return eq.Costs(self.feature, 3.0)


POINTS = {f"{name}, {s:g} sd": Point(t, s) for name, t in CLASSIFIERS.items() for s in SEPARATIONS}
POINTS |= {
    f"few approved of {rows:,}, features free, {s:g} sd": Point(0.0, s, 0.25, rows, 0.0)
    for s, rows in ((6.0, 12_000), (8.0, 12_000))
}


def add_options(parser: argparse.ArgumentParser) -> None:
    _resumed.add_options(parser, runs=500)


def run(options: argparse.Namespace) -> Table:
    made = _resumed.collect(options, list(POINTS), one_run)
    out = table(
        f"gamma={GAMMA}, epsilon={EPSILON}, delta={DELTA}, c_feat=0.5, c_lab=3, laws estimated "
        f"from 20,000 past people if not said otherwise, {min(map(len, made.values()))} runs: half "
        "at gap = gamma, half at gamma + epsilon. The cheapest way is that of each run's own past.",
        "classifier, separation",
        "wrong",
        "by labels",
        "cost",
        "/ cheapest",
    )
    for point, runs in made.items():
        numbers = [f"{mean(runs, key):.3f}" for key in ("wrong", "by labels")]
        cost, cheapest = mean(runs, "cost"), mean(runs, "cheapest")
        out.add_row(point, *numbers, f"{cost:,.0f}", f"{cost / cheapest:.3f}")
    return out


def one_run(point: str, number: int) -> Run:
    """Fit to a past of its own and run at one of the boundaries."""
    setting = POINTS[point]
    world = world_at((GAMMA - 1e-9, GAMMA + 1.001 * EPSILON)[number % 2], setting)
    model = world.with_feature_rows(setting.rows).past(seed=[number, 1]).model
    costs = setting.costs
    sim = eq.simulate("exp", world, QUESTION, costs, repeats=1, seed=number, model=model)
    return {
        "wrong": float(sim.wrong[0]),
        "by labels": float(sim.features[0] == 0),
        "cost": float(sim.cost[0]),
        "cheapest": cheapest_way(world, model, costs),
    }


@cache
def world_at(difference: float, point: Point) -> MixtureWorld:
    """Return the synthetic world whose TPRs lie this far apart."""
    approval = {"1": point.approval + difference / 2.0, "0": point.approval - difference / 2.0}
    return MixtureWorld.synthetic(2.0 * point.separation, approval=approval, tilt=point.tilt)


def cheapest_way(world: MixtureWorld, model: MixtureModel, costs: eq.Costs) -> float:
    """Return the least expected cost among the ways that this model allows."""
    constants, cells = ExpConstants(EPSILON, DELTA / 2.0, 2), CellWorld(world.cells, world.r)
    if model.problems:
        return expectation("rs", cells, replace(QUESTION, delta=DELTA / 2.0), costs).cost
    fits = {group: model.of(group) for group in world.mixtures}
    coarse = {group: (1.0 - m.q, m.q) for group, m in world.mixtures.items()}

    def price(weights: str) -> float:
        ways = {
            group: choose_branch(fits[group], coarse[group], constants, weights=weights)
            for group in fits
        }  # labels, where there is no way
        return expected_cost(cells, constants, ways, costs)

    return min(price("likelihood"), price("map"), by_labels(world, costs))


@cache
def by_labels(world: MixtureWorld, costs: eq.Costs) -> float:
    """Return the expected cost of the coarse look and then labels."""
    constants = ExpConstants(EPSILON, DELTA / 2.0, len(world.cells))
    nothing = dict.fromkeys(world.mixtures, Branch("fallback", ""))
    return expected_cost(CellWorld(world.cells, world.r), constants, nothing, costs)


def expected_cost(
    world: CellWorld, constants: ExpConstants, ways: Mapping[str, Branch], costs: eq.Costs
) -> float:
    """Return the mean cost of coarse labels and then features, or RS-Audit at half the level."""
    by_labels = any(way.way == "fallback" for way in ways.values())
    total, q = 0.0, shares_of_outcomes(world)
    for a, (group, price) in enumerate(zip(world.groups, per_arrival(world, costs), strict=True)):
        total += constants.coarse_tau * float((1.0 / q[:, a]).sum()) * price.cost
        if not by_labels:
            features = ways[group].features * price.labels / float(q[:, a].sum())
            total += features * costs.of(group).feature
    if by_labels:
        total += expectation("rs", world, replace(QUESTION, delta=DELTA / 2.0), costs).cost
    return total
