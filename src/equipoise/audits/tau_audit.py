"""Baseline and RS-Audit: label everybody until tau people with an outcome have been seen.

``P[f=1 | Y=y, A=a]`` is the share of the approved with outcome y over the share of outcome y. The
first is read off past data, the second off people who arrive and are all labelled: each as
``tau / N``, where N is the number of people until the tau-th success. The two audits differ in
whom they count on the way: everybody (Baseline, Algorithm 3), or one group (RS-Audit, Algorithm 1).

Waiting for tau successes takes ``N`` people with ``|N q / tau - 1| <= e`` except with probability
``2 exp(-tau e^2 / 4)`` (paper, concentration of the negative binomial). The audits wait 4K times (K
groups, two outcomes, online and past), so all of them hold together with probability ``1 - delta``
when ``e = sqrt(4 log(8K/delta) / tau)``. The paper asks for ``e = epsilon/12``.

The people counted must be a fair sample: approved and denied as they come. That is tested.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from equipoise.audits.approval_shares import FAIR_SAMPLE, ApprovalShares
from equipoise.audits.base import Audit, Step
from equipoise.audits.estimated_rates import (
    RATE_OF_OUTCOME,
    describe_missing_rows,
    finding_from_rates,
    finding_of_free_check,
    inconclusive_finding,
    outcomes_to_estimate,
    paper_epsilon,
    paper_tau,
    parse_count,
    rate_bounds,
)
from equipoise.errors import few_of, require_kind
from equipoise.finding import Finding
from equipoise.history.past import Goal, Past
from equipoise.protocol import Want
from equipoise.question import Costs, Question, Verdict


class TauAudit(Audit):
    """Base of Baseline and RS-Audit.

    Parameters
    ----------
    history, question, costs, budget
        As for every audit. Metrics: equalized odds, equal opportunity, predictive equality, and
        demographic parity, which needs no label and is answered by the free check.
    tau
        The stopping threshold; the paper's ``576 log(8K/delta) / epsilon^2`` if left out.
    reuse_labels
        Let one stream of labels serve all phases that count the same people. The guarantee is
        the same, since it rests on a union bound.
    """

    within_group: ClassVar[bool]

    def __init__(
        self,
        history: Past,
        question: Question,
        costs: Costs,
        *,
        tau: int | None = None,
        reuse_labels: bool = False,
        budget: float | None = None,
    ) -> None:
        self._outcomes = outcomes_to_estimate(question)
        super().__init__(history, question, costs, budget=budget)
        self.tau = parse_count(tau, paper_tau(question, len(self.cells)))
        require_kind("reuse_labels", reuse_labels, bool, "true or false")
        self.reuse_labels = reuse_labels
        compared = {self.cells.groups[at] for at in question.resolve(self.cells).groups}
        self._goals = [(y, a) for y in self._outcomes for a in self.cells if a in compared]
        # Past people read until the tau-th of each goal; without goals that the past does not meet.
        rows = history.rows_until(
            self.tau, question, outcomes=self._outcomes, within_group=self.within_group
        )
        self._rows = {goal: rows[goal] for goal in self._goals if goal in rows}
        # In RS-Audit every group has a stream of its own, in Baseline all groups share one.
        blocks = [[a] for a in self.cells] if self.within_group else [list(self.cells)]
        self._streams: dict[str, Online] = {}
        for block in blocks:
            goals = [goal for goal in self._goals if goal[1] in block]
            phases = [goals] if reuse_labels and goals else [[goal] for goal in goals]
            self._streams |= dict.fromkeys(block, Online(self.tau, phases))
        self._approvals = ApprovalShares(history)
        self._finding = self._finding_before_start()

    # -- what the protocol asks ------------------------------------------------------------------

    def _choose_want(self, group: str, decision: int) -> Want:
        del decision  # approved or not: leaving out either kind would bias the count
        return Want.NOTHING if self._streams[group].is_done or self.is_broke else Want.LABEL

    def _smallest_hold_needed(self) -> float:
        # Nobody may be left out for the price, so the most expensive person must be affordable.
        groups = [g for g, stream in self._streams.items() if not stream.is_done]
        return max((self.costs.of(g).worst for g in groups), default=0.0)

    def _learn(self, answer: Step) -> Finding | None:
        stream = self._streams[answer.ticket.group]
        if stream.is_done:
            return None
        if answer.outcome is None:
            return self._conclude(f"the outcome of person {answer.ticket} is missing")
        stream.count_person(answer.ticket.group, answer.outcome)
        done = all(s.is_done for s in self._streams.values())
        why = self._approvals.count_person(answer.ticket.group, answer.ticket.decision)
        why = self._approvals.contradiction() if why is None and done else why
        if why is not None:
            return inconclusive_finding(self, why, (FAIR_SAMPLE,))
        return self._decide() if done else None

    def _conclude(self, why: str) -> Finding:
        missing = [
            f"{self.tau - (stream.goal_counts[goal] if i == 0 else 0):,} more people of "
            f"group {goal[1]!r} with outcome {goal[0]}"
            for stream in dict.fromkeys(self._streams.values())
            for i, phase in enumerate(stream.phases)
            for goal in phase
            if goal not in stream.stopping_times
        ]
        return inconclusive_finding(self, f"{why}, and the counts are not complete", tuple(missing))

    # -- findings --------------------------------------------------------------------------------

    def _decide(self) -> Finding:
        stopping_times = {
            goal: n for s in self._streams.values() for goal, n in s.stopping_times.items()
        }
        rows, people = (
            np.array([[n.get((y, a), np.nan) for a in self.cells] for y in self._outcomes])
            for n in (self._rows, stopping_times)
        )
        ratios = people / rows
        error = paper_epsilon(self.tau, self.question, len(self.cells)) / 12.0
        low, high = rate_bounds(ratios, error)
        if len(impossible := np.argwhere(low >= 1.0)):
            i, j = impossible[0]
            rate = RATE_OF_OUTCOME[self._outcomes[i]].replace("_", " ")
            return inconclusive_finding(
                self,
                f"the estimated {rate} of group {self.cells.groups[j]!r} is {ratios[i, j]:.3g}, "
                "which no population with this past has: people who arrive are not like the past",
                (FAIR_SAMPLE,),
            )
        return replace(
            finding_from_rates(self, self.tau / rows, self.tau / people, ratios, low, high),
            guaranteed=self.tau >= paper_tau(self.question, len(self.cells)),
            assumptions=self._assumptions(),
        )

    def _finding_before_start(self) -> Finding | None:
        if not self._outcomes:
            return finding_of_free_check(self)
        if len(self._rows) == len(self._goals):
            return None
        free, dry = finding_of_free_check(self), "the past data run dry before the audit can start"
        if free.verdict is Verdict.INCONCLUSIVE:
            lacking = describe_missing_rows(self.history, self._goals, self.tau, self.within_group)
            return inconclusive_finding(self, dry, lacking)
        level = self.question.strictest_level
        stands = (
            f"{dry}, so the free check of the same past answers, wrong with probability at most "
            f"{level:g}; this way of ending and an audit by labels, where the past suffices, are "
            f"together wrong with probability at most {2.0 * level:g}"
        )
        return replace(free, assumptions=(*free.assumptions, stands))

    def _assumptions(self) -> tuple[str, ...]:
        reached = paper_epsilon(self.tau, self.question, len(self.cells))
        asked = self.question.epsilon
        seed = "" if self.history.seed is None else f", with seed {self.history.seed}"
        left_out = self.question.resolve(self.cells).left_out
        lines = [f"not compared: {few_of(left_out)}"] if left_out else []
        lines += [
            "everybody comes from one population, past and present, independently",
            f"past people are read in an order drawn from their counts{seed}: if the population "
            "changed meanwhile, that averages over the period (date, since and until choose one)",
        ]
        if self.tau < paper_tau(self.question, len(self.cells)):
            lines.append(
                f"tau = {self.tau:,} is the paper's threshold for epsilon = {reached:.3g}, not "
                f"{asked:g}: the verdict has no proven error probability at epsilon = {asked:g}"
            )
        if reached >= 12.0:
            lines.append("tau is too small for an interval: nothing is established about the gap")
        return tuple(lines)


class Online:
    """The subroutine Online(tau, y, a) for a list of phases that one stream of people serves.

    A phase ends at the person who completes its last goal. That is a stopping time in request
    order: it is settled by this person and those before. So the people requested after it, before
    anybody knew that it had ended, are a fresh sample, and serve the next phase.
    """

    def __init__(self, tau: int, phases: Sequence[Sequence[Goal]]) -> None:
        self.tau = tau
        self.phases = list(phases)
        self.stopping_times: dict[Goal, int] = {}  # people seen until the tau-th, per finished goal
        self._begin_phase()

    @property
    def is_done(self) -> bool:
        """Whether every goal is reached."""
        return not self.phases

    def count_person(self, group: str, outcome: int) -> None:
        """Count the next person."""
        goal = (outcome, group)
        self.people_in_phase += 1
        self.goal_counts[goal] += 1
        if goal in self._open_goals and self.goal_counts[goal] == self.tau:
            self.stopping_times[goal] = self.people_in_phase
            self._open_goals.remove(goal)
            if not self._open_goals:
                del self.phases[0]
                self._begin_phase()

    def _begin_phase(self) -> None:
        self.people_in_phase = 0
        self.goal_counts: Counter[Goal] = Counter()
        self._open_goals = set(self.phases[0]) if self.phases else set()
