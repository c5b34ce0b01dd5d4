"""What Baseline and RS-Audit share: label everybody until tau with an outcome have been seen.

``P[f=1 | Y=y, A=a]`` is the share of the approved with outcome y over the share of outcome y. The
first is read off past data, the second off people who arrive and are all labelled: each as
``tau / N``, where N is the number of people until the tau-th success. The two audits differ in
whom they look at on the way (everybody, or one group).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from equipoise.audits.base import Answer, Audit
from equipoise.audits.rate_findings import finding_from_rates, inconclusive, rate_intervals
from equipoise.audits.tau_precision import outcomes_of, paper_epsilon, paper_tau, relative_error
from equipoise.errors import InvalidInput
from equipoise.finding import Finding
from equipoise.free_check import check
from equipoise.history.past import Goal, Past
from equipoise.question import Costs, Question, Want

__all__ = [
    "Online",
    "TauAudit",
    "checked_tau",
    "rows_missing",
]

MOST_NAMED = 6  # groups in a list of what is missing


class Online:
    """The subroutine Online(tau, y, a) for a list of phases that one stream of people serves.

    A phase ends at the person who completes its last goal. That is a stopping time in request
    order: it is settled by this person and those before. So the people requested after it, before
    anybody knew that it had ended, are a fresh sample, and serve the next phase.
    """

    def __init__(self, tau: int, phases: Sequence[Sequence[Goal]]) -> None:
        self.tau = tau
        self.phases = list(phases)
        self.lengths: dict[Goal, int] = {}  # people seen until the tau-th, per finished goal
        self._begin()

    @property
    def done(self) -> bool:
        """Whether every goal is reached."""
        return not self.phases

    def see(self, group: str, outcome: int) -> None:
        """Count the next person."""
        goal = (outcome, group)
        self.people += 1
        self.seen[goal] += 1
        if goal in self._open and self.seen[goal] == self.tau:
            self.lengths[goal] = self.people
            self._open.remove(goal)
            if not self._open:
                del self.phases[0]
                self._begin()

    def _begin(self) -> None:
        self.people = 0
        self.seen: Counter[Goal] = Counter()
        self._open = set(self.phases[0]) if self.phases else set()


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
        Let one stream of labels serve all phases that look at the same people. The guarantee is
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
        self._outcomes = outcomes_of(question)
        super().__init__(history, question, costs, budget=budget)
        self.tau = paper_tau(question, len(self.cells)) if tau is None else checked_tau(tau)
        self.reuse_labels = reuse_labels
        self._goals = [(y, a) for y in self._outcomes for a in self.cells]
        # Past people read until the tau-th; a goal for which they run dry is not there.
        self._rows = history.rows_until(
            self.tau, question, outcomes=self._outcomes, within_group=self.within_group
        )
        self._streams = self._start_streams()
        self._finding = self._finding_before_start()

    @abstractmethod
    def _start_streams(self) -> dict[str, Online]:
        """Return the stream that a person of each group belongs to."""

    def _phases(self, goals: list[Goal]) -> list[list[Goal]]:
        if self.reuse_labels:
            return [goals] if goals else []
        return [[goal] for goal in goals]

    # -- what the protocol asks ------------------------------------------------------------------

    def _wants(self, group: str, decision: int) -> Want:
        del decision  # approved or not: leaving out either kind would bias the count
        if self._streams[group].done:
            return Want.NOTHING
        broke = self.budget is not None and self._least_hold() > self.available
        return Want.NOTHING if broke else Want.LABEL

    def _least_hold(self) -> float:
        # Nobody may be left out for being expensive, so the dearest person must be affordable.
        groups = [g for g, stream in self._streams.items() if not stream.done]
        return max((self.costs.of(g).worst for g in groups), default=0.0)

    def _learn(self, answer: Answer) -> Finding | None:
        stream = self._streams[answer.ticket.group]
        if stream.done:
            return None
        if answer.outcome is None:
            return self._conclude(f"the outcome of person {answer.ticket} is missing")
        stream.see(answer.ticket.group, answer.outcome)
        return self._decide() if all(s.done for s in self._streams.values()) else None

    def _conclude(self, why: str) -> Finding:
        return inconclusive(self, f"{why}, and the counts are not complete", self._goals_missed())

    # -- findings --------------------------------------------------------------------------------

    def _decide(self) -> Finding:
        lengths = {goal: n for s in self._streams.values() for goal, n in s.lengths.items()}
        ratios = np.array(
            [[lengths[y, a] / self._rows[y, a] for a in self.cells] for y in self._outcomes]
        )
        error = relative_error(self.tau, self.question, len(self.cells))
        finding = finding_from_rates(
            self.question, self.cells.groups, ratios, *rate_intervals(ratios, error)
        )
        return replace(
            finding,
            cost=self.cost,
            labels=self.labels,
            guaranteed=self._is_proven(),
            assumptions=self._assumptions(),
        )

    def _finding_before_start(self) -> Finding | None:
        if not self._outcomes:
            return check(self.history, self.question)
        if len(self._rows) == len(self._goals):
            return None
        return inconclusive(
            self,
            "the past data run dry before the audit can start",
            rows_missing(self.history, self._goals, self.tau, self.within_group),
        )

    def _goals_missed(self) -> tuple[str, ...]:
        streams = {id(s): s for s in self._streams.values() if not s.done}
        return tuple(
            f"{self.tau - (s.seen[goal] if i == 0 else 0):,} more people of group {goal[1]!r} "
            f"with outcome {goal[0]}"
            for s in streams.values()
            for i, phase in enumerate(s.phases)
            for goal in phase
            if goal not in s.lengths
        )

    def _is_proven(self) -> bool:
        return self.tau >= paper_tau(self.question, len(self.cells))

    def _assumptions(self) -> tuple[str, ...]:
        reached = paper_epsilon(self.tau, self.question, len(self.cells))
        asked = self.question.epsilon
        seed = "" if self.history.seed is None else f", with seed {self.history.seed}"
        lines = [
            "everybody comes from one population, past and present, independently",
            f"past people are read in an order drawn from their counts{seed}: if the population "
            "changed meanwhile, that averages over the period (date, since and until choose one)",
        ]
        if not self._is_proven():
            lines.append(
                f"tau = {self.tau:,} is the paper's threshold for epsilon = {reached:.3g}, not "
                f"{asked:g}: the verdict has no proven error probability at epsilon = {asked:g}"
            )
        if reached >= 12.0:
            lines.append("tau is too small for an interval: nothing is established about Delta")
        return tuple(lines)


def rows_missing(
    history: Past, goals: Sequence[Goal], tau: int, within_group: bool
) -> tuple[str, ...]:
    """Say how many past rows are missing, about, until ``tau`` approved people meet each goal.

    Of the goals that the same rows serve (a group's own, or all) the scarcest is named: rows
    enough for it are enough for the others.
    """
    scarcest: dict[str, tuple[float, Goal]] = {}
    for outcome, group in goals:
        cells = history.cells[group]
        found = cells.approved_positive if outcome else cells.approved_negative
        block = group if within_group else ""
        if (found == 0 or (found < tau and not history.exact)) and (
            block not in scarcest or found < scarcest[block][0]
        ):
            scarcest[block] = found, (outcome, group)
    ranked = list(scarcest.values())
    if len(ranked) > MOST_NAMED:
        ranked.sort(key=lambda one: one[0])
    lines = [_rows_missing(history, *one, tau, within_group) for one in ranked[:MOST_NAMED]]
    if len(ranked) > MOST_NAMED:
        lines.append(f"and likewise of {len(ranked) - MOST_NAMED} more groups that lack less")
    return tuple(lines)


def _rows_missing(history: Past, found: float, goal: Goal, tau: int, within_group: bool) -> str:
    outcome, group = goal
    who = f"people of group {group!r} who were approved and had outcome {outcome}"
    if found == 0:
        return f"{who}: none were found, and {tau:,} are needed"
    read = history.cells[group].total if within_group else history.cells.total
    kind = f"of group {group!r}" if within_group else "of any group"
    more = read * (tau / found - 1.0)
    return f"about {more:,.0f} more past rows {kind}: {found:,.0f} {who}, and {tau:,} are needed"


def checked_tau(tau: object) -> int:
    """Return tau if it is a whole number of at least 1 that a float holds exactly."""
    if isinstance(tau, bool) or not isinstance(tau, int | np.integer) or not 1 <= tau < 2**53:
        shown = "a larger one" if isinstance(tau, int) and tau > 1 else repr(tau)
        raise InvalidInput(f"'tau' must be a whole number of at least 1, below 2**53; got {shown}")
    return int(tau)
