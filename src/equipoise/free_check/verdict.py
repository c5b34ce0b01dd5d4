"""The verdict that follows from past data alone."""

from __future__ import annotations

from equipoise.finding import gap_interval
from equipoise.free_check.gaps import gap_bounds, pairs_of_rates, rate_intervals
from equipoise.free_check.past_bounds import CheckInputs, PastBounds, past_bounds_at
from equipoise.levels import ErrorBudget
from equipoise.question import Question, Verdict

_ROUNDING = 1e-12  # a gap that is larger by less may be equal


def free_verdict(inputs: CheckInputs, question: Question, budget: ErrorBudget) -> Verdict:
    """Return the verdict that follows from past data at the error levels of a budget.

    INCONCLUSIVE where past data contradict what is assumed.
    """
    behind_fair = past_bounds_at(inputs, question.metric, budget.past_fair)
    behind_unfair = past_bounds_at(inputs, question.metric, budget.past_unfair)
    if behind_fair.contradiction or behind_unfair.contradiction:
        return Verdict.INCONCLUSIVE
    intervals = rate_intervals(behind_fair.bands, behind_fair.r_ranges)
    upper = gap_interval(intervals, question.comparison).upper
    is_fair = upper <= question.threshold
    is_unfair = _exceeds_gamma(behind_unfair, question)
    if is_fair and is_unfair:  # between gamma and the threshold both are right; name the nearer
        lower, _ = gap_bounds(
            behind_unfair.bands, behind_unfair.r_ranges, compare=question.comparison
        )
        is_fair = lower + upper <= 2.0 * question.gamma + question.epsilon
    if is_fair:
        return Verdict.FAIR
    return Verdict.UNFAIR if is_unfair else Verdict.INCONCLUSIVE


def _exceeds_gamma(bounds: PastBounds, question: Question) -> bool:
    """Say whether the gap is certainly above gamma, by one rate alone or by two together."""
    gamma = question.gamma + _ROUNDING
    intervals = rate_intervals(bounds.bands, bounds.r_ranges)
    if gap_interval(intervals, question.comparison).lower > gamma:
        return True
    rate_pairs = pairs_of_rates(bounds.bands, bounds.r_ranges, question.comparison)
    return any(rate_pair.exceeds(gamma) for rate_pair in rate_pairs)
