"""Audits of data as they are err as seldom as they promise, where errors are most likely.

The studies ``python -m study unknown`` and ``python -m study random_accepts`` do this a thousand
times per row; here are as many runs as a test can afford. Seeds are fixed; a correct program would
fail a test with probability ``ALARM`` at most over the choice of its seed.
"""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.rates import clopper_pearson
from tests.profiles import only_in_full, quick
from tests.support import random_accepts
from tests.support.boundaries import boundaries
from tests.support.open_books import QUESTION, edge, misses
from tests.support.random_accepts import RandomAccepts

ALARM = 1e-4
RUNS = quick(6, full=100)


def few(wrong: int, runs: int) -> bool:
    return clopper_pearson(wrong, runs, ALARM)[0] <= QUESTION.delta


@pytest.mark.parametrize(
    ("mode", "truth", "past"),
    [
        pytest.param("bounds", "UNFAIR", 40_000, marks=only_in_full),
        ("bounds", "FAIR", None),
        pytest.param("like_known", "FAIR", 40_000, marks=only_in_full),
    ],
)
def test_unknown_outcomes_do_not_mislead_the_audit(mode: str, truth: str, past: int | None) -> None:
    sim = eq.simulate(
        "adaptive", edge(mode, truth), QUESTION, eq.Costs(), repeats=RUNS, seed=2, history_size=past
    )
    assert few(int(sim.wrong.sum()), RUNS)
    assert np.mean(sim.verdict == truth) > 0.5


@pytest.mark.parametrize("mode", ["bounds", "like_known"])
@pytest.mark.parametrize("metric", ["predictive_parity", "equalized_odds"])
def test_the_interval_of_check_holds_the_worst_that_is_allowed(mode: str, metric: str) -> None:
    runs = quick(20, full=400)
    assert few(misses(mode, metric, runs, seed=4), runs)


def test_a_test_programme_decides_rightly_and_in_any_order() -> None:
    """Its outcomes as a sorted file has them would mislead for certain."""
    unfair = next(b for b in boundaries("half approved") if b.truth == "UNFAIR")
    world, seeds = (
        RandomAccepts(unfair.world, random_accepts.SHARE),
        np.random.SeedSequence(5).spawn(RUNS),
    )
    found = [random_accepts.audit_of(AdaptiveAudit, world, seed) for seed in seeds]
    assert few(sum(verdict == "FAIR" for verdict, _ in found), RUNS)
    assert all(labels == 0 for _, labels in found[:3])
    assert random_accepts.sorted_is_the_same(world, seeds[0])
    misled = [
        random_accepts.audit_of(random_accepts.FileOrder, world, seed)[0] for seed in seeds[:5]
    ]
    assert misled == ["FAIR"] * 5
