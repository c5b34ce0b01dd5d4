"""Observations other than labels, drawn at random, and what bets on them gain on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.audits.scores import ScoreRecords
from equipoise.evidence.observation import BetScale, Ends, rescale


@dataclass(frozen=True)
class SamplingRule:
    """Three guesses between two ends, chances of asking of at least a floor."""

    least: float
    most: float
    floor: float

    def draw(self, rng: np.random.Generator) -> Ends:
        m = self.least + (self.most - self.least) * rng.integers(3) / 2.0
        pi = rng.uniform(self.floor, 1.0)
        return ends_of(m, pi, asked=bool(rng.random() < pi))

    def bet_scale(self, rng: np.random.Generator) -> BetScale:
        mean = float(rng.uniform(0.02, 0.98))
        return BetScale(
            mean=mean,
            variance=float(mean * (1 - mean) * rng.uniform(0.3, 5.0)),
            third_moment=float(rng.normal()),
            low=self.most * (1.0 - 1.0 / self.floor),
            high=self.least + (1.0 - self.least) / self.floor,
            price=float(rng.uniform(0.1, 2.0)),
            share_asked=0.5,
        )


def ends_of(m: float, pi: float, *, asked: bool) -> Ends:
    """Return Z for the outcomes 0 and 1."""
    one = ScoreRecords(*(np.array([x]) for x in (0.0, 1.0, m, pi)), np.array([asked]))
    low, high = one.observation_ends()[0].tolist()
    return low, high


def random_design(rng: np.random.Generator) -> SamplingRule:
    least, most = np.sort(rng.uniform(size=2))
    return SamplingRule(float(least), float(most), float(rng.uniform(0.05, 0.9)))


def largest_mean(checks: int, seed: int) -> tuple[float, float]:
    """Return the largest mean of a factor minus 1, over random null points, and the least factor.

    Exact over the draw and the outcome; m and pi are anything that the declared floors allow.
    """
    rng = np.random.default_rng(seed)
    worst, least, batch = -1.0, 1.0, 500
    for _ in range(checks // batch):
        design = random_design(rng)
        bet_scale = design.bet_scale(rng)
        corner = rng.uniform(1e-6, 1.0 - 1e-6, batch)
        rho = rng.uniform(0.02 * corner, 1.0 - 0.02 * (1.0 - corner))
        zero, one = rescale((1.0 - rho) / (1.0 - corner), rho / corner, corner, bet_scale)
        lam = np.where(rho > corner, corner * rng.random(batch), 1 - (1 - corner) * rng.random())
        lam = np.where(rng.random(batch) < 0.3, corner, lam)  # the hardest point
        m, pi = rng.uniform(design.least, design.most, batch), rng.uniform(design.floor, 1, batch)
        mean = np.zeros(batch)
        for outcome, chance in ((1, lam), (0, 1.0 - lam)):
            for z, drawn in ((m + (outcome - m) / pi, pi), (m, 1.0 - pi)):
                factor = z * one + (1.0 - z) * zero
                least = min(least, float(factor.min()))
                mean += chance * drawn * factor
        worst = max(worst, float((mean - 1.0).max()))
    return worst, least
