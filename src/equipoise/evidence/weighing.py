"""Both wrong answers weighed against the labels so far, in request order.

One object holds all that an audit's statistics are: the two staircases, the counts, and the plan of
whom to label next. It knows groups by their position and nothing of people, tickets or money.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.bands import Bands
from equipoise.evidence.allocation import Allocation, allocate
from equipoise.evidence.bets import UNFAIR_SIZES, fair_sizes
from equipoise.evidence.corners import FairCorners, UnfairCorners
from equipoise.evidence.geometry import fair_pairs, unfair_pairs
from equipoise.evidence.pairs import pair_weights
from equipoise.evidence.staircase import FINENESS, Staircase
from equipoise.question import Verdict

__all__ = ["Levels", "Weighing"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

PILOT = 5  # labels per group before the first plan
EPOCH = 1.2  # labels grow by this factor between two plans
HALVINGS = 3  # how often a cell of the pursued set may be halved at one plan
AIM = 1.08  # … and between two looks at where the bets should point
SLACK = 1.1  # a group may run this far ahead of its share while another is waited for


@dataclass(frozen=True)
class Levels:
    """The error probability that evidence may use against each wrong answer."""

    wrong_fair: float
    wrong_unfair: float


class Weighing:
    """Evidence for both verdicts, label by label.

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
        Width of the first cells, in epsilons.
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
    ) -> None:
        k = len(reachable)
        self._gamma, self._epsilon, self._levels, self._fineness = gamma, epsilon, levels, fineness
        self._feature_costs, self._label_costs = feature_costs, label_costs
        self._reachable = reachable
        self.ones, self.zeros, self.unknown = np.zeros(k), np.zeros(k), np.zeros(k)
        self.shares = reachable / max(reachable.sum(), 1)
        self._pursues_fair: bool | None = None
        self.verdict: Verdict | None = None
        self._aims_with = np.maximum(self.shares, 1e-3)
        gap = gamma + epsilon
        ordered = unfair_pairs(against_unfair)
        self.unfair_set = Staircase(
            ordered,
            UnfairCorners(gap),
            fair_sizes(gap, epsilon),
            epsilon,
            np.full(len(ordered), 1.0 / levels.wrong_fair),
            self._aims_with,
            fineness=fineness,
        )
        self._fair_pairs = fair_pairs(against_fair)
        # Which pair of many to watch is chosen after the pilot; labels count against it from then.
        self.fair_set = self._open_fair_set() if len(self._fair_pairs) == 1 else None
        self._next_plan = PILOT * max(int(reachable.sum()), 1)
        self._next_aim = self._next_plan

    # -- counting -------------------------------------------------------------------------------

    def count(self, group: int, outcome: int | None) -> Verdict | None:
        """Count the next label in request order; None is one that will never be known."""
        if outcome is None:
            self.unknown[group] += 1
        else:
            (self.ones if outcome else self.zeros)[group] += 1
        self.unfair_set.update(group, outcome)
        if self.fair_set is not None:
            self.fair_set.update(group, outcome)
        self.verdict = self._decide()
        if self.verdict is None:
            self._keep_up()
        return self.verdict

    def count_block(self, groups: Ints, outcomes: Ints) -> int:
        """Count labels as :meth:`count` would one by one; return how many until a verdict, or all.

        The bets must stand for all of them: at most :attr:`labels_until_change` at a time. After a
        verdict the staircases are not to be used: they have seen the whole block.
        """
        taken = len(groups)
        if taken > self.labels_until_change:
            raise ValueError(f"{taken} labels at once; at most {self.labels_until_change} now")
        at_fair = self.unfair_set.update_block(groups, outcomes).max()
        at_unfair = (
            self.fair_set.update_block(groups, outcomes).min() if self.fair_set else taken + 1
        )
        if min(at_fair, at_unfair) <= taken:
            taken = int(min(at_fair, at_unfair))
            self.verdict = Verdict.FAIR if at_fair <= at_unfair else Verdict.UNFAIR
        self.ones += np.bincount(groups[:taken], outcomes[:taken], len(self.ones))
        self.zeros += np.bincount(groups[:taken], 1 - outcomes[:taken], len(self.zeros))
        if self.verdict is None:
            self._keep_up()
        return taken

    def verdict_with(self, ones: Array, zeros: Array, unknown: Array) -> Verdict | None:
        """Return the verdict that further labels would bring, however the unknown ones turn out."""
        if self.unfair_set.refuted_with(ones, zeros, unknown).all():
            return Verdict.FAIR
        if self.fair_set is not None and self.fair_set.refuted_with(ones, zeros, unknown).any():
            return Verdict.UNFAIR
        return None

    @property
    def labels_until_change(self) -> int:
        """How many further labels will meet the bets as they stand now."""
        return int(min(self._next_plan, self._next_aim) - self.counts.sum())

    def is_hopeless(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that their bands are wider than epsilon.
        """
        gap = self._gamma + self._epsilon
        if not any(
            pair.unfair_below(low[[pair.b]], gap).at[0] >= high[pair.a]
            for pair in self.unfair_set.pairs
        ):
            return False
        return all(
            pair.fair_from(high[[pair.b]], self._gamma).at[0] <= low[pair.a]
            and pair.fair_to(low[[pair.b]], self._gamma).at[0] >= high[pair.a]
            for pair in self._fair_pairs
        )

    def eligible(self, requested: Array) -> NDArray[np.bool_]:
        """Say of which groups a label is welcome, given the labels requested so far."""
        bound = SLACK * self.shares * (requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (requested <= bound))

    def choose(self, arrivals: Array, count: int, rng: np.random.Generator) -> Ints:
        """Return whose labels come next, people of the groups arriving at these rates.

        It equals passing over people until one is welcome. Fewer come back, or none, when nobody
        who is welcome arrives. The shares must stand for all of them, and no label be out.
        """
        rates, pace = arrivals.tolist(), (SLACK * self.shares).tolist()
        reachable, requested = self._reachable.tolist(), self.counts.tolist()
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
    def counts(self) -> Array:
        """Labels counted per group."""
        return np.asarray(self.ones + self.zeros + self.unknown)

    @property
    def estimates(self) -> Array:
        """Estimates of r per group, kept off 0 and 1."""
        return np.asarray((self.ones + 0.5) / (self.ones + self.zeros + 1.0))

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation()
        if plan.speed <= 0.0:
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        return np.asarray(shares / plan.speed / (shares * self._costs()).sum())

    # -- inside ---------------------------------------------------------------------------------

    def _decide(self) -> Verdict | None:
        if self.unfair_set.refuted.all():
            return Verdict.FAIR
        if self.fair_set is not None and self.fair_set.refuted.any():
            return Verdict.UNFAIR
        return None

    def _keep_up(self) -> None:
        """Plan or aim anew when enough labels have come since the last time."""
        counted = self.counts.sum()
        if counted >= self._next_plan:
            self._plan()
            self._next_plan = int(np.ceil(EPOCH * counted))
        elif counted >= self._next_aim:
            self._aim()
        else:
            return
        self._next_aim = int(np.ceil(AIM * counted))

    def _plan(self) -> None:
        if self.fair_set is None:
            self.fair_set = self._open_fair_set()
        plan = self._allocation(doubt=True)
        self._pursues_fair = plan.pursues_fair
        shares = np.where(self._reachable, plan.shares, 0.0)
        self.shares = shares / max(shares.sum(), 1e-300)
        self._aims_with = np.maximum(self.shares, 1e-3)
        for staircase in (self.unfair_set, self.fair_set):
            pursued = (staircase is self.unfair_set) == plan.pursues_fair
            levels = HALVINGS if pursued else 0
            staircase.refine(self.estimates, self.counts, self._aims_with, levels)

    def _aim(self) -> None:
        self.unfair_set.aim(self.estimates, self.counts)
        if self.fair_set is not None:
            self.fair_set.aim(self.estimates, self.counts)

    def _allocation(self, *, doubt: bool = False) -> Allocation:
        sets = self.unfair_set, self.fair_set or self._open_fair_set()
        unfair, fair = (each.standing(self.estimates) for each in sets)
        if doubt:
            unfair, fair = unfair.doubted(self.counts), fair.doubted(self.counts)
        return allocate(unfair, fair, self._costs(), was_fair=self._pursues_fair)

    def _costs(self) -> Array:
        costs = self._feature_costs + self._label_costs * (1.0 - self.estimates)
        return np.asarray(np.maximum(costs, 1e-9) if costs.max() > 0.0 else np.ones_like(costs))

    def _open_fair_set(self) -> Staircase:
        weights = pair_weights(self._fair_pairs, self.ones, self.zeros)
        return Staircase(
            self._fair_pairs,
            FairCorners(self._gamma),
            UNFAIR_SIZES,
            self._epsilon,
            1.0 / (self._levels.wrong_unfair * weights),
            self._aims_with,
            halves=2,
            fineness=self._fineness,
        )
