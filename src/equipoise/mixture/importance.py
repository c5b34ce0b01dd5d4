"""The normalising integral by importance sampling on scrambled Sobol points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equipoise.errors import BadData
from equipoise.mixture.family import Array, Family, Frame
from equipoise.mixture.newton import Solution, newton
from equipoise.mixture.oracle import Oracle
from equipoise.mixture.quasirandom import sobol

__all__ = ["fit_importance"]

PILOT = 2**14
LARGEST = 2**25  # numbers in the table of statistics, a quarter of a gigabyte
CHUNK = 2**13
MOST = 2**20  # points altogether
SEARCH = 2**17  # points before it is concluded that all or (almost) none are let through
PER_SAMPLE = 20  # effective points per truncated sample: 2.5% on top of a standard error


def fit_importance(frame: Frame, points: Array, oracle: Oracle, seed: int) -> Solution:
    """Fit with one pilot and one full set of points; the classifier sees each point once."""
    family = frame.family
    z = frame.inside(points)
    target = family.statistics(z).mean(axis=0)
    integral = _ImportanceIntegral(frame, z, oracle, seed)
    integral.extend(PILOT)
    most = min(2 ** int(np.log2(LARGEST / len(target))), MOST)
    if integral.accepted < 20 * len(target):
        integral.extend(min(SEARCH, most))
    integral.require_some_of_each(len(target))
    solution = newton(family.theta_from_mean(target), target, integral, family.project)
    wanted = PER_SAMPLE * len(points) / max(integral.ess, 1.0) * integral.asked
    if wanted > integral.asked:
        integral.extend(min(2 ** int(np.ceil(np.log2(wanted))), most))
        integral.require_some_of_each(len(target))
        again = newton(solution.theta, target, integral, family.project)
        solution = replace(again, iterations=solution.iterations + again.iterations)
    elif integral.refused == 0:
        integral.extend(min(SEARCH, most))
    if integral.refused == 0:  # nothing is truncated: the ordinary estimate, which is exact
        theta = family.theta_from_mean(target)
        return Solution(theta, integral.moments(theta)[1], np.inf, solution.iterations)
    warnings = []
    if integral.ess < len(points):
        warnings.append(
            f"the normalising integral rests on {integral.ess:,.0f} effective points, fewer than "
            f"the {len(points):,} samples: standard errors are larger for it"
        )
    return replace(solution, ess=integral.ess, warnings=tuple(warnings))


class _ImportanceIntegral:
    """``sum f(x) h(x) exp(theta . T(x)) / q(x)`` over the points that are let through."""

    def __init__(self, frame: Frame, z: Array, oracle: Oracle, seed: int) -> None:
        self.frame = frame
        self.family: Family = frame.family
        self.sample = z
        self.oracle = oracle
        self.engine = sobol(z.shape[1] + 1, seed)
        self.asked = 0
        self.accepted = 0
        p = self.family.statistics(z[:1]).shape[1]
        self.statistics = np.empty((0, p))
        self.offset = np.empty(0)
        self._at: Array | None = None
        self._weights = np.empty(0)

    def extend(self, total: int) -> None:
        """Ask the classifier about more points, up to ``total``."""
        x, log_q = self.family.propose(self.engine.random(total - self.asked), self.sample)
        keep = self.oracle(self.frame.outside(x))
        x, log_q = x[keep], log_q[keep]
        self.asked = total
        self.accepted += len(x)
        self.statistics = np.concatenate([self.statistics, self.family.statistics(x)])
        self.offset = np.concatenate([self.offset, self.family.log_base(x) - log_q])
        self._at = None

    @property
    def refused(self) -> int:
        return self.asked - self.accepted

    @property
    def ess(self) -> float:
        return 0.0 if len(self._weights) == 0 else float(1.0 / (self._weights**2).sum())

    def require_some_of_each(self, p: int) -> None:
        if self.accepted < 2 * p + 10:
            raise BadData(
                f"'accepts' lets only {self.accepted} of {self.asked:,} points around the sample "
                "through: it accepts (almost) nothing but the sample itself"
            )

    def log_total(self, theta: Array) -> float:
        log_weights = self.statistics @ theta + self.offset
        top = log_weights.max()
        weights = np.exp(log_weights - top)
        total = weights.sum()
        self._at, self._weights = theta, weights / total
        return float(top + np.log(total / self.asked))

    def moments(self, theta: Array) -> tuple[Array, Array]:
        if self._at is None or not np.array_equal(self._at, theta):
            self.log_total(theta)
        mean = self._weights @ self.statistics
        second = np.zeros((len(theta), len(theta)))
        for start in range(0, len(self._weights), CHUNK):  # a chunk fits the cache
            rows = self.statistics[start : start + CHUNK]
            second += (rows * self._weights[start : start + CHUNK, None]).T @ rows
        return mean, second - np.outer(mean, mean)
