"""Truncated fits: distance from the exact solution, classifier calls and CPU seconds."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from rich.console import Group
from rich.table import Table
from scipy.special import ndtri
from tests.support.tables import table

import equipoise as eq

mixture = eq.mixture
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
D = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=10)


def run(options: argparse.Namespace) -> Group:
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return Group(
        _half_space(options.seeds, threads),
        _parameter_error(options.seeds),
        _line(options.seeds),
        _forest(),
    )


def sample(rate: float, seed: int, size: int) -> tuple[Array, eq.mixture.HalfSpace, Array, Array]:
    """Return ``size`` samples behind a half-space that accepts ``rate``, the cut, the truth."""
    rng = np.random.default_rng(seed)
    mean, normal = rng.uniform(-1.0, 1.0, D), rng.standard_normal(D)
    normal /= np.linalg.norm(normal)
    cut = mixture.HalfSpace(normal, float(normal @ mean + 2.0 * ndtri(1.0 - rate)))
    everybody = mean + 2.0 * rng.standard_normal((int(1.1 * size / rate) + 2000, D))
    return everybody[cut(everybody)][:size], cut, mean, 4.0 * np.eye(D)


def divergence(mean: Array, covariance: Array, fit: eq.mixture.TruncatedFit) -> float:
    """Return KL of a Gaussian from a fit."""
    precision, gap = np.linalg.inv(fit.covariance), fit.mean - mean
    logs = np.linalg.slogdet(fit.covariance)[1] - np.linalg.slogdet(covariance)[1]
    trace = float(np.trace(precision @ covariance))
    return 0.5 * (trace - len(mean) + float(gap @ precision @ gap) + float(logs))


def timed(task: Callable[[], eq.mixture.TruncatedFit]) -> tuple[eq.mixture.TruncatedFit, float]:
    start = time.process_time()
    return task(), time.process_time() - start


def _half_space(seeds: int, threads: str) -> Table:
    out = table(
        f"d=5 Gaussian, full covariance, variance 4, half-space, n=10,000 ({threads} threads)",
        "acceptance",
        "KL to exact, median",
        "worst",
        "CPU s, median",
        "worst",
        "calls, most",
    )
    for rate in (0.1, 0.3, 0.5, 0.7):
        rows = []
        for seed in range(seeds):
            X, cut, *_ = sample(rate, seed, 10_000)
            exact = mixture.fit_truncated(X, cut, mixture.Gaussian())
            fit, seconds = timed(
                lambda X=X, cut=cut, seed=seed: mixture.fit_truncated(
                    X, lambda Z: cut(Z), mixture.Gaussian(), method="importance", seed=seed
                )
            )
            gap = divergence(exact.mean, exact.covariance, fit)
            rows.append((gap, seconds, fit.oracle_calls))
        gap, seconds, calls = np.array(rows).T
        out.add_row(
            f"{rate}",
            f"{np.median(gap):.1e}",
            f"{gap.max():.1e}",
            f"{np.median(seconds):.2f}",
            f"{seconds.max():.2f}",
            f"{calls.max():,.0f}",
        )
    return out


def _parameter_error(seeds: int) -> Table:
    out = table(
        "The same, n=50,000: Frobenius error of (precision, precision x mean) from the truth",
        "acceptance",
        "importance, median",
        "worst",
        "exact MLE, median",
        "worst",
        "importance - exact, worst",
    )
    family = mixture.Gaussian()
    for rate in (0.3, 0.5, 0.7):
        rows = []
        for seed in range(seeds):
            X, cut, mean, covariance = sample(rate, seed, 50_000)
            truth = family.pack(mean, covariance)
            fit = mixture.fit_truncated(
                X, lambda Z, cut=cut: cut(Z), family, method="importance", seed=seed
            )
            exact = mixture.fit_truncated(X, cut, family)
            rows.append([np.linalg.norm(f.theta - truth) for f in (fit, exact)])
        ours, best = np.array(rows).T
        numbers = (np.median(ours), ours.max(), np.median(best), best.max(), (ours - best).max())
        out.add_row(f"{rate}", *(f"{x:.4f}" for x in numbers))
    return out


def _line(seeds: int) -> Table:
    out = table(
        "One dimension, n=5,000: the exact maximum likelihood estimate",
        "family",
        "CPU ms",
    )
    cases = [
        (mixture.Exponential(), -0.5, 1.0),
        (mixture.Weibull(k=1.5), -0.7, 0.8),
        (mixture.ContinuousBernoulli(), 2.0, 0.6),
        (mixture.ContinuousPoisson(), 1.0, 2.0),
    ]
    for family, theta, cut in cases:
        times = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            x = family.sample(np.array([theta]), 12_000, rng)
            x = x[x[:, 0] >= cut][:5_000]

            def accepts(X: Array, cut: float = cut) -> Array:
                return X[:, 0] >= cut

            _, seconds = timed(
                lambda x=x, family=family, accepts=accepts: mixture.fit_truncated(
                    x, accepts, family
                )
            )
            times.append(seconds)
        out.add_row(family.name, f"{1000 * float(np.median(times)):.1f}")
    return out


def _forest() -> Table:
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(1)
    training = 1.5 * rng.normal(size=(3_000, 2))
    wanted = (np.sin(1.5 * training[:, 0]) + training[:, 1] > 0.3).astype(int)
    forest = RandomForestClassifier(50, max_depth=8, random_state=0).fit(training, wanted)

    def accepts(X: Array) -> Array:
        return np.asarray(forest.predict(X)) == 1

    mean, covariance = np.array([0.4, -0.3]), np.array([[1.5, 0.4], [0.4, 1.0]])
    family = mixture.Gaussian()
    out = table(
        "Random forest as truncation, n=10,000: KL of the truth from the fit",
        "seed",
        "acceptance",
        "default",
        "ordinary MLE",
    )
    for seed in range(3):
        everybody = np.random.default_rng(seed).multivariate_normal(mean, covariance, 40_000)
        keep = accepts(everybody)
        X = everybody[keep][:10_000]
        fit = mixture.fit_truncated(X, accepts, family, seed=seed)
        naive = mixture.known_law(family, family.fit(X), mixture.HalfSpace([1.0, 0.0], -1e9))
        out.add_row(
            f"{seed}",
            f"{keep.mean():.2f}",
            f"{divergence(mean, covariance, fit):.5f}",
            f"{divergence(mean, covariance, naive):.3f}",
        )
    return out
