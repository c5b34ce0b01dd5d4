"""Weights from features: bias of MAP counts and likelihood weights, coverage, z-scores."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Group
from rich.table import Table
from scipy.special import ndtri
from tests.support.tables import table

import equipoise as eq

mixture = eq.mixture
FAMILY = mixture.Gaussian("full")
TRUE = mixture.HalfSpace([1.0], 0.0)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=300)


def run(options: argparse.Namespace) -> Group:
    return Group(_bias(options.runs), _coverage(options.runs), _z_scores(200))


def _people(q: float, separation: float, size: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.standard_normal(size) + separation * (rng.random(size) < q))[:, None]


def _bias(runs: int) -> Table:
    out = table(
        f"Relative bias with known laws, 20,000 feature vectors, {runs} runs",
        "q, separation",
        "likelihood",
        "± standard error",
        "MAP counts",
    )
    for q in (0.1, 0.3):
        for separation in (1, 2, 3, 4, 5, 6):
            laws = tuple(
                mixture.known_law(FAMILY, FAMILY.pack([m], [[1.0]]), TRUE)
                for m in (0.0, float(separation))
            )
            rows = []
            for seed in range(runs):
                X = _people(q, separation, 20_000, np.random.default_rng([separation, seed]))
                counted = np.mean(mixture.log_ratio(laws, X) > np.log((1.0 - q) / q))
                rows.append((mixture.likelihood_weight(X, laws).estimate, counted))
            weight, counted = np.array(rows).T / q - 1.0
            error = weight.std() / np.sqrt(runs)
            out.add_row(
                f"{q}, {separation} sigma",
                f"{weight.mean():+.2%}",
                f"{error:.2%}",
                f"{counted.mean():+.1%}",
            )
    return out


def _coverage(runs: int) -> Table:
    out = table(
        f"Laws estimated from 5,000 truncated samples each, 20,000 feature vectors, {runs} runs: "
        "coverage of 95% intervals",
        "q, separation",
        "propagated",
        "plug-in",
        "bias",
    )
    for q in (0.1, 0.3):
        for separation in (1, 2, 3):
            cut = mixture.HalfSpace([1.0], 0.5 * separation - 0.5)
            covered = np.zeros(2)
            estimates = []
            for seed in range(runs):
                rng = np.random.default_rng([separation, seed, 7])
                fits = []
                for mean in (0.0, float(separation)):
                    x = rng.normal(mean, 1.0, 40_000)[:, None]
                    fits.append(mixture.fit_truncated(x[cut(x)][:5_000], cut, FAMILY))
                weight = mixture.likelihood_weight(
                    _people(q, separation, 20_000, rng), (fits[0], fits[1])
                )
                estimates.append(weight.estimate)
                errors = np.array([weight.standard_error, weight.sampling_error])
                covered += abs(weight.estimate - q) <= 1.96 * errors
            out.add_row(
                f"{q}, {separation} sigma",
                f"{covered[0] / runs:.3f}",
                f"{covered[1] / runs:.3f}",
                f"{np.mean(estimates) / q - 1.0:+.1%}",
            )
    return out


def _z_scores(runs: int) -> Table:
    out = table(
        f"z-scores of theta-hat, d=5, half-space as a black box, n=2,000, {runs} runs",
        "acceptance, structure",
        "sd, all entries",
        "sd, least to most",
    )
    for structure in ("full", "spherical"):
        for rate in (0.3, 0.5):
            rng = np.random.default_rng(0)
            mean, normal = rng.uniform(-1.0, 1.0, 5), rng.standard_normal(5)
            normal /= np.linalg.norm(normal)
            cut = mixture.HalfSpace(normal, float(normal @ mean + 2.0 * ndtri(1.0 - rate)))
            family = mixture.Gaussian(structure)
            truth = family.pack(mean, 4.0 * np.eye(5))
            scores = []
            for seed in range(runs):
                draw = np.random.default_rng([seed, 1])
                X = mean + 2.0 * draw.standard_normal((int(2_600 / rate), 5))
                fit = mixture.fit_truncated(
                    X[cut(X)][:2_000], lambda Z, cut=cut: cut(Z), family, seed=seed
                )
                scores.append((fit.theta - truth) / fit.standard_error)
            z = np.array(scores)
            spread = z.std(axis=0)
            out.add_row(
                f"{rate}, {structure}",
                f"{z.std():.3f}",
                f"{spread.min():.2f} to {spread.max():.2f}",
            )
    return out
