"""The verdict of Exp-Audit: rates from weights, how far off they may be, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise._arrays import Array
from equipoise.audits.estimated_rates import (
    RateEstimates,
    finding_from_rates,
    inconclusive_finding,
)
from equipoise.display import format_count, format_number
from equipoise.finding import Finding, ProofStatus
from equipoise.mixture.likelihood_weights import Weight

if TYPE_CHECKING:
    from equipoise.audits.exp_audit import ExpAudit


def finding_from_weights(
    audit: ExpAudit, weights: Mapping[str, Weight], problem: str | None
) -> Finding:
    """Return the verdict of Algorithm 2, lines 9 and 10.

    Parameters
    ----------
    weights
        The share of outcome 1 of every group, from features.
    problem
        Why the model should not have been believed; None if no test contradicts it.
    """
    empty = _describe_empty_outcome(audit, weights)
    if empty is not None:
        return inconclusive_finding(audit, empty, ("features of people with that outcome",))
    finding = finding_from_rates(audit, _estimate_rates(audit, weights))
    ways = ", ".join(f"{group}: {branch.way}" for group, branch in audit.branches.items())
    condition = "if the model holds, " if problem is None else f"although {problem}: "
    return replace(
        finding,
        reason=f"{condition}{finding.reason} (weights from features, {ways})",
        proof=ProofStatus.NOT_PROVEN
        if _has_own_thresholds(audit)
        else ProofStatus.UNDER_ASSUMPTIONS,
        error_level=audit.error_level_of_all_endings,
        assumptions=_list_assumptions(audit),
        warnings=() if problem is None else (problem,),
    )


def _estimate_rates(audit: ExpAudit, weights: Mapping[str, Weight]) -> RateEstimates:
    """Return ``p_hat / q_hat`` with bounds.

    A rate above 1 is an error of estimation, and is taken for 1 except in Algorithm 2 as printed.
    """
    # axes: outcome, group
    stopping_times = audit.past_stopping_times
    p_hat = np.array([[audit.tau / stopping_times[y, g] for g in weights] for y in audit.outcomes])
    good_shares = np.array([weight.estimate for weight in weights.values()])
    q_hat = np.array([good_shares if y else 1.0 - good_shares for y in audit.outcomes])
    rates = p_hat / q_hat
    past_error = _past_error(audit)
    online_error = _online_error(audit, weights, q_hat)
    # Both errors are relative. Each bound takes the side of both that moves the rate furthest.
    low = rates * max(1.0 - past_error, 0.0) / (1.0 + online_error)
    high = rates * (1.0 + past_error) / np.maximum(1.0 - online_error, 1e-12)
    if audit.weights != "published":
        rates = np.minimum(rates, 1.0)
    return RateEstimates(p_hat, q_hat, rates, np.minimum(low, 1.0), np.minimum(high, 1.0))


def _describe_empty_outcome(audit: ExpAudit, weights: Mapping[str, Weight]) -> str | None:
    """Return which rate has no denominator, because no features were assigned to its outcome."""
    for outcome in audit.outcomes:
        for group, weight in weights.items():
            share = weight.estimate if outcome else 1.0 - weight.estimate
            if share <= 0.0:
                return (
                    f"none of {weight.size:,} feature vectors of group {group!r} were assigned to "
                    f"outcome {outcome}, so P[f=1 | Y={outcome}] has an empty denominator"
                )
    return None


def _past_error(audit: ExpAudit) -> float:
    """Return how far off past counts may be, relative to them: the proof's, or what tau leaves."""
    # The error of a count shrinks with the root of tau.
    return float(audit.question.epsilon / 12.0 * np.sqrt(audit.constants.tau / audit.tau))


def _online_error(audit: ExpAudit, weights: Mapping[str, Weight], q_hat: Array) -> Array:
    """Return how far off weights may be, relative to them: the proof's, or what caps leave.

    Both ``q_hat`` and the result have shape (outcomes, groups).
    """
    # A standard error of 0 must not pass for certainty.
    errors = [max(weight.standard_error, 1.0 / weight.size) for weight in weights.values()]
    by_chance = audit.constants.z * np.array(errors)
    by_bias = np.array([audit.branches[group].error for group in weights])
    return np.maximum(audit.question.epsilon / 12.0, (by_bias + by_chance) / q_hat)


def _list_assumptions(audit: ExpAudit) -> tuple[str, ...]:
    """Return what the answer rests on, one line each."""
    branches = audit.branches
    n_free = sum(audit.free_features.values())
    lines = [
        "everybody comes from one population, past and present, independently",
        *_list_model_assumptions(audit),
        audit.switch_rule,
    ]
    for group, branch in branches.items():
        lines.append(f"group {group!r}: {branch.way} weights from features: {branch.why}")
    if any(branch.way == "likelihood" for branch in branches.values()):
        lines.append("normal approximation of the error of estimated laws and weights")
    if n_free:
        lines.append(f"the features of {n_free:,} past people whom the fit did not see were free")
    lines.append(
        "the verdict holds if the model does, and is not guaranteed: it cost "
        f"{format_count(audit.cost)}; a guaranteed one by labels would cost about "
        f"{format_number(audit.price_of_guaranteed_verdict(), 4)}"
    )
    if audit.weights == "published" and audit.switch != "separation":
        lines.append("separation was not tested: MAP counts are biased where laws overlap")
    lines += [f"self-check: {check}" for check in audit.checks.self_checks]
    if _has_own_thresholds(audit):
        lines.append(
            "thresholds below the proof's were given: the verdict has no proven error probability"
        )
    return tuple(lines)


def _list_model_assumptions(audit: ExpAudit) -> list[str]:
    """Return what is assumed of the features' laws and of the decision-maker."""
    fits = [fit for pair in audit.model.fits.values() for fit in pair]
    families = " or ".join(dict.fromkeys(fit.family.name for fit in fits))
    laws = (
        f"the features of each outcome in each group follow the {families} family, also where "
        "nobody was approved"
    )
    if not audit.model.rules:
        return [laws, "'accepts' is the decision-maker that was used"]
    rules = [
        f"group {group!r}: the decision-maker, who could not be asked, follows {rule}"
        for group, rule in audit.model.rules.items()
    ]
    return [laws, *rules]


def _has_own_thresholds(audit: ExpAudit) -> bool:
    """Say whether some count is smaller than the proof needs, because the caller wanted it so."""
    has_small_tau = audit.tau < audit.constants.tau
    has_small_coarse_tau = audit.coarse_tau < audit.constants.coarse_tau
    is_capped = any(b.features == audit.feature_cap for b in audit.branches.values())
    return has_small_tau or has_small_coarse_tau or is_capped
