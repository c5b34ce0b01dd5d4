"""The table that regulators ask for: how often each group is approved, against the highest rate.

Whether a person was approved is always known, so past decisions settle it for free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from equipoise._json import JsonValue
from equipoise.cells import GroupCells
from equipoise.finding import Interval, gap_interval
from equipoise.free_check import bands_from_past, compared_groups, rate_intervals
from equipoise.history import Past
from equipoise.levels import selection_level
from equipoise.question import Question

FOUR_FIFTHS = 0.8
SMALL_GROUP_SHARE = 0.02  # of all people; smaller groups are marked
_ROUNDING = 1e-12  # 0.4 / 0.5 is a little more or less than four fifths, and meets the rule


@dataclass(frozen=True)
class SelectionRow(JsonValue):
    """One group's approvals.

    Attributes
    ----------
    people, approved
        Past decisions and approvals; 0 if the past is unlimited.
    rate
        The share approved. All intervals of a table hold together, at the question's delta.
    against
        The group that it is compared with: the reference of the question, or the one with the
        highest rate among those it is compared with; None if it is not compared.
    impact_ratio
        The rate over that of ``against``, at most 1; the interval is over the highest of all whom
        the group is compared with. None if it is not compared.
    p_value
        Fisher's exact test of equal rates of the two groups: two-sided, for this pair alone, not
        adjusted for other pairs, for one look at the data. No verdict uses it.
    small
        Whether it has less than 2% of all people.
    """

    group: str
    people: int
    approved: int
    rate: Interval
    against: str | None
    impact_ratio: Interval | None
    p_value: float | None
    small: bool

    @property
    def four_fifths(self) -> str:
        """Whether the four-fifths rule is "met", the group is "below" it, or it is "undecided"."""
        return "–" if self.impact_ratio is None else four_fifths_state(self.impact_ratio)


def four_fifths_state(ratio: Interval) -> str:
    """Say what is established about a ratio: "met", "below" or "undecided"."""
    if ratio.lower >= FOUR_FIFTHS - _ROUNDING:
        return "met"
    return "below" if ratio.upper < FOUR_FIFTHS - _ROUNDING else "undecided"


def selection_table(past: Past, question: Question) -> tuple[tuple[SelectionRow, ...], Interval]:
    """Return a row per compared group, and the ratio of the lowest approval rate to the highest.

    Examples
    --------
    >>> from equipoise import History
    >>> white = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    >>> black = {"approved_positive": 20, "approved_negative": 10, "denied": 70}
    >>> past = History.from_cells({"White": white, "Black": black})
    >>> rows, _ = selection_table(past, Question("equal_opportunity"))
    >>> rows[1].against, round(rows[1].impact_ratio.estimate, 3), rows[1].four_fifths
    ('White', 0.375, 'below')
    """
    compared = past.restricted_to(compared_groups(past, question))
    level = selection_level(question, len(compared.cells))
    bands = bands_from_past(compared, "demographic_parity", level)
    intervals = rate_intervals(bands, dict.fromkeys(compared.cells, (0.0, 1.0)))
    # Approval rates are compared by ratio, whatever the audit asks about.
    gap = gap_interval(intervals, replace(question.comparison, by="ratio"))
    rates = {}
    # Every decision is known, so the estimate is the share that was approved.
    for group, interval in intervals["selection_rate"].items():
        counts = past.cells[group]
        rates[group] = replace(interval, estimate=counts.approved / counts.total)
    compared_with = _compared_with(question, past.cells.groups)
    rows = [_selection_row(past, group, rates, compared_with[group]) for group in rates]
    # By ratio a gap is what the lowest rate lacks of the highest, so the ends change places.
    return tuple(rows), Interval(1.0 - gap.upper, 1.0 - gap.lower)


def _compared_with(question: Question, groups: Sequence[str]) -> dict[str, list[str]]:
    """Return, per group, the groups below whose rate its own may be."""
    higher_groups: dict[str, list[str]] = {group: [] for group in groups}
    for higher, lower in question.resolve(groups).pairs:
        higher_groups[groups[lower]].append(groups[higher])
    return higher_groups


def _selection_row(
    past: Past, group: str, rates: Mapping[str, Interval], compared_with: Sequence[str]
) -> SelectionRow:
    """Return a group's approvals beside those of the groups that it is compared with."""
    counts = past.cells[group]
    rate = rates[group]
    against = max(compared_with, key=lambda name: rates[name].estimate or 0.0, default=None)
    impact_ratio = None
    p_value = None
    if against is not None:
        # Which group is the highest is not known either, so the interval is over all of them.
        impact_ratio = Interval(
            _divide_rates(rate.lower, max(rates[name].upper for name in compared_with)),
            _divide_rates(rate.upper, max(rates[name].lower for name in compared_with)),
            _divide_rates(rate.estimate or 0.0, rates[against].estimate or 0.0),
        )
        if not past.exact:  # an unlimited past has no chance to be tested
            p_value = _fisher_p_value(counts, past.cells[against])
    return SelectionRow(
        group=group,
        people=0 if past.exact else round(counts.total),
        approved=0 if past.exact else round(counts.approved),
        rate=rate,
        against=against,
        impact_ratio=impact_ratio,
        p_value=p_value,
        small=counts.total < SMALL_GROUP_SHARE * past.cells.total,
    )


def _fisher_p_value(counts: GroupCells, other_counts: GroupCells) -> float:
    """Return the two-sided p-value of equal approval rates in two groups."""
    from scipy.stats import fisher_exact

    table = [
        [round(counts.approved), round(counts.denied)],
        [round(other_counts.approved), round(other_counts.denied)],
    ]
    return float(fisher_exact(np.array(table)).pvalue)


def _divide_rates(rate: float, highest: float) -> float:
    return min(rate / highest, 1.0) if highest > 0.0 else 1.0
