"""The threshold tau of Baseline and RS-Audit: how it is chosen, and what it proves.

The paper prints ``tau = 576 log(8K/delta) / epsilon^2``. A whole number of one's own has no proof
unless it is at least that. ``"exact"`` is the smallest tau for which the bounds of
:mod:`equipoise.audits.exact_tau` prove the error probability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from equipoise._arrays import Array
from equipoise.audits.estimated_rates import (
    paper_epsilon,
    paper_tau,
    parse_count,
    rate_bounds,
)
from equipoise.audits.exact_tau import WaitingTimes, error_factors, smallest_tau
from equipoise.comparison import GapScale, ResolvedComparison
from equipoise.display import format_number
from equipoise.levels import exact_tau_levels
from equipoise.question import Question

EXACT = "exact"
"""What users write for the smallest tau for which our bounds prove the error probability."""


class Threshold(ABC):
    """A threshold tau and what follows from it.

    Attributes
    ----------
    tau
        How many people with an outcome are waited for.
    is_proven
        Whether the verdict keeps the question's error probability for every population.
    is_printed
        Whether it is the paper's threshold or a number of the user's own, with the paper's proof.
    uses_known_shares
        Whether shares of the past are used as known, without reading people until the tau-th.
    share_of_ending
        What an ending by labels may spend of the question's error probability. The rest is for
        the other ending, by the free check, where the historical data are too short.
    """

    tau: int
    is_proven: bool
    is_printed: bool
    uses_known_shares: bool = False
    share_of_ending: float = 1.0

    @abstractmethod
    def rate_bounds(self, rates: Array) -> tuple[Array, Array]:
        """Return simultaneous bounds of the true rates, given their estimates."""

    @abstractmethod
    def explain(self) -> tuple[str, ...]:
        """Say what the reader of a finding has to know about tau."""


def choose_threshold(
    tau: object,
    question: Question,
    comparison: ResolvedComparison,
    *,
    groups: int,
    outcomes: int,
    known_past: bool,
    shared_people: bool,
) -> Threshold:
    """Return the threshold that a user asks for: a whole number, ``"exact"``, or the paper's.

    Parameters
    ----------
    tau
        What the user gave; None is the paper's threshold.
    groups, outcomes
        How many groups the historical data have, and how many outcomes' rates are compared.
    known_past
        Whether the historical data are unlimited.
    shared_people
        Whether the same people count for several groups (Baseline).
    """
    if tau == EXACT:
        counts = WaitingTimes(known_past, shared_people)
        return ExactThreshold(question, comparison, counts, outcomes)
    paper = paper_tau(question, groups)
    return PaperThreshold(question, groups, parse_count(tau, paper), paper)


class PaperThreshold(Threshold):
    """The printed threshold, or a whole number of the user's own."""

    is_printed = True

    def __init__(self, question: Question, groups: int, tau: int, paper: int) -> None:
        self.tau = tau
        self.is_proven = tau >= paper
        self._epsilon = question.epsilon
        self._reached_epsilon = paper_epsilon(tau, question, groups)

    def rate_bounds(self, rates: Array) -> tuple[Array, Array]:
        """Return bounds that hold if every count is within ``epsilon/12`` of its mean."""
        # The proof's relative error of a count, at the epsilon for which this tau is printed.
        return rate_bounds(rates, self._reached_epsilon / 12.0)

    def explain(self) -> tuple[str, ...]:
        """Say for which epsilon a smaller tau would be the paper's."""
        lines = []
        if not self.is_proven:
            lines.append(
                f"tau = {self.tau:,} is the paper's threshold for epsilon = "
                f"{format_number(self._reached_epsilon, 3)}, not {format_number(self._epsilon)}: "
                "the verdict has no proven error probability at epsilon = "
                f"{format_number(self._epsilon)}"
            )
        if self._reached_epsilon >= 12.0:
            lines.append("tau is too small for an interval: nothing is established about the gap")
        return tuple(lines)


class ExactThreshold(Threshold):
    """The smallest tau for which the bounds of ``exact_tau`` prove the error probability.

    A smaller one may keep it too; no bound here shows that. The levels are those of
    :mod:`equipoise.levels`.
    """

    is_proven = True
    is_printed = False

    def __init__(
        self,
        question: Question,
        comparison: ResolvedComparison,
        counts: WaitingTimes,
        outcomes: int,
    ) -> None:
        levels = exact_tau_levels(question, known_past=counts.known_past)
        self.share_of_ending = levels.share_of_ending
        self.uses_known_shares = counts.known_past
        self.tau = smallest_tau(
            question.gamma,
            question.epsilon,
            counts,
            level_fair=levels.wrong_fair,
            level_unfair=levels.wrong_unfair,
            comparisons=max(len(comparison.pairs) * outcomes, 1),
            by_ratio=comparison.scale is GapScale.RATIO,
        )
        # Every compared rate is bounded on both sides, and all bounds share the level.
        n_bounds = max(2 * len(comparison.groups) * outcomes, 1)
        factors = error_factors(self.tau, counts, levels.intervals / n_bounds)
        self._factor_above, self._factor_below = factors

    def rate_bounds(self, rates: Array) -> tuple[Array, Array]:
        """Return bounds that hold for all compared rates at once, at the intervals' own level."""
        low = np.clip(rates / self._factor_above, 0.0, 1.0)
        return low, np.clip(rates * self._factor_below, 0.0, 1.0)

    def explain(self) -> tuple[str, ...]:
        """Say that the smaller threshold is proven."""
        return (
            f"tau = {self.tau:,} is the smallest threshold for which these bounds prove the "
            "error probability of this question; the paper's printed threshold is larger",
        )
