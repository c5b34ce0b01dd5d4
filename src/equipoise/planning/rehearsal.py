"""Adaptive audits rehearsed before anything is paid, on unknowns drawn at random.

What an adaptive audit costs depends on what the denied would have done, which nobody knows. So it
is run many times on a computer, each time with other unknowns that are plausible next to the
approved of the same group. The draws only shape the forecast; no verdict ever rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.bounds import Price
from equipoise.cells import Cells
from equipoise.planning.forecast import Outlook
from equipoise.planning.guessing import guess_r
from equipoise.progress import Progress, silent
from equipoise.simulation.loop import InBlocks, let_come

__all__ = ["ASSUMED_R", "Trial", "outlook", "plausible_r", "rehearse"]

Array = NDArray[np.float64]

CAP = 2_000  # labels of one rehearsal; beyond it the audit's own estimate of the rest is added
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_WEIGHT = 8.0  # a group's r scatters around its mean like a share among so many people

ASSUMED_R = (
    "the forecast, not the verdict, draws r at random: in all groups the denied do worse than the "
    "approved by one factor between 0 and 1, and each group scatters around that like a share "
    "among eight people"
)


@dataclass(frozen=True)
class Trial:
    """One rehearsed audit: labels per group and their cost, expected ones included."""

    verdict: str | None
    labels: Array
    cost: float


def outlook(
    audit: AdaptiveAudit,
    *,
    audits: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Outlook:
    """Rehearse an audit that has not begun for many plausible unknowns; fewer for many groups.

    Examples
    --------
    >>> from equipoise.question import Costs, Question
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    >>> audit = AdaptiveAudit(world.past(), Question(epsilon=0.3), Costs())
    >>> seen = outlook(audit, audits=4)
    >>> seen.audits, seen.median.labels > 0
    (4, True)
    """
    cells = audit.cells
    if audits is None:
        audits = max(10, min(60, 480 // len(cells) ** 2))  # work grows with the pairs
    draws = plausible_r(cells, np.random.default_rng(seed), audits)
    trials = rehearse(audit, draws, seed=seed, progress=progress)
    ended = [trial.verdict for trial in trials if trial.verdict is not None]
    in_sight = [t.labels for t in trials if np.isfinite(t.labels).all()]
    mean = np.mean(in_sight, axis=0) if in_sight else np.zeros(len(cells))
    return Outlook(
        audits=audits,
        quantiles={f"{level:g}": _quantile(trials, level) for level in LEVELS},
        free=float(np.mean([trial.cost == 0.0 for trial in trials])),
        extrapolated=1.0 - len(ended) / audits,
        cap=CAP,
        verdicts={v: ended.count(v) / len(ended) for v in sorted(set(ended))},
        labels=dict(zip(cells.groups, mean.tolist(), strict=True)),
    )


def plausible_r(cells: Cells, rng: np.random.Generator, size: int) -> Array:
    """Draw each group's r, shape (size, groups): below the approved's share of good outcomes, wide.

    One factor, uniform on [0, 1], says how much worse all denied are than the approved of their
    group; around that each group scatters by itself (a Beta law). :data:`ASSUMED_R` in words.
    """
    approved = np.array(list(guess_r(cells).values()))
    mean = np.clip(approved * rng.random((size, 1)), 0.01, 0.99)
    return np.asarray(rng.beta(_WEIGHT * mean, _WEIGHT * (1.0 - mean)))


def rehearse(
    audit: AdaptiveAudit, draws: Array, *, seed: int = 0, progress: Progress = silent
) -> list[Trial]:
    """Run an audit that has not begun once for every row of unknowns; it stays as it is."""
    seeds = np.random.SeedSequence(seed).spawn(len(draws))
    trials = []
    for done, (r, own) in enumerate(zip(draws, seeds, strict=True), start=1):
        trials.append(_run(audit, r, np.random.default_rng(own)))
        progress(done / len(draws))
    return trials


def _run(audit: AdaptiveAudit, r: Array, rng: np.random.Generator) -> Trial:
    """Run a copy of the audit until it ends or has its last label."""
    if audit.evidence is None:
        verdict = audit.finding.verdict.value if audit.finding else None
        return Trial(verdict, np.zeros(len(r)), 0.0)
    copy = deepcopy(audit, {id(audit.history): audit.history})
    denied = np.array([counts.denied for counts in audit.cells.values()], dtype=float)
    let_come(InBlocks(copy, denied, r, rng), CAP)
    evidence = copy.evidence
    assert evidence is not None
    if evidence.verdict is not None:
        return Trial(evidence.verdict.value, evidence.requested, copy.cost)
    to_go = evidence.labels_to_go()
    prices = np.array([audit.costs.of(g).expected(x) for g, x in zip(audit.cells, r, strict=True)])
    rest = np.where(prices > 0.0, prices, 1.0) * to_go  # what is free stays free, however long
    return Trial(None, evidence.requested + to_go, copy.cost + float(rest[prices > 0.0].sum()))


def _quantile(trials: Sequence[Trial], level: float) -> Price:
    def at(values: list[float]) -> float:
        return float(np.quantile(values, level, method="higher"))  # no mean with infinity

    return Price(
        labels=at([float(t.labels.sum()) for t in trials]), cost=at([t.cost for t in trials])
    )
