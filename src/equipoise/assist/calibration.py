"""What a score says about the outcome, learned from labels bought so far.

A logistic curve in the score gives the order, strata of it the rates; both are drawn towards one
common rate as far as labels are few. None of it touches the guarantee: a wrong rate is a wrong
guess, and costs money at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Strata", "calibrate", "slope_of"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

START = 15  # labels of a group before its score is looked at
FEW = 3  # … and of each outcome
STRATA = 6
SIGNIFICANT = 2.0  # the slope's square over its variance, at least
GUARD = 0.5  # standard errors taken off the slope
SHRINK = 12.0  # labels that the curve's rate counts as, in a stratum
FLAT = 3.0  # labels of the rarer outcome that the common rate counts as


@dataclass(frozen=True)
class Strata:
    """Rates of outcome 1 by score: ``rates[h]`` between ``cuts[h-1]`` and ``cuts[h]``.

    Whoever has no score belongs to the last of the rates, the common one.
    """

    cuts: Array
    rates: Array

    def of(self, scores: Array) -> Ints:
        """Return everybody's stratum."""
        places = np.searchsorted(self.cuts, scores, side="right")
        return np.where(np.isnan(scores), len(self.rates) - 1, places)


def calibrate(seen: Array, scores: Array, outcomes: Array) -> Strata | None:
    """Return strata with rates; a single one if the score tells nothing; None if it is too early.

    Parameters
    ----------
    seen
        Scores of people who came, NaN for those without.
    scores, outcomes
        Of those whose label is known.
    """
    ones = outcomes.sum()
    few = min(ones, len(outcomes) - ones)
    if len(outcomes) < START or few < FEW:
        return None
    common = (ones + 0.5) / (len(outcomes) + 1.0)
    flat = Strata(np.zeros(0), np.array([common, common]))
    population, known = seen[~np.isnan(seen)], ~np.isnan(scores)
    if len(population) < START or known.sum() < START:
        return flat
    low, high = np.quantile(population, [0.01, 0.99])
    population = np.sort(np.clip(population, low, high))
    centre, scale = population.mean(), population.std()
    if not np.isfinite(scale) or scale <= 1e-12 * max(abs(centre), 1e-300):
        return flat
    x = (np.clip(scores[known], low, high) - centre) / scale
    y = outcomes[known]
    level, slope = _trusted(x, y)
    if slope == 0.0:
        return flat
    z = (population - centre) / scale
    curve = 1.0 / (1.0 + np.exp(-(level + slope * z)))
    mass = np.cumsum(np.sqrt(curve * (1.0 - curve)))
    ends = np.searchsorted(mass, mass[-1] * np.arange(1, STRATA) / STRATA)
    cuts = np.unique(z[ends])
    strata, size = np.searchsorted(cuts, z, side="right"), len(cuts) + 1
    people = np.maximum(np.bincount(strata, minlength=size), 1e-9)
    expected = np.bincount(strata, curve, minlength=size) / people
    own = np.searchsorted(cuts, x, side="right")
    hits, labels = np.bincount(own, y, minlength=size), np.bincount(own, minlength=size)
    rates = (hits + SHRINK * expected) / (labels + SHRINK)
    common = float(people @ rates / people.sum())
    trust = few / (FLAT + few)
    rates = np.clip(trust * rates + (1.0 - trust) * common, 0.003, 0.997)
    return Strata(cuts * scale + centre, np.append(rates, common))


def slope_of(scores: Array, outcomes: Array) -> float:
    """Return by how much the log odds of outcome 1 rise per unit of the score; 0 if nobody knows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> y = (rng.random(500) < 1 / (1 + np.exp(-2 * x))).astype(float)
    >>> 1.0 < slope_of(x, y) < 2.5, slope_of(x[:10], y[:10])
    (True, 0.0)
    """
    ones = outcomes.sum()
    if len(outcomes) < START or min(ones, len(outcomes) - ones) < FEW or scores.std() == 0.0:
        return 0.0
    _, slope = _trusted((scores - scores.mean()) / scores.std(), outcomes)
    return float(slope / scores.std())


def _trusted(x: Array, y: Array) -> tuple[float, float]:
    """Return level and slope, the latter less a part of its error, 0 if it may be chance."""
    level, slope, error = _logistic(x, y)
    if slope * slope < SIGNIFICANT * error * error:
        return level, 0.0
    return level, float(np.sign(slope) * max(abs(slope) - GUARD * error, 0.0))


def _logistic(x: Array, y: Array) -> tuple[float, float, float]:
    """Return level, slope and the slope's standard error, the slope drawn to 0 a little."""
    start = np.array([np.log((y.sum() + 0.5) / (len(y) - y.sum() + 0.5)), 0.0])
    design = np.column_stack([np.ones_like(x), x])
    prior, theta = np.diag([0.01, 1.0]), start
    for _ in range(6):
        p = 1.0 / (1.0 + np.exp(-design @ theta))
        curvature = design.T @ (design * (p * (1.0 - p) + 1e-9)[:, None]) + prior
        step = np.linalg.solve(curvature, design.T @ (y - p) - prior @ (theta - start))
        theta = theta + np.clip(step, -2.0, 2.0)
    return float(theta[0]), float(theta[1]), float(np.sqrt(np.linalg.inv(curvature)[1, 1]))
