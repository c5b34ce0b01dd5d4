"""The adaptive audit: weigh every label when it comes, stop when a wrong answer is refuted.

Both answers, FAIR and UNFAIR, are treated alike. :class:`~equipoise.audits.design.AuditDesign` says
which populations would make each of them wrong, :class:`~equipoise.evidence.evidence.Evidence`
collects bets against these populations, and the audit here keeps the two in step with the people
who arrive: it asks for labels where the evidence plans them, records answers, and ends when one of
the two wrong answers is refuted.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.audits.adaptive_finding import (
    contradicts_interval,
    denied_success_intervals,
    describe_missing,
    make_finding,
)
from equipoise.audits.base import Audit, CorrectionCounts, RandomAcceptCounts, Step
from equipoise.audits.design import AuditDesign
from equipoise.audits.replay import Replayer
from equipoise.audits.scores import Assist, ScoreRecords, ScoreSampler, sample_block
from equipoise.errors import InvalidInput, ProtocolError, UnknownName, require_kind
from equipoise.evidence.evidence import Evidence
from equipoise.evidence.intervals import rough_ranges, success_estimates
from equipoise.evidence.observation import LABEL, BetScale
from equipoise.evidence.request_log import UNKNOWN
from equipoise.finding import Finding, Interval
from equipoise.free_check import CheckInputs, free_verdict
from equipoise.history.past import Past
from equipoise.protocol import ScoreRecord, Ticket, Want
from equipoise.question import Costs, Question, Verdict

FIRST_RECHECK = 20  # labels before the first check whether any number of them can decide; from
# then on there is one with every plan
GIVE_UP_LABELS = 30  # of every group, before a rough guess of the unknowns ends an audit
GIVE_UP_ERRORS = 1.0  # standard errors of the labels that such a guess allows for
GIVE_UP_PRECISION = 0.5  # labels are so precise, in errors of the past, that it limits the audit …
GIVE_UP_FACTOR = 16.0  # … and it ends if so many times as many labels would not decide
NO_LABELS_LEFT = 1e-9  # in place of 0 labels, so that a block has one person at least


class AdaptiveAudit(Audit):
    """Ask for labels of denied people only, and stop as soon as a wrong answer is refuted.

    The verdict is wrong with probability at most the question's, for every population, however
    groups are chosen and whenever outcomes arrive; `docs/understand/guarantees.md` has the proof.

    Parameters
    ----------
    history, question, costs, budget
        As for every audit; the past may be unlimited (``history.exact``) or finite.
    assist
        If given, everybody whose label would be welcome counts as an observation, and their score
        or price, given to :meth:`ask`, decides by a recorded draw whether the label is asked for.
        The guarantee is the same for every score.
    give_up
        ``"early"`` ends the audit INCONCLUSIVE once, at the estimates so far, its past data leave
        both answers possible however many labels come. ``"never"`` goes on with the same evidence.

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
    wants_approved: ClassVar[bool] = False
    correctable = True

    def __init__(
        self,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        budget: float | None = None,
        assist: Assist | None = None,
        give_up: Literal["early", "never"] = "early",
    ) -> None:
        super().__init__(history, question, costs, budget=budget)
        if give_up not in ("early", "never"):
            raise UnknownName("'give_up'", give_up, ("early", "never"))
        self.give_up = give_up
        """When the audit ends because its past data cannot decide."""
        self._design = AuditDesign(history, question)
        self.groups = self._design.groups
        """The groups in the order that the evidence knows them by: that of their past counts."""
        self._group_positions = {group: i for i, group in enumerate(self.groups)}
        # The evidence numbers its requests itself: its number by the number of the ticket.
        self._request_numbers: dict[int, int] = {}
        self._prices = self._design.prices(costs)  # rows: of a request, of a label with outcome 0
        self.assist = assist
        self._samplers: list[ScoreSampler] = []  # one per group, empty without assist
        if assist is not None:
            self._begin_sampling(assist)
        self._random_accepts = self._design.random_accept_counts
        self._has_late_answers = False  # whether answers came after the audit ended
        self._late_finding: Finding | None = None  # by all of them; None if it is out of date
        self.evidence: Evidence | None = None
        """What the labels so far have refuted; None where no label is needed."""
        # With an exact past labels decide in the end, unless outcomes of the approved are unknown.
        always_decidable = history.exact and not self.cells.unknown
        self._next_recheck = np.inf if always_decidable else float(FIRST_RECHECK)
        # Past rows that are evidence may refute a wrong answer before the first label. The free
        # check rests on bands. Then it has no share of the error probability, and is not asked.
        evidence = self._begin_evidence() if self._design.weighs_past_rows else None
        self._finding = self._finding_without_labels(evidence)
        if self._finding is None:
            self._begin_labels(evidence or self._begin_evidence())

    def _begin_sampling(self, assist: Assist) -> None:
        require_kind("assist", assist, Assist, "an Assist, such as Assist(), or None")
        request_prices, label_prices = self._prices
        assist.require_label_cost(float(label_prices.max()))
        self._samplers = [ScoreSampler(assist, price) for price in request_prices.tolist()]
        self._seed = secrets.randbits(128) if assist.seed is None else assist.seed

    def _begin_evidence(self) -> Evidence:
        return Evidence(
            self._design.wrong_answers(),
            self._prices,
            self._design.reachable,
            self._fit_sampling_rules if self._samplers else None,
        )

    def _begin_labels(self, evidence: Evidence) -> None:
        self.evidence = evidence
        counts = self._design.label_counts(self._random_accepts)
        if counts.any():  # else what was found in past rows would be forgotten
            evidence.set_random_accepts(counts)
        # The labels of a test programme may decide before anybody is asked.
        self._examine_evidence()

    def _finding_without_labels(self, evidence: Evidence | None) -> Finding | None:
        """Return the answer if the past data decide, or if no label could; else None.

        ``evidence`` is that of past rows; None where they are not weighed together with labels.
        """
        if evidence is not None:  # the first look at the boxes
            free = evidence.advance(replan=False) or Verdict.INCONCLUSIVE
        else:
            free = free_verdict(CheckInputs(self.history), self.question, self._design.budget)
        if free is not Verdict.INCONCLUSIVE:
            return self._make_finding(
                free, "the past data alone decide, whatever the denied would have done"
            )
        if self._design.reachable.any():
            return None
        return self._make_finding(
            Verdict.INCONCLUSIVE,
            f"{self.question.metric.replace('_', ' ')} does not depend on what the denied would "
            "have done, and the past data are too few to decide",
            missing=("more past rows",),
        )

    @property
    def finding(self) -> Finding | None:
        """The answer, or None while the audit goes on.

        FAIR and UNFAIR are final unless an outcome is corrected; ranges, best guesses and cost
        follow outcomes that come after the answer. After INCONCLUSIVE, which is no verdict, they
        may bring one.
        """
        if self._finding is None or not self._has_late_answers:
            return self._finding
        # Computed only when somebody reads it: many answers may come before that.
        if self._late_finding is None:
            self._late_finding = self._find_with_late_answers(self._finding.reason)
        return self._late_finding

    def _find_with_late_answers(self, reason: str) -> Finding:
        """Return the finding by all answers so far; ``reason`` is why the audit ended."""
        verdict = self._require_evidence().verdict
        if verdict is None:
            return self._conclude(reason)
        return self._report_verdict(verdict)

    def _note_late_answer(self) -> None:
        self._has_late_answers = True
        self._late_finding = None

    def correct(self, ticket: Ticket, outcome: object) -> None:
        """Replace an outcome that was told, or bring one after the request was withdrawn.

        The label's own factor changes and nothing else. A replaced outcome may lower the evidence
        and take a verdict back; one after a withdrawal only adds to it.
        """
        self._apply(Step("corrected", ticket, self._parse_bit("outcome", outcome)))

    def replay(self, log: Sequence[Step], stops: Collection[int] = ()) -> Iterator[int]:
        """Apply a log; yield the number of steps applied, after each number of ``stops``.

        :class:`~equipoise.audits.replay.Replayer` looks at the evidence as seldom as it can.
        """
        return Replayer(self, log).replay(stops)

    def set_random_accepts(
        self,
        random_accepts: RandomAcceptCounts,
        corrected: CorrectionCounts = None,
        *,
        dry_run: bool = False,
    ) -> dict[str, list[int]]:
        """Count a later file of the test programme whose labels are in the past data.

        Null cells, stakes and bets stay those of the past data at the beginning; the file brings
        labels only, as one block. It must list everybody whom the programme accepted since its
        first day up to one last day for all groups, whether the outcome is known or not.

        Parameters
        ----------
        random_accepts
            Good, bad and unknown outcomes per group; a group that is left out has none.
        corrected
            How many outcomes per group were corrected since the last file. Good or bad outcomes
            may be fewer by that number; the number of people never shrinks.
        dry_run
            Only return what would be counted: the counts of all groups.

        Raises
        ------
        InvalidInput
            If somebody is missing who was in the last file.
        """
        corrections = corrected or {}
        self._require_known_groups("random_accepts", random_accepts)
        self._require_known_groups("corrected", corrections)
        new_counts = {}
        for group, last_counts in self._random_accepts.items():
            counts = random_accepts.get(group, (0, 0, 0))
            n_corrected = corrections.get(group, 0)
            _require_counts(group, counts, n_corrected)
            _require_everybody_listed(group, counts, last_counts, n_corrected)
            new_counts[group] = list(counts)
        # All groups are checked before anything changes, so a file that is refused changes nothing.
        if not dry_run:
            self._random_accepts = new_counts
            if self.evidence is not None:
                self.evidence.set_random_accepts(self._design.label_counts(new_counts))
                # A corrected outcome in the file may take a verdict back.
                self._reopen()
                self._examine_evidence()
        return new_counts

    def _require_known_groups(self, name: str, by_group: Mapping[str, object]) -> None:
        require_kind(name, by_group, Mapping, "a mapping of groups to counts")
        for group in by_group:
            if group not in self.cells:
                raise UnknownName(f"group in {name!r}", group, self.cells.groups)

    def wanted_groups(self) -> tuple[str, ...]:
        """Return the groups whose next denied person would be asked for; none after the end."""
        if self.evidence is None or self._finding is not None:
            return ()
        eligible = self.evidence.plan.eligible()
        return tuple(
            group
            for group, is_eligible in zip(self.groups, eligible, strict=True)
            if is_eligible and group not in self.closed
        )

    # -- many labels at once --------------------------------------------------------------------

    # A simulation may label all the people at once whom ask and tell would label one by one until
    # the plan changes: choose_block says of which groups they are, count_block counts them.

    def choose_block(
        self, arrivals: Array, max_people: int | None, rng: np.random.Generator
    ) -> Ints:
        """Return the groups, by position, of the people to label until the plan changes.

        It is for an audit under way, without a budget and with no label pending.

        Parameters
        ----------
        arrivals
            How often a denied person of each group comes, in the order of :attr:`groups`.
        max_people
            The largest number of people; None for no limit.
        """
        if self._finding is not None or self._open_tickets or self.budget is not None:
            raise ProtocolError(
                "labels come in blocks only to an audit that goes on, has no budget and waits for "
                "no label; use ask and tell"
            )
        evidence = self._require_evidence()
        # People of a block are chosen by one plan, so a block ends where a plan or a check is due.
        # Even if the check is due, it is made only after a label, so somebody must be labelled.
        until_recheck = np.ceil(self._next_recheck - evidence.log.n_told.sum())
        count = min(evidence.plan.labels_until_plan, max(until_recheck, NO_LABELS_LEFT))
        if max_people is not None:
            count = min(count, max_people)
        return evidence.plan.choose(arrivals, count, rng)

    def count_block(
        self,
        groups: Ints,
        outcomes: Ints,
        scores: Array | None = None,
        prices: Array | None = None,
        draws: Array | None = None,
    ) -> int:
        """Count the outcomes of chosen people; return how many were needed for the finding.

        All arrays have one entry per person. With ``assist`` everybody's score, price and draw are
        needed as well, NaN for none; outcomes of people who turn out not to be asked are not read.
        """
        is_label_asked = np.ones(len(groups), dtype=bool)
        extra_prices = np.zeros(len(groups))
        observation_ends = None
        if self.assist is not None:
            if scores is None or prices is None or draws is None:
                raise InvalidInput("an audit with 'assist' needs 'scores', 'prices' and 'draws'")
            label_prices = self._prices[1][groups]
            prices = self.assist.fill_prices(prices, label_prices)
            extra_prices = prices - label_prices
            first_number = self._require_evidence().log.n_requests
            is_label_asked, observation_ends = sample_block(
                self._samplers, groups, outcomes, scores, prices, draws, first_number=first_number
            )
            # The outcomes of people who are not asked stay unknown. Their observation has the same
            # value for both outcomes, so 0 stands for either.
            outcomes = np.where(is_label_asked, outcomes, 0)
        n_needed = self._require_evidence().record_block(groups, outcomes, observation_ends)
        needed = slice(n_needed)  # people after the one who decides are not paid for
        self._account.record_block(
            self.groups,
            groups[needed],
            outcomes[needed],
            is_label_asked[needed],
            extra_prices[needed],
        )
        # As with ask and tell, the evidence is examined after labels only (guarantees, 3.16).
        if n_needed and is_label_asked[n_needed - 1]:
            self._examine_evidence()
        return n_needed

    # -- steps of the protocol ------------------------------------------------------------------

    def _choose_want(self, group: str, decision: int) -> Want:
        # Only the outcomes of the denied are unknown, so a label of an approved person would not
        # move the evidence (guarantees, 3.12).
        if decision == 1 or self.evidence is None or group in self.closed:
            return Want.NOTHING
        is_welcome = self.evidence.plan.eligible()[self._group_positions[group]]
        return Want.LABEL if is_welcome else Want.NOTHING

    def _apply(self, step: Step) -> None:
        if step.kind == "corrected":
            self._apply_correction(step, examine=True)
        else:
            self._apply_batch([step], examine=True)

    def _apply_batch(self, steps: Sequence[Step], *, examine: bool) -> None:
        """Apply requests and first answers together.

        The evidence is examined after answers if a plan or a check is due, or if ``examine`` says
        so. A person of whom nothing is wanted comes in a batch alone.
        """
        # The account refuses a step that may not be, so it goes before the evidence changes.
        for step in steps:
            self._record_spending(step)
        tickets = [step.ticket for step in steps if step.kind == "asked"]
        answers = [step for step in steps if step.kind != "asked"]
        # Requests go first: within a batch a person is asked before their answer comes.
        if tickets and tickets[0].want is not Want.NOTHING:
            self._request_labels(tickets)
        if answers:
            self._record_answers(answers)
            self._follow_answers(examine=examine)

    def _follow_answers(self, *, examine: bool) -> None:
        """Let recorded answers change the plan and end the audit."""
        if examine or self._labels_until_due() <= 0.0:
            self._examine_evidence()
        if self._finding is None:
            self._conclude_if_broke()

    def _labels_until_due(self) -> float:
        """Return how many labels are still to be told before a plan or a check is due."""
        if self.evidence is None:
            return np.inf
        next_due = float(self.evidence.plan.next_plan)
        if self._finding is None:  # an audit that has ended is not checked any more
            next_due = min(next_due, self._next_recheck)
        return next_due - float(self.evidence.log.n_told.sum())

    def _request_labels(self, tickets: Sequence[Ticket]) -> None:
        groups = np.array([self._group_positions[t.group] for t in tickets], dtype=np.intp)
        observation_ends = None
        if self._samplers:
            (ticket,) = tickets  # where scores assist, people come one by one
            records = ScoreRecords.from_record(ticket.score_record)
            self._samplers[groups[0]].remember(records)
            observation_ends = records.observation_ends()
        numbers = self._require_evidence().request(groups, observation_ends).tolist()
        for ticket, number in zip(tickets, numbers, strict=True):
            self._request_numbers[ticket.number] = number

    def _numbers_of(self, answers: Sequence[Step]) -> Ints:
        """Return the numbers that the evidence gave to the requests answered."""
        return np.array([self._request_numbers[step.ticket.number] for step in answers])

    def _record_answers(self, answers: Sequence[Step]) -> None:
        numbers = self._numbers_of(answers)
        outcomes = np.array([UNKNOWN if s.outcome is None else s.outcome for s in answers])
        if self._samplers and answers[0].outcome is not None:
            ticket = answers[0].ticket  # the only one: where scores assist, people come one by one
            records = ScoreRecords.from_record(ticket.score_record)
            self._samplers[self._group_positions[ticket.group]].learn(numbers, records, outcomes)
        self._require_evidence().record(numbers, outcomes)

    def _apply_correction(self, step: Step, *, examine: bool, more_follow: bool = False) -> None:
        """Apply a correction; ``more_follow`` leaves the examination to the last of a run."""
        ticket = step.ticket
        outcome = step.outcome
        self._require_answered(ticket)
        assert outcome is not None
        evidence = self._require_evidence()
        number = self._request_numbers[ticket.number]
        # Read before the evidence records the new outcome in its place.
        was_failure = evidence.log.outcomes[number] == 0
        self._account.correct(ticket, was_failure=was_failure, outcome=outcome)
        if self._samplers and ticket.score_record is not None:
            sampler = self._samplers[self._group_positions[ticket.group]]
            sampler.relearn(number, ticket.score_record.score, outcome)
        evidence.record(np.array([number]), np.array([outcome]))
        # A correction may lower the evidence and so take a verdict back: the audit is open again,
        # and whatever ended it has to do so once more.
        if not more_follow and (examine or self._finding is not None):
            self._reopen()
            verdict = evidence.advance(replan=False)
            if verdict is not None:
                self._finding = self._report_verdict(verdict)
            self._conclude_if_told_to()
            if self._finding is None:
                self._conclude_if_broke()

    def _require_answered(self, ticket: Ticket) -> None:
        if ticket.number not in self._request_numbers or ticket.number in self._open_tickets:
            raise ProtocolError(f"ticket {ticket} has no answer yet; tell it")
        if ticket.want is Want.SCORE_ONLY:
            raise ProtocolError(f"ticket {ticket} was not asked for its label")

    def _examine_evidence(self) -> None:
        """Look at the evidence; now and then, check whether any number of labels can decide."""
        evidence = self._require_evidence()
        evidence.advance()
        # After the audit has ended, outcomes still come, of people who were asked before.
        if self._finding is not None:
            self._note_late_answer()
        elif evidence.verdict is not None:
            self._finding = self._report_verdict(evidence.verdict)
        elif evidence.log.n_told.sum() >= self._next_recheck:
            # With the next plan, which weighs the same cells.
            self._next_recheck = float(evidence.plan.next_plan)
            self._conclude_if_undecidable(evidence)
        self._conclude_if_told_to()

    def _conclude_if_undecidable(self, evidence: Evidence) -> None:
        if self.give_up == "never":
            return
        if (evidence.log.n_told[self._design.reachable] >= GIVE_UP_LABELS).all():
            # INCONCLUSIVE is never wrong, so a rough guess of the unknowns suffices.
            low, high = rough_ranges(evidence.log, GIVE_UP_ERRORS)
        else:
            # By few labels a rough guess would often be too narrow, and end an audit for nothing.
            intervals = denied_success_intervals(self._design, evidence).values()
            low = np.array([interval.lower for interval in intervals])
            high = np.array([interval.upper for interval in intervals])
        scarce = "the past data are too few"
        if self.cells.unknown:
            scarce = "of too few approved people the outcome is known"
        if evidence.refutation.is_undecidable(low, high):
            self._finding = self._conclude(f"{scarce} for any number of labels to decide")
        elif self._past_limits(evidence):
            reason = f"{scarce}: {GIVE_UP_FACTOR:g} times as many labels would hardly decide"
            self._finding = self._conclude(reason, limited_by_past=True)

    def _past_limits(self, evidence: Evidence) -> bool:
        """Say whether labels are far more precise than the past, and many more would not decide."""
        few = (evidence.log.n_told[self._design.reachable] < GIVE_UP_LABELS).any()
        if few or not self._design.weighs_past_rows or self.assist is not None:
            return False
        estimates = success_estimates(evidence.log)
        # Half an error on either side: the width of such a range is one standard error of r.
        low, high = rough_ranges(evidence.log, 0.5)
        answers = self._design.row_answers()
        label_error = answers.label_error_of_gap(estimates, high - low)
        if label_error > GIVE_UP_PRECISION * answers.error_of_gap(estimates):
            return False
        return not evidence.refutation.would_decide(GIVE_UP_FACTOR)

    def _conclude_if_told_to(self) -> None:
        """Conclude again, by the evidence of now, if :meth:`conclude` was called before."""
        if self._finding is None and self._conclude_reason is not None:
            self._finding = self._conclude(self._conclude_reason)

    def _reopen(self) -> None:
        """Let the audit go on: its finding may not hold any more."""
        self._finding = None
        self._has_late_answers = False

    def _smallest_hold_needed(self) -> float:
        if self.evidence is None:
            return super()._smallest_hold_needed()
        # A group whose label is not welcome now may be cheap, but it will not be asked.
        holds = []
        for group, is_eligible in zip(self.groups, self.evidence.plan.eligible(), strict=True):
            if is_eligible and group not in self.closed:
                holds.append(self._worst_cost(group, 0, Want.LABEL))
        return min(holds, default=np.inf)

    def _require_evidence(self) -> Evidence:
        assert self.evidence is not None
        return self.evidence

    def _complete_score_record(self, group: str, record: ScoreRecord) -> ScoreRecord:
        position = self._group_positions[group]
        person = ScoreRecords.from_record(record)
        sampled = self._samplers[position].sample(
            person.scores, person.prices, np.array([record.draw])
        )
        # The range of the bets was fixed at the last plan, before this person's score was read.
        # It is recorded with the person so that a verifier can check it (guarantees, 3.16).
        bet_scale = self._require_evidence().log.bet_scales[position]
        low, high = LABEL if bet_scale is None else (bet_scale.low, bet_scale.high)
        return replace(record, m=float(sampled.m[0]), pi=float(sampled.pi[0]), low=low, high=high)

    def _fit_sampling_rules(self) -> list[BetScale | None]:
        """Fit every group's sampling rule anew; return the scales of bets that go with them."""
        return [sampler.fit_rule() for sampler in self._samplers]

    # -- the finding ----------------------------------------------------------------------------

    def gap_so_far(self) -> Interval:
        """Return the range and the best guess of the gap that :meth:`so_far` states."""
        # Without what is missing for a verdict, which would take most of the time.
        finding = self.finding or self._make_finding(Verdict.INCONCLUSIVE, "")
        return Interval(finding.lower, finding.upper, finding.estimate)

    def _conclude(self, why: str, *, limited_by_past: bool = False) -> Finding:
        missing = describe_missing(
            self._design,
            self._require_evidence(),
            len(self._open_tickets),
            limited_by_past=limited_by_past,
        )
        return self._make_finding(Verdict.INCONCLUSIVE, why, missing)

    def _report_verdict(self, verdict: Verdict) -> Finding:
        scale = self.question.gap_scale
        refuted_gaps = f"of at most {scale.format_gap(self.question.gamma)}"
        if verdict is Verdict.FAIR:
            refuted_gaps = f"above {scale.format_gap(self.question.threshold, 10)}"
        if contradicts_interval(self._design, self.evidence, verdict):
            return self._conclude("the evidence and the interval of the gap contradict each other")
        return self._make_finding(verdict, f"a {scale.noun} {refuted_gaps} is ruled out")

    def _make_finding(
        self, verdict: Verdict, reason: str, missing: tuple[str, ...] = ()
    ) -> Finding:
        finding = make_finding(self._design, self.evidence, verdict, reason, missing)
        return replace(finding, cost=self.cost, labels=self.labels, score_only=self.features)


def _require_counts(group: str, counts: object, n_corrected: object) -> None:
    """Raise unless a group has three counts and one number of corrections."""
    numbers = (*counts, n_corrected) if isinstance(counts, Sequence) else ()
    # Not isinstance: True and False are whole numbers to Python, but no counts.
    if len(numbers) != 4 or any(type(n) is not int or not 0 <= n < 2**53 for n in numbers):
        raise InvalidInput(
            f"'random_accepts' of {group!r} must be three counts (good, bad, unknown), and "
            f"'corrected' one, below 2**53; got {counts!r} and {n_corrected!r}"
        )


def _require_everybody_listed(
    group: str, counts: Sequence[int], last_counts: Sequence[float], n_corrected: int
) -> None:
    """Raise if somebody of the last file is missing from the new one."""
    good, bad, unknown = last_counts
    # An unknown outcome may become good or bad, but a known one changes by a correction only. A
    # good outcome that was corrected to bad is missing among the good ones.
    largest_decrease = max(good - counts[0], bad - counts[1])
    if largest_decrease > n_corrected or sum(counts) < sum(last_counts):
        raise InvalidInput(
            f"'random_accepts' of {group!r} must list everybody of the last file "
            f"({good:g} good, {bad:g} bad, {unknown:g} unknown); got {counts[0]}, {counts[1]}, "
            f"{counts[2]}: give every group's, keep people who left as unknown and "
            "declare changes in 'corrected'"
        )
