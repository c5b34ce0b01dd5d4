"""Maximum likelihood in a truncated exponential family: convex, solved by projected Newton steps.

The truncated law is an exponential family with base measure ``h f``, so its negative log
likelihood per sample is ``-theta . mean(T) + log of the integral of h f exp(theta . T)``; the
gradient is ``E[T] - mean(T)`` and the Hessian ``Cov[T]``, both under the truncated law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.mixture.family import Array

__all__ = ["Integral", "Solution", "newton"]


class Integral(Protocol):
    """The normalising integral of the truncated law as a function of theta."""

    def log_total(self, theta: Array) -> float:
        """Return the log of the integral."""
        ...

    def moments(self, theta: Array) -> tuple[Array, Array]:
        """Return mean and covariance of T under the truncated law."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where a method ended, in the coordinates of the frame."""

    theta: Array
    hessian: Array
    ess: float
    iterations: int
    boundary_hits: int = 0
    at_boundary: bool = False
    warnings: tuple[str, ...] = ()


def newton(
    theta: Array,
    target: Array,
    integral: Integral,
    project: Callable[[Array], Array],
    *,
    steps: int = 100,
    tolerance: float = 1e-12,
) -> Solution:
    """Minimise from ``theta`` until half the squared Newton decrement is below ``tolerance``."""
    value = integral.log_total(theta) - theta @ target
    mean, hessian = integral.moments(theta)
    hits = done = 0
    at_boundary = False
    while done < steps:
        gradient = mean - target
        direction = _solve(hessian, gradient)
        if gradient @ direction <= 2.0 * tolerance:
            break
        size, moved = 1.0, False
        while size > 1e-10:
            raw = theta - size * direction
            candidate = project(raw)
            gain = float(gradient @ (theta - candidate))
            new_value = integral.log_total(candidate) - candidate @ target
            if gain > 0.0 and new_value <= value - 1e-4 * gain:
                moved = True
                break
            size /= 2.0
        if not moved:  # nothing better inside the set: is it the edge that stops the full step?
            raw = theta - direction
            at_boundary = not np.allclose(project(raw), raw, rtol=1e-9, atol=1e-12)
            hits += at_boundary
            break
        at_boundary = not np.allclose(candidate, raw, rtol=1e-9, atol=1e-12)
        hits += at_boundary
        theta, value = candidate, new_value
        mean, hessian = integral.moments(theta)
        done += 1
    return Solution(theta, hessian, np.inf, done, hits, at_boundary)


def _solve(hessian: Array, gradient: Array) -> Array:
    """Solve with a floor on the eigenvalues, so that a flat direction does not explode."""
    values, vectors = np.linalg.eigh(hessian)
    floor = max(float(values[-1]), 1e-300) * 1e-12
    return np.asarray(vectors @ ((vectors.T @ gradient) / np.maximum(values, floor)))
