"""Baseline and RS-Audit drawn at once: stopping times and costs from their exact distributions."""

from __future__ import annotations

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
from equipoise.history.past import Past, counts_until, draw_rows_until
from equipoise.question import Verdict
from equipoise.simulation.result import NOTHING, RUN, Runs
from equipoise.simulation.simulate_audit import Setting
from equipoise.worlds.world import CellWorld, cells_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def draw(setting: Setting) -> Runs | None:
    """Draw every repeat of Baseline or RS-Audit; None if the question leaves nothing to draw."""
    question, world = setting.question, CellWorld(setting.world.cells, setting.world.r)
    outcomes, compare = outcomes_of(question), question.compared(world.cells)
    if not outcomes or compare.left_out:
        return None
    assert issubclass(setting.audit, TauAudit)
    groups, rng = range(len(world.cells)), np.random.default_rng(setting.seed)
    given, reuse = setting.options.get("tau"), setting.options.get("reuse_labels", False)
    require_kind("reuse_labels", reuse, bool, "true or false")
    tau = paper_tau(question, len(groups)) if given is None else checked_tau(given)
    blocks = [[a] for a in groups] if setting.audit.within_group else [[*groups]]  # of one stream
    drawn = _drawn_pasts(setting, world, rng)
    kinds, unlimited = (drawn, None) if drawn is not None else (_free(world)[None], setting.repeats)
    rows = draw_rows_until(rng, tau, outcomes, blocks, kinds, unlimited)
    dry = np.asarray(np.isnan(rows).any(axis=(1, 2)))
    runs = np.array([NOTHING] * setting.repeats, dtype=RUN)
    for at, past in _dry_pasts(world, drawn, dry):
        free = check(past, question)
        for name in ("verdict", "lower", "upper"):
            runs[name][at] = getattr(free, name)
    if dry.all():
        return runs
    # From here on every outcome has a positive share, and every phase ends.
    lengths, labels, cost = _online(setting, world, blocks, outcomes, tau, int((~dry).sum()), rng)
    ratios = lengths / rows[~dry]
    low, high = rate_intervals(ratios, paper_epsilon(tau, question, len(groups)) / 12.0)
    estimate, lower, upper = compare_rates(ratios, low, high, compare)
    limit = question.gamma + question.epsilon / 2.0
    verdict = np.where(estimate > limit, Verdict.UNFAIR.value, Verdict.FAIR.value)
    verdict[impossible_rate(ratios, tau).any(axis=(1, 2))] = Verdict.INCONCLUSIVE.value
    found = {"verdict": verdict, "cost": cost, "labels": labels}
    for name, column in (found | {"estimate": estimate, "lower": lower, "upper": upper}).items():
        runs[name][~dry] = column
    return runs


def _free(world: CellWorld) -> Floats:
    """Return shares of approved 0, approved 1 and denied, a row per group."""
    joint = world.joint
    return np.column_stack([joint[:, 1], joint[:, 0], joint[:, 2] + joint[:, 3]])


def _drawn_pasts(setting: Setting, world: CellWorld, rng: np.random.Generator) -> Ints | None:
    """Return the counts of finite pasts, (repeats, groups, 3), in the order of :func:`_free`."""
    if setting.pasts is not None:
        counts = attrgetter("approved_negative", "approved_positive", "denied")
        return np.array(
            [[counts(past.cells[group]) for group in world.groups] for past in setting.pasts],
            dtype=np.int64,
        )
    if setting.history_size is None:
        return None
    free = _free(world)
    drawn = rng.multinomial(setting.history_size, free.ravel() / free.sum(), size=setting.repeats)
    return drawn.reshape(-1, *free.shape)


def _dry_pasts(
    world: CellWorld, drawn: Ints | None, dry: NDArray[np.bool_]
) -> list[tuple[Any, Past]]:
    """Return the pasts that ran dry and the repeats they belong to; not those without a group."""
    if drawn is None:
        return [(dry, world.past())] if dry.any() else []
    whole = dry & (drawn.sum(axis=2) > 0).all(axis=1)
    counts = drawn[:, :, [1, 0, 2]]
    return [(at, Past(cells_of(world.groups, counts[at]))) for at in np.flatnonzero(whole)]


def _online(
    setting: Setting,
    world: CellWorld,
    blocks: list[list[int]],
    outcomes: tuple[int, ...],
    tau: int,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[Floats, Ints, Floats]:
    """Return the lengths of the phases, (repeats, outcomes, groups), and each repeat's books."""
    lengths = np.zeros((repeats, len(outcomes), len(world.cells)))
    labels, cost = np.zeros(repeats, np.int64), np.zeros(repeats)
    for block in blocks:
        shares, joint = shares_of_outcomes(world)[:, block], world.joint[block]
        denied = np.stack([joint[:, 3], joint[:, 2]]) / np.where(shares > 0.0, shares, 1.0)
        goals = [(i, place) for i in range(len(outcomes)) for place in range(len(block))]
        asked = np.zeros((repeats, *shares.shape), np.int64)  # of outcome 0 and 1, by group
        for phase in [goals] if setting.options.get("reuse_labels") else [[goal] for goal in goals]:
            kinds = [outcomes[i] * len(block) + place for i, place in phase]
            counts = counts_until(rng, tau, kinds, shares.ravel(), repeats)
            for number, (i, place) in enumerate(phase):
                lengths[:, i, block[place]] = counts[:, number].sum(axis=1)
            at_end = counts.max(axis=1).reshape(asked.shape)  # counts only grow
            asked += rng.binomial(at_end, np.clip(denied, 0.0, 1.0))
        labels += asked.sum(axis=(1, 2))
        for place, a in enumerate(block):
            prices, own = setting.costs.of(world.groups[a]), asked[:, :, place]
            cost += prices.feature * own.sum(axis=1) + prices.label * own[:, 0]
    return lengths, labels, cost
