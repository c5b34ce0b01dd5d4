"""Evidence for both verdicts, request by request.

One object holds all that an audit's statistics are: what was requested and told, which null cells
still stand, and the plan of whom to label next. It knows groups by their position, people by the
number of their request, and nothing of tickets or money. Requests and answers come as arrays; a
single one is an array of one.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from equipoise.evidence.allocation import (
    Allocation,
    Outlook,
    allocate,
    doubted,
    drawn_in_turn,
    information,
    mean_costs,
)
from equipoise.evidence.confidence import anytime_interval
from equipoise.evidence.null_cells import (
    Cells,
    NullCells,
    WrongAnswers,
    evidence,
    fair_covers,
    unfair_covers,
)
from equipoise.evidence.observation import LABEL, Sized, Sizing
from equipoise.finding import Interval
from equipoise.question import Verdict

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

UNKNOWN = -1
"""In place of an outcome that will never be known; in counts, the last of three columns."""
PENDING = -2
"""In place of an outcome that is neither told nor withdrawn yet; it counts as an unknown one."""

PILOT = 5  # labels per group before the first plan
REPLAN = 1.2  # labels grow by this factor between two plans
EPOCH = 1.02  # requests grow by this factor in an epoch, if no plan ends it before
SLACK = 1.1  # a group may run this far ahead of its share while another is waited for
_SAMPLE = (1000, 125)  # cells of a piece that a plan looks at: with two groups, with more
_LOST = 1e-20  # evidence that will hardly recover
_SHORTEST = 10  # requests of an epoch at least
_NEVER = 2**60
_AT_ONCE = 200_000  # numbers to look at together
_COLUMNS = np.eye(3)  # of an outcome in counts


@dataclass(frozen=True)
class Looks:
    """Moments at which the evidence is looked at: what is counted by each.

    ``counts`` has shape (looks, groups, 3); ``sized`` has per group the observations of the current
    epoch that bets are sized for, and how many of them there are by each look.
    """

    counts: Array
    sized: tuple[tuple[int, Sized, Ints], ...] = ()

    def some(self, which: Ints) -> Looks:
        """Return some of the looks."""
        sized = tuple((group, people, by[which]) for group, people, by in self.sized)
        return Looks(self.counts[which], sized)


@dataclass
class Refutation:
    """A cover of a wrong answer, null cells that hold all of it, and how far it is refuted.

    A wrong answer is refuted when the least evidence against a cell that stands, summed over its
    covers, reaches the ``bar`` (their number over the error level): if it were true, the evidence
    against its cell in each cover would ever add up to that with probability at most this level.

    ``standing`` has the cells that were not refuted by the end of an epoch, ``hardest`` the one
    with the least evidence when all were last looked at, ``gain`` the log gain of bets from sized
    observations of the first ``epochs``.
    """

    cells: NullCells
    bar: float
    standing: Ints
    hardest: int | None = None
    gain: Array = field(default_factory=lambda: np.zeros(0))
    epochs: int = 0

    @property
    def places(self) -> Cells:
        """The cells that stand."""
        return slice(None) if len(self.standing) == len(self.cells) else self.standing


class Evidence:
    """Evidence for both verdicts, and the plan of whom to label next.

    Parameters
    ----------
    wrong
        The wrong answers to refute.
    prices
        What a request costs, and what a label of 0 costs besides, shape (2, groups).
    reachable
        Which groups have denied people to label.
    sizer
        Returns at every plan how bets on observations of each group are sized from now on, None
        for one whose observations are labels. Left out if all of them are.
    """

    def __init__(
        self,
        wrong: WrongAnswers,
        prices: Array,
        reachable: NDArray[np.bool_],
        sizer: Callable[[], list[Sizing | None]] | None = None,
    ) -> None:
        k = len(reachable)
        self._wrong, self._prices = wrong, prices
        self._reachable, self._sizer = reachable, sizer
        self._groups: list[int] = []  # of all requests, in order
        self._outcomes: list[int] = []
        self._ends: list[list[float]] = []  # Z of each for outcomes 0 and 1, where scores assist
        # Epochs: their first requests, how bets are sized, and labels by group and outcome.
        self._starts = np.zeros(0, dtype=np.intp)
        self._sizings: list[list[Sizing | None]] = []
        self._counts = np.zeros((0, k, 3))
        self._labels = np.zeros((k, 3))  # all that is observed, in label equivalents
        self._begin_epoch([None] * k)
        self.random_accepts = np.zeros((k, 3))
        self._filed_in = 0  # the epoch in which the last file of random accepts came
        self.shares = reachable / max(reachable.sum(), 1)
        self.verdict: Verdict | None = None
        self._pursues_fair: bool | None = None
        self.next_plan = PILOT * max(int(reachable.sum()), 1)
        self._start()

    def _start(self) -> None:
        """Let all cells stand, whatever was recorded."""
        self._against_unfair, self._against_fair = (
            [Refutation(cells, len(covers) / level, np.arange(len(cells))) for cells in covers]
            for covers, level in (
                (unfair_covers(self._wrong), self._wrong.level_fair),
                (fair_covers(self._wrong), self._wrong.level_unfair),
            )
        )
        self._stale = 0  # the first epoch whose end was not looked at as outcomes stand now
        self._epoch_ended = False  # since the cells that stand were settled

    def __getstate__(self) -> dict[str, object]:
        """Leave out what follows from the rest."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_against")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._start()

    # -- requests and answers -------------------------------------------------------------------

    def request(self, groups: Ints, ends: Array | None = None) -> Ints:
        """Record that people are observed; return the requests' numbers.

        ``ends`` has Z of each for the outcomes 0 and 1, shape (n, 2); labels if left out. Whoever
        is not asked for the label is settled at once, and counts at the next look.
        """
        numbers, taken = self.requests + np.arange(len(groups)), 0
        if ends is not None:
            self._require_declared(groups, ends)
        self._outcomes += [PENDING] * len(groups)
        while taken < len(groups):
            self._end_epoch_if_due()
            part = groups[taken : taken + self._next_epoch - self.requests]
            asked = np.bincount(part, minlength=len(self._plain))
            self._counts[-1, :, UNKNOWN] += asked * self._plain
            self._labels[:, UNKNOWN] += asked * self.label_equivalents
            self._groups += part.tolist()
            taken += len(part)
        if self._sizer is not None:
            self._ends += np.broadcast_to(LABEL if ends is None else ends, (taken, 2)).tolist()
        if ends is not None:
            passed = numbers[ends[:, 0] == ends[:, 1]]
            self.record(passed, np.zeros_like(passed))
        return numbers

    def _require_declared(self, groups: Ints, ends: Array) -> None:
        """Refuse observations beyond what bets are sized for."""
        ranges = [LABEL if s is None else (s.low, s.high) for s in self.sizings]
        low, high = np.array(ranges)[groups].T
        inside = (ends.min(axis=1) >= low - 1e-9) & (ends.max(axis=1) <= high + 1e-9)
        fits = np.where(self._plain[groups] > 0.0, (ends == LABEL).all(axis=1), inside)
        if not fits.all():
            raise ValueError(f"{ends[~fits][0]} leaves the range that was declared")

    def record(self, numbers: Ints, outcomes: Ints) -> None:
        """Take in outcomes of different requests, the first or other ones.

        UNKNOWN is one that will never be known. What follows from them is left to :meth:`advance`.
        """
        asked = numbers.tolist()
        old = np.array([self._outcomes[n] for n in asked], dtype=np.intp)
        for number, outcome in zip(asked, outcomes.tolist(), strict=True):
            self._outcomes[number] = outcome
        groups = np.array([self._groups[n] for n in asked], dtype=np.intp)
        epochs = self._starts.searchsorted(numbers, side="right") - 1
        change = _COLUMNS[np.maximum(outcomes, UNKNOWN)] - _COLUMNS[np.maximum(old, UNKNOWN)]
        zeros, ones, unknown = change.T
        z, weight, plain = ones, np.ones(1), np.ones(1)
        if self._sizer is not None:
            sizings = [self._sizings[e][g] for e, g in zip(epochs, groups, strict=True)]
            plain = np.array([sizing is None for sizing in sizings])
            weight = np.array([_equivalents(sizing) for sizing in sizings])
            end_0, end_1 = np.array([self._ends[n] for n in asked]).reshape(-1, 2).T
            z = zeros * end_0 + ones * end_1
        np.add.at(self._counts, (epochs, groups), change * plain[:, None])
        np.add.at(self._labels, groups, (weight * [zeros + ones - z, z, unknown]).T)
        self._stale = int(epochs.min(initial=self._stale))
        if (old != PENDING).any():
            self._forget()

    def record_block(self, groups: Ints, outcomes: Ints, ends: Array | None = None) -> int:
        """Request observations that are told at once; return how many until a verdict, or all.

        It equals request, record and advance one by one: the evidence is looked at after each
        label, by cumulative counts. At most :attr:`labels_until_plan` label equivalents at a time.
        """
        if self.label_equivalents[groups[:-1]].sum() >= self.labels_until_plan:
            raise ValueError(f"{len(groups)} labels; at most {self.labels_until_plan:g} now")
        taken = 0
        while taken < len(groups) and self.verdict is None:
            self._end_epoch_if_due()
            part = slice(taken, taken + self._next_epoch - self.requests)
            own = groups[part], outcomes[part], None if ends is None else ends[part]
            taken += self._record_part(*own)
        return taken

    def _record_part(self, groups: Ints, outcomes: Ints, ends: Array | None) -> int:
        """Record people of one epoch up to the first whose label decides; return how many."""
        zero, one = np.broadcast_to(LABEL if ends is None else ends, (len(groups), 2)).T
        is_asked = zero != one
        asked = np.flatnonzero(is_asked)
        looks = self._looks(groups, outcomes, np.where(outcomes == 1, one, zero))
        first = self._look(looks.some(1 + asked))
        taken = int(asked[first]) + 1 if first < len(asked) else len(groups)
        numbers = self.request(groups[:taken], None if ends is None else ends[:taken])
        told = is_asked[:taken]
        self.record(numbers[told], outcomes[:taken][told])
        if told[-1]:  # plans change after labels
            self._replan_if_due()
        return taken

    def _end_epoch_if_due(self) -> None:
        if self.requests >= self._next_epoch:
            self._begin_epoch(self.sizings)
            self._epoch_ended = True

    def _begin_epoch(self, sizings: list[Sizing | None]) -> None:
        n = self.requests
        self._starts = np.append(self._starts, n)
        self._sizings.append(sizings)
        self._counts = np.append(self._counts, np.zeros((1, *self._labels.shape)), axis=0)
        # how many labels the next observation of each group counts as, and whether it is one
        self.label_equivalents = np.array([_equivalents(sizing) for sizing in sizings])
        self._plain = np.array([sizing is None for sizing in sizings], dtype=float)
        longest = max(_SHORTEST, int(EPOCH * n) - n) if self._sizer is None else _NEVER
        self._next_epoch = n + longest

    def advance(self, *, replan: bool = True) -> Verdict | None:
        """Look at the evidence of what is recorded; plan anew where enough was told since."""
        if self.verdict is None:
            self._look(self._now())
        if replan:
            self._replan_if_due()
        return self.verdict

    def set_random_accepts(self, counts: Array) -> None:
        """Put a test programme's labels in the place of those of an earlier look at its file.

        Per group those that are 0, 1 and unknown. They are one block: no bet rests on any of them.
        Cells, weights and bets stay those of the first look. Ends of epochs before this file came
        are remembered no longer: its labels were not there yet. What follows is left to
        :meth:`advance`.
        """
        more, self.random_accepts = counts - self.random_accepts, counts
        self._filed_in = len(self._starts) - 1
        self._counts[0] += more
        self._labels += more
        self._forget()

    def outcome(self, number: int) -> int:
        """Return a request's outcome, UNKNOWN if it was withdrawn, PENDING if it is pending."""
        return self._outcomes[number]

    # -- whom to label --------------------------------------------------------------------------

    @property
    def labels_until_plan(self) -> float:
        """Labels until the plan changes; if that is due, so few that one observation exceeds it."""
        return max(self.next_plan - self.told_in_all, 1e-9)

    def eligible(self) -> NDArray[np.bool_]:
        """Say of which groups a label is welcome, given the labels requested so far."""
        requested = self.requested
        bound = SLACK * self.shares * (requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (requested <= bound))

    def choose(self, arrivals: Array, count: float, rng: np.random.Generator) -> Ints:
        """Return who is observed next, people of the groups arriving at these rates.

        They count as ``count`` labels together; fewer come back, or none, when nobody who is
        welcome arrives. The shares must stand for all of them, and no label be pending.
        """
        rates, pace = arrivals * self._reachable, SLACK * self.shares
        return drawn_in_turn(rates, pace, self.requested, self.label_equivalents, count, rng)

    # -- where it stands ------------------------------------------------------------------------

    @property
    def ones(self) -> Array:
        """Outcomes of 1 known per group, in label equivalents."""
        return self._labels[:, 1]

    @property
    def told(self) -> Array:
        """Outcomes known per group, in label equivalents."""
        return np.asarray(self._labels[:, 0] + self._labels[:, 1])

    @property
    def told_in_all(self) -> float:
        """Outcomes known, in label equivalents."""
        return float(self._labels[:, :2].sum())

    @property
    def requested(self) -> Array:
        """Observations per group, known or not, in label equivalents."""
        return np.asarray(self._labels.sum(axis=1))

    @property
    def requests(self) -> int:
        """How many requests there are: the number that the next one will have."""
        return len(self._groups)

    @property
    def sizings(self) -> list[Sizing | None]:
        """How bets on each group are sized from now on; None: its observations are labels."""
        return self._sizings[-1]

    @property
    def estimates(self) -> Array:
        """Estimates of r per group, kept off 0 and 1."""
        told = self.told
        edge = np.minimum(0.5 / (told + 1.0), 0.02)
        return np.clip((self.ones + 0.5) / (told + 1.0), edge, 1.0 - edge)

    def means(self) -> tuple[Array, Array]:
        """Return each group's mean if all outcomes unknown so far are 0, and if they are 1.

        In label equivalents, kept within 0 and 1; it is 0, and 1, for a group without any.
        """
        low = self._labels[:, 1].copy()
        high, weight = low + self._counts.sum(axis=0)[:, UNKNOWN], self.requested
        for epoch in range(len(self._starts)):
            for group, people in self._sized_of(epoch):
                is_open, each = people.low != people.high, people.sizing.label_equivalents
                low[group] += each * people.low[is_open].sum()
                high[group] += each * people.high[is_open].sum()
        none, weight = weight <= 0.0, np.maximum(weight, 1e-300)
        return (
            np.where(none, 0.0, np.clip(low / weight, 0.0, 1.0)),
            np.where(none, 1.0, np.clip(high / weight, 0.0, 1.0)),
        )

    def intervals(self, level: float) -> list[Interval]:
        """Return where each group's r lies by the requests before the first that is pending.

        Each ever misses it with probability at most ``level``. The estimate is the mean of what is
        known of these requests, in label equivalents.
        """
        outcomes = np.array([*self._outcomes, PENDING], dtype=np.intp)
        at = int(outcomes.argmin())
        groups = np.array(self._groups[:at], dtype=np.intp)
        epochs = self._starts.searchsorted(np.arange(at), side="right") - 1
        plain = np.array([[s is None for s in own] for own in self._sizings])[epochs, groups]
        counts = self.random_accepts.copy()
        np.add.at(counts, (groups[plain], outcomes[:at][plain]), 1.0)
        sized = [own for epoch in range(len(self._starts)) for own in self._sized_of(epoch, at)]
        found = []
        for group, (zeros, ones, unknown) in enumerate(counts.tolist()):
            people = [own for g, own in sized if g == group]
            total, weight = ones, ones + zeros
            for own in people:
                known, each = own.low == own.high, own.sizing.label_equivalents
                total += each * own.low[known].sum()
                weight += each * known.sum()
            ends = anytime_interval(ones, zeros, unknown, level, people)
            found.append(Interval(*ends, total / weight if weight else None))
        return found

    def undecidable(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that their bands are about as wide as epsilon. No
        label decides either once all bets against some cell of every cover are lost. Pending
        outcomes are left out here, since they may still turn out well for every bet.
        """
        if self._wrong.both_allowed(low, high):
            return True
        look = self._now()
        requests = zip(self._groups, self._outcomes, strict=True)
        pending = [group for group, outcome in requests if outcome == PENDING]
        if pending and self._sizer is not None:
            return False
        look.counts[0, :, UNKNOWN] -= np.bincount(pending, minlength=len(self.shares))
        return all(
            (missing > log(cover.bar / _LOST)).any()
            for cover in (*self._against_unfair, *self._against_fair)
            for _, _, missing in [self._lacking(cover, look)]
        )

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation()
        if plan.speed <= 0.0 or self.undecidable(self.estimates, self.estimates):
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        share_asked = [1.0 if sizing is None else sizing.asked for sizing in self.sizings]
        labels = shares * share_asked / self.label_equivalents
        return np.asarray(labels / plan.speed / (shares * self._costs()).sum())

    # -- looks ----------------------------------------------------------------------------------

    def _now(self) -> Looks:
        """Return one look, at all that is recorded."""
        return self._looks(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))

    def _looks(self, groups: Ints, outcomes: Ints, z: Array) -> Looks:
        """Return a look at all that is recorded, and one after each of further people."""
        path = np.zeros((1 + len(groups), *self._labels.shape))
        path[0] = self._counts.sum(axis=0)
        path[1 + np.arange(len(groups)), groups, outcomes] = self._plain[groups]
        before = dict(self._sized_of(len(self._starts) - 1))
        sized = []
        for group, sizing in enumerate(self.sizings):
            if sizing is not None:
                own, people = groups == group, before.get(group, Sized(sizing, z[:0], z[:0]))
                ends = (np.append(end, z[own]) for end in (people.low, people.high))
                by = len(people.low) + np.append(0, own.cumsum())
                sized.append((group, Sized(sizing, *ends), by))
        return Looks(path.cumsum(axis=0), tuple(sized))

    def _look(self, looks: Looks) -> int:
        """Find the first look that gives a verdict; return its place, or how many there are."""
        if self._epoch_ended:
            self._settle()
        fair = self._first(self._against_unfair, looks)
        unfair = self._first(self._against_fair, looks)
        first = min(fair, unfair)
        if first < len(looks.counts):
            self.verdict = Verdict.FAIR if fair <= unfair else Verdict.UNFAIR
        return first

    def _first(self, covers: list[Refutation], looks: Looks) -> int:
        """Return the first look at which a wrong answer is refuted, or how many there are.

        What keeps an answer from being refuted is mostly the same cell as at the last look, the
        hardest. Only if the evidence against it suffices all others are looked at, and the one with
        the least evidence becomes the hardest.
        """
        due = np.arange(len(looks.counts))
        while len(due):
            total = sum(self._against_hardest(cover, looks.some(due)) for cover in covers)
            due = due[total >= covers[0].bar]
            if len(due):
                self._settle()
                look = looks.some(due[:1])
                if sum([self._least(cover, look) for cover in covers]) >= covers[0].bar:
                    return int(due[0])
                due = due[1:]
        return len(looks.counts)

    def _against_hardest(self, cover: Refutation, looks: Looks) -> Array:
        """Return the evidence against a cover's hardest cell; infinite if it was refuted before."""
        if cover.hardest is None:
            return np.full(len(looks.counts), inf)
        cell = np.array([cover.hardest])
        if any(found[0] >= cover.bar for found in self._at_ends(cover, cell)):
            return np.full(len(looks.counts), inf)
        return evidence(self._log_wealth(cover, cell, looks))[:, 0]

    def _least(self, cover: Refutation, look: Looks) -> float:
        """Return the least evidence against a cell that stands; infinite if none does."""
        if not len(cover.standing):
            return inf
        found = evidence(self._log_wealth(cover, cover.places, look))[0]
        at = int(found.argmin())
        cover.hardest = int(cover.standing[at])
        return inf if found[at] >= cover.bar else float(found[at])

    def _log_wealth(self, cover: Refutation, cells: Cells, looks: Looks) -> Array:
        wealth = cover.cells.log_wealth(looks.counts, cells)
        wealth = wealth + self._past_gain(cover, cells, len(self._starts) - 1)
        for group, people, by in looks.sized:
            wealth = wealth + cover.cells.sized_gain(group, people, by, cells)
        return wealth

    def _at_ends(self, cover: Refutation, cells: Cells) -> Iterator[Array]:
        """Yield the evidence, as known now, at the end of every epoch that is stale."""
        first, last = max(self._stale, self._filed_in), len(self._starts) - 1
        if first >= last:
            return
        ends, gain = self._counts.cumsum(axis=0)[first:last], self._past_gain(cover, cells, first)
        size = 1 + cover.cells.log_stake[cells].size
        together = 1 if self._sizer else 1 + _AT_ONCE // size
        for epoch in range(first, last, together):
            gain = gain + self._gain_in(cover, cells, epoch)
            some = ends[epoch - first : epoch - first + together]
            yield from evidence(cover.cells.log_wealth(some, cells) + gain)

    def _settle(self) -> None:
        """Bring the cells that stand in line with outcomes of past epochs that came since."""
        self._epoch_ended, last = False, len(self._starts) - 1
        if self._stale == last:
            return
        for cover in (*self._against_unfair, *self._against_fair):
            stands = np.ones(len(cover.standing), dtype=bool)
            for found in self._at_ends(cover, cover.places):
                stands &= found < cover.bar
            cover.standing = cover.standing[stands]
            if cover.hardest not in cover.standing:
                cover.hardest = None
            cover.gain = np.asarray(self._past_gain(cover, slice(None), last))
            cover.epochs = last
        self._stale = last

    def _forget(self) -> None:
        """Forget what followed from an outcome that is no longer so."""
        self.verdict = None
        self._start()

    # -- observations that bets are sized for -----------------------------------------------------

    def _past_gain(self, cover: Refutation, cells: Cells, until: int) -> Array | float:
        """Return the log gain of bets from sized observations of the epochs before one."""
        if self._sizer is None:
            return 0.0
        known = cover.epochs if cover.epochs <= min(until, self._stale) else 0
        total = cover.gain[cells] if known else np.zeros_like(cover.cells.log_stake[cells])
        for epoch in range(known, until):
            total = total + self._gain_in(cover, cells, epoch)
        return total

    def _gain_in(self, cover: Refutation, cells: Cells, epoch: int) -> Array | float:
        gain: Array | float = 0.0
        for group, people in self._sized_of(epoch):
            by = np.array([len(people.low)])
            gain = gain + cover.cells.sized_gain(group, people, by, cells)[0]
        return gain

    def _sized_of(self, epoch: int, most: int | None = None) -> Iterator[tuple[int, Sized]]:
        """Yield per group an epoch's observations that bets are sized for.

        Only the first ``most`` requests of the audit count, if it is given.
        """
        sizings = self._sizings[epoch]
        if not any(sizings):
            return
        start, stop = np.append(self._starts, self.requests)[epoch : epoch + 2].tolist()
        stop = stop if most is None else min(stop, most)
        if start >= stop:
            return
        groups, outcomes = np.array(self._groups[start:stop]), np.array(self._outcomes[start:stop])
        zero, one = np.array(self._ends[start:stop]).T
        low, high = np.where(outcomes == 1, one, zero), np.where(outcomes == 0, zero, one)
        for group, sizing in enumerate(sizings):
            own = groups == group
            if sizing is not None and own.any():
                yield group, Sized(sizing, low[own], high[own])

    # -- planning -------------------------------------------------------------------------------

    def _replan_if_due(self) -> None:
        """End the epoch: drop the cells that it refutes, divide the labels to come anew."""
        if self.verdict is not None or self.told_in_all < self.next_plan:
            return
        self.next_plan = int(np.ceil(REPLAN * self.told_in_all))
        self._begin_epoch(self.sizings if self._sizer is None else self._sizer())
        plan = self._allocation(doubt=True)
        self._pursues_fair = plan.pursues_fair
        shares = np.where(self._reachable, plan.shares, 0.0)
        self.shares = shares / max(shares.sum(), 1e-300)

    def _allocation(self, *, doubt: bool = False) -> Allocation:
        k = len(self._reachable)
        most, look = _SAMPLE[0] if k == 2 else _SAMPLE[1], self._now()
        unfair = self._lacking(self._against_unfair[0], look, most * k * (k - 1))
        fair = [self._lacking(cover, look, most) for cover in self._against_fair]
        outlooks = [self._outlook(*cells, doubt=doubt) for cells in (unfair, *fair)]
        return allocate(outlooks[0], outlooks[1:], self._costs(), was_fair=self._pursues_fair)

    def _lacking(
        self, cover: Refutation, look: Looks, most: int | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the boxes of about ``most`` of the cells that stand, and the nats each lacks."""
        self._settle()
        standing = cover.standing
        some = standing[:: -(-len(standing) // (most or len(standing) or 1)) or 1]
        with np.errstate(divide="ignore"):
            found = np.log(evidence(self._log_wealth(cover, some, look))[0])
        return cover.cells.low[some], cover.cells.high[some], log(cover.bar) - found

    def _outlook(self, low: Array, high: Array, missing: Array, *, doubt: bool) -> Outlook:
        info = information(low, high, self.estimates, self._plain == 0.0)
        return (doubted(info, self.told) if doubt else info), missing

    def _costs(self) -> Array:
        pairs = zip(mean_costs(self._prices, self.estimates), self.sizings, strict=True)
        return np.array([cost if sizing is None else sizing.price for cost, sizing in pairs])


def _equivalents(sizing: Sizing | None) -> float:
    """Return how many labels an observation counts as."""
    return 1.0 if sizing is None else sizing.label_equivalents
