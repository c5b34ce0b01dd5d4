"""TruncEst as printed: how far its candidates are from the exact fit, over the number of steps."""

from __future__ import annotations

import argparse

import numpy as np
from rich.table import Table
from tests.support.tables import table

from equipoise.mixture import (
    Exponential,
    Family,
    Gaussian,
    HalfSpace,
    StructuralConstants,
    fit_truncated,
    trunc_est,
)
from equipoise.mixture.families import Array
from study import _resumed
from study._resumed import Run, mean

STEPS = ((30, 0.05), (300, 0.01), (3_000, 0.002))  # m and eta
START, DELTA = 2_000, 0.3  # n; 20 repeats


def _line() -> tuple[Family, Array, HalfSpace, StructuralConstants]:
    family = Exponential(bounds=(-2.0, -0.1))
    constants = StructuralConstants(kappa=0.25, lam=100.0, lipschitz=10.0, alpha=0.5)
    return family, np.array([-0.5]), HalfSpace([1.0], 1.0), constants


def _known(dimension: int) -> tuple[Family, Array, HalfSpace, StructuralConstants]:
    family = Gaussian(np.eye(dimension), longest=5.0)
    normal = np.ones(dimension) / np.sqrt(dimension)
    constants = StructuralConstants(kappa=1.0, lam=1.0, lipschitz=5.0, alpha=0.4)
    return family, 0.5 * normal, HalfSpace(normal, 0.5), constants


PROBLEMS = {
    "exponential": _line(),
    "Gaussian, known covariance, d=1": _known(1),
    "Gaussian, known covariance, d=3": _known(3),
}
POINTS = [f"{name}, m={m:,}" for name in PROBLEMS for m, _ in STEPS]


def add_options(parser: argparse.ArgumentParser) -> None:
    _resumed.add_options(parser, runs=10)


def run(options: argparse.Namespace) -> Table:
    made = _resumed.collect(options, POINTS, one_run)
    out = table(
        f"root mean square distance of TruncEst's candidates from the exact fit, 20 repeats a "
        f"run, {min(map(len, made.values()))} runs a row",
        *("problem, steps", "candidates", "returned", "settled", "start", "exact fit's own error"),
    )
    for point, runs in made.items():
        keys = "candidates", "returned", "settled", "start", "exact"
        out.add_row(point, *(f"{mean(runs, key):.3f}" for key in keys))
    return out


def one_run(point: str, number: int) -> Run:
    """Draw truncated samples, fit them exactly and by TruncEst with counts of one's own."""
    name, _, shown = point.rpartition(", m=")
    m = int(shown.replace(",", ""))
    eta = dict(STEPS)[m]
    family, theta, cut, constants = PROBLEMS[name]
    rng = np.random.default_rng([number, m])
    X = family.sample(theta, 4 * (START + 20 * m), rng)
    X = X[cut(X)][: START + 20 * m]
    exact = fit_truncated(X, cut, family).theta
    found = trunc_est(*(X, cut, family, 0.1, DELTA, constants), n=START, m=m, eta=eta, seed=number)
    return {
        "candidates": float(np.sqrt(((found.candidates - exact) ** 2).sum(axis=1).mean())),
        "returned": float(np.linalg.norm(found.theta - exact)),
        "settled": float(found.settled),
        "start": float(np.linalg.norm(found.start - exact)),
        "exact": float(np.linalg.norm(exact - theta)),
    }
