"""The paper's table of exponential families, checked row by row by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import gammaln

from paper.chapter import Chapter, make_chapter, words_of
from paper.kept_work import Part, Result, of_kind
from paper.settings import Settings

__all__ = ["Checked", "check_rows", "parts", "tell"]

NAME = "families"
TOLERANCE = 1e-6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Checked(Result):
    """A family at one theta: what the table says, and what integrals give."""

    family: str
    theta: float | None
    W_table: float | None
    W: float | None
    mean_table: float
    mean: float
    variance_table: float
    variance: float
    formulas: str
    log_concave: bool


def parts(settings: Settings) -> list[Part]:
    """Return one part."""
    return [Part(f"{NAME}/rows", check_rows, {}, (Checked,))]


@dataclass(frozen=True)
class _Row:
    """What the table says of a family on the line; ``base`` and ``statistic`` are log h and T."""

    name: str
    base: Callable[[float], float]
    statistic: Callable[[float], float]
    end: float
    partition: Callable[[float], float]
    mean: Callable[[float], float]
    variance: Callable[[float], float]


def _power(name: str, k: float) -> _Row:
    """Weibull with known k; the exponential law is k = 1."""
    return _Row(
        name,
        base=lambda x: math.log(k) + (k - 1.0) * math.log(x),
        statistic=lambda x: x**k,
        end=math.inf,
        partition=lambda t: -math.log(-t),
        mean=lambda t: -1.0 / t,
        variance=lambda t: 1.0 / t**2,
    )


_BERNOULLI = _Row(
    "Continuous Bernoulli",
    base=lambda x: 0.0,
    statistic=lambda x: x,
    end=1.0,
    partition=lambda t: math.log(math.expm1(t) / t),
    mean=lambda t: (math.exp(t) * (t - 1.0) + 1.0) / (t * math.expm1(t)),
    variance=lambda t: (math.expm1(t) ** 2 - t**2 * math.exp(t)) / (t**2 * math.expm1(t) ** 2),
)
_POISSON = _Row(
    "Continuous Poisson",
    base=lambda x: -float(gammaln(x + 1.0)),
    statistic=lambda x: x,
    end=math.inf,
    partition=math.exp,
    mean=math.exp,
    variance=math.exp,
)
_ROWS = (
    (_power("Exponential", 1.0), (-0.5, -1.0, -2.0)),
    (_power("Weibull, k = 0.5", 0.5), (-0.5, -1.0, -2.0)),
    (_power("Weibull, k = 2", 2.0), (-0.5, -1.0, -2.0)),
    (_BERNOULLI, (-3.0, 0.5, 3.0)),
    (_POISSON, (-1.0, 0.0, 2.0)),
)


def check_rows() -> list[Checked]:
    """Compare each row's W, W' and W'' with integrals, and look for log-concavity."""
    return [*(_check(row, theta) for row, thetas in _ROWS for theta in thetas), _check_gaussian()]


def _check(row: _Row, theta: float) -> Checked:
    def integral(power: int, centre: float = 0.0) -> float:
        def weight(x: float) -> float:
            if x <= 0.0:
                return 0.0
            value = row.statistic(x)
            return math.exp(row.base(x) + theta * value) * (value - centre) ** power

        middle = 1.0 if math.isinf(row.end) else 0.5
        ends = ((0.0, middle), (middle, row.end))
        pieces = [quad(weight, a, b, limit=200, epsabs=1e-12, epsrel=1e-11)[0] for a, b in ends]
        return float(sum(pieces))

    total = integral(0)
    mean = integral(1) / total
    variance = integral(2, mean) / total
    said = (row.partition(theta), row.mean(theta), row.variance(theta))
    measured = (math.log(total), mean, variance)
    error = max(abs(a - b) for a, b in zip(said, measured, strict=True))
    (w, m, v), (w_said, m_said, v_said) = measured, said
    holds = "hold" if error < TOLERANCE else "do not hold"
    concave = _log_concave(row, theta)
    return Checked(row.name, theta, w_said, w, m_said, m, v_said, v, holds, concave)


def _log_concave(row: _Row, theta: float) -> bool:
    x = np.linspace(0.01, min(row.end, 12.0) - 0.01, 2001)
    log_density = np.array([row.base(float(v)) + theta * row.statistic(float(v)) for v in x])
    return bool(np.all(np.diff(log_density, 2) <= 1e-12))


def _check_gaussian() -> Checked:
    """Compare the gradient of W in (Sigma^-1 mu, Sigma^-1) with (mu, -(Sigma + mu mu')/2)."""
    mean, sigma = np.array([0.5, -1.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
    precision = np.linalg.inv(sigma)

    def partition(eta: Floats, matrix: Floats) -> float:
        log_det = float(np.linalg.slogdet(matrix)[1])
        square = float(eta @ np.linalg.solve(matrix, eta))
        return 0.5 * square - 0.5 * log_det + math.log(2.0 * math.pi)

    eta, step = precision @ mean, 1e-5
    first = [
        (partition(eta + step * e, precision) - partition(eta - step * e, precision)) / (2 * step)
        for e in np.eye(2)
    ]
    second = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            e = np.zeros((2, 2))
            e[i, j] = step
            more, less = partition(eta, precision + e), partition(eta, precision - e)
            second[i, j] = (more - less) / (2.0 * step)
    # slogdet and solve see an asymmetric step through its symmetric part only
    target = -0.5 * (sigma + np.outer(mean, mean))
    errors = np.abs(np.array(first) - mean), np.abs((second + second.T) / 2.0 - target)
    error = max(float(part.max()) for part in errors)
    return Checked(
        "Multivariate Gaussian",
        theta=None,
        W_table=None,
        W=None,
        mean_table=float(mean[0]),
        mean=float(first[0]),
        variance_table=float(target[0, 0]),
        variance=float(second[0, 0]),
        formulas="hold" if error < 1e-6 else "do not hold",
        log_concave=True,
    )


def tell(results: Sequence[Result], settings: Settings) -> Chapter:
    """Return the chapter."""
    frames, rows = words_of(NAME)["found"], of_kind(results, Checked)
    poisson = next(r for r in rows if r.family == "Continuous Poisson" and r.theta == 0.0)
    wrong = sorted({r.family for r in rows if r.formulas != "hold"})
    rough = sorted({r.family for r in rows if not r.log_concave})
    return make_chapter(
        NAME,
        values={},
        found=[
            frames["poisson"].format(wrong=", ".join(wrong), **poisson.values()),
            frames["rough"].format(rough=", ".join(rough)),
        ],
        tables={"rows": rows},
    )
