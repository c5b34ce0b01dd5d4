"""Exp-Audit behind a rule that cannot be asked: error, and cost against a known classifier."""

from __future__ import annotations

import argparse
import sys

import numpy as np
from bench.measure import table
from rich.table import Table

import equipoise as eq
from equipoise.mixture import Gaussian, HalfSpace
from equipoise.worlds.mixture import GroupMixture, MixtureWorld

GAMMA, EPSILON, DELTA = 0.05, 0.25, 0.05
COSTS = eq.Costs(0.5, 3.0)
SIZES = (1_000, 10_000, 100_000)
NORMALS = {"threshold": (0.0, 1.0), "half_space": (0.1, 1.0)}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500, help="half at either boundary")


def run(options: argparse.Namespace) -> Table:
    out = table(
        f"Two columns, laws 6 standard deviations apart, gamma={GAMMA}, epsilon={EPSILON}, "
        f"delta={DELTA}, c_feat=0.5, c_lab=3, {options.runs} runs a row: half at Delta = gamma, "
        "half at gamma + epsilon",
        "rule, past people",
        "wrong, learnt",
        "wrong, known",
        "by labels, learnt",
        "by labels, known",
        "cost, learnt",
        "cost, known",
        "ratio",
    )
    question = eq.Question("equal_opportunity", gamma=GAMMA, epsilon=EPSILON, delta=DELTA)
    half = options.runs // 2
    for rules in NORMALS:
        for size in SIZES:
            cells = []
            for learn in ({"accepts": "learn", "rules": rules}, {}):
                sims = [
                    eq.simulate(
                        "exp", world_at(d, rules, size), question, COSTS, repeats=half, **learn
                    )
                    for d in (GAMMA - 1e-9, GAMMA + 1.001 * EPSILON)
                ]
                wrong, labels, cost = (
                    np.mean([f(s) for s in sims])
                    for f in (
                        lambda s: s.wrong.mean(),
                        lambda s: (s.labels > 40_000).mean(),
                        lambda s: s.cost.mean(),
                    )
                )
                cells.append((wrong, labels, cost))
            (w1, l1, c1), (w2, l2, c2) = cells
            numbers = [f"{x:.3f}" for x in (w1, w2, l1, l2)]
            prices = [f"{c1:,.0f}", f"{c2:,.0f}", f"{c1 / c2:.3f}"]
            row = f"{rules}, {size:,}", *numbers, *prices
            print(*row, sep=" | ", file=sys.stderr, flush=True)
            out.add_row(*row)
    return out


def world_at(difference: float, rules: str, size: int) -> MixtureWorld:
    """Return a world whose TPRs lie this far apart, behind a rule of the class."""
    from scipy.special import ndtri

    family, normal = Gaussian("full"), np.array(NORMALS[rules])
    good, mixtures = np.array([6.0, 0.0]), {}
    for group, share, q, side in (("1", 0.7, 0.7, 0.5), ("0", 0.3, 0.4, -0.5)):
        rate = 0.5 + side * difference
        offset = float(normal @ good - np.linalg.norm(normal) * ndtri(rate))
        thetas = family.pack([0.0, 0.0], np.eye(2)), family.pack(good, np.eye(2))
        cut = HalfSpace(normal, offset)
        mixtures[group] = GroupMixture.of(share, q, family, thetas, cut)
    return MixtureWorld(mixtures, feature_rows=size)
