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
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from equipoise._arrays import Array, Flags
from equipoise.display import format_number
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
from equipoise.mixture.families import Family, Frame, Nodes
from equipoise.mixture.gaussian import Gaussian

METHODS = ("auto", "importance")
MISFIT_LIMIT = 6.0
PROBE_DRAWS = 2**14  # draws of the fitted law that show its fit, and its acceptance
FIRST_POINTS = 2**16  # of importance sampling, before it is known how many are needed
MAX_POINTS = 2**20
MAX_TABLE_ENTRIES = 2**25  # numbers in the table of points: a quarter of a gigabyte
POINTS_PER_SAMPLE = 20  # effective points per truncated sample: 2.5% on top of a standard error
NEWTON_STEPS = 100
HALVINGS = 34  # of a Newton step that gains nothing


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
        sentences = []
        if self.ess < self.size:
            sentences.append(
                f"the normalising integral rests on {self.ess:,.0f} effective points, fewer than "
                f"the {self.size:,} samples: standard errors are larger for it"
            )
        if self.on_edge:
            sentences.append(
                "the estimate lies on the edge of the parameter set: the sample falls off more "
                "slowly than the family allows, or the family is wrong"
            )
        if self.condition > 1e8:
            sentences.append(
                "some directions of the parameter are hardly identified by these samples"
            )
        if abs(self.misfit) > MISFIT_LIMIT:
            sentences.append(
                f"the sample's third moments lie {abs(self.misfit):.0f} standard errors from those "
                f"of the fitted law: these data are not {self.family.name}"
            )
        if self.acceptance < 0.01:
            sentences.append(
                f"by this fit only {self.acceptance:.2%} of everybody is let through: the rest is "
                "extrapolation"
            )
        return tuple(sentences)

    @property
    def standard_error(self) -> Array:
        """Standard error of each entry of theta."""
        return np.sqrt(np.diag(self.theta_covariance))

    @property
    def acceptance_error(self) -> float:
        """Standard error of ``acceptance``, to first order."""
        gradient = self.acceptance_gradient
        variance = float(gradient @ self.theta_covariance @ gradient)
        return float(np.sqrt(max(variance, 0.0)))

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
            f"{self.ess:,.0f}, condition {format_number(self.condition, 3)}",
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
    points = _require_sample(X, family, method)
    oracle = Oracle(accepts)
    oracle.require_all(points)
    frame = family.frame(points)
    sample = frame.enter(points)
    ask: Ask = lambda z: oracle(frame.leave(z))  # noqa: E731
    cut = None
    if isinstance(accepts, HalfSpace):
        cut = _half_space_in_frame(accepts, frame)
        ask = cut  # the same answers, without asking
    elif method == "auto" and points.shape[1] > 1:
        cut = find_half_space(sample, ask, seed)
    # Exact integrals first: those over sampled points add an error of their own.
    solution = None
    if method == "auto":
        solution = _solve_exactly(frame.family, sample, ask, cut, seed)
    if solution is None:
        solution = _solve_by_importance(frame.family, sample, ask, seed)
    return _fit_from_solution(family, frame, sample, solution, oracle.calls)


def _half_space_in_frame(half_space: HalfSpace, frame: Frame) -> HalfSpace:
    """Return a half-space of the user's coordinates in those of the frame."""
    normal = np.asarray(half_space.normal)
    return HalfSpace(frame.scale.T @ normal, half_space.offset - float(normal @ frame.shift))


def _require_sample(X: ArrayLike, family: Family, method: str) -> Array:
    """Return the truncated sample as points, or raise if it cannot be fitted by this method."""
    if method not in METHODS:
        raise UnknownName("method", method, METHODS)
    require_kind("family", family, Family, "a family such as Gaussian()")
    points = family.points(X)
    size, dimension = points.shape
    is_gaussian = isinstance(family, Gaussian)
    least_size = 10 * (dimension + is_gaussian)  # a covariance must be well away from singular
    if size < least_size:
        raise BadData(
            f"{size} truncated samples are too few for the {family.name} family in {dimension} "
            f"dimensions; at least {least_size} are needed"
        )
    if method == "importance" and not is_gaussian:
        raise InvalidInput(
            f"method='importance' is for Gaussians; the {family.name} family lives on the line, "
            "where method='auto' computes the integral"
        )
    return points


@dataclass(frozen=True)
class _Solution:
    """The minimum of the truncated likelihood, in the frame's coordinates.

    Attributes
    ----------
    integral
        The normalising integral of the truncated law.
    theta, on_edge
        The estimate, and whether it lies on the edge of the parameter set.
    draws, are_accepted
        Draws of the fitted law, and which of them the decision-maker lets through.
    is_exact
        Whether the integral is exact, or a sum over sampled points.
    """

    integral: Nodes | _HalfSpaceIntegral
    theta: Array
    on_edge: bool
    draws: Array
    are_accepted: Flags
    is_exact: bool


class _Minimum(NamedTuple):
    """Where an integral's likelihood is least, and whether the parameter set's edge stopped it."""

    integral: Nodes | _HalfSpaceIntegral
    theta: Array
    on_edge: bool


def _solve_exactly(
    family: Family, sample: Array, ask: Ask, cut: HalfSpace | None, seed: int
) -> _Solution | None:
    """Minimise with an exact integral; None where there is none.

    A classifier may look linear near the sample and not be so further away. The fitted law's own
    draws show it: then a half-space is not what truncates the law.
    """
    if cut is not None and isinstance(family, Gaussian):
        integral = _HalfSpaceIntegral(family, cut)
        minimum = _newton(family, sample, integral, family.fit(sample))
    elif sample.shape[1] == 1:
        minimum = _fit_line(family, sample, ask)
    else:
        return None
    draws = family.from_uniforms(minimum.theta, sobol(sample.shape[1], PROBE_DRAWS, seed))
    are_accepted = ask(draws)
    if cut is not None and (cut(draws) != are_accepted).any():
        return None
    return _Solution(*minimum, draws, are_accepted, is_exact=True)


def _solve_by_importance(family: Family, sample: Array, ask: Ask, seed: int) -> _Solution:
    """Minimise with an integral over sampled points."""
    minimum = _fit_importance(family, sample, ask, seed)
    draws = family.from_uniforms(minimum.theta, sobol(sample.shape[1], PROBE_DRAWS, seed))
    return _Solution(*minimum, draws, ask(draws), is_exact=False)


def _fit_from_solution(
    family: Family, frame: Frame, sample: Array, solution: _Solution, oracle_calls: int
) -> TruncatedFit:
    """Return the fit in the user's coordinates, with its errors and its acceptance."""
    theta = solution.theta
    integral = solution.integral
    if isinstance(integral, Nodes) and not solution.is_exact:
        ess = integral.ess(theta)
        share = float(solution.are_accepted.mean())
    else:
        ess = np.inf
        share = _share_inside(frame.family, theta, integral)
    mean, hessian = integral.moments(theta)
    # The sampled points add their own chance to that of the sample.
    covariance = _inverse(hessian) * (1.0 / len(sample) + 1.0 / ess)
    # d alpha / d theta = alpha (E[T | accepted] - E[T])
    slope = share * (mean - frame.family.mean_statistics(theta))
    user_theta = frame.jacobian @ theta + frame.offset
    # The frame has a parameter set of its own, so the user's is imposed only here.
    projected = family.project(user_theta)
    was_moved = not np.allclose(projected, user_theta, rtol=1e-7, atol=0.0)
    return TruncatedFit(
        family=family,
        theta=projected,
        theta_covariance=frame.jacobian @ covariance @ frame.jacobian.T,
        size=len(sample),
        acceptance=share,
        acceptance_gradient=np.asarray(np.linalg.solve(frame.jacobian.T, slope)),
        method="exact" if solution.is_exact else "importance",
        ess=ess,
        oracle_calls=oracle_calls,
        condition=min(float(np.linalg.cond(hessian)), 1e12),
        misfit=_misfit(sample, solution.draws[solution.are_accepted]),
        on_edge=solution.on_edge or was_moved,
    )


def _misfit(sample: Array, draws: Array) -> float:
    """Return the largest z-score of the sample's third absolute moments, column by column."""
    if len(draws) < 100:  # too few for moments: nothing can be said against the fit
        return 0.0
    centre = draws.mean(axis=0)
    spread = draws.std(axis=0) + 1e-300
    sample_cubes = np.abs((sample - centre) / spread) ** 3
    draw_cubes = np.abs((draws - centre) / spread) ** 3
    # Sobol points are worth several times as many random ones
    error = draw_cubes.std(axis=0) * np.sqrt(1.0 / len(sample) + 0.3 / len(draws))
    gaps = (sample_cubes.mean(axis=0) - draw_cubes.mean(axis=0)) / (error + 1e-300)
    return float(gaps[np.argmax(np.abs(gaps))])


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
    no_error = np.zeros(len(theta))
    share = acceptance(family, theta, accepts)
    return TruncatedFit(family, theta, np.diag(no_error), 0, share, no_error, "known")


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
        return float(ndtr(_HalfSpaceIntegral(family, accepts).cut_law(theta).depth))
    oracle = Oracle(accepts)
    dimension = family.dimension(theta)
    if dimension > 1:
        return float(oracle(family.from_uniforms(theta, sobol(dimension, 2**17, seed=0))).mean())
    pieces = _accepted_pieces(family, oracle, np.linspace(*family.reach(theta), 4096))
    return _share_inside(family, theta, family.nodes(pieces)) if pieces else 0.0


def _newton(
    family: Family, sample: Array, integral: Nodes | _HalfSpaceIntegral, theta: Array
) -> _Minimum:
    """Minimise the mean negative log likelihood by damped Newton steps from ``theta``."""
    target = family.statistics(sample).mean(axis=0)
    for _ in range(NEWTON_STEPS):
        mean, hessian = integral.moments(theta)
        gradient = mean - target
        direction = _inverse(hessian) @ gradient
        decrement = float(gradient @ direction)
        if decrement <= 2e-12:
            break
        # a full step from afar would leap over the minimum to the edge of the parameter set
        first_step = 1.0 if decrement < 0.1 else 1.0 / (1.0 + np.sqrt(decrement))
        better_theta = _search_along(
            direction * first_step, gradient, target, family, integral, theta
        )
        if better_theta is None:
            break
        theta = better_theta
    # Where a further full step would lead. Projection moves this point if it lies outside.
    next_theta = theta - direction
    is_inside = np.allclose(family.project(next_theta), next_theta, rtol=1e-9, atol=1e-12)
    return _Minimum(integral, theta, on_edge=not is_inside)


def _search_along(
    step: Array,
    gradient: Array,
    target: Array,
    family: Family,
    integral: Nodes | _HalfSpaceIntegral,
    theta: Array,
) -> Array | None:
    """Return the first of ever shorter steps that gains enough, None if none does."""
    value = integral.log_total(theta) - theta @ target
    # Armijo's rule: a step must bring a share of the gain that the gradient promises.
    for fraction in 0.5 ** np.arange(HALVINGS):
        candidate = family.project(theta - fraction * step)
        promised_gain = float(gradient @ (theta - candidate))
        candidate_value = integral.log_total(candidate) - candidate @ target
        if promised_gain > 0.0 and candidate_value <= value - 1e-4 * promised_gain:
            return candidate
    return None


def _inverse(hessian: Array) -> Array:
    """Invert with a floor on the eigenvalues, so that a flat direction does not explode."""
    values, vectors = np.linalg.eigh(hessian)
    floor = max(float(values[-1]), 1e-300) * 1e-12
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)


def _share_inside(family: Family, theta: Array, integral: Nodes | _HalfSpaceIntegral) -> float:
    """Return the share of the law that the integral covers."""
    return min(1.0, math.exp(integral.log_total(theta) - family.log_partition(theta)))


class _CutLaw(NamedTuple):
    """A Gaussian law and where a half-space cuts it.

    ``slope`` is ``Sigma v / |v|_Sigma``, ``depth`` how many standard deviations inside the mean
    lies. Leading axes are those of theta.
    """

    mean: Array
    covariance: Array
    slope: Array
    depth: Array


@dataclass(frozen=True)
class _HalfSpaceIntegral:
    """``W(theta) + log P_theta[v . x >= c]`` with closed-form moments."""

    family: Gaussian
    cut: HalfSpace

    def log_total(self, theta: Array) -> float:
        return self.family.log_partition(theta) + float(log_ndtr(self.cut_law(theta).depth))

    def moments(self, theta: Array) -> tuple[Array, Array]:
        # The Hessian is the Jacobian of the mean: central differences are exact enough.
        step = 1e-5 * np.maximum(1.0, np.abs(theta))
        mean_above = self._mean(theta + np.diag(step))
        mean_below = self._mean(theta - np.diag(step))
        jacobian = (mean_above - mean_below) / (2.0 * step[:, None])
        return self._mean(theta), (jacobian + jacobian.T) / 2.0

    def _mean(self, theta: Array) -> Array:
        """Return ``E[T]`` under the truncated law; leading axes of theta broadcast."""
        law = self.cut_law(theta)
        hazard = np.exp(-0.5 * law.depth**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(law.depth))
        # axes of what follows: those of theta, then rows and columns of the covariance
        lost_variance = (hazard * (hazard + law.depth))[..., None, None]
        outer_slope = law.slope[..., :, None] * law.slope[..., None, :]
        covariance = law.covariance - outer_slope * lost_variance
        mean = law.mean + law.slope * hazard[..., None]
        return self.family.statistics_of_moments(mean, covariance)

    def cut_law(self, theta: Array) -> _CutLaw:
        """Return the law's moments relative to the half-space."""
        mean, covariance = self.family.unpack(theta)
        normal = np.asarray(self.cut.normal)
        across = covariance @ normal
        spread = np.sqrt(across @ normal)
        depth = (mean @ normal - self.cut.offset) / spread
        return _CutLaw(mean, covariance, across / spread[..., None], depth)


def _fit_line(family: Family, sample: Array, ask: Ask) -> _Minimum:
    """Integrate over the accepted intervals, on a range that grows until it holds the law."""
    theta = family.fit(sample)
    low = float(sample.min())
    high = float(sample.max())
    law_low, law_high = family.reach(theta)
    for _ in range(20):
        low = min(low, law_low)
        high = max(high, law_high)
        # half of the scan where the sample is, so that a wide range does not coarsen it there
        wide_grid = np.linspace(low, high, 2048)
        grid = np.union1d(wide_grid, np.linspace(sample.min(), sample.max(), 2048))
        integral = family.nodes(_accepted_pieces(family, ask, grid))
        minimum = _newton(family, sample, integral, theta)
        theta = minimum.theta
        law_low, law_high = family.reach(theta)
        if law_low >= low - 1e-9 * abs(low) and law_high <= high + 1e-9 * abs(high):
            break
    return minimum


def _accepted_pieces(family: Family, ask: Ask, grid: Array) -> list[tuple[float, float]]:
    """Return the accepted intervals between the ends of a grid, cut where the answer changes."""
    if family.discrete:
        whole_numbers = np.arange(np.floor(grid[0]), np.ceil(grid[-1]) + 1.0)
        accepted_numbers = whole_numbers[ask(whole_numbers[:, None])]
        return [(number, number) for number in accepted_numbers.tolist()]
    accepted = ask(grid[:, None])
    changes = np.flatnonzero(accepted[1:] != accepted[:-1])
    point_before = grid[changes]
    point_after = grid[changes + 1]
    inside = np.where(accepted[changes], point_before, point_after)
    outside = np.where(accepted[changes], point_after, point_before)
    # The grid only shows where the answer changes; bisection finds the cut itself.
    cuts = border(ask, inside[:, None], outside[:, None])[:, 0]
    # Between two cuts the answer is the same everywhere, so the middle shows it.
    ends = np.concatenate([grid[:1], cuts, grid[-1:]])
    is_accepted = ask((ends[1:] + ends[:-1])[:, None] / 2.0)
    pieces = np.column_stack([ends[:-1], ends[1:]])[is_accepted]
    return [(low, high) for low, high in pieces.tolist()]


def _fit_importance(family: Family, sample: Array, ask: Ask, seed: int) -> _Minimum:
    """Integrate over Sobol points around the sample, so many that they add little to its error."""
    n_statistics = family.statistics(sample[:1]).shape[1]
    most_points = min(2 ** int(np.log2(MAX_TABLE_ENTRIES / n_statistics)), MAX_POINTS)
    n_points = min(FIRST_POINTS, most_points)
    integral = _sampled_integral(family, sample.shape[1], n_points, ask, seed)
    if len(integral.offset) < 2 * n_statistics + 10:
        raise BadData(
            f"'accepts' lets only {len(integral.offset)} of {n_points:,} points around the sample "
            "through: it accepts (almost) nothing but the sample itself"
        )
    minimum = _newton(family, sample, integral, family.fit(sample))
    # Only now is it known how much of the sampled points' weight lies where the law is.
    points_per_effective = n_points / max(integral.ess(minimum.theta), 1.0)
    needed_points = POINTS_PER_SAMPLE * len(sample) * points_per_effective
    if needed_points > n_points:
        n_points = min(2 ** int(np.ceil(np.log2(needed_points))), most_points)
        integral = _sampled_integral(family, sample.shape[1], n_points, ask, seed)
        minimum = _newton(family, sample, integral, minimum.theta)
    return minimum


def _sampled_integral(family: Family, dimension: int, n_points: int, ask: Ask, seed: int) -> Nodes:
    """Return the truncated law's integral as a weighted sum over accepted points."""
    points, log_density = surroundings(dimension, n_points, seed)
    are_accepted = ask(points)
    accepted = points[are_accepted]
    log_weight = family.log_base(accepted) - log_density[are_accepted]
    return Nodes(family.statistics(accepted), log_weight)
