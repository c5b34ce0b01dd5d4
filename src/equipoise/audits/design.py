"""What past data and question fix before the first label, and the finding that labels add to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise._arrays import Array, Flags
from equipoise.evidence.evidence import Evidence
from equipoise.evidence.null_cells import WrongAnswers
from equipoise.finding import Finding, Interval, gap_interval, separation
from equipoise.free_check import (
    bands_from_past,
    gap_bounds,
    group_shares,
    list_assumptions,
    name_short_strata,
    rate_intervals,
)
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.question import Costs, Question, Verdict
from equipoise.rates import RATES, Bands

ASSUMES_STREAM = "denied people of a group arrive like any others of it, whatever their outcome"
MIN_LABELS_FOR_FORECAST = (
    10  # labels of a group below which the number still needed is not forecast
)


@dataclass(frozen=True)
class AuditDesign:
    """What past data and question fix before the first label, and how a finding follows from it.

    No label changes any of it: where labels matter, the evidence is an argument.
    """

    history: Past
    question: Question

    @cached_property
    def budget(self) -> ErrorBudget:
        """How the error probability is divided."""
        past = self.history
        return ErrorBudget.of_audit(self.question, len(past.cells), exact=past.exact)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups in the order that evidence knows them by: that of their past counts.

        It depends on no name and on no label, so neither does any answer.
        """
        cells = self.history.cells

        def counts(group: str) -> tuple[object, ...]:
            own = cells[group]
            approved = (own.approved_positive, own.approved_negative, own.approved_unknown)
            return (own.denied, *approved, sorted(own.cohorts))

        return tuple(sorted(cells, key=counts))

    @cached_property
    def bands(self) -> Bands:
        """Every rate as a function of r, as far as the past data tell, for intervals."""
        return bands_from_past(self.history, self.question.metric, self.budget.past_intervals)

    @cached_property
    def reachable(self) -> Flags:
        """Which groups have denied people to label whose labels matter."""
        cells = self.history.cells
        left_out = self.question.resolve(cells).left_out
        return np.array(
            [
                cells[group].denied > 0
                and group not in left_out
                and any(by_group[group].depends_on_r for by_group in self.bands.values())
                for group in self.groups
            ]
        )

    def wrong_answers(self) -> WrongAnswers:
        """Return the wrong answers that an audit on this past has to refute."""
        question, budget, groups = self.question, self.budget, self.groups
        for_fair = bands_from_past(self.history, question.metric, budget.past_fair)
        bands_for_fair, bands_for_unfair = (
            tuple(tuple(by_group[group] for group in groups) for by_group in bands.values())
            for bands in (for_fair, self.bands)
        )
        known = [self.history.cells[group].like_known for group in groups]
        return WrongAnswers(
            bands_for_fair,
            bands_for_unfair,
            gamma=question.gamma,
            epsilon=question.epsilon,
            level_fair=budget.evidence_fair,
            level_unfair=budget.evidence_unfair,
            compare=question.gap_scale,
            blocks=question.resolve(groups).blocks,
            precision=tuple(c.approved_positive / max(c.approved, 1e-300) for c in known),
        )

    @cached_property
    def random_accept_counts(self) -> Mapping[str, Sequence[float]]:
        """Labels of a test programme in the past data: good, bad and unknown ones per group."""
        return {g: own.random_accepts or (0, 0, 0) for g, own in self.history.cells.items()}

    def label_counts(self, random_accept_counts: Mapping[str, Sequence[float]]) -> Array:
        """Return labels of a test programme as evidence counts them: 0, 1 and unknown per group."""
        return np.array([random_accept_counts[g] for g in self.groups], dtype=np.float64)[
            :, [1, 0, 2]
        ]

    def prices(self, costs: Costs) -> Array:
        """Return what a request costs, and what a label of 0 costs besides, shape (2, groups)."""
        return np.array([(costs.of(g).feature, costs.of(g).label) for g in self.groups]).T

    # -- what labels say by now ------------------------------------------------------------------

    def denied_success_intervals(self, evidence: Evidence | None) -> dict[str, Interval]:
        """Return where each group's r lies: anywhere in [0, 1] where there is no evidence."""
        if evidence is None:
            return dict.fromkeys(self.groups, Interval(0.0, 1.0))
        found = evidence.intervals(self.budget.label_interval)
        return dict(zip(self.groups, found, strict=True))

    def make_finding(
        self, evidence: Evidence | None, verdict: Verdict, reason: str, missing: tuple[str, ...]
    ) -> Finding:
        """Return the finding, without what it cost."""
        question, r = self.question, self.denied_success_intervals(evidence)
        boxes = {group: (own.lower, own.upper) for group, own in r.items()}
        lower, upper = gap_bounds(self.bands, boxes, compare=question.comparison, tolerance=1e-4)
        if verdict is Verdict.FAIR:
            upper = min(upper, question.threshold)
        elif verdict is Verdict.UNFAIR:
            lower = max(lower, question.gamma)
        shares = group_shares(self.history, self.budget.past_table, r)
        rates = {
            rate: {
                g: own.with_estimate(shares[g].rate(RATES[rate]).estimate) for g, own in by.items()
            }
            for rate, by in rate_intervals(self.bands, boxes).items()
        }
        gap = Interval(min(lower, upper), max(lower, upper))
        return Finding(
            question=question,
            verdict=verdict,
            lower=gap.lower,
            upper=gap.upper,
            reason=reason,
            estimate=gap.with_estimate(gap_interval(rates, question.comparison).estimate).estimate,
            rates=rates,
            decided_by=separation(rates, question.comparison)
            if verdict is Verdict.UNFAIR
            else None,
            missing=missing,
            assumptions=(*list_assumptions(self.history, question), ASSUMES_STREAM),
            shares=shares,
        )

    def describe_missing(self, evidence: Evidence, pending: int) -> tuple[str, ...]:
        """Say what would bring a verdict, so many outcomes being pending."""
        history, to_go = self.history, evidence.labels_to_go()
        if (evidence.told[self.reachable] < MIN_LABELS_FOR_FORECAST).any():
            lacks = (
                f"more labels; after {MIN_LABELS_FOR_FORECAST} of every group it can be said about "
                "how many, and plan forecasts what such audits need"
            )
        elif np.isfinite(to_go).all():
            wanted = [
                f"about {int(np.ceil(n)):,} of {g}"
                for g, n in zip(self.groups, to_go, strict=True)
                if n >= 0.5
            ]
            lacks = f"more labels, at the present estimates: {', '.join(wanted)}"
        elif history.cells.unknown:
            lacks = (
                f"outcomes of {history.cells.unknown:,g} approved people that are not known: at "
                "the present estimates no number of labels decides without them; or a larger "
                "epsilon"
            )
        elif not history.exact:
            middle, scale = dict.fromkeys(self.groups, (0.5, 0.5)), self.question.gap_scale
            by_rate = rate_intervals(self.bands, middle).values()
            widths = [scale.gap(own.lower, own.upper) for by in by_rate for own in by.values()]
            shrink = max(float(max(widths)) / (self.question.epsilon / 4.0), 2.0)
            lacks = (
                "more past rows: at the present estimates no number of labels decides with these; "
                f"try about {history.cells.total * shrink**2:,.0f} in all, or a larger epsilon"
            )
        else:
            lacks = "a larger epsilon: at the present estimates both answers stay possible"
        guesses = {
            group: own.estimate for group, own in self.denied_success_intervals(evidence).items()
        }
        r = {group: 0.5 if guess is None else guess for group, guess in guesses.items()}
        strata = name_short_strata(history, self.question, self.budget, r)
        if not pending:
            return (lacks, *strata)
        waiting = f"{pending:,} outcomes that are still pending; ranges hold however they turn out"
        return (lacks, *strata, waiting)
