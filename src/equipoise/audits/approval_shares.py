"""A test, at any time, whether the people an audit counts are approved as often as past people."""

from __future__ import annotations

import math

import numpy as np

from equipoise.evidence.stream_shares import share_evidence
from equipoise.history.past import Past
from equipoise.levels import approval_level
from equipoise.rates import clopper_pearson

FAIR_SAMPLE = "everybody as they come, approved and denied; then past and present of one population"


class ApprovalShares:
    """The numbers of approved and denied people counted, and the test of them.

    If a group's share of approvals lies outside the past's Clopper-Pearson interval, then
    :func:`~equipoise.evidence.stream_shares.share_evidence` grows. A stream of denied people only
    is found out after some thirty of them, before money is spent on a wrong answer.
    """

    def __init__(self, past: Past) -> None:
        level = approval_level(len(past.cells))
        self._log_threshold = -math.log(level)
        past_level = None if past.exact else level  # an exact past has intervals of one point
        self._past_intervals = {
            group: clopper_pearson(cells.approved, cells.total, past_level)
            for group, cells in past.cells.items()
        }
        self._decision_counts = {group: [0, 0] for group in past.cells}  # denied, approved

    def count_person(self, group: str, decision: int) -> str | None:
        """Count a person; return what is wrong, None if nothing is or it is not tested now.

        A group is tested whenever its count is a power of two.
        """
        self._decision_counts[group][decision] += 1
        count = sum(self._decision_counts[group])
        # The evidence is a martingale, so it may be looked at at any time. At powers of two that
        # costs little, and a wrong stream is found before it is twice as long as it need be.
        is_power_of_two = count & (count - 1) == 0
        return self.contradiction(group) if is_power_of_two else None

    def contradiction(self, *groups: str) -> str | None:
        """Return what is wrong by now in one of these groups (or of all), None if nothing is."""
        for group in groups or self._decision_counts:
            denied, approved = self._decision_counts[group]
            total = denied + approved
            low, high = self._past_intervals[group]
            log_evidence = share_evidence(np.float64(approved), np.float64(total), low, high)
            if log_evidence >= self._log_threshold:
                return (
                    f"{approved:,} of {total:,} people counted of group {group!r} were approved, "
                    f"and of past ones {low:.3g} to {high:.3g}: the people shown are not a fair "
                    "sample"
                )
        return None
