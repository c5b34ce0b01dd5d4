"""Exact fits: a Gaussian cut by a half-space, and any family on the line by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from equipoise.errors import BadData
from equipoise.mixture.family import Array, Family, Frame
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.newton import Solution, newton
from equipoise.mixture.oracle import HalfSpace, Oracle

__all__ = ["accepted_share", "fit_half_space", "fit_line"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


# -- a Gaussian and a half-space -----------------------------------------------------------------


def fit_half_space(frame: Frame, points: Array, cut: HalfSpace) -> tuple[Solution, float]:
    """Return the exact maximum likelihood solution and its acceptance.

    With full covariance: a truncated normal in one dimension along the normal vector, and an
    ordinary regression of the rest. The other structures tie the two together, so Newton steps on
    the exact likelihood follow (and confirm the full one).
    """
    family = frame.family
    assert isinstance(family, Gaussian)
    z = frame.inside(points)
    normal = frame.scale.T @ np.asarray(cut.normal)
    length = float(np.linalg.norm(normal))
    offset = (cut.offset - float(np.asarray(cut.normal) @ frame.shift)) / length
    integral = _HalfSpaceIntegral(family, normal / length, offset)
    target = family.statistics(z).mean(axis=0)
    start = family.theta_from_mean(target)
    if family.structure == "full":
        start = family.project(family.pack(*_regression(z, normal / length, offset)))
    solution = newton(start, target, integral, family.project)
    return solution, integral.acceptance(solution.theta)


def _regression(z: Array, normal: Array, offset: float) -> tuple[Array, Array]:
    basis = np.linalg.qr(np.column_stack([normal, np.eye(len(normal))]))[0]
    basis[:, 0] = normal  # QR may flip its sign
    turned = z @ basis
    beyond = turned[:, 0] - offset
    location, scale = _truncated_normal(beyond)
    design = np.column_stack([np.ones(len(z)), beyond])
    coefficients = np.linalg.lstsq(design, turned[:, 1:], rcond=None)[0]
    residual = turned[:, 1:] - design @ coefficients
    slope = coefficients[1]
    mean = np.concatenate([[location + offset], coefficients[0] + slope * location])
    covariance = np.empty((len(normal), len(normal)))
    covariance[0, 0] = scale**2
    covariance[0, 1:] = covariance[1:, 0] = slope * scale**2
    covariance[1:, 1:] = residual.T @ residual / len(z) + np.outer(slope, slope) * scale**2
    return basis @ mean, basis @ covariance @ basis.T


def _truncated_normal(y: Array) -> tuple[float, float]:
    """Return location and scale of a normal cut at 0 that has the moments of ``y >= 0``.

    ``E[y^2]/E[y]^2`` rises from 1 to 2 (the exponential law) as the cut moves up.
    """
    first, second = float(y.mean()), float((y**2).mean())
    ratio = second / first**2
    if ratio >= _ratio(20.0):
        raise BadData(
            "beyond the cut the sample falls off no faster than an exponential law "
            f"(E[y²]/E[y]² = {ratio:.4f}, a Gaussian stays under 2): no Gaussian fits"
        )
    at = float(brentq(lambda a: _ratio(a) - ratio, -1e6, 20.0, xtol=1e-14, rtol=1e-14))
    scale = first / (float(_hazard(at)) - at)
    return -at * scale, scale


def _hazard(at: ArrayLike) -> Array:
    at = np.asarray(at, dtype=float)
    return np.asarray(np.exp(-0.5 * at * at - 0.5 * np.log(2.0 * np.pi) - log_ndtr(-at)))


def _ratio(at: float) -> float:
    excess = float(_hazard(at)) - at
    return (1.0 - at * excess) / excess**2


class _HalfSpaceIntegral:
    """``W(theta) + log P_theta[v . x >= c]`` with closed-form moments."""

    def __init__(self, family: Gaussian, normal: Array, offset: float) -> None:
        self.family, self.normal, self.offset = family, normal, offset

    def acceptance(self, theta: Array) -> float:
        return float(ndtr(self._standardise(theta)[-1]))

    def log_total(self, theta: Array) -> float:
        return float(self.family.log_partition(theta) + log_ndtr(self._standardise(theta)[-1]))

    def moments(self, theta: Array) -> tuple[Array, Array]:
        # The Hessian is the Jacobian of the mean: central differences are exact enough.
        step = 1e-5 * np.maximum(1.0, np.abs(theta))
        more, less = self._mean(theta + np.diag(step)), self._mean(theta - np.diag(step))
        jacobian = (more - less) / (2.0 * step[:, None])
        return self._mean(theta), (jacobian + jacobian.T) / 2.0

    def _mean(self, theta: Array) -> Array:
        """Return ``E[T]`` under the truncated law; leading axes of theta broadcast."""
        mean, covariance, spread, at = self._standardise(theta)
        hazard = _hazard(-at)[..., None]
        slope = covariance @ self.normal / spread[..., None]
        shrink = (hazard * (hazard + at[..., None]))[..., None]
        shrunk = covariance - slope[..., :, None] * slope[..., None, :] * shrink
        return self.family.statistics_of_moments(mean + slope * hazard, shrunk)

    def _standardise(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        mean, covariance = self.family.unpack(theta)
        spread = np.sqrt(covariance @ self.normal @ self.normal)
        return mean, covariance, spread, (mean @ self.normal - self.offset) / spread


# -- the line ------------------------------------------------------------------------------------


def fit_line(frame: Frame, points: Array, oracle: Oracle) -> tuple[Solution, float]:
    """Return the maximum likelihood solution on the line and its acceptance.

    The accepted set is found as intervals (a scan, then bisection at every change) and the
    integral over them taken by Gauss-Legendre panels split at the cuts.
    """
    family = frame.family
    z = frame.inside(points)
    target = family.statistics(z).mean(axis=0)
    theta = family.theta_from_mean(target)
    low, high = float(z.min()), float(z.max())
    iterations = 0
    for _ in range(20):
        near, far = family.reach(theta)
        low, high = min(low, near), max(high, far)
        # half of the scan where the sample is, so that a wide range does not coarsen it there
        grid = np.union1d(np.linspace(low, high, 2048), np.linspace(z.min(), z.max(), 2048))
        pieces = _accepted_pieces(lambda x: oracle(frame.outside(x[:, None])), grid)
        integral = _PanelIntegral(family, pieces)
        solution = newton(theta, target, integral, family.project)
        iterations += solution.iterations
        theta = solution.theta
        near, far = family.reach(theta)
        if near >= low - 1e-9 * abs(low) and far <= high + 1e-9 * abs(high):
            break
    inside = float(integral.log_total(theta) - family.log_partition(theta))
    return replace(solution, iterations=iterations), min(1.0, float(np.exp(inside)))


def accepted_share(family: Family, theta: Array, oracle: Oracle) -> float:
    """Return ``P_theta[f = 1]`` on the line."""
    low, high = family.reach(theta)
    pieces = _accepted_pieces(lambda x: oracle(x[:, None]), np.linspace(low, high, 4096))
    if not pieces:
        return 0.0
    inside = _PanelIntegral(family, pieces).log_total(theta) - family.log_partition(theta)
    return min(1.0, float(np.exp(inside)))


def _accepted_pieces(
    let_through: Callable[[Array], NDArray[np.bool_]], grid: Array
) -> list[tuple[float, float]]:
    """Return the accepted intervals between the ends of a grid, cut where the answer changes."""
    accepted = let_through(grid)
    change = np.flatnonzero(accepted[1:] != accepted[:-1])
    left, right = grid[change].copy(), grid[change + 1].copy()
    side = accepted[change]
    for _ in range(50 if len(change) else 0):
        middle = (left + right) / 2.0
        same = let_through(middle) == side
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    cuts = (left + right) / 2.0
    ends = np.concatenate([grid[:1], cuts, grid[-1:]])
    keep = np.concatenate([[accepted[0]], ~side]) if len(change) else accepted[:1]
    return [
        (float(a), float(b))
        for a, b, yes in zip(ends[:-1], ends[1:], keep, strict=True)
        if yes and b > a
    ]


class _PanelIntegral:
    """The integral over the accepted pieces on fixed Gauss-Legendre nodes."""

    def __init__(self, family: Family, pieces: list[tuple[float, float]]) -> None:
        span = sum(b - a for a, b in pieces)
        edges = [np.linspace(a, b, 2 + int(60.0 * (b - a) / span)) for a, b in pieces]
        left = np.concatenate([e[:-1] for e in edges])
        right = np.concatenate([e[1:] for e in edges])
        half = (right - left)[:, None] / 2.0
        x = (left[:, None] + half * (_NODES + 1.0)).reshape(-1, 1)
        self.statistics = family.statistics(x)
        self.offset = family.log_base(x) + np.log((half * _WEIGHTS).ravel())

    def log_total(self, theta: Array) -> float:
        value = self.statistics @ theta + self.offset
        top = value.max()
        return float(top + np.log(np.exp(value - top).sum()))

    def moments(self, theta: Array) -> tuple[Array, Array]:
        weights = np.exp(self.statistics @ theta + self.offset - self.log_total(theta))
        mean = weights @ self.statistics
        centred = self.statistics - mean
        return mean, (centred * weights[:, None]).T @ centred
