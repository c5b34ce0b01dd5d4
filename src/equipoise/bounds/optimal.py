"""C*: the least that any audit can cost on average, by a certified maximin.

The alternatives are the worlds that an audit must tell from the true one. Write ``lam_a`` for a
possible value of group a's unknown ``r_a = P[Y=1 | f=0, a]``. Both wrong answers are unions of
boxes that slide along one or two levels:

- UNFAIR: for some rate, groups a, b and level t, ``rate_b <= t`` and ``rate_a`` is ``gap`` above t;
- FAIR: for some levels, one per rate, every group's rate lies between level and ``gap`` above it
  (against a reference, whose rate is the level, within ``gap`` of it).

When a level ranges over a cell, the box with its ends moved outwards holds all boxes of the cell,
so what is cheapest in it bounds the cell from below; at a single level the box is exact.

``D(w) = inf over alternatives of sum_a w_a kl(r_a, lam_a)`` is concave in the labels ``w_a`` that a
unit of cost buys, being a minimum of linear functions. Its maximum is enclosed from both sides:

- above by finitely many alternatives found so far: a linear program whose dual is a mixture of
  them, and any mixture bounds D;
- below by cells that cover all alternatives, each bounded by the outer box of its cell.

Cells that may still lie below the program's value are halved, and the alternatives in their middles
join the program, until both sides agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import rel_entr

from equipoise._arrays import Array, Flags, Ints
from equipoise.comparison import Block, Compared, GapScale
from equipoise.errors import EquipoiseError
from equipoise.question import Costs, Question, Verdict, require_asked
from equipoise.rates import METRICS, Band, Curve
from equipoise.worlds import TableWorld, World
from equipoise.worlds.world import require_world

GroupCurves = tuple[Curve, bool]
"""One rate of all groups, each a curve in its own unknown (curves of arrays); whether it falls."""
Cover = NDArray[np.void]
"""Cells: the ``piece`` each belongs to, the least (``low``) and largest (``high``) levels in it."""

TOLERANCE = 1e-3  # relative distance of the two sides
_FLOOR = 1e-4  # of the budget, shared by all groups, so that an infinite kl is never times 0
_RESOLUTION = 1e-8  # levels closer than this are one; what gamma = 0 means in floating point
_BATCH = 2048  # cells halved at a time
_LIMIT = 1_000_000  # cells in memory; beyond it the two sides are returned as they stand
_CUTS = 24  # alternatives that join the linear program at a time
_SLACK = 1e-5  # relative distance of the program's two sides
_NOTHING = 1e-13  # of the largest information: nearer worlds count as ones that nothing tells apart


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
    budget
        Each group's share of the cost.
    certificate
        Relative distance between this value and the cost of the allocation given, both certified;
        C* lies between them.
    reference
        True in the grey zone (the gap is above gamma and at most gamma + epsilon), where both
        answers are right and the value is an asymptotic reference, not a bound.

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
    labels: Mapping[str, float]
    budget: Mapping[str, float]
    certificate: float
    reference: bool

    def __new__(cls, cost: float, *_: object, **__: object) -> Self:  # noqa: D102
        return super().__new__(cls, cost)

    def __str__(self) -> str:
        if self.cost == math.inf:
            return f"{self.verdict} is out of reach: worlds however near are not {self.verdict}"
        reference = "as an asymptotic reference (both answers are right)"
        kind = reference if self.reference else "at least"
        lines = [f"{self.verdict} costs {kind} {self.cost:,.4g} (within {self.certificate:.2%})"]
        lines += [
            f"  {group}: {labels:,.3g} labels, {self.budget[group]:.0%} of the cost"
            for group, labels in self.labels.items()
        ]
        return "\n".join(lines)


def lower_bound(world: World, question: Question, costs: Costs) -> LowerBound:
    """Return C*: no audit that keeps the question's error levels costs less on average.

    ``C* = kl(delta, 1-delta) / max_w inf_{lam in Alt} sum_a w_a kl(r_a, lam_a)`` with
    ``sum_a w_a c_a = 1`` and ``c_a = c_feat + c_lab (1 - r_a)``, where Alt holds the unknowns for
    which the true answer is wrong: a gap >= gamma + epsilon if the world is FAIR, one <= gamma
    if it is UNFAIR. It holds for audits with an unlimited past that use neither features nor
    scores (the change of measure of Garivier and Kaufmann, 2016, priced). With separate error
    levels the numerator is ``kl(1 - level of the other mistake, level of this one)``.

    Where people have prices of their own, ``c_a = c_feat + E[price (1 - Y)]`` over the denied.

    C* is 0 if past data decide, and infinite where no audit can: a ratio of rates that are 0 in
    every group is FAIR, and worlds however near to it are not. Where nothing costs anything,
    labels are counted instead.

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
    r, prices = np.array([world.r[group] for group in world.cells]), _mean_prices(world, costs)
    shares = [cells.shares for cells in world.cells.values()]
    rates = [  # a group without such people is not compared: any curve will do
        (Curve.stack([rate.curve(*own) or Curve(0.0) for own in shares]), rate.trend < 0)
        for rate in METRICS[question.metric].rates
    ]
    compare, found = question.compared(world.cells), list[tuple[float, Verdict, Maximin]]()
    for verdict in sorted(right):
        wrong, other = question.level_wrong_fair, question.level_wrong_unfair
        if verdict is Verdict.FAIR:
            refuted = [unfair_set(rates, question.threshold, compare)]
        else:
            wrong, other = other, wrong
            refuted = [fair_set(rates, question.gamma, b, compare.scale) for b in compare.blocks]
        # Blocks share no group: information adds up, and goes furthest in one of them.
        best = max((maximin(one, r, prices) for one in refuted), key=lambda one: one.upper)
        # The verdict comes with probability at least 1 - other here, at most wrong where it is not.
        need = float(_kl(other, 1.0 - wrong)) if wrong + other < 1.0 else 0.0
        out_of_reach = need > 0.0 and best.upper == 0.0
        found.append((math.inf if out_of_reach else need / (best.upper or 1.0), verdict, best))
    cost, verdict, best = min(found, key=lambda one: one[0])
    budget = dict(zip(world.cells, best.budget.tolist(), strict=True))
    each = zip(budget.items(), prices.tolist(), strict=True)
    return LowerBound(
        cost,
        verdict,
        labels={group: cost * share / price if share else 0.0 for (group, share), price in each},
        budget=budget,
        certificate=0.0 if best.lower == best.upper else 1.0 - best.lower / best.upper,
        reference=len(right) > 1,
    )


def _mean_prices(world: World, costs: Costs) -> Array:
    """Return what a label of each group costs on average; 1 where no label costs anything."""
    means, free = [], True
    for group in world.cells:
        own = costs.of(group)
        failed, mean = np.array(own.label), own.expected(world.r[group])
        if isinstance(world, TableWorld) and world.price is not None:
            rows = world.denied_rows(group)
            failed = np.where(np.isnan(world.price[rows]), own.label, world.price[rows])
            if len(rows):
                mean = own.feature + float(np.mean(failed * (1 - world.outcome[rows])))
        means.append(mean)
        free &= not (own.feature or failed.any())
    return np.ones(len(means)) if free else np.array(means)


def _kl(p: float | Array, q: float | Array) -> Array:
    """Return kl(p, q): 0 log 0 = 0, and infinite where q rules p out."""
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


# -- the maximin -----------------------------------------------------------------------------------


class Maximin(NamedTuple):
    """``lower <= max D <= upper``, and the budget shares at which D is at least ``lower``.

    Both are infinite if there is no alternative.
    """

    lower: float
    upper: float
    budget: Array


def maximin(alternatives: Alternatives, r: Array, costs: Array) -> Maximin:
    """Maximise ``D(w)`` over ``w >= 0`` with ``sum_a w_a c_a = 1``.

    A group whose labels cost nothing is taken as known: it gets no budget, and only alternatives
    that agree with it count.
    """
    paid, all_shares = costs > 0.0, np.zeros(len(costs))
    if not paid.any():
        return Maximin(np.inf, np.inf, all_shares)
    even = np.full(paid.sum(), 1.0 / paid.sum())

    def rows_of(cells: Cover) -> tuple[Array, Flags]:
        """Return what a unit of cost per paid group buys against each cell; which are not empty."""
        start, end = alternatives.boxes(cells)
        full = np.asarray((start <= end).all(axis=1))
        full &= ((start <= r) & (r <= end))[:, ~paid].all(axis=1)
        lam = np.minimum(np.maximum(r, start), np.maximum(end, 0.0))
        return np.maximum(_kl(r, lam), 0.0)[:, paid] / costs[paid], full

    pool, active = np.empty((0, len(even))), np.empty(0, dtype=np.intp)
    budget, upper = even, np.inf
    cells = alternatives.start()
    rows, full = rows_of(cells)
    cells, rows = cells[full], rows[full]
    halves, finer = cells, rows
    while True:
        points, (middles, full) = _are_points(halves), rows_of(_middles(halves))
        found = np.concatenate([middles[full & ~points], finer[points]])
        if len(found):
            # Those of infinite information cost nothing to refute.
            pool = np.concatenate([pool, found[np.isfinite(found).all(axis=1)]])
            best, upper, active = _best_budget(pool, active, even)
            budget = (1.0 - _FLOOR) * best + _FLOOR * even
        bound = rows @ budget
        lower = float(bound.min(initial=np.inf))
        live = np.flatnonzero((bound < (1.0 - TOLERANCE) * upper) & ~_are_points(cells))
        if not len(live) or len(bound) > _LIMIT:
            all_shares[paid] = budget
            return Maximin(min(lower, upper), upper, all_shares)
        if len(live) > _BATCH:
            live = live[np.argpartition(bound[live], _BATCH)[:_BATCH]]
        halves, finer = _best_halves(rows_of, cells[live], budget, upper)
        cells = np.concatenate([np.delete(cells, live), halves])
        rows = np.concatenate([np.delete(rows, live, axis=0), finer])


@dataclass(frozen=True)
class Alternatives:
    """A set of unknowns as a union of sliding boxes; see :func:`unfair_set`, :func:`fair_set`.

    In a box of a piece, at levels t, rate i of group g is at least ``least[piece, i, g]`` above its
    level and at most ``most[piece, i, g]`` above it; NaN where it may be anything. A piece has as
    many levels as ``levels``, each in [0, top] and first cut into ``steps``.
    """

    rates: Sequence[GroupCurves]
    scale: GapScale
    least: Array
    most: Array
    levels: int
    top: float
    steps: int

    def start(self) -> Cover:
        """Return cells that cover the set."""
        edges = np.linspace(0.0, self.top, self.steps + 1)
        corner = np.array(list(product(range(self.steps), repeat=self.levels)), dtype=np.intp)
        ends = (self.levels,)
        kind = [("piece", np.intp), ("low", np.float64, ends), ("high", np.float64, ends)]
        cells = np.zeros((len(self.least), len(corner)), dtype=kind)
        cells["piece"] = np.arange(len(self.least))[:, None]
        cells["low"], cells["high"] = edges[corner], edges[corner + 1]
        return cells.ravel()

    def boxes(self, cells: Cover) -> tuple[Array, Array]:
        """Return the ends of every group's ``lam`` (n, K); start > end where there is none."""
        shape = (len(cells), self.least.shape[2])
        start, end = np.zeros(shape), np.ones(shape)
        for i, (curves, falls) in enumerate(self.rates):
            level = min(i, self.levels - 1)
            least, most = self.least[cells["piece"], i], self.most[cells["piece"], i]
            low = self.scale.above(cells["low"][:, level, None], least)
            high = self.scale.above(cells["high"][:, level, None], most)
            low[np.isnan(least)], high[np.isnan(most)] = -np.inf, np.inf
            since, until = Band(curves, curves).between(low, high, falling=falls)
            start, end = np.maximum(start, since), np.minimum(end, until)
        return start, end


def unfair_set(rates: Sequence[GroupCurves], gap: float, compare: Compared) -> Alternatives:
    """Return all unknowns for which some rate of a pair is at least ``gap`` (> 0) apart."""
    pairs = compare.pairs
    least, most = np.full((2, len(pairs) * len(rates), len(rates), np.size(rates[0][0].a)), np.nan)
    for piece, ((above, below), i) in enumerate(product(pairs, range(len(rates)))):
        least[piece, i, above], most[piece, i, below] = gap, 0.0
    return Alternatives(rates, compare.scale, least, most, levels=1, top=1.0 - gap, steps=16)


def fair_set(
    rates: Sequence[GroupCurves], gap: float, block: Block, scale: GapScale
) -> Alternatives:
    """Return all unknowns for which no rate of a block's pairs is more than ``gap`` apart."""
    least, most = np.full((2, 1, len(rates), np.size(rates[0][0].a)), np.nan)
    inside = list(block.groups)
    if block.direction != "above":
        least[..., inside] = 0.0 if block.reference is None else scale.opposite(gap)
    if block.direction != "below":
        most[..., inside] = gap
    if block.reference is not None:
        least[..., block.reference] = most[..., block.reference] = 0.0
    steps = 32 if len(rates) == 1 else 16
    return Alternatives(rates, scale, least, most, levels=len(rates), top=1.0, steps=steps)


def _best_halves(
    rows_of: Callable[[Cover], tuple[Array, Flags]], cells: Cover, budget: Array, upper: float
) -> tuple[Cover, Array]:
    """Halve every cell along the level that lifts its bound most; leave empty halves out.

    Often one rate alone decides and the other's level may be anything in a range: halving
    along that one would multiply cells for nothing.
    """
    width, middle, choices = (cells["high"] - cells["low"]).T, _middles(cells), []
    for level in range(len(width)):
        left, right = cells.copy(), cells.copy()
        left["high"][:, level] = right["low"][:, level] = middle["low"][:, level]
        choices.append(np.concatenate([left, right]))
    rows, full = zip(*map(rows_of, choices), strict=True)
    lift = np.where(full, np.minimum(np.stack(rows) @ budget, upper), upper)
    lift = lift[:, : len(cells)] + lift[:, len(cells) :]
    lift[width <= _RESOLUTION] = -1.0
    leading = lift >= lift.max(axis=0) * (1.0 - 1e-6)
    dimension = np.where(leading, width, -1.0).argmax(axis=0)
    chosen = full & (np.tile(dimension, 2) == np.arange(len(width))[:, None])
    return np.stack(choices)[chosen], np.stack(rows)[chosen]


def _middles(cells: Cover) -> Cover:
    """Return the single levels in the middle."""
    points = cells.copy()
    points["low"] = points["high"] = (cells["low"] + cells["high"]) / 2.0
    return points


def _are_points(cells: Cover) -> Flags:
    """Return which cells are too small to halve: each counts as one alternative."""
    return np.asarray((cells["high"] - cells["low"] <= _RESOLUTION).all(axis=1))


def _best_budget(pool: Array, active: Ints, even: Array) -> tuple[Array, float, Ints]:
    """Maximise ``min(pool @ budget)`` over budgets that sum to 1: only a few rows ever matter.

    Return the best budget, an upper bound of the value, and the rows that matter, which begin with
    those that did before the pool grew.
    """
    budget, upper = even, np.inf
    while (value := pool @ budget).min(initial=np.inf) < (1.0 - _SLACK) * upper:
        low = np.argsort(value)[:_CUTS]
        active = np.union1d(active, low[value[low] < upper])
        budget, upper = _best_mixture(pool[active])
    return budget, upper, active


def _best_mixture(rows: Array) -> tuple[Array, float]:
    """Solve the linear program; return the dual's value, a bound however the solver rounds."""
    (count, groups), scale = rows.shape, float(rows.max(axis=1).min())
    if scale <= _NOTHING * rows.max():
        return np.full(groups, 1.0 / groups), 0.0
    answer = linprog(
        np.append(np.zeros(groups), -1.0),
        A_ub=np.column_stack([-rows / scale, np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(groups), 0.0)[None, :],
        b_eq=[1.0],
    )
    if answer.x is None:
        raise EquipoiseError(f"the linear program behind C* has no solution: {answer.message}")
    budget = np.maximum(answer.x[:groups], 0.0)
    mixture = np.maximum(-answer.ineqlin.marginals, 0.0)
    return budget / budget.sum(), float((mixture @ rows / mixture.sum()).max())
