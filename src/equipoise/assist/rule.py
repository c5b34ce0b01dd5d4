"""Whom to ask: guesses and chances that make evidence as cheap as the score allows.

With rates right, a person's observation has variance ``Var m + E[r(1-r)/pi]`` and costs
``c_feat + E[pi price (1-r)]`` on average. Their product is least for chances proportional to
``sqrt(r / price)``; one factor for all of them is found by search, with a floor, since rare jumps
are dear, and a limit on people looked at per label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.assist.calibration import Strata
from equipoise.assist.options import Assist
from equipoise.evidence.observation import Sizing

__all__ = ["SamplingRule", "make_rule"]

Array = NDArray[np.float64]

FLOOR = 0.15  # the least chance, as a share of the largest
HYSTERESIS = 0.03  # a group stays assisted this far beyond the gate
_KAPPAS = np.geomspace(0.02, 3.0, 30)


@dataclass(frozen=True)
class SamplingRule:
    """One group's rule: guess and chance by score and price, and the bets' sizes that go with it.

    Whatever score and price come, a chance is at least ``least`` of the stratum and so an
    observation within the sizing's range.
    """

    strata: Strata
    kappa: float
    least: Array  # per stratum
    sizing: Sizing
    variance: float  # as expected, not inflated by what was seen

    def rule(self, scores: Array, prices: Array) -> tuple[Array, Array]:
        """Return everybody's guess and chance."""
        stratum = self.strata.of(scores)
        m = self.strata.rates[stratum]
        return m, np.clip(_chance(self.kappa, m, prices), self.least[stratum], 1.0)


def make_rule(
    strata: Strata,
    seen: Array,
    prices: Array,
    feature: float,
    assist: Assist,
    *,
    was_on: bool,
    inflation: float,
) -> SamplingRule | None:
    """Return the design for a group, None where it would not be worth while.

    Parameters
    ----------
    strata
        Rates by score.
    seen, prices
        Scores and prices of people who came.
    feature
        What a look costs.
    was_on
        Whether the group is assisted now.
    inflation
        By how much observations were wider than expected.
    """
    r = strata.rates[strata.of(seen)]
    mean, most = float(r.mean()), assist.max_price or float(prices.max())
    coin, uniform = mean * (1.0 - mean), feature + float((prices * (1.0 - r)).mean())
    if uniform <= 0.0:  # labels are free, so nothing is saved by not asking
        return None
    kappas = _KAPPAS / max(float(_chance(1.0, r, prices).max()), 1e-300)
    chances = np.minimum(_chance(kappas[:, None], r, prices), 1.0)
    floors = FLOOR * chances.max(axis=1)
    chances = np.maximum(chances, floors[:, None])
    variances = (r * (1.0 - r) / chances).mean(axis=1) + r.var()
    costs = feature + (chances * prices * (1.0 - r)).mean(axis=1)
    allowed = chances.mean(axis=1) >= 1.0 / assist.people_per_label
    product = np.where(allowed, variances * costs, np.inf)
    best = int(product.argmin())
    ratio = product[best] * inflation / max(coin * uniform, 1e-300)
    if not ratio <= assist.gate + HYSTERESIS * was_on:
        return None
    kappa, chance, variance = float(kappas[best]), chances[best], float(variances[best])
    least = np.clip(_chance(kappa, strata.rates, np.array(most)), floors[best], 1.0)
    up, down = r + (1.0 - r) / chance - mean, r - r / chance - mean
    third = (chance * (r * up**3 + (1.0 - r) * down**3) + (1.0 - chance) * (r - mean) ** 3).mean()
    wide = variance * inflation
    sizing = Sizing(
        mean=mean,
        variance=wide,
        third=float(third),
        low=float((strata.rates * (1.0 - 1.0 / least)).min()),
        high=float((strata.rates + (1.0 - strata.rates) / least).max()),
        price=float(costs[best]) * wide / coin,
        asked=float(chance.mean()),
    )
    return SamplingRule(strata, kappa, least, sizing, variance)


def _chance(kappa: float | Array, rates: Array, prices: Array) -> Array:
    return np.asarray(kappa * np.sqrt(rates / np.maximum(prices, 1e-9)))
