"""Features as they come in, reduced to what the weights need."""

from __future__ import annotations

import numpy as np

from equipoise.mixture.family import Array
from equipoise.mixture.fitted import TruncatedFit
from equipoise.mixture.model import SelfCheck
from equipoise.mixture.weights import SUBSAMPLE, Weight, draw_weights, log_ratio, weight_from

__all__ = ["FeatureTally"]

_BUFFER = 4096


class FeatureTally:
    """One group's feature vectors: MAP counts and log ratios of all, the vectors of the first."""

    def __init__(self, fits: tuple[TruncatedFit, TruncatedFit], odds: float) -> None:
        self.fits = fits
        self.odds = odds
        self.size = 0
        self._ones = 0
        self._ratios: list[Array] = []
        self._some: list[Array] = []
        self._kept = 0
        self._buffer: list[Array] = []

    def add(self, features: Array) -> None:
        """Take in one person."""
        self._buffer.append(features)
        self.size += 1
        if len(self._buffer) == _BUFFER:
            self._flush()

    def add_many(self, X: Array) -> None:
        """Take in many people at once."""
        self.size += len(X)
        self._take(X)

    def add_counts(self, size: int, ones: int) -> None:
        """Take in people of whom only the MAP oracle's verdicts are known."""
        self.size += size
        self._ones += ones

    def map_weight(self) -> Weight:
        """Return the share for whom outcome 1 is the more likely one."""
        self._flush()
        share = self._ones / self.size
        return Weight(share, float(np.sqrt(share * (1.0 - share) / self.size)), 0.0, self.size)

    def likelihood_weight(self, seed: int) -> Weight:
        """Return the maximum likelihood weight, its uncertainty propagated."""
        self._flush()
        return weight_from(
            np.concatenate(self._ratios), np.concatenate(self._some), self.fits, seed=seed
        )

    def self_check(
        self,
        group: str,
        weight: Weight,
        p: tuple[float, float],
        p_error: tuple[float, float],
        *,
        level: float,
        slack: float,
        seed: int,
    ) -> list[SelfCheck]:
        """Check ``q_y P_theta_y[f=1] = P[f=1, Y=y]`` for both outcomes, relative to the right.

        ``p`` and its standard errors are those of outcome 0 and 1.
        """
        self._flush()
        q, *thetas = draw_weights(np.concatenate(self._some), self.fits, seed=seed)
        checks = []
        for y, fit in enumerate(self.fits):
            shift = (thetas[y] - fit.theta) @ fit.acceptance_gradient / fit.acceptance
            drawn = (q if y else 1.0 - q) * np.exp(shift)
            here = weight.estimate if y else 1.0 - weight.estimate
            relative = np.hypot(np.std(drawn) / max(here, 1e-12), p_error[y] / p[y])
            relative = np.hypot(relative, weight.sampling_error / max(here, 1e-12))
            checks.append(
                SelfCheck(
                    f"q P_theta[f=1] = P[f=1,Y] of group {group!r}, outcome {y}",
                    here * fit.acceptance / p[y] - 1.0,
                    float(relative),
                    slack,
                    level,
                )
            )
        return checks

    def _flush(self) -> None:
        if self._buffer:
            self._take(np.stack(self._buffer))
            self._buffer = []

    def _take(self, X: Array) -> None:
        points = self.fits[0].family.points(X)
        ratio = log_ratio(self.fits, points)
        self._ones += int((ratio > -np.log(self.odds)).sum())
        self._ratios.append(ratio)
        if self._kept < SUBSAMPLE:
            some = points[: SUBSAMPLE - self._kept]
            self._some.append(some)
            self._kept += len(some)
