"""Where each group's r lies, by what a log has recorded: estimates, intervals, rough guesses.

The estimates and the rough guesses serve plans and forecasts. What is reported rests on
:func:`success_intervals`, which hold at all times at once.
"""

from __future__ import annotations

import numpy as np

from equipoise._arrays import Array
from equipoise.evidence.confidence import anytime_interval
from equipoise.evidence.observation import ScoredBatch
from equipoise.evidence.request_log import PENDING, UNKNOWN, RequestLog
from equipoise.finding import Interval


def success_estimates(log: RequestLog) -> Array:
    """Return an estimate of r per group, kept off 0 and 1."""
    n_told = log.n_told
    edge = np.minimum(0.5 / (n_told + 1.0), 0.02)
    return np.clip((log.labels[:, 1] + 0.5) / (n_told + 1.0), edge, 1.0 - edge)


def rough_ranges(log: RequestLog, errors: float) -> tuple[Array, Array]:
    """Return where each group's r lies by so many standard errors of its labels.

    A rough guess for plans and for giving up; no verdict rests on it.
    """
    estimates = success_estimates(log)
    variance = estimates * (1.0 - estimates) / np.maximum(log.n_told, 1.0)
    width = errors * np.sqrt(variance)
    return np.maximum(estimates - width, 0.0), np.minimum(estimates + width, 1.0)


def mean_ranges(log: RequestLog) -> tuple[Array, Array]:
    """Return each group's mean if all outcomes unknown so far are 0, and if they are 1.

    In label equivalents, kept within 0 and 1; it is 0, and 1, for a group without any.
    """
    # Unknown labels are a column of their own; observations that are none lie in batches.
    low = log.labels[:, 1].copy()
    high = low + log.epochs.total_label_counts()[:, UNKNOWN]
    for group, batch in log.scored_batches(range(log.epochs.last + 1)):
        is_open = batch.low != batch.high
        equivalents = batch.bet_scale.label_equivalents
        low[group] += equivalents * batch.low[is_open].sum()
        high[group] += equivalents * batch.high[is_open].sum()
    n_observed = log.n_requested
    divisor = np.maximum(n_observed, 1e-300)
    low = np.clip(low / divisor, 0.0, 1.0)
    high = np.clip(high / divisor, 0.0, 1.0)
    return low, np.where(n_observed > 0.0, high, 1.0)


def success_intervals(log: RequestLog, level: float) -> list[Interval]:
    """Return where each group's r lies; an interval ever misses it with probability ``level``.

    By the requests before the first that is pending, or by all, pending ones at their worst:
    both hold at once, and the narrower one is returned. Requests up to one that was pending
    when a file of random accepts came do not meet that file. The estimate is the mean of what
    is known of its requests, in label equivalents.
    """
    n_all = log.n_requests
    n_settled = log.outcomes.index(PENDING) if PENDING in log.outcomes else n_all
    of_all = _intervals_by_first(log, n_all, level)
    # Labels of a file and earlier requests without it never were there together: no moment of the
    # martingale has these counts (guarantees, 3.10 and 3.18).
    if n_settled == n_all or n_settled < log.file_request:
        return of_all
    of_settled = _intervals_by_first(log, n_settled, level)
    pairs = zip(of_settled, of_all, strict=True)
    return [min(pair, key=lambda interval: interval.upper - interval.lower) for pair in pairs]


def _intervals_by_first(log: RequestLog, n_requests: int, level: float) -> list[Interval]:
    """Return each group's interval by the first so many requests."""
    batches: list[list[ScoredBatch]] = [[] for _ in log.labels]
    for group, batch in log.scored_batches(range(log.epochs.last + 1), n_requests):
        batches[group].append(batch)
    intervals = []
    label_counts = _label_counts_of_first(log, n_requests).tolist()
    for (n_bad, n_good, n_unknown), scored in zip(label_counts, batches, strict=True):
        lower, upper = anytime_interval(n_good, n_bad, n_unknown, level, scored)
        intervals.append(Interval(lower, upper, _mean_of_known(n_good, n_bad, scored)))
    return intervals


def _label_counts_of_first(log: RequestLog, n_requests: int) -> Array:
    """Return labels by group and outcome of the first requests, random accepts among them."""
    groups = np.array(log.groups[:n_requests], dtype=np.intp)
    # Pending (-2) counts like withdrawn (-1), which is the last of the three columns.
    outcomes = np.maximum(np.array(log.outcomes[:n_requests], dtype=np.intp), UNKNOWN)
    epochs = log.epochs.of_requests(np.arange(n_requests))
    is_label = log.epochs.takes_labels[epochs, groups]
    counts = log.random_accepts.copy()
    np.add.at(counts, (groups[is_label], outcomes[is_label]), 1.0)
    return counts


def _mean_of_known(n_good: float, n_bad: float, scored: list[ScoredBatch]) -> float | None:
    """Return the mean of a group's known observations, in label equivalents; None without any."""
    total = n_good
    weight = n_good + n_bad
    for batch in scored:
        is_settled = batch.low == batch.high
        equivalents = batch.bet_scale.label_equivalents
        total += equivalents * batch.low[is_settled].sum()
        weight += equivalents * is_settled.sum()
    return total / weight if weight else None
