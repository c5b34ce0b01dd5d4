"""Both wrong answers weighed against the labels so far, in request order.

One object holds all that an audit's statistics are: cells with stakes, what was requested and told,
and the plan of whom to label next. It knows groups by their position, people by the number of their
request, and nothing of tickets or money.

Whatever is staked on a request is fixed when the request is made. Cells and bets follow from the
past data and the question; how stakes are divided among pairs of groups (three and more) may follow
what was told before the request. So nobody who decides later which labels are told, withheld or
withdrawn chooses among bets.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from equipoise.bands import Bands
from equipoise.compare import Compare
from equipoise.evidence.allocation import Allocation, Outlook, allocate, information
from equipoise.evidence.bets import UNFAIR_SIZES, fair_sizes
from equipoise.evidence.corners import corridor_cells, level_cells, unfair_cells
from equipoise.evidence.directions import likely_extremes
from equipoise.evidence.geometry import fair_pairs, unfair_pairs
from equipoise.evidence.staircase import OUT, Division, Staircase
from equipoise.metrics import RATES
from equipoise.question import Verdict

__all__ = ["Levels", "Weighing"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

FINENESS = 0.04  # width of a cell: how far a rate moves over it, in epsilons
PILOT = 5  # labels per group before the first plan
EPOCH = 1.2  # labels grow by this factor between two plans
SLACK = 1.1  # a group may run this far ahead of its share while another is waited for
PART = 0.2  # of a stake is divided anew at a plan, where there are pairs to divide it among
_FINEST = 1 / 2000  # … but not finer than this, for the sake of memory
_LOOKED_AT = 1000  # cells of a set that a plan looks at
_LOST = 1e-20  # evidence that will hardly recover
_CHANGED = frozenset(
    {"_groups", "_outcomes", "_divisions", "ones", "zeros", "requested", "unfair_set", "fair_set"}
)


@dataclass(frozen=True)
class Levels:
    """The error probability that evidence may use against each wrong answer."""

    wrong_fair: float
    wrong_unfair: float


class Weighing:
    """Evidence for both verdicts, request by request.

    Parameters
    ----------
    against_unfair, against_fair
        The rates as curves in r, as wide as the past data require, for the cells of the UNFAIR set
        and of the FAIR set.
    gamma, epsilon
        The question.
    levels
        Error probabilities left for the evidence.
    feature_costs, label_costs
        Prices per group.
    reachable
        Which groups have denied people to label.
    fineness
        Width of cells, in epsilons.
    compare
        How two groups' rates are compared.
    """

    def __init__(
        self,
        against_unfair: Bands,
        against_fair: Bands,
        gamma: float,
        epsilon: float,
        levels: Levels,
        feature_costs: Array,
        label_costs: Array,
        reachable: NDArray[np.bool_],
        *,
        fineness: float = FINENESS,
        compare: Compare = Compare.DIFFERENCE,
    ) -> None:
        k = len(reachable)
        self._gamma, self._epsilon, self._levels = gamma, epsilon, levels
        self._compare = compare
        self._step = max(fineness * epsilon, _FINEST)
        self._against_fair = against_fair
        self._unfair_pairs, self._fair_pairs = (
            unfair_pairs(against_unfair, compare),
            fair_pairs(against_fair, compare),
        )
        self._feature_costs, self._label_costs = feature_costs, label_costs
        self._reachable = reachable
        self._groups: list[int] = []  # of all requests, in order
        self._outcomes: list[int | None] = []  # None: neither told nor withdrawn yet
        self._divisions: dict[
            int, list[Division]
        ] = {}  # per cover of the FAIR set, from a request on
        self.ones, self.zeros = np.zeros(k), np.zeros(k)  # told, in whatever order
        self.requested = np.zeros(k)
        self.shares = reachable / max(reachable.sum(), 1)
        self._pursues_fair: bool | None = None
        self._next_plan = PILOT * max(int(reachable.sum()), 1)
        self._start()

    def _start(self) -> None:
        """Begin to count."""
        k, gap, epsilon = len(self._reachable), self._gamma + self._epsilon, self._epsilon
        compare = self._compare
        self.counted = 0
        self.verdict: Verdict | None = None
        self.unfair_set = [
            Staircase(
                unfair_cells(pair, gap, self._step, k),
                epsilon * np.asarray(fair_sizes(gap, epsilon)),
                1.0 / self._levels.wrong_fair,
            )
            for pair in self._unfair_pairs
        ]
        steps, bar = epsilon * np.asarray(UNFAIR_SIZES), 1.0 / self._levels.wrong_unfair
        if k == 2:
            cells = [corridor_cells(self._fair_pairs[0], self._gamma, epsilon, self._step, k)]
        else:  # each rate has its own cover of the FAIR set, at its share of the level
            cells = [
                level_cells(
                    list(bands.values()), RATES[rate].falls, self._gamma, self._step, compare
                )
                for rate, bands in self._against_fair.items()
            ]
        self.fair_set = [Staircase(each, steps, len(cells) * bar) for each in cells]

    # -- requests and answers -------------------------------------------------------------------

    def request(self, group: int) -> int:
        """Note that a label is requested; return the request's number."""
        self._groups.append(group)
        self._outcomes.append(None)
        self.requested[group] += 1
        return len(self._groups) - 1

    def tell(self, number: int, outcome: int) -> Verdict | None:
        """Take in a request's outcome, OUT for one that will never be known; weigh what can be."""
        self._note(number, outcome)
        return self._go_on()

    def correct(self, number: int, outcome: int) -> Verdict | None:
        """Replace an outcome that was told, or withdrawn: its own factor changes, nothing else."""
        old = self._outcomes[number]
        if old is None:
            return self.tell(number, outcome)
        group = self._groups[number]
        self._hear(group, old, -1)
        self._hear(group, outcome, +1)
        self._outcomes[number] = outcome
        if number < self.counted or self.verdict is not None:
            self._start()
        return self._go_on()

    def outcome(self, number: int) -> int | None:
        """Return a request's outcome, OUT if it was withdrawn, None if it is to come."""
        return self._outcomes[number]

    def count(self, group: int, outcome: int) -> Verdict | None:
        """Request a label that is told at once."""
        return self.tell(self.request(group), outcome)

    def count_block(self, groups: Ints, outcomes: Ints) -> int:
        """Request labels that are told at once; return how many until a verdict, or all.

        It equals :meth:`count` one by one. At most :attr:`labels_until_change` at a time, with no
        label out.
        """
        taken = len(groups)
        if taken > self.labels_until_change or self.counted < len(self._groups):
            raise ValueError(
                f"{taken} labels at once; at most {self.labels_until_change} now, and none out"
            )
        self._groups.extend(groups.tolist())
        self._outcomes.extend(outcomes.tolist())
        self._count_settled()
        taken -= len(self._groups) - self.counted
        del self._groups[self.counted :], self._outcomes[self.counted :]
        k = len(self.ones)
        self.requested += np.bincount(groups[:taken], minlength=k)
        self.ones += np.bincount(groups[:taken], outcomes[:taken] == 1, k)
        self.zeros += np.bincount(groups[:taken], outcomes[:taken] == 0, k)
        self._keep_up()
        return taken

    @property
    def labels_until_change(self) -> int:
        """How many further labels will come by the plan as it stands now."""
        return max(1, int(self._next_plan - self.told.sum()))

    # -- whom to label --------------------------------------------------------------------------

    def eligible(self) -> NDArray[np.bool_]:
        """Say of which groups a label is welcome, given the labels requested so far."""
        bound = SLACK * self.shares * (self.requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (self.requested <= bound))

    def choose(self, arrivals: Array, count: int, rng: np.random.Generator) -> Ints:
        """Return whose labels come next, people of the groups arriving at these rates.

        It equals passing over people until one is welcome. Fewer come back, or none, when nobody
        who is welcome arrives. The shares must stand for all of them, and no label be out.
        """
        rates, pace = arrivals.tolist(), (SLACK * self.shares).tolist()
        reachable, requested = self._reachable.tolist(), self.requested.tolist()
        total, groups = sum(requested), range(len(rates))
        chosen = []
        for draw in rng.random(count).tolist():
            welcome = [
                rates[g] if reachable[g] and requested[g] <= pace[g] * (total + 1.0) + 1.0 else 0.0
                for g in groups
            ]
            point, group = draw * sum(welcome), -1
            for g in groups:
                if welcome[g] > 0.0:
                    group = g
                    point -= welcome[g]
                    if point < 0.0:
                        break
            if group < 0:
                break
            chosen.append(group)
            requested[group] += 1.0
            total += 1.0
        return np.array(chosen, dtype=np.intp)

    # -- where it stands ------------------------------------------------------------------------

    @property
    def told(self) -> Array:
        """Outcomes known per group."""
        return np.asarray(self.ones + self.zeros)

    @property
    def estimates(self) -> Array:
        """Estimates of r per group, kept off 0 and 1."""
        return np.asarray((self.ones + 0.5) / (self.told + 1.0))

    def tallies(self) -> Array:
        """Return ones, zeros and unknown labels among those counted, shape (3, groups)."""
        groups, outcomes = self._log(0, self.counted)
        k = len(self.ones)
        return np.stack([np.bincount(groups[outcomes == y], minlength=k) for y in (1, 0, OUT)])

    def is_hopeless(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that their bands are about as wide as epsilon. A
        cell reaches beyond its set by its width. Nor does any label decide once all bets against
        some cell of either answer are lost.
        """
        if min(s.least for s in self.unfair_set) < _LOST > max(s.least for s in self.fair_set):
            return True
        unfair = self._gamma + self._epsilon - self._step
        if not any(
            pair.unfair_below(low[[pair.b]], unfair).at[0] >= high[pair.a]
            for pair in self._unfair_pairs
        ):
            return False
        fair = self._gamma + self._step
        return all(
            pair.fair_from(high[[pair.b]], fair).at[0] <= low[pair.a]
            and pair.fair_to(low[[pair.b]], fair).at[0] >= high[pair.a]
            for pair in self._fair_pairs
        )

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation()
        if plan.speed <= 0.0 or self.is_hopeless(self.estimates, self.estimates):
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        return np.asarray(shares / plan.speed / (shares * self._costs()).sum())

    # -- copies ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
        """Leave out the stakes: they follow from the requests."""
        return {k: v for k, v in vars(self).items() if k not in ("unfair_set", "fair_set")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        counted, verdict = self.counted, self.verdict
        self._start()
        self._count_settled()
        if (self.counted, self.verdict) != (counted, verdict):
            self._look_ahead()

    def __deepcopy__(self, memo: dict[int, object]) -> Weighing:
        """Copy what labels change; cells and bets are shared."""
        other = copy(self)
        vars(other).update({k: deepcopy(v, memo) for k, v in vars(self).items() if k in _CHANGED})
        return other

    # -- counting -------------------------------------------------------------------------------

    def _hear(self, group: int, outcome: int, sign: int) -> None:
        if outcome != OUT:
            (self.ones if outcome else self.zeros)[group] += sign

    def _note(self, number: int, outcome: int) -> None:
        self._outcomes[number] = outcome
        self._hear(self._groups[number], outcome, +1)

    def _go_on(self) -> Verdict | None:
        if self.verdict is None:
            self._count_settled()
        if self.verdict is None and self.counted < len(self._groups):
            self._look_ahead()
        self._keep_up()
        return self.verdict

    def _count_settled(self) -> None:
        """Count labels in request order, up to the first that is out."""
        end = self.counted
        while end < len(self._outcomes) and self._outcomes[end] is not None:
            end += 1
        for start, stop in self._stretches(self.counted, end):
            for staircase, division in zip(
                self.fair_set, self._divisions.get(start, ()), strict=False
            ):
                staircase.divide(division)
            self.counted += self._weigh(*self._log(start, stop))
            if self.verdict is not None:
                return

    def _weigh(self, groups: Ints, outcomes: Ints) -> int:
        """Weigh labels one after the other; return how many until a verdict, or all."""
        n = len(groups)
        if n == 1:
            for staircase in (*self.unfair_set, *self.fair_set):
                staircase.update(int(groups[0]), int(outcomes[0]))
            at_fair = 1 if all(s.refuted for s in self.unfair_set) else 2
            at_unfair = 1 if any(s.refuted for s in self.fair_set) else 2
        else:
            at_fair = max(s.update_block(groups, outcomes) for s in self.unfair_set)
            at_unfair = min(s.update_block(groups, outcomes) for s in self.fair_set)
        first = max(1, min(at_fair, at_unfair))  # noticed at the first label, if not before
        if first <= n:
            self.verdict = Verdict.FAIR if at_fair <= at_unfair else Verdict.UNFAIR
        return min(first, n)

    def _look_ahead(self) -> None:
        """Decide if all requests so far do, however those that are out turn out.

        What each of them meets is fixed already, so this is no second chance.
        """
        stretches = []
        for start, stop in self._stretches(self.counted, len(self._groups)):
            groups, outcomes = self._log(start, stop)
            counts = np.zeros((len(self.ones), 3))
            np.add.at(counts, (groups, np.where(outcomes == OUT, 2, outcomes)), 1.0)
            stretches.append((self._divisions.get(start), counts))
        if all(s.refuted_with([(None, c) for _, c in stretches]) for s in self.unfair_set):
            self.verdict = Verdict.FAIR
        elif any(
            s.refuted_with([(None if d is None else d[i], c) for d, c in stretches])
            for i, s in enumerate(self.fair_set)
        ):
            self.verdict = Verdict.UNFAIR

    def _stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield stretches of requests within which no stake is divided."""
        cuts = [start, *(at for at in self._divisions if start < at < end), end]
        yield from ((i, j) for i, j in pairwise(cuts) if i < j)

    def _log(self, start: int, stop: int) -> tuple[Ints, Ints]:
        outcomes = [OUT if y is None else y for y in self._outcomes[start:stop]]
        return np.array(self._groups[start:stop], dtype=np.intp), np.array(outcomes, dtype=np.intp)

    # -- planning -------------------------------------------------------------------------------

    def _keep_up(self) -> None:
        """Plan anew when enough labels have been told since the last time."""
        told = self.told.sum()
        if self.verdict is None and told >= self._next_plan:
            self._next_plan = int(np.ceil(EPOCH * told))
            plan = self._allocation(doubt=True)
            self._pursues_fair = plan.pursues_fair
            shares = np.where(self._reachable, plan.shares, 0.0)
            self.shares = shares / max(shares.sum(), 1e-300)
            self._divide_from_here_on()

    def _divide_from_here_on(self) -> None:
        if len(self._reachable) == 2:
            return
        self._divisions[len(self._groups)] = [
            Division(
                PART,
                likely_extremes([band.low for band in bands.values()], self.ones, self.zeros),
            )
            for bands in self._against_fair.values()
        ]

    def _allocation(self, *, doubt: bool = False) -> Allocation:
        unfair = [self._outlook(s, doubt) for s in self.unfair_set if not s.refuted]
        joined = Outlook(
            np.concatenate([o.info for o in unfair]), np.concatenate([o.missing for o in unfair])
        )
        fair = [self._outlook(s, doubt) for s in self.fair_set]
        return allocate(joined, fair, self._costs(), was_fair=self._pursues_fair)

    def _outlook(self, staircase: Staircase, doubt: bool) -> Outlook:
        most = _LOOKED_AT if len(self._reachable) == 2 else _LOOKED_AT // 8
        low, high, missing = staircase.standing(most)
        outlook = Outlook(information(low, high, self.estimates), missing)
        return outlook.doubted(self.told) if doubt else outlook

    def _costs(self) -> Array:
        costs = self._feature_costs + self._label_costs * (1.0 - self.estimates)
        return np.asarray(np.maximum(costs, 1e-9) if costs.max() > 0.0 else np.ones_like(costs))
