"""What a label of a denied person costs: the group's label cost, or the person's own price."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.question import Costs
from equipoise.worlds import TableWorld, World

__all__ = ["costs_nothing", "denied_of", "failure_costs", "mean_costs"]

Array = NDArray[np.float64]


def denied_of(world: TableWorld, group: str) -> NDArray[np.intp]:
    """Return the rows of a group's denied people."""
    return np.flatnonzero((world.group == world.groups.index(group)) & (world.decision == 0))


def failure_costs(world: TableWorld, group: str, costs: Costs) -> Array:
    """Return what the label of each denied person of a group costs if it is 0."""
    rows, label = denied_of(world, group), costs.of(group).label
    if world.price is None:
        return np.full(len(rows), label)
    return np.where(np.isnan(world.price[rows]), label, world.price[rows])


def costs_nothing(world: World, costs: Costs) -> bool:
    """Whether no label costs anything, so that labels are counted instead."""
    if isinstance(world, TableWorld) and world.price is not None:
        free = all(not failure_costs(world, group, costs).any() for group in world.cells)
        return free and all(costs.of(group).feature == 0.0 for group in world.cells)
    return all(costs.of(group).worst == 0.0 for group in world.cells)


def mean_costs(world: World, costs: Costs) -> Array:
    """Return what a label of each group costs on average, to an audit that asks everybody."""
    means = [costs.of(group).expected(world.r[group]) for group in world.cells]
    if isinstance(world, TableWorld) and world.price is not None:
        for place, group in enumerate(world.cells):
            if len(rows := denied_of(world, group)):
                paid = failure_costs(world, group, costs) * (1.0 - world.outcome[rows])
                means[place] = costs.of(group).feature + float(paid.mean())
    return np.array(means)
