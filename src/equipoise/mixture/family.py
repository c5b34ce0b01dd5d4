"""Exponential families: ``E_theta(x) = h(x) exp(theta . T(x) - W(theta))``, one small interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import BadData, InvalidInput

__all__ = ["Array", "Curvature", "Family", "Frame"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curvature:
    """What the theorems ask of a family on its parameter set.

    ``kappa I <= Hess W <= lam I`` and ``W`` is ``lipschitz``-Lipschitz.

    Examples
    --------
    >>> Curvature(kappa=0.5, lam=2.0, lipschitz=3.0).lam
    2.0
    """

    kappa: float
    lam: float
    lipschitz: float


@dataclass(frozen=True)
class Frame:
    """Coordinates in which a sample has mean 0 and unit scale, and the way back.

    ``x = shift + scale @ z``; ``theta = jacobian @ theta_z + offset``; ``family`` is the same
    family seen from z.
    """

    family: Family
    shift: Array
    scale: Array
    jacobian: Array
    offset: Array

    def inside(self, X: Array) -> Array:
        """Return z of x."""
        return np.asarray(np.linalg.solve(self.scale, (X - self.shift).T).T)

    def outside(self, Z: Array) -> Array:
        """Return x of z."""
        return np.asarray(Z @ self.scale.T + self.shift)

    def theta_outside(self, theta_z: Array) -> Array:
        """Return the parameter that belongs to x."""
        return np.asarray(self.jacobian @ theta_z + self.offset)


class Family(ABC):
    """One exponential family with its convex parameter set.

    A parameter is a flat array ``theta`` of length p, a sample an array of shape (n, d). The
    parameter set is convex and bounded; :meth:`project` is the Euclidean projection onto it.

    Examples
    --------
    >>> from equipoise.mixture import Exponential
    >>> Exponential().log_density([-1.0], [0.5, 2.0]).tolist()
    [-0.5, -2.0]
    """

    name: ClassVar[str]
    support: ClassVar[str]
    """The support in words."""

    def points(self, X: ArrayLike, *, name: str = "X") -> Array:
        """Return ``X`` as an (n, d) array of points that the family can produce, or object."""
        try:
            array = np.asarray(X)
        except ValueError:
            raise InvalidInput(f"{name!r} must have rows of equal length") from None
        if array.dtype.kind not in "fiub":
            raise InvalidInput(f"{name!r} must hold numbers; got dtype {array.dtype}")
        array = array.astype(float)
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] == 0:
            raise InvalidInput(f"{name!r} must have shape (n, d); got {np.shape(X)}")
        self._require_dimension(array.shape[1], name)
        if not np.isfinite(array).all():
            rows = int((~np.isfinite(array).all(axis=1)).sum())
            raise BadData(f"{name!r} has {rows} rows with missing or infinite values; drop them")
        outside = int((~self.in_support(array)).sum())
        if outside:
            raise BadData(
                f"{outside} of {len(array)} rows of {name!r} lie outside the support of the "
                f"{self.name} family, {self.support}; choose another family or transform them"
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

    def contains(self, theta: ArrayLike) -> bool:
        """Say whether the parameter lies in the parameter set."""
        theta = np.asarray(theta, dtype=float)
        moved = np.linalg.norm(self.project(theta) - theta)
        return bool(moved <= 1e-9 * (1.0 + np.linalg.norm(theta)))

    def frame(self, points: Array) -> Frame:
        """Return coordinates in which the sample is centred and scaled; none by default."""
        d, p = points.shape[1], self.statistics(points[:1]).shape[1]
        return Frame(self, np.zeros(d), np.eye(d), np.eye(p), np.zeros(p))

    # -- what a family provides ------------------------------------------------------------------

    @abstractmethod
    def in_support(self, X: Array) -> NDArray[np.bool_]:
        """Say for every row whether the family can produce it."""

    @abstractmethod
    def dimension(self, theta: Array) -> int:
        """Return d, the length of one point."""

    @abstractmethod
    def log_base(self, X: Array) -> Array:
        """Return ``log h(x)`` of every row."""

    @abstractmethod
    def statistics(self, X: Array) -> Array:
        """Return ``T(x)`` of every row, shape (n, p)."""

    @abstractmethod
    def log_partition(self, theta: Array) -> Array:
        """Return ``W(theta)``; the last axis of ``theta`` is the parameter, others broadcast."""

    @abstractmethod
    def mean_statistics(self, theta: Array) -> Array:
        """Return ``E_theta[T] = grad W(theta)``."""

    @abstractmethod
    def theta_from_mean(self, mean: Array) -> Array:
        """Return the theta whose ``E_theta[T]`` is ``mean``: the inverse of the mean map."""

    @abstractmethod
    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Turn uniform numbers of shape (n, d) into draws from ``E_theta``."""

    @abstractmethod
    def propose(self, uniforms: Array, points: Array) -> tuple[Array, Array]:
        """Turn uniforms of shape (n, d + 1) into points that cover the sample, and their log q."""

    @abstractmethod
    def project(self, theta: Array) -> Array:
        """Return the nearest parameter in the parameter set."""

    @abstractmethod
    def curvature(self, dimension: int = 1) -> Curvature:
        """Return bounds that hold on the whole parameter set."""

    @abstractmethod
    def fewest(self, dimension: int) -> int:
        """Return the smallest sample for which an estimate exists."""

    @abstractmethod
    def reach(self, theta: Array) -> tuple[float, float]:
        """Return the interval outside which less than about 1e-16 of the mass lies, on the line."""

    @abstractmethod
    def _require_dimension(self, dimension: int, name: str) -> None:
        """Raise if points cannot have this length."""
