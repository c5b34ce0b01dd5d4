"""Features as they come in, reduced to what the weights need."""

from __future__ import annotations

import numpy as np

from equipoise.mixture.family import Array
from equipoise.mixture.fitted import TruncatedFit
from equipoise.mixture.weights import SUBSAMPLE, Weight, log_ratio, weight_from

__all__ = ["FeatureCounts"]

_BUFFER = 4096


class FeatureCounts:
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

    @property
    def some(self) -> Array:
        """The features of the first people."""
        self._flush()
        return np.concatenate(self._some)

    def map_weight(self) -> Weight:
        """Return the share for whom outcome 1 is the more likely one."""
        self._flush()
        share = self._ones / self.size
        return Weight(share, float(np.sqrt(share * (1.0 - share) / self.size)), 0.0, self.size)

    def likelihood_weight(self) -> Weight:
        """Return the maximum likelihood weight, its uncertainty propagated."""
        some = self.some
        return weight_from(np.concatenate(self._ratios), some, self.fits)

    def _flush(self) -> None:
        if self._buffer:
            self._take(np.stack(self._buffer))
            self._buffer = []

    def _take(self, X: Array) -> None:
        points = self.fits[0].family.points(X)
        ratio = log_ratio(self.fits, points)
        self._ones += int((ratio > -np.log(self.odds)).sum())
        self._ratios.append(ratio)
        some = points[: max(SUBSAMPLE - self._kept, 0)]
        self._some.append(some)
        self._kept += len(some)
