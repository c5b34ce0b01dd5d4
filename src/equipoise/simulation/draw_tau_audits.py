"""All runs of Baseline or RS-Audit at once, from the exact distribution of verdicts and costs."""

from __future__ import annotations

from operator import attrgetter

import numpy as np
from numpy.random import Generator, default_rng

from equipoise._arrays import Array
from equipoise.audits.estimated_rates import (
    compare_rates,
    outcomes_to_estimate,
    paper_epsilon,
    rate_bounds,
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


def draw_tau(setting: Setting) -> Runs | None:
    """Draw every repeat of Baseline or RS-Audit; None if the question leaves nothing to draw."""
    question, world = setting.question, CellWorld(setting.world.cells, setting.world.r)
    outcomes, compare = outcomes_to_estimate(question), question.resolve(world.cells)
    if not outcomes or compare.left_out:
        return None
    audit, groups = setting.begin(world.past()), range(len(world.cells))
    assert isinstance(audit, TauAudit)
    rng = default_rng(setting.seed)
    blocks = [[a] for a in groups] if audit.within_group else [[*groups]]  # groups of one stream
    joint = world.joint
    # Approved with outcome 0, with 1, and denied of every group: shares, or counts of finite pasts.
    kinds: Array | Ints = np.stack([joint[:, 1], joint[:, 0], joint[:, 2] + joint[:, 3]], 1)[None]
    unlimited = None
    if setting.pasts is not None:
        counts = attrgetter("approved_negative", "approved_positive", "denied")
        own = [[counts(past.cells[group]) for group in world.groups] for past in setting.pasts]
        kinds = np.array(own, dtype=np.int64)
    elif setting.history_size is not None:
        shares, size = kinds.ravel() / kinds.sum(), setting.repeats
        drawn = rng.multinomial(setting.history_size, shares, size=size)
        kinds = drawn.reshape(-1, *kinds.shape[1:])
    else:
        unlimited = setting.repeats
    rows = draw_rows_until(rng, audit.tau, outcomes, blocks, kinds, unlimited)
    dry = np.asarray(np.isnan(rows).any(axis=(1, 2)))
    runs = np.array([UNDECIDED_RUN] * setting.repeats, dtype=RUN_DTYPE)
    if unlimited is not None:
        runs[dry] = run_record(audit)  # an unlimited past is the same in all repeats
    else:
        for at in np.flatnonzero(dry & kinds.sum(axis=2).all(axis=1)):  # else a group is missing
            past = Past(cells_of(world.groups, kinds[at][:, [1, 0, 2]]))
            runs[at] = run_record(setting.begin(past))
    if dry.all():
        return runs
    # From here on every outcome has a positive share, and every phase ends.
    lengths, labels, cost = _online(audit, world, blocks, int((~dry).sum()), rng)
    ratios = lengths / rows[~dry]
    low, high = rate_bounds(ratios, paper_epsilon(audit.tau, question, len(groups)) / 12.0)
    estimate, lower, upper = compare_rates(ratios, low, high, compare)
    limit = question.gamma + question.epsilon / 2.0
    verdict = np.where(estimate > limit, Verdict.UNFAIR.value, Verdict.FAIR.value)
    verdict[(low >= 1.0).any(axis=(1, 2))] = Verdict.INCONCLUSIVE.value
    found = {"verdict": verdict, "cost": cost, "labels": labels}
    for name, column in (found | {"estimate": estimate, "lower": lower, "upper": upper}).items():
        runs[name][~dry] = column
    return runs


def _online(
    audit: TauAudit, world: CellWorld, blocks: list[list[int]], repeats: int, rng: Generator
) -> tuple[Array, Ints, Array]:
    """Return the phases' lengths, (repeats, outcomes, groups), and labels and cost per repeat."""
    outcomes = outcomes_to_estimate(audit.question)
    lengths = np.zeros((repeats, len(outcomes), len(world.cells)))
    labels, cost = np.zeros(repeats, np.int64), np.zeros(repeats)
    for block in blocks:
        shares, joint = outcome_shares(world)[:, block], world.joint[block]
        denied = np.stack([joint[:, 3], joint[:, 2]]) / np.where(shares > 0.0, shares, 1.0)
        goals = [(i, place) for i in range(len(outcomes)) for place in range(len(block))]
        asked = np.zeros((repeats, *shares.shape), np.int64)  # of outcome 0 and 1, by group
        for phase in [goals] if audit.reuse_labels else [[goal] for goal in goals]:
            kinds = [outcomes[i] * len(block) + place for i, place in phase]
            counts = draw_counts_in_unlimited_past(rng, audit.tau, kinds, shares.ravel(), repeats)
            for number, (i, place) in enumerate(phase):
                lengths[:, i, block[place]] = counts[:, number].sum(axis=1)
            at_end = counts.max(axis=1).reshape(asked.shape)  # counts only grow
            asked += rng.binomial(at_end, np.clip(denied, 0.0, 1.0))
        labels += asked.sum(axis=(1, 2))
        for place, a in enumerate(block):
            prices, own = audit.costs.of(world.groups[a]), asked[:, :, place]
            cost += prices.feature * own.sum(axis=1) + prices.label * own[:, 0]
    return lengths, labels, cost
