"""Exp-Audit's verdict from the weights that features gave, with what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.rate_findings import finding_from_rates
from equipoise.finding import Finding
from equipoise.mixture.weights import Weight

if TYPE_CHECKING:
    from equipoise.audits.exp import ExpAudit

__all__ = ["finding_from_weights"]


def finding_from_weights(
    audit: ExpAudit, weights: Mapping[str, Weight], problem: str | None
) -> Finding:
    """Return the verdict; ``problem`` is why the model should not have been believed."""
    shape = len(audit.outcomes), len(audit.cells)
    ratios, low, high = np.empty(shape), np.empty(shape), np.empty(shape)
    past = audit.question.epsilon / 12.0 * np.sqrt(audit.constants.tau / audit.tau)
    for j, (group, weight) in enumerate(weights.items()):
        for i, y in enumerate(audit.outcomes):
            q = max(weight.estimate if y else 1.0 - weight.estimate, 1e-12)
            online = _weight_error(audit, group, weight, q)
            ratio = audit.tau / audit.rows[y, group] / q
            ratios[i, j] = min(ratio, 1.0)
            low[i, j] = min(ratio * max(1.0 - past, 0.0) / (1.0 + online), 1.0)
            high[i, j] = min(ratio * (1.0 + past) / (1.0 - online), 1.0) if online < 1 else 1.0
    finding = finding_from_rates(audit.question, audit.cells.groups, ratios, low, high)
    ways = ", ".join(f"{g}: {b.way}" for g, b in audit.branches.items())
    headline = "" if problem is None else f"the model was believed although {problem}: "
    return replace(
        finding,
        reason=f"{headline}{finding.reason} (weights from features, {ways})",
        guaranteed=problem is None and audit.weights != "map" and _thresholds_proven(audit),
        assumptions=_assumptions(audit),
        warnings=() if problem is None else (problem,),
    )


def _weight_error(audit: ExpAudit, group: str, weight: Weight, q: float) -> float:
    """Return how far off a weight q may be, relative to it: the proof's, or what caps leave."""
    epsilon = audit.question.epsilon
    bias = epsilon / 36.0 if audit.branches[group].way == "map" else 0.0
    chance = audit.constants.z * max(weight.standard_error, 1.0 / weight.size) / q
    return max(epsilon / 12.0, bias + chance)


def _thresholds_proven(audit: ExpAudit) -> bool:
    capped = audit.feature_cap is not None and any(
        b.features == audit.feature_cap for b in audit.branches.values()
    )
    own = audit.tau < audit.constants.tau or audit.coarse_tau < audit.constants.coarse_tau
    return not (own or capped)


def _assumptions(audit: ExpAudit) -> tuple[str, ...]:
    """Return what the answer rests on, one line each."""
    fits = [fit for pair in audit.model.fits.values() for fit in pair]
    families = " or ".join(dict.fromkeys(fit.family.name for fit in fits))
    lines = [
        "everybody comes from one population, past and present, independently",
        f"the features of each outcome in each group follow the {families} family, also where "
        "nobody was approved",
    ]
    if not audit.model.rules:
        lines.append("'accepts' is the decision-maker that was used")
    lines += [
        f"group {group!r}: the decision-maker, who could not be asked, follows {rule}"
        for group, rule in audit.model.rules.items()
    ]
    lines += [
        f"group {group!r}: {branch.way} weights from features: {branch.why}"
        for group, branch in audit.branches.items()
    ]
    estimated = any(fit.theta_covariance.any() for fit in fits)
    if estimated or any(b.way == "likelihood" for b in audit.branches.values()):
        lines.append("normal approximation of the error of estimated laws and weights")
    if audit.weights == "map":
        lines.append("separation was not tested: MAP counts are biased where laws overlap")
    lines += [f"self-check: {check}" for check in audit.checks.made]
    if not _thresholds_proven(audit):
        lines.append(
            "thresholds below the proof's were given: the verdict has no proven error probability"
        )
    return tuple(lines)
