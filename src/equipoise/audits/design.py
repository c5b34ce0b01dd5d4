"""What past data and question fix before the first label of an adaptive audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise._arrays import Array, Flags
from equipoise.comparison import GapScale
from equipoise.evidence.row_answers import RowAnswers
from equipoise.evidence.wrong_answers import WrongAnswers
from equipoise.free_check import bands_from_past, compared_groups
from equipoise.history.past import Past
from equipoise.levels import ErrorBudget
from equipoise.metrics import METRICS
from equipoise.question import Costs, Question
from equipoise.rates import Band, Bands

MAX_GROUPS_BY_ROWS = 8  # with more groups bands bound what past data say


@dataclass(frozen=True)
class AuditDesign:
    """What past data and question fix before the first label of an adaptive audit.

    No label changes any of it. What labels add is in :mod:`equipoise.audits.adaptive_finding`.
    """

    history: Past
    question: Question

    # Both fields are fixed, and everything below follows from them: what is cached stays right.

    @cached_property
    def budget(self) -> ErrorBudget:
        """How the error probability is divided; groups that are left out get no share."""
        return ErrorBudget.of_audit(
            self.question,
            len(self.compared),
            exact=self.history.exact,
            by_rows=self.weighs_past_rows,
        )

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The groups that the question compares, in the order of the past data."""
        return compared_groups(self.history, self.question)

    @cached_property
    def weighs_past_rows(self) -> bool:
        """Whether past rows are evidence themselves; otherwise bands bound what they say.

        This is the one place that decides it. It follows from the question, from the number of
        groups and from how the past was read, never from the counts. Bands stay where

        - the past is unlimited: there is nothing to bound (one curve per rate);
        - unknown outcomes are assumed to be like the known ones (cohorts);
        - a rate needs no label, or is the unknown itself: rows and labels do not meet in it;
        - rates are compared by ratio and one may be 0, since its numerator has denied people only:
          so near 0 boxes would be too many;
        - there are more than ``MAX_GROUPS_BY_ROWS`` groups: their boxes would need too much memory.
        """
        cells = self.history.cells
        rates = METRICS[self.question.metric].rates
        return (
            not self.history.exact
            and not any(group_cells.cohorts for group_cells in cells.values())
            and all(rate.trend != 0 and rate.whole & {"tp", "fp"} for rate in rates)
            and not self._has_ratio_near_zero
            and len(self.compared) <= MAX_GROUPS_BY_ROWS
        )

    @property
    def _has_ratio_near_zero(self) -> bool:
        """Whether a rate that may be 0 is compared by ratio."""
        rates = METRICS[self.question.metric].rates
        may_be_zero = any(not rate.part & {"tp", "fp"} for rate in rates)
        return self.question.gap_scale is GapScale.RATIO and may_be_zero

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups in the order that evidence knows them by: that of their past counts.

        It depends on no name and on no label, so neither does any answer.
        """
        group_cells = self.history.cells

        def past_counts(group: str) -> tuple[object, ...]:
            cells = group_cells[group]
            return (
                cells.denied,
                cells.approved_positive,
                cells.approved_negative,
                cells.approved_unknown,
                sorted(cells.cohorts),
            )

        return tuple(sorted(group_cells, key=past_counts))

    @cached_property
    def bands(self) -> Bands:
        """Every rate as a function of r, as far as the past data tell, for intervals."""
        return bands_from_past(self.history, self.question.metric, self.budget.past_intervals)

    @cached_property
    def reachable(self) -> Flags:
        """Which groups have denied people to label whose labels matter."""
        compared = self.compared
        return np.array([group in compared and self._matters(group) for group in self.groups])

    def _matters(self, group: str) -> bool:
        """Say whether a group has denied people whose outcomes some rate depends on."""
        has_denied = self.history.cells[group].denied > 0
        bands_of_group = [by_group[group] for by_group in self.bands.values()]
        return has_denied and any(band.depends_on_r for band in bands_of_group)

    def wrong_answers(self) -> WrongAnswers | RowAnswers:
        """Return the wrong answers that an audit on this past has to refute."""
        question = self.question
        # Then bounds of the past need no share of the error probability (guarantees, 3.21).
        if self.weighs_past_rows:
            return self.row_answers()
        # Other bands than for the intervals: FAIR needs two bounds only, so each has a larger
        # share of the level and is narrower (guarantees, 3.8).
        bands_for_fair = bands_from_past(self.history, question.metric, self.budget.past_fair)
        return WrongAnswers(
            self._in_group_order(bands_for_fair),
            self._in_group_order(self.bands),
            gamma=question.gamma,
            epsilon=question.epsilon,
            level_fair=self.budget.evidence_fair,
            level_unfair=self.budget.evidence_unfair,
            compare=question.gap_scale,
            blocks=question.resolve(self.groups).blocks,
            precision=tuple(self._precision(group) for group in self.groups),
        )

    def row_answers(self) -> RowAnswers:
        """Return the wrong answers that past rows and labels refute together."""
        question = self.question
        return RowAnswers(
            METRICS[question.metric].rates,
            tuple(self.history.cells[group] for group in self.groups),
            gamma=question.gamma,
            epsilon=question.epsilon,
            level_fair=self.budget.evidence_fair,
            level_unfair=self.budget.evidence_unfair,
            compare=question.gap_scale,
            blocks=question.resolve(self.groups).blocks,
        )

    def _in_group_order(self, bands: Bands) -> tuple[tuple[Band, ...], ...]:
        """Return per rate the bands of all groups, in the order of :attr:`groups`."""
        return tuple(tuple(by_group[group] for group in self.groups) for by_group in bands.values())

    def _precision(self, group: str) -> float:
        """Return the share of good outcomes among a group's approved people, where known."""
        cells = self.history.cells[group].like_known
        return cells.approved_positive / max(cells.approved, 1e-300)

    @cached_property
    def random_accept_counts(self) -> Mapping[str, Sequence[float]]:
        """Labels of a test programme in the past data: good, bad and unknown ones per group."""
        group_cells = self.history.cells
        return {group: cells.random_accepts or (0, 0, 0) for group, cells in group_cells.items()}

    def label_counts(self, random_accept_counts: Mapping[str, Sequence[float]]) -> Array:
        """Return labels of a test programme as evidence counts them, shape (groups, 3).

        The columns are outcomes 0, 1 and unknown ones.
        """
        counts = np.zeros((len(self.groups), 3))
        for row, group in enumerate(self.groups):
            good, bad, unknown = random_accept_counts[group]
            counts[row] = bad, good, unknown  # the evidence indexes by outcome: 0, 1, unknown
        return counts

    def prices(self, costs: Costs) -> Array:
        """Return what a request costs, and what a label of 0 costs besides, shape (2, groups)."""
        return np.array([(costs.of(g).feature, costs.of(g).label) for g in self.groups]).T
