"""Evidence for both verdicts, request by request.

One object holds all that an audit's statistics are: what was requested and told, which null cells
still stand, and the plan of whom to label next. It knows groups by their position, people by the
number of their request, and nothing of tickets or money.

Bets are fixed, so the evidence against a cell is a function of counts: of labels that are 0, that
are 1, and that are unknown because they are pending or were withdrawn (these count with the smaller
of their factors). A cell is refuted if this function, of what is known now, reaches the bar over
all requests so far, or over those up to the end of an earlier epoch (since the last file of random
accepts came). Epochs end at plans, and whenever requests have grown by a fiftieth. Each of these
values is at most that of all true outcomes, which is one supermartingale in request order; so it
does not matter who decides which outcomes are told, or when.

Where scores assist, bets are sized anew at every plan. The sizes stand for all requests of the
epoch, whenever their outcomes come, and follow from what was told before it began.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.allocation import Allocation, Outlook, allocate, information
from equipoise.evidence.null_cells import Cells, NullCells, WrongAnswers, evidence
from equipoise.evidence.observation import LABEL, Ends, Sized, Sizer, Sizing
from equipoise.question import Verdict

__all__ = ["UNKNOWN", "Evidence", "GroupSample"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

UNKNOWN = -1
"""In place of an outcome that will never be known; in counts, the last of three columns."""

PILOT = 5  # labels per group before the first plan
REPLAN = 1.2  # labels grow by this factor between two plans
EPOCH = 1.02  # requests grow by this factor in an epoch, if no plan ends it before
SLACK = 1.1  # a group may run this far ahead of its share while another is waited for
_SAMPLE = (1000, 125)  # cells of a piece that a plan looks at: with two groups, with more
_LOST = 1e-20  # evidence that will hardly recover
_SHORTEST = 10  # requests of an epoch at least
_NEVER = 2**60
_AT_ONCE = 1_000_000  # numbers to work on at a time


@dataclass(frozen=True)
class GroupSample:
    """What is settled of one group: labels by outcome, and observations that bets were sized for.

    ``mean`` is the mean of all that are known, in label equivalents.
    """

    ones: float
    zeros: float
    unknown: float
    sized: tuple[Sized, ...]
    mean: float | None


@dataclass
class Epoch:
    """Requests between two plans, or fewer: the first one's number, and how bets are sized.

    ``counts`` has their labels that are 0, 1 and unknown per group, shape (groups, 3); observations
    that bets are sized for are not among them.
    """

    start: int
    sizings: list[Sizing | None]
    counts: Array


@dataclass(frozen=True)
class Looks:
    """Moments at which the evidence is looked at: what is counted by each.

    ``counts`` has shape (looks, groups, 3); ``sized`` has per group the observations of the current
    epoch that bets are sized for, and how many of them there are by each look.
    """

    counts: Array
    sized: tuple[tuple[int, Sized, Ints], ...] = ()

    def __len__(self) -> int:
        return len(self.counts)

    def some(self, which: Ints) -> Looks:
        """Return some of the looks."""
        sized = tuple((group, people, by[which]) for group, people, by in self.sized)
        return Looks(self.counts[which], sized)


@dataclass
class Refutation:
    """How far one wrong answer is refuted.

    Every cover holds the whole wrong answer. It is refuted when the least evidence against a cell
    that stands, summed over the covers, reaches the bar (their number over the error level): if it
    were true, the evidence against its cell in each cover would add up to that.

    ``standing`` has the cells of each cover that were not refuted by the end of an epoch,
    ``hardest`` the one that ended the last look, ``sized`` the log gain of bets from sized
    observations of past epochs.
    """

    covers: tuple[NullCells, ...]
    bar: float
    standing: list[Ints] = field(default_factory=list)
    hardest: list[int | None] = field(default_factory=list)
    sized: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standing = [np.arange(len(cells)) for cells in self.covers]
        self.hardest = [None] * len(self.covers)

    def keep(self, cover: int, which: NDArray[np.bool_]) -> None:
        """Keep some of the cells that stand."""
        self.standing[cover] = self.standing[cover][which]
        if self.hardest[cover] not in self.standing[cover]:
            self.hardest[cover] = None


class Evidence:
    """Evidence for both verdicts, and the plan of whom to label next.

    Parameters
    ----------
    wrong
        The wrong answers to refute.
    feature_costs, label_costs
        Prices per group.
    reachable
        Which groups have denied people to label.
    sizer
        Says at every plan how bets on observations are sized; None if all of them are labels.
    random_accepts
        Labels that a test programme brought before the first request: per group those that are 0,
        1 and unknown. They are one block, looked at once: no bet rests on any of them.
    """

    def __init__(
        self,
        wrong: WrongAnswers,
        feature_costs: Array,
        label_costs: Array,
        reachable: NDArray[np.bool_],
        *,
        sizer: Sizer | None = None,
        random_accepts: Array | None = None,
    ) -> None:
        k = len(reachable)
        self._wrong = wrong
        self._feature_costs, self._label_costs = feature_costs, label_costs
        self._reachable, self._sizer = reachable, sizer
        self._groups: list[int] = []  # of all requests, in order
        self._outcomes: list[int | None] = []  # None: neither told nor withdrawn yet
        self._ends: list[Ends] = []  # Z of each for the outcomes 0 and 1, where scores assist
        self._settled = 0  # requests before the first that is pending
        self.random_accepts = np.zeros((k, 3))
        self._filed_in = 0  # the epoch in which the last file of random accepts came
        self._total = np.zeros((k, 3))  # counts of all epochs
        self._epochs: list[Epoch] = []
        self._begin_epoch([None] * k)
        self.ones, self.zeros = np.zeros(k), np.zeros(k)  # told, in label equivalents
        self.told_in_all = 0.0  # the sum of both
        self.requested = np.zeros(k)
        self.shares = reachable / max(reachable.sum(), 1)
        self.verdict: Verdict | None = None
        self._pursues_fair: bool | None = None
        self._next_plan = PILOT * max(int(reachable.sum()), 1)
        self._start()
        if random_accepts is not None:
            self.set_random_accepts(random_accepts)

    def _start(self) -> None:
        """Let all cells stand, whatever was recorded."""
        unfair, fair = self._wrong.unfair_covers(), self._wrong.fair_covers()
        self._against_unfair = Refutation(unfair, len(unfair) / self._wrong.level_fair)
        self._against_fair = Refutation(fair, len(fair) / self._wrong.level_unfair)
        self._stale = 0 if len(self._epochs) > 1 else None
        self._epoch_ended = False  # since the cells that stand were settled

    def __getstate__(self) -> dict[str, object]:
        """Leave out what follows from the rest."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_against")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._start()

    # -- requests and answers -------------------------------------------------------------------

    def request(self, group: int, ends: Ends = LABEL) -> int:
        """Record that a person is observed; return the request's number.

        Whoever is not asked for the label is settled at once, and counts at the next look.
        """
        self._end_epoch_if_due()
        sizing, number = self._epochs[-1].sizings[group], len(self._groups)
        if not (ends == LABEL if sizing is None else sizing.covers(ends)):
            raise ValueError(f"{ends} leaves the range that was declared: {sizing}")
        self._groups.append(group)
        self._outcomes.append(None)
        if sizing is None:
            self._epochs[-1].counts[group, UNKNOWN] += 1
            self._total[group, UNKNOWN] += 1
        if self._sizer is not None:
            self._ends.append(ends)
        self.requested[group] += 1.0 if sizing is None else sizing.label_equivalents
        if ends[0] == ends[1]:
            self.record(number, 0)
        return number

    def record(self, number: int, outcome: int) -> None:
        """Take in an outcome, the first or another one; UNKNOWN for one that will never be known.

        What follows from it is left to :meth:`advance`.
        """
        is_new = self._outcomes[number] is None
        self._put(number, outcome)
        if is_new:
            self._skip_settled()
        else:
            self._forget()

    def _put(self, number: int, outcome: int | None) -> None:
        """Count an outcome in the place of the one before."""
        old, group = self._outcomes[number], self._groups[number]
        self._outcomes[number] = outcome
        at = self._epoch_of(number)
        sizing = self._epochs[at].sizings[group]
        if sizing is None:
            for counts in (self._epochs[at].counts, self._total):
                counts[group, UNKNOWN if old is None else old] -= 1
                counts[group, UNKNOWN if outcome is None else outcome] += 1
        self._add(number, sizing, outcome, +1)
        self._add(number, sizing, old, -1)
        if at < len(self._epochs) - 1:
            self._stale = at if self._stale is None else min(self._stale, at)

    def answers_to_verdict(self, answers: Sequence[tuple[int, int]]) -> int:
        """Return after how many answers to pending requests a verdict would stand; else one more.

        An answer never lowers the evidence, so the first that decides is found by bisection.
        Nothing is recorded. Of a single answer it is not asked: it is as well to look at it.
        """
        if self.verdict is not None or len(answers) < 2:
            return 1
        told, taken = (self.ones.copy(), self.zeros.copy(), self.told_in_all), 0

        def decided(count: int) -> bool:
            nonlocal taken
            for number, outcome in answers[taken:count]:
                self._put(number, outcome)
            for number, _ in answers[count:taken]:
                self._put(number, None)
            if count < taken:
                self._forget()
            taken = count
            return self._look(self._now()) == 0

        every = range(1, len(answers) + 1)
        needed = bisect_left(every, True, key=decided) + 1 if decided(len(answers)) else every.stop
        decided(0)
        self.ones, self.zeros, self.told_in_all = told
        self._forget()
        return needed

    def record_block(self, groups: Ints, outcomes: Ints, ends: Array | None = None) -> int:
        """Request observations that are told at once; return how many until a verdict, or all.

        It equals request, record and advance one by one: the evidence is looked at after each
        label, by cumulative counts. At most :attr:`labels_until_plan` label equivalents at a time.
        ``ends`` has Z of each for the outcomes 0 and 1, shape (n, 2); labels if left out.
        """
        equivalents = self.label_equivalents[groups]
        if equivalents[:-1].sum() >= self.labels_until_plan:
            raise ValueError(f"{len(groups)} labels; at most {self.labels_until_plan:g} now")
        ends = np.tile(LABEL, (len(groups), 1)) if ends is None else ends
        taken = 0
        while taken < len(groups) and self.verdict is None:
            self._end_epoch_if_due()
            part = slice(taken, taken + self._next_epoch - self.requests)
            taken += self._record_part(groups[part], outcomes[part], ends[part])
        return taken

    def _record_part(self, groups: Ints, outcomes: Ints, ends: Array) -> int:
        equivalents = self.label_equivalents[groups]
        asked = np.flatnonzero(ends[:, 0] != ends[:, 1])
        z = np.where(outcomes == 1, ends[:, 1], ends[:, 0])
        plain = np.array([sizing is None for sizing in self.sizings])[groups]
        path = np.zeros((len(groups), *self._total.shape))
        path[plain, groups[plain], outcomes[plain]] = 1.0
        looks = Looks(self._total + path.cumsum(axis=0), self._sized_by(groups, z)).some(asked)
        taken = self._look(looks)
        taken = len(groups) if taken == len(asked) else int(asked[taken]) + 1
        kept = slice(taken)
        counts = path[kept].sum(axis=0)
        self._epochs[-1].counts += counts
        self._total += counts
        self._groups.extend(groups[kept].tolist())
        self._outcomes.extend(outcomes[kept].tolist())
        if self._sizer is not None:
            self._ends.extend(map(tuple, ends[kept].tolist()))
        if self._settled + taken == len(self._groups):
            self._settled = len(self._groups)
        k, weight = len(self.ones), equivalents[kept]
        self.requested += np.bincount(groups[kept], weight, k)
        self.ones += np.bincount(groups[kept], weight * z[kept], k)
        self.zeros += np.bincount(groups[kept], weight * (1.0 - z[kept]), k)
        self.told_in_all += float(weight.sum())
        if taken and taken - 1 in asked[-1:]:  # plans change after labels
            self._replan_if_due()
        return taken

    def record_log(self, groups: Ints, numbers: Ints, outcomes: Ints) -> None:
        """Take in labels that were requested and answers that were told, without a look.

        It equals request and record one by one, in any order in which answers follow their
        requests. What follows from the answers, each the first to its request, is left to
        :meth:`advance`.

        Parameters
        ----------
        groups
            Of the further requests.
        numbers, outcomes
            The answers: the request of each, and what was told; UNKNOWN if it was withdrawn.
        """
        self._outcomes.extend([None] * len(groups))
        while len(groups):
            self._end_epoch_if_due()
            part, groups = np.split(groups, [self._next_epoch - self.requests])
            asked = np.bincount(part, minlength=len(self.ones))
            self._groups.extend(part.tolist())
            self._epochs[-1].counts[:, UNKNOWN] += asked
            self._total[:, UNKNOWN] += asked
            self.requested += asked
        for number, outcome in zip(numbers.tolist(), outcomes.tolist(), strict=True):
            self._outcomes[number] = outcome
        starts = [epoch.start for epoch in self._epochs]
        epochs = np.searchsorted(starts, numbers, side="right") - 1
        owners = np.array([self._groups[number] for number in numbers.tolist()], dtype=np.intp)
        first = int(epochs.min(initial=len(starts) - 1))
        counts = np.zeros((len(starts) - first, *self._total.shape))
        np.add.at(counts, (epochs - first, owners, outcomes), 1.0)
        counts[..., UNKNOWN] -= counts.sum(axis=-1)
        for epoch, more in zip(self._epochs[first:], counts, strict=True):
            epoch.counts += more
        told = counts.sum(axis=0)
        self._total += told
        self.zeros += told[:, 0]
        self.ones += told[:, 1]
        self.told_in_all += float(told[:, :2].sum())
        if first < len(starts) - 1:
            self._stale = first if self._stale is None else min(self._stale, first)
        self._skip_settled()

    def _skip_settled(self) -> None:
        while self._settled < len(self._outcomes) and self._outcomes[self._settled] is not None:
            self._settled += 1

    def _end_epoch_if_due(self) -> None:
        if self.requests >= self._next_epoch:
            self._begin_epoch(self.sizings)
            if self._stale is None:
                self._stale = len(self._epochs) - 2
            self._epoch_ended = True

    def _begin_epoch(self, sizings: list[Sizing | None]) -> None:
        n = self.requests
        self._epochs.append(Epoch(n, sizings, np.zeros_like(self._total)))
        self._next_epoch = n + (
            max(_SHORTEST, int(EPOCH * n) - n) if self._sizer is None else _NEVER
        )

    def advance(self, *, replan: bool = True) -> Verdict | None:
        """Look at the evidence of what is recorded; plan anew where enough was told since."""
        if self.verdict is None:
            self._look(self._now())
        if replan:
            self._replan_if_due()
        return self.verdict

    def set_random_accepts(self, counts: Array) -> None:
        """Put a test programme's labels in the place of those of an earlier look at its file.

        Cells, weights and bets stay those of the first look. Ends of epochs before this file came
        are remembered no longer: its labels were not there yet. What follows is left to
        :meth:`advance`.
        """
        more, self.random_accepts = counts - self.random_accepts, counts
        self._filed_in = len(self._epochs) - 1
        self._epochs[0].counts += more
        self._total += more
        self.zeros += more[:, 0]
        self.ones += more[:, 1]
        self.told_in_all += float(more[:, :2].sum())
        self.requested += more.sum(axis=1)
        self._forget()

    def outcome(self, number: int) -> int | None:
        """Return a request's outcome, UNKNOWN if it was withdrawn, None if it is pending."""
        return self._outcomes[number]

    # -- whom to label --------------------------------------------------------------------------

    @property
    def labels_until_plan(self) -> float:
        """How many labels, at least one observation, will come by the plan as it stands now."""
        return max(self._next_plan - self.told_in_all, 1e-9)

    @property
    def plan_is_due(self) -> bool:
        """Whether enough was told since the last plan."""
        return self.told_in_all >= self._next_plan

    def eligible(self) -> NDArray[np.bool_]:
        """Say of which groups a label is welcome, given the labels requested so far."""
        bound = SLACK * self.shares * (self.requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (self.requested <= bound))

    def choose(self, arrivals: Array, count: float, rng: np.random.Generator) -> Ints:
        """Return who is observed next, people of the groups arriving at these rates.

        They count as ``count`` labels together. It equals passing over people until one is welcome.
        Fewer come back, or none, when nobody who is welcome arrives. The shares must stand for all
        of them, and no label be pending.
        """
        rates, pace = arrivals.tolist(), (SLACK * self.shares).tolist()
        reachable, requested = self._reachable.tolist(), self.requested.tolist()
        total, groups, weight = sum(requested), range(len(rates)), self.label_equivalents.tolist()
        chosen, goal = [], total + count * (1.0 - 1e-9)
        for draw in rng.random(int(np.ceil(count / min(weight)))).tolist():
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
            requested[group] += weight[group]
            total += weight[group]
            if total >= goal:
                break
        return np.array(chosen, dtype=np.intp)

    # -- where it stands ------------------------------------------------------------------------

    @property
    def told(self) -> Array:
        """Outcomes known per group, in label equivalents."""
        return np.asarray(self.ones + self.zeros)

    @property
    def requests(self) -> int:
        """How many requests there are: the number that the next one will have."""
        return len(self._groups)

    @property
    def sizings(self) -> list[Sizing | None]:
        """How bets on each group are sized from now on; None: its observations are labels."""
        return self._epochs[-1].sizings

    @property
    def label_equivalents(self) -> Array:
        """How many labels the next observation of each group counts as."""
        return np.array([1.0 if s is None else s.label_equivalents for s in self.sizings])

    @property
    def estimates(self) -> Array:
        """Estimates of r per group, kept off 0 and 1."""
        edge = np.minimum(0.5 / (self.told + 1.0), 0.02)
        return np.clip((self.ones + 0.5) / (self.told + 1.0), edge, 1.0 - edge)

    def means(self) -> tuple[Array, Array]:
        """Return each group's mean if all outcomes unknown so far are 0, and if they are 1.

        In label equivalents, kept within 0 and 1; these of a group without any.
        """
        unknown = self._total[:, UNKNOWN]
        low, high, weight = self.ones.copy(), self.ones + unknown, self.told + unknown
        for at, epoch in enumerate(self._epochs if self._sizer is not None else []):
            for group, people in self._sized_of(at):
                is_open, own = people.low != people.high, epoch.sizings[group]
                each = 0.0 if own is None else own.label_equivalents
                low[group] += each * people.low[is_open].sum()
                high[group] += each * people.high[is_open].sum()
                weight[group] += each * is_open.sum()
        none, weight = weight <= 0.0, np.maximum(weight, 1e-300)
        return (
            np.where(none, 0.0, np.clip(low / weight, 0.0, 1.0)),
            np.where(none, 1.0, np.clip(high / weight, 0.0, 1.0)),
        )

    def settled(self) -> list[GroupSample]:
        """Return per group what is known of the requests before the first that is pending."""
        k, at = len(self.ones), self._settled
        groups = np.array(self._groups[:at], dtype=np.intp)
        outcomes = np.array(self._outcomes[:at], dtype=np.intp)
        plain = np.ones(at, dtype=bool)
        sized: list[list[Sized]] = [[] for _ in range(k)]
        for e in range(len(self._epochs) if self._sizer is not None else 0):
            start, stop = self._bounds(e)
            for group, people in self._sized_of(e, at):
                sized[group].append(people)
                plain[start:stop] &= groups[start:stop] != group
        counts = self.random_accepts.copy()
        np.add.at(counts, (groups[plain], outcomes[plain]), 1.0)
        return [_sample(own, tuple(people)) for own, people in zip(counts, sized, strict=True)]

    def standing(self) -> tuple[tuple[Array, Array, Array], list[tuple[Array, Array, Array]]]:
        """Return boxes that stand (low, high) and the nats each lacks.

        First those of the UNFAIR set, then those of every cover of the FAIR set.
        """
        (unfair,) = self._lacking(self._against_unfair, self._now())
        return unfair, list(self._lacking(self._against_fair, self._now()))

    def undecidable(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that their bands are about as wide as epsilon. Nor
        does any label decide once all bets against some cell of either answer are lost. A pending
        outcome has lost nothing yet, whatever it counts with until it is told.
        """
        if self._wrong.both_allowed(low, high):
            return True
        pending = [n for n, told in enumerate(self._outcomes[self._settled :]) if told is None]
        if pending and self._sizer is not None:
            return False
        known = self._total.copy()
        for number in pending:
            known[self._groups[self._settled + number], UNKNOWN] -= 1
        look = Looks(known[None], self._sized_by())
        return all(
            (missing > log(against.bar / _LOST)).any()
            for against in (self._against_unfair, self._against_fair)
            for _, _, missing in self._lacking(against, look)
        )

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation()
        if plan.speed <= 0.0 or self.undecidable(self.estimates, self.estimates):
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        per_label = np.array(
            [1.0 if s is None else s.asked / s.label_equivalents for s in self.sizings]
        )
        return np.asarray(per_label * shares / plan.speed / (shares * self._costs()).sum())

    # -- looks ----------------------------------------------------------------------------------

    def _now(self) -> Looks:
        """Return one look, at all that is recorded."""
        return Looks(self._total[None], self._sized_by())

    def _look(self, looks: Looks) -> int:
        """Find the first look that gives a verdict; return its place, or how many there are."""
        if self._epoch_ended:
            self._settle()
        fair = self._first(self._against_unfair, looks)
        unfair = self._first(self._against_fair, looks)
        first = min(fair, unfair)
        if first < len(looks):
            self.verdict = Verdict.FAIR if fair <= unfair else Verdict.UNFAIR
        return first

    def _first(self, against: Refutation, looks: Looks) -> int:
        """Return the first look at which a wrong answer is refuted, or how many there are.

        Most looks end with the cell that ended the last one. Only where this one has enough
        evidence all others are looked at, and the one that has the least is tried next.
        """
        widest = max(cells.log_stake.shape[1] for cells in against.covers)
        step = max(1, _AT_ONCE // widest)
        for start in range(0, len(looks), step):
            due = np.arange(start, min(start + step, len(looks)))
            while len(due):
                total = sum(
                    self._against_hardest(against, c, looks.some(due))
                    for c in range(len(against.covers))
                )
                due = due[total >= against.bar]
                if len(due):
                    self._settle()
                    look = looks.some(due[:1])
                    least = [self._least(against, c, look) for c in range(len(against.covers))]
                    if sum(least) >= against.bar:
                        return int(due[0])
        return len(looks)

    def _against_hardest(self, against: Refutation, cover: int, looks: Looks) -> Array:
        """Return the evidence against a cover's hardest cell; infinite if it was refuted before."""
        cell = against.hardest[cover]
        if cell is None:
            return np.full(len(looks), inf)
        cells = np.array([cell])
        if self._stale is not None:
            for found in self._at_ends(against, cover, cells):
                if found.max() >= against.bar:
                    return np.full(len(looks), inf)
        return evidence(self._log_wealth(against, cover, cells, looks))[:, 0]

    def _least(self, against: Refutation, cover: int, look: Looks) -> float:
        """Return the least evidence against a cell that stands; infinite if none does."""
        standing = against.standing[cover]
        if not len(standing):
            return inf
        found = evidence(self._log_wealth(against, cover, self._cells(against, cover), look))[0]
        at = int(found.argmin())
        against.hardest[cover] = int(standing[at])
        return inf if found[at] >= against.bar else float(found[at])

    def _log_wealth(self, against: Refutation, cover: int, cells: Cells, looks: Looks) -> Array:
        null = against.covers[cover]
        wealth = null.log_wealth(looks.counts, cells)
        if self._sizer is not None:
            if self._stale is None and against.sized:
                wealth = wealth + against.sized[cover][cells]
            else:
                wealth = wealth + self._past_gain(null, cells, range(len(self._epochs) - 1))
            for group, people, by in looks.sized:
                wealth = wealth + null.sized_gain(group, people, by, cells)
        return wealth

    def _at_ends(self, against: Refutation, cover: int, cells: Cells) -> Iterator[Array]:
        """Yield the evidence at ends of past epochs of which an outcome came since they were seen.

        Some ends at a time, of what is known now; shape (ends, cells).
        """
        null, first = against.covers[cover], max(self._stale or 0, self._filed_in)
        after = np.cumsum([epoch.counts for epoch in self._epochs[:first:-1]], axis=0)[::-1]
        step = max(1, _AT_ONCE // max(null.log_stake[cells].size, 1))
        gain = self._past_gain(null, cells, range(first))
        for start in range(0, len(after), step):
            wealth = null.log_wealth(self._total - after[start : start + step], cells)
            if self._sizer is not None:
                for at, gained in enumerate(wealth, start=first + start):
                    gain += self._past_gain(null, cells, [at])
                    gained += gain
            yield evidence(wealth)

    def _settle(self) -> None:
        """Bring the cells that stand in line with outcomes of past epochs that came since."""
        self._epoch_ended = False
        if self._stale is None:
            return
        for against in (self._against_unfair, self._against_fair):
            for cover, null in enumerate(against.covers):
                refuted = np.zeros(len(against.standing[cover]), dtype=bool)
                for found in self._at_ends(against, cover, self._cells(against, cover)):
                    refuted |= (found >= against.bar).any(axis=0)
                against.keep(cover, ~refuted)
                if self._sizer is not None:
                    past = self._past_gain(null, slice(None), range(len(self._epochs) - 1))
                    against.sized[cover : cover + 1] = [past]
        self._stale = None

    def _forget(self) -> None:
        """Forget what followed from an outcome that is no longer so."""
        self.verdict = None
        self._start()

    def _cells(self, against: Refutation, cover: int) -> Cells:
        standing = against.standing[cover]
        return slice(None) if len(standing) == len(against.covers[cover]) else standing

    # -- observations that bets are sized for -----------------------------------------------------

    def _sized_by(
        self, groups: Ints | None = None, z: Array | None = None
    ) -> tuple[tuple[int, Sized, Ints], ...]:
        """Return the current epoch's observations that bets are sized for, and how many by when.

        That is now, or after each of further people of these groups.
        """
        if self._sizer is None or not any(self.sizings):
            return ()
        found = []
        before = dict(self._sized_of(len(self._epochs) - 1))
        for group, sizing in enumerate(self.sizings):
            if sizing is None:
                continue
            people = before.get(group) or Sized(sizing, np.zeros(0), np.zeros(0))
            by = np.array([len(people.low)])
            if groups is not None and z is not None:
                own = groups == group
                by = by + own.cumsum()
                people = Sized(
                    sizing, *(np.append(end, z[own]) for end in (people.low, people.high))
                )
            found.append((group, people, by))
        return tuple(found)

    def _sized_of(self, epoch: int, most: int | None = None) -> Iterator[tuple[int, Sized]]:
        """Yield per group an epoch's observations that bets are sized for."""
        sizings = self._epochs[epoch].sizings
        start, stop = self._bounds(epoch)
        stop = stop if most is None else min(stop, most)
        if start >= stop or not any(sizings):
            return
        groups = np.array(self._groups[start:stop])
        outcomes = np.array([UNKNOWN if y is None else y for y in self._outcomes[start:stop]])
        zero, one = np.array(self._ends[start:stop]).T
        low, high = np.where(outcomes == 1, one, zero), np.where(outcomes == 0, zero, one)
        for group, sizing in enumerate(sizings):
            own = groups == group
            if sizing is not None and own.any():
                yield group, Sized(sizing, low[own], high[own])

    def _past_gain(self, null: NullCells, cells: Cells, epochs: Iterable[int]) -> Array:
        """Return the log gain of bets from the sized observations of some epochs."""
        total = np.zeros_like(null.log_stake[cells])
        for e in epochs if self._sizer is not None else ():
            for group, people in self._sized_of(e):
                total += null.sized_gain(group, people, np.array([len(people.low)]), cells)[0]
        return total

    def _bounds(self, epoch: int) -> tuple[int, int]:
        last = epoch == len(self._epochs) - 1
        stop = len(self._groups) if last else self._epochs[epoch + 1].start
        return self._epochs[epoch].start, stop

    def _epoch_of(self, number: int) -> int:
        if number >= self._epochs[-1].start:
            return len(self._epochs) - 1
        return bisect_right(self._epochs, number, key=lambda epoch: epoch.start) - 1

    def _add(self, number: int, sizing: Sizing | None, outcome: int | None, sign: int) -> None:
        """Count an outcome in label equivalents."""
        if outcome is None or outcome == UNKNOWN:
            return
        group, weight = self._groups[number], float(sign)
        if sizing is None:
            (self.ones if outcome else self.zeros)[group] += weight
        else:
            z, weight = self._ends[number][outcome], sign * sizing.label_equivalents
            self.ones[group] += weight * z
            self.zeros[group] += weight * (1.0 - z)
        self.told_in_all += weight

    # -- planning -------------------------------------------------------------------------------

    def _replan_if_due(self) -> None:
        if self.verdict is None and self.plan_is_due:
            self.replan()

    def replan(self) -> None:
        """End the epoch: drop the cells that it refutes, divide the labels to come anew."""
        self._next_plan = int(np.ceil(REPLAN * self.told_in_all))
        self._settle()
        look = self._now()
        for against in (self._against_unfair, self._against_fair):
            for cover in range(len(against.covers)):
                cells = self._cells(against, cover)
                found = evidence(self._log_wealth(against, cover, cells, look))[0]
                against.keep(cover, found < against.bar)
            if self._sizer is not None:
                past = against.sized or [np.zeros_like(null.log_stake) for null in against.covers]
                for group, people, by in look.sized:
                    for gain, null in zip(past, against.covers, strict=True):
                        gain += null.sized_gain(group, people, by, slice(None))[0]
                against.sized = past
        sizings = self.sizings if self._sizer is None else self._sizer.sizings()
        self._begin_epoch(sizings)
        plan = self._allocation(doubt=True)
        self._pursues_fair = plan.pursues_fair
        shares = np.where(self._reachable, plan.shares, 0.0)
        self.shares = shares / max(shares.sum(), 1e-300)

    def _allocation(self, *, doubt: bool = False) -> Allocation:
        k = len(self._reachable)
        most = _SAMPLE[0] if k == 2 else _SAMPLE[1]
        look = self._now()
        (unfair,) = self._lacking(self._against_unfair, look, most * k * (k - 1))
        fair = self._lacking(self._against_fair, look, most)
        outlooks = [self._outlook(*cells, doubt=doubt) for cells in (unfair, *fair)]
        return allocate(outlooks[0], outlooks[1:], self._costs(), was_fair=self._pursues_fair)

    def _lacking(
        self, against: Refutation, look: Looks, most: int | None = None
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield per cover boxes that stand, about ``most``, and the nats each lacks."""
        self._settle()
        for cover, null in enumerate(against.covers):
            standing = against.standing[cover]
            some = standing[:: -(-len(standing) // (most or len(standing) or 1)) or 1]
            with np.errstate(divide="ignore"):
                found = np.log(evidence(self._log_wealth(against, cover, some, look))[0])
            yield null.low[some], null.high[some], log(against.bar) - found

    def _outlook(self, low: Array, high: Array, missing: Array, *, doubt: bool) -> Outlook:
        sized = np.array([sizing is not None for sizing in self.sizings])
        outlook = Outlook(information(low, high, self.estimates, sized), missing)
        return outlook.doubted(self.told) if doubt else outlook

    def _costs(self) -> Array:
        costs = self._feature_costs + self._label_costs * (1.0 - self.estimates)
        prices = [None if s is None else s.price for s in self.sizings]
        costs = np.array([c if p is None else p for c, p in zip(costs, prices, strict=True)])
        return np.asarray(np.maximum(costs, 1e-9) if costs.max() > 0.0 else np.ones_like(costs))


def _sample(counts: Array, sized: tuple[Sized, ...]) -> GroupSample:
    zeros, ones, unknown = counts.tolist()
    total, weight = ones, ones + zeros
    for people in sized:
        known, each = people.low == people.high, people.sizing.label_equivalents
        total += each * people.low[known].sum()
        weight += each * known.sum()
    return GroupSample(ones, zeros, unknown, sized, total / weight if weight else None)
