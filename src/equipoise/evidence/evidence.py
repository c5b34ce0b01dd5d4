"""Evidence for both verdicts, request by request.

One object holds all that an audit's statistics are: what was requested and told, which null cells
still stand, and the plan of whom to label next. It knows groups by their position, people by the
number of their request, and nothing of tickets or money. Requests and answers come as arrays; a
single one is an array of one.

Bets are fixed, so the evidence against a cell is a function of counts: of labels that are 0, that
are 1, and that are unknown because they are pending or were withdrawn (these count with the smaller
of their factors). A cell is refuted if this function, of what is known now, reaches the bar over
all requests so far, or over those up to the end of an earlier epoch (since the last file of random
accepts came). Epochs end at plans, and whenever requests have grown by a tenth. After the
first pending request few of these ends are looked at. Each of these
values is at most that of all true outcomes, which is one supermartingale in request order; so it
does not matter who decides which outcomes are told, or when.

Where scores assist, bets are sized anew at every plan. The sizes stand for all requests of the
epoch, whenever their outcomes come, and follow from what was told before it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf, log

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence.allocation import Allocation, allocate, information, mean_costs
from equipoise.evidence.boxes import RowAnswers
from equipoise.evidence.confidence import anytime_interval
from equipoise.evidence.null_cells import CellIndex, CornerCells, NullCells, WrongAnswers
from equipoise.evidence.observation import LABEL, BetScale, ScoredBatch
from equipoise.finding import Interval
from equipoise.question import Verdict

UNKNOWN = -1
"""In place of an outcome that will never be known; in counts, the last of three columns."""
PENDING = -2
"""In place of an outcome that is neither told nor withdrawn yet; it counts as an unknown one."""

PILOT_LABELS = 5  # labels per group before the first plan
REPLAN_GROWTH = 1.2  # labels grow by this factor between two plans
EPOCH_GROWTH = 1.1  # requests grow by this factor in an epoch, if no plan ends it before
PENDING_GROWTH = 1.5  # … but the ends of few epochs are remembered that have pending requests
MAX_LEAD = 1.1  # a group may run this far ahead of its share while another is waited for
PLAN_SHRINKAGE = (
    0.5  # shrinkage in plans: with n labels, information i counts as i * n i / (n i + 0.5)
)
_PLAN_CELLS = (1000, 125)  # cells of a piece that a plan looks at: with two groups, with more
_MOST_PLAN_CELLS = 8_000  # … but no more than this in all
HARDEST_CELLS = 8  # of a cover that are looked at first
_LOST_EVIDENCE = 1e-20  # evidence that will hardly recover
_MIN_EPOCH_REQUESTS = 10  # requests of an epoch at least
_NEVER = 2**60
_COLUMNS = np.eye(3)  # of an outcome in counts


@dataclass(frozen=True)
class CountPath:
    """Moments at which the evidence is looked at: what is counted by each.

    ``counts`` has shape (looks, groups, 3); ``scored`` has per group the observations of the
    current epoch that bets are sized for, and how many of them there are by each look.
    """

    counts: Array
    scored: tuple[tuple[int, ScoredBatch, Ints], ...] = ()

    def some(self, which: Ints) -> CountPath:
        """Return some of the looks."""
        scored = tuple((group, people, by[which]) for group, people, by in self.scored)
        return CountPath(self.counts[which], scored)


@dataclass(frozen=True)
class AnswerEvidence:
    """The evidence for an answer: the smallest e-value against the ways in which it is wrong.

    If the answer is wrong, ``e_value`` ever reaches ``needed`` with at most the error probability
    of the answer, however often one looks. An answer is given once it does.
    """

    e_value: float
    needed: float


@dataclass
class Refutation:
    """A cover of a wrong answer, null cells that hold all of it, and how far it is refuted.

    A wrong answer is refuted when the least evidence against a cell that stands, summed over its
    covers, reaches the ``bar`` (their number over the error level): if it were true, the evidence
    against its cell in each cover would ever add up to that with probability at most this level.

    ``standing`` has the cells that were not refuted by the end of an epoch, ``hardest`` those
    with the least evidence when all were last looked at, the latest first, ``gain`` the log gain of
    bets from scored observations of the epochs that are settled. ``seen`` has the counts at which
    all cells that stand were looked at last, and the evidence against each.
    """

    cells: NullCells
    bar: float
    standing: Ints
    hardest: tuple[int, ...] = ()
    gain: Array = field(default_factory=lambda: np.zeros(0))
    seen: tuple[Array, Array] | None = None

    def drop(self, stands: Flags) -> None:
        """Let only some of the cells go on standing."""
        self.standing = self.standing[stands]
        still = set(self.standing.tolist())
        self.hardest = tuple(cell for cell in self.hardest if cell in still)
        if self.seen is not None:
            counts, evidence = self.seen
            self.seen = counts, evidence[stands]


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
    rescale_bets
        Returns at every plan how bets on observations of each group are sized from now on, None
        for one whose observations are labels. Left out if all of them are.
    """

    def __init__(
        self,
        wrong: WrongAnswers | RowAnswers,
        prices: Array,
        reachable: Flags,
        rescale_bets: Callable[[], list[BetScale | None]] | None = None,
    ) -> None:
        k = len(reachable)
        self._wrong, self._prices = wrong, prices
        self._reachable, self._rescale_bets = reachable, rescale_bets
        self._groups: list[int] = []  # of all requests, in order
        self.outcomes: list[int] = []
        self._observation_ends: dict[
            int, list[float]
        ] = {}  # Z of requests for outcomes 0 and 1, if no label
        # Epochs: their first requests, how bets are sized, which groups' observations are labels,
        # how many labels one counts as, and labels by group and outcome.
        self._starts = np.zeros(0, dtype=np.intp)
        self._bet_scales: list[list[BetScale | None]] = []
        self._plain = np.zeros((0, k), dtype=bool)
        self._equivalents = np.zeros((0, k))
        self._counts = np.zeros((0, k, 3))
        self._pending = np.zeros(0, dtype=np.intp)  # requests of each epoch without an outcome
        self.labels = np.zeros((k, 3))
        """All that is observed, by group and outcome, in label equivalents."""
        self._begin_epoch([None] * k)
        self.random_accepts = np.zeros((k, 3))
        # the epoch in which the last file of random accepts came, and after how many requests
        self._file_epoch = self._file_request = 0
        self.shares = reachable / max(reachable.sum(), 1)
        self.verdict: Verdict | None = None
        self._pursues_fair: bool | None = None
        self.next_plan = PILOT_LABELS * max(int(reachable.sum()), 1)
        self._start()

    def _start(self) -> None:
        """Let all cells stand, whatever was recorded."""
        self._against_unfair, self._against_fair = (
            [Refutation(cells, len(covers) / level, np.arange(len(cells))) for cells in covers]
            for covers, level in (
                (self._wrong.unfair_covers(), self._wrong.level_fair),
                (self._wrong.fair_covers(), self._wrong.level_unfair),
            )
        )
        # the hardest cells of several covers as one, by the covers
        self._against_hardest_of: dict[int, tuple[object, Refutation]] = {}
        self._settled = 0  # epochs by whose ends the cells that stand were settled last
        self._stale = 0  # the first epoch whose end was not looked at as outcomes stand now

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
            ranges = [LABEL if s is None else (s.low, s.high) for s in self.bet_scales]
            low, high = np.array(ranges)[groups].T
            inside = (ends.min(axis=1) >= low - 1e-9) & (ends.max(axis=1) <= high + 1e-9)
            fits = np.where(self._plain[-1, groups], (ends == LABEL).all(axis=1), inside)
            if not fits.all():
                raise ValueError(f"{ends[~fits][0]} leaves the range that was declared")
            self._observation_ends.update(zip(numbers.tolist(), ends.tolist(), strict=True))
        self.outcomes += [PENDING] * len(groups)
        while taken < len(groups):
            self._end_epoch_if_due()
            part = groups[taken : taken + self._next_epoch - self.requests]
            asked = np.bincount(part, minlength=len(self.labels))
            self._counts[-1, :, UNKNOWN] += asked * self._plain[-1]
            self.labels[:, UNKNOWN] += asked * self._equivalents[-1]
            self._pending[-1] += len(part)
            self._groups += part.tolist()
            taken += len(part)
        if ends is not None:
            passed = numbers[ends[:, 0] == ends[:, 1]]
            self.record(passed, np.zeros_like(passed))
        return numbers

    def record(self, numbers: Ints, outcomes: Ints) -> None:
        """Take in outcomes of different requests, the first or other ones.

        UNKNOWN is one that will never be known. What follows from them is left to :meth:`advance`.
        """
        asked = numbers.tolist()
        old = np.array([self.outcomes[n] for n in asked], dtype=np.intp)
        for number, outcome in zip(asked, outcomes.tolist(), strict=True):
            self.outcomes[number] = outcome
        groups = np.array([self._groups[n] for n in asked], dtype=np.intp)
        epochs = self._starts.searchsorted(numbers, side="right") - 1
        np.add.at(self._pending, epochs, (outcomes == PENDING) * 1 - (old == PENDING))
        change = _COLUMNS[np.maximum(outcomes, UNKNOWN)] - _COLUMNS[np.maximum(old, UNKNOWN)]
        np.add.at(self._counts, (epochs, groups), change * self._plain[epochs, groups, None])
        (zeros, ones, unknown), (end_0, end_1) = change.T, self._observation_ends_of(asked).T
        z = zeros * end_0 + ones * end_1
        weight = self._equivalents[epochs, groups]
        np.add.at(self.labels, groups, (weight * [zeros + ones - z, z, unknown]).T)
        self._stale = int(epochs.min(initial=self._stale))
        if (old != PENDING).any():
            self._forget()

    def record_block(self, groups: Ints, outcomes: Ints, ends: Array | None = None) -> int:
        """Request observations that are told at once; return how many until a verdict, or all.

        It equals request, record and advance one by one: the evidence is looked at after each
        label, by cumulative counts. At most :attr:`labels_until_plan` label equivalents at a time.
        """
        if self._equivalents[-1, groups[:-1]].sum() >= self.labels_until_plan:
            raise ValueError(f"{len(groups)} labels; at most {self.labels_until_plan:g} now")
        taken, every = 0, np.broadcast_to(LABEL if ends is None else ends, (len(groups), 2))
        while taken < len(groups) and self.verdict is None:
            self._end_epoch_if_due()
            part = slice(taken, taken + self._next_epoch - self.requests)
            own, told, (zero, one) = groups[part], outcomes[part], every[part].T
            asked = np.flatnonzero(zero != one)
            looks = self._count_path(own, told, np.where(told == 1, one, zero))
            first = self._evaluate(looks.some(1 + asked))
            count = int(asked[first]) + 1 if first < len(asked) else len(own)
            numbers = self.request(own[:count], None if ends is None else ends[part][:count])
            asked = asked[asked < count]
            self.record(numbers[asked], told[asked])
            if zero[count - 1] != one[count - 1]:  # plans change after labels
                self._replan_if_due()
            taken += count
        return taken

    def _end_epoch_if_due(self) -> None:
        if self.requests >= self._next_epoch:
            self._begin_epoch(self.bet_scales)

    def _begin_epoch(self, bet_scales: list[BetScale | None]) -> None:
        n, k = self.requests, len(bet_scales)
        self.bet_scales = bet_scales
        """How bets on each group are sized from now on; None: its observations are labels."""
        equivalents = [1.0 if s is None else s.label_equivalents for s in bet_scales]
        self._starts = np.append(self._starts, n)
        growth = np.floor(np.log(np.maximum(self._starts[1:], 1)) / log(PENDING_GROWTH))
        self._sparse_ends = np.diff(growth, prepend=-1.0) > 0.0
        self._bet_scales.append(bet_scales)
        self._plain = np.append(self._plain, [[s is None for s in bet_scales]], axis=0)
        self._equivalents = np.append(self._equivalents, [equivalents], axis=0)
        self._counts = np.append(self._counts, np.zeros((1, k, 3)), axis=0)
        self._pending = np.append(self._pending, 0)
        longest = (
            max(_MIN_EPOCH_REQUESTS, int(EPOCH_GROWTH * n) - n)
            if self._rescale_bets is None
            else _NEVER
        )
        self._next_epoch = n + longest

    def advance(self, *, replan: bool = True) -> Verdict | None:
        """Look at the evidence of what is recorded; plan anew where enough was told since."""
        if self.verdict is None:
            self._evaluate(self._current_counts())
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
        self._file_epoch, self._file_request = len(self._starts) - 1, self.requests
        self._counts[0] += more
        self.labels += more
        self._forget()

    # -- whom to label --------------------------------------------------------------------------

    @property
    def labels_until_plan(self) -> float:
        """Labels until the plan changes; if that is due, so few that one observation exceeds it."""
        return max(self.next_plan - float(self.told.sum()), 1e-9)

    def eligible(self) -> Flags:
        """Say of which groups a label is welcome, given the labels requested so far."""
        requested = self.requested
        bound = MAX_LEAD * self.shares * (requested.sum() + 1.0) + 1.0
        return np.asarray(self._reachable & (requested <= bound))

    def choose(self, arrivals: Array, count: float, rng: np.random.Generator) -> Ints:
        """Return who is observed next, people of the groups arriving at these rates.

        They count as ``count`` labels together; fewer come back, or none, when nobody who is
        welcome arrives. The shares must stand for all of them, and no label be pending.
        """
        rates, paces = (arrivals * self._reachable).tolist(), (MAX_LEAD * self.shares).tolist()
        asked, weight = self.requested.tolist(), self._equivalents[-1].tolist()
        chosen, groups, total = list[int](), range(len(asked)), sum(asked)
        goal = total + count * (1.0 - 1e-9)
        for draw in rng.random(int(np.ceil(count / min(weight)))).tolist():
            bounds = (pace * (total + 1.0) + 1.0 for pace in paces)
            welcome = [rates[g] if asked[g] <= bound else 0.0 for g, bound in enumerate(bounds)]
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
            asked[group] += weight[group]
            total += weight[group]
            if total >= goal:
                break
        return np.array(chosen, dtype=np.intp)

    # -- where it stands ------------------------------------------------------------------------

    @property
    def told(self) -> Array:
        """Outcomes known per group, in label equivalents."""
        return np.asarray(self.labels[:, 0] + self.labels[:, 1])

    @property
    def requested(self) -> Array:
        """Observations per group, known or not, in label equivalents."""
        return np.asarray(self.labels.sum(axis=1))

    @property
    def requests(self) -> int:
        """How many requests there are: the number that the next one will have."""
        return len(self._groups)

    @property
    def estimates(self) -> Array:
        """Estimates of r per group, kept off 0 and 1."""
        told = self.told
        edge = np.minimum(0.5 / (told + 1.0), 0.02)
        return np.clip((self.labels[:, 1] + 0.5) / (told + 1.0), edge, 1.0 - edge)

    def means(self) -> tuple[Array, Array]:
        """Return each group's mean if all outcomes unknown so far are 0, and if they are 1.

        In label equivalents, kept within 0 and 1; it is 0, and 1, for a group without any.
        """
        low = self.labels[:, 1].copy()
        high, weight = low + self._counts.sum(axis=0)[:, UNKNOWN], self.requested
        for group, people in self._scored_batches(range(len(self._starts))):
            is_open, each = people.low != people.high, people.bet_scale.label_equivalents
            low[group] += each * people.low[is_open].sum()
            high[group] += each * people.high[is_open].sum()
        low, high = (np.clip(x / np.maximum(weight, 1e-300), 0.0, 1.0) for x in (low, high))
        return low, np.where(weight > 0.0, high, 1.0)

    def intervals(self, level: float) -> list[Interval]:
        """Return where each group's r lies; an interval ever misses it with probability ``level``.

        By the requests before the first that is pending, or by all, pending ones at their worst:
        both hold at once, and the narrower one is returned. Requests up to one that was pending
        when a file of random accepts came do not meet that file. The estimate is the mean of what
        is known of its requests, in label equivalents.
        """
        first = self.outcomes.index(PENDING) if PENDING in self.outcomes else self.requests
        ends = {first, self.requests} if first >= self._file_request else {self.requests}
        both = (self._intervals(at, level) for at in sorted(ends))
        return [min(own, key=lambda i: i.upper - i.lower) for own in zip(*both, strict=True)]

    def _intervals(self, at: int, level: float) -> list[Interval]:
        """Return each group's interval by the first so many requests."""
        groups = np.array(self._groups[:at], dtype=np.intp)
        outcomes = np.maximum(np.array(self.outcomes[:at], dtype=np.intp), UNKNOWN)
        epochs = self._starts.searchsorted(np.arange(at), side="right") - 1
        plain = self._plain[epochs, groups]
        counts = self.random_accepts.copy()
        np.add.at(counts, (groups[plain], outcomes[plain]), 1.0)
        scored, found = list(self._scored_batches(range(len(self._starts)), at)), []
        for group, (zeros, ones, unknown) in enumerate(counts.tolist()):
            people = [own for g, own in scored if g == group]
            total, weight = ones, ones + zeros
            for own in people:
                known, each = own.low == own.high, own.bet_scale.label_equivalents
                total += each * own.low[known].sum()
                weight += each * known.sum()
            ends = anytime_interval(ones, zeros, unknown, level, people)
            found.append(Interval(*ends, total / weight if weight else None))
        return found

    def evidence_for(self, answer: Verdict) -> AnswerEvidence:
        """Return the evidence that FAIR, or UNFAIR, is right.

        It is the least evidence against a null cell of the wrong answer that stands, the mean over
        its covers. Once no cell stands it is what is needed.
        """
        self._settle()
        covers = self._against_unfair if answer is Verdict.FAIR else self._against_fair
        needed = covers[0].bar / len(covers)
        look = self._current_counts()
        e_values = []
        for cover in covers:
            if not len(cover.standing):
                return AnswerEvidence(needed, needed)
            log_wealth = self._log_wealth(cover, cover.standing, look)
            e_values.append(float(cover.cells.evidence(log_wealth).min()))
        return AnswerEvidence(sum(e_values) / len(covers), needed)

    def rough_ranges(self, errors: float) -> tuple[Array, Array]:
        """Return where each group's r lies by so many standard errors of its labels.

        A rough guess for plans and for giving up; no verdict rests on it.
        """
        estimates = self.estimates
        width = errors * np.sqrt(estimates * (1.0 - estimates) / np.maximum(self.told, 1.0))
        return np.maximum(estimates - width, 0.0), np.minimum(estimates + width, 1.0)

    def undecidable(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that they leave room of about epsilon. No label
        decides either once all bets against some cell of every cover are lost. Pending
        outcomes are left out here, since they may still turn out well for every bet.
        """
        if self._wrong.both_allowed(low, high):
            return True
        look = self._current_counts()
        requests = zip(self._groups, self.outcomes, strict=True)
        pending = [group for group, outcome in requests if outcome == PENDING]
        if pending and self._rescale_bets is not None:
            return False
        look.counts[0, :, UNKNOWN] -= np.bincount(pending, minlength=len(self.shares))
        return all(
            (self._missing_nats(cover, look) > log(cover.bar / _LOST_EVIDENCE)).any()
            for cover in (*self._against_unfair, *self._against_fair)
        )

    def labels_to_go(self) -> Array:
        """Return about how many more labels per group the pursued verdict needs."""
        plan = self._allocation()
        if plan.speed <= 0.0 or self.undecidable(self.estimates, self.estimates):
            return np.full(len(self.shares), np.inf)
        shares = np.where(self._reachable, plan.shares, 0.0)
        share_asked = [
            1.0 if bet_scale is None else bet_scale.asked for bet_scale in self.bet_scales
        ]
        labels = shares * share_asked / self._equivalents[-1]
        return np.asarray(labels / plan.speed / (shares * self._costs()).sum())

    # -- looks ----------------------------------------------------------------------------------

    def _current_counts(self) -> CountPath:
        """Return one look, at all that is recorded."""
        return self._count_path(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))

    def _count_path(self, groups: Ints, outcomes: Ints, z: Array) -> CountPath:
        """Return a look at all that is recorded, and one after each of further people."""
        path = np.zeros((1 + len(groups), *self.labels.shape))
        path[0] = self._counts.sum(axis=0)
        path[1 + np.arange(len(groups)), groups, outcomes] = self._plain[-1, groups]
        before = dict(self._scored_batches([len(self._starts) - 1]))
        scored = []
        for group, bet_scale in enumerate(self.bet_scales):
            if bet_scale is not None:
                own, people = (
                    groups == group,
                    before.get(group, ScoredBatch(bet_scale, z[:0], z[:0])),
                )
                ends = (np.append(end, z[own]) for end in (people.low, people.high))
                by = len(people.low) + np.append(0, own.cumsum())
                scored.append((group, ScoredBatch(bet_scale, *ends), by))
        return CountPath(path.cumsum(axis=0), tuple(scored))

    def _evaluate(self, looks: CountPath) -> int:
        """Find the first look that gives a verdict; return its place, or how many there are."""
        # Else each look would repeat the epoch's end. That costs less where there are many cells.
        has_new_epoch = self._settled < len(self._starts) - 1
        if has_new_epoch and len(self._reachable) == 2 and not self._pending.any():
            self._settle()
        fair, unfair = (
            self._first_refuting(c, looks) for c in (self._against_unfair, self._against_fair)
        )
        first = min(fair, unfair)
        if first < len(looks.counts):
            self.verdict = Verdict.FAIR if fair <= unfair else Verdict.UNFAIR
        return first

    def _first_refuting(self, covers: list[Refutation], looks: CountPath) -> int:
        """Return the first look at which a wrong answer is refuted, or how many there are.

        What keeps an answer from being refuted is mostly one of the cells that did so before, the
        hardest. Only if the evidence against them suffices all others are looked at, and the one
        with the least evidence becomes one of the hardest.
        """
        due = np.arange(len(looks.counts))
        while len(due):
            total = self._against_hardest(covers, looks.some(due))
            due = due[total >= covers[0].bar]
            if len(due):
                self._settle()
                look = looks.some(due[:1])
                if sum([self._least_evidence(cover, look) for cover in covers]) >= covers[0].bar:
                    return int(due[0])
                due = due[1:]
        return len(looks.counts)

    def _against_hardest(self, covers: list[Refutation], looks: CountPath) -> Array:
        """Return the sum over covers of the least evidence against one of their hardest cells.

        It is infinite if all of a cover's were refuted before.
        """
        if not all(cover.hardest for cover in covers):
            return np.full(len(looks.counts), inf)
        if len(covers) > 1 and self._rescale_bets is None:
            starts = np.cumsum([0, *(len(cover.hardest) for cover in covers[:-1])])
            hardest = self._hardest_together(covers)
            if hardest is not None:
                least = self._least_standing(hardest, hardest.standing, looks, starts)
                return np.asarray(least.sum(axis=1))
        whole = np.zeros(1, dtype=np.intp)
        least = np.concatenate(
            [
                self._least_standing(cover, np.array(cover.hardest), looks, whole)
                for cover in covers
            ],
            axis=1,
        )
        return np.asarray(least.sum(axis=1))

    def _hardest_together(self, covers: list[Refutation]) -> Refutation | None:
        """Return the hardest cells of all covers as one; None if their bets differ in kind."""
        key = tuple(cover.hardest for cover in covers)
        kept = self._against_hardest_of.get(id(covers))
        if kept is None or kept[0] != key:
            parts = [cover.cells.some(np.array(cover.hardest)) for cover in covers]
            boxes = [part for part in parts if isinstance(part, CornerCells)]
            if len(boxes) < len(parts):
                return None
            joined = CornerCells.joined(boxes)
            kept = key, Refutation(joined, covers[0].bar, np.arange(len(joined)))
            self._against_hardest_of[id(covers)] = kept
        _, hardest = kept
        return hardest

    def _least_standing(
        self, cover: Refutation, cells: Ints, looks: CountPath, starts: Ints
    ) -> Array:
        """Return the least evidence in every run of cells, shape (looks, runs).

        Cells that were refuted before are left out; it is infinite if all of a run were. Of one
        look only the least of every run has to be asked about, and the next one if it was.
        """
        found = cover.cells.evidence(self._log_wealth(cover, cells, looks))
        if max(self._stale, self._file_epoch) >= len(self._starts) - 1:  # none to ask about
            return np.asarray(np.minimum.reduceat(found, starts, axis=1))
        run = np.searchsorted(starts, np.arange(len(cells)), side="right") - 1
        unasked = np.ones(len(cells), dtype=bool)
        while unasked.any():
            asked = np.flatnonzero(unasked)
            if len(found) == 1:
                order = np.lexsort((found[0], run))
                least = order[np.diff(run[order], prepend=-1) > 0]
                asked = least[unasked[least] & np.isfinite(found[0, least])]
            if not len(asked):
                break
            unasked[asked] = False
            for before in self._evidence_at_epoch_ends(cover, cells[asked]):
                found[:, asked[before >= cover.bar]] = inf
        return np.asarray(np.minimum.reduceat(found, starts, axis=1))

    def _least_evidence(self, cover: Refutation, look: CountPath) -> float:
        """Return the least evidence against a cell that stands; infinite if none does."""
        if not len(cover.standing):
            return inf
        found = self._standing_evidence(cover, look)
        at = int(found.argmin())
        hardest = int(cover.standing[at])
        others = tuple(cell for cell in cover.hardest if cell != hardest)
        cover.hardest = (hardest, *others)[:HARDEST_CELLS]
        return inf if found[at] >= cover.bar else float(found[at])

    def _standing_evidence(self, cover: Refutation, look: CountPath) -> Array:
        """Return the evidence at one look against all cells that stand."""
        if self._rescale_bets is not None:
            found = cover.cells.evidence(self._log_wealth(cover, cover.standing, look))
            return np.asarray(found[0])
        (counts,) = look.counts
        if cover.seen is None or not np.array_equal(cover.seen[0], counts):
            cover.seen = counts.copy(), cover.cells.evidence_of_counts(counts, cover.standing)
        return cover.seen[1]

    def _log_wealth(self, cover: Refutation, cells: CellIndex, looks: CountPath) -> Array:
        gain = self._past_gain(cover, cells, len(self._starts) - 1)
        for group, people, by in looks.scored:
            gain = gain + cover.cells.scored_gain(group, people, by, cells)
        return cover.cells.log_wealth(looks.counts, cells, gain)

    def _evidence_at_epoch_ends(self, cover: Refutation, cells: CellIndex) -> Iterator[Array]:
        """Yield the evidence, as known now, at the end of every epoch that is stale."""
        first, last = max(self._stale, self._file_epoch), len(self._starts) - 1
        if first >= last:
            return
        epochs = first + np.flatnonzero(self._remembered_ends()[first:])
        if not len(epochs):
            return
        ends = self._counts.cumsum(axis=0)
        if self._rescale_bets is None:
            places = np.arange(len(cover.cells))[cells]
            yield from cover.cells.evidence_of_counts(ends[epochs], places)
            return
        gain = self._past_gain(cover, cells, first)
        for epoch in range(first, last):
            gain = gain + self._gain(cover, cells, [epoch])
            if epoch in epochs:
                yield cover.cells.evidence(cover.cells.log_wealth(ends[epoch], cells, gain))

    def _remembered_ends(self) -> Flags:
        """Say which epochs' ends are looked at again when outcomes come.

        All up to the first pending request. After it outcomes come in any order, and each of them
        changes many ends: only one is looked at for each growth of requests by ``PENDING_GROWTH``.
        Any end may be looked at or not: each is a value of the same supermartingale.
        """
        is_known = self._pending[:-1].cumsum() == 0
        return np.asarray(is_known | self._sparse_ends)

    def _settle(self) -> None:
        """Bring the cells that stand in line with outcomes of past epochs that came since."""
        last = len(self._starts) - 1
        for cover in (*self._against_unfair, *self._against_fair) if self._stale < last else ():
            stands = np.ones(len(cover.standing), dtype=bool)
            found = None
            for found in self._evidence_at_epoch_ends(cover, cover.standing):
                stands &= found < cover.bar
            # An epoch that has just begun ends the last one where it stands now.
            is_last_end = not self._counts[last].any() and bool(self._remembered_ends()[-1])
            if found is not None and self._rescale_bets is None and is_last_end:
                cover.seen = self._counts.sum(axis=0), found
            cover.drop(stands)
            cover.gain = np.asarray(self._past_gain(cover, slice(None), last))
        self._settled = self._stale = last

    def _forget(self) -> None:
        """Forget what followed from an outcome that is no longer so."""
        self.verdict = None
        self._start()

    # -- observations that bets are sized for -----------------------------------------------------

    def _past_gain(self, cover: Refutation, cells: CellIndex, until: int) -> Array | float:
        """Return the log gain of bets from scored observations of the epochs before one."""
        if self._rescale_bets is None:
            return 0.0
        known = self._settled if self._settled <= min(until, self._stale) else 0
        total = cover.gain[..., cells, :] if known else cover.cells.no_gain(cells)
        return total + self._gain(cover, cells, range(known, until))

    def _gain(self, cover: Refutation, cells: CellIndex, epochs: Iterable[int]) -> Array | float:
        gain: Array | float = 0.0
        for group, people in self._scored_batches(epochs):
            by = np.array([len(people.low)])
            gain = gain + cover.cells.scored_gain(group, people, by, cells)[0]
        return gain

    def _scored_batches(
        self, epochs: Iterable[int], most: int | None = None
    ) -> Iterator[tuple[int, ScoredBatch]]:
        """Yield per epoch and group the observations that bets are sized for.

        Only the first ``most`` requests of the audit count, if it is given.
        """
        bounds = np.append(self._starts, self.requests).tolist()
        for epoch in epochs:
            start = bounds[epoch]
            stop = min(bounds[epoch + 1], bounds[-1] if most is None else most)
            if self._plain[epoch].all() or start >= stop:
                continue
            groups = np.array(self._groups[start:stop])
            outcomes = np.array(self.outcomes[start:stop])
            zero, one = self._observation_ends_of(range(start, stop)).T
            low, high = np.where(outcomes == 1, one, zero), np.where(outcomes == 0, zero, one)
            for group, bet_scale in enumerate(self._bet_scales[epoch]):
                own = groups == group
                if bet_scale is not None and own.any():
                    yield group, ScoredBatch(bet_scale, low[own], high[own])

    def _observation_ends_of(self, numbers: Iterable[int]) -> Array:
        return np.array([self._observation_ends.get(n, LABEL) for n in numbers]).reshape(-1, 2)

    # -- planning -------------------------------------------------------------------------------

    def _replan_if_due(self) -> None:
        """End the epoch: drop the cells that it refutes, divide the labels to come anew."""
        told = float(self.told.sum())
        if self.verdict is not None or told < self.next_plan:
            return
        self.next_plan = int(np.ceil(REPLAN_GROWTH * told))
        self._begin_epoch(self.bet_scales if self._rescale_bets is None else self._rescale_bets())
        plan = self._allocation(doubt=True)
        self._pursues_fair = plan.pursues_fair
        shares = np.where(self._reachable, plan.shares, 0.0)
        self.shares = shares / max(shares.sum(), 1e-300)

    def _allocation(self, *, doubt: bool = False) -> Allocation:
        k = len(self._reachable)
        look = self._current_counts()
        estimates, is_scored = self.estimates, ~self._plain[-1]
        outlooks = []
        for cover in (self._against_unfair[0], *self._against_fair):
            n_pairs = k * (k - 1) if cover is self._against_unfair[0] else 1
            missing = self._missing_nats(cover, look)
            cells, places = cover.cells, self._planned_for(cover, n_pairs)
            some = cover.standing[places]
            sides = cells.sides_of(some)
            info = information(
                cells.side_low[some], cells.side_high[some], estimates[sides], is_scored[sides]
            )
            info = cells.by_group(info, 0.0, some)
            if doubt:
                gathered = self.told * info
                info = info * gathered / (gathered + PLAN_SHRINKAGE)
            outlooks.append((info, missing[places]))
        return allocate(outlooks[0], outlooks[1:], self._costs(), was_fair=self._pursues_fair)

    def _planned_for(self, cover: Refutation, n_pairs: int) -> Ints | slice:
        """Return which of the cells that stand a plan looks at: about as many of every part."""
        n_standing = len(cover.standing)
        per_pair = _PLAN_CELLS[0] if len(self._reachable) == 2 else _PLAN_CELLS[1]
        most = min(per_pair * n_pairs, _MOST_PLAN_CELLS)
        return slice(None, None, -(-n_standing // most) or 1)

    def _missing_nats(self, cover: Refutation, look: CountPath) -> Array:
        """Return the nats that each of the cells that stand lacks."""
        self._settle()
        with np.errstate(divide="ignore"):
            found = np.log(self._standing_evidence(cover, look))
        return np.asarray(log(cover.bar) - found)

    def _costs(self) -> Array:
        pairs = zip(mean_costs(self._prices, self.estimates), self.bet_scales, strict=True)
        return np.array(
            [cost if bet_scale is None else bet_scale.price for cost, bet_scale in pairs]
        )
