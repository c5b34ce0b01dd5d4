"""Exp-Audit's finding: rates from weights, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from equipoise.audits.branch import Branch
from equipoise.audits.tau_audit import compare_rates, rate_intervals
from equipoise.bounds.stopping import RATE_OF_OUTCOME, outcomes_of
from equipoise.finding import Finding, Interval
from equipoise.mixture.model import MixtureModel, SelfCheck
from equipoise.mixture.weights import Weight
from equipoise.question import Question, Verdict

__all__ = ["assumptions", "finding_from_weights"]


def finding_from_weights(
    question: Question,
    groups: Sequence[str],
    shares: Mapping[tuple[int, str], float],
    weights: Mapping[str, Weight],
) -> Finding:
    """Return the verdict of ``P[f=1, Y=y | a] / P[Y=y | a]`` compared between groups.

    Parameters
    ----------
    shares
        ``P[f=1, Y=y | a]`` of every (y, a), from the past.
    weights
        ``P[Y=1 | a]`` of every group, from features.
    """
    outcomes = outcomes_of(question)
    q = {g: (1.0 - w.estimate, w.estimate) for g, w in weights.items()}
    ratios = np.array([[shares[y, g] / max(q[g][y], 1e-12) for g in groups] for y in outcomes])
    low, high = rate_intervals(ratios, question.epsilon / 12.0)
    estimate, lower, upper = (float(x) for x in compare_rates(ratios, low, high))
    limit = question.gamma + question.epsilon / 2.0
    verdict = Verdict.UNFAIR if estimate > limit else Verdict.FAIR
    return Finding(
        question=question,
        verdict=verdict,
        estimate=estimate,
        lower=lower,
        upper=upper,
        reason=f"the estimated difference {estimate:.4g} is "
        f"{'above' if verdict is Verdict.UNFAIR else 'at most'} gamma + epsilon/2 = {limit:g}",
        rates={
            RATE_OF_OUTCOME[y]: {
                g: Interval(float(low[i, j]), float(high[i, j]), float(ratios[i, j]))
                for j, g in enumerate(groups)
            }
            for i, y in enumerate(outcomes)
        },
    )


def assumptions(
    model: MixtureModel,
    branches: Mapping[str, Branch],
    checks: Sequence[SelfCheck],
    *,
    tested: bool,
    proven: bool,
) -> tuple[str, ...]:
    """Return what the answer rests on, one line each.

    Parameters
    ----------
    tested
        Whether separation and the model were tested before they were relied on.
    proven
        Whether all thresholds are at least the proof's.
    """
    fits = [fit for pair in model.fits.values() for fit in pair]
    families = " or ".join(dict.fromkeys(fit.family.name for fit in fits))
    lines = [
        "everybody comes from one population, past and present, independently",
        f"the features of each outcome in each group follow the {families} family, also where "
        "nobody was approved, and 'accepts' is the decision-maker that was used",
    ]
    lines += [
        f"group {group!r}: {branch.way} weights from features: {branch.why}"
        for group, branch in branches.items()
    ]
    estimated = any(fit.theta_covariance.any() for fit in fits)
    if estimated or any(b.way == "likelihood" for b in branches.values()):
        lines.append("normal approximation of the error of estimated laws and weights")
    if not tested:
        lines.append(
            "separation and the model's self-check were not asked to pass: MAP counts are biased "
            "where the two laws overlap"
        )
    lines += [f"self-check: {check}" for check in checks]
    if not proven:
        lines.append(
            "thresholds below the proof's were given: the verdict has no proven error probability"
        )
    return tuple(lines)
