"""C*: the least that any audit can cost on average, and what scores and prices can save of it.

With scores and prices, what is least is the price of information: the cheapest chances of asking,
were all rates known. A person whose score is read counts as ``r (1-r) / V`` labels, where
``V = Var r(X) + E[r(X) (1-r(X)) / pi(X)]`` is the least variance of an unbiased observation of r
when X is seen and the label asked for with chance pi (Hahn, 1998: the efficiency bound), and costs
``c_feat + E[pi(X) c(X)]``, c(X) being what a label costs on average. The product is least on the
edge of what V and cost can be together, where ``pi = sqrt(mu r(1-r) / (c - nu))``, at most 1;
nu > 0 where people per label are limited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.assist import Assist
from equipoise.bounds.maximin import Maximin, fair_set, maximin, unfair_set
from equipoise.errors import InvalidInput, require_kind
from equipoise.question import Costs, Question, Verdict, require_asked
from equipoise.rates import METRICS, Curve
from equipoise.worlds import TableWorld, World
from equipoise.worlds.world import require_world

STRATA = 20  # of the score, and so many of the price at most
PRICES = 5
PEOPLE = 200  # in a stratum, at least
_SPAN = 25.0  # of log mu, either way from where chances are about 1
_STEPS = 100


@dataclass(frozen=True, eq=False, repr=False)
class LowerBound(float):
    """C* as a number, with the allocation that attains it and how well it is known.

    Attributes
    ----------
    cost
        C*, rounded down: no audit that keeps the question's error levels costs less on average.
    verdict
        The answer whose proof is the cheaper one; the only right one outside the grey zone.
    labels
        Expected labels per group at the optimum; 0 for a group whose labels cost nothing, which
        is taken as known.
    shares
        Each group's share of the labels.
    budget
        Each group's share of the cost.
    certificate
        Relative distance between this value and the cost of the allocation given, both certified;
        C* lies between them.
    reference
        True in the grey zone (the gap is above gamma and at most gamma + epsilon), where both
        answers are right and the value is an asymptotic reference, not a bound.
    people_per_label
        People whose score is read per label, per group, in an audit with scores; empty otherwise.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> bound = lower_bound(world, Question("demographic_parity"), Costs())
    >>> float(bound), bound.verdict.value
    (0.0, 'UNFAIR')
    """

    cost: float
    verdict: Verdict
    labels: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    certificate: float = 0.0
    reference: bool = False
    people_per_label: Mapping[str, float] = field(default_factory=dict)

    def __new__(cls, cost: float, *_: object, **__: object) -> Self:  # noqa: D102
        return super().__new__(cls, cost)

    def __str__(self) -> str:
        if self.cost == math.inf:
            return (
                f"{self.verdict} is out of reach: worlds as near as you like are not {self.verdict}"
            )
        kind = "at least"
        if self.reference:
            kind = "as an asymptotic reference (both answers are right)"
        elif self.people_per_label:
            kind = "with help, for small differences, at least"
        lines = [f"{self.verdict} costs {kind} {self.cost:,.4g} (within {self.certificate:.2%})"]
        lines += [
            f"  {group}: {labels:,.3g} labels, {self.budget[group]:.0%} of the cost"
            for group, labels in self.labels.items()
        ]
        return "\n".join(lines)


def lower_bound(
    world: World, question: Question, costs: Costs, *, assist: Assist | None = None
) -> LowerBound:
    """Return C*, below which no audit that keeps the question's error levels can cost on average.

    ``C* = kl(delta, 1-delta) / max_w inf_{lam in Alt} sum_a w_a kl(r_a, lam_a)`` with
    ``sum_a w_a c_a = 1`` and ``c_a = c_feat + c_lab (1 - r_a)``, where Alt holds the unknowns for
    which the true answer is wrong: a gap >= gamma + epsilon if the world is FAIR, one <= gamma
    if it is UNFAIR. It holds for audits that know the past without limit and do not use
    features (the change of measure of Garivier and Kaufmann, 2016, priced). With separate error
    levels the numerator is ``kl(1 - level of the other mistake, level of this one)``.

    Where people of a table have prices of their own, ``c_a = c_feat + E[price (1 - Y)]``, over the
    group's denied.

    C* is 0 if past data decide, and infinite where no audit can: a ratio of rates that are 0 in
    every group is FAIR, and worlds as near as you like are not. Where nothing costs anything,
    labels are counted instead.

    Parameters
    ----------
    assist
        Let the score or the prices of a :class:`~equipoise.worlds.TableWorld` decide whom to ask:
        then c_a is the least price of as much information as one label holds, over all chances of
        asking by score and price, were the rates behind them known
        (:func:`most_efficient`). Information is measured for small differences, so this
        is an efficiency bound: exact in the limit of small gamma and epsilon.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({
    ...     "A": (0.026, 0.023, 0.951, 0.0875), "B": (0.0762, 0.0285, 0.8953, 0.2542),
    ... })
    >>> bound = lower_bound(world, Question(gamma=0.1, epsilon=0.05), Costs())
    >>> abs(bound - 192) < 2
    True
    >>> print(bound)
    FAIR costs at least 192.5 (within 0.10%)
      A: 146 labels, 69% of the cost
      B: 79.2 labels, 31% of the cost
    """
    require_world(world)
    require_asked(question, costs)
    right = question.truth(world.gap(question.metric, question.compare))
    r = np.array([world.r[group] for group in world.cells])
    sampled = efficient_sampling(world, costs, assist)
    prices = np.array([one.price for one in sampled])
    groups = world.cells.values()
    rates = [  # a group without such people is not compared: any curve will do
        (Curve.stack([rate.curve(*own.shares) or Curve(0.0) for own in groups]), rate.falls)
        for rate in METRICS[question.metric].rates
    ]
    compare = question.compared(world.cells)
    found: list[tuple[float, Verdict, Maximin]] = []
    for verdict in sorted(right):
        if verdict is Verdict.FAIR:
            best = maximin(unfair_set(rates, question.threshold, compare), r, prices)
        else:  # blocks share no group: information adds up, and goes furthest in one of them
            every = [
                maximin(fair_set(rates, question.gamma, block, compare.scale), r, prices)
                for block in compare.blocks
            ]
            best = max(every, key=lambda one: one.upper)
        need = _information_needed(question, verdict)
        out_of_reach = need > 0.0 and best.upper == 0.0
        found.append((math.inf if out_of_reach else need / (best.upper or 1.0), verdict, best))
    cost, verdict, best = min(found, key=lambda one: one[0])
    asked, paid = np.array([one.asked for one in sampled]), best.budget > 0.0
    each = np.array([one.per_person for one in sampled]) / asked
    bought = np.divide(best.budget, each, out=np.zeros(len(each)), where=paid)

    def by_group(values: Array) -> dict[str, float]:
        return dict(zip(world.cells, values.tolist(), strict=True))

    return LowerBound(
        cost,
        verdict,
        labels=by_group(np.multiply(bought, cost, out=np.zeros(len(each)), where=paid)),
        shares=by_group(bought / max(bought.sum(), 1e-300)),
        budget=by_group(best.budget),
        certificate=0.0 if best.lower == best.upper else 1.0 - best.lower / best.upper,
        reference=len(right) > 1,
        people_per_label={} if assist is None else by_group(1.0 / asked),
    )


def _information_needed(question: Question, verdict: Verdict) -> float:
    """Return the nats between a right answer and the same answer where it is wrong.

    The verdict comes with probability at least ``1 - other`` here and at most ``wrong`` there.
    """
    wrong, other = question.level_wrong_fair, question.level_wrong_unfair
    if verdict is Verdict.UNFAIR:
        wrong, other = other, wrong
    if wrong + other >= 1.0:
        return 0.0
    return other * math.log(other / (1.0 - wrong)) + (1.0 - other) * math.log((1.0 - other) / wrong)


# -- the cheapest way of asking --------------------------------------------------------------------


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
    from scipy.optimize import minimize_scalar

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
    """Return the cheapest way of asking per group: everybody, or by strata of score and price.

    Where no label costs anything labels are counted instead: each costs 1.
    """
    table = world if isinstance(world, TableWorld) else None
    priced = table is not None and table.price is not None
    if assist is not None:
        require_kind("assist", assist, Assist, "an Assist, such as Assist(), or None")
        if table is None or (table.score is None and not priced):
            raise InvalidInput(
                "what scores save needs a world of people with scores or prices: "
                f"worlds.TableWorld.from_frame(..., score=...); got a {type(world).__name__}"
            )
        assist.require_label_cost(max(costs.of(group).label for group in world.cells))
    nobody = np.empty(0, dtype=np.intp)
    rows = {g: nobody if table is None else table.denied_rows(g) for g in world.cells}
    failed = {}  # what a label costs if it is 0: of each denied person, or of all of a group
    for group, mine in rows.items():
        failed[group] = np.array([costs.of(group).label])
        if table is not None and table.price is not None:
            own = table.price[mine]
            failed[group] = np.where(np.isnan(own), failed[group], own)
            if assist is not None and not np.isnan(own).all():
                assist.require_price(float(np.nanmin(own)))
                assist.require_price(float(np.nanmax(own)))
    free = not any(costs.of(group).feature or label.any() for group, label in failed.items())
    out = []
    for group, mine in rows.items():
        label, feature = failed[group], costs.of(group).feature
        outcome = np.zeros(0) if table is None else table.outcome[mine].astype(np.float64)
        paid = np.ones(len(mine)) if free else label * (1.0 - outcome)
        if assist is None or table is None or not len(mine):
            mean = costs.of(group).expected(world.r[group])
            mean = feature + float(paid.mean()) if priced and len(mine) else mean
            price = 1.0 if free else mean
            out.append(Efficient(np.ones(1), price, price, 1.0))
            continue
        score = None if table.score is None else table.score[mine]
        strata = _strata(score, label if priced else None)
        people = np.bincount(strata)
        shares, rates = people / len(mine), np.bincount(strata, outcome) / people
        prices = np.bincount(strata, paid) / people
        out.append(most_efficient(shares, rates, prices, feature, assist.people_per_label))
    return out


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


def _strata(score: Array | None, price: Array | None) -> Ints:
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
