"""All runs of Baseline or RS-Audit at once, from the exact distribution of verdicts and costs.

A run reads past people until tau approved ones of each outcome and group came, and then labels
people who arrive until tau of each outcome and group came. Both numbers of people have a known
distribution, so they are drawn for all repeats together and nobody has to arrive one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

from equipoise._arrays import Array, Flags
from equipoise.audits.estimated_rates import (
    compare_rates,
    outcomes_to_estimate,
)
from equipoise.audits.tau_audit import TauAudit
from equipoise.bounds.theorems import outcome_shares
from equipoise.history.past import Past
from equipoise.history.rows_until import draw_counts_in_unlimited_past, draw_rows_until
from equipoise.question import Verdict
from equipoise.simulation.runs import RUN_DTYPE, UNDECIDED_RUN, Ints, Runs, run_record
from equipoise.simulation.simulate_audit import Setting
from equipoise.worlds import CellWorld
from equipoise.worlds.world import cells_of

Streams = list[list[int]]
"""Groups, by index, that are counted together: all for Baseline, each alone for RS-Audit."""


def draw_tau(setting: Setting) -> Runs | None:
    """Draw every repeat of Baseline or RS-Audit; None if the question leaves nothing to draw."""
    world = CellWorld(setting.world.cells, setting.world.r)
    comparison = setting.question.resolve(world.cells)
    if not outcomes_to_estimate(setting.question) or comparison.left_out:
        return None
    audit = setting.begin(_typical_past(setting, world))
    assert isinstance(audit, TauAudit)
    rng = default_rng(setting.seed)
    groups = list(range(len(world.cells)))
    streams = [[group] for group in groups] if audit.within_group else [groups]
    if setting.pasts is not None:
        rows, runs = _read_given_pasts(setting, setting.pasts, audit, world, streams, rng)
    elif setting.history_size is not None:
        rows, runs = _read_drawn_pasts(setting, setting.history_size, audit, world, streams, rng)
    else:
        rows, runs = _read_unlimited_pasts(setting, audit, world, streams, rng)
    goes_on = ~_lacks_people(rows)
    # In a past that meets every goal each outcome has a positive share, so every phase ends.
    if goes_on.any():
        arrivals = _draw_arrivals(audit, world, streams, int(goes_on.sum()), rng)
        _write_findings(runs, goes_on, audit, arrivals, arrivals.lengths / rows[goes_on])
    return runs


def _typical_past(setting: Setting, world: CellWorld) -> Past:
    """Return a past of the setting's kind: the threshold of an audit depends on the kind alone."""
    if setting.pasts is not None:
        return setting.pasts[0]
    if setting.history_size is None:
        return world.past()
    shares = _shares_by_kind(world)
    mean_counts = np.ceil(setting.history_size * shares / shares.sum()).astype(np.int64)
    return _past_of_counts(world, mean_counts)


# -- the past: one function per kind of it ---------------------------------------------------------
# Each returns how many past rows are read until every goal, of shape (repeats, outcomes, groups)
# and NaN where the past has too few people, and the runs, in which a run of such a past has ended.


def _read_unlimited_pasts(
    setting: Setting, audit: TauAudit, world: CellWorld, streams: Streams, rng: Generator
) -> tuple[Array, Runs]:
    if audit.threshold.uses_known_shares:
        rows_of_one = audit.tabulate(audit.past_stopping_times)
        rows = np.broadcast_to(rows_of_one, (setting.repeats, *rows_of_one.shape))
    else:
        outcomes = outcomes_to_estimate(setting.question)
        shares = _shares_by_kind(world)[None]
        rows = draw_rows_until(rng, audit.tau, outcomes, streams, shares, setting.repeats)
    runs = _undecided_runs(setting)
    # An unlimited past is the same in all repeats, and so is the audit that it ends at once.
    runs[_lacks_people(rows)] = run_record(audit)
    return rows, runs


def _read_drawn_pasts(
    setting: Setting,
    history_size: int,
    audit: TauAudit,
    world: CellWorld,
    streams: Streams,
    rng: Generator,
) -> tuple[Array, Runs]:
    shares = _shares_by_kind(world)
    pasts = rng.multinomial(history_size, shares.ravel() / shares.sum(), size=setting.repeats)
    counts = pasts.reshape(-1, *shares.shape)
    return _read_counts(setting, counts, audit, world, streams, rng)


def _read_given_pasts(
    setting: Setting,
    pasts: Sequence[Past],
    audit: TauAudit,
    world: CellWorld,
    streams: Streams,
    rng: Generator,
) -> tuple[Array, Runs]:
    # axes: repeat, group, kind of people in the order of `_shares_by_kind`
    counts = np.zeros((len(pasts), len(world.groups), 3), dtype=np.int64)
    for repeat, past in enumerate(pasts):
        for index, group in enumerate(world.groups):
            cells = past.cells[group]
            counts[repeat, index] = cells.approved_negative, cells.approved_positive, cells.denied
    return _read_counts(setting, counts, audit, world, streams, rng)


def _read_counts(
    setting: Setting,
    counts: Ints,
    audit: TauAudit,
    world: CellWorld,
    streams: Streams,
    rng: Generator,
) -> tuple[Array, Runs]:
    """Read finite pasts, given as counts of shape (repeats, groups, kinds of people)."""
    outcomes = outcomes_to_estimate(setting.question)
    rows = draw_rows_until(rng, audit.tau, outcomes, streams, counts)
    runs = _undecided_runs(setting)
    # A past that lacks people ends its audit before it begins; what it finds is read off a real
    # audit. No audit takes a past that lacks a whole group, so such a run stays undecided.
    has_every_group = counts.sum(axis=2).all(axis=1)
    for repeat in np.flatnonzero(_lacks_people(rows) & has_every_group):
        runs[repeat] = run_record(setting.begin(_past_of_counts(world, counts[repeat])))
    return rows, runs


def _past_of_counts(world: CellWorld, counts: Ints) -> Past:
    """Return a finite past of counts, of shape (groups, kinds of people)."""
    # The columns of cells_of are approved with outcome 1, approved with outcome 0, denied.
    return Past(cells_of(world.groups, counts[:, [1, 0, 2]]))


def _shares_by_kind(world: CellWorld) -> Array:
    """Return every group's shares of approved with outcome 0, with outcome 1, and denied people."""
    joint = world.joint
    return np.stack([joint[:, 1], joint[:, 0], joint[:, 2] + joint[:, 3]], axis=1)


def _lacks_people(rows: Array) -> Flags:
    """Return which repeats have a past with too few people for some outcome of some group."""
    return np.asarray(np.isnan(rows).any(axis=(1, 2)))


def _undecided_runs(setting: Setting) -> Runs:
    return np.array([UNDECIDED_RUN] * setting.repeats, dtype=RUN_DTYPE)


# -- people who arrive -----------------------------------------------------------------------------


@dataclass
class _Arrivals:
    """What the phases of all repeats come to.

    Attributes
    ----------
    lengths
        How many people came in each phase, of shape (repeats, outcomes, groups).
    labels, cost
        Labels of denied people, and what they cost, per repeat.
    """

    lengths: Array
    labels: Ints
    cost: Array


def _draw_arrivals(
    audit: TauAudit, world: CellWorld, streams: Streams, repeats: int, rng: Generator
) -> _Arrivals:
    """Draw the phases of every stream of people."""
    outcomes = outcomes_to_estimate(audit.question)
    arrivals = _Arrivals(
        lengths=np.zeros((repeats, len(outcomes), len(world.cells))),
        labels=np.zeros(repeats, np.int64),
        cost=np.zeros(repeats),
    )
    for stream in streams:
        labelled = _draw_stream(audit, world, stream, arrivals.lengths, rng)
        arrivals.labels += labelled.sum(axis=(1, 2))
        for place, group in enumerate(stream):
            prices = audit.costs.of(world.groups[group])
            all_labels = labelled[:, :, place].sum(axis=1)
            failures = labelled[:, 0, place]
            arrivals.cost += prices.feature * all_labels + prices.label * failures
    return arrivals


def _draw_stream(
    audit: TauAudit, world: CellWorld, stream: list[int], lengths: Array, rng: Generator
) -> Ints:
    """Draw the phases of one stream, and fill in their lengths.

    Return how many denied people were labelled, of shape (repeats, outcomes 0 and 1, groups).
    """
    outcomes = outcomes_to_estimate(audit.question)
    repeats = len(lengths)
    shares = outcome_shares(world)[:, stream]
    denied_share = _denied_shares(world, stream, shares)
    # A goal is an outcome, by its place in `outcomes`, and a group, by its place in the stream.
    goals = [(index, place) for index in range(len(outcomes)) for place in range(len(stream))]
    phases = [goals] if audit.reuse_labels else [[goal] for goal in goals]
    labelled = np.zeros((repeats, *shares.shape), np.int64)
    for phase in phases:
        goal_kinds = [outcomes[index] * len(stream) + place for index, place in phase]
        counts = draw_counts_in_unlimited_past(rng, audit.tau, goal_kinds, shares.ravel(), repeats)
        for number, (index, place) in enumerate(phase):
            lengths[:, index, stream[place]] = counts[:, number].sum(axis=1)
        # Counts only grow from goal to goal, so the largest are those at the end of the phase.
        people = counts.max(axis=1).reshape(labelled.shape)
        labelled += rng.binomial(people, denied_share)
    return labelled


def _denied_shares(world: CellWorld, stream: list[int], shares: Array) -> Array:
    """Return the share of the denied among people of each outcome and group of a stream.

    ``shares`` are those of the outcomes and groups, of shape (outcomes 0 and 1, groups).
    """
    joint = world.joint[stream]
    denied_by_outcome = np.stack([joint[:, 3], joint[:, 2]])  # outcome 0 first, as in shares
    return np.clip(denied_by_outcome / np.where(shares > 0.0, shares, 1.0), 0.0, 1.0)


def _write_findings(
    runs: Runs, goes_on: Flags, audit: TauAudit, arrivals: _Arrivals, ratios: Array
) -> None:
    """Write what the repeats that went on to label people found and spent.

    ``ratios`` are the estimated rates, of shape (repeats, outcomes, groups).
    """
    question = audit.question
    low, high = audit.threshold.rate_bounds(ratios)
    comparison = question.resolve(audit.cells)
    estimate, lower, upper = compare_rates(ratios, low, high, comparison)
    # The paper's rule, as in audits/estimated_rates.py. Either answer is right up to epsilon/2
    # on both sides of this gap, so only an estimate that is further off makes a verdict wrong.
    middle = question.gamma + question.epsilon / 2.0
    verdict = np.where(estimate > middle, Verdict.UNFAIR.value, Verdict.FAIR.value)
    # No rate exceeds 1, so a lower bound of 1 says that no population explains the counts.
    verdict[(low >= 1.0).any(axis=(1, 2))] = Verdict.INCONCLUSIVE.value
    columns = {
        "verdict": verdict,
        "cost": arrivals.cost,
        "labels": arrivals.labels,
        "estimate": estimate,
        "lower": lower,
        "upper": upper,
    }
    for name, column in columns.items():
        runs[name][goes_on] = column
