"""How often the MAP oracle says 1, without sampling: exact shares for simulations of any size."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from equipoise.mixture.families import Array, LineFamily
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.truncated import TruncatedFit
from equipoise.mixture.weights import log_ratio, same_base

__all__ = ["map_share", "positive_share"]


def map_share(
    law: TruncatedFit, fits: tuple[TruncatedFit, TruncatedFit], odds: float
) -> float | None:
    """Return the share of people of a law for whom the oracle of ``fits`` says 1.

    None where the laws are neither all Gaussian nor of one family on the line.
    """
    families = (law.family, fits[0].family, fits[1].family)
    if all(isinstance(f, Gaussian) for f in families):
        return _gaussian_share(law, fits, odds)
    if isinstance(law.family, LineFamily) and same_base(*fits):
        return _line_share(law, fits, odds)
    return None


def positive_share(square: Array, linear: Array, constant: float) -> float:
    """Return ``P[sum square z^2 + linear z + constant > 0]`` for independent standard normal z.

    By inversion of the characteristic function (Gil-Pelaez, Imhof).

    Examples
    --------
    >>> round(positive_share(np.array([1.0, 1.0]), np.zeros(2), -2.0), 9)  # chi-squared(2) > 2
    0.367879441
    """
    spread = float(np.sqrt(2.0 * (square**2).sum() + (linear**2).sum()))
    if spread == 0.0:
        return float(constant > 0.0)
    square, linear, constant = square / spread, linear / spread, constant / spread
    if np.abs(square).max() < 1e-12:
        return float(ndtr(constant))
    # The step sets how far away (2 pi / step, in standard deviations) tails are folded back; the
    # end is where the characteristic function has died out.
    reach = 80.0 + abs(constant) + abs(float(square.sum()))
    step = 2.0 * np.pi / reach
    ends: Array = np.exp2(np.arange(1.0, 20.0))
    alive = _log_size(square, linear, ends) > -40.0
    nodes = int(ends[min(int(alive.sum()), len(ends) - 1)] / step) + 1
    t: Array = (np.arange(min(nodes, 400_000), dtype=np.float64) + 0.5) * step
    log_size = _log_size(square, linear, t)
    angle = t * constant
    for a, b in zip(square, linear, strict=True):
        angle += 0.5 * np.arctan(2.0 * a * t) - a * b**2 * t**3 / (1.0 + (2.0 * a * t) ** 2)
    integral = (np.exp(log_size) * np.sin(angle) / t).sum() * step
    return float(np.clip(0.5 + integral / np.pi, 0.0, 1.0))


def _log_size(square: Array, linear: Array, t: Array) -> Array:
    """Return the log of the characteristic function's absolute value."""
    value = np.zeros_like(t)
    for a, b in zip(square, linear, strict=True):
        width = 1.0 + (2.0 * a * t) ** 2
        value -= 0.25 * np.log(width) + 0.5 * (b * t) ** 2 / width
    return value


def _gaussian_share(
    law: TruncatedFit, fits: tuple[TruncatedFit, TruncatedFit], odds: float
) -> float:
    zero, one = (_natural(f) for f in fits)
    square = -0.5 * (one[1] - zero[1])
    linear = one[0] - zero[0]
    constant = float(np.log(odds)) + one[2] - zero[2]
    mean, covariance = law.mean, law.covariance
    root = np.linalg.cholesky(covariance)
    values, vectors = np.linalg.eigh(root.T @ square @ root)
    slope = vectors.T @ root.T @ (linear + 2.0 * square @ mean)
    return positive_share(values, slope, constant + float(mean @ square @ mean + linear @ mean))


def _natural(fit: TruncatedFit) -> tuple[Array, Array, float]:
    """Return eta, precision and the constant of the log density."""
    assert isinstance(fit.family, Gaussian)
    eta, precision = fit.family.natural(fit.theta)
    log_det = float(np.linalg.slogdet(precision)[1])
    return eta, precision, 0.5 * log_det - 0.5 * float(eta @ np.linalg.solve(precision, eta))


def _line_share(law: TruncatedFit, fits: tuple[TruncatedFit, TruncatedFit], odds: float) -> float:
    """Bisect on the distribution function: T rises in x, so the oracle changes its mind once.

    Where the two laws are of different families it may do so twice.
    """

    def says_one(u: float) -> bool:
        x = law.family.from_uniforms(law.theta, np.array([[u]]))
        return bool(log_ratio(fits, x)[0] > -np.log(odds))

    low, high = 1e-12, 1.0 - 1e-12
    at_low = says_one(low)
    if says_one(high) == at_low:
        return float(at_low)
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if says_one(middle) == at_low else (low, middle)
    return low if at_low else 1.0 - low
