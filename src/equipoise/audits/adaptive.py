"""The adaptive audit: look after every label, stop as soon as the answer is certain enough."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from copy import copy, deepcopy
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from equipoise.assist.options import Assist
from equipoise.assist.sampler import ScoreRecords, ScoreSampler
from equipoise.audits.base import Answer, Audit, Step
from equipoise.audits.standing import Standing
from equipoise.errors import InvalidInput, ProtocolError, require_kind
from equipoise.evidence.observation import COIN, Observation
from equipoise.evidence.staircase import OUT
from equipoise.evidence.weighing import Weighing
from equipoise.evidence.wrong_answers import Levels, WrongAnswers
from equipoise.finding import Finding
from equipoise.free_check import bands_from_past, free_verdict
from equipoise.history.past import Past
from equipoise.levels import PAST_SHARE, ErrorBudget
from equipoise.question import Costs, Question, ScoreRecord, Ticket, Verdict, Want

__all__ = ["AdaptiveAudit"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

DOUBT = 1.2  # labels grow by this factor between two looks at whether they can decide at all

ANSWERED = ("told", "withdrawn")
_COPIED = ("_adjusted", "_finding", "_issued", "_next_doubt", "_numbers", "_open", "_order")


class AdaptiveAudit(Audit):
    """Label denied people only, each label for every rate; stop when a wrong answer is refuted.

    The verdict is wrong with probability at most the question's, for every population, however
    groups are chosen and whenever outcomes arrive; `docs/guarantees.md` has the proof.

    Parameters
    ----------
    history, question, costs, budget
        As for every audit. An unlimited past (``history.exact``) or finite ones.
    free_share
        Share of the error level spent on finite past data.
    assist
        Look before asking: everybody welcome counts as an observation, and scores or prices, given
        to :meth:`ask`, say whose label is asked for. The guarantee is the same for every score.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> from equipoise.simulation import run
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.5), "B": (0.1, 0.1, 0.8, 0.4)})
    >>> audit = AdaptiveAudit(world.past(), Question(gamma=0.05), Costs())
    >>> run(audit, world, 0).verdict
    <Verdict.UNFAIR: 'UNFAIR'>
    """

    name: ClassVar[str] = "adaptive"
    looks_at_approved: ClassVar[bool] = False
    correctable = True
    takes_unknown: ClassVar[bool] = True

    def __init__(
        self,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        budget: float | None = None,
        free_share: float = PAST_SHARE,
        assist: Assist | None = None,
    ) -> None:
        super().__init__(history, question, costs, budget=budget)
        self._budget = ErrorBudget.of_audit(
            question, len(history.cells), exact=history.exact, past_share=free_share
        )
        self._groups = history.cells.groups
        self._index = {group: i for i, group in enumerate(self._groups)}
        self._numbers: dict[int, int] = {}  # the evidence's number of each request, by ticket
        self._concluded: str | None = None
        self._weighs_later = False  # in a replay
        self._bands = bands_from_past(history, question.metric, self._budget.past_intervals)
        if assist is not None:
            require_kind("assist", assist, Assist, "an Assist, such as Assist(), or None")
        self.assist = assist
        # With prices of people: going on when money comes back would prefer the cheap.
        self.closes_for_good = assist is not None and assist.max_price is not None
        self._sampler: ScoreSampler | None = None
        if assist is not None:
            assist.require_label_cost(max(costs.of(group).label for group in self._groups))
            self._sampler = ScoreSampler(
                assist, [costs.of(group).feature for group in self._groups]
            )
            self._seed = secrets.randbits(128) if assist.seed is None else assist.seed
        self._weighing: Weighing | None = None
        # Exact past data never blur it all, unless outcomes of the approved are not known.
        self._may_blur = not history.exact or self.cells.unknown > 0
        self._next_doubt = 20.0 if self._may_blur else np.inf
        free = free_verdict(history, question, self._budget)
        if free is not Verdict.INCONCLUSIVE:
            self._finding = self._report(
                free, "the past data alone decide, whatever the denied would have done"
            )
        elif not self._labels_help():
            self._finding = self._report(
                Verdict.INCONCLUSIVE,
                f"{question.metric.replace('_', ' ')} does not depend on what the denied would "
                "have done, and the past data are too few to decide",
                missing=("more past rows",),
            )
        else:
            self._weighing = self._start()
            self._take_random_accepts()

    @property
    def evidence(self) -> Weighing | None:
        """What the labels so far have refuted; None where no label is needed."""
        return self._weighing

    @property
    def shares(self) -> dict[str, float]:
        """Planned share of the labels per group."""
        if self._weighing is None:
            return dict.fromkeys(self._groups, 0.0)
        return dict(zip(self._groups, self._weighing.shares.tolist(), strict=True))

    def conclude(self, why: str = "nobody else is to come") -> Finding:
        """Say that nobody else will come; return the finding that the evidence so far supports."""
        if self._finding is None:
            self._concluded = why
        return super().conclude(why)

    def correct(self, ticket: Ticket, outcome: object) -> None:
        """Replace an outcome that was told, or bring one after the request was withdrawn.

        The label's own factor changes and nothing else. The first may lower the evidence and
        take a verdict back; the second only adds to it.
        """
        number = self._numbers.get(ticket.number)
        if number is None or ticket.number in self._open:
            raise ProtocolError(f"ticket {ticket} has no answer yet; tell it")
        if ticket.want is Want.SCORE_ONLY:
            raise ProtocolError(f"ticket {ticket} was not asked for its label")
        label = self._bit("outcome", outcome)
        weighing, spending = self._evidence(), self._spending[ticket.group]
        more = (label == 0) - (weighing.outcome(number) == 0)
        spending.failures += more
        spending.adjustment += more * self._extra(ticket)
        spending.adjustment -= self._adjusted.pop(ticket.number, 0.0)
        if self._sampler is not None and ticket.score_record is not None:
            index, score = self._index[ticket.group], _as_number(ticket.score_record.score)
            self._sampler.relearn(index, number, score, label)
        weighing.note(number, label)
        if not self._weighs_later:
            self._after_corrections()

    def restore(self, log: Sequence[Step]) -> None:
        """Take in the log of another audit of this kind, to be where that one is.

        Labels are weighed together up to the next plan, because nothing follows from one of them
        alone unless it decides; a stretch in which one may have decided is taken one by one.
        """
        start = 0
        if self._weighing is not None and not self._weighing.takes_coins_only:
            super().restore(log)
            return
        while start < len(log):
            stop = self._end_of_stretch(log, start)
            steps, start = log[start:stop], stop
            if len(steps) == 1 or (self._finding is not None and steps[0].kind != "corrected"):
                super().restore(steps)
            elif self._finding is None:
                self._replay_undecided(steps)
            else:
                self._replay_unweighed(steps)
                self._after_corrections()

    # -- many labels at once --------------------------------------------------------------------

    # A simulation may label all the people at once whom ask and tell would label one by one until
    # the plan changes: choose_block says of which groups they are, count_block counts them.

    def choose_block(self, arrivals: Array, most: int | None, rng: np.random.Generator) -> Ints:
        """Return the groups, by position, of the people to label until the plan changes.

        It is for an audit under way, without a budget and with no label out.

        Parameters
        ----------
        arrivals
            How often a denied person of each group comes, in the order of the past data's groups.
        most
            At most so many people; None without a limit.
        """
        if self._finding is not None or self._open or self.budget is not None:
            raise ProtocolError(
                "labels come in blocks only to an audit that goes on, has no budget and waits for "
                "no label; use ask and tell"
            )
        weighing = self._evidence()
        # A doubt that is due waits for a label, which somebody has to come for.
        until_doubt = max(np.ceil(self._next_doubt - weighing.told.sum()), 1e-9)
        count = min(weighing.labels_until_change, until_doubt)
        return weighing.choose(arrivals, count if most is None else min(count, most), rng)

    def count_block(
        self,
        groups: Ints,
        outcomes: Ints,
        scores: Array | None = None,
        prices: Array | None = None,
        draws: Array | None = None,
    ) -> int:
        """Count the outcomes of chosen people; return how many were needed for the finding.

        An audit that looks wants everybody's score, price and draw as well, NaN for none; outcomes
        of people who turn out not to be asked are not read.
        """
        weighing = self._evidence()
        if self._sampler is None or self.assist is None:
            asked, extra = np.ones(len(groups), dtype=bool), np.zeros(len(groups))
            taken = weighing.count_block(groups, outcomes)
        else:
            if scores is None or prices is None or draws is None:
                raise InvalidInput("an audit that looks needs 'scores', 'prices' and 'draws'")
            if self.assist is not None and not np.isnan(prices).all():
                self.assist.require_price(float(np.nanmin(prices)))
                self.assist.require_price(float(np.nanmax(prices)))
            labels = np.array([self.costs.of(group).label for group in self._groups])[groups]
            prices = np.where(np.isnan(prices), labels, prices)
            records = self._sampler.sample(groups, scores, prices, draws)
            asked, extra = records.asked, prices - labels
            outcomes = np.where(asked, outcomes, 0)
            self._sampler.remember(groups, records)
            numbers = weighing.next_number + np.arange(len(groups))
            self._sampler.learn(groups, numbers, records, outcomes)
            taken = weighing.count_block(groups, outcomes, records.ends())
        groups, outcomes, asked = groups[:taken], outcomes[:taken], asked[:taken]
        for group, spending in self._spending.items():
            mine = groups == self._index[group]
            failed = mine & asked & (outcomes == 0)
            spending.labels += int((mine & asked).sum())
            spending.features += int((mine & ~asked).sum())
            spending.failures += int(failed.sum())
            spending.adjustment += float(extra[:taken][failed].sum())
        if taken and asked[-1]:
            self._finding = self._after_labels()
        return taken

    # -- a replay -------------------------------------------------------------------------------

    def _end_of_stretch(self, log: Sequence[Step], start: int) -> int:
        """Return where a plan, or a doubt, is due at the earliest; after a verdict none ever is."""
        kinds = [step.kind for step in log[start:]]
        if self._finding is not None:
            alike = [(kind == "corrected") == (kinds[0] == "corrected") for kind in kinds]
            return start + (alike.index(False) if False in alike else len(kinds))
        weighing = self._evidence()
        left = min(weighing.labels_until_change, np.ceil(self._next_doubt - weighing.told.sum()))
        for stop, kind in enumerate(kinds, start=start + 1):
            left -= kind != "asked"
            if left <= 0 and kind in ANSWERED:
                return stop
        return len(log)

    def _replay_undecided(self, steps: Sequence[Step]) -> None:
        before = {name: copy(getattr(self, name)) for name in _COPIED}
        before |= {name: deepcopy(getattr(self, name)) for name in ("_spending", "_weighing")}
        self._replay_unweighed(steps)
        weighing, answered = self._evidence(), steps[-1].kind in ANSWERED
        verdict = weighing.go_on() if answered else weighing.weigh()
        doubted = verdict is None and answered and self._after_labels() is not None
        if self._finding is not None or verdict is not None or doubted:
            vars(self).update(before)
            super().restore(steps)

    def _replay_unweighed(self, steps: Sequence[Step]) -> None:
        self._weighs_later = True
        try:
            super().restore(steps)
        finally:
            self._weighs_later = False

    # -- the protocol's inside ------------------------------------------------------------------

    def _wants(self, group: str, decision: int) -> Want:
        if decision == 1 or self._weighing is None:
            return Want.NOTHING
        index = self._index[group]
        welcome = self._weighing.eligible()[index] and group not in self._closed
        return Want.LABEL if welcome else Want.NOTHING

    def _book_request(self, ticket: Ticket) -> None:
        super()._book_request(ticket)
        index, record = self._index[ticket.group], ticket.score_record
        observation = COIN
        if self._sampler is not None and record is not None:
            if record.pi < 1.0:
                observation = Observation(record.m, record.pi, asked=record.asked)
            self._sampler.remember(np.array([index]), ScoreRecords.of(record))
        self._numbers[ticket.number] = self._evidence().request(index, observation)

    def _take_in(self, answer: Answer) -> None:
        while self._order and self._order[0].number not in self._open:
            self._order.popleft()
        weighing, number = self._evidence(), self._numbers[answer.ticket.number]
        record = answer.ticket.score_record
        if self._sampler is not None and record is not None and answer.outcome is not None:
            group = np.array([self._index[answer.ticket.group]])
            told = np.array([number]), ScoreRecords.of(record), np.array([answer.outcome])
            self._sampler.learn(group, *told)
        weighing.note(number, OUT if answer.outcome is None else answer.outcome)
        if self._weighs_later:
            return
        weighing.go_on()
        if self._finding is None:
            self._finding = self._after_labels()

    def _learn(self, answer: Answer) -> Finding | None:
        raise NotImplementedError("answers are weighed as they come")

    def _after_corrections(self) -> None:
        weighing = self._evidence()
        verdict = weighing.weigh()
        self._finding = None if verdict is None else self._decided(verdict)
        if self._finding is None and self._concluded is not None:
            self._finding = self._conclude(self._concluded)
        if self._finding is None:
            self._give_up_if_broke()

    def _after_labels(self) -> Finding | None:
        weighing = self._evidence()
        if weighing.verdict is not None:
            return self._decided(weighing.verdict)
        if weighing.told.sum() >= self._next_doubt or self._finding is not None:
            self._next_doubt = max(self._next_doubt, DOUBT * weighing.told.sum())
            if self._may_blur and weighing.is_hopeless(
                *np.array(list(self._standing.boxes().values())).T
            ):
                few = "of too few approved people the outcome is known"
                why = few if self.cells.unknown else "the past data are too few"
                return self._conclude(f"{why} for any number of labels to decide")
        return None

    def _least_hold(self) -> float:
        if self._weighing is None:
            return super()._least_hold()
        welcome = [
            self._worst_cost(group, 0, Want.LABEL)
            for group, eligible in zip(self._groups, self._weighing.eligible(), strict=True)
            if eligible and group not in self._closed
        ]
        return min(welcome, default=np.inf)

    # -- looking before asking ------------------------------------------------------------------

    def _score_record(
        self,
        group: str,
        number: int,
        score: float | None,
        price: float | None,
        version: str,
        draw: float | None,
    ) -> ScoreRecord | None:
        if self._sampler is None:
            return None
        index = self._index[group]
        cost = self.costs.of(group).label if price is None else float(price)
        if draw is None:  # by the number, so that a replayed audit does not draw it again
            draw = np.random.default_rng([self._seed, number]).random()
        drawn = float(draw)
        seen = (np.array([x]) for x in (_as_number(score), cost, drawn))
        records = self._sampler.sample(np.array([index]), *seen)
        sizing = self._evidence().sizings[index]
        low, high = (0.0, 1.0) if sizing is None else (sizing.low, sizing.high)
        given = None if score is None else float(score)
        m, pi = float(records.m[0]), float(records.pi[0])
        return ScoreRecord(given, version, cost, m, pi, low, high, drawn)

    def _worst_cost(
        self, group: str, decision: int, want: Want, record: ScoreRecord | None = None
    ) -> float:
        """Return the most that a request may cost; before anything is read, the largest price."""
        cost = super()._worst_cost(group, decision, want, record)
        if record is not None or want is not Want.LABEL or decision == 1:
            return cost
        most = None if self.assist is None else self.assist.max_price
        return cost if most is None else self.costs.of(group).feature + most

    def _conclude(self, why: str) -> Finding:
        return self._report(
            Verdict.INCONCLUSIVE, why, missing=self._standing.what_is_missing(len(self._open))
        )

    # -- statistics -----------------------------------------------------------------------------

    def _start(self) -> Weighing:
        question, budget = self.question, self._budget
        per_group = [self.costs.of(group) for group in self._groups]
        wrong = WrongAnswers.of(
            bands_from_past(self.history, question.metric, budget.past_fair),
            self._bands,
            question.gamma,
            question.epsilon,
            Levels(budget.evidence_fair, budget.evidence_unfair),
            compare=question.comparison,
        )
        return Weighing(
            wrong,
            np.array([c.feature for c in per_group]),
            np.array([c.label for c in per_group]),
            np.array([self._standing.is_reachable(group) for group in self._groups]),
            sizer=self._sampler,
        )

    def _take_random_accepts(self) -> None:
        """Weigh the outcomes of a test programme first, at no cost.

        Given their counts they are independent coins, so they are taken in a random order, the
        same for the same counts; in the order of a file sorted by outcome they would refute at
        once what is true.
        """
        rows = np.array(
            [c.random_accepts or (0, 0, 0) for c in self.cells.values()], dtype=np.int64
        )
        groups = np.repeat(np.arange(len(rows)), rows.sum(axis=1))
        outcomes = np.concatenate([np.repeat([1, 0, OUT], row) for row in rows])
        order = np.random.default_rng(rows.ravel()).permutation(len(groups))
        groups, outcomes = groups[order], outcomes[order]
        weighing, at = self._evidence(), 0
        while at < len(groups) and self._finding is None:
            until = at + int(weighing.labels_until_change)
            if weighing.counted < at or OUT in outcomes[at:until]:
                weighing.tell(weighing.request(int(groups[at])), int(outcomes[at]))
                at += 1
            else:
                at += weighing.count_block(groups[at:until], outcomes[at:until])
            self._finding = self._after_labels()

    def _evidence(self) -> Weighing:
        assert self._weighing is not None
        return self._weighing

    def _labels_help(self) -> bool:
        return any(self._standing.is_reachable(group) for group in self._groups)

    # -- the finding ----------------------------------------------------------------------------

    def _decided(self, verdict: Verdict) -> Finding:
        noun = self.question.comparison.noun
        reason = (
            f"every population with a {noun} above {self.question.threshold:.10g} is refuted"
            if verdict is Verdict.FAIR
            else f"every population with a {noun} of at most {self.question.gamma:g} is refuted"
        )
        return self._report(verdict, reason)

    def _report(self, verdict: Verdict, reason: str, missing: tuple[str, ...] = ()) -> Finding:
        return self._standing.report(
            verdict, reason, missing, cost=self.cost, labels=self.labels, score_only=self.features
        )

    @property
    def _standing(self) -> Standing:
        return Standing(self.history, self.question, self._budget, self._bands, self._weighing)


def _as_number(score: float | None) -> float:
    return np.nan if score is None else float(score)
