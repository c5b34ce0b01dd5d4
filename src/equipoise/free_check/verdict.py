"""The verdict of past data, and the ranges that go with it.

Verdict and range of the gap are one answer: the range never reaches into what the verdict rules
out, and without a verdict it holds gaps for which FAIR is right and gaps for which UNFAIR is.
Section 4 of ``docs/understand/guarantees.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from equipoise.finding import Interval, gap_interval
from equipoise.free_check.assumptions import Assume
from equipoise.free_check.bounds import (
    CheckInputs,
    PastBounds,
    gap_bounds,
    pairs_of_rates,
    past_bounds_at,
    rate_intervals,
)
from equipoise.levels import ErrorBudget
from equipoise.question import Question, Verdict

_ROUNDING = 1e-12  # a gap that is larger by less may be equal


@dataclass(frozen=True)
class FreeAnswer:
    """What past data answer at the error levels of a budget.

    Attributes
    ----------
    verdict
        FAIR, UNFAIR or INCONCLUSIVE.
    gap
        The range of the gap.
    rates
        Rate -> group -> its range.
    bounds
        The bounds behind ``rates``.
    contradiction
        Which data contradict what is assumed, in a sentence; None if none do. Then there is no
        verdict, and the ranges make no use of the assumption.
    """

    verdict: Verdict
    gap: Interval
    rates: Mapping[str, Mapping[str, Interval]]
    bounds: PastBounds
    contradiction: str | None


def answer_from_past(inputs: CheckInputs, question: Question, budget: ErrorBudget) -> FreeAnswer:
    """Return the verdict and the ranges that follow from past data.

    The bounds behind FAIR end the range from above unless they say FAIR, and those behind UNFAIR
    from below unless they say UNFAIR. What a verdict leaves open is bounded by the ranges of all
    rates, which have a small error level of their own.
    """
    evidence = _Evidence.from_inputs(inputs, question, budget)
    contradiction = evidence.behind_unfair.contradiction
    if contradiction is not None:
        # What the data contradict is not used, so that the ranges hold all the same.
        without_assumption = replace(inputs, assume=Assume(), uses_deciders=False)
        evidence = _Evidence.from_inputs(without_assumption, question, budget)
    behind_ranges = evidence.behind_ranges
    rates = rate_intervals(behind_ranges.bands, behind_ranges.r_ranges)

    upper = evidence.upper
    if evidence.is_fair:
        upper_by_ranges = gap_interval(rates, question.comparison).upper
        upper = min(question.threshold, upper_by_ranges)
    if evidence.is_unfair:
        lower = max(question.gamma, _lower_bound(behind_ranges, question))
    else:
        lower = min(question.gamma, _lower_bound(evidence.behind_unfair, question))
    return FreeAnswer(
        verdict=evidence.verdict if contradiction is None else Verdict.INCONCLUSIVE,
        gap=Interval(lower, upper),
        rates=rates,
        bounds=behind_ranges,
        contradiction=contradiction,
    )


def free_verdict(inputs: CheckInputs, question: Question, budget: ErrorBudget) -> Verdict:
    """Return the verdict that follows from past data at the error levels of a budget.

    INCONCLUSIVE where past data contradict what is assumed.
    """
    evidence = _Evidence.from_inputs(inputs, question, budget)
    if evidence.behind_unfair.contradiction:
        return Verdict.INCONCLUSIVE
    return evidence.verdict


@dataclass(frozen=True)
class _Evidence:
    """What past data say for each verdict.

    Attributes
    ----------
    question
        What is asked.
    behind_ranges, behind_unfair
        The bounds behind the ranges of rates, and those behind UNFAIR.
    upper
        The upper end of the gap by the bounds behind FAIR.
    is_unfair
        Whether the bounds behind UNFAIR say it.
    """

    question: Question
    behind_ranges: PastBounds
    behind_unfair: PastBounds
    upper: float
    is_unfair: bool

    @classmethod
    def from_inputs(cls, inputs: CheckInputs, question: Question, budget: ErrorBudget) -> _Evidence:
        behind_ranges = past_bounds_at(inputs, question.metric, budget.past_intervals)
        behind_unfair = past_bounds_at(inputs, question.metric, budget.past_unfair)
        behind_fair = past_bounds_at(inputs, question.metric, budget.past_fair)
        # Few bounds are behind FAIR, so they are narrower and may contradict an assumption where
        # those of all groups together do not. Then the widest ones serve, which hold anyhow.
        if behind_fair.contradiction and not behind_unfair.contradiction:
            behind_fair = behind_ranges
        intervals = rate_intervals(behind_fair.bands, behind_fair.r_ranges)
        return cls(
            question=question,
            behind_ranges=behind_ranges,
            behind_unfair=behind_unfair,
            upper=gap_interval(intervals, question.comparison).upper,
            is_unfair=_exceeds_gamma(behind_unfair, question),
        )

    @property
    def is_fair(self) -> bool:
        """Whether the bounds behind FAIR say it."""
        return self.upper <= self.question.threshold

    @property
    def verdict(self) -> Verdict:
        """The verdict; of two that are both right, the one that is further from being wrong."""
        question = self.question
        if self.is_fair and self.is_unfair:  # the gap is between gamma and the threshold
            lower = _lower_bound(self.behind_unfair, question)
            is_nearer_fair = lower + self.upper <= 2.0 * question.gamma + question.epsilon
            return Verdict.FAIR if is_nearer_fair else Verdict.UNFAIR
        if self.is_fair:
            return Verdict.FAIR
        return Verdict.UNFAIR if self.is_unfair else Verdict.INCONCLUSIVE


def _lower_bound(bounds: PastBounds, question: Question) -> float:
    """Return the least gap as every r ranges over its limits."""
    lower, _ = gap_bounds(bounds.bands, bounds.r_ranges, compare=question.comparison)
    return lower


def _exceeds_gamma(bounds: PastBounds, question: Question) -> bool:
    """Say whether the gap is certainly above gamma, by one rate alone or by two together."""
    # UNFAIR is said of a gap above gamma, so one that equals gamma but for rounding must not do.
    gamma = question.gamma + _ROUNDING
    intervals = rate_intervals(bounds.bands, bounds.r_ranges)
    if gap_interval(intervals, question.comparison).lower > gamma:
        return True
    rate_pairs = pairs_of_rates(bounds.bands, bounds.r_ranges, question.comparison)
    return any(rate_pair.exceeds(gamma) for rate_pair in rate_pairs)
