"""Findings of the audits that compare estimated rates: Baseline, RS-Audit and Exp-Audit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.base import Audit
from equipoise.audits.tau_precision import RATE_OF_OUTCOME, outcomes_of
from equipoise.comparison import GapScale
from equipoise.finding import Finding, Interval
from equipoise.question import Question, Verdict

__all__ = ["compare_rates", "finding_from_rates", "inconclusive", "rate_intervals"]

Array = NDArray[np.float64]


def finding_from_rates(
    question: Question, groups: Sequence[str], ratios: Array, low: Array, high: Array
) -> Finding:
    """Return the paper's verdict: UNFAIR if the estimate is above ``gamma + epsilon/2``.

    ``ratios`` and their bounds have shape (outcomes of the metric, groups).
    """
    estimate, lower, upper = (
        float(x) for x in compare_rates(ratios, low, high, question.comparison)
    )
    limit = question.gamma + question.epsilon / 2.0
    verdict = Verdict.UNFAIR if estimate > limit else Verdict.FAIR
    return Finding(
        question=question,
        verdict=verdict,
        estimate=estimate,
        lower=lower,
        upper=upper,
        reason=f"the estimated {question.comparison.noun} {estimate:.4g} is "
        f"{'above' if verdict is Verdict.UNFAIR else 'at most'} gamma + epsilon/2 = {limit:g}",
        rates={
            RATE_OF_OUTCOME[y]: {
                group: Interval(float(low[i, j]), float(high[i, j]), float(ratios[i, j]))
                for j, group in enumerate(groups)
            }
            for i, y in enumerate(outcomes_of(question))
        },
    )


def inconclusive(audit: Audit, why: str, missing: tuple[str, ...]) -> Finding:
    """Return what the past alone establishes, and what is missing."""
    free = audit.known_for_free
    return Finding(
        question=audit.question,
        verdict=Verdict.INCONCLUSIVE,
        lower=free.lower,
        upper=free.upper,
        reason=f"{why}; {free.reason}",
        rates=free.rates,
        cost=audit.cost,
        labels=audit.labels,
        features=audit.features,
        missing=missing,
        assumptions=free.assumptions,
    )


def rate_intervals(ratios: Array, error: float) -> tuple[Array, Array]:
    """Return bounds of the rates when every count N is within ``(1 ± error)`` of its mean.

    Examples
    --------
    >>> low, high = rate_intervals(np.array([0.5, 1.1]), 0.1)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.409, 0.9], [0.611, 1.0])
    """
    if error >= 1.0:
        return np.zeros_like(ratios), np.ones_like(ratios)
    factor = (1.0 + error) / (1.0 - error)
    return np.clip(ratios / factor, 0.0, 1.0), np.clip(ratios * factor, 0.0, 1.0)


def compare_rates(
    ratios: Array, low: Array, high: Array, compare: GapScale = GapScale.DIFFERENCE
) -> tuple[Array, Array, Array]:
    """Return Delta's estimate and bounds from rates of shape (..., outcomes, groups).

    Examples
    --------
    >>> rates = np.array([[0.5, 0.8]])
    >>> [float(x.round(3)) for x in compare_rates(rates, rates - 0.1, rates + 0.1)]
    [0.3, 0.1, 0.5]
    """
    estimate = compare.gap(ratios.min(axis=-1), ratios.max(axis=-1)).max(axis=-1)
    lower = np.maximum(compare.gap(high.min(axis=-1), low.max(axis=-1)).max(axis=-1), 0.0)
    gaps = compare.gap(low[..., None, :], high[..., :, None])
    gaps[..., np.arange(ratios.shape[-1]), np.arange(ratios.shape[-1])] = 0.0  # nobody vs itself
    return estimate, lower, gaps.max(axis=(-3, -2, -1))
