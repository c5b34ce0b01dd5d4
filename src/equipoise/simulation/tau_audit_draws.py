"""Baseline and RS-Audit drawn at once: stopping times and costs from their exact distributions."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.estimated_rates import (
    checked_tau,
    compare_rates,
    impossible_rate,
    outcomes_of,
    paper_epsilon,
    paper_tau,
    rate_intervals,
)
from equipoise.audits.tau_audits import TauAudit
from equipoise.bounds.theorems import shares_of_outcomes
from equipoise.errors import require_kind
from equipoise.free_check import check
from equipoise.history.past import Past, draw_rows_until, endless_counts
from equipoise.question import Verdict
from equipoise.simulation.result import Draws
from equipoise.simulation.simulate_audit import Setting
from equipoise.worlds.world import CellWorld, cells_of

__all__ = ["draw"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def draw(setting: Setting) -> Draws | None:
    """Draw every repeat of Baseline or RS-Audit; None if answers are late, short or not needed."""
    outcomes = outcomes_of(setting.question)
    compare = setting.question.compared(setting.world.cells)
    simple = setting.delay is None and setting.people is None and bool(outcomes)
    simple = simple and not compare.left_out
    if not simple or not set(setting.options) <= {"tau", "reuse_labels"}:
        return None
    assert issubclass(setting.audit, TauAudit)
    world = CellWorld(setting.world.cells, setting.world.r)
    tau, reuse = setting.options.get("tau"), setting.options.get("reuse_labels", False)
    require_kind("reuse_labels", reuse, bool, "true or false")
    case = _Case(
        setting=setting,
        world=world,
        outcomes=outcomes,
        tau=paper_tau(setting.question, len(world.cells)) if tau is None else checked_tau(tau),
        reuse=bool(reuse),
        blocks=[[a] for a in range(len(world.cells))]
        if setting.audit.within_group
        else [list(range(len(world.cells)))],
        rng=np.random.default_rng(setting.seed),
    )
    rows, drawn = _past(case)
    dry = np.asarray(np.isnan(rows).any(axis=(1, 2)))
    draws = Draws.undecided(setting.repeats)
    if dry.any():
        _fill_dry(case, drawn, dry, draws)
    if not dry.all():  # then every outcome has a positive share, and every phase ends
        _decide(case, rows, ~dry, draws)
    return draws


@dataclass(frozen=True)
class _Case:
    """A setting, made ready: ``blocks`` are the groups, by index, that share a stream."""

    setting: Setting
    world: CellWorld
    outcomes: tuple[int, ...]
    tau: int
    reuse: bool
    blocks: list[list[int]]
    rng: np.random.Generator


def _past(case: _Case) -> tuple[Floats, Ints | None]:
    """Return past people read, (repeats, outcomes, groups), NaN where dry, and the drawn cells."""
    repeats, groups = case.setting.repeats, len(case.world.cells)
    joint = case.world.joint  # columns approved 1, approved 0, denied 1, denied 0
    free = np.column_stack([joint[:, 1], joint[:, 0], joint[:, 2] + joint[:, 3]])
    size = case.setting.history_size
    drawn = None
    if case.setting.pasts is not None:
        free_counts = attrgetter("approved_negative", "approved_positive", "denied")
        drawn = np.array(
            [
                [free_counts(past.cells[group]) for group in case.world.groups]
                for past in case.setting.pasts
            ],
            dtype=np.int64,
        )
    elif size is not None:
        flat = case.rng.multinomial(size, free.ravel() / free.sum(), size=repeats)
        drawn = flat.reshape(repeats, groups, 3)
    kinds, unlimited = (free[np.newaxis], repeats) if drawn is None else (drawn, None)
    rows = draw_rows_until(case.rng, case.tau, case.outcomes, case.blocks, kinds, unlimited)
    return rows, drawn


def _decide(case: _Case, rows: Floats, ready: NDArray[np.bool_], draws: Draws) -> None:
    """Run the online phases and fill in the repeats whose past did not run dry."""
    setting, n = case.setting, int(ready.sum())
    lengths = np.zeros((n, len(case.outcomes), len(case.world.cells)))
    labels, cost = np.zeros(n, np.int64), np.zeros(n)
    for block in case.blocks:
        block_lengths, block_labels, failures = _online(case, block, n)
        lengths[:, :, block] = block_lengths
        labels += block_labels.sum(axis=1)
        for place, a in enumerate(block):
            prices = setting.costs.of(case.world.groups[a])
            cost += prices.feature * block_labels[:, place] + prices.label * failures[:, place]
    ratios = lengths / rows[ready]
    error = paper_epsilon(case.tau, setting.question, rows.shape[2]) / 12.0
    low, high = rate_intervals(ratios, error)
    compare = setting.question.compared(case.world.cells)
    estimate, lower, upper = compare_rates(ratios, low, high, compare)
    limit = setting.question.gamma + setting.question.epsilon / 2.0
    verdict = np.where(estimate > limit, Verdict.UNFAIR.value, Verdict.FAIR.value)
    impossible = impossible_rate(ratios, case.tau).any(axis=(1, 2))
    draws.verdict[ready] = np.where(impossible, Verdict.INCONCLUSIVE.value, verdict)
    draws.cost[ready], draws.labels[ready] = cost, labels
    draws.estimate[ready], draws.lower[ready], draws.upper[ready] = estimate, lower, upper


def _online(case: _Case, block: list[int], repeats: int) -> tuple[Floats, Ints, Ints]:
    """Return lengths per goal, and labels and failures of the denied per group of a block."""
    shares = shares_of_outcomes(case.world)[:, block]  # rows are outcomes 0 and 1
    joint = case.world.joint[block]
    denied = np.stack([joint[:, 3], joint[:, 2]]) / np.where(shares > 0.0, shares, 1.0)
    width = len(block)
    goals = [(i, place) for i in range(len(case.outcomes)) for place in range(width)]
    lengths = np.zeros((repeats, len(case.outcomes), width))
    labels = np.zeros((repeats, 2, width), np.int64)
    for phase in [goals] if case.reuse else [[goal] for goal in goals]:
        kinds = [case.outcomes[i] * width + place for i, place in phase]
        counts = endless_counts(case.rng, case.tau, kinds, shares.ravel(), repeats)
        for number, (i, place) in enumerate(phase):
            lengths[:, i, place] = counts[:, number].sum(axis=1)
        at_end = counts.max(axis=1).reshape(repeats, 2, width)  # counts only grow
        labels += case.rng.binomial(at_end, np.clip(denied, 0.0, 1.0))
    return lengths, labels.sum(axis=1), labels[:, 0]


def _fill_dry(case: _Case, drawn: Ints | None, dry: NDArray[np.bool_], draws: Draws) -> None:
    """Fill in what the free check says where the past ran dry."""
    pasts: list[tuple[Any, Past]] = [(dry, case.world.past())]
    if drawn is not None:
        whole = dry & (drawn.sum(axis=2) > 0).all(axis=1)
        groups, counts = case.world.groups, drawn[:, :, [1, 0, 2]]
        pasts = [(at, Past(cells_of(groups, counts[at]))) for at in np.flatnonzero(whole)]
    for at, past in pasts:
        free = check(past, case.setting.question)
        draws.verdict[at], draws.lower[at], draws.upper[at] = free.verdict, free.lower, free.upper
