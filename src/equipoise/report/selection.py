"""The table that regulators ask for: how often each group is approved, against the highest rate.

Approvals are known of everybody, so that past decisions settle it for free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from equipoise._json import JsonValue
from equipoise.finding import Interval
from equipoise.free_check import check
from equipoise.history import Past
from equipoise.question import Question

FOUR_FIFTHS = 0.8
SMALL_GROUP_SHARE = 0.02  # of all people: a group below is marked
_ROUNDING = 1e-12


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
    """Return a row per group, and the ratio of the lowest approval rate to the highest.

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
    from scipy.stats import fisher_exact

    asked = Question(
        "demographic_parity",
        gamma=1.0 - FOUR_FIFTHS,
        delta=question.delta,
        compare=replace(question.comparison, by="ratio"),
    )
    found, cells = check(past, asked), past.cells
    names = cells.groups
    rates = {
        g: replace(known, estimate=cells[g].approved / cells[g].total)
        for g, known in found.rates["selection_rate"].items()
    }
    higher: dict[str, list[str]] = {g: [] for g in names}
    for high, low in question.resolve(names).pairs:
        higher[names[low]].append(names[high])
    rows = []
    for group, counts in cells.items():
        own, others, ratio, p_value = rates[group], [rates[g] for g in higher[group]], None, None
        best = max(higher[group], key=lambda g: rates[g].estimate or 0.0, default=None)
        people, approved = (0 if past.exact else round(n) for n in (counts.total, counts.approved))
        if best is not None:
            ratio = Interval(
                _ratio(own.lower, max(other.upper for other in others)),
                _ratio(own.upper, max(other.lower for other in others)),
                _ratio(own.estimate or 0.0, rates[best].estimate or 0.0),
            )
            if not past.exact:
                both = [[round(c.approved), round(c.denied)] for c in (counts, cells[best])]
                p_value = float(fisher_exact(np.array(both)).pvalue)
        small = counts.total < SMALL_GROUP_SHARE * cells.total
        rows.append(SelectionRow(group, people, approved, own, best, ratio, p_value, small))
    return tuple(rows), Interval(1.0 - found.upper, 1.0 - found.lower)


def _ratio(rate: float, highest: float) -> float:
    return min(rate / highest, 1.0) if highest > 0.0 else 1.0
