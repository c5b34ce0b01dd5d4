"""What every world can do: tell the truth, hand out a past, and let people arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from equipoise.cells import Cells
from equipoise.errors import require_kind
from equipoise.history.past import Past

__all__ = ["People", "Person", "Seed", "World", "require_world"]

Seed = int | np.random.Generator
"""Where randomness starts: a number, or a generator that goes on from where it is."""


@dataclass(frozen=True)
class Person:
    """Somebody who arrives: the group and decision everybody sees, the outcome nobody may see.

    Examples
    --------
    >>> Person("A", decision=0, outcome=1).outcome
    1
    """

    group: str
    decision: int
    outcome: int
    features: NDArray[np.float64] | None = None
    score: float | None = None
    price: float | None = None


@dataclass(frozen=True)
class People:
    """People in order of arrival, as arrays; ``group`` indexes ``groups``.

    ``score`` and ``price`` are for audits that look before they ask, NaN for whoever has none.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> people = world.draw(3, seed=1)
    >>> len(people), {person.group for person in people} <= {"A", "B"}
    (3, True)
    """

    groups: tuple[str, ...]
    group: NDArray[np.intp]
    decision: NDArray[np.int8]
    outcome: NDArray[np.int8]
    features: NDArray[np.float64] | None = None
    score: NDArray[np.float64] | None = None
    price: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.group)

    def __iter__(self) -> Iterator[Person]:
        names = (self.groups[group] for group in self.group.tolist())
        features = repeat(None) if self.features is None else self.features
        score, price = self.scores_and_prices()
        return map(
            Person, names, self.decision.tolist(), self.outcome.tolist(), features, score, price
        )

    def scores_and_prices(self) -> tuple[list[float | None], list[float | None]]:
        """Return everybody's score and price, None for whoever has none."""
        return _or_none(self.score, len(self)), _or_none(self.price, len(self))


@runtime_checkable
class World(Protocol):
    """A population with every outcome known.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world: World = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.2, 0.1, 0.7, 0.1)})
    >>> world.r["A"], len(world.draw(10))
    (0.2, 10)
    """

    @property
    def cells(self) -> Cells:
        """What is free to see: each group's approved with outcome 1 and 0, and denied."""
        ...

    @property
    def r(self) -> Mapping[str, float]:
        """``P[Y=1 | f=0]`` of each group: what an audit pays to learn."""
        ...

    def gap(self, metric: str, compare: str = "difference") -> float:
        """Return the true gap."""
        ...

    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return the past decisions on ``size`` people, or unlimited ones."""
        ...

    def draw(self, size: int, seed: Seed = 0) -> People:
        """Let ``size`` people arrive."""
        ...


def require_world(world: object) -> None:
    """Raise unless this is a world."""
    words = "a world, as CellWorld.from_counts or equipoise.data.fico_lender().world"
    require_kind("world", world, World, words)


def _or_none(column: NDArray[np.float64] | None, people: int) -> list[float | None]:
    if column is None:
        return [None] * people
    return [None if value != value else value for value in column.tolist()]
