"""``fit_truncated``: the law of everybody, from those whom a classifier let through.

The truncated law is an exponential family with base measure ``h f``, so its negative log
likelihood per sample is ``-theta . mean(T) + log of the integral of h f exp(theta . T)``, which is
convex; the gradient is ``E[T] - mean(T)`` and the Hessian ``Cov[T]``, both under the truncated law.
The integral comes in three ways: in closed form for a Gaussian cut by a half-space, by quadrature
(or a sum) on the line, and by importance sampling on scrambled Sobol points for any other
classifier. It is solved by projected Newton steps, in coordinates that standardise the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from equipoise._arrays import Array
from equipoise.errors import BadData, InvalidInput, UnknownName, require_kind
from equipoise.mixture.decision_maker import (
    Accepts,
    Ask,
    HalfSpace,
    Oracle,
    border,
    find_half_space,
    sobol,
    surroundings,
)
from equipoise.mixture.families import Family, Nodes
from equipoise.mixture.gaussian import Gaussian

METHODS = ("auto", "importance")
MISFIT_LIMIT = 6.0
PROBES = 2**14  # draws of the fitted law that show its fit, and its acceptance
FIRST = 2**16  # points of importance sampling before it is known how many are needed
MOST, LARGEST = 2**20, 2**25  # points, and numbers in their table: a quarter of a gigabyte
PER_SAMPLE = 20  # effective points per truncated sample: 2.5% on top of a standard error


@dataclass(frozen=True, eq=False)
class TruncatedFit:
    """The law of everybody, estimated from those the classifier let through.

    Attributes
    ----------
    family, theta, theta_covariance
        The family, its natural parameter and the covariance of the estimate.
    size
        Number of truncated samples.
    acceptance, acceptance_error
        ``P_theta[f = 1]``, the share of everybody that is let through, and its standard error.
    acceptance_gradient
        The derivative of ``acceptance`` in theta.
    method
        "importance", "exact" or "known".
    ess
        Effective number of points behind the normalising integral; inf where it is exact.
    oracle_calls
        People the classifier was asked about.
    condition
        Condition number of the information matrix in standardised coordinates.
    misfit
        How many standard errors the sample's third absolute moments lie from those of the fitted
        law behind the same truncation; the fit does not set them, so a wrong family shows here.
    on_edge
        Whether the estimate lies on the edge of the parameter set.

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
    ess: float = np.inf
    oracle_calls: int = 0
    condition: float = 1.0
    misfit: float = 0.0
    on_edge: bool = False

    @property
    def plainly_wrong(self) -> bool:
        """Whether the sample contradicts the family."""
        return self.on_edge or abs(self.misfit) > MISFIT_LIMIT

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to worry about, one sentence each."""
        vague, misfit = self.condition > 1e8, abs(self.misfit) > MISFIT_LIMIT
        doubts = {
            f"the normalising integral rests on {self.ess:,.0f} effective points, fewer than the "
            f"{self.size:,} samples: standard errors are larger for it": self.ess < self.size,
            "the estimate lies on the edge of the parameter set: the sample falls off more slowly "
            "than the family allows, or the family is wrong": self.on_edge,
            "some directions of the parameter are hardly identified by these samples": vague,
            f"the sample's third moments lie {abs(self.misfit):.0f} standard errors from those of "
            f"the fitted law: these data are not {self.family.name}": misfit,
            f"by this fit only {self.acceptance:.2%} of everybody is let through: the rest is "
            "extrapolation": self.acceptance < 0.01,
        }
        return tuple(words for words, doubtful in doubts.items() if doubtful)

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
        return self.family.unpack(self.theta)[0]

    @property
    def covariance(self) -> Array:
        """The Gaussian's covariance."""
        return self.family.unpack(self.theta)[1]

    def log_density(self, X: ArrayLike) -> Array:
        """Return the log density of everybody's law at every row."""
        return self.family.log_density(self.theta, X)

    def __str__(self) -> str:
        if isinstance(self.family, Gaussian):
            estimate = f"mean        {np.array2string(self.mean, precision=4)}"
        else:
            estimate = f"theta       {self.theta[0]:.5g} ± {self.standard_error[0]:.2g}"
        lines = (
            f"{self.family.name} from {self.size:,} truncated samples ({self.method})",
            f"acceptance  {self.acceptance:.4f} ± {self.acceptance_error:.4f}",
            f"effort      {self.oracle_calls:,} classifier calls, effective sample "
            f"{self.ess:,.0f}, condition {self.condition:.3g}",
            estimate,
            *(f"warning     {warning}" for warning in self.warnings),
        )
        return "\n  ".join(lines)


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
        ``ContinuousPoisson``, ``Poisson``, ``Binomial``.
    method
        "auto": the integral exactly, where that can be had (a Gaussian cut by a half-space, or any
        family on the line), else by importance sampling. "importance": by that in any case.
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
    require_kind("family", family, Family, "a family such as Gaussian()")
    points = family.points(X)
    n, d = points.shape
    gaussian = isinstance(family, Gaussian)
    needed = 10 * (d + gaussian)  # a covariance must be well away from singular
    if n < needed:
        raise BadData(
            f"{n} truncated samples are too few for the {family.name} family in {d} dimensions; "
            f"at least {needed} are needed"
        )
    if method == "importance" and not gaussian:
        raise InvalidInput(
            f"method='importance' is for Gaussians; the {family.name} family lives on the line, "
            "where method='auto' computes the integral"
        )
    oracle = Oracle(accepts)
    oracle.require_all(points)
    inner, shift, scale, jacobian, offset = family.frame(points)
    z: Array = np.asarray(np.linalg.solve(scale, (points - shift).T).T)
    ask: Ask = lambda z: oracle(z @ scale.T + shift)  # noqa: E731
    cut = None
    if isinstance(accepts, HalfSpace):
        normal = np.asarray(accepts.normal)
        ask = cut = HalfSpace(scale.T @ normal, accepts.offset - float(normal @ shift))
    elif method == "auto" and d > 1:
        cut = find_half_space(z, ask, seed)
    exact = method == "auto" and (d == 1 or cut is not None)
    ess = np.inf
    integral: Nodes | _HalfSpaceIntegral
    if not exact:
        integral, theta, on_edge = _fit_importance(inner, z, ask, seed)
        ess = integral.ess(theta)
    elif cut is not None and isinstance(inner, Gaussian):
        integral = _HalfSpaceIntegral(inner, cut)
        theta, on_edge = _newton(inner, z, integral, inner.fit(z))
    else:
        integral, theta, on_edge = _fit_line(inner, z, ask)
    people = inner.from_uniforms(theta, sobol(d, PROBES, seed))
    let_through = ask(people)
    if exact and cut is not None and (cut(people) != let_through).any():
        return fit_truncated(X, accepts, family, "importance", seed)  # linear near the sample only
    share = _share(inner, theta, integral) if exact else float(let_through.mean())
    mean, hessian = integral.moments(theta)
    covariance = _inverse(hessian) * (1.0 / n + 1.0 / ess)
    # d alpha / d theta = alpha (E[T | accepted] - E[T])
    slope = share * (mean - inner.mean_statistics(theta))
    outer = jacobian @ theta + offset
    projected = family.project(outer)
    return TruncatedFit(
        family=family,
        theta=projected,
        theta_covariance=jacobian @ covariance @ jacobian.T,
        size=n,
        acceptance=share,
        acceptance_gradient=np.asarray(np.linalg.solve(jacobian.T, slope)),
        method="exact" if exact else "importance",
        ess=ess,
        oracle_calls=oracle.calls,
        condition=min(float(np.linalg.cond(hessian)), 1e12),
        misfit=_misfit(z, people[let_through]),
        on_edge=on_edge or not np.allclose(projected, outer, rtol=1e-7, atol=0.0),
    )


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
    none, share = np.zeros(len(theta)), acceptance(family, theta, accepts)
    return TruncatedFit(family, theta, np.diag(none), 0, share, none, "known")


def acceptance(family: Family, theta: Array, accepts: Accepts) -> float:
    """Return ``P_theta[f = 1]``: exact for a half-space or on the line, else on Sobol points.

    Examples
    --------
    >>> family = Gaussian("spherical")
    >>> theta = family.pack([0.0, 0.0], [[4.0, 0.0], [0.0, 4.0]])
    >>> acceptance(family, theta, HalfSpace([1.0, 0.0], offset=0.0))
    0.5
    """
    if isinstance(family, Gaussian) and isinstance(accepts, HalfSpace):
        return float(ndtr(_HalfSpaceIntegral(family, accepts).standardise(theta)[-1]))
    oracle, d = Oracle(accepts), family.dimension(theta)
    if d > 1:
        return float(oracle(family.from_uniforms(theta, sobol(d, 2**17, seed=0))).mean())
    pieces = _accepted_pieces(family, oracle, np.linspace(*family.reach(theta), 4096))
    return _share(family, theta, family.nodes(pieces)) if pieces else 0.0


def _newton(
    family: Family, z: Array, integral: Nodes | _HalfSpaceIntegral, theta: Array
) -> tuple[Array, bool]:
    """Minimise from ``theta`` until nothing is gained; say whether the set's edge stopped it."""
    target = family.statistics(z).mean(axis=0)
    for _ in range(100):
        mean, hessian = integral.moments(theta)
        gradient = mean - target
        direction = _inverse(hessian) @ gradient
        decrement = float(gradient @ direction)
        if decrement <= 2e-12:
            break
        value = integral.log_total(theta) - theta @ target
        # a full step from afar would leap over the minimum to the edge of the parameter set
        first = 1.0 if decrement < 0.1 else 1.0 / (1.0 + np.sqrt(decrement))
        for size in first * 0.5 ** np.arange(34):
            candidate = family.project(theta - size * direction)
            gain = float(gradient @ (theta - candidate))
            new_value = integral.log_total(candidate) - candidate @ target
            if gain > 0.0 and new_value <= value - 1e-4 * gain:
                break
        else:
            break  # nothing better inside the set
        theta = candidate
    wish = theta - direction
    return theta, not np.allclose(family.project(wish), wish, rtol=1e-9, atol=1e-12)


def _inverse(hessian: Array) -> Array:
    """Invert with a floor on the eigenvalues, so that a flat direction does not explode."""
    values, vectors = np.linalg.eigh(hessian)
    floor = max(float(values[-1]), 1e-300) * 1e-12
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)


def _share(family: Family, theta: Array, integral: Nodes | _HalfSpaceIntegral) -> float:
    return min(1.0, math.exp(integral.log_total(theta) - family.log_partition(theta)))


@dataclass(frozen=True)
class _HalfSpaceIntegral:
    """``W(theta) + log P_theta[v . x >= c]`` with closed-form moments."""

    family: Gaussian
    cut: HalfSpace

    def log_total(self, theta: Array) -> float:
        return self.family.log_partition(theta) + float(log_ndtr(self.standardise(theta)[-1]))

    def moments(self, theta: Array) -> tuple[Array, Array]:
        # The Hessian is the Jacobian of the mean: central differences are exact enough.
        step = 1e-5 * np.maximum(1.0, np.abs(theta))
        more, less = self._mean(theta + np.diag(step)), self._mean(theta - np.diag(step))
        jacobian = (more - less) / (2.0 * step[:, None])
        return self._mean(theta), (jacobian + jacobian.T) / 2.0

    def _mean(self, theta: Array) -> Array:
        """Return ``E[T]`` under the truncated law; leading axes of theta broadcast."""
        mean, covariance, slope, at = self.standardise(theta)
        hazard = np.exp(-0.5 * at**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(at))
        shrink = (hazard * (hazard + at))[..., None, None]
        shrunk = covariance - slope[..., :, None] * slope[..., None, :] * shrink
        return self.family.statistics_of_moments(mean + slope * hazard[..., None], shrunk)

    def standardise(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean, covariance, ``Sigma v / |v|_Sigma``, and how far inside the mean lies."""
        mean, covariance = self.family.unpack(theta)
        across = covariance @ np.asarray(self.cut.normal)
        spread = np.sqrt(across @ np.asarray(self.cut.normal))
        at = (mean @ np.asarray(self.cut.normal) - self.cut.offset) / spread
        return mean, covariance, across / spread[..., None], at


def _fit_line(family: Family, z: Array, ask: Ask) -> tuple[Nodes, Array, bool]:
    """Integrate over the accepted intervals, on a range that grows until it holds the law."""
    theta = family.fit(z)
    low, high = float(z.min()), float(z.max())
    near, far = family.reach(theta)
    for _ in range(20):
        low, high = min(low, near), max(high, far)
        # half of the scan where the sample is, so that a wide range does not coarsen it there
        grid = np.union1d(np.linspace(low, high, 2048), np.linspace(z.min(), z.max(), 2048))
        integral = family.nodes(_accepted_pieces(family, ask, grid))
        theta, on_edge = _newton(family, z, integral, theta)
        near, far = family.reach(theta)
        if near >= low - 1e-9 * abs(low) and far <= high + 1e-9 * abs(high):
            break
    return integral, theta, on_edge


def _accepted_pieces(family: Family, ask: Ask, grid: Array) -> list[tuple[float, float]]:
    """Return the accepted intervals between the ends of a grid, cut where the answer changes."""
    if family.discrete:
        whole = np.arange(np.floor(grid[0]), np.ceil(grid[-1]) + 1.0)
        return [(x, x) for x in whole[ask(whole[:, None])].tolist()]
    accepted = ask(grid[:, None])
    change = np.flatnonzero(accepted[1:] != accepted[:-1])
    inside, outside = (
        np.where(accepted[change] == yes, grid[change], grid[change + 1]) for yes in (True, False)
    )
    cuts = border(ask, inside[:, None], outside[:, None])[:, 0]
    ends = np.concatenate([grid[:1], cuts, grid[-1:]])
    keep = ask((ends[1:] + ends[:-1])[:, None] / 2.0)
    return [(a, b) for a, b in np.column_stack([ends[:-1], ends[1:]])[keep].tolist()]


def _fit_importance(family: Family, z: Array, ask: Ask, seed: int) -> tuple[Nodes, Array, bool]:
    """Integrate over Sobol points around the sample, so many that they add little to its error."""

    def sampled(size: int) -> Nodes:
        x, log_density = surroundings(z.shape[1], size, seed)
        keep = ask(x)
        x = x[keep]
        return Nodes(family.statistics(x), family.log_base(x) - log_density[keep])

    p = family.statistics(z[:1]).shape[1]
    most = min(2 ** int(np.log2(LARGEST / p)), MOST)
    asked = min(FIRST, most)
    integral = sampled(asked)
    if len(integral.offset) < 2 * p + 10:
        raise BadData(
            f"'accepts' lets only {len(integral.offset)} of {asked:,} points around the sample "
            "through: it accepts (almost) nothing but the sample itself"
        )
    theta, on_edge = _newton(family, z, integral, family.fit(z))
    wanted = PER_SAMPLE * len(z) / max(integral.ess(theta), 1.0) * asked
    if wanted > asked:
        integral = sampled(min(2 ** int(np.ceil(np.log2(wanted))), most))
        theta, on_edge = _newton(family, z, integral, theta)
    return integral, theta, on_edge
