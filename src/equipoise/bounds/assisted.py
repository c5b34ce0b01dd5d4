"""What scores and prices can save at most: the cheapest chances of asking, were all rates known.

A person whose score is read counts as ``r (1-r) / V`` labels, where ``V = Var r(X) + E[r(X)
(1-r(X)) / pi(X)]`` is the least variance of an unbiased observation of r when X is seen and the
label asked for with chance pi (Hahn, 1998: the efficiency bound), and costs
``c_feat + E[pi(X) c(X)]``, c(X) being what a label costs on average. The product is least on the
edge of what V and cost can be together, where ``pi = sqrt(mu r(1-r) / (c - nu))``, at most 1;
nu > 0 where people per label are limited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from equipoise.assist import Assist
from equipoise.errors import InvalidInput, require_kind
from equipoise.question import Costs
from equipoise.worlds import TableWorld, World

Array = NDArray[np.float64]

STRATA = 20  # of the score, and so many of the price at most
PRICES = 5
PEOPLE = 200  # in a stratum, at least
_SPAN = 25.0  # of log mu, either way from where chances are about 1
_STEPS = 100


@dataclass(frozen=True)
class Efficient:
    """The cheapest way of asking: chances by stratum, and what they come to.

    ``price`` is the cost of as much information as a plain label holds, ``per_person`` that of one
    person, ``asked`` the share of people whose label is asked for.
    """

    chances: Array
    price: float
    per_person: float
    asked: float


def most_efficient(
    shares: Array,
    rates: Array,
    prices: Array,
    feature: float = 0.0,
    people_per_label: float = np.inf,
) -> Efficient:
    """Return the chances of asking that make unbiased evidence cheapest.

    Parameters
    ----------
    shares, rates, prices
        Of each stratum: its share of the people, its rate of outcome 1, and what a label costs on
        average.
    feature
        What it costs to read a person's score.
    people_per_label
        At most so many people per label.

    Examples
    --------
    >>> halves = np.array([0.5, 0.5])
    >>> sure = most_efficient(halves, np.array([0.01, 0.4]), np.array([0.99, 0.6]))
    >>> flat = most_efficient(halves, np.array([0.2, 0.2]), np.array([0.8, 0.8]))
    >>> bool(sure.price < flat.price), round(flat.price, 3)
    (True, 0.8)
    """
    mean = float(shares @ rates)
    plain, spread = mean * (1.0 - mean), rates * (1.0 - rates)  # variances of a label
    between = float(shares @ (rates - mean) ** 2)
    least = 1.0 / people_per_label

    def measure(log_mu: float) -> Efficient:
        chances = _chances(np.exp(log_mu) * spread, prices, shares, least)
        within = np.divide(spread, chances, out=np.zeros_like(spread), where=spread > 0.0)
        each = feature + float(shares @ (chances * prices))
        variance = between + float(shares @ within)
        return Efficient(chances, variance * each / plain, each, float(shares @ chances))

    whole = feature + float(shares @ prices)
    everybody = Efficient(np.ones_like(rates), whole, whole, 1.0)
    if plain <= 0.0 or spread.max() <= 0.0:
        return everybody
    centre = float(np.log(max(prices.max(), 1e-12) / spread.max()))
    grid = np.linspace(centre - _SPAN, centre + _SPAN, _STEPS)
    best = int(np.argmin([measure(x).price for x in grid]))
    around = (grid[max(best - 1, 0)], grid[min(best + 1, _STEPS - 1)])
    found = minimize_scalar(
        lambda x: measure(x).price, bounds=around, method="bounded", options={"xatol": 1e-9}
    )
    tried = (everybody, measure(grid[best]), measure(float(found.x)))
    return min(tried, key=lambda one: one.price)


def efficient_sampling(world: World, costs: Costs, assist: Assist | None) -> list[Efficient]:
    """Return the cheapest way of asking per group: everybody, or by strata of score and price."""
    whole, counted = _mean_costs(world, costs)
    everybody = [Efficient(np.ones(1), price, price, 1.0) for price in whole]
    if assist is None:
        return everybody
    require_kind("assist", assist, Assist, "an Assist, such as Assist(), or None")
    if not isinstance(world, TableWorld) or (world.score is None and world.price is None):
        raise InvalidInput(
            "what scores save needs a world of people with scores or prices: "
            f"worlds.TableWorld.from_frame(..., score=...); got a {type(world).__name__}"
        )
    assist.require_label_cost(max(costs.of(group).label for group in world.cells))
    out = []
    for group, all_asked in zip(world.cells, everybody, strict=True):
        mine = world.denied_rows(group)
        if not len(mine):
            out.append(all_asked)
            continue
        outcome, label = world.outcome[mine].astype(np.float64), _failure_costs(world, group, costs)
        if world.price is not None and not np.isnan(world.price[mine]).all():
            assist.require_price(float(np.nanmin(world.price[mine])))
            assist.require_price(float(np.nanmax(world.price[mine])))
        paid = np.ones(len(outcome)) if counted else label * (1.0 - outcome)
        strata = _strata(
            None if world.score is None else world.score[mine],
            None if world.price is None else label,
        )
        people = np.bincount(strata)
        out.append(
            most_efficient(
                people / len(outcome),
                np.bincount(strata, outcome) / people,
                np.bincount(strata, paid) / people,
                costs.of(group).feature,
                assist.people_per_label,
            )
        )
    return out


def _mean_costs(world: World, costs: Costs) -> tuple[list[float], bool]:
    """Return what a label of each group costs on average, to an audit that asks everybody.

    Where no label costs anything labels are counted instead: each costs 1, and the flag says so.
    """
    table = world if isinstance(world, TableWorld) and world.price is not None else None
    means, dearest = [], 0.0
    for group in world.cells:
        own = costs.of(group)
        mean, most = own.expected(world.r[group]), own.worst
        if table is not None:
            prices, rows = _failure_costs(table, group, costs), table.denied_rows(group)
            most = max(own.feature, float(prices.max(initial=0.0)))
            if len(rows):
                mean = own.feature + float((prices * (1.0 - table.outcome[rows])).mean())
        means.append(mean)
        dearest = max(dearest, most)
    return (means, False) if dearest > 0.0 else ([1.0] * len(means), True)


def _failure_costs(world: TableWorld, group: str, costs: Costs) -> Array:
    """Return what the label of each denied person of a group costs if it is 0."""
    rows, label = world.denied_rows(group), costs.of(group).label
    if world.price is None:
        return np.full(len(rows), label)
    return np.where(np.isnan(world.price[rows]), label, world.price[rows])


def _chances(wanted: Array, prices: Array, shares: Array, least: float) -> Array:
    """Return ``sqrt(wanted / (prices - nu))``, at most 1, for the least nu that asks enough."""

    def at(nu: float) -> Array:
        left = prices - nu
        ratio = np.divide(wanted, left, out=np.ones_like(wanted), where=left > 0.0)
        return np.sqrt(np.minimum(ratio, 1.0))

    low, high = 0.0, float(prices.max())
    if shares @ at(low) >= least:
        return at(low)
    for _ in range(60):
        middle = (low + high) / 2.0
        if shares @ at(middle) >= least:
            high = middle
        else:
            low = middle
    return at(high)


def _strata(score: Array | None, price: Array | None) -> NDArray[np.intp]:
    """Return everybody's stratum: by the score, if there is one, and within it by the price."""
    people = len(score if score is not None else price if price is not None else ())
    place = np.zeros(people, dtype=np.intp)
    for values, most in ((score, STRATA), (price, PRICES)):
        if values is None:
            continue
        pieces = min(most, max(people // PEOPLE // (int(place.max()) + 1), 1))
        steps, finer = np.arange(1, pieces) / pieces, np.zeros_like(place)
        for stratum in range(int(place.max()) + 1):
            own = (place == stratum) & ~np.isnan(values)
            if own.any():
                cuts = np.quantile(values[own], steps)
                finer[own] = np.searchsorted(cuts, values[own], side="right")
        finer[np.isnan(values)] = most
        place = np.unique(place * (most + 1) + finer, return_inverse=True)[1]
    return place
