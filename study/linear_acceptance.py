"""The acceptance of a linear black box in 20 dimensions, against its stated error."""

from __future__ import annotations

import argparse

import numpy as np
from rich.table import Table
from scipy.special import ndtri
from tests.support.tables import table

from equipoise.mixture import Gaussian, HalfSpace, fit_truncated

DIMENSION, RATE, APPROVED = 20, 0.1, 5_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, default=40)


def run(options: argparse.Namespace) -> Table:
    found = np.array([one_sample(seed) for seed in range(options.samples)])
    estimate, error, known = found.T
    out = table(
        f"{DIMENSION} dimensions, full covariance, a half-space that accepts {RATE}, {APPROVED:,} "
        f"approved people, {options.samples} samples",
        "acceptance",
        "mean",
        "sd",
        "stated error",
        "sd of z-scores",
        "largest gap to the known half-space",
    )
    scores = (estimate - RATE) / error
    numbers = estimate.mean(), estimate.std(ddof=1), error.mean(), scores.std(ddof=1)
    gap = np.abs(estimate - known).max()
    out.add_row("asked as a black box", *(f"{x:.3f}" for x in numbers), f"{gap:.1g}")
    return out


def one_sample(seed: int) -> tuple[float, float, float]:
    """Return the estimated acceptance, its error, and the estimate if the half-space is known."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((DIMENSION, DIMENSION)) / 4.0 + np.eye(DIMENSION)
    mean, normal = rng.uniform(-1.0, 1.0, DIMENSION), rng.standard_normal(DIMENSION)
    cut = HalfSpace(normal, float(normal @ mean - np.linalg.norm(root.T @ normal) * ndtri(RATE)))
    people = mean + rng.standard_normal((12 * APPROVED, DIMENSION)) @ root.T
    X = people[cut(people)][:APPROVED]
    fit = fit_truncated(X, lambda points: cut(points), Gaussian())
    return fit.acceptance, fit.acceptance_error, fit_truncated(X, cut, Gaussian()).acceptance
