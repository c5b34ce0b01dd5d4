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

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtr, softmax

from equipoise.errors import BadData
from equipoise.mixture.families import Array, Family, Frame, panels
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.rules import Accepts, Bits, HalfSpace, Oracle, sobol

__all__ = ["Solution", "acceptance", "fit_half_space", "fit_importance", "fit_line"]

PILOT = 2**14
LARGEST = 2**25  # numbers in the table of statistics, a quarter of a gigabyte
CHUNK = 2**13
MOST = 2**20  # points altogether
SEARCH = 2**17  # points before it is concluded that all or (almost) none are let through
PER_SAMPLE = 20  # effective points per truncated sample: 2.5% on top of a standard error


@dataclass(frozen=True)
class Solution:
    """Where a method ended, in the coordinates of the frame; ``share`` is its exact acceptance."""

    theta: Array
    hessian: Array
    ess: float
    iterations: int
    at_boundary: bool = False
    warnings: tuple[str, ...] = ()
    share: float | None = None


def _newton(
    theta: Array,
    target: Array,
    integral: _NodeIntegral | _HalfSpaceIntegral,
    project: Callable[[Array], Array],
    *,
    steps: int = 100,
    tolerance: float = 1e-12,
) -> Solution:
    """Minimise from ``theta`` until half the squared Newton decrement is below ``tolerance``."""
    value = integral.log_total(theta) - theta @ target
    mean, hessian = integral.moments(theta)
    at_boundary, done = False, 0
    while done < steps:
        gradient = mean - target
        direction = _solve(hessian, gradient)
        decrement = float(gradient @ direction)
        if decrement <= 2.0 * tolerance:
            break
        # a full step from afar would leap over the minimum to the edge of the parameter set
        first = 1.0 if decrement < 0.1 else 1.0 / (1.0 + np.sqrt(decrement))
        for size in first * 0.5 ** np.arange(34):
            raw = theta - size * direction
            candidate = project(raw)
            gain = float(gradient @ (theta - candidate))
            new_value = integral.log_total(candidate) - candidate @ target
            if gain > 0.0 and new_value <= value - 1e-4 * gain:
                break
        else:  # nothing better inside the set: is it the edge that stops the full step?
            raw = theta - direction
            at_boundary = not np.allclose(project(raw), raw, rtol=1e-9, atol=1e-12)
            break
        at_boundary = not np.allclose(candidate, raw, rtol=1e-9, atol=1e-12)
        theta, value, done = candidate, new_value, done + 1
        mean, hessian = integral.moments(theta)
    return Solution(theta, hessian, np.inf, done, at_boundary)


def _solve(hessian: Array, gradient: Array) -> Array:
    """Solve with a floor on the eigenvalues, so that a flat direction does not explode."""
    values, vectors = np.linalg.eigh(hessian)
    floor = max(float(values[-1]), 1e-300) * 1e-12
    return np.asarray(vectors @ ((vectors.T @ gradient) / np.maximum(values, floor)))


@dataclass
class _NodeIntegral:
    """``sum exp(theta . T(x) + offset(x))`` over points: quadrature nodes or sampled ones."""

    statistics: Array
    offset: Array

    def log_total(self, theta: Array) -> float:
        return float(logsumexp(self.statistics @ theta + self.offset))

    def weights(self, theta: Array) -> Array:
        return np.asarray(softmax(self.statistics @ theta + self.offset))

    def moments(self, theta: Array) -> tuple[Array, Array]:
        weights = self.weights(theta)
        mean = weights @ self.statistics
        covariance = np.zeros((len(theta), len(theta)))
        for start in range(0, len(weights), CHUNK):  # a chunk fits the cache
            centred = self.statistics[start : start + CHUNK] - mean
            covariance += (centred * weights[start : start + CHUNK, None]).T @ centred
        return mean, covariance

    def ess(self, theta: Array) -> float:
        """Return the effective number of points."""
        return float(1.0 / (self.weights(theta) ** 2).sum())


# -- a Gaussian and a half-space -----------------------------------------------------------------


def fit_half_space(frame: Frame, points: Array, cut: HalfSpace) -> Solution:
    """Return the solution by Newton steps on the exact likelihood."""
    family = frame.family
    assert isinstance(family, Gaussian)
    z = frame.inside(points)
    normal = frame.scale.T @ np.asarray(cut.normal)
    length = float(np.linalg.norm(normal))
    offset = (cut.offset - float(np.asarray(cut.normal) @ frame.shift)) / length
    integral = _HalfSpaceIntegral(family, normal / length, offset)
    target = family.statistics(z).mean(axis=0)
    solution = _newton(family.theta_from_mean(target), target, integral, family.project)
    return replace(solution, share=integral.acceptance(solution.theta))


def _hazard(at: ArrayLike) -> Array:
    at = np.asarray(at, dtype=float)
    return np.asarray(np.exp(-0.5 * at * at - 0.5 * np.log(2.0 * np.pi) - log_ndtr(-at)))


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


def fit_line(frame: Frame, points: Array, oracle: Oracle) -> Solution:
    """Return the maximum likelihood solution on the line.

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
    return replace(solution, iterations=iterations, share=_share(family, theta, integral))


def acceptance(
    family: Family, theta: Array, accepts: Accepts, *, points: int = 2**17, seed: int = 0
) -> float:
    """Return ``P_theta[f = 1]``: exact for a half-space or on the line, else on Sobol points.

    Examples
    --------
    >>> family = Gaussian("spherical")
    >>> theta = family.pack([0.0, 0.0], [[4.0, 0.0], [0.0, 4.0]])
    >>> acceptance(family, theta, HalfSpace([1.0, 0.0], offset=0.0))
    0.5
    """
    if isinstance(family, Gaussian) and isinstance(accepts, HalfSpace):
        cut = _HalfSpaceIntegral(family, np.asarray(accepts.normal), accepts.offset)
        return cut.acceptance(theta)
    oracle, d = Oracle(accepts), family.dimension(theta)
    if d > 1:
        return float(oracle(family.from_uniforms(theta, sobol(d, seed).random(points))).mean())
    grid = np.linspace(*family.reach(theta), 4096)
    pieces = _accepted_pieces(family, lambda x: oracle(x[:, None]), grid)
    return _share(family, theta, _panel_integral(family, pieces)) if pieces else 0.0


def _share(family: Family, theta: Array, integral: _NodeIntegral) -> float:
    return min(1.0, float(np.exp(integral.log_total(theta) - family.log_partition(theta))))


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
    start, p = family.theta_from_mean(target), len(target)
    most = min(2 ** int(np.log2(LARGEST / p)), MOST)
    engine = sobol(points.shape[1] + 1, seed)
    integral = _NodeIntegral(np.empty((0, p)), np.empty(0))
    asked = 0

    def extend(total: int) -> None:
        nonlocal asked
        x, log_q = family.propose(engine.random(total - asked))
        keep = oracle(frame.outside(x))
        asked = total
        offset = family.log_base(x[keep]) - log_q[keep]
        integral.statistics = np.concatenate([integral.statistics, family.statistics(x[keep])])
        integral.offset = np.concatenate([integral.offset, offset])

    extend(PILOT)
    if len(integral.offset) < 20 * p:
        extend(min(SEARCH, most))
    if len(integral.offset) < 2 * p + 10:
        raise BadData(
            f"'accepts' lets only {len(integral.offset)} of {asked:,} points around the sample "
            "through: it accepts (almost) nothing but the sample itself"
        )
    solution = _newton(start, target, integral, family.project)
    wanted = PER_SAMPLE * len(points) / max(integral.ess(solution.theta), 1.0) * asked
    if wanted > asked:
        extend(min(2 ** int(np.ceil(np.log2(wanted))), most))
        again = _newton(solution.theta, target, integral, family.project)
        solution = replace(again, iterations=solution.iterations + again.iterations)
    elif len(integral.offset) == asked:
        extend(min(SEARCH, most))
    if len(integral.offset) == asked:  # nothing is truncated: the ordinary estimate, exactly
        return Solution(start, integral.moments(start)[1], np.inf, solution.iterations)
    ess = integral.ess(solution.theta)
    warning = (
        f"the normalising integral rests on {ess:,.0f} effective points, fewer than "
        f"the {len(points):,} samples: standard errors are larger for it"
    )
    return replace(solution, ess=ess, warnings=(warning,) if ess < len(points) else ())
