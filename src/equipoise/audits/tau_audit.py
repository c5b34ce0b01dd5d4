"""What Baseline and RS-Audit share: label people until tau of them have an outcome.

``P[f=1 | Y=y, A=a]`` is the share of the approved with outcome y over the share of outcome y. The
first is read off past data, the second off people who arrive and are all labelled: each as
``tau / N``, where N is the number of people until the tau-th success. The two audits differ in
whom they count on the way: everybody (:mod:`~equipoise.audits.baseline`, Algorithm 3), or one group
(:mod:`~equipoise.audits.rs_audit`, Algorithm 1).

Waiting for tau successes takes ``N`` people with ``|N q / tau - 1| <= e`` except with probability
``2 exp(-tau e^2 / 4)`` (paper, concentration of the negative binomial). The audits wait 4K times (K
groups, two outcomes, online and past), so all of them hold together with probability ``1 - delta``
when ``e = sqrt(4 log(8K/delta) / tau)``. The paper asks for ``e = epsilon/12``.

The people counted must be a fair sample: approved and denied as they come. That is tested
(:mod:`~equipoise.audits.approval_shares`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import ClassVar, Literal

import numpy as np

from equipoise._arrays import Array
from equipoise.audits.approval_shares import FAIR_SAMPLE, ApprovalShares
from equipoise.audits.base import Audit, Step
from equipoise.audits.estimated_rates import (
    RATE_OF_OUTCOME,
    RateEstimates,
    describe_missing_rows,
    finding_from_rates,
    finding_of_free_check,
    inconclusive_finding,
    outcomes_to_estimate,
)
from equipoise.audits.thresholds import choose_threshold
from equipoise.display import format_number
from equipoise.errors import few_of, require_kind
from equipoise.finding import Finding, ProofStatus
from equipoise.free_check import check
from equipoise.history.past import Goal, Past, require_past
from equipoise.levels import printed_tau_level
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict, require_question_and_costs


class TauAudit(Audit):
    """Base of Baseline and RS-Audit.

    A *goal* is a pair (y, a): tau people of group a with outcome y. Both audits reach every goal
    twice, in the past data and online, and compare the numbers of people that this took.

    Parameters
    ----------
    history, question, costs, budget
        As for every audit. Metrics: equalized odds, equal opportunity, predictive equality, and
        demographic parity, which needs no label and is answered by the free check.
    tau
        The stopping threshold; the paper's ``576 log(8K/delta) / epsilon^2`` if left out.
        ``"exact"`` is the smallest one for which our bounds on the wrong verdict prove the same
        error probability, 10 to 60 times smaller.
    reuse_labels
        Let one stream of labels serve all phases that count the same people. The guarantee is
        the same, since it rests on a union bound.
    """

    within_group: ClassVar[bool]
    """Whether only people of group a count on the way to the goal (y, a), or everybody."""

    def __init__(
        self,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        tau: int | Literal["exact"] | None = None,
        reuse_labels: bool = False,
        budget: float | None = None,
    ) -> None:
        require_past(history)
        require_question_and_costs(question, costs)
        self._outcomes = outcomes_to_estimate(question)
        super().__init__(history, question, costs, budget=budget)
        require_kind("reuse_labels", reuse_labels, bool, "true or false")
        self.reuse_labels = reuse_labels
        self.threshold = choose_threshold(
            tau,
            question,
            question.resolve(self.cells),
            groups=len(self.cells),
            outcomes=len(self._outcomes),
            known_past=history.exact,
            shared_people=not self.within_group,
        )
        self.tau = self.threshold.tau
        self._goals = self._list_goals()
        self.past_stopping_times = self._read_past()
        self._streams = self._make_streams()
        self._approvals = ApprovalShares(history)
        self._finding = self._finding_before_start()

    def _list_goals(self) -> list[Goal]:
        """Return (outcome, group) of all rates that are compared, in the paper's order."""
        positions = self.question.resolve(self.cells).groups
        compared_groups = {self.cells.groups[position] for position in positions}
        return [(y, a) for y in self._outcomes for a in self.cells if a in compared_groups]

    def _read_past(self) -> Mapping[Goal, float]:
        """Return ``N' = Past(D, tau, y, a)`` of each goal; goals that the past misses are left out.

        It is the number of past people read until the tau-th who was approved with outcome y, or
        its mean where unlimited historical data are used as known.
        """
        if self.threshold.uses_known_shares:
            return self._mean_past_stopping_times()
        stopping_times = self.history.rows_until(
            self.tau, self.question, outcomes=self._outcomes, within_group=self.within_group
        )
        return {goal: stopping_times[goal] for goal in self._goals if goal in stopping_times}

    def _mean_past_stopping_times(self) -> dict[Goal, float]:
        means = {}
        for outcome, group in self._goals:
            counts = self.cells[group]
            n_approved = counts.approved_positive if outcome else counts.approved_negative
            n_read = counts.total if self.within_group else self.cells.total
            if n_approved > 0:
                means[outcome, group] = self.tau * n_read / n_approved
        return means

    def _make_streams(self) -> dict[str, Online]:
        """Return the stream that each group's people belong to.

        In RS-Audit every group has a stream of its own, in Baseline all groups share one.
        """
        blocks = [[group] for group in self.cells] if self.within_group else [list(self.cells)]
        streams: dict[str, Online] = {}
        for block in blocks:
            goals = [(outcome, group) for outcome, group in self._goals if group in block]
            phases = [[goal] for goal in goals]
            if self.reuse_labels and goals:
                phases = [goals]
            # One object for all groups of the block: each person moves the same count on.
            streams |= dict.fromkeys(block, Online(self.tau, phases))
        return streams

    # -- what the protocol asks ------------------------------------------------------------------

    def _choose_want(self, group: str, decision: int) -> Want:
        del decision  # approved or not: leaving out either kind would bias the count
        return Want.NOTHING if self._streams[group].is_done or self.is_broke else Want.LABEL

    def _smallest_hold_needed(self) -> float:
        # Nobody may be left out for the price, so the most expensive person must be affordable.
        open_groups = [group for group, stream in self._streams.items() if not stream.is_done]
        return max((self.costs.of(group).worst for group in open_groups), default=0.0)

    def _learn(self, answer: Step) -> Finding | None:
        ticket = answer.ticket
        stream = self._streams[ticket.group]
        if stream.is_done:  # asked for before it was known that no more was needed
            return None
        # N counts every person until the tau-th success, so one unknown outcome ends the count.
        if answer.outcome is None:
            return self._conclude(f"the outcome of person {ticket} is missing")
        stream.count_person(ticket.group, answer.outcome)
        is_complete = all(stream.is_done for stream in self._streams.values())
        # The sample is tested before a verdict: a biased one makes every estimate wrong.
        contradiction = self._approvals.count_person(ticket.group, ticket.decision)
        if contradiction is None and is_complete:
            contradiction = self._approvals.contradiction()
        if contradiction is not None:
            return inconclusive_finding(self, contradiction, (FAIR_SAMPLE,))
        return self._decide() if is_complete else None

    def _conclude(self, why: str) -> Finding:
        missing: list[str] = []
        for stream in dict.fromkeys(self._streams.values()):  # each stream once
            for (outcome, group), count in stream.missing_people().items():
                missing.append(f"{count:,} more people of group {group!r} with outcome {outcome}")
        reason = f"{why}, and the counts are not complete"
        return inconclusive_finding(self, reason, tuple(missing))

    # -- findings --------------------------------------------------------------------------------

    def _decide(self) -> Finding:
        """Estimate and compare the rates (Algorithm 1, lines 5 to 7; Algorithm 3, lines 6 to 8)."""
        online_stopping_times: dict[Goal, int] = {}
        for stream in self._streams.values():
            online_stopping_times |= stream.stopping_times
        n_past = self.tabulate(self.past_stopping_times)
        n_online = self.tabulate(online_stopping_times)
        rates = n_online / n_past  # p_hat / q_hat, since tau cancels
        low, high = self.threshold.rate_bounds(rates)
        impossible = self._describe_impossible_rate(rates, low)
        if impossible is not None:
            return inconclusive_finding(self, impossible, (FAIR_SAMPLE,))
        estimates = RateEstimates(self.tau / n_past, self.tau / n_online, rates, low, high)
        return replace(
            finding_from_rates(self, estimates),
            proof=ProofStatus.PROVEN if self.threshold.is_proven else ProofStatus.NOT_PROVEN,
            error_level=self.error_level_of_all_endings,
            range_level=self._range_level,
            assumptions=(*self._list_assumptions(), *self._describe_two_endings()),
        )

    def tabulate(self, by_goal: Mapping[Goal, float]) -> Array:
        """Return numbers by goal as an array (outcomes, groups), NaN of groups not compared."""
        rows = [[by_goal.get((y, a), np.nan) for a in self.cells] for y in self._outcomes]
        return np.array(rows)

    def _describe_impossible_rate(self, rates: Array, low: Array) -> str | None:
        """Return why some estimated rate cannot be, since it is surely above 1; None if all can."""
        impossible = np.argwhere(low >= 1.0)
        if not len(impossible):
            return None
        row, column = impossible[0]
        rate_name = RATE_OF_OUTCOME[self._outcomes[row]].replace("_", " ")
        return (
            f"the estimated {rate_name} of group {self.cells.groups[column]!r} is "
            f"{rates[row, column]:.3g}, which no population with this past has: people who arrive "
            "are not like the past"
        )

    def _finding_before_start(self) -> Finding | None:
        """Return the free check's answer if no label is needed, or if the past is too short."""
        if not self._outcomes:
            return finding_of_free_check(self)
        if len(self.past_stopping_times) == len(self._goals):
            return None
        free = self._free_check_of_its_share()
        too_short = "the past data run dry before the audit can start"
        if free.verdict is Verdict.INCONCLUSIVE:
            missing = describe_missing_rows(self.history, self._goals, self.tau, self.within_group)
            return inconclusive_finding(self, too_short, missing, free)
        ending = f"{too_short}, so the free check of the same past answers"
        return replace(free, assumptions=(*free.assumptions, ending, *self._describe_two_endings()))

    def _free_check_of_its_share(self) -> Finding:
        """Return the free check with what the ending by labels leaves of the error probability.

        With the printed threshold each ending has the level that the proof of the other one uses,
        the smaller of the question's two, and the finding gives the sum.
        """
        question = self.question
        if self.history.exact:  # nothing is spent on historical data that are the population
            return finding_of_free_check(self)
        if self.threshold.is_printed:
            level = printed_tau_level(question)
            of_its_share = replace(
                question, delta=level, delta_wrong_fair=None, delta_wrong_unfair=None
            )
        else:
            # Which ending comes follows from the data, so both levels have to add up.
            spared = 1.0 - self.threshold.share_of_ending
            of_its_share = replace(
                question,
                delta=spared * question.delta,
                delta_wrong_fair=spared * question.level_wrong_fair,
                delta_wrong_unfair=spared * question.level_wrong_unfair,
            )
        free = check(self.history, of_its_share)
        # A check is a finding with more fields. The finding speaks of the question as it was asked.
        values = {field.name: getattr(free, field.name) for field in fields(Finding)}
        level_of_both = self.error_level_of_all_endings
        values |= {"question": question, "error_level": level_of_both, "range_level": None}
        if self.threshold.is_printed:
            # A threshold of one's own proves nothing, so only this ending has a level.
            values["error_level"] = level_of_both if self.threshold.is_proven else level
            values["range_level"] = values["error_level"]
        return Finding(**values)

    @property
    def error_level_of_all_endings(self) -> float | None:
        """The error probability of a verdict over both ways of ending; None for the question's.

        With the printed threshold an audit on finite historical data ends by labels or by the free
        check, each at its own level. With ``tau="exact"`` the two share the question's.
        """
        if not self.threshold.is_printed or self.history.exact or not self._outcomes:
            return None
        return 2.0 * printed_tau_level(self.question)

    @property
    def _range_level(self) -> float | None:
        """The level of verdict and ranges by labels; None for the larger one of the question.

        One set of events is behind both with the printed threshold, at the smaller level.
        """
        if not self.threshold.is_printed:
            return None
        return self.error_level_of_all_endings or printed_tau_level(self.question)

    def _describe_two_endings(self) -> tuple[str, ...]:
        """Say, for the printed threshold, what both ways of ending come to; empty for others."""
        if not self.threshold.is_printed or self.history.exact:
            return ()
        level = printed_tau_level(self.question)
        if not self.threshold.is_proven:
            return (
                "a verdict of the free check is wrong with probability at most "
                f"{format_number(level)}; a verdict by labels has no proven error probability at "
                f"tau = {self.tau:,}",
            )
        return (
            "the audit ends by labels, or by the free check if the past data are too short: each "
            f"ending is wrong with probability at most {format_number(level)}, both together "
            f"with probability at most {format_number(2.0 * level)}",
        )

    def _list_assumptions(self) -> tuple[str, ...]:
        seed = "" if self.history.seed is None else f", with seed {self.history.seed}"
        left_out = self.question.resolve(self.cells).left_out
        lines = [f"not compared: {few_of(left_out)}"] if left_out else []
        lines.append("everybody comes from one population, past and present, independently")
        if not self.threshold.uses_known_shares:
            lines.append(
                f"past people are read in an order drawn from their counts{seed}: if the "
                "population changed meanwhile, that averages over the period (date, since and "
                "until choose one)"
            )
        return (*lines, *self.threshold.explain())


class Online:
    """The paper's subroutine ``Online(tau, y, a)``, for phases that one stream of people serves.

    A phase ends at the person who completes its last goal. That is a stopping time in request
    order: it is settled by this person and those before. So the people requested after it, before
    anybody knew that it had ended, are a fresh sample, and serve the next phase.

    Parameters
    ----------
    tau
        People that each goal needs.
    phases
        The goals of each phase, pairs (outcome, group), in the order of the phases.

    Attributes
    ----------
    phases
        The phases that are not over.
    stopping_times
        ``N`` of every goal that is reached: people of its phase until the tau-th.
    """

    def __init__(self, tau: int, phases: Sequence[Sequence[Goal]]) -> None:
        self.tau = tau
        self.phases = list(phases)
        self.stopping_times: dict[Goal, int] = {}
        self._begin_phase()

    @property
    def is_done(self) -> bool:
        """Whether every goal is reached."""
        return not self.phases

    def count_person(self, group: str, outcome: int) -> None:
        """Count the next person."""
        goal = (outcome, group)
        self._people_in_phase += 1
        self._goal_counts[goal] += 1
        if goal in self._open_goals and self._goal_counts[goal] == self.tau:
            self.stopping_times[goal] = self._people_in_phase
            self._open_goals.remove(goal)
            if not self._open_goals:
                del self.phases[0]
                self._begin_phase()

    def missing_people(self) -> dict[Goal, int]:
        """Return how many people each goal that is not reached still needs."""
        missing = {goal: self.tau for phase in self.phases for goal in phase}
        # Only the first phase has begun; the others need all of their people.
        for goal in self.phases[0] if self.phases else ():
            missing[goal] -= self._goal_counts[goal]
            if goal in self.stopping_times:
                del missing[goal]
        return missing

    def finish(self, stopping_times: Mapping[Goal, int]) -> None:
        """End all phases at once, with numbers of people that a simulation drew."""
        self.stopping_times = dict(stopping_times)
        self.phases = []

    def _begin_phase(self) -> None:
        self._people_in_phase = 0
        self._goal_counts: Counter[Goal] = Counter()
        self._open_goals = set(self.phases[0]) if self.phases else set()
