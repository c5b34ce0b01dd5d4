"""What labels add to the design of an adaptive audit: intervals, the finding, what is missing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise.audits.design import AuditDesign
from equipoise.display import format_count, format_number
from equipoise.evidence.evidence import Evidence
from equipoise.evidence.intervals import success_estimates, success_intervals
from equipoise.finding import Finding, GroupShares, Interval, gap_interval, separation
from equipoise.free_check import (
    gap_bounds,
    group_shares,
    list_assumptions,
    name_short_strata,
    proof_from_past,
    rate_intervals,
)
from equipoise.question import Verdict
from equipoise.rates import RATES

ASSUMES_STREAM = "denied people of a group arrive like any others of it, whatever their outcome"
MIN_LABELS_FOR_FORECAST = 10  # of every group, before the labels still needed are forecast
ERRORS_TO_DECIDE = 5.0  # standard errors of a gap that epsilon must span for labels to decide
GAP_TOLERANCE = 1e-4  # to which the bounds of the gap are computed
Boxes = dict[str, tuple[float, float]]
"""Where each group's r lies: lower and upper end."""


def denied_success_intervals(design: AuditDesign, evidence: Evidence | None) -> dict[str, Interval]:
    """Return where each group's r lies: anywhere in [0, 1] where there is no evidence."""
    if evidence is None:
        return dict.fromkeys(design.groups, Interval(0.0, 1.0))
    intervals = success_intervals(evidence.log, design.budget.label_interval)
    return dict(zip(design.groups, intervals, strict=True))


def make_finding(
    design: AuditDesign,
    evidence: Evidence | None,
    verdict: Verdict,
    reason: str,
    missing: tuple[str, ...],
) -> Finding:
    """Return the finding, without what it cost.

    Parameters
    ----------
    evidence
        What labels tell by now; None if none were needed.
    verdict
        What is refuted decides: the bounds of the gap never contradict it.
    missing
        What would bring a verdict, one line each.
    """
    question = design.question
    r = denied_success_intervals(design, evidence)
    boxes = {group: (interval.lower, interval.upper) for group, interval in r.items()}
    gap = _gap_bounds(design, boxes, verdict)
    # A group that is left out has no share of the error probability: nothing is claimed of it.
    compared_past = design.history.restricted_to(design.compared)
    shares = group_shares(compared_past, design.budget.past_table, r)
    rates = _rates_with_estimates(design, boxes, shares)
    estimate = gap_interval(rates, question.comparison).estimate
    is_unfair = verdict is Verdict.UNFAIR
    return Finding(
        question=question,
        verdict=verdict,
        lower=gap.lower,
        upper=gap.upper,
        reason=reason,
        estimate=gap.with_estimate(estimate).estimate,
        rates=rates,
        decided_by=separation(rates, question.comparison) if is_unfair else None,
        missing=missing,
        assumptions=(*list_assumptions(design.history, question), ASSUMES_STREAM),
        proof=proof_from_past(design.history),
        shares=shares,
    )


def contradicts_interval(design: AuditDesign, evidence: Evidence | None, verdict: Verdict) -> bool:
    """Say whether the interval of the gap excludes what a verdict says.

    Both hold with high probability, so one of them errs, and neither should be reported.
    """
    question = design.question
    r = denied_success_intervals(design, evidence)
    boxes = {group: (interval.lower, interval.upper) for group, interval in r.items()}
    if verdict is Verdict.FAIR:
        return _gap_bounds(design, boxes, Verdict.INCONCLUSIVE).lower > question.threshold
    # The upper bound alone takes no search.
    rate_by_rate = gap_interval(rate_intervals(design.bands, boxes), question.comparison)
    return verdict is Verdict.UNFAIR and rate_by_rate.upper < question.gamma


def _gap_bounds(design: AuditDesign, boxes: Boxes, verdict: Verdict) -> Interval:
    """Return bounds of the gap by the intervals of r, and by the verdict where that says more."""
    question = design.question
    lower, upper = gap_bounds(
        design.bands, boxes, compare=question.comparison, tolerance=GAP_TOLERANCE
    )
    if verdict is Verdict.FAIR:
        upper = min(upper, question.threshold)
    elif verdict is Verdict.UNFAIR:
        lower = max(lower, question.gamma)
    # Two statements that hold with high probability may miss each other, if one of them errs.
    return Interval(min(lower, upper), max(lower, upper))


def _rates_with_estimates(
    design: AuditDesign, boxes: Boxes, shares: Mapping[str, GroupShares]
) -> dict[str, dict[str, Interval]]:
    """Return rate -> group -> interval, with the estimate that the groups' shares give."""
    rates: dict[str, dict[str, Interval]] = {}
    for rate, by_group in rate_intervals(design.bands, boxes).items():
        rates[rate] = {}
        for group, interval in by_group.items():
            if group not in shares:
                continue
            estimate = shares[group].rate(RATES[rate]).estimate
            rates[rate][group] = interval.with_estimate(estimate)
    return rates


# -- what is missing ---------------------------------------------------------------------------


def describe_missing(
    design: AuditDesign, evidence: Evidence, n_pending: int, *, limited_by_past: bool = False
) -> tuple[str, ...]:
    """Return what would bring a verdict, one line each; ``n_pending`` outcomes are pending.

    ``limited_by_past`` says that the audit ended because many more labels would hardly decide.
    """
    # Where a group has no label yet, its r is guessed in the middle.
    r = {}
    for group, interval in denied_success_intervals(design, evidence).items():
        r[group] = 0.5 if interval.estimate is None else interval.estimate
    lines = [
        _describe_missing_past(design, evidence)
        if limited_by_past
        else _describe_missing_evidence(design, evidence),
        *name_short_strata(design.history, design.question, design.budget, r),
    ]
    if n_pending:
        lines.append(
            f"{n_pending:,} outcomes that are still pending; ranges hold however they turn out"
        )
    return tuple(lines)


def _describe_missing_evidence(design: AuditDesign, evidence: Evidence) -> str:
    """Return the one thing that stands most in the way of a verdict."""
    n_unknown = design.history.cells.unknown
    labels_to_go = evidence.plan.labels_to_go()
    if (evidence.log.n_told[design.reachable] < MIN_LABELS_FOR_FORECAST).any():
        return (
            f"more labels; after {MIN_LABELS_FOR_FORECAST} of every group it can be said about "
            "how many, and plan forecasts what such audits need"
        )
    if np.isfinite(labels_to_go).all():
        counts = zip(design.groups, labels_to_go, strict=True)
        named = [f"about {int(np.ceil(n)):,} of {group}" for group, n in counts if n >= 0.5]
        return f"more labels, at the present estimates: {', '.join(named)}"
    if n_unknown:
        return (
            f"outcomes of {format_count(n_unknown)} approved people that are not known: at the "
            "present estimates no number of labels decides without them; or a larger epsilon"
        )
    if design.weighs_past_rows:
        n_rows, margin = _past_or_margin_needed(design, evidence)
        return (
            "more past rows: at the present estimates no number of labels decides with these; "
            f"try about {n_rows:,.0f} in all, or an epsilon of about {format_number(margin, 2)}"
        )
    if not design.history.exact:
        return (
            "more past rows: at the present estimates no number of labels decides with these; "
            f"try about {_past_rows_needed(design):,.0f} in all, or a larger epsilon"
        )
    return "a larger epsilon: at the present estimates both answers stay possible"


def _describe_missing_past(design: AuditDesign, evidence: Evidence) -> str:
    """Return the past rows, or the margin, that would decide where labels hardly would."""
    n_rows, margin = _past_or_margin_needed(design, evidence)
    return (
        f"more past rows, about {format_count(n_rows)} in all; or an epsilon of about "
        f"{format_number(margin, 2)}; or very many more labels (give_up='never' goes on)"
    )


def _past_or_margin_needed(design: AuditDesign, evidence: Evidence) -> tuple[float, float]:
    """Return about how many past rows would decide, and about which epsilon with these rows.

    Boxes that hold the unknowns fall once epsilon is some standard errors of the gap wide.
    """
    # Errors shrink with the root of the number of rows, so rows grow with the square of a factor.
    error = design.row_answers().error_of_gap(success_estimates(evidence.log))
    margin = max(ERRORS_TO_DECIDE * error, 1.2 * design.question.epsilon)
    return design.history.cells.total * (margin / design.question.epsilon) ** 2, margin


def _past_rows_needed(design: AuditDesign) -> float:
    """Return about how many past rows make every band narrower than a quarter of epsilon.

    Widths shrink with the root of the number of rows, and are compared where r is 1/2. The number
    is at least four times that of the present rows.
    """
    scale = design.question.gap_scale
    # With r fixed, what is left of a rate's range is the uncertainty of the past.
    middle = dict.fromkeys(design.groups, (0.5, 0.5))
    compared = design.compared
    widths = [
        scale.gap(interval.lower, interval.upper)
        for by_group in rate_intervals(design.bands, middle).values()
        for group, interval in by_group.items()
        if group in compared
    ]
    # The audit has just shown that the present rows are too few, so a little more is no advice:
    # every width is to be halved at least, for which it takes four times as many rows.
    factor = max(float(max(widths)) / (design.question.epsilon / 4.0), 2.0)
    return design.history.cells.total * factor**2
