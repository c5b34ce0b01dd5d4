"""The paper's TruncEst: projected stochastic gradient steps with draws that the classifier accepts.

Structure as published (Algorithms 4 and 5, after Lee, Mehrotra and Zampetakis): start at the
ordinary estimate, move against ``T(accepted draw) - T(sample)``, project, repeat, and take the
candidate that the majority agrees on. Three things make it usable: steps use batches, are
preconditioned by the covariance of T among the accepted draws, and the tail of each run is
averaged (Polyak). The theorem's own step counts are in :mod:`equipoise.mixture.theory`.
"""

from __future__ import annotations

import numpy as np

from equipoise.errors import BadData
from equipoise.mixture.family import Array, Frame
from equipoise.mixture.newton import Solution
from equipoise.mixture.oracle import Oracle

__all__ = ["ORACLE_LIMIT", "fit_sgd"]

ORACLE_LIMIT = 16_000_000
WARM_UP, AVERAGED, REPEATS = 12, 18, 3
LEAST_ACCEPTANCE = 2e-3


def fit_sgd(frame: Frame, points: Array, oracle: Oracle, seed: int) -> Solution:
    """Fit by projected SGD within ``ORACLE_LIMIT`` classifier calls."""
    family = frame.family
    target = family.statistics(frame.inside(points)).mean(axis=0)
    start = family.theta_from_mean(target)
    rng = np.random.default_rng(seed)
    # enough accepted draws that their noise is a fifth of the sample's, within reason
    batch = int(np.clip(0.4 * len(points), 1024, 4096))
    runs = [_Run(frame, target, oracle, rng, batch) for _ in range(REPEATS)]
    for run in runs:
        run.go(start)
    finished = [run for run in runs if run.count]
    if not finished:
        raise BadData(
            f"the draws of {oracle.calls:,} classifier calls did not suffice for one averaged "
            "step: 'accepts' lets (almost) nothing through near the sample"
        )
    hessian = np.mean([run.hessian for run in finished], axis=0)
    candidates = np.array([run.mean for run in finished])
    chosen = _majority(candidates, hessian, batch)
    accepted = sum(run.count for run, yes in zip(finished, chosen, strict=True) if yes) * batch
    warnings = []
    if oracle.spent:
        warnings.append(
            f"stopped at the cap of {ORACLE_LIMIT:,} classifier calls, before all steps were made"
        )
    if not chosen.sum() * 2 > len(finished):
        warnings.append("no majority of the repeats agrees: the estimate is not settled")
    if any(run.guarded for run in runs):
        warnings.append(
            "steps were cut short because the classifier let through fewer than "
            f"{LEAST_ACCEPTANCE:.1%} of the draws"
        )
    return Solution(
        theta=family.project(candidates[chosen].mean(axis=0)),
        hessian=hessian,
        ess=float(accepted),
        iterations=sum(run.steps for run in runs),
        boundary_hits=sum(run.boundary_hits for run in runs),
        at_boundary=any(run.at_boundary for run in runs),
        warnings=tuple(warnings),
    )


class _Run:
    """One repeat: warm-up steps, then averaged ones."""

    def __init__(
        self,
        frame: Frame,
        target: Array,
        oracle: Oracle,
        rng: np.random.Generator,
        batch: int,
    ) -> None:
        self.frame, self.target, self.oracle, self.rng = frame, target, oracle, rng
        self.batch = batch
        self.family = frame.family
        self.mean = np.zeros_like(target)
        self.hessian = np.zeros((len(target), len(target)))
        self.count = self.steps = self.boundary_hits = 0
        self.guarded = self.at_boundary = False
        self.acceptance = 0.5

    def go(self, theta: Array) -> None:
        previous = theta
        for step in range(WARM_UP + AVERAGED):
            statistics = self._accepted(theta)
            while statistics is None and not self.oracle.spent:
                self.guarded = True
                theta = (theta + previous) / 2.0
                if np.allclose(theta, previous):
                    return
                statistics = self._accepted(theta)
            if statistics is None:
                return
            self.steps += 1
            mean = statistics.mean(axis=0)
            centred = statistics - mean
            hessian = centred.T @ centred / len(centred)
            gradient = mean - self.target
            averaging = step >= WARM_UP
            if averaging:
                self.hessian += (hessian - self.hessian) / (self.count + 1)
                hessian = self.hessian
            direction = np.linalg.solve(hessian + 1e-10 * np.eye(len(mean)), gradient)
            decrement = float(np.sqrt(max(gradient @ direction, 0.0)))
            rate = 0.5 if averaging else 1.0 / (1.0 + decrement)
            previous, raw = theta, theta - rate * direction
            theta = self.family.project(raw)
            self.at_boundary = not np.allclose(theta, raw, rtol=1e-9, atol=1e-12)
            self.boundary_hits += self.at_boundary
            if averaging:
                self.count += 1
                self.mean += (theta - self.mean) / self.count

    def _accepted(self, theta: Array) -> Array | None:
        """Return T of a batch of accepted draws (SampleGradient); None if too few are let by."""
        kept: list[Array] = []
        have = drawn = 0
        while have < self.batch:
            if self.oracle.spent:
                return None
            size = int(min((self.batch - have) / max(self.acceptance, 0.02) * 1.05 + 64, 2**17))
            z = self.family.sample(theta, size, self.rng)
            z = z[self.oracle(self.frame.outside(z))]
            have, drawn = have + len(z), drawn + size
            kept.append(z)
            self.acceptance = max(have / drawn, 1e-6)
            if drawn > self.batch and self.acceptance < LEAST_ACCEPTANCE:
                return None
        return self.family.statistics(np.concatenate(kept)[: self.batch])


def _majority(
    candidates: Array, hessian: Array, batch: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the candidates that agree with the one most others agree with.

    Two agree when their distance in the information metric is within what ``AVERAGED`` batches
    leave to chance (the paper's ball of radius 2 sqrt(3) epsilon, in units of that noise).
    """
    gap = candidates[:, None] - candidates[None, :]
    square = np.einsum("ijk,kl,ijl->ij", gap, hessian, gap)
    chance = len(hessian) * 2.0 / (AVERAGED * batch)
    agree = square <= 12.0 * chance
    return np.asarray(agree[np.argmax(agree.sum(axis=1))])
