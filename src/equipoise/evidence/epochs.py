"""Epochs: runs of requests whose bets are sized alike, with what was counted in each.

The evidence is looked at as it stands now, and as it stood at the ends of earlier epochs. Therefore
labels are counted by the epoch of their request. Where bets are sized anew, the sizes hold for all
requests of an epoch, whenever their outcomes come, and follow from what was told before it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence.observation import BetScale

EPOCH_GROWTH = 1.1  # requests grow by this factor in an epoch, if no plan ends it before
PENDING_GROWTH = 1.5  # … but the ends of few epochs are remembered that have pending requests
_MIN_EPOCH_REQUESTS = 10  # requests of an epoch at least
_NEVER = 2**60

BetScales = Sequence[BetScale | None]
"""How bets on each group are sized; None for a group whose observations are labels."""


class Epochs:
    """All epochs so far; an array has one row for each.

    Parameters
    ----------
    n_groups
        How many groups there are.
    rescales_bets
        Whether bets are sized anew at every plan. Then nothing else ends an epoch.

    Attributes
    ----------
    starts
        The first request of each epoch.
    bet_scales
        How bets are sized in each.
    takes_labels
        Whether a group's observations are labels, shape (epochs, groups).
    label_equivalents
        How many labels one observation counts as, shape (epochs, groups).
    label_counts
        Labels by group and outcome, the unknown ones last, shape (epochs, groups, 3).
    n_pending
        How many requests of each epoch have no outcome yet.
    next_start
        After how many requests the current epoch ends at the latest.
    """

    def __init__(self, n_groups: int, *, rescales_bets: bool) -> None:
        self.rescales_bets = rescales_bets
        self.starts = np.zeros(0, dtype=np.intp)
        self.bet_scales: list[BetScales] = []
        self.takes_labels = np.zeros((0, n_groups), dtype=bool)
        self.label_equivalents = np.zeros((0, n_groups))
        self.label_counts = np.zeros((0, n_groups, 3))
        self.n_pending = np.zeros(0, dtype=np.intp)
        self.begin(0, [None] * n_groups)

    @property
    def last(self) -> int:
        """The current epoch."""
        return len(self.starts) - 1

    def begin(self, n_requests: int, bet_scales: BetScales) -> None:
        """Begin another epoch after so many requests."""
        n_groups = len(bet_scales)
        # A row for the new epoch is appended to each array: rows of earlier ones never move, and so
        # what is staked on an earlier request never changes (guarantees, 3.6).
        takes_labels = [scale is None for scale in bet_scales]
        equivalents = [1.0 if scale is None else scale.label_equivalents for scale in bet_scales]
        self.starts = np.append(self.starts, n_requests)
        self.bet_scales.append(bet_scales)
        self.takes_labels = np.append(self.takes_labels, [takes_labels], axis=0)
        self.label_equivalents = np.append(self.label_equivalents, [equivalents], axis=0)
        self.label_counts = np.append(self.label_counts, np.zeros((1, n_groups, 3)), axis=0)
        self.n_pending = np.append(self.n_pending, 0)
        # Ends between which requests grow by PENDING_GROWTH: kept here, because ends change seldom.
        log_growth = np.log(np.maximum(self.starts[1:], 1)) / log(PENDING_GROWTH)
        self._is_sparse_end = np.diff(np.floor(log_growth), prepend=-1.0) > 0.0
        # Sizes hold until the next plan, so nothing but a plan may end an epoch that has them.
        if self.rescales_bets:
            self.next_start = n_requests + _NEVER
        else:
            n_by_growth = int(EPOCH_GROWTH * n_requests) - n_requests
            self.next_start = n_requests + max(_MIN_EPOCH_REQUESTS, n_by_growth)

    def of_requests(self, numbers: Ints) -> Ints:
        """Return the epoch of each request."""
        return self.starts.searchsorted(numbers, side="right") - 1

    def remembered_ends(self) -> Flags:
        """Say which epochs' ends are looked at again when outcomes come.

        All up to the first pending request. After it outcomes come in any order, and each of them
        changes many ends: only one is looked at for each growth of requests by ``PENDING_GROWTH``.
        Any end may be looked at or not: each is a value of the same supermartingale.
        """
        # The current epoch has no end yet.
        has_all_outcomes = self.n_pending[:-1].cumsum() == 0
        return np.asarray(has_all_outcomes | self._is_sparse_end)

    def total_label_counts(self) -> Array:
        """Return labels by group and outcome, of all epochs together."""
        return np.asarray(self.label_counts.sum(axis=0))
