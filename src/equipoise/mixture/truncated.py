"""``fit_truncated``: the law of everybody, from those whom a classifier let through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.mixture.families import Array, Family, Frame
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.likelihood import (
    Solution,
    acceptance,
    fit_half_space,
    fit_importance,
    fit_line,
)
from equipoise.mixture.rules import Accepts, HalfSpace, Oracle, find_half_space, sobol

__all__ = [
    "METHODS",
    "Diagnostics",
    "TruncatedFit",
    "acceptance",
    "fit_truncated",
    "known_law",
]

FEWEST_PROBES, MOST_PROBES = 2**13, 2**15  # draws of the fitted law that show its fit
METHODS = ("auto", "importance", "exact")
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
        "importance", "exact" or "known".

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
        """Return parameters from the normal approximation of the estimate's uncertainty.

        Where the uncertainty is large some may be of no law: their ``log_partition`` is infinite.
        """
        values, vectors = np.linalg.eigh(self.theta_covariance)  # it may be singular, or zero
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        return np.asarray(self.theta + rng.standard_normal((size, len(self.theta))) @ root.T)

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


def fit_truncated(
    X: ArrayLike, accepts: Accepts, family: Family, method: str = "auto", seed: int = 0
) -> TruncatedFit:
    """Estimate an exponential family from the samples that a classifier let through.

    Parameters
    ----------
    X
        Truncated samples, shape (n, d); every one must be accepted.
    accepts
        The classifier: (n, d) array in, n booleans out. A :class:`HalfSpace` is recognised, and so
        is any other linear classifier, by asking it.
    family
        One of ``Gaussian``, ``Exponential``, ``Weibull``, ``ContinuousBernoulli``,
        ``ContinuousPoisson``.
    method
        "exact": a Gaussian cut by a ``HalfSpace``, or any family on the line. "importance":
        convex maximum likelihood, the integral by importance sampling. "auto": exact where it
        exists, else importance.
    seed
        Seed of the sampled points.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> everybody = rng.normal([0.0, 1.0], 2.0, size=(400_000, 2))
    >>> good = HalfSpace([1.0, 1.0], offset=2.0)
    >>> approved = everybody[good(everybody)]
    >>> fit_truncated(approved, good, Gaussian()).mean.round(1) + 0.0
    array([0., 1.])
    >>> approved.mean(axis=0).round(1)  # what ignoring the truncation gives
    array([1.5, 2.5])
    """
    if method not in METHODS:
        raise UnknownName("method", method, METHODS)
    if not isinstance(family, Family):
        raise InvalidInput(f"'family' must be a family such as Gaussian(); got {family!r}")
    points = family.points(X)
    gaussian = isinstance(family, Gaussian)
    needed = 10 * (points.shape[1] + gaussian)  # a covariance must be well away from singular
    if len(points) < needed:
        raise BadData(
            f"{len(points)} truncated samples are too few for the {family.name} family in "
            f"{points.shape[1]} dimensions; at least {needed} are needed"
        )
    oracle = Oracle(accepts)
    oracle.require_all(points)
    frame = family.frame(points)
    cut = accepts if isinstance(accepts, HalfSpace) and gaussian else None
    if cut is None and method == "auto" and gaussian and points.shape[1] > 1:
        cut = find_half_space(frame, points, oracle, seed)
    exact = points.shape[1] == 1 or cut is not None
    if method == "exact" and not exact:
        raise InvalidInput(
            "method='exact' needs data on the line, or a Gaussian cut by a HalfSpace; "
            "use method='importance'"
        )
    if method == "importance" and not gaussian:
        raise InvalidInput(
            f"method='importance' is for Gaussians; the {family.name} family lives on the line, "
            "where method='exact' computes the integral"
        )
    if method == "auto":
        method = "exact" if exact else "importance"
    if method == "importance":
        solution = fit_importance(frame, points, oracle, seed)
    elif cut is not None:
        solution = fit_half_space(frame, points, cut)
    else:
        solution = fit_line(frame, points, oracle)
    share = solution.share
    probes = MOST_PROBES if share is None else 2 ** int(np.ceil(np.log2(len(points))))
    probes = min(max(probes, FEWEST_PROBES), MOST_PROBES)
    people = frame.family.from_uniforms(solution.theta, sobol(points.shape[1], seed).random(probes))
    let_through = oracle(frame.outside(people))
    if cut is not None and cut is not accepts and (cut(frame.outside(people)) != let_through).any():
        return fit_truncated(X, accepts, family, "importance", seed)  # linear near the sample only
    share = float(let_through.mean()) if share is None else share
    misfit = _misfit(frame.inside(points), people[let_through])
    return _assemble(frame, family, points, solution, share, misfit, oracle, method)


def _misfit(sample: Array, law: Array) -> float:
    """Return the largest z-score of the sample's third absolute moments, column by column."""
    if len(law) < 100:
        return 0.0
    centre, spread = law.mean(axis=0), law.std(axis=0) + 1e-300
    ours, theirs = (np.abs((x - centre) / spread) ** 3 for x in (sample, law))
    # Sobol points are worth several times as many random ones
    error = theirs.std(axis=0) * np.sqrt(1.0 / len(sample) + 0.3 / len(law))
    gap = (ours.mean(axis=0) - theirs.mean(axis=0)) / (error + 1e-300)
    return float(gap[np.argmax(np.abs(gap))])


def _assemble(
    frame: Frame,
    family: Family,
    points: Array,
    solution: Solution,
    share: float,
    misfit: float,
    oracle: Oracle,
    method: str,
) -> TruncatedFit:
    values, vectors = np.linalg.eigh(solution.hessian)
    floor = max(float(values[-1]), 1e-300) * 1e-12
    condition = float(values[-1] / max(values[0], floor))
    noise = 1.0 / len(points) + 1.0 / solution.ess
    inverse = (vectors / np.maximum(values, floor)) @ vectors.T * noise
    theta = frame.jacobian @ solution.theta + frame.offset
    projected = family.project(theta)
    at_edge = solution.at_boundary or not np.allclose(projected, theta, rtol=1e-7, atol=0.0)
    # d alpha / d theta = alpha (E[T | accepted] - E[T]), and at the solution the first is mean(T)
    accepted = frame.family.statistics(frame.inside(points)).mean(axis=0)
    slope = share * (accepted - frame.family.mean_statistics(solution.theta))
    warnings = list(solution.warnings)
    if at_edge:
        warnings.append(
            "the estimate lies on the edge of the parameter set: the sample falls off more slowly "
            "than the family allows, or the family is wrong"
        )
    if condition > 1e8:
        warnings.append("some directions of the parameter are hardly identified by these samples")
    if abs(misfit) > MISFIT_LIMIT:
        warnings.append(
            f"the sample's third moments lie {abs(misfit):.0f} standard errors from those of the "
            f"fitted law: these data are not {family.name}"
        )
    if share < 0.01:
        warnings.append(
            f"by this fit only {share:.2%} of everybody is let through: the rest is extrapolation"
        )
    return TruncatedFit(
        family=family,
        theta=projected,
        theta_covariance=frame.jacobian @ inverse @ frame.jacobian.T,
        size=len(points),
        acceptance=share,
        acceptance_gradient=np.linalg.solve(frame.jacobian.T, slope),
        method=method,
        diagnostics=Diagnostics(
            ess=solution.ess,
            oracle_calls=oracle.calls,
            iterations=solution.iterations,
            condition=condition,
            misfit=misfit,
            on_edge=at_edge,
            warnings=tuple(warnings),
        ),
    )


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
