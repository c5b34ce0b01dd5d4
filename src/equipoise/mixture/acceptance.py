"""``P_theta[f = 1]``: the share of a law that a classifier lets through."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from equipoise.mixture.exact import accepted_share
from equipoise.mixture.family import Array, Family
from equipoise.mixture.fitted import Diagnostics, TruncatedFit
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.oracle import Accepts, HalfSpace, Oracle
from equipoise.mixture.quasirandom import sobol

__all__ = ["acceptance", "known_law"]


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
        mean, covariance = family.unpack(theta)
        normal = np.asarray(accepts.normal)
        spread = np.sqrt(normal @ covariance @ normal)
        return float(ndtr((normal @ mean - accepts.offset) / spread))
    oracle = Oracle(accepts)
    if family.dimension(theta) == 1:
        return accepted_share(family, theta, oracle)
    uniforms = sobol(family.dimension(theta), seed).random(points)
    return float(oracle(family.from_uniforms(theta, uniforms)).mean())


def known_law(family: Family, theta: Array, accepts: Accepts) -> TruncatedFit:
    """Return a law that is known, in the form of a fit without uncertainty.

    Examples
    --------
    >>> from equipoise.mixture import Gaussian, HalfSpace
    >>> family = Gaussian("spherical")
    >>> round(known_law(family, family.pack([1.0], [[1.0]]), HalfSpace([1.0])).acceptance, 2)
    0.84
    """
    theta = np.asarray(theta, dtype=float)
    return TruncatedFit(
        family=family,
        theta=theta,
        theta_covariance=np.zeros((len(theta), len(theta))),
        size=0,
        acceptance=acceptance(family, theta, accepts),
        acceptance_gradient=np.zeros(len(theta)),
        method="known",
        diagnostics=Diagnostics(ess=np.inf, oracle_calls=0, iterations=0, condition=1.0),
    )
