"""Exponential families ``E_theta(x) = h(x) exp(theta . T(x) - W(theta))`` and those on the line.

A family on the line integrates by Gauss-Legendre panels, or by a sum where its support are whole
numbers. That gives W, the moments, a sampler and the exact truncated fit; closed forms replace
them where there are any. The multivariate Gaussian is in :mod:`equipoise.mixture.gaussian`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import cumulative_simpson
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, softmax, xlogy

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput, require_whole

PANELS_PER_INTEGRAL = 60  # over all its intervals together
PANEL_NODES, PANEL_WEIGHTS = np.polynomial.legendre.leggauss(20)


@dataclass(frozen=True)
class Nodes:
    """``sum exp(theta . T(x) + offset(x))`` over points: an integral of h exp(theta . T)."""

    statistics: Array
    offset: Array

    def log_total(self, theta: Array) -> float:
        """Return the logarithm of the sum."""
        return float(logsumexp(self.statistics @ theta + self.offset))

    def weights(self, theta: Array) -> Array:
        """Return each point's share of the sum."""
        return np.asarray(softmax(self.statistics @ theta + self.offset))

    def ess(self, theta: Array) -> float:
        """Return the effective number of points."""
        return float(1.0 / (self.weights(theta) ** 2).sum())

    def moments(self, theta: Array) -> tuple[Array, Array]:
        """Return mean and covariance of T."""
        # Centred before it is squared: a difference of two large moments would lose its digits.
        weights = self.weights(theta)
        mean = weights @ self.statistics
        root = self.statistics - mean
        root *= np.sqrt(weights)[:, None]  # in place: the table may take a quarter of a gigabyte
        return mean, root.T @ root


class Frame(NamedTuple):
    """Coordinates z in which a sample is centred and scaled, and the family as seen from there.

    The way back is ``x = shift + scale @ z`` and ``theta = jacobian @ theta_z + offset``.
    """

    family: Family
    shift: Array
    scale: Array
    jacobian: Array
    offset: Array

    def enter(self, points: Array) -> Array:
        """Return points in the frame's coordinates."""
        return np.asarray(np.linalg.solve(self.scale, (points - self.shift).T).T)

    def leave(self, points: Array) -> Array:
        """Return points of the frame in the user's coordinates."""
        return np.asarray(points @ self.scale.T + self.shift)


class Family:
    """One exponential family with its convex parameter set.

    A parameter is a flat array ``theta`` of length p, a sample an array of shape (n, d). The
    parameter set is convex and bounded; :meth:`project` is the Euclidean projection onto it.

    Unless a family says otherwise it lives on the line, with T(x) = x, h = 1 and a scalar parameter
    in the interval ``bounds``, and is integrated numerically. ``ends`` and ``support`` are where it
    lives, in numbers and words; where the ends are infinite it says how far its mass reaches.

    Examples
    --------
    >>> from equipoise.mixture import Exponential
    >>> Exponential().log_density([-1.0], [0.5, 2.0]).tolist()
    [-0.5, -2.0]
    """

    name: str
    support: str
    """The support in words."""
    ends: tuple[float, float]
    bounds: tuple[float, float]
    discrete: bool = False
    """Whether the support are whole numbers; integrals are sums then."""
    degree: int = 1
    """Largest degree of the polynomials in T."""
    columns: int | None = 1
    """Length of a point, None where it may have any."""
    _supremum: float = np.inf  # all parameters lie below it

    def __post_init__(self) -> None:
        self._require_bounds(*self.bounds)

    def _require_bounds(self, low: float, high: float) -> None:
        if not low < high < self._supremum:
            raise InvalidInput(
                f"'bounds' of the {self.name} family must satisfy low < high < "
                f"{self._supremum:g}; got {(low, high)!r}"
            )

    def points(self, X: ArrayLike, *, name: str = "X", remedy: str = "drop them") -> Array:
        """Return ``X`` as an (n, d) array of points that the family can produce, or object."""
        try:
            array = np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            raise InvalidInput(f"{name!r} must hold numbers, in rows of equal length") from None
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] == 0:
            raise InvalidInput(f"{name!r} must have shape (n, d); got {np.shape(X)}")
        if self.columns not in (None, array.shape[1]):
            raise InvalidInput(
                f"{name!r} has {array.shape[1]} columns, and points of this {self.name} family "
                f"have {self.columns}; choose columns or another family"
            )
        if not np.isfinite(array).all():
            rows = int((~np.isfinite(array).all(axis=1)).sum())
            raise BadData(f"{name!r} has {rows} rows with missing or infinite values; {remedy}")
        x = array[:, 0]
        low, high = self.ends
        is_outside = ~((low <= x) & (x <= high))
        if self.discrete:
            is_outside |= x != np.round(x)
        if is_outside.any():
            raise BadData(
                f"{is_outside.sum()} of {len(array)} rows of {name!r} lie outside the support of "
                f"the {self.name} family, {self.support}; choose another family or transform them"
            )
        return array

    def log_density(self, theta: ArrayLike, X: ArrayLike) -> Array:
        """Return ``log E_theta(x)`` of every row."""
        points = self.points(X)
        theta = np.asarray(theta, dtype=float)
        value = self.log_base(points) + self.statistics(points) @ theta
        return np.asarray(value - self.log_partition(theta))

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> Array:
        """Return ``size`` draws from ``E_theta``, shape (size, d)."""
        theta = np.asarray(theta, dtype=float)
        return self.from_uniforms(theta, rng.random((size, self.dimension(theta))))

    def fit(self, X: ArrayLike) -> Array:
        """Return the ordinary maximum likelihood estimate, which ignores any truncation."""
        return self.theta_from_mean(self.statistics(self.points(X)).mean(axis=0))

    def nodes(self, pieces: list[tuple[float, float]]) -> Nodes:
        """Return the integral of ``h exp(theta . T)`` over intervals of the line."""
        if self.discrete:
            numbers = [np.arange(np.ceil(low), np.floor(high) + 1.0) for low, high in pieces]
            x = np.concatenate(numbers)[:, None]
            return Nodes(self.statistics(x), self.log_base(x))
        total_length = sum(high - low for low, high in pieces)
        # A long interval gets more panels, and each at least one.
        panel_edges = []
        for low, high in pieces:
            n_panels = 1 + int(PANELS_PER_INTEGRAL * (high - low) / total_length)
            panel_edges.append(np.linspace(low, high, n_panels + 1))
        # axes: panel, node. The nodes lie in [-1, 1], so each panel is stretched to that length.
        panel_starts = np.concatenate([edges[:-1] for edges in panel_edges])[:, None]
        half_width = np.concatenate([np.diff(edges) for edges in panel_edges])[:, None] / 2.0
        x = (panel_starts + half_width * (PANEL_NODES + 1.0)).reshape(-1, 1)
        log_weight = np.log(half_width * PANEL_WEIGHTS).ravel()
        return Nodes(self.statistics(x), self.log_base(x) + log_weight)

    def frame(self, points: Array) -> Frame:
        """Return coordinates that centre and scale a sample. By default nothing is moved."""
        d = points.shape[1]
        p = self.statistics(points[:1]).shape[1]
        return Frame(self, np.zeros(d), np.eye(d), np.eye(p), np.zeros(p))

    def unpack(self, theta: ArrayLike) -> tuple[Array, Array]:
        """Return mean and covariance, which a Gaussian is named by."""
        raise InvalidInput(
            f"'mean' and 'covariance' are those of a Gaussian; the {self.name} fit has 'theta' and "
            "family.mean_statistics(theta)"
        )

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return the interval outside which less than about 1e-16 of the mass lies, on the line."""
        return self.ends

    def dimension(self, theta: Array) -> int:
        """Return d, the length of one point."""
        return 1

    def log_base(self, X: Array) -> Array:
        """Return ``log h(x)`` of every row."""
        return np.zeros(len(X))

    def statistics(self, X: Array) -> Array:
        """Return ``T(x)`` of every row, shape (n, p)."""
        return X

    def log_partition(self, theta: Array) -> float:
        """Return ``W(theta)``."""
        return self.nodes([self.reach(theta)]).log_total(theta)

    def mean_statistics(self, theta: Array) -> Array:
        """Return ``E_theta[T] = grad W(theta)``."""
        return np.array([self._moments(float(theta[0]))[0]])

    def theta_from_mean(self, mean: Array) -> Array:
        """Return the theta whose ``E_theta[T]`` is ``mean``: the inverse of the mean map."""
        if not self.ends[0] < mean[0] < self.ends[1]:
            raise BadData(
                f"the mean of T must lie inside the support of the {self.name} family, "
                f"{self.support}; got {mean[0]:.4g}"
            )
        return self.project(np.array([self._theta_of(float(mean[0]))]))

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Turn uniform numbers of shape (n, d) into draws from ``E_theta``."""
        low, high = self.reach(theta)
        x = np.arange(low, high + 1.0) if self.discrete else np.linspace(low, high, 2**15 + 1)
        # Up to a factor, which cancels: W is not needed, and softmax does not overflow.
        density = softmax(self.log_base(x[:, None]) + self.statistics(x[:, None]) @ theta)
        if self.discrete:
            # Without the last sum, which rounding may leave below a uniform number.
            return np.asarray(x[np.searchsorted(np.cumsum(density)[:-1], uniforms)])
        mass_below = cumulative_simpson(density, initial=0.0)
        return np.asarray(np.interp(uniforms, mass_below / mass_below[-1], x))

    def project(self, theta: Array) -> Array:
        """Return the nearest parameter in the parameter set."""
        return np.clip(theta, *self.bounds)

    def curvature(self, thetas: Array, radius: float) -> tuple[float, float, float]:
        """Return ``kappa``, ``lambda`` and ``L`` on a set with balls around these thetas (rows).

        There ``kappa I <= Hess W <= lambda I``, and W is L-Lipschitz.
        """
        low = float(np.min(thetas)) - radius
        high = float(np.max(thetas)) + radius
        self._require_bounds(low, high)  # such balls may leave the family
        # W'' of all these families is monotone, or largest at 0, or both
        grid = np.union1d(np.linspace(low, high, 257), np.clip(0.0, low, high))
        means, variances = np.array([self._moments(float(theta)) for theta in grid]).T
        return float(variances.min()), float(variances.max()), float(abs(means).max())

    def _theta_of(self, mean: float) -> float:
        def mean_excess(theta: float) -> float:
            return self._moments(theta)[0] - mean

        low, high = self.bounds
        # The mean grows with theta. A mean beyond the ends has no root between them.
        if mean_excess(low) >= 0.0:
            return low
        if mean_excess(high) <= 0.0:
            return high
        return float(brentq(mean_excess, low, high, xtol=1e-13, rtol=1e-13))

    def _moments(self, theta: float) -> tuple[float, float]:
        parameter = np.array([theta])
        mean, variance = self.nodes([self.reach(parameter)]).moments(parameter)
        return float(mean[0]), float(variance[0, 0])


@dataclass(frozen=True)
class Weibull(Family):
    """``k x^(k-1) exp(theta x^k + log(-theta))`` on x > 0, theta < 0, k known; T(x) = x^k.

    Log-concave only for k >= 1, which the theorems need.

    Examples
    --------
    >>> Weibull(k=2.0).statistics(np.array([[3.0]])).tolist()
    [[9.0]]
    """

    name = "Weibull"
    support = "x > 0"
    ends = (5e-324, np.inf)  # from the smallest positive number
    _supremum = 0.0
    bounds: tuple[float, float] = (-1e60, -1e-60)
    k: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1.0 <= self.k < np.inf:
            raise InvalidInput(f"'k' must be at least 1 (the density is log-concave); got {self.k}")
        # where k is no whole number T is no polynomial, and this is the next degree
        object.__setattr__(self, "degree", int(np.ceil(self.k)))

    def log_base(self, X: Array) -> Array:
        """Return ``log k + (k-1) log x``."""
        return np.asarray(np.log(self.k) + xlogy(self.k - 1.0, X[:, 0]))

    def statistics(self, X: Array) -> Array:
        """Return ``x^k``."""
        return np.asarray(X**self.k)

    def log_partition(self, theta: Array) -> float:
        """Return ``-log(-theta)``."""
        return -float(np.log(-theta[0]))

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Invert the distribution function."""
        return np.asarray((np.log1p(-uniforms) / theta[0]) ** (1.0 / self.k))

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return 0 to where T is 40 means."""
        return 0.0, float((-40.0 / theta[0]) ** (1.0 / self.k))

    def _theta_of(self, mean: float) -> float:
        return -1.0 / mean

    def _moments(self, theta: float) -> tuple[float, float]:
        return -1.0 / theta, 1.0 / theta**2


@dataclass(frozen=True)
class Exponential(Weibull):
    """``exp(theta x + log(-theta))`` on x >= 0, theta < 0; T(x) = x: Weibull with k = 1.

    Examples
    --------
    >>> Exponential().mean_statistics(np.array([-0.5]))
    array([2.])
    """

    name = "exponential"
    support = "x >= 0"
    ends = (0.0, np.inf)
    k: float = field(default=1.0, init=False)


@dataclass(frozen=True)
class ContinuousBernoulli(Family):
    """``exp(theta x - log((e^theta - 1)/theta))`` on [0, 1]; T(x) = x.

    Examples
    --------
    >>> ContinuousBernoulli().mean_statistics(np.array([0.0]))
    array([0.5])
    """

    name = "continuous Bernoulli"
    support = "0 <= x <= 1"
    ends = (0.0, 1.0)
    bounds: tuple[float, float] = (-500.0, 500.0)


@dataclass(frozen=True)
class ContinuousPoisson(Family):
    """``exp(theta x - W(theta)) / Gamma(x + 1)`` on x >= 0; T(x) = x, W by quadrature.

    W is *not* ``e^theta`` as in the discrete law: at ``e^theta = 1`` W is 0.818, the mean 1.239
    and the variance 0.862.

    Examples
    --------
    >>> ContinuousPoisson().mean_statistics(np.array([0.0])).round(3)
    array([1.239])
    """

    name = "continuous Poisson"
    support = "x >= 0"
    ends = (0.0, np.inf)
    bounds: tuple[float, float] = (-50.0, 12.0)

    def log_base(self, X: Array) -> Array:
        """Return ``-log Gamma(x + 1)``."""
        return np.asarray(-gammaln(X[:, 0] + 1.0))

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return the range around the mode, with room for the slow left tail of a small mode."""
        mode = float(np.exp(theta[0]))
        width = 12.0 * float(np.sqrt(mode + 1.0))
        if theta[0] < 0.0:  # nearly an exponential law
            return 0.0, min(30.0, 40.0 / max(-float(theta[0]) - 1.0, 1.0))
        return max(0.0, mode - width), mode + width + 30.0


@dataclass(frozen=True)
class Poisson(ContinuousPoisson):
    """``exp(theta x - e^theta) / x!`` on whole numbers x >= 0; T(x) = x, integrals are sums.

    Fits are exact maximum likelihood. The theorem on TruncEst is not proved for it: it needs a
    log-concave density.

    Examples
    --------
    >>> Poisson().mean_statistics(np.array([0.0])).round(6)
    array([1.])
    """

    name = "Poisson"
    support = "whole numbers x >= 0"
    discrete = True

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return whole numbers around the mean."""
        # Below 0 the continuous law is nearly exponential, and its reach is not that of this one.
        low, high = super().reach(np.maximum(theta, 0.0))
        return float(np.floor(low)), float(np.ceil(high))


@dataclass(frozen=True)
class Binomial(Family):
    """``C(n, x) exp(theta x - n log(1 + e^theta))`` on 0, ..., n, n known; T(x) = x.

    Fits are exact maximum likelihood. The theorem on TruncEst is not proved for it: it needs a
    log-concave density.

    Examples
    --------
    >>> Binomial(n=10).mean_statistics(np.array([0.0]))
    array([5.])
    """

    name = "binomial"
    support = "whole numbers 0 <= x <= n"
    discrete = True
    bounds: tuple[float, float] = (-40.0, 40.0)
    n: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("n", self.n)
        # A frozen dataclass can be filled in here only by this detour.
        object.__setattr__(self, "ends", (0.0, float(self.n)))

    def log_base(self, X: Array) -> Array:
        """Return ``log C(n, x)``."""
        x = X[:, 0]
        return np.asarray(gammaln(self.n + 1.0) - gammaln(x + 1.0) - gammaln(self.n - x + 1.0))
