"""The multivariate Gaussian, with full, diagonal, spherical or known covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.mixture.families import Family, Frame

STRUCTURES = ("full", "diagonal", "spherical")
LOG_2PI = float(np.log(2.0 * np.pi))
# In a frame the truncated sample has variance 1; a law 100 times wider is beyond what it can tell.
FRAME_VARIANCES = (1e-6, 1e4)
# In standard deviations: the covariance of theta has the fourth power of this distance.
FARTHEST_MEAN = 1e6


@dataclass(frozen=True, eq=False)
class Gaussian(Family):
    """``N(mu, Sigma)`` with natural parameter (Sigma^-1 mu, Sigma^-1).

    The precision enters theta so that Euclidean length is Frobenius length: off-diagonal entries
    carry a factor sqrt(2). With a known covariance theta is ``Sigma^-1 mu`` alone.

    Parameters
    ----------
    covariance
        "full", "diagonal", "spherical", or the known covariance matrix.
    variances
        Parameter set: the smallest and largest eigenvalue that the covariance may have.
    longest
        Parameter set: the greatest length of ``Sigma^-1 mu``.

    Examples
    --------
    >>> family = Gaussian("full")
    >>> theta = family.pack(mean=[1.0, 0.0], covariance=[[2.0, 0.5], [0.5, 1.0]])
    >>> mean, covariance = family.unpack(theta)
    >>> covariance.round(6).tolist()
    [[2.0, 0.5], [0.5, 1.0]]
    """

    name = "Gaussian"
    support = "finite numbers"
    ends = (-np.inf, np.inf)
    degree = 2
    columns = None
    covariance: str | ArrayLike = "full"
    variances: tuple[float, float] = (1e-60, 1e60)  # any unit of measurement
    longest: float = 1e60

    def __post_init__(self) -> None:
        if not 0.0 < self.variances[0] < self.variances[1]:
            raise InvalidInput(f"'variances' must satisfy 0 < low < high; got {self.variances!r}")
        if isinstance(self.covariance, str):
            if self.covariance not in STRUCTURES:
                raise UnknownName("covariance structure", self.covariance, STRUCTURES)
            return
        matrix = np.array(self.covariance, dtype=float)
        is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        if not is_square or not np.allclose(matrix, matrix.T):
            raise InvalidInput(
                f"a known 'covariance' must be a symmetric matrix; got {self.covariance!r}"
            )
        _require_regular(matrix)
        # a frozen dataclass: what follows from an argument is set once, here
        object.__setattr__(self, "covariance", matrix)
        object.__setattr__(self, "degree", 1)
        object.__setattr__(self, "columns", len(matrix))

    @property
    def structure(self) -> str:
        """One of "full", "diagonal", "spherical", "known"."""
        return self.covariance if isinstance(self.covariance, str) else "known"

    def pack(self, mean: ArrayLike, covariance: ArrayLike | None = None) -> Array:
        """Return theta of a mean and a covariance (left out where it is known)."""
        mu = np.atleast_1d(np.asarray(mean, dtype=float))
        if self.structure == "known":
            covariance = np.asarray(self.covariance)
        if covariance is None:
            raise InvalidInput("'covariance' is needed unless the family knows it")
        sigma = np.asarray(covariance, dtype=float)
        if sigma.ndim == 0:  # one number: the same variance in all columns
            sigma = sigma * np.eye(len(mu))
        precision = np.linalg.inv(sigma)
        return self._flatten(precision @ mu, precision)

    def unpack(self, theta: ArrayLike) -> tuple[Array, Array]:
        """Return (mean, covariance); leading axes of theta broadcast."""
        eta, precision = self.natural(np.asarray(theta, dtype=float))
        covariance = np.linalg.inv(precision)
        return np.asarray((covariance @ eta[..., None])[..., 0]), np.asarray(covariance)

    def natural(self, theta: Array) -> tuple[Array, Array]:
        """Return ``(Sigma^-1 mu, Sigma^-1)``; leading axes of theta broadcast."""
        d = self.dimension(theta)
        entries = _entries(self.structure, d)
        precision = np.zeros((*theta.shape[:-1], d, d))
        # Halved: the transpose below adds the diagonal once more, and off the diagonal the factor
        # sqrt(2) came in twice.
        precision[..., entries.row, entries.column] = theta[..., d:] @ entries.scale.T / 2.0
        return theta[..., :d], precision + np.swapaxes(precision, -1, -2) + self._fixed(d)

    def _flatten(self, eta: Array, precision: Array) -> Array:
        """Return theta; leading axes broadcast."""
        entries = _entries(self.structure, eta.shape[-1])
        chosen = precision[..., entries.row, entries.column]
        return np.concatenate([eta, chosen @ entries.scale], axis=-1)

    def _fixed(self, d: int) -> Array:
        """Return the part of the precision that is known: all of it, or nothing."""
        if self.structure == "known":
            return np.linalg.inv(np.asarray(self.covariance))
        return np.zeros((d, d))

    def _fitted(self, matrix: Array) -> Array:
        """Return the covariance nearest to a matrix that the structure allows."""
        if self.structure == "known":
            return np.asarray(self.covariance)
        covariance = self.natural(self._flatten(np.zeros(len(matrix)), matrix))[1]
        _require_regular(covariance)
        return covariance

    def dimension(self, theta: Array) -> int:
        """Return d, read off the length of theta."""
        p = int(theta.shape[-1])
        lengths = {"known": p, "spherical": p - 1, "diagonal": p // 2}
        return lengths.get(self.structure, round((math.sqrt(9.0 + 8.0 * p) - 3.0) / 2.0))

    def log_base(self, X: Array) -> Array:
        """Return the constant, and the quadratic form where the covariance is known."""
        d = X.shape[1]
        return np.asarray(-0.5 * (d * LOG_2PI + np.einsum("ij,ij->i", X @ self._fixed(d), X)))

    def statistics(self, X: Array) -> Array:
        """Return x and, scaled, the parts of ``-x x'/2`` that the structure has."""
        entries = _entries(self.structure, X.shape[1])
        products = X[:, entries.row] * X[:, entries.column]
        return np.hstack([X, -0.5 * products @ entries.scale])

    def log_partition(self, theta: Array) -> float:
        """Return ``eta' Sigma eta / 2 - log det(Sigma^-1) / 2``."""
        eta, precision = self.natural(theta)
        root = np.linalg.cholesky(precision)
        whitened = np.linalg.solve(root, eta)
        return float(whitened @ whitened / 2.0 - np.log(np.diag(root)).sum())

    def mean_statistics(self, theta: Array) -> Array:
        """Return the mean and ``-(Sigma + mu mu')/2`` in the order of the statistics."""
        return self.statistics_of_moments(*self.unpack(theta))

    def statistics_of_moments(self, mean: Array, covariance: Array) -> Array:
        """Return ``E[T]`` of any law with this mean and covariance; leading axes broadcast."""
        second = covariance + mean[..., :, None] * mean[..., None, :]
        return self._flatten(mean, -0.5 * second)

    def theta_from_mean(self, mean: Array) -> Array:
        """Match the first and second moments."""
        # T is laid out like theta, so natural() unpacks -(Sigma + mu mu')/2 as well
        mu, half_second = self.natural(np.asarray(mean, dtype=float))
        return self.pack(mu, self._fitted(-2.0 * half_second - np.outer(mu, mu)))

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> Array:
        """Return draws; normal numbers are made directly."""
        mean, covariance = self.unpack(theta)
        normals = rng.standard_normal((size, len(mean)))
        return np.asarray(mean + normals @ np.linalg.cholesky(covariance).T)

    def from_uniforms(self, theta: Array, uniforms: Array) -> Array:
        """Invert the normal distribution function."""
        mean, covariance = self.unpack(theta)
        normals = ndtri(np.clip(uniforms, 1e-15, 1.0 - 1e-15))  # 0 and 1 would be infinite
        return np.asarray(mean + normals @ np.linalg.cholesky(covariance).T)

    def project(self, theta: Array) -> Array:
        """Clip the eigenvalues of the precision and the length of ``Sigma^-1 mu``."""
        eta, precision = self.natural(np.asarray(theta, dtype=float))
        eta = eta * min(1.0, self.longest / max(float(np.linalg.norm(eta)), 1e-300))
        least_variance, largest_variance = self.variances
        values, vectors = np.linalg.eigh(precision)
        clipped = np.clip(values, 1.0 / largest_variance, 1.0 / least_variance)
        # Left alone inside the set, where to build it anew would only round it.
        if (clipped != values).any():
            precision = (vectors * clipped) @ vectors.T
        return self._flatten(eta, precision)

    def curvature(self, thetas: Array, radius: float) -> tuple[float, float, float]:
        """Return bounds from the extreme variances u <= v and the longest mean m in the balls.

        A direction (a, B) has variance ``(a - B mu)' Sigma (a - B mu) + tr(B Sigma B Sigma)/2``,
        which lies between two quadratic forms in the norms of a and B.
        """
        eta, precision = self.natural(np.atleast_2d(thetas))
        longest_eta = float(np.linalg.norm(eta, axis=-1).max()) + radius
        values = np.linalg.eigvalsh(precision)
        if self.structure == "known":
            least_variance = float(1.0 / values.max())
            largest_variance = float(1.0 / values.min())
            return least_variance, largest_variance, largest_variance * longest_eta
        if values.min() <= radius:
            raise InvalidInput(
                f"a ball of radius {radius:g} reaches beyond the Gaussian laws: a precision has "
                f"the eigenvalue {values.min():.3g}; take a smaller one"
            )
        u = 1.0 / (values.max() + radius)
        v = 1.0 / (values.min() - radius)
        m = longest_eta * v
        # The quadratic forms in (|a|, |B|); the bounds are their extreme eigenvalues.
        lower = np.linalg.eigvalsh([[u, -u * m], [-u * m, u * m**2 + u**2 / 2.0]])[0]
        upper = np.linalg.eigvalsh([[v, v * m], [v * m, v * m**2 + v**2 / 2.0]])[1]
        lipschitz = np.hypot(m, 0.5 * (np.sqrt(eta.shape[-1]) * v + m**2))
        return float(lower), float(upper), float(lipschitz)

    def frame(self, points: Array) -> Frame:
        """Whiten by the sample as far as the structure allows."""
        shift = points.mean(axis=0)
        centred = points - shift  # far means would cost digits in the moments
        covariance = self._fitted(centred.T @ centred / len(points))
        self._require_near(shift, np.sqrt(np.diag(covariance)))
        # Any root of the covariance whitens the sample.
        scale = np.asarray(np.linalg.cholesky(covariance))
        structure = np.eye(len(shift)) if self.structure == "known" else self.covariance
        inner = Gaussian(structure, variances=FRAME_VARIANCES, longest=1e6)
        # theta is an affine function of its value in the frame: see where zero and the units go
        p = self.statistics(points[:1]).shape[1]
        eta, precision = inner.natural(np.vstack([np.zeros(p), np.eye(p)]))
        to_frame = np.linalg.inv(scale)
        precision = to_frame.T @ precision @ to_frame
        images = self._flatten(eta @ to_frame + precision @ shift, precision)
        image_of_zero = images[0]
        jacobian = (images[1:] - image_of_zero).T
        return Frame(inner, shift, scale, jacobian, image_of_zero)

    def _require_near(self, centre: Array, spread: Array) -> None:
        """Raise if a column lies so far from 0 that a float has too few digits for its spread."""
        column = int(np.argmax(np.abs(centre) / spread))
        if abs(centre[column]) > FARTHEST_MEAN * spread[column]:
            raise BadData(
                f"column {column} of the features lies around {centre[column]:.4g} and spreads by "
                f"{spread[column]:.3g} only, too little for the digits of a number; subtract a "
                "constant from it everywhere, in 'accepts' and in the audit too"
            )

    def reach(self, theta: Array) -> tuple[float, float]:
        """Return nine standard deviations on both sides, for one column."""
        mean, covariance = self.unpack(theta)
        width = 9.0 * float(np.sqrt(covariance[0, 0]))
        return float(mean[0]) - width, float(mean[0]) + width


class _Entries(NamedTuple):
    """Rows and columns of a structure's entries, and what a unit of theta is of each.

    The columns of ``scale`` are orthonormal for the Frobenius product of symmetric matrices.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    scale: Array


@lru_cache
def _entries(structure: str, d: int) -> _Entries:
    """Return the entries of a precision of d columns that theta has."""
    diagonal = np.arange(0 if structure == "known" else d)
    if structure == "spherical":
        return _Entries(diagonal, diagonal, np.full((d, 1), 1.0 / np.sqrt(d)))
    row, column = np.triu_indices(d if structure == "full" else 0, 1)  # above the diagonal
    scale = np.diag(np.repeat([1.0, np.sqrt(2.0)], [len(diagonal), len(row)]))
    return _Entries(np.append(diagonal, row), np.append(diagonal, column), scale)


def _require_regular(covariance: Array) -> None:
    # Relative to the largest eigenvalue, so that the unit of measurement does not matter.
    values = np.linalg.eigvalsh(covariance)
    if values[0] <= 1e-12 * max(float(values[-1]), 1e-300):
        raise BadData(
            f"the covariance is singular (eigenvalues {values[0]:.3g} to {values[-1]:.3g}); "
            "drop constant or duplicate columns"
        )
