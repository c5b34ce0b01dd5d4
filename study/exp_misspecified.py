"""Exp-Audit where its Gaussians are wrong: heavy tails, skew, tied covariances, a hidden hump."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
from bench.measure import table
from numpy.typing import NDArray
from rich.table import Table

import equipoise as eq
from equipoise.errors import BadData
from equipoise.mixture import Gaussian, HalfSpace, fit_model
from equipoise.worlds import TableWorld

EPSILON, DELTA = 0.25, 0.05
COSTS = eq.Costs(0.5, 3.0)
PEOPLE, SEPARATION = 100_000, 6.0

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]


def _heavy(rng: np.random.Generator, size: int) -> Floats:
    return rng.standard_t(5, size=(size, 2)) * np.sqrt(3.0 / 5.0)


def _skewed(rng: np.random.Generator, size: int) -> Floats:
    return rng.gamma(4.0, 0.5, size=(size, 2)) - 2.0


def _tied(rng: np.random.Generator, size: int) -> Floats:
    one, other = rng.standard_normal((2, size))
    return np.column_stack([one, 0.9 * one + np.sqrt(0.19) * other])


def _hump(rng: np.random.Generator, size: int) -> Floats:
    """Give a fifth of everybody a place of their own, among the denied."""
    x = rng.standard_normal((size, 2))
    away = rng.random(size) < 0.2
    x[away, 1] -= 4.0
    return x


CASES: dict[str, tuple[Noise, str]] = {
    "t with 5 degrees of freedom": (_heavy, "full"),
    "gamma, skewness 1": (_skewed, "full"),
    "correlation 0.9 fitted as spherical": (_tied, "spherical"),
    "a hump among the denied": (_hump, "full"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500, help="half at either boundary")
    parser.add_argument("--rows", type=int, default=20_000, help="past people the laws come from")


def run(options: argparse.Namespace) -> Table:
    out = table(
        f"epsilon={EPSILON}, delta={DELTA}, laws {SEPARATION:g} standard deviations apart, fitted "
        f"to {options.rows:,} past people, {options.runs} runs a row: half at Delta = gamma, half "
        "at gamma + epsilon",
        "features, weights",
        "wrong",
        "no features bought",
        "inconclusive",
    )
    for name, (noise, covariance) in CASES.items():
        world, cuts = make_world(noise)
        for weights in ("auto", "map"):
            counts = np.zeros(3)
            for run_number in range(options.runs):
                try:
                    sim = one_run(world, cuts, covariance, weights, run_number, options.rows)
                except BadData:  # no model at all, and MAP counts were insisted on
                    counts += (0, 0, 1)
                    continue
                counts += (sim.wrong[0], sim.features[0] == 0, sim.verdict[0] == "INCONCLUSIVE")
            row = f"{name}, {weights}", *(f"{c:.3f}" for c in counts / options.runs)
            print(*row, sep=" | ", file=sys.stderr, flush=True)
            out.add_row(*row)
    return out


def make_world(noise: Noise, seed: int = 0) -> tuple[TableWorld, dict[str, HalfSpace]]:
    """Return a table of people of two groups, and who is approved in each."""
    rng = np.random.default_rng(seed)
    group = (rng.random(PEOPLE) < 0.5).astype(np.intp)
    outcome = (rng.random(PEOPLE) < np.where(group == 1, 0.7, 0.4)).astype(np.int8)
    features = noise(rng, PEOPLE) + SEPARATION * outcome[:, None] * np.array([1.0, 0.0])
    cuts = {"A": HalfSpace([0.0, 1.0], -0.6), "B": HalfSpace([0.0, 1.0], 0.5)}
    decision = np.where(group == 0, cuts["A"](features), cuts["B"](features)).astype(np.int8)
    return TableWorld(("A", "B"), group, decision, outcome, features), cuts


def one_run(
    world: TableWorld,
    cuts: dict[str, HalfSpace],
    covariance: str,
    weights: str,
    run_number: int,
    rows: int,
) -> eq.simulation.Simulation:
    """Fit to a past of its own, ask a question whose answer is just settled, and run."""
    rng = np.random.default_rng([run_number, 1])
    drawn = rng.integers(len(world), size=rows)
    drawn = drawn[world.decision[drawn] == 1]
    names = np.array(world.groups)[world.group[drawn]]
    assert world.features is not None
    model = fit_model(
        world.features[drawn], names, world.outcome[drawn], cuts, Gaussian(covariance)
    )
    truth = world.difference("equalized_odds")
    gamma = truth + 1e-9 if run_number % 2 else truth - 1.001 * EPSILON
    question = eq.Question(gamma=gamma, epsilon=EPSILON, delta=DELTA)
    options = {"model": model, "weights": weights}
    return eq.simulate("exp", world, question, COSTS, repeats=1, seed=run_number, **options)
