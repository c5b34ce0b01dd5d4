"""The paper's TruncEst (Algorithms 4 and 5, after Lee, Mehrotra and Zampetakis).

Start at the ordinary estimate, move against ``T(accepted draw) - T(sample)``, project, repeat, and
take the candidate that the majority agrees on. :func:`trunc_est` is that to the letter: one fresh
sample a step, one accepted draw a step, a ball around the start, one of the candidates returned.
The theorem's step counts (:func:`trunc_est_constants`) prove that the method is polynomial and are
numbers with dozens to thousands of digits, so counts of one's own can be given. To fit,
:func:`equipoise.mixture.fit_truncated` minimises the same likelihood exactly, and
:func:`equipoise.mixture.check_assumptions` says which of the theorem's constants such fits support.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise._arrays import Array
from equipoise.errors import (
    BadData,
    InvalidInput,
    plain_number,
    require_in_open_unit,
    require_kind,
    require_whole,
)
from equipoise.mixture.decision_maker import Accepts, Oracle
from equipoise.mixture.families import Family

ORACLE_LIMIT = 16_000_000
_LOG_10 = math.log(10.0)


@dataclass(frozen=True)
class StructuralConstants:
    """The constants of Assumption 1.

    Attributes
    ----------
    kappa, lam, lipschitz
        ``kappa I <= Hess W <= lambda I`` on Theta, where W is L-Lipschitz.
    alpha
        The least share of an outcome that the classifier lets through.
    beta
        A ball of radius ``1/beta`` around each true theta lies in Theta. Any such number will do;
        a larger one asks more of TruncEst, whose precision is ``epsilon/(2 beta)``.
    degree
        Largest degree of the polynomials in T: 1 for a Gaussian of known covariance, else 2.

    Examples
    --------
    >>> StructuralConstants(kappa=1.0, lam=4.0, lipschitz=5.0, alpha=0.3, beta=5.0).beta
    5.0
    """

    kappa: float
    lam: float
    lipschitz: float
    alpha: float = 1.0
    beta: float = 1.0
    degree: int = 1

    def __post_init__(self) -> None:
        for name in ("kappa", "lam", "lipschitz", "beta", "degree"):
            _require_positive(name, getattr(self, name))
        if self.beta < 1.0:
            raise InvalidInput(f"'beta' must be at least 1; got {self.beta!r}")


@dataclass(frozen=True, eq=False)
class TruncEstResult:
    """What TruncEst returns: one of its candidates, and whether the majority agrees with it.

    Attributes
    ----------
    theta
        The candidate within ``2 epsilon`` of more than half of all; where there is none, that
        with the most neighbours.
    settled
        Whether there is one. If not, the printed algorithm has no answer.
    candidates
        The end of every repeat, shape (repeats, p).
    start
        The ordinary estimate.

    Examples
    --------
    >>> ends = np.array([[-0.5], [-0.52]])
    >>> TruncEstResult(ends[0], settled=True, candidates=ends, start=ends[0]).theta
    array([-0.5])
    """

    theta: Array
    settled: bool
    candidates: Array
    start: Array


def trunc_est(
    X: ArrayLike,
    accepts: Accepts,
    family: Family,
    epsilon: float,
    delta: float,
    constants: StructuralConstants,
    *,
    n: int | None = None,
    m: int | None = None,
    eta: float | None = None,
    seed: int = 0,
) -> TruncEstResult:
    """Return ``TruncEst(D, f, epsilon, delta, c, Theta)`` as printed; Theta is the family's.

    ``n`` samples give the start, each of the ``10 ceil(log(1/delta))`` repeats takes ``m`` steps
    of size ``eta`` on fresh samples. Left out, they are the theorem's, and ``X`` will hardly ever
    be long enough; the promise of an error within ``epsilon`` holds for the theorem's only.

    Examples
    --------
    >>> from equipoise.mixture import Exponential
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(2.0, (40_000, 1))
    >>> late = lambda X: X[:, 0] >= 1.0
    >>> family = Exponential(bounds=(-2.0, -0.1))
    >>> c = StructuralConstants(kappa=0.25, lam=100.0, lipschitz=10.0, alpha=0.3)
    >>> found = trunc_est(X[late(X)], late, family, 0.1, 0.3, c, n=1_000, m=500, eta=0.003)
    >>> found.settled, bool(abs(found.theta[0] + 0.5) < 0.1)
    (True, True)
    """
    require_kind("family", family, Family, "a family such as Gaussian()")
    require_kind("constants", constants, StructuralConstants, "StructuralConstants(...)")
    require_in_open_unit("epsilon", epsilon)
    require_whole("n", n)
    require_whole("m", m)
    _require_positive("eta", 1.0 if eta is None else eta)
    points = family.points(X)
    p = family.statistics(points[:1]).shape[1]
    narrow = epsilon / math.sqrt(3.0)  # line 1
    theory = trunc_est_constants(constants, epsilon=narrow, delta=delta, dimension=p)
    log_n = theory.log_n if n is None else math.log(n)
    log_m = theory.log_m if m is None else math.log(m)
    log_rows = float(np.logaddexp(log_n, log_m + math.log(theory.repeats)))
    if not len(points) or log_rows > math.log(len(points)) + 1e-12:
        shown = f"{math.exp(log_rows):,.0f}" if log_rows < 30.0 else f"10^{log_rows / _LOG_10:.0f}"
        raise BadData(
            f"TruncEst reads {shown} truncated samples, one a step in {theory.repeats} repeats, "
            f"and 'X' has {len(points):,}; give more, or smaller 'n' and 'm' of your own"
        )
    n = math.ceil(math.exp(log_n)) if n is None else int(n)  # the logarithm may round up
    m = math.ceil(math.exp(log_m)) if m is None else int(m)
    eta = math.exp(theory.log_eta) if eta is None else eta
    rng = np.random.default_rng(seed)
    oracle = Oracle(accepts)
    oracle.require_all(points)
    statistics = family.statistics(rng.permutation(points))
    start = family.theta_from_mean(statistics[:n].mean(axis=0))
    radius = (narrow**2 - 2.0 * constants.beta * math.log(constants.alpha)) / constants.kappa
    candidates = np.tile(start, (theory.repeats, 1))
    for i, fresh in enumerate(np.split(statistics[n : n + m * theory.repeats], theory.repeats)):
        for sample in fresh:
            theta = candidates[i]
            accepted = family.statistics(_accepted_draw(theta, family, oracle, rng))[0]
            candidates[i] = _project(theta - eta * (accepted - sample), start, radius, family)
    gaps = np.linalg.norm(candidates[:, None] - candidates[None, :], axis=2)
    near = (gaps <= 2.0 * epsilon).sum(axis=1)
    chosen = int(np.argmax(near))
    settled = bool(near[chosen] > len(candidates) / 2.0)
    return TruncEstResult(candidates[chosen], settled, candidates, start)


def _require_positive(name: str, value: object) -> None:
    if not (plain_number(value) or 0.0) > 0.0:
        raise InvalidInput(f"{name!r} must be a finite number above 0; got {value!r}")


def _accepted_draw(theta: Array, family: Family, oracle: Oracle, rng: np.random.Generator) -> Array:
    """Return the first draw of ``E_theta`` that is let through, as one row."""
    size = 8
    while oracle.calls < ORACLE_LIMIT:
        draws = family.sample(theta, size, rng)
        accepted = draws[oracle(draws)]
        if len(accepted):
            return accepted[:1]
        size = min(4 * size, 2**16)
    raise BadData(
        f"TruncEst asked the classifier about {oracle.calls:,} people and stopped: 'accepts' lets "
        "(almost) nothing through near the sample, or 'm' is too large"
    )


def _project(theta: Array, start: Array, radius: float, family: Family) -> Array:
    """Return the nearest point of the ball that lies in Theta (Dykstra's alternating steps)."""
    outer = inner = np.zeros_like(theta)
    for _ in range(100):
        away = theta + outer - start
        ball = start + away * min(1.0, radius / max(float(np.linalg.norm(away)), 1e-300))
        outer, corrected = theta + outer - ball, ball + inner
        theta = family.project(corrected)
        inner = corrected - theta
        if np.allclose(theta, ball, rtol=1e-12, atol=1e-12):
            break
    return theta


# -- the theorem ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class TruncEstConstants:
    """Logarithms of the quantities in the theorem on TruncEst (Theorem 3.1 of Lee et al.).

    Attributes
    ----------
    log_n, log_m, log_eta
        Samples for the ordinary estimate at the start, gradient steps of a repeat, step size.
    log_kappa_f, log_lambda_f
        Strong convexity and smoothness of the truncated likelihood.
    log_rho
        Bound on the gradient's second moment (its square root).
    repeats
        How often the steps are repeated, ``10 ceil(log(1/delta))``.

    Examples
    --------
    >>> print(TruncEstConstants(46.1, 69.1, -23.0, -4.6, 9.2, 11.5, repeats=30))
    n = 10^20.0, m = 10^30.0, eta = 10^-10.0, kappa_f = 10^-2.0, lambda_f = 10^4.0, rho = 10^5.0
    """

    log_n: float
    log_m: float
    log_eta: float
    log_kappa_f: float
    log_lambda_f: float
    log_rho: float
    repeats: int

    def __str__(self) -> str:
        logs = [(name, value) for name, value in vars(self).items() if name != "repeats"]
        return ", ".join(f"{name[4:]} = 10^{value / _LOG_10:.1f}" for name, value in logs)


def trunc_est_constants(
    constants: StructuralConstants, *, epsilon: float, delta: float, dimension: int
) -> TruncEstConstants:
    """Return what the theorem asks for an error of ``epsilon`` with probability ``1 - delta``.

    ``dimension`` is the length of theta. The constant C of the anti-concentration inequality that
    the theorem cites is not given there, and is taken for 1.

    Examples
    --------
    >>> tame = StructuralConstants(kappa=1.0, lam=4.0, lipschitz=5.0, alpha=0.5)
    >>> print(trunc_est_constants(tame, epsilon=0.05, delta=0.01, dimension=5))
    n = 10^3.6, m = 10^111.2, eta = 10^-67.8, kappa_f = 10^-42.9, lambda_f = 10^21.3, rho = 10^11.0
    """
    kappa, lam, beta, degree = constants.kappa, constants.lam, constants.beta, constants.degree
    for name, value in (("epsilon", epsilon), ("delta", delta), ("alpha", constants.alpha)):
        require_in_open_unit(name, value)
    log_alpha = math.log(constants.alpha)
    distance = epsilon**2 - 2.0 * beta * log_alpha  # d(alpha)
    exponent = 6.0 * lam / kappa**2 * distance**2
    log_base = 2.0 * log_alpha - exponent - math.log(4.0 * degree)
    log_kappa_f = math.log(0.5) + 2.0 * degree * log_base + math.log(kappa)
    log_lambda_f = exponent - 2.0 * log_alpha + math.log(lam)
    first = math.log(dimension) + np.logaddexp(log_lambda_f, math.log(lam))
    inner = 12.0 * beta * lam / kappa**2 * distance**2 - 4.0 * beta * log_alpha + epsilon**2
    second = 2.0 * math.log1p(2.0 * lam / kappa) + 2.0 * math.log(inner)
    log_rho_square = float(np.logaddexp(first, second))
    log_g = log_rho_square - 2.0 * log_kappa_f - 2.0 * math.log(epsilon)
    log_step = log_kappa_f + 2.0 * math.log(epsilon) - math.log(2.0) - log_rho_square
    return TruncEstConstants(
        log_n=math.log(2.0 * beta * math.log(1.0 / delta)) - 2.0 * math.log(epsilon),
        log_m=max(log_g, math.log(0.5))
        + math.log(max(math.log(distance / (kappa * epsilon**2)), 1e-300)),
        log_eta=min(log_step, -log_kappa_f),
        log_kappa_f=log_kappa_f,
        log_lambda_f=log_lambda_f,
        log_rho=log_rho_square / 2.0,
        repeats=10 * math.ceil(math.log(1.0 / delta)),
    )


def separation_needed(constants: StructuralConstants, *, epsilon: float, q: float) -> float:
    """Return the least ``|theta_1 - theta_0|`` of the paper's separation condition.

    ``sqrt((48 max(L, beta) beta + 3 lambda)/(8 kappa beta^2) log(10 q_M/(q_m epsilon)))`` with
    q_m <= q_M the shares of the two outcomes, as printed. A larger ``beta`` makes the condition
    milder and asks TruncEst for more, a precision of ``epsilon/(2 beta)``; from L on the condition
    hardly gets milder: about ``sqrt(6/kappa log(...))``. What the proof puts into its last
    exponent is twice this square, and with the right factor in its Taylor lemma (kappa/8 in the
    exponent in place of kappa/4) four times.

    Examples
    --------
    >>> round(separation_needed(StructuralConstants(1.0, 1.0, 1.0), epsilon=0.1, q=0.3), 2)
    5.9
    """
    require_in_open_unit("epsilon", epsilon)
    require_in_open_unit("q", q)
    beta, lipschitz = constants.beta, constants.lipschitz
    small, large = min(q, 1.0 - q), max(q, 1.0 - q)
    above = 48.0 * max(lipschitz, beta) * beta + 3.0 * constants.lam
    factor = above / (8.0 * constants.kappa * beta**2)
    return math.sqrt(factor * math.log(10.0 * large / (small * epsilon)))
