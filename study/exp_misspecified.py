"""Exp-Audit where its model is wrong: other laws, a hidden hump, outcomes against the features."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from tests.support.tables import table

import equipoise as eq
from equipoise.errors import BadData
from equipoise.mixture import Gaussian, HalfSpace, PastFeatures
from equipoise.worlds import TableWorld
from study import _resumed
from study._resumed import Run, mean

METRIC, EPSILON, DELTA = "equal_opportunity", 0.25, 0.05
COSTS = eq.Costs(0.5, 3.0)
PEOPLE, SEPARATION, ROWS = 100_000, 6.0, 20_000
WEIGHTS = ("auto", "map")
ENDS = ("wrong", "no features bought", "inconclusive")

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True)
class Case:
    """What is wrong with the model."""

    noise: Noise  # around the two outcomes' places
    covariance: str = "full"  # that is fitted
    failing: float = 0.0  # of the denied whose features are those of a success


def _plain(rng: np.random.Generator, size: int) -> Floats:
    return rng.standard_normal((size, 2))


def _heavy(rng: np.random.Generator, size: int) -> Floats:
    return rng.standard_t(5, size=(size, 2)) * np.sqrt(3.0 / 5.0)


def _skewed(rng: np.random.Generator, size: int) -> Floats:
    return rng.gamma(4.0, 0.5, size=(size, 2)) - 2.0


def _tied(rng: np.random.Generator, size: int) -> Floats:
    one, other = rng.standard_normal((2, size))
    return np.column_stack([one, 0.9 * one + np.sqrt(0.19) * other])


def _hump(rng: np.random.Generator, size: int) -> Floats:
    """Give a fifth of everybody a place of their own, among the denied."""
    x = _plain(rng, size)
    away = rng.random(size) < 0.2
    x[away, 1] -= 4.0
    return x


CASES = {
    "t with 5 degrees of freedom": Case(_heavy),
    "gamma, skewness 1": Case(_skewed),
    "correlation 0.9 fitted as spherical": Case(_tied, "spherical"),
    "a hump among the denied": Case(_hump),
    "half of the denied with good features fail": Case(_plain, failing=0.5),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    _resumed.add_options(parser, runs=500)


def run(options: argparse.Namespace) -> Table:
    made = _resumed.collect(options, list(CASES), one_run)
    out = table(
        f"epsilon={EPSILON}, delta={DELTA}, laws {SEPARATION:g} standard deviations apart, fitted "
        f"to {ROWS:,} past people, {min(map(len, made.values()))} runs a row: half at gap = "
        "gamma, half at gamma + epsilon",
        "features, weights",
        *ENDS,
    )
    for name, runs in made.items():
        for weights in WEIGHTS:
            means = (mean(runs, f"{end}, {weights}") for end in ENDS)
            out.add_row(f"{name}, {weights}", *(f"{m:.3f}" for m in means))
    return out


def one_run(case: str, number: int) -> Run:
    """Fit to a past of its own, ask a question whose answer is just settled, and run."""
    world, cuts = make_world(CASES[case])
    drawn = np.random.default_rng([number, 1]).integers(len(world), size=ROWS)
    names = np.array(world.groups)[world.group[drawn]]
    assert world.features is not None
    rows = world.features[drawn], names, world.decision[drawn], world.outcome[drawn]
    model = PastFeatures(*rows, cuts, Gaussian(CASES[case].covariance), held_out=0.0).model
    truth = world.gap(METRIC)
    gamma = truth + 1e-9 if number % 2 else truth - 1.001 * EPSILON
    question = eq.Question(METRIC, gamma=gamma, epsilon=EPSILON, delta=DELTA)
    made: Run = {}
    for weights in WEIGHTS:
        ends = 0.0, 1.0, 1.0  # where there is no model at all, and MAP counts were insisted on
        with contextlib.suppress(BadData):
            options = {"model": model, "weights": weights}
            sim = eq.simulate("exp", world, question, COSTS, repeats=1, seed=number, **options)
            silent = sim.verdict[0] == "INCONCLUSIVE"
            ends = float(sim.wrong[0]), float(sim.features[0] == 0), float(silent)
        made |= {f"{end}, {weights}": x for end, x in zip(ENDS, ends, strict=True)}
    return made


@cache
def make_world(case: Case, seed: int = 0) -> tuple[TableWorld, dict[str, HalfSpace]]:
    """Return a table of people of two groups, and who is approved in each."""
    rng = np.random.default_rng(seed)
    group = (rng.random(PEOPLE) < 0.5).astype(np.intp)
    outcome = (rng.random(PEOPLE) < np.where(group == 1, 0.7, 0.4)).astype(np.int8)
    features = case.noise(rng, PEOPLE) + SEPARATION * outcome[:, None] * np.array([1.0, 0.0])
    cuts = {"A": HalfSpace([0.0, 1.0], -0.6), "B": HalfSpace([0.0, 1.0], 0.5)}
    decision = np.where(group == 0, cuts["A"](features), cuts["B"](features)).astype(np.int8)
    outcome[(decision == 0) & (rng.random(PEOPLE) < case.failing)] = 0
    return TableWorld(("A", "B"), group, decision, outcome, features), cuts
