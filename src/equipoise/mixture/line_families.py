"""One-parameter families on the line: Exponential, Weibull, continuous Bernoulli and Poisson."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from equipoise.errors import BadData, InvalidInput
from equipoise.mixture.family import Array, Curvature, Family

__all__ = ["ContinuousBernoulli", "ContinuousPoisson", "Exponential", "LineFamily", "Weibull"]


@dataclass(frozen=True)
class LineFamily(Family):
    """A family on the line with a scalar parameter in the interval ``bounds``; T(x) = x, h = 1.

    A subclass says where it lives (``ends``, ``support`` in words) and which parameters exist at
    all (``_widest``), and replaces what is not so simple.
    """

    ends: ClassVar[tuple[float, float]]
    _widest: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        low, high = self.bounds
        widest_low, widest_high = self._widest
        if not widest_low <= low < high <= widest_high:
            raise InvalidInput(
                f"'bounds' of the {self.name} family must satisfy "
                f"{widest_low:g} <= low < high <= {widest_high:g}; got {self.bounds!r}"
            )

    def in_support(self, X: Array) -> NDArray[np.bool_]:
        """Say for every row whether it lies between the ends."""
        return np.asarray((X[:, 0] >= self.ends[0]) & (X[:, 0] <= self.ends[1]))

    def dimension(self, theta: Array) -> int:
        """Return 1."""
        return 1

    def log_base(self, X: Array) -> Array:
        """Return 0."""
        return np.zeros(len(X))

    def statistics(self, X: Array) -> Array:
        """Return x."""
        return X

    def project(self, theta: Array) -> Array:
        """Clip to the bounds."""
        return np.clip(theta, *self.bounds)

    def fewest(self, dimension: int) -> int:
        """Return 10: one parameter."""
        return 10

    def mean_statistics(self, theta: Array) -> Array:
        """Return ``W'``."""
        return np.array([self._moments(float(theta[0]))[0]])

    def variance(self, theta: float) -> float:
        """Return ``W''``, the variance of T."""
        return self._moments(theta)[1]

    def theta_from_mean(self, mean: Array) -> Array:
        """Solve ``W'(theta) = mean``."""
        if not self.ends[0] < mean[0] < self.ends[1]:
            raise BadData(
                f"the mean of T must lie inside the support of the {self.name} family, "
                f"{self.support}; got {mean[0]:.4g}"
            )
        return self.project(np.array([self._theta_of(float(mean[0]))]))

    def propose(self, uniforms: Array, points: Array) -> tuple[Array, Array]:
        """Mix exponentials of one and four times the sample's mean."""
        mean = float(points.mean())
        x = -np.where(uniforms[:, 1] < 0.7, mean, 4.0 * mean) * np.log1p(-uniforms[:, 0])
        near, wide = (np.exp(-x / m) / m for m in (mean, 4.0 * mean))
        return x[:, None], np.log(0.7 * near + 0.3 * wide)

    def curvature(self, dimension: int = 1) -> Curvature:
        """Return the extremes of ``W''`` and ``|W'|`` over the bounds, taken on a fine grid."""
        low, high = self.bounds
        sides = [s * _spaced(*sorted((max(s * low, 0.0), max(s * high, 0.0)))) for s in (-1, 1)]
        grid = np.unique(np.concatenate(sides).clip(low, high))
        moments = np.array([self._moments(float(t)) for t in grid])
        return Curvature(
            float(moments[:, 1].min()), float(moments[:, 1].max()), float(abs(moments[:, 0]).max())
        )

    @abstractmethod
    def _moments(self, theta: float) -> tuple[float, float]:
        """Return mean and variance of T."""

    def _theta_of(self, mean: float, start: float = 0.0) -> float:
        """Solve ``W'(theta) = mean`` by Newton steps kept inside a shrinking bracket."""
        low, high = self.bounds
        theta = float(np.clip(start, low, high))
        for _ in range(200):
            value, variance = self._moments(theta)
            low, high = (theta, high) if value < mean else (low, theta)
            step = theta + (mean - value) / variance
            new = step if low < step < high else (low + high) / 2.0
            if abs(new - theta) <= 1e-13 * (1.0 + abs(theta)):
                break
            theta = new
        return theta

    def _require_dimension(self, dimension: int, name: str) -> None:
        if dimension != 1:
            raise InvalidInput(
                f"the {self.name} family lives on the line: {name!r} must have one column; "
                f"got {dimension}"
            )


@dataclass(frozen=True)
class Exponential(LineFamily):
    """``exp(theta x + log(-theta))`` on x >= 0, theta < 0; T(x) = x.

    Examples
    --------
    >>> Exponential().mean_statistics(np.array([-0.5]))
    array([2.])
    """

    name: ClassVar[str] = "exponential"
    support: ClassVar[str] = "x >= 0"
    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    _widest: ClassVar[tuple[float, float]] = (-np.inf, 0.0)
    bounds: tuple[float, float] = (-1e60, -1e-60)

    def log_partition(self, theta: Array) -> Array:
        """Return ``-log(-theta)``."""
        rate = -theta[..., 0]
        return np.asarray(np.where(rate > 0.0, -np.log(np.where(rate > 0.0, rate, 1.0)), np.inf))

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Invert the distribution function."""
        return np.asarray(np.log1p(-uniforms) / theta[0])

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return 0 to where T is 40 means."""
        return 0.0, -40.0 / float(theta[0])

    def _theta_of(self, mean: float, start: float = 0.0) -> float:
        return -1.0 / mean

    def _moments(self, theta: float) -> tuple[float, float]:
        return -1.0 / theta, 1.0 / theta**2


@dataclass(frozen=True)
class Weibull(Exponential):
    """``k x^(k-1) exp(theta x^k + log(-theta))`` on x > 0, theta < 0, k known; T(x) = x^k.

    Log-concave only for k >= 1, which the theorems need.

    Examples
    --------
    >>> Weibull(k=2.0).statistics(np.array([[3.0]])).tolist()
    [[9.0]]
    """

    name: ClassVar[str] = "Weibull"
    support: ClassVar[str] = "x > 0"
    ends: ClassVar[tuple[float, float]] = (5e-324, np.inf)  # from the smallest positive number
    k: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1.0 <= self.k < np.inf:
            raise InvalidInput(f"'k' must be at least 1 (the density is log-concave); got {self.k}")

    def log_base(self, X: Array) -> Array:
        """Return ``log k + (k-1) log x``."""
        return np.asarray(np.log(self.k) + (self.k - 1.0) * np.log(X[:, 0]))

    def statistics(self, X: Array) -> Array:
        """Return ``x^k``."""
        return np.asarray(X**self.k)

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Invert the distribution function."""
        return np.asarray(super().from_uniforms(theta, uniforms) ** (1.0 / self.k))

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return 0 to where T is 40 means."""
        return 0.0, float((-40.0 / theta[0]) ** (1.0 / self.k))


@dataclass(frozen=True)
class ContinuousBernoulli(LineFamily):
    """``exp(theta x - log((e^theta - 1)/theta))`` on [0, 1]; T(x) = x.

    Examples
    --------
    >>> ContinuousBernoulli().mean_statistics(np.array([0.0]))
    array([0.5])
    """

    name: ClassVar[str] = "continuous Bernoulli"
    support: ClassVar[str] = "0 <= x <= 1"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    bounds: tuple[float, float] = (-500.0, 500.0)

    def log_partition(self, theta: Array) -> Array:
        """Return ``log((e^theta - 1)/theta)``, stable everywhere."""
        t = np.abs(np.asarray(theta[..., 0], dtype=float))
        safe = np.maximum(t, 1e-4)
        far = np.log(-np.expm1(-safe) / safe)
        near = -t / 2.0 + t**2 / 24.0
        return np.asarray(np.where(t < 1e-4, near, far) + np.maximum(theta[..., 0], 0.0))

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Invert the distribution function."""
        t = float(theta[0])
        if abs(t) < 1e-8:
            return uniforms
        if t > 0.0:  # by symmetry, so that e^theta never overflows
            return np.asarray(1.0 + np.log1p((1.0 - uniforms) * np.expm1(-t)) / t)
        return np.asarray(np.log1p(uniforms * np.expm1(t)) / t)

    def propose(self, uniforms: Array, points: Array) -> tuple[Array, Array]:
        """Use the uniform law."""
        return uniforms[:, :1], np.zeros(len(uniforms))

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return the unit interval."""
        return self.ends

    def _moments(self, theta: float) -> tuple[float, float]:
        if abs(theta) < 1e-2:
            mean = 0.5 + theta / 12.0 - theta**3 / 720.0
            return mean, 1.0 / 12.0 - theta**2 / 240.0 + theta**4 / 6048.0
        t = abs(theta)
        mean = -1.0 / np.expm1(-t) - 1.0 / t
        variance = 1.0 / t**2 - np.exp(-t) / np.expm1(-t) ** 2
        return float(mean if theta > 0.0 else 1.0 - mean), float(variance)


@dataclass(frozen=True)
class ContinuousPoisson(LineFamily):
    """``exp(theta x - W(theta)) / Gamma(x + 1)`` on x >= 0; T(x) = x, W by quadrature.

    W is *not* ``e^theta`` as in the discrete law: at ``e^theta = 1`` W is 0.818, the mean 1.239
    and the variance 0.862.

    Examples
    --------
    >>> ContinuousPoisson().mean_statistics(np.array([0.0])).round(3)
    array([1.239])
    """

    name: ClassVar[str] = "continuous Poisson"
    support: ClassVar[str] = "x >= 0"
    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    bounds: tuple[float, float] = (-50.0, 12.0)

    def log_base(self, X: Array) -> Array:
        """Return ``-log Gamma(x + 1)``."""
        return np.asarray(-gammaln(X[:, 0] + 1.0))

    def log_partition(self, theta: Array) -> Array:
        """Integrate numerically."""
        values = [self._integral(float(t))[0] for t in np.ravel(theta[..., 0])]
        return np.array(values).reshape(np.shape(theta[..., 0]))

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Invert a finely tabulated distribution function, integrated by Simpson's rule."""
        x = np.linspace(*self.reach(theta), 2**16 + 1)
        density = np.exp(theta[0] * x - gammaln(x + 1.0) - self._integral(float(theta[0]))[0])
        steps = (density[:-2:2] + 4.0 * density[1::2] + density[2::2]) * (x[1] - x[0]) / 3.0
        below = np.concatenate([[0.0], np.cumsum(steps)])
        return np.interp(uniforms, below / below[-1], x[::2])

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return the range around the mode, with room for the slow left tail of a small mode."""
        mode = float(np.exp(theta[0]))
        width = 12.0 * float(np.sqrt(mode + 1.0))
        if theta[0] < 0.0:  # nearly an exponential law
            return 0.0, min(30.0, 40.0 / max(-float(theta[0]) - 1.0, 1.0))
        return max(0.0, mode - width), mode + width + 30.0

    def _theta_of(self, mean: float, start: float = 0.0) -> float:
        return super()._theta_of(mean, start=float(np.log(mean)))

    def _moments(self, theta: float) -> tuple[float, float]:
        return self._integral(theta)[1:]

    def _integral(self, theta: float) -> tuple[float, float, float]:
        """Return W, mean and variance."""
        low, high = self.reach(np.array([theta]))
        node, weight = _gauss(20)
        x = low + (high - low) * node
        log_value = theta * x - gammaln(x + 1.0)
        top = log_value.max()
        mass = weight * np.exp(log_value - top)
        total = mass.sum()
        mean = float(mass @ x / total)
        variance = float(mass @ (x - mean) ** 2 / total)
        return float(top + np.log(total * (high - low))), mean, variance


def _spaced(near: float, far: float) -> Array:
    """Return parameters between two distances from 0, closer where they are small; 0 included."""
    if far <= 0.0:
        return np.zeros(1)
    grid = np.geomspace(max(near, min(1e-3, far / 2.0)), far, 257)
    return grid if near > 0.0 else np.append(grid, 0.0)


@lru_cache
def _gauss(panels: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on [0, 1], composite in panels of 40."""
    node, weight = np.polynomial.legendre.leggauss(40)
    x = (np.arange(panels)[:, None] + (node + 1.0) / 2.0) / panels
    return x.ravel(), np.tile(weight / 2.0 / panels, panels)
