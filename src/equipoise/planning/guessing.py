"""What a price may be while nobody knows what the denied would have done."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from equipoise.bounds import Price
from equipoise.cells import Cells

__all__ = ["MANY", "guess_r", "price_range"]

MANY = 8  # groups beyond which a plan estimates where it would rehearse and search


def guess_r(cells: Cells) -> dict[str, float]:
    """Return each group's r if its denied were like its approved; 1/2 where nobody is approved.

    Examples
    --------
    >>> from equipoise.cells import GroupCells
    >>> guess_r(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(0, 0, 5)}))
    {'A': 0.75, 'B': 0.5}
    """
    return {
        group: c.approved_positive / c.approved if c.approved > 0 else 0.5
        for group, c in cells.like_known.items()
    }


def price_range(
    price: Callable[[Mapping[str, float]], Price], start: Mapping[str, float]
) -> tuple[Price, Price]:
    """Return the least and the most of each number as every r ranges over [0, 1].

    One r at a time is moved to its best place on a grid until nothing improves, from three
    starting points; for many groups from one, on a coarse grid and once, which is enough for prices
    that are sums over groups.
    """
    known: dict[tuple[float, ...], Price] = {}

    def price_at(r: Mapping[str, float]) -> Price:
        place = tuple(r.values())
        if place not in known:
            known[place] = price(r)
        return known[place]

    numbers = ("labels", "features", "cost")
    least, most = (
        Price(**{name: _extreme(price_at, name, sign, start) for name in numbers})
        for sign in (1.0, -1.0)
    )
    return least, most


def _extreme(
    price: Callable[[Mapping[str, float]], Price],
    name: str,
    sign: float,
    start: Mapping[str, float],
) -> float:
    def value(r: Mapping[str, float]) -> float:
        number = sign * float(getattr(price(r), name))
        return np.inf if np.isnan(number) else number

    points = [start, dict.fromkeys(start, 0.0), dict.fromkeys(start, 1.0)]
    best = min(map(value, points))
    if value(start) == 0.0 and sign * value(dict.fromkeys(start, 0.5)) == 0.0:
        return 0.0  # a number that this audit never has
    grid, rounds = 9, 3
    if len(start) > MANY:
        points, grid, rounds = points[:1], 3, 1
    for point in points:
        here, now = dict(point), value(point)
        for _ in range(rounds):
            before = now
            for group in here:
                for r in np.linspace(0.0, 1.0, grid):
                    there = value(moved := {**here, group: float(r)})
                    if there < now:
                        here, now = moved, there
            if now == before:
                break
        best = min(best, now)
    return sign * best
