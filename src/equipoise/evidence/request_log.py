"""What was asked and told: requests in order, their outcomes, and counts that follow from them.

People are known here by the number of their request, groups by their position. Nothing is known of
tickets or money. Requests and outcomes come as arrays; a single one is an array of length 1.

Outcomes may come in any order, change, or never come. A label without an outcome counts as unknown,
whether it is pending or was withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from equipoise._arrays import Array, Ints
from equipoise.evidence.epochs import BetScales, Epochs
from equipoise.evidence.observation import LABEL, ScoredBatch

UNKNOWN = -1
"""In place of an outcome that will never be known; in counts, the last of three columns."""
PENDING = -2
"""In place of an outcome that is neither told nor withdrawn yet; it counts as an unknown one."""

_COLUMNS = np.eye(3)  # the columns of an outcome in counts
_NOBODY = np.zeros(0, dtype=np.intp)
_RANGE_TOLERANCE = 1e-9  # by which rounding may take Z out of its range


@dataclass(frozen=True)
class ScoredPath:
    """Observations of a group in the current epoch that bets are sized for.

    ``n_seen`` says how many of them there are by each look.
    """

    group: int
    batch: ScoredBatch
    n_seen: Ints


@dataclass(frozen=True)
class CountPath:
    """Moments at which the evidence is looked at: what is counted by each.

    Parameters
    ----------
    label_counts
        Labels by group and outcome, shape (looks, groups, 3).
    scored
        Observations of the current epoch that are no labels.
    """

    label_counts: Array
    scored: tuple[ScoredPath, ...] = ()

    def __len__(self) -> int:
        return len(self.label_counts)

    def select(self, looks: Ints) -> CountPath:
        """Return some of the looks."""
        scored = [ScoredPath(path.group, path.batch, path.n_seen[looks]) for path in self.scored]
        return CountPath(self.label_counts[looks], tuple(scored))


@dataclass(frozen=True)
class OutcomeChange:
    """What recorded outcomes change.

    Parameters
    ----------
    first_epoch
        The first epoch that has one of these requests.
    replaces_outcomes
        Whether some request had an outcome before, or was withdrawn.
    """

    first_epoch: int
    replaces_outcomes: bool


class RequestLog:
    """Requests and outcomes, and what they add up to.

    Parameters
    ----------
    n_groups
        How many groups there are.
    rescales_bets
        Whether bets are sized anew at every plan, as where scores assist.

    Attributes
    ----------
    groups, outcomes
        Of every request, in order.
    labels
        All that was observed, by group and outcome, shape (groups, 3), in label equivalents. Random
        accepts are among them.
    random_accepts
        Labels of a test programme, by group and outcome.
    file_epoch, file_request
        In which epoch, and after how many requests, the last file of random accepts came.
    epochs
        The same labels by epoch, and how bets are sized in each.
    """

    def __init__(self, n_groups: int, *, rescales_bets: bool) -> None:
        self.groups: list[int] = []
        self.outcomes: list[int] = []
        # Z for the outcomes 0 and 1, by request; labels are left out
        self._observation_ends: dict[int, list[float]] = {}
        self.labels = np.zeros((n_groups, 3))
        self.random_accepts = np.zeros((n_groups, 3))
        self.file_epoch = 0
        self.file_request = 0
        self.epochs = Epochs(n_groups, rescales_bets=rescales_bets)

    # -- totals -----------------------------------------------------------------------------------

    @property
    def n_requests(self) -> int:
        """How many requests there are: the number that the next one will have."""
        return len(self.groups)

    @property
    def n_told(self) -> Array:
        """Observations per group whose outcome is known, in label equivalents."""
        return np.asarray(self.labels[:, 0] + self.labels[:, 1])

    @property
    def n_requested(self) -> Array:
        """Observations per group, known or not, in label equivalents."""
        return np.asarray(self.labels.sum(axis=1))

    @property
    def bet_scales(self) -> BetScales:
        """How bets on each group are sized from now on; None: its observations are labels."""
        return self.epochs.bet_scales[-1]

    @property
    def label_equivalents(self) -> Array:
        """How many labels an observation of each group counts as from now on."""
        return np.asarray(self.epochs.label_equivalents[-1])

    # -- requests and outcomes --------------------------------------------------------------------

    def begin_epoch(self, bet_scales: BetScales) -> None:
        """Size bets on the coming requests anew."""
        # Of the coming requests only: no bet changes once its request is made (guarantees, 3.6).
        self.epochs.begin(self.n_requests, bet_scales)

    def left_in_epoch(self) -> int:
        """Begin another epoch if it is due; return how many requests it still takes."""
        if self.n_requests >= self.epochs.next_start:
            self.begin_epoch(self.bet_scales)
        return self.epochs.next_start - self.n_requests

    def request(self, groups: Ints, ends: Array | None = None) -> Ints:
        """Record that people are observed; return the requests' numbers.

        ``ends`` has Z of each for the outcomes 0 and 1, shape (n, 2); labels if left out. Whoever
        is not asked for the label is settled at once, and counts at the next look.
        """
        numbers = self.n_requests + np.arange(len(groups))
        if ends is not None:
            self._require_declared_range(groups, ends)
            self._observation_ends.update(zip(numbers.tolist(), ends.tolist(), strict=True))
        self.outcomes += [PENDING] * len(groups)
        first = 0
        while first < len(groups):
            n_left = self.left_in_epoch()
            self._count_requests(groups[first : first + n_left])
            first += n_left
        if ends is not None:
            not_asked = numbers[ends[:, 0] == ends[:, 1]]
            self.record(not_asked, np.zeros_like(not_asked))  # both outcomes are the same Z
        return numbers

    def _count_requests(self, groups: Ints) -> None:
        """Count requests of the current epoch, all of them pending."""
        epochs = self.epochs
        n_by_group = np.bincount(groups, minlength=len(self.labels))
        epochs.label_counts[-1, :, UNKNOWN] += n_by_group * epochs.takes_labels[-1]
        epochs.n_pending[-1] += len(groups)
        self.labels[:, UNKNOWN] += n_by_group * epochs.label_equivalents[-1]
        self.groups += groups.tolist()

    def _require_declared_range(self, groups: Ints, ends: Array) -> None:
        """Raise unless Z stays in the range that bets are sized for."""
        ranges = [LABEL if scale is None else (scale.low, scale.high) for scale in self.bet_scales]
        low, high = np.array(ranges)[groups].T
        is_inside = ends.min(axis=1) >= low - _RANGE_TOLERANCE
        is_inside &= ends.max(axis=1) <= high + _RANGE_TOLERANCE
        is_label = (ends == LABEL).all(axis=1)
        fits = np.where(self.epochs.takes_labels[-1, groups], is_label, is_inside)
        if not fits.all():
            raise ValueError(f"{ends[~fits][0]} leaves the range that was declared")

    def record(self, numbers: Ints, outcomes: Ints) -> OutcomeChange:
        """Take in outcomes of different requests, the first or other ones.

        UNKNOWN is an outcome that will never be known, PENDING takes one back.
        """
        epochs = self.epochs
        requests = numbers.tolist()
        old_outcomes = np.array([self.outcomes[n] for n in requests], dtype=np.intp)
        groups = np.array([self.groups[n] for n in requests], dtype=np.intp)
        for number, outcome in zip(requests, outcomes.tolist(), strict=True):
            self.outcomes[number] = outcome
        epoch = epochs.of_requests(numbers)
        was_pending = old_outcomes == PENDING
        np.add.at(epochs.n_pending, epoch, (outcomes == PENDING) * 1 - was_pending)
        # What is counted now less what was counted before; a pending outcome counts as unknown.
        change = _COLUMNS[np.maximum(outcomes, UNKNOWN)]
        change = change - _COLUMNS[np.maximum(old_outcomes, UNKNOWN)]
        # Labels count by the epoch of their request, whenever their outcome comes.
        np.add.at(
            epochs.label_counts, (epoch, groups), change * epochs.takes_labels[epoch, groups, None]
        )
        weights = epochs.label_equivalents[epoch, groups]
        np.add.at(self.labels, groups, self._in_label_equivalents(requests, change, weights))
        return OutcomeChange(int(epoch.min(initial=epochs.last)), not was_pending.all())

    def _in_label_equivalents(self, requests: list[int], change: Array, weights: Array) -> Array:
        """Return a change of outcomes in label equivalents: an outcome counts as its Z."""
        n_bad, n_good, n_unknown = change.T
        z_of_zero, z_of_one = self._ends_of(requests).T
        z = n_bad * z_of_zero + n_good * z_of_one
        return np.asarray((weights * [n_bad + n_good - z, z, n_unknown]).T)

    def set_random_accepts(self, counts: Array) -> None:
        """Put a test programme's labels in the place of those of an earlier look at its file.

        Per group those that are 0, 1 and unknown. They are one block: no bet rests on any of them.
        Ends of epochs before this file came are remembered no longer: its labels were not there
        yet.
        """
        change = counts - self.random_accepts
        self.random_accepts = counts
        self.file_epoch = self.epochs.last
        self.file_request = self.n_requests
        # With the first epoch, so that they are counted at the end of every later one.
        self.epochs.label_counts[0] += change
        self.labels += change

    # -- what the evidence is looked at by ---------------------------------------------------------

    def current_counts(self) -> CountPath:
        """Return one look, at all that is recorded."""
        return self.count_path(_NOBODY, _NOBODY, np.zeros(0))

    def without_pending(self, look: CountPath) -> CountPath:
        """Return one look at all that is recorded without the requests that wait for an outcome.

        Only where all observations are labels: others are not in these counts.
        """
        is_pending = np.array(self.outcomes, dtype=np.intp) == PENDING
        if not is_pending.any():
            return look
        groups = np.array(self.groups, dtype=np.intp)[is_pending]
        label_counts = look.label_counts.copy()
        label_counts[0, :, UNKNOWN] -= np.bincount(groups, minlength=len(self.labels))
        return replace(look, label_counts=label_counts)

    def count_path(self, groups: Ints, outcomes: Ints, z: Array) -> CountPath:
        """Return a look at all that is recorded, and one after each of further people."""
        changes = np.zeros((1 + len(groups), *self.labels.shape))
        # axes: look, group, kind of label; a running sum turns changes into counts
        changes[0] = self.epochs.total_label_counts()
        is_label = self.epochs.takes_labels[-1, groups]
        changes[1 + np.arange(len(groups)), groups, outcomes] = is_label
        return CountPath(changes.cumsum(axis=0), tuple(self._scored_paths(groups, z)))

    def _scored_paths(self, groups: Ints, z: Array) -> Iterator[ScoredPath]:
        """Yield the observations of the current epoch that are no labels, then further people's."""
        batches = dict(self.scored_batches([self.epochs.last]))
        for group, bet_scale in enumerate(self.bet_scales):
            if bet_scale is None:
                continue
            is_of_group = groups == group
            z_of_group = z[is_of_group]
            # A group without observations in this epoch has an empty batch.
            batch = batches.get(group, ScoredBatch(bet_scale, z[:0], z[:0]))
            low = np.append(batch.low, z_of_group)
            high = np.append(batch.high, z_of_group)
            n_seen = len(batch.low) + np.append(0, is_of_group.cumsum())
            yield ScoredPath(group, ScoredBatch(bet_scale, low, high), n_seen)

    def scored_batches(
        self, epochs: Iterable[int], n_requests: int | None = None
    ) -> Iterator[tuple[int, ScoredBatch]]:
        """Yield by epoch and group the observations that bets are sized for.

        Only the first ``n_requests`` of the log count, if it is given.
        """
        starts = [*self.epochs.starts.tolist(), self.n_requests]
        end = self.n_requests if n_requests is None else n_requests
        for epoch in epochs:
            start = starts[epoch]
            stop = min(starts[epoch + 1], end)
            if self.epochs.takes_labels[epoch].all() or start >= stop:
                continue
            groups = np.array(self.groups[start:stop])
            low, high = self._least_and_most(start, stop)
            for group, bet_scale in enumerate(self.epochs.bet_scales[epoch]):
                is_of_group = groups == group
                if bet_scale is not None and is_of_group.any():
                    yield group, ScoredBatch(bet_scale, low[is_of_group], high[is_of_group])

    def _least_and_most(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return Z of requests at its least and at its most, equal once the outcome is known."""
        outcomes = np.array(self.outcomes[start:stop])
        z_of_zero, z_of_one = self._ends_of(range(start, stop)).T
        low = np.where(outcomes == 1, z_of_one, z_of_zero)
        high = np.where(outcomes == 0, z_of_zero, z_of_one)
        return low, high

    def _ends_of(self, requests: Iterable[int]) -> Array:
        """Return Z of requests for the outcomes 0 and 1, shape (requests, 2)."""
        ends = [self._observation_ends.get(number, LABEL) for number in requests]
        return np.array(ends).reshape(-1, 2)
