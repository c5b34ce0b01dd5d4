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
from equipoise.bounds.theorems import outcome_shares, price_per_arrival
from equipoise.mixture import MixtureModel
from equipoise.mixture.likelihood_weights import Pair, log_ratio
from equipoise.mixture.map_weights import Branch, ExpConstants, choose_branch
from equipoise.worlds import CellWorld, MixtureWorld
from equipoise.worlds.mixture import GroupMixture
from study import _resumed
from study._resumed import Run, mean

GAMMA, EPSILON, DELTA = 0.05, 0.25, 0.05
QUESTION = eq.Question("equal_opportunity", gamma=GAMMA, epsilon=EPSILON, delta=DELTA)
SEPARATIONS = (0.5, 3.0, 4.0, 5.0, 7.0, 12.0)
CLASSIFIERS = {"all of outcome 0": -np.pi / 2.0, "across": 0.0}


FRESH = 50_000  # seeds from here on: none was looked at while Exp-Audit was made


class Point(NamedTuple):
    """The classifier's tilt and mean approval of outcome 1, the laws' distance, past, price.

    ``lean`` is 1 if group "1" is approved more often, -1 if group "0" is.
    """

    tilt: float
    separation: float
    approval: float = 0.5
    rows: int = 20_000
    feature: float = 0.5
    dimension: int = 5
    lean: float = 1.0

    @property
    def costs(self) -> eq.Costs:
        return eq.Costs(self.feature, 3.0)


POINTS = {f"{name}, {s:g} sd": Point(t, s) for name, t in CLASSIFIERS.items() for s in SEPARATIONS}
POINTS |= {
    f"few approved of 1,500, features free, {s:g} sd": Point(0.0, s, 0.3, 1_500, 0.0, 2, -1.0)
    for s in (2.0, 3.0, 5.0, 6.0, 8.0)
}


def add_options(parser: argparse.ArgumentParser) -> None:
    _resumed.add_options(parser, runs=500)


def run(options: argparse.Namespace) -> Table:
    made = _resumed.collect(options, list(POINTS), one_run)
    out = table(
        f"gamma={GAMMA}, epsilon={EPSILON}, delta={DELTA}, c_feat=0.5, c_lab=3, laws estimated "
        f"from 20,000 past people if not said otherwise, {min(map(len, made.values()))} runs: half "
        "at gap = gamma, half at gamma + epsilon. The cheapest way is that of each run's own past.",
        *("classifier, separation", "wrong", "by labels", "cost", "/ cheapest", "± 2 se"),
    )
    for point, runs in made.items():
        numbers = [f"{mean(runs, key):.3f}" for key in ("wrong", "by labels")]
        cost, cheapest = (np.array([r[key] for r in runs]) for key in ("cost", "cheapest"))
        ratio = float(cost.mean() / cheapest.mean())
        error = float(np.std(cost - ratio * cheapest) / cheapest.mean() / np.sqrt(len(runs)))
        out.add_row(point, *numbers, f"{cost.mean():,.0f}", f"{ratio:.3f}", f"{2 * error:.3f}")
    return out


def one_run(point: str, number: int) -> Run:
    """Fit to a past of its own and run at one of the boundaries."""
    setting, number = POINTS[point], number + FRESH
    world = world_at((GAMMA - 1e-9, GAMMA + 1.001 * EPSILON)[number % 2], setting)
    past = replace(world, feature_rows=setting.rows).past(seed=[number, 1])
    model = replace(past.features, held_out=0.0).model
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
    half = point.lean * difference / 2.0
    return MixtureWorld.synthetic(
        2.0 * point.separation,
        approval={"1": point.approval + half, "0": point.approval - half},
        tilt=point.tilt,
        dimension=point.dimension,
    )


def cheapest_way(world: MixtureWorld, model: MixtureModel, costs: eq.Costs) -> float:
    """Return the least expected cost among the ways that are valid with this model.

    MAP counts are if the true laws say so; likelihood weights if their error is foreseen so small.
    """
    constants, cells = ExpConstants(EPSILON, DELTA / 2.0, 2), CellWorld(world.cells, world.r)
    if model.problems:
        return expectation("rs", cells, replace(QUESTION, delta=DELTA / 2.0), costs).cost
    prices = [by_labels(world, costs)]
    ways = {
        group: choose_branch(model.of(group), (1.0 - m.q, m.q), constants, weights="likelihood")
        for group, m in world.mixtures.items()
    }  # labels, where there is no way
    prices.append(expected_cost(cells, constants, ways, costs))
    counted = {
        group: Branch("map", "", constants.map_features(min(m.q, 1.0 - m.q)))
        for group, m in world.mixtures.items()
    }
    by_map = expected_cost(cells, constants, counted, costs)
    if by_map < min(prices) and all(
        map_counts_are_valid(model.of(group), m) for group, m in world.mixtures.items()
    ):
        prices.append(by_map)
    return min(prices)


def map_counts_are_valid(fits: Pair, mixture: GroupMixture) -> bool:
    """Say whether plain MAP counts with these fits are as near to q as the proof needs.

    Misjudged people of the two outcomes who make up for each other by chance do not count.
    """
    rng, size = np.random.default_rng(0), 2**17
    q, (zero, one) = mixture.q, mixture.laws
    says_one = [
        float(
            (
                log_ratio(fits, law.family.sample(law.theta, size, rng)) > np.log(1.0 / q - 1.0)
            ).mean()
        )
        for law in (zero, one)
    ]
    misjudged = max((1.0 - q) * says_one[0], q * (1.0 - says_one[1]))
    return misjudged <= EPSILON * min(q, 1.0 - q) / 20.0


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
    total, q = 0.0, outcome_shares(world)
    for a, (group, price) in enumerate(
        zip(world.groups, price_per_arrival(world, costs), strict=True)
    ):
        total += constants.coarse_tau * float((1.0 / q[:, a]).sum()) * price.cost
        if not by_labels:
            features = ways[group].features * price.labels / float(q[:, a].sum())
            total += features * costs.of(group).feature
    if by_labels:
        total += expectation("rs", world, replace(QUESTION, delta=DELTA / 2.0), costs).cost
    return total
