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
    """Whether the people counted are approved as often as past ones were: a test at any time.

    Per group the share of approvals lies in the past's Clopper-Pearson interval, else
    :func:`share_evidence` grows. Someone who shows denied people only is found out after some
    thirty of them, before money is spent on a wrong answer.
    """

    def __init__(self, past: Past) -> None:
        level = approval_level(len(past.cells))
        self._log_threshold = -math.log(level)
        past_level = None if past.exact else level
        self._past_intervals = {
            group: clopper_pearson(cells.approved, cells.total, past_level)
            for group, cells in past.cells.items()
        }
        self._decision_counts = {group: [0, 0] for group in past.cells}

    def count_person(self, group: str, decision: int) -> str | None:
        """Count somebody; return what is wrong, None if nothing is or it is not looked at now.

        A group is looked at whenever its count is a power of two.
        """
        self._decision_counts[group][decision] += 1
        n = sum(self._decision_counts[group])
        return self.contradiction(group) if n & (n - 1) == 0 else None

    def contradiction(self, *groups: str) -> str | None:
        """Say what is wrong by now in one of these groups (or of all), None if nothing is."""
        for group in groups or self._decision_counts:
            (denied, k), (low, high) = self._decision_counts[group], self._past_intervals[group]
            if (
                share_evidence(np.float64(k), np.float64(k + denied), low, high)
                >= self._log_threshold
            ):
                return (
                    f"{k:,} of {k + denied:,} people counted of group {group!r} were approved, and "
                    f"of past ones {low:.3g} to {high:.3g}: the people shown are not a fair sample"
                )
        return None
