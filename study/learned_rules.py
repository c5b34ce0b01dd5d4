"""Exp-Audit behind a rule that cannot be asked: error, and cost against a known classifier."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache

import numpy as np
from rich.table import Table
from scipy.special import ndtri
from tests.support.tables import table

import equipoise as eq
from equipoise.mixture import Gaussian, HalfSpace
from equipoise.worlds.mixture import GroupMixture, MixtureWorld
from study import _resumed
from study._resumed import Run, mean

GAMMA, EPSILON, DELTA = 0.05, 0.25, 0.05
COSTS = eq.Costs(0.5, 3.0)
QUESTION = eq.Question("equal_opportunity", gamma=GAMMA, epsilon=EPSILON, delta=DELTA)
SIZES = (1_000, 10_000, 100_000)
NORMALS = {"threshold": (0.0, 1.0), "half_space": (0.1, 1.0)}
POINTS = {f"{rules}, {size:,}": (rules, size) for rules in NORMALS for size in SIZES}
COARSE_LABELS = 40_000  # more than the coarse look ever takes here: the verdict was by labels


def add_options(parser: argparse.ArgumentParser) -> None:
    _resumed.add_options(parser, runs=500)


def run(options: argparse.Namespace) -> Table:
    made = _resumed.collect(options, list(POINTS), one_run)
    out = table(
        f"Two columns, laws 6 standard deviations apart, gamma={GAMMA}, epsilon={EPSILON}, "
        f"delta={DELTA}, c_feat=0.5, c_lab=3, {min(map(len, made.values()))} runs a row: half at "
        "gap = gamma, half at gamma + epsilon",
        "rule, past people",
        "wrong, learnt",
        "wrong, known",
        "by labels, learnt",
        "by labels, known",
        "cost, learnt",
        "cost, known",
        "ratio",
    )
    for point, runs in made.items():
        keys = [f"{what}, {how}" for what in ("wrong", "by labels") for how in ("learnt", "known")]
        learnt, known = mean(runs, "cost, learnt"), mean(runs, "cost, known")
        costs = f"{learnt:,.0f}", f"{known:,.0f}", f"{learnt / known:.3f}"
        out.add_row(point, *(f"{mean(runs, key):.3f}" for key in keys), *costs)
    return out


def one_run(point: str, number: int) -> Run:
    """Run once with the classifier and once without it, on the same past people."""
    rules, size = POINTS[point]
    world = world_at((GAMMA - 1e-9, GAMMA + 1.001 * EPSILON)[number % 2], rules)
    past = replace(world, feature_rows=size).past(seed=[number, 1])
    made: Run = {}
    learnt = replace(past.features, accepts=rules).model
    for how, model in (("learnt", learnt), ("known", past.model)):
        sim = eq.simulate("exp", world, QUESTION, COSTS, repeats=1, seed=number, model=model)
        made[f"wrong, {how}"] = float(sim.wrong[0])
        made[f"by labels, {how}"] = float(sim.labels[0] > COARSE_LABELS)
        made[f"cost, {how}"] = float(sim.cost[0])
    return made


@cache
def world_at(difference: float, rules: str) -> MixtureWorld:
    """Return a world whose TPRs lie this far apart, behind a rule of the class."""
    family, normal = Gaussian("full"), np.array(NORMALS[rules])
    good, mixtures = np.array([6.0, 0.0]), {}
    for group, share, q, side in (("1", 0.7, 0.7, 0.5), ("0", 0.3, 0.4, -0.5)):
        rate = 0.5 + side * difference
        offset = float(normal @ good - np.linalg.norm(normal) * ndtri(rate))
        thetas = family.pack([0.0, 0.0], np.eye(2)), family.pack(good, np.eye(2))
        cut = HalfSpace(normal, offset)
        mixtures[group] = GroupMixture.of(share, q, family, thetas, cut)
    return MixtureWorld(mixtures)
