"""Baseline and RS-Audit as the paper's experiments run them: labels online, the past known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.history.past import endless_counts
from equipoise.worlds import CellWorld

__all__ = ["Phases", "run_phases"]


@dataclass(frozen=True, eq=False)
class Phases:
    """Per repeat: labels requested, those among them with outcome 0, and the estimated EOD."""

    labels: NDArray[np.int64]
    failures: NDArray[np.int64]
    estimate: NDArray[np.float64]


def run_phases(
    audit: str, world: CellWorld, tau: int, *, repeats: int, rng: np.random.Generator
) -> Phases:
    """Run every phase (y, a) of "baseline" or "rs", each on a stream of its own.

    ``P[f=1, Y=y | A=a]`` is that of the whole table: "to simulate historical data, we use the
    inference on the whole of the dataset". So a group that is never approved has rate 0, where
    Algorithm 1 as printed would wait for ever for its first approved person.
    """
    joint = world.joint  # columns approved 1, approved 0, denied 1, denied 0
    by_outcome = np.stack([joint[:, 1] + joint[:, 3], joint[:, 0] + joint[:, 2]])
    denied = np.stack([joint[:, 3], joint[:, 2]]) / by_outcome
    approved = np.stack([joint[:, 1], joint[:, 0]])
    groups = joint.shape[0]
    labels, failures = np.zeros(repeats, np.int64), np.zeros(repeats, np.int64)
    rates = np.zeros((repeats, 2, groups))
    for y in (0, 1):
        for a in range(groups):
            block = [a] if audit == "rs" else list(range(groups))
            shares = by_outcome[:, block]
            goal = y * len(block) + block.index(a)
            counts = endless_counts(rng, tau, [goal], shares.ravel(), repeats)[:, 0]
            length = counts.sum(axis=1)
            asked = rng.binomial(
                counts.reshape(repeats, 2, len(block)), np.clip(denied[:, block], 0.0, 1.0)
            )
            labels += asked.sum(axis=(1, 2))
            failures += asked[:, 0].sum(axis=1)
            rates[:, y, a] = approved[y, a] / shares.sum() * length / tau
    spread = rates.max(axis=2) - rates.min(axis=2)
    return Phases(labels, failures, spread.max(axis=1))
