"""What an audit asks for and what that costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise._json import JsonValue
from equipoise.question import Costs
from equipoise.worlds import CellWorld

__all__ = ["Price", "per_arrival", "shares_of_outcomes"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Price(JsonValue):
    """Labels and feature vectors of denied people, and their cost; infinite if never reached.

    Examples
    --------
    >>> print(2 * Price(labels=50, cost=40.0) + Price(features=10, cost=1.0))
    81 for 100 labels and 10 feature vectors
    """

    labels: float = 0.0
    features: float = 0.0
    cost: float = 0.0

    def __add__(self, other: Price) -> Price:
        return Price(
            self.labels + other.labels, self.features + other.features, self.cost + other.cost
        )

    def __rmul__(self, times: float) -> Price:
        return self.map(lambda x: times * x if x else 0.0)

    def map(self, change: Callable[[float], float]) -> Price:
        """Return the price with each number changed."""
        return Price(change(self.labels), change(self.features), change(self.cost))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Price:
        """Build from what :meth:`to_dict` gave."""
        return super().from_dict({k: math.inf if v is None else v for k, v in data.items()})

    def __str__(self) -> str:
        asked = f"{self.labels:,.6g} labels and {self.features:,.6g} feature vectors"
        return f"{self.cost:,.6g} for {asked}"


def per_arrival(world: CellWorld, costs: Costs) -> list[Price]:
    """Return, per group a, the mean price of labelling one arriving person: ``P[A=a, ...]`` terms.

    An arrival is of group a and denied with probability ``P[f=0, A=a]``; labelling it costs
    ``c_feat``, and ``c_lab`` more with probability ``P[f=0, Y=0, A=a]``.
    """
    prices = []
    for group, (_, _, good, bad) in zip(world.groups, world.joint.tolist(), strict=True):
        prices_of = costs.of(group)
        cost = prices_of.feature * (good + bad) + prices_of.label * bad
        prices.append(Price(labels=good + bad, cost=cost))
    return prices


def shares_of_outcomes(world: CellWorld) -> Array:
    """Return ``q_{y,a} = P[Y=y, A=a]``, a row per outcome y = 0, 1 and a column per group."""
    joint = world.joint
    return np.stack([joint[:, 1] + joint[:, 3], joint[:, 0] + joint[:, 2]])
