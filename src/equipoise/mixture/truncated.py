"""``fit_truncated``: the law of everybody, from those whom a classifier let through."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.mixture.exact import fit_half_space, fit_line
from equipoise.mixture.family import Array, Family, Frame
from equipoise.mixture.fitted import MISFIT_LIMIT, Diagnostics, TruncatedFit
from equipoise.mixture.gaussian import Gaussian
from equipoise.mixture.importance import fit_importance
from equipoise.mixture.linear import find_half_space
from equipoise.mixture.newton import Solution
from equipoise.mixture.oracle import Accepts, HalfSpace, Oracle
from equipoise.mixture.quasirandom import sobol
from equipoise.mixture.sgd import ORACLE_LIMIT, fit_sgd

__all__ = ["METHODS", "fit_truncated"]

FEWEST_PROBES, MOST_PROBES = 2**13, 2**15  # draws of the fitted law that show its fit
METHODS = ("auto", "importance", "exact", "sgd")


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
        convex maximum likelihood, the integral by importance sampling. "sgd": the paper's
        projected gradient method. "auto": exact where it exists, else importance.
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
    needed = family.fewest(points.shape[1])
    if len(points) < needed:
        raise BadData(
            f"{len(points)} truncated samples are too few for the {family.name} family in "
            f"{points.shape[1]} dimensions; at least {needed} are needed"
        )
    oracle = Oracle(accepts, limit=ORACLE_LIMIT if method == "sgd" else None)
    oracle.require_all(points)
    frame = family.frame(points)
    share: float | None = None
    cut = accepts if isinstance(accepts, HalfSpace) else None
    if cut is None and method == "auto" and isinstance(family, Gaussian) and points.shape[1] > 1:
        cut = find_half_space(frame, points, oracle, seed)
    chosen = _choose(method, points, cut, family)
    if chosen == "importance":
        solution = fit_importance(frame, points, oracle, seed)
    elif chosen == "sgd":
        solution = fit_sgd(frame, points, oracle, seed)
    elif cut is not None and isinstance(family, Gaussian):
        solution, share = fit_half_space(frame, points, cut)
    else:
        solution, share = fit_line(frame, points, oracle)
    probes = MOST_PROBES if share is None else 2 ** int(np.ceil(np.log2(len(points))))
    probes = min(max(probes, FEWEST_PROBES), MOST_PROBES)
    probe = sobol(points.shape[1], seed).random(probes)
    people = frame.family.from_uniforms(solution.theta, probe)
    let_through = oracle(frame.outside(people))
    if cut is not None and cut is not accepts and (cut(frame.outside(people)) != let_through).any():
        return fit_truncated(X, accepts, family, "importance", seed)  # linear near the sample only
    accepted = people[let_through]
    if share is None:
        share = len(accepted) / len(people)
    misfit = _misfit(frame.inside(points), accepted)
    return _assemble(frame, family, points, solution, share, misfit, oracle, chosen)


def _choose(method: str, points: Array, cut: HalfSpace | None, family: Family) -> str:
    exact = points.shape[1] == 1 or (isinstance(family, Gaussian) and cut is not None)
    if method == "exact" and not exact:
        raise InvalidInput(
            "method='exact' needs data on the line, or a Gaussian cut by a HalfSpace; "
            "use method='importance'"
        )
    if method == "auto":
        return "exact" if exact else "importance"
    return method


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
    theta = frame.theta_outside(solution.theta)
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
            boundary_hits=solution.boundary_hits + int(at_edge and not solution.at_boundary),
            warnings=tuple(warnings),
        ),
    )
