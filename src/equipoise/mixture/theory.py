"""The paper's constants for truncated-sample estimation, in log space.

They prove that the method is polynomial; they do not set its defaults. For laws as tame as those
of the synthetic experiment the step count is a number with dozens to thousands of digits, hence
logarithms (natural ones) throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.errors import InvalidInput, require_in_open_unit
from equipoise.mixture.family import Curvature

__all__ = ["TruncEstConstants", "separation_needed", "trunc_est_constants"]


@dataclass(frozen=True)
class TruncEstConstants:
    """Logarithms of the quantities in the theorem on TruncEst (Theorem 3.1 of Lee et al.).

    Attributes
    ----------
    log_n
        Samples for the ordinary estimate that it starts from.
    log_m
        Gradient steps of one repeat.
    log_eta
        Step size.
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
        rows = [
            (name, getattr(self, f"log_{name}") / math.log(10.0))
            for name in ("n", "m", "eta", "kappa_f", "lambda_f", "rho")
        ]
        return ", ".join(f"{name} = 10^{value:.1f}" for name, value in rows)


def trunc_est_constants(
    curvature: Curvature,
    *,
    epsilon: float,
    delta: float,
    acceptance: float,
    dimension: int,
    beta: float = 1.0,
    degree: int = 1,
    constant: float = 1.0,
) -> TruncEstConstants:
    """Return what the theorem asks for an error of ``epsilon`` with probability ``1 - delta``.

    Parameters
    ----------
    curvature
        ``kappa`` and ``lambda`` of the family on its parameter set.
    acceptance
        ``alpha``: the least share that the classifier lets through.
    dimension
        ``d``: length of theta.
    beta
        A ball of radius ``1/beta`` around theta lies in the parameter set.
    degree
        Largest degree of the polynomials in T: 1 for a known covariance, 2 for others.
    constant
        ``C`` of the anti-concentration inequality that the theorem cites; its value is not given.

    Examples
    --------
    >>> tame = Curvature(kappa=1.0, lam=4.0, lipschitz=5.0)
    >>> print(trunc_est_constants(tame, epsilon=0.05, delta=0.01, acceptance=0.5, dimension=5))
    n = 10^3.6, m = 10^111.2, eta = 10^-67.8, kappa_f = 10^-42.9, lambda_f = 10^21.3, rho = 10^11.0
    """
    for name, value in (("epsilon", epsilon), ("delta", delta), ("acceptance", acceptance)):
        require_in_open_unit(name, value)
    if beta < 1.0:
        raise InvalidInput(f"'beta' must be at least 1; got {beta!r}")
    kappa, lam = curvature.kappa, curvature.lam
    log_alpha = math.log(acceptance)
    distance = epsilon**2 - 2.0 * beta * log_alpha  # d(alpha)
    exponent = 6.0 * lam / kappa**2 * distance**2
    log_base = 2.0 * log_alpha - exponent - math.log(4.0 * constant * degree)
    log_kappa_f = math.log(0.5) + 2.0 * degree * log_base + math.log(kappa)
    log_lambda_f = exponent - 2.0 * log_alpha + math.log(lam)
    first = math.log(dimension) + _log_sum(log_lambda_f, math.log(lam))
    inner = 12.0 * beta * lam / kappa**2 * distance**2 - 4.0 * beta * log_alpha + epsilon**2
    second = 2.0 * math.log1p(2.0 * lam / kappa) + 2.0 * math.log(inner)
    log_rho_square = _log_sum(first, second)
    log_g = log_rho_square - 2.0 * log_kappa_f - 2.0 * math.log(epsilon)
    return TruncEstConstants(
        log_n=math.log(2.0 * beta * math.log(1.0 / delta)) - 2.0 * math.log(epsilon),
        log_m=max(log_g, math.log(0.5))
        + math.log(max(math.log(distance / (kappa * epsilon**2)), 1e-300)),
        log_eta=min(
            log_kappa_f + 2.0 * math.log(epsilon) - math.log(2.0) - log_rho_square, -log_kappa_f
        ),
        log_kappa_f=log_kappa_f,
        log_lambda_f=log_lambda_f,
        log_rho=log_rho_square / 2.0,
        repeats=10 * math.ceil(math.log(1.0 / delta)),
    )


def separation_needed(
    curvature: Curvature, *, epsilon: float, q: float, beta: float = 1.0
) -> float:
    """Return the least ``|theta_1 - theta_0|`` of the paper's separation condition.

    ``sqrt((48 max(L, beta) beta + 3 lambda)/(8 kappa beta^2) log(10 q_M/(q_m epsilon)))`` with
    q_m <= q_M the shares of the two outcomes, as printed. What the proof puts into its last
    exponent is twice this square, and with the right factor in its Taylor lemma (kappa/8 in the
    exponent in place of kappa/4) four times.

    Examples
    --------
    >>> round(separation_needed(Curvature(1.0, 1.0, 1.0), epsilon=0.1, q=0.3), 2)
    5.9
    """
    require_in_open_unit("epsilon", epsilon)
    require_in_open_unit("q", q)
    small, large = min(q, 1.0 - q), max(q, 1.0 - q)
    factor = (48.0 * max(curvature.lipschitz, beta) * beta + 3.0 * curvature.lam) / (
        8.0 * curvature.kappa * beta**2
    )
    return math.sqrt(factor * math.log(10.0 * large / (small * epsilon)))


def _log_sum(a: float, b: float) -> float:
    top = max(a, b)
    return top + math.log(math.exp(a - top) + math.exp(b - top))
