"""Both wrong answers weighed against the labels so far, in request order.

One object holds all that an audit's statistics are: cells with stakes, what was requested and told,
and the plan of whom to label next. It knows groups by their position, people by the number of their
request, and nothing of tickets or money.

What is requested is an observation, most simply a label: a coin (`evidence/observation.py`). Counts
are in coins: an observation adds what it is worth.

Whatever is staked on a request is fixed when the request is made. Cells and bets follow from the
past data and the question; how stakes are divided among pairs of groups (three and more), and how
large bets on observations other than coins are, may follow what was told before the request. So
nobody who decides later which labels are told, withheld or withdrawn chooses among bets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.allocation import Allocation, Outlook, allocate, information
from equipoise.evidence.directions import likely_extremes
from equipoise.evidence.observation import COIN, COIN_ENDS, Observation, Sized, Sizer, Sizing
from equipoise.evidence.staircase import OUT, Block, Division, Kind, Staircase, Stretch
from equipoise.evidence.wrong_answers import WrongAnswers
from equipoise.question import Verdict

__all__ = ["Counted", "Weighing"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

PILOT = 5  # labels per group before the first plan
EPOCH = 1.2  # labels grow by this factor between two plans
SLACK = 1.1  # a group may run this far ahead of its share while another is waited for
PART = 0.2  # of a stake is divided anew at a plan, where there are pairs to divide it among
_AT_ONCE = 250  # labels are weighed together; between two such lots refuted cells are dropped
_LOOKED_AT = 1000  # cells of a set that a plan looks at
_LOST = 1e-20  # evidence that will hardly recover
_COPIED = (
    *("_groups", "_outcomes", "_ends", "_divisions", "_sizings"),
    *("ones", "zeros", "requested"),
)


@dataclass(frozen=True)
class Counted:
    """What is counted of one group: coins by outcome, and observations that bets were sized for.

    ``mean`` is the mean of all that are known, by what they are worth.
    """

    ones: float
    zeros: float
    unknown: float
    sized: tuple[Sized, ...]
    mean: float | None


class Weighing:
    """Evidence for both verdicts, request by request.

    Parameters
    ----------
    wrong
        The wrong answers to refute.
    feature_costs, label_costs
        Prices per group.
    reachable
        Which groups have denied people to label.
    sizer
        Says at every plan how bets on observations are sized; None if all of them are coins.
    """

    def __init__(
        self,
        wrong: WrongAnswers,
        feature_costs: Array,
        label_costs: Array,
        reachable: NDArray[np.bool_],
        *,
        sizer: Sizer | None = None,
    ) -> None:
        k = len(reachable)
        self._wrong = wrong
        self._feature_costs, self._label_costs = feature_costs, label_costs
        self._reachable = reachable
        self._groups: list[int] = []  # of all requests, in order
        self._outcomes: list[int | None] = []  # None: neither told nor withdrawn yet
        self._ends: list[tuple[float, float]] = []  # Z of each for the outcomes 0 and 1
        self._divisions: dict[
            int, list[Division]
        ] = {}  # per cover of the FAIR set, from a request on
        self._sizings: dict[int, list[Sizing | None]] = {0: [None] * k}  # from a request on
        self._sizer = sizer
        self.ones, self.zeros = np.zeros(k), np.zeros(k)  # told, in whatever order
        self.requested = np.zeros(k)
        self.shares = reachable / max(reachable.sum(), 1)
        self._held_until = 0  # no verdict at a label before
        self._pursues_fair: bool | None = None
        self._next_plan = PILOT * max(int(reachable.sum()), 1)
        self._start()

    def _start(self) -> None:
        """Begin to count."""
        self.counted = 0
        self._weighed = 0  # labels whose factors are in the stakes
        self.verdict: Verdict | None = None
        self.unfair_set, self.fair_set = self._wrong.first_stakes()

    # -- requests and answers -------------------------------------------------------------------

    def request(self, group: int, observation: Observation = COIN) -> int:
        """Note that a person is observed; return the request's number.

        Whoever is not asked for the label is settled at once, and weighed with the next label.
        """
        sizing = self.sizings[group]
        ends = COIN_ENDS if observation is COIN else observation.ends
        if not (ends == COIN_ENDS if sizing is None else sizing.covers(ends)):
            raise ValueError(f"{observation} leaves the range that was declared: {sizing}")
        self._groups.append(group)
        self._ends.append(ends)
        self.requested[group] += 1.0 if sizing is None else sizing.worth
        number = len(self._groups) - 1
        self._outcomes.append(None)
        if not observation.asked:
            self.note(number, 0)
        return number

    def tell(self, number: int, outcome: int) -> Verdict | None:
        """Take in a request's outcome, OUT for one that will never be known; weigh what can be."""
        self.note(number, outcome)
        return self.go_on()

    def correct(self, number: int, outcome: int) -> Verdict | None:
        """Replace an outcome that was told, or withdrawn: its own factor changes, nothing else."""
        self.note(number, outcome)
        return self.weigh()

    def note(self, number: int, outcome: int) -> None:
        """Take in an outcome, the first or another one, and leave it to others to weigh it."""
        old = self._outcomes[number]
        self._outcomes[number] = outcome
        self._hear(number, outcome, +1)
        if old is not None:
            self._hear(number, old, -1)
            if number < self.counted or self.verdict is not None:
                self._start()

    def weigh(self) -> Verdict | None:
        """Weigh what was noted."""
        if self.verdict is None:
            self._count_settled()
        if self.verdict is None and None in self._outcomes[self.counted :]:
            self._look_ahead()
        return self.verdict

    def go_on(self) -> Verdict | None:
        """Weigh what was noted, and plan anew where enough was told since the last plan."""
        self.weigh()
        self._keep_up()
        return self.verdict

    def hold(self) -> None:
        """Take the verdict back for now: it is given again at the next label that is counted."""
        held = self.counted
        if self._weighed > held:  # a block went on beyond the label that decided
            self._start()
            self._held_until = held
            self._count_settled(held)
        self._held_until, self.verdict = held, None

    def outcome(self, number: int) -> int | None:
        """Return a request's outcome, OUT if it was withdrawn, None if it is to come."""
        return self._outcomes[number]

    def count(self, group: int, outcome: int) -> Verdict | None:
        """Request a label that is told at once."""
        return self.tell(self.request(group), outcome)

    def count_block(self, groups: Ints, outcomes: Ints, ends: Array | None = None) -> int:
        """Request observations that are told at once; return how many until a verdict, or all.

        It equals :meth:`count` one by one. At most what :attr:`labels_until_change` coins are
        worth at a time, with no label out. ``ends`` has Z of each for the outcomes 0 and 1, shape
        (n, 2); coins if left out.
        """
        taken, k = len(groups), len(self.ones)
        worths = self.worths[groups]
        too_many = worths[:-1].sum() >= self.labels_until_change
        if too_many or None in self._outcomes[self.counted :]:
            raise ValueError(
                f"{taken} labels at once; at most {self.labels_until_change:g} now, and none out"
            )
        before = len(self._groups)
        self._groups.extend(groups.tolist())
        self._outcomes.extend(outcomes.tolist())
        if ends is None:
            self._ends.extend([COIN_ENDS] * taken)
            ends = np.tile(COIN_ENDS, (taken, 1))
        else:
            self._ends.extend(map(tuple, ends.tolist()))
        self._count_settled()
        if self.verdict is not None:
            taken = self.counted - before
            for log in (self._groups, self._outcomes, self._ends):
                del log[self.counted :]
        groups, worths = groups[:taken], worths[:taken]
        z = np.where(outcomes == 1, ends[:, 1], ends[:, 0])[:taken]
        self.requested += np.bincount(groups, worths, minlength=k)
        self.ones += np.bincount(groups, worths * z, k)
        self.zeros += np.bincount(groups, worths * (1.0 - z), k)
        if taken and ends[taken - 1, 0] != ends[taken - 1, 1]:  # plans change after labels
            self._keep_up()
        return taken

    @property
    def labels_until_change(self) -> float:
        """How many coins, at least one observation, will come by the plan as it stands now."""
        return max(float(self._next_plan - self.told.sum()), 1e-9)

    # -- whom to label --------------------------------------------------------------------------

    def eligible(self) -> NDArray[np.bool_]:
        """Say of which groups a label is welcome, given the labels requested so far."""
        bound = SLACK * self.shares * (self.requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (self.requested <= bound))

    def choose(self, arrivals: Array, count: float, rng: np.random.Generator) -> Ints:
        """Return who is observed next, people of the groups arriving at these rates.

        They are worth ``count`` coins together. It equals passing over people until one is welcome.
        Fewer come back, or none, when nobody who is welcome arrives. The shares must stand for all
        of them, and no label be out.
        """
        rates, pace = arrivals.tolist(), (SLACK * self.shares).tolist()
        reachable, requested = self._reachable.tolist(), self.requested.tolist()
        total, groups, worths = sum(requested), range(len(rates)), self.worths.tolist()
        chosen, goal = [], total + count * (1.0 - 1e-9)
        for draw in rng.random(int(np.ceil(count / min(worths)))).tolist():
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
            requested[group] += worths[group]
            total += worths[group]
            if total >= goal:
                break
        return np.array(chosen, dtype=np.intp)

    # -- where it stands ------------------------------------------------------------------------

    @property
    def told(self) -> Array:
        """Outcomes known per group."""
        return np.asarray(self.ones + self.zeros)

    @property
    def next_number(self) -> int:
        """The number that the next request will have."""
        return len(self._groups)

    @property
    def sizings(self) -> list[Sizing | None]:
        """How bets on each group are sized from now on; None: its observations are coins."""
        return self._sizings[next(reversed(self._sizings))]

    @property
    def takes_coins_only(self) -> bool:
        """Whether every observation is a label, none shifted or weighted by a score."""
        return self._sizer is None

    @property
    def worths(self) -> Array:
        """What the next observation of each group is worth, in coins."""
        return np.array([1.0 if s is None else s.worth for s in self.sizings])

    @property
    def estimates(self) -> Array:
        """Estimates of r per group, kept off 0 and 1."""
        edge = np.minimum(0.5 / (self.told + 1.0), 0.02)
        return np.clip((self.ones + 0.5) / (self.told + 1.0), edge, 1.0 - edge)

    def means(self) -> tuple[Array, Array]:
        """Return each group's mean if all outcomes unknown so far are 0, and if they are 1.

        By what observations are worth, kept within 0 and 1; these of a group without any.
        """
        low, high, weight = self.ones.copy(), self.ones.copy(), self.told
        for number, outcome in enumerate(self._outcomes):
            if outcome is None or outcome == OUT:
                group, worth = self._groups[number], self._worth_of(number)
                zero, one = self._ends[number]
                low[group] += worth * zero
                high[group] += worth * one
                weight[group] += worth
        none, weight = weight <= 0.0, np.maximum(weight, 1e-300)
        return (
            np.where(none, 0.0, np.clip(low / weight, 0.0, 1.0)),
            np.where(none, 1.0, np.clip(high / weight, 0.0, 1.0)),
        )

    def counted_of(self, group: int) -> Counted:
        """Return what is counted of a group."""
        coins, sized, total, weight = np.zeros(3), [], 0.0, 0.0
        whole = [(0, self.counted)] if self.counted else []
        for start, stop in whole if self.takes_coins_only else self._stretches(0, self.counted):
            block, sizing = self._block(start, stop), self._sizings_at(start)[group]
            own = block.groups == group
            low, high = block.low[own], block.high[own]
            known, worth = low == high, 1.0 if sizing is None else sizing.worth
            total += worth * low[known].sum()
            weight += worth * known.sum()
            if sizing is None:
                coins += (low[known] == 1.0).sum(), (low[known] == 0.0).sum(), (~known).sum()
            elif own.any():
                sized.append(Sized(sizing, low, high))
        ones, zeros, unknown = coins.tolist()
        return Counted(ones, zeros, unknown, tuple(sized), total / weight if weight else None)

    def is_hopeless(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that their bands are about as wide as epsilon. Nor
        does any label decide once all bets against some cell of either answer are lost.
        """
        if min(s.least for s in self.unfair_set) < _LOST > max(s.least for s in self.fair_set):
            return True
        return self._wrong.both_allowed(low, high)

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation()
        if plan.speed <= 0.0 or self.is_hopeless(self.estimates, self.estimates):
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        per_coin = np.array([1.0 if s is None else s.asked / s.worth for s in self.sizings])
        return np.asarray(per_coin * shares / plan.speed / (shares * self._costs()).sum())

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
        other = object.__new__(Weighing)
        vars(other).update(vars(self))
        vars(other).update({name: copy(getattr(self, name)) for name in _COPIED})
        other.unfair_set, other.fair_set, other._sizer = deepcopy(
            (self.unfair_set, self.fair_set, self._sizer), memo
        )
        return other

    # -- counting -------------------------------------------------------------------------------

    def _hear(self, number: int, outcome: int, sign: int) -> None:
        if outcome != OUT:
            group, z = self._groups[number], self._ends[number][outcome]
            weight = sign * self._worth_of(number)
            self.ones[group] += weight * z
            self.zeros[group] += weight * (1.0 - z)

    def _count_settled(self, most: int | None = None) -> None:
        """Count observations in request order, up to the last label before the first out.

        ``most``: those before this request only.
        """
        end = last = self.counted
        limit = len(self._outcomes) if most is None else most
        while end < limit and self._outcomes[end] is not None:
            end += 1
            if self._is_label(end - 1):
                last = end
        for start, stop in self._stretches(self.counted, last):
            for staircase, division in zip(
                self.fair_set, self._divisions.get(start, ()), strict=False
            ):
                staircase.divide(division)
            for staircase in (*self.unfair_set, *self.fair_set):
                staircase.size(self._sizings_at(start))
            step = _AT_ONCE if self.takes_coins_only else stop - start
            for at in range(start, stop, step):
                self.counted += self._weigh(at, min(at + step, stop))
                if self.verdict is not None:
                    return

    def _weigh(self, start: int, stop: int) -> int:
        """Weigh observations one after the other; return how many until a verdict, or all."""
        n, self._weighed = stop - start, stop
        if n == 1 and self._is_label(start):
            kind = self._kind(start)
            for staircase in (*self.unfair_set, *self.fair_set):
                staircase.update(kind)
            at_fair = 1 if all(s.refuted for s in self.unfair_set) else 2
            at_unfair = 1 if any(s.refuted for s in self.fair_set) else 2
        else:
            block = self._block(start, stop)
            at_fair = max(s.update_block(block) for s in self.unfair_set)
            at_unfair = min(s.update_block(block) for s in self.fair_set)
        # noticed at the first label, if not before, and never while it was held back
        first = max(1, min(at_fair, at_unfair), self._held_until - start + 1)
        if first <= n:
            self.verdict = Verdict.FAIR if at_fair <= at_unfair else Verdict.UNFAIR
        return min(first, n)

    def _look_ahead(self) -> None:
        """Decide if all requests so far do, however those that are out turn out.

        What each of them meets is fixed already, so this is no second chance.
        """
        stretches, divisions = [], []
        for start, stop in self._stretches(self.counted, len(self._groups)):
            counts = Counter(self._kind(n) for n in range(start, stop))
            stretches.append(Stretch(None, self._sizings_at(start), counts))
            divisions.append(self._divisions.get(start))
        if all(s.refuted_with(stretches) for s in self.unfair_set):
            self.verdict = Verdict.FAIR
        elif any(
            s.refuted_with(
                [
                    replace(stretch, division=d[i] if d else None)
                    for stretch, d in zip(stretches, divisions, strict=True)
                ]
            )
            for i, s in enumerate(self.fair_set)
        ):
            self.verdict = Verdict.UNFAIR

    def _stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield stretches of requests within which no stake is divided and no bet sized."""
        changes = sorted({*self._divisions, *self._sizings})
        cuts = [start, *(at for at in changes if start < at < end), end]
        yield from ((i, j) for i, j in pairwise(cuts) if i < j)

    def _sizings_at(self, number: int) -> list[Sizing | None]:
        starts = list(self._sizings)
        return self._sizings[starts[bisect_right(starts, number) - 1]]

    def _worth_of(self, number: int) -> float:
        sizing = self._sizings_at(number)[self._groups[number]]
        return 1.0 if sizing is None else sizing.worth

    def _is_label(self, number: int) -> bool:
        zero, one = self._ends[number]
        return zero != one

    def _open_ends(self, number: int) -> tuple[float, float]:
        """Return Z at its least and at its most, as far as its outcome is open."""
        outcome, ends = self._outcomes[number], self._ends[number]
        return ends if outcome in (None, OUT) else (ends[outcome], ends[outcome])

    def _kind(self, number: int) -> Kind:
        return self._groups[number], *self._open_ends(number)

    def _block(self, start: int, stop: int) -> Block:
        groups, outcomes = np.array(self._groups[start:stop]), np.array(self._outcomes[start:stop])
        if self.takes_coins_only:
            zero, one = np.zeros(len(groups)), np.ones(len(groups))
        else:
            zero, one = np.array(self._ends[start:stop]).T
        return Block(
            groups,
            low=np.where(outcomes == 1, one, zero),
            high=np.where(outcomes == 0, zero, one),
            labelled=zero != one,
        )

    # -- planning -------------------------------------------------------------------------------

    def _keep_up(self) -> None:
        """Plan anew when enough labels have been told since the last time."""
        told = self.told.sum()
        if self.verdict is None and told >= self._next_plan:
            self._next_plan = int(np.ceil(EPOCH * told))
            if self._sizer is not None:
                self._sizings[len(self._groups)] = self._sizer.sizings()
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
                likely_extremes(
                    [band.low for band in bands],
                    np.maximum(self.ones, 0.0),
                    np.maximum(self.zeros, 0.0),
                ),
            )
            for _, bands in self._wrong.rates
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
        sized = np.array([sizing is not None for sizing in self.sizings])
        outlook = Outlook(information(low, high, self.estimates, sized), missing)
        return outlook.doubted(self.told) if doubt else outlook

    def _costs(self) -> Array:
        costs = self._feature_costs + self._label_costs * (1.0 - self.estimates)
        prices = [None if s is None else s.price for s in self.sizings]
        costs = np.array([c if p is None else p for c, p in zip(costs, prices, strict=True)])
        return np.asarray(np.maximum(costs, 1e-9) if costs.max() > 0.0 else np.ones_like(costs))
