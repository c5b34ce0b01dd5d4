"""What a truncated fit returns: the parameter, how sure it is, and how the fit went."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import InvalidInput
from equipoise.mixture.family import Array, Family
from equipoise.mixture.gaussian import Gaussian

__all__ = ["MISFIT_LIMIT", "Diagnostics", "TruncatedFit"]

MISFIT_LIMIT = 6.0


@dataclass(frozen=True)
class Diagnostics:
    """How a fit went.

    Attributes
    ----------
    ess
        Effective number of points behind the normalising integral; inf where it is exact.
    oracle_calls
        People the classifier was asked about.
    iterations
        Newton or gradient steps.
    condition
        Condition number of the information matrix in standardised coordinates.
    boundary_hits
        Steps that ended on the edge of the parameter set.
    misfit
        How many standard errors the sample's third absolute moments lie from those of the fitted
        law behind the same truncation; the fit does not set them, so a wrong family shows here.
    on_edge
        Whether the estimate lies on the edge of the parameter set.
    warnings
        What to worry about, one sentence each.

    Examples
    --------
    >>> Diagnostics(ess=900.0, oracle_calls=4_096, iterations=6, condition=3.2).warnings
    ()
    """

    ess: float
    oracle_calls: int
    iterations: int
    condition: float
    boundary_hits: int = 0
    misfit: float = 0.0
    on_edge: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def plainly_wrong(self) -> bool:
        """Whether the sample contradicts the family."""
        return self.on_edge or abs(self.misfit) > MISFIT_LIMIT


@dataclass(frozen=True, eq=False)
class TruncatedFit:
    """The law of everybody, estimated from those the classifier let through.

    Attributes
    ----------
    theta, theta_covariance
        Natural parameter and the covariance of its estimate.
    size
        Number of truncated samples.
    acceptance, acceptance_error
        ``P_theta[f = 1]``, the share of everybody that is let through, and its standard error.
    method
        "importance", "sgd" or "exact".

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace, known_law
    >>> family = Gaussian("spherical")
    >>> law = known_law(family, family.pack([0.0], [[1.0]]), HalfSpace([1.0]))
    >>> round(law.acceptance, 3)
    0.5
    """

    family: Family
    theta: Array
    theta_covariance: Array
    size: int
    acceptance: float
    acceptance_gradient: Array
    method: str
    diagnostics: Diagnostics

    @property
    def standard_error(self) -> Array:
        """Standard error of each entry of theta."""
        return np.sqrt(np.diag(self.theta_covariance))

    @property
    def acceptance_error(self) -> float:
        """Standard error of ``acceptance``, to first order."""
        g = self.acceptance_gradient
        return float(np.sqrt(max(float(g @ self.theta_covariance @ g), 0.0)))

    @property
    def mean(self) -> Array:
        """The Gaussian's mean."""
        return self._gaussian().unpack(self.theta)[0]

    @property
    def covariance(self) -> Array:
        """The Gaussian's covariance."""
        return self._gaussian().unpack(self.theta)[1]

    def log_density(self, X: ArrayLike) -> Array:
        """Return the log density of everybody's law at every row."""
        return self.family.log_density(self.theta, X)

    def draw_thetas(self, size: int, rng: np.random.Generator) -> Array:
        """Return parameters from the normal approximation of the estimate's uncertainty."""
        root = _root(self.theta_covariance)
        thetas = self.theta + rng.standard_normal((size, len(self.theta))) @ root.T
        for i in np.flatnonzero(~np.isfinite(self.family.log_partition(thetas))):
            thetas[i] = self.family.project(thetas[i])
        return np.asarray(thetas)

    def __str__(self) -> str:
        d = self.diagnostics
        lines = [
            f"{self.family.name} from {self.size:,} truncated samples ({self.method})",
            f"  acceptance  {self.acceptance:.4f} ± {self.acceptance_error:.4f}",
            f"  effort      {d.oracle_calls:,} classifier calls, {d.iterations} steps, "
            f"effective sample {d.ess:,.0f}, condition {d.condition:.3g}",
        ]
        if isinstance(self.family, Gaussian):
            with np.printoptions(precision=4, suppress=True):
                lines.append(f"  mean        {self.mean}")
        else:
            lines.append(f"  theta       {self.theta[0]:.5g} ± {self.standard_error[0]:.2g}")
        return "\n".join(lines + [f"  warning     {w}" for w in d.warnings])

    def _gaussian(self) -> Gaussian:
        if isinstance(self.family, Gaussian):
            return self.family
        raise InvalidInput(
            f"'mean' and 'covariance' are those of a Gaussian; the {self.family.name} fit has "
            "'theta' and family.mean_statistics(theta)"
        )


def _root(covariance: Array) -> Array:
    """Return a square root that also serves a singular (or zero) covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)))
