"""The adaptive audit: weigh every label when it comes, stop when a wrong answer is refuted."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.audits.base import Audit, CorrectionCounts, RandomAcceptCounts, Step
from equipoise.audits.design import AuditDesign
from equipoise.audits.scores import Assist, ScoreRecords, ScoreSampler
from equipoise.errors import InvalidInput, ProtocolError, UnknownName, require_kind
from equipoise.evidence.evidence import PENDING, UNKNOWN, Evidence
from equipoise.evidence.observation import LABEL, BetScale
from equipoise.finding import Finding
from equipoise.free_check import CheckInputs, free_verdict
from equipoise.history.past import Past
from equipoise.protocol import ScoreRecord, Ticket, Want
from equipoise.question import Costs, Question, Verdict

RECHECK_GROWTH = 1.2  # labels grow by this factor between two checks whether they can decide at all


class AdaptiveAudit(Audit):
    """Label denied people only, each label for every rate; stop when a wrong answer is refuted.

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
    ) -> None:
        super().__init__(history, question, costs, budget=budget)
        self._design = AuditDesign(history, question)
        self.groups = self._design.groups
        """The groups in the order that the evidence knows them by: that of their past counts."""
        self._group_positions = {group: i for i, group in enumerate(self.groups)}
        self._request_numbers: dict[
            int, int
        ] = {}  # the evidence's number of each request, by ticket
        self.assist = assist
        self._samplers: list[ScoreSampler] = []  # of each group, with assist
        prices = self._design.prices(costs)
        if assist is not None:
            require_kind("assist", assist, Assist, "an Assist, such as Assist(), or None")
            assist.require_label_cost(float(prices[1].max()))
            self._samplers = [ScoreSampler(assist, feature) for feature in prices[0].tolist()]
            self._seed = secrets.randbits(128) if assist.seed is None else assist.seed
        self._random_accepts = self._design.random_accept_counts
        self._late = False  # whether answers came since the finding was made
        self.evidence: Evidence | None = None
        """What the labels so far have refuted; None where no label is needed."""
        # With an exact past labels decide in the end, unless outcomes of the approved are unknown.
        self._next_recheck = np.inf if history.exact and not self.cells.unknown else 20.0
        free = free_verdict(CheckInputs(history), question, self._design.budget)
        if free is not Verdict.INCONCLUSIVE:
            self._finding = self._make_finding(
                free, "the past data alone decide, whatever the denied would have done"
            )
        elif not self._design.reachable.any():
            self._finding = self._make_finding(
                Verdict.INCONCLUSIVE,
                f"{question.metric.replace('_', ' ')} does not depend on what the denied would "
                "have done, and the past data are too few to decide",
                missing=("more past rows",),
            )
        else:
            wrong, rescale_bets = (
                self._design.wrong_answers(),
                self._fit_sampling_rules if self._samplers else None,
            )
            self.evidence = Evidence(wrong, prices, self._design.reachable, rescale_bets)
            self.evidence.set_random_accepts(self._design.label_counts(self._random_accepts))
            self._examine_evidence()

    @property
    def finding(self) -> Finding | None:
        """The answer, or None while the audit goes on.

        FAIR and UNFAIR are final unless an outcome is corrected; ranges, best guesses and cost
        follow outcomes that come after the answer. After INCONCLUSIVE, which is no verdict, they
        may bring one.
        """
        found, late, self._late = self._finding, self._late, False
        if late and found is not None:
            verdict = self._require_evidence().verdict
            self._finding = (
                self._report_verdict(verdict) if verdict else self._conclude(found.reason)
            )
        return self._finding

    def correct(self, ticket: Ticket, outcome: object) -> None:
        """Replace an outcome that was told, or bring one after the request was withdrawn.

        The label's own factor changes and nothing else. A replaced outcome may lower the evidence
        and take a verdict back; one after a withdrawal only adds to it.
        """
        self._apply(Step("corrected", ticket, self._parse_bit("outcome", outcome)))

    def replay(self, log: Sequence[Step], stops: Collection[int] = ()) -> Iterator[int]:
        """Take in a log; yield how many steps are taken in, after each number of ``stops``.

        The audit that wrote the log went on to its last request, so no answer before that decided.
        Up to there the evidence is weighed only where a plan or a check is due; after it answer by
        answer where those up to the next such place decide together.
        """
        asked = [at for at, step in enumerate(log, start=1) if step.kind == "asked"]
        last = max((at for at in asked if log[at - 1].ticket.want is not Want.NOTHING), default=0)
        run, left = list[Step](), self._labels_until_due()  # steps to take in together
        for at, step in enumerate(log, start=1):
            alone = step.kind == "corrected" or step.ticket.want is Want.NOTHING
            if alone and run:
                self._apply_run(run, look=at > last)
                run = []
            if alone and step.kind == "asked":
                self._choose_affordable_want(
                    step.ticket.group, step.ticket.decision
                )  # it may end the audit
            run.append(step)
            left -= step.kind == "told"
            due = left <= 0.0 and step.kind != "asked"
            if alone or due or at in (last, len(log)) or at in stops or self._samplers:
                self._apply_run(run, look=at > last)
                run, left = [], self._labels_until_due()
            if at in stops:
                yield at

    def set_random_accepts(
        self,
        random_accepts: RandomAcceptCounts,
        corrected: CorrectionCounts = None,
        *,
        dry_run: bool = False,
    ) -> dict[str, list[int]]:
        """Take in a later file of the test programme whose labels the past data told of.

        Null cells, stakes and bets stay those of the past data at the beginning; the file brings
        labels only, as one block. It must list everybody whom the programme accepted since its
        first day up to one last day for all groups, whether the outcome is known or not.

        Parameters
        ----------
        random_accepts
            Good, bad and unknown outcomes per group; a group that is left out has none.
        corrected
            Outcomes per group that were corrected since the last file: good or bad ones may be
            fewer by so many, people never.
        dry_run
            Only return what would be taken in: the counts of all groups.

        Raises
        ------
        InvalidInput
            If somebody is missing who was in the last file.
        """
        fewer_by = corrected or {}
        for name, given in (("random_accepts", random_accepts), ("corrected", fewer_by)):
            require_kind(name, given, Mapping, "a mapping of groups to counts")
            for group in given:
                if group not in self.cells:
                    raise UnknownName(f"group in {name!r}", group, self.cells.groups)
        now = {}
        for group, (good, bad, unknown) in self._random_accepts.items():
            own, changed = random_accepts.get(group, (0, 0, 0)), fewer_by.get(group, 0)
            three = isinstance(own, Sequence) and len(own) == 3
            if not three or any(type(n) is not int or not 0 <= n < 2**53 for n in (*own, changed)):
                raise InvalidInput(
                    f"'random_accepts' of {group!r} must be three counts (good, bad, unknown), and "
                    f"'corrected' one, below 2**53; got {own!r} and {changed!r}"
                )
            fewer = max(good - own[0], bad - own[1])
            if fewer > changed or sum(own) < good + bad + unknown:
                raise InvalidInput(
                    f"'random_accepts' of {group!r} must list everybody of the last file "
                    f"({good:g} good, {bad:g} bad, {unknown:g} unknown); got {own[0]}, {own[1]}, "
                    f"{own[2]}: give every group's (--of), keep people who left as unknown and "
                    "declare changes in 'corrected'"
                )
            now[group] = list(own)
        if not dry_run:
            self._random_accepts = now
            if self.evidence is not None:
                self.evidence.set_random_accepts(self._design.label_counts(now))
                self._finding = None
                self._examine_evidence()
        return now

    # -- many labels at once --------------------------------------------------------------------

    # A simulation may label all the people at once whom ask and tell would label one by one until
    # the plan changes: choose_block says of which groups they are, count_block counts them.

    def choose_block(self, arrivals: Array, most: int | None, rng: np.random.Generator) -> Ints:
        """Return the groups, by position, of the people to label until the plan changes.

        It is for an audit under way, without a budget and with no label pending.

        Parameters
        ----------
        arrivals
            How often a denied person of each group comes, in the order of :attr:`groups`.
        most
            At most so many people; None without a limit.
        """
        if self._finding is not None or self._open_tickets or self.budget is not None:
            raise ProtocolError(
                "labels come in blocks only to an audit that goes on, has no budget and waits for "
                "no label; use ask and tell"
            )
        evidence = self._require_evidence()
        # Even if the check is due, it is made only after a label, so somebody must be labelled.
        until_recheck = max(np.ceil(self._next_recheck - evidence.told.sum()), 1e-9)
        count = min(evidence.labels_until_plan, until_recheck)
        return evidence.choose(arrivals, count if most is None else min(count, most), rng)

    def count_block(
        self,
        groups: Ints,
        outcomes: Ints,
        scores: Array | None = None,
        prices: Array | None = None,
        draws: Array | None = None,
    ) -> int:
        """Count the outcomes of chosen people; return how many were needed for the finding.

        With ``assist`` everybody's score, price and draw are needed as well, NaN for none; outcomes
        of people who turn out not to be asked are not read.
        """
        evidence, count = self._require_evidence(), len(groups)
        asked, extra, ends = np.ones(count, dtype=bool), np.zeros(count), None
        if self.assist is not None:
            if scores is None or prices is None or draws is None:
                raise InvalidInput("an audit with 'assist' needs 'scores', 'prices' and 'draws'")
            if not np.isnan(prices).all():
                self.assist.require_price(float(np.nanmin(prices)))
                self.assist.require_price(float(np.nanmax(prices)))
            labels = self._design.prices(self.costs)[1][groups]
            prices, ends = np.where(np.isnan(prices), labels, prices), np.zeros((count, 2))
            numbers, extra = evidence.requests + np.arange(count), prices - labels
            for index, sampler in enumerate(self._samplers):
                own = groups == index
                records = sampler.sample(scores[own], prices[own], draws[own])
                asked[own], ends[own] = records.asked, records.ends()
                sampler.remember(records)
                sampler.learn(numbers[own], records, outcomes[own])
            outcomes = np.where(asked, outcomes, 0)
        taken = evidence.record_block(groups, outcomes, ends)
        groups, outcomes, asked = groups[:taken], outcomes[:taken], asked[:taken]
        for group, spending in self.spending.items():
            mine = groups == self._group_positions[group]
            failed = mine & asked & (outcomes == 0)
            spending.labels += int((mine & asked).sum())
            spending.features += int((mine & ~asked).sum())
            spending.failures += int(failed.sum())
            spending.adjustment += float(extra[:taken][failed].sum())
        if taken and asked[-1]:
            self._examine_evidence()
        return taken

    # -- steps of the protocol ------------------------------------------------------------------

    def _choose_want(self, group: str, decision: int) -> Want:
        if decision == 1 or self.evidence is None:
            return Want.NOTHING
        index = self._group_positions[group]
        welcome = self.evidence.eligible()[index] and group not in self.closed
        return Want.LABEL if welcome else Want.NOTHING

    def _apply(self, step: Step) -> None:
        self._apply_run([step], look=True)

    def _apply_run(self, steps: Sequence[Step], *, look: bool = False) -> None:
        """Take in requests and first answers, or one correction.

        The evidence is weighed if a plan or a check is due, or if a ``look`` is wanted. An answer
        never lowers it, so several are taken one by one only if all of them together decide.
        """
        if steps[0].kind == "corrected":
            self._apply_correction(steps[0], look=look)
            return
        together = look and len(steps) > 1 and self._finding is None
        if together and self._settle_by_all_answers(steps):
            for step in steps:
                self._apply(step)
            return
        for step in steps:
            self._record_spending(step)
        asked = [step.ticket for step in steps if step.kind == "asked"]
        answers = [step for step in steps if step.kind != "asked"]
        if asked and asked[0].want is not Want.NOTHING:  # a person of no interest is a run alone
            self._request_labels(asked)
        if answers:
            if not together:
                self._record_answers(answers)
            if look or self._labels_until_due() <= 0.0:
                self._examine_evidence()
            if self._finding is None:
                self._conclude_if_broke()

    def _settle_by_all_answers(self, answers: Sequence[Step]) -> bool:
        """Record answers; if they decide, take them back and return True."""
        for step in answers:
            self._require_open(step.ticket)
        self._record_answers(answers)
        if self._require_evidence().advance(replan=False) is None:
            return False
        numbers = np.array([self._request_numbers[step.ticket.number] for step in answers])
        self._require_evidence().record(numbers, np.full(len(numbers), PENDING))
        return True

    def _labels_until_due(self) -> float:
        """Return how many labels are still to be told before a plan or a check is due."""
        if self.evidence is None:
            return np.inf
        until = self.evidence.next_plan if self._finding is not None else self._next_recheck
        return min(self.evidence.next_plan, until) - float(self.evidence.told.sum())

    def _request_labels(self, tickets: Sequence[Ticket]) -> None:
        groups, ends = (
            np.array([self._group_positions[t.group] for t in tickets], dtype=np.intp),
            None,
        )
        if self._samplers:
            (ticket,) = tickets  # where scores assist, people come one by one
            records = ScoreRecords.of(ticket.score_record)
            self._samplers[groups[0]].remember(records)
            ends = records.ends()
        numbers = self._require_evidence().request(groups, ends).tolist()
        self._request_numbers.update(
            zip((ticket.number for ticket in tickets), numbers, strict=True)
        )

    def _record_answers(self, answers: Sequence[Step]) -> None:
        numbers = np.array([self._request_numbers[step.ticket.number] for step in answers])
        outcomes = np.array([UNKNOWN if s.outcome is None else s.outcome for s in answers])
        if self._samplers and answers[0].outcome is not None:
            ticket = answers[0].ticket
            records = ScoreRecords.of(ticket.score_record)
            self._samplers[self._group_positions[ticket.group]].learn(numbers, records, outcomes)
        self._require_evidence().record(numbers, outcomes)

    def _apply_correction(self, step: Step, *, look: bool) -> None:
        ticket, evidence = step.ticket, self._require_evidence()
        if ticket.number not in self._request_numbers or ticket.number in self._open_tickets:
            raise ProtocolError(f"ticket {ticket} has no answer yet; tell it")
        if ticket.want is Want.SCORE_ONLY:
            raise ProtocolError(f"ticket {ticket} was not asked for its label")
        assert step.outcome is not None
        spending, number = self.spending[ticket.group], self._request_numbers[ticket.number]
        more = (step.outcome == 0) - (evidence.outcomes[number] == 0)
        spending.failures += more
        spending.adjustment += more * self._extra_price(ticket)
        spending.adjustment -= self._withdrawal_adjustments.pop(ticket.number, 0.0)
        if self._samplers and (record := ticket.score_record) is not None:
            self._samplers[self._group_positions[ticket.group]].relearn(
                number, record.score, step.outcome
            )
        evidence.record(np.array([number]), np.array([step.outcome]))
        if look or self._finding is not None:
            verdict = evidence.advance(replan=False)
            self._finding = None if verdict is None else self._report_verdict(verdict)
            if self._finding is None and self._conclude_reason is not None:
                self._finding = self._conclude(self._conclude_reason)
            if self._finding is None:
                self._conclude_if_broke()

    def _examine_evidence(self) -> None:
        """Look at the evidence; now and then, check whether any number of labels can decide."""
        evidence = self._require_evidence()
        evidence.advance()
        if self._finding is not None:
            self._late = True
        elif evidence.verdict is not None:
            self._finding = self._report_verdict(evidence.verdict)
        elif evidence.told.sum() >= self._next_recheck:
            self._next_recheck = RECHECK_GROWTH * evidence.told.sum()
            low, high = np.array(
                [
                    (r.lower, r.upper)
                    for r in self._design.denied_success_intervals(evidence).values()
                ]
            ).T
            if evidence.undecidable(low, high):
                few = "of too few approved people the outcome is known"
                why = few if self.cells.unknown else "the past data are too few"
                self._finding = self._conclude(f"{why} for any number of labels to decide")
        if self._finding is None and self._conclude_reason is not None:
            self._finding = self._conclude(self._conclude_reason)

    def _smallest_hold_needed(self) -> float:
        if self.evidence is None:
            return super()._smallest_hold_needed()
        welcome = [
            self._worst_cost(group, 0, Want.LABEL)
            for group, eligible in zip(self.groups, self.evidence.eligible(), strict=True)
            if eligible and group not in self.closed
        ]
        return min(welcome, default=np.inf)

    def _require_evidence(self) -> Evidence:
        assert self.evidence is not None
        return self.evidence

    def _complete_score_record(self, group: str, record: ScoreRecord) -> ScoreRecord:
        index, one = self._group_positions[group], ScoreRecords.of(record)
        one = self._samplers[index].sample(one.scores, one.prices, np.array([record.draw]))
        bet_scale = self._require_evidence().bet_scales[index]
        low, high = LABEL if bet_scale is None else (bet_scale.low, bet_scale.high)
        return replace(record, m=float(one.m[0]), pi=float(one.pi[0]), low=low, high=high)

    def _fit_sampling_rules(self) -> list[BetScale | None]:
        return [sampler.bet_scale() for sampler in self._samplers]

    # -- the finding ----------------------------------------------------------------------------

    def _conclude(self, why: str) -> Finding:
        missing = self._design.describe_missing(self._require_evidence(), len(self._open_tickets))
        return self._make_finding(Verdict.INCONCLUSIVE, why, missing)

    def _report_verdict(self, verdict: Verdict) -> Finding:
        asked, fair = self.question, verdict is Verdict.FAIR
        size = f"above {asked.threshold:.10g}" if fair else f"of at most {asked.gamma:g}"
        noun = asked.gap_scale.noun
        return self._make_finding(verdict, f"every population with a {noun} {size} is refuted")

    def _make_finding(
        self, verdict: Verdict, reason: str, missing: tuple[str, ...] = ()
    ) -> Finding:
        finding = self._design.make_finding(self.evidence, verdict, reason, missing)
        return replace(finding, cost=self.cost, labels=self.labels, score_only=self.features)
