"""Where an adaptive audit stands: what its labels and the past data say of every rate by now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.cells import Cells
from equipoise.evidence.confidence import anytime_interval
from equipoise.evidence.evidence import Evidence, GroupSample
from equipoise.finding import Finding, Interval, separation
from equipoise.free_check import (
    assumptions_of,
    gap_bounds,
    group_shares,
    rate_intervals,
    short_strata,
)
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.question import Question, Verdict
from equipoise.rates import RATES, Bands, Curve

__all__ = ["Standing"]

ASSUMES_STREAM = "denied people of a group arrive like any others of it, whatever their outcome"
TOO_FEW = 10  # labels of a group from which nothing is foretold


@dataclass(frozen=True)
class Standing:
    """The past data, the question, and the evidence so far.

    ``groups`` are in the order that the evidence knows them by; ``evidence`` is None where no label
    is needed.
    """

    history: Past
    question: Question
    budget: ErrorBudget
    bands: Bands
    groups: tuple[str, ...]
    evidence: Evidence | None

    @property
    def cells(self) -> Cells:
        """The past data, counted."""
        return self.history.cells

    def report(
        self,
        verdict: Verdict,
        reason: str,
        missing: tuple[str, ...],
        *,
        cost: float,
        labels: int,
        score_only: int,
    ) -> Finding:
        """Return the finding."""
        boxes = self.boxes()
        lower, upper = gap_bounds(
            self.bands, boxes, compare=self.question.comparison, tolerance=1e-4
        )
        if verdict is Verdict.FAIR:
            upper = min(upper, self.question.threshold)
        elif verdict is Verdict.UNFAIR:
            lower = max(lower, self.question.gamma)
        lower, upper = min(lower, upper), max(lower, upper)
        rates, estimate = self._with_estimates(rate_intervals(self.bands, boxes))
        return Finding(
            question=self.question,
            verdict=verdict,
            lower=lower,
            upper=upper,
            reason=reason,
            estimate=None if estimate is None else min(max(estimate, lower), upper),
            rates=rates,
            cost=cost,
            labels=labels,
            score_only=score_only,
            decided_by=separation(rates, self.question.compare)
            if verdict is Verdict.UNFAIR
            else None,
            missing=missing,
            assumptions=self._assumptions(),
            shares=group_shares(
                self.history,
                self.budget.past_table,
                boxes,
                {group: own.mean for group, own in self._samples.items()},
            ),
        )

    def boxes(self) -> dict[str, tuple[float, float]]:
        """Return where labels put each group's r: nowhere in particular before its first one."""
        if self.evidence is None:
            return dict.fromkeys(self.groups, (0.0, 1.0))
        level = self.budget.label_interval
        return {
            group: anytime_interval(own.ones, own.zeros, own.unknown, level, own.sized)
            for group, own in self._samples.items()
        }

    @cached_property
    def _samples(self) -> dict[str, GroupSample]:
        settled = [] if self.evidence is None else self.evidence.settled()
        return dict(zip(self.groups, settled, strict=bool(settled)))

    def is_reachable(self, group: str) -> bool:
        """Say whether a group has denied people to label, and their labels matter."""
        depends = any(by_group[group].depends_on_r for by_group in self.bands.values())
        left_out = group in self.question.compared(self.cells).left_out
        return depends and not left_out and self.cells[group].denied > 0  # else nobody would come

    def _with_estimates(
        self, intervals: Mapping[str, Mapping[str, Interval]]
    ) -> tuple[dict[str, dict[str, Interval]], float | None]:
        """Add the plug-in value to each rate that labels or past data support, and to the gap."""
        out: dict[str, dict[str, Interval]] = {}
        for rate, by_group in intervals.items():
            out[rate] = {}
            for group, interval in by_group.items():
                curve = RATES[rate].curve(*self.cells[group].like_known.shares)
                guess = None if curve is None else self._plug_in(curve, group)
                if guess is not None:
                    guess = min(max(guess, interval.lower), interval.upper)
                out[rate][group] = Interval(interval.lower, interval.upper, guess)
        compare = self.question.compared(self.cells)
        guesses = np.array(
            [[out[rate][group].estimate for group in self.cells] for rate in out], dtype=float
        )
        known = not np.isnan(guesses[:, compare.groups]).any()
        return out, float(compare.gap(guesses).max()) if known else None

    def _plug_in(self, curve: Curve, group: str) -> float | None:
        if curve.trend == 0:
            return float(curve.value(0.0))
        mean = self._samples[group].mean if group in self._samples else None
        return None if mean is None else float(curve.value(min(max(mean, 0.0), 1.0)))

    def undecidable(self) -> bool:
        """Say whether no number of labels decides."""
        low, high = np.array(list(self.boxes().values())).T
        return self.evidence is not None and self.evidence.undecidable(low, high)

    def what_is_missing(self, pending: int) -> tuple[str, ...]:
        """Say what would bring a verdict, so many outcomes being pending."""
        assert self.evidence is not None
        to_go = self.evidence.labels_to_go()
        lines = []
        reachable = [self.is_reachable(group) for group in self.groups]
        if (self.evidence.told[reachable] < TOO_FEW).any():
            lines.append(
                f"more labels; after {TOO_FEW} of every group it can be said about how many, and "
                "plan forecasts what such audits need"
            )
        elif np.isfinite(to_go).all():
            wanted = [
                f"about {int(np.ceil(n)):,} of {g}"
                for g, n in zip(self.groups, to_go, strict=True)
                if n >= 0.5
            ]
            lines.append(f"more labels, at the present estimates: {', '.join(wanted)}")
        elif self.cells.unknown:
            lines.append(
                f"outcomes of {self.cells.unknown:,g} approved people that are not known: at the "
                "present estimates no number of labels decides without them; or a larger epsilon"
            )
        elif not self.history.exact:
            lines.append(
                "more past rows: at the present estimates no number of labels decides with these; "
                f"try about {self._past_rows_needed():,.0f} in all, or a larger epsilon"
            )
        else:
            lines.append("a larger epsilon: at the present estimates both answers stay possible")
        r = {g: 0.5 if own.mean is None else own.mean for g, own in self._samples.items()}
        lines += short_strata(self.history, self.question, self.budget, r)
        if pending:
            lines.append(f"{pending:,} outcomes that are still pending")
        return tuple(lines)

    def _past_rows_needed(self) -> float:
        """Return a size of past data whose bands are narrow against epsilon."""
        widest = max(
            float(self.question.gap_scale.gap(interval.lower, interval.upper))
            for by_group in rate_intervals(
                self.bands, dict.fromkeys(self.groups, (0.5, 0.5))
            ).values()
            for interval in by_group.values()
        )
        shrink = max(widest / (self.question.epsilon / 4.0), 2.0)
        return self.cells.total * shrink**2

    def _assumptions(self) -> tuple[str, ...]:
        return (*assumptions_of(self.history, self.question), ASSUMES_STREAM)
