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
from typing import NamedTuple

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
LOG_10 = math.log(10.0)


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
    >>> run = trunc_est(X[late(X)], late, family, 0.1, 0.3, c, n=1_000, m=500, eta=0.003)
    >>> run.settled, bool(abs(run.theta[0] + 0.5) < 0.1)
    (True, True)
    """
    require_kind("family", family, Family, "a family such as Gaussian()")
    require_kind("constants", constants, StructuralConstants, "StructuralConstants(...)")
    require_in_open_unit("epsilon", epsilon)
    points = family.points(X)
    n_statistics = family.statistics(points[:1]).shape[1]
    line_1_epsilon = epsilon / math.sqrt(3.0)  # Algorithm 4, line 1
    theory = trunc_est_constants(
        constants, epsilon=line_1_epsilon, delta=delta, dimension=n_statistics
    )
    steps = _StepCounts.choose(theory, n, m, eta, available=len(points))
    rng = np.random.default_rng(seed)
    oracle = Oracle(accepts)
    oracle.require_all(points)
    statistics = family.statistics(rng.permutation(points))
    start = family.theta_from_mean(statistics[: steps.n].mean(axis=0))
    ball = Ball(
        start,
        (line_1_epsilon**2 - 2.0 * constants.beta * math.log(constants.alpha)) / constants.kappa,
    )
    last_sample = steps.n + steps.m * theory.repeats
    # Every repeat has samples of its own, so that the candidates are independent given the start.
    samples_of_repeats = np.split(statistics[steps.n : last_sample], theory.repeats)
    candidates = np.tile(start, (theory.repeats, 1))
    for i, samples in enumerate(samples_of_repeats):
        candidates[i] = _descend(start, samples, steps.eta, ball, family, oracle, rng)
    return _choose_by_majority(candidates, epsilon, start)


def _descend(
    start: Array,
    samples: Array,
    eta: float,
    ball: Ball,
    family: Family,
    oracle: Oracle,
    rng: np.random.Generator,
) -> Array:
    """Return the theta to which stochastic gradient steps lead, one step for each sample."""
    theta = start
    for sample in samples:
        # Algorithm 5, SampleGradient: an accepted draw of E_theta less a fresh sample
        draw = family.statistics(_accepted_draw(theta, family, oracle, rng))[0]
        theta = ball.project(theta - eta * (draw - sample), family)
    return theta


def _choose_by_majority(candidates: Array, epsilon: float, start: Array) -> TruncEstResult:
    """Return the candidate with the most neighbours; settled if they are more than half."""
    # axes: candidate, other candidate, entry of theta
    distances = np.linalg.norm(candidates[:, None] - candidates[None, :], axis=2)
    n_neighbours = (distances <= 2.0 * epsilon).sum(axis=1)
    chosen = int(np.argmax(n_neighbours))
    settled = bool(n_neighbours[chosen] > len(candidates) / 2.0)
    return TruncEstResult(candidates[chosen], settled, candidates, start)


class _StepCounts(NamedTuple):
    """Samples for the start, steps of a repeat and the step size of one run."""

    n: int
    m: int
    eta: float

    @classmethod
    def choose(
        cls,
        theory: TruncEstConstants,
        n: int | None,
        m: int | None,
        eta: float | None,
        *,
        available: int,
    ) -> _StepCounts:
        """Take the user's counts, the theorem's where they are left out; raise if X is too short.

        The theorem's counts overflow a float, so they are compared as logarithms.
        """
        require_whole("n", n)
        require_whole("m", m)
        _require_positive("eta", 1.0 if eta is None else eta)
        log_n = theory.log_n if n is None else math.log(n)
        log_m = theory.log_m if m is None else math.log(m)
        log_rows = float(np.logaddexp(log_n, log_m + math.log(theory.repeats)))
        if not available or log_rows > math.log(available) + 1e-12:
            rows = f"10^{log_rows / LOG_10:.0f}"
            if log_rows < 30.0:
                rows = f"{math.exp(log_rows):,.0f}"
            raise BadData(
                f"TruncEst reads {rows} truncated samples, one a step in {theory.repeats} repeats, "
                f"and 'X' has {available:,}; give more, or smaller 'n' and 'm' of your own"
            )
        return cls(
            math.ceil(math.exp(log_n)) if n is None else int(n),  # the logarithm may round up
            math.ceil(math.exp(log_m)) if m is None else int(m),
            math.exp(theory.log_eta) if eta is None else eta,
        )


def _require_positive(name: str, value: object) -> None:
    if not (plain_number(value) or 0.0) > 0.0:
        raise InvalidInput(f"{name!r} must be a finite number above 0; got {value!r}")


def _accepted_draw(theta: Array, family: Family, oracle: Oracle, rng: np.random.Generator) -> Array:
    """Return the first draw of ``E_theta`` that is let through, as one row."""
    # Few at first, since most draws are let through near the sample; ever more where hardly any is.
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


class Ball(NamedTuple):
    """A ball around the start, in which the steps stay."""

    centre: Array
    radius: float

    def project(self, theta: Array, family: Family) -> Array:
        """Return the nearest point of the ball that lies in Theta (Dykstra's alternating steps)."""
        # Without Dykstra's corrections alternating projections end somewhere in the intersection,
        # and not at its nearest point.
        ball_correction = np.zeros_like(theta)
        set_correction = np.zeros_like(theta)
        for _ in range(100):
            corrected = theta + ball_correction
            away = corrected - self.centre
            length = max(float(np.linalg.norm(away)), 1e-300)
            in_ball = self.centre + away * min(1.0, self.radius / length)
            ball_correction = corrected - in_ball
            theta = family.project(in_ball + set_correction)
            set_correction = in_ball + set_correction - theta
            if np.allclose(theta, in_ball, rtol=1e-12, atol=1e-12):
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
        logs = {
            "n": self.log_n,
            "m": self.log_m,
            "eta": self.log_eta,
            "kappa_f": self.log_kappa_f,
            "lambda_f": self.log_lambda_f,
            "rho": self.log_rho,
        }
        return ", ".join(f"{name} = 10^{value / LOG_10:.1f}" for name, value in logs.items())


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
    for name, value in (("epsilon", epsilon), ("delta", delta), ("alpha", constants.alpha)):
        require_in_open_unit(name, value)
    # Logarithms throughout: the theorem's constants leave the range of a float.
    kappa = constants.kappa
    lam = constants.lam
    log_epsilon_square = 2.0 * math.log(epsilon)
    log_alpha = math.log(constants.alpha)
    distance = epsilon**2 - 2.0 * constants.beta * log_alpha  # d(alpha)
    exponent = 6.0 * lam / kappa**2 * distance**2
    log_base = 2.0 * log_alpha - exponent - math.log(4.0 * constants.degree)
    log_kappa_f = math.log(0.5) + 2.0 * constants.degree * log_base + math.log(kappa)
    log_lambda_f = exponent - 2.0 * log_alpha + math.log(lam)
    log_rho_square = _log_rho_square(constants, epsilon, distance, log_lambda_f, dimension)
    log_g = log_rho_square - 2.0 * log_kappa_f - log_epsilon_square
    log_step = log_kappa_f + log_epsilon_square - math.log(2.0) - log_rho_square
    log_factor_of_m = math.log(max(math.log(distance / (kappa * epsilon**2)), 1e-300))
    return TruncEstConstants(
        log_n=math.log(2.0 * constants.beta * math.log(1.0 / delta)) - log_epsilon_square,
        log_m=max(log_g, math.log(0.5)) + log_factor_of_m,
        log_eta=min(log_step, -log_kappa_f),
        log_kappa_f=log_kappa_f,
        log_lambda_f=log_lambda_f,
        log_rho=log_rho_square / 2.0,
        repeats=10 * math.ceil(math.log(1.0 / delta)),
    )


def _log_rho_square(
    constants: StructuralConstants,
    epsilon: float,
    distance: float,
    log_lambda_f: float,
    dimension: int,
) -> float:
    """Return the log of the bound on the gradient's second moment: variance plus squared mean."""
    kappa = constants.kappa
    lam = constants.lam
    beta = constants.beta
    log_variance = math.log(dimension) + np.logaddexp(log_lambda_f, math.log(lam))
    mean_distance = 12.0 * beta * lam / kappa**2 * distance**2
    mean_distance += epsilon**2 - 4.0 * beta * math.log(constants.alpha)
    log_square_mean = 2.0 * math.log1p(2.0 * lam / kappa) + 2.0 * math.log(mean_distance)
    return float(np.logaddexp(log_variance, log_square_mean))


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
    beta = constants.beta
    smaller_share = min(q, 1.0 - q)
    odds = (1.0 - smaller_share) / smaller_share  # q_M / q_m
    numerator = 48.0 * max(constants.lipschitz, beta) * beta + 3.0 * constants.lam
    factor = numerator / (8.0 * constants.kappa * beta**2)
    return math.sqrt(factor * math.log(10.0 * odds / epsilon))
