"""Maximum likelihood in a truncated exponential family: convex, solved by projected Newton steps.

The truncated law is an exponential family with base measure ``h f``, so its negative log
likelihood per sample is ``-theta . mean(T) + log of the integral of h f exp(theta . T)``; the
gradient is ``E[T] - mean(T)`` and the Hessian ``Cov[T]``, both under the truncated law. The
integral comes in three ways: in closed form for a Gaussian cut by a half-space, by quadrature (or a
sum) on the line, and by importance sampling on scrambled Sobol points for any other classifier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr

from equipoise.errors import BadData
from equipoise.mixture.families import Array, Family, Frame, panels
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.rules import Bits, HalfSpace, Oracle, sobol

__all__ = ["Solution", "accepted_share", "fit_half_space", "fit_importance", "fit_line"]

PILOT = 2**14
LARGEST = 2**25  # numbers in the table of statistics, a quarter of a gigabyte
CHUNK = 2**13
MOST = 2**20  # points altogether
SEARCH = 2**17  # points before it is concluded that all or (almost) none are let through
PER_SAMPLE = 20  # effective points per truncated sample: 2.5% on top of a standard error


class _Integral(Protocol):
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


def _newton(
    theta: Array,
    target: Array,
    integral: _Integral,
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


class _NodeIntegral:
    """``sum exp(theta . T(x) + offset(x))`` over points: quadrature nodes or sampled ones."""

    def __init__(self, statistics: Array, offset: Array) -> None:
        self.statistics, self.offset = statistics, offset
        self._at: Array | None = None
        self._weights = np.empty(0)

    def add(self, statistics: Array, offset: Array) -> None:
        """Take in more points."""
        self.statistics = np.concatenate([self.statistics, statistics])
        self.offset = np.concatenate([self.offset, offset])
        self._at = None

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.offset)

    @property
    def ess(self) -> float:
        """Effective number of points at the last theta."""
        return 0.0 if len(self._weights) == 0 else float(1.0 / (self._weights**2).sum())

    def log_total(self, theta: Array) -> float:
        log_weights = self.statistics @ theta + self.offset
        total = float(logsumexp(log_weights))
        self._at, self._weights = theta, np.exp(log_weights - total)
        return total

    def moments(self, theta: Array) -> tuple[Array, Array]:
        if self._at is None or not np.array_equal(self._at, theta):
            self.log_total(theta)
        mean = self._weights @ self.statistics
        covariance = np.zeros((len(theta), len(theta)))
        for start in range(0, self.size, CHUNK):  # a chunk fits the cache
            centred = self.statistics[start : start + CHUNK] - mean
            covariance += (centred * self._weights[start : start + CHUNK, None]).T @ centred
        return mean, covariance


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
    solution = _newton(start, target, integral, family.project)
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
        pieces = _accepted_pieces(family, lambda x: oracle(frame.outside(x[:, None])), grid)
        integral = _panel_integral(family, pieces)
        solution = _newton(theta, target, integral, family.project)
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
    grid = np.linspace(low, high, 4096)
    pieces = _accepted_pieces(family, lambda x: oracle(x[:, None]), grid)
    if not pieces:
        return 0.0
    inside = _panel_integral(family, pieces).log_total(theta) - family.log_partition(theta)
    return min(1.0, float(np.exp(inside)))


def _panel_integral(family: Family, pieces: list[tuple[float, float]]) -> _NodeIntegral:
    x, weights = panels(family, pieces)
    return _NodeIntegral(family.statistics(x), family.log_base(x) + np.log(weights))


def _accepted_pieces(
    family: Family, let_through: Callable[[Array], Bits], grid: Array
) -> list[tuple[float, float]]:
    """Return the accepted intervals between the ends of a grid, cut where the answer changes."""
    if family.discrete:
        whole = np.arange(np.floor(grid[0]), np.ceil(grid[-1]) + 1.0)
        return [(x, x) for x in whole[let_through(whole)].tolist()]
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


# -- any classifier ------------------------------------------------------------------------------


def fit_importance(frame: Frame, points: Array, oracle: Oracle, seed: int) -> Solution:
    """Fit with one pilot and one full set of points; the classifier sees each point once."""
    family = frame.family
    assert isinstance(family, Gaussian)
    target = family.statistics(frame.inside(points)).mean(axis=0)
    p = len(target)
    most = min(2 ** int(np.log2(LARGEST / p)), MOST)
    engine = sobol(points.shape[1] + 1, seed)
    integral = _NodeIntegral(np.empty((0, p)), np.empty(0))
    asked = 0

    def extend(total: int) -> None:
        nonlocal asked
        x, log_q = family.propose(engine.random(total - asked))
        keep = oracle(frame.outside(x))
        asked = total
        integral.add(family.statistics(x[keep]), family.log_base(x[keep]) - log_q[keep])

    extend(PILOT)
    if integral.size < 20 * p:
        extend(min(SEARCH, most))
    if integral.size < 2 * p + 10:
        raise BadData(
            f"'accepts' lets only {integral.size} of {asked:,} points around the sample through: "
            "it accepts (almost) nothing but the sample itself"
        )
    solution = _newton(family.theta_from_mean(target), target, integral, family.project)
    wanted = PER_SAMPLE * len(points) / max(integral.ess, 1.0) * asked
    if wanted > asked:
        extend(min(2 ** int(np.ceil(np.log2(wanted))), most))
        again = _newton(solution.theta, target, integral, family.project)
        solution = replace(again, iterations=solution.iterations + again.iterations)
    elif integral.size == asked:
        extend(min(SEARCH, most))
    if integral.size == asked:  # nothing is truncated: the ordinary estimate, which is exact
        theta = family.theta_from_mean(target)
        return Solution(theta, integral.moments(theta)[1], np.inf, solution.iterations)
    warnings = []
    if integral.ess < len(points):
        warnings.append(
            f"the normalising integral rests on {integral.ess:,.0f} effective points, fewer than "
            f"the {len(points):,} samples: standard errors are larger for it"
        )
    return replace(solution, ess=integral.ess, warnings=tuple(warnings))
