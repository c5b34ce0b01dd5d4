"""The adaptive audit errs as seldom as it promises, where errors are most likely.

The study ``python -m study boundary`` does this with thousands of runs; here are as many as a test
can afford. Seeds are fixed. A correct program would fail a test with probability ``ALARM`` at most
over the choice of its seed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.question import Costs, Question
from equipoise.rates import clopper_pearson
from equipoise.simulation import Simulation, simulate
from equipoise.worlds import CellWorld
from tests.profiles import FULL, only_in_full, quick
from tests.support.boundaries import ArrivalOrder, Row, boundaries

ALARM = 1e-4
QUESTION = Question("equalized_odds", gamma=0.1, epsilon=0.3, delta=0.1)
ROWS = [
    pytest.param(
        *(line, past, late, runs),
        id=f"{line}, past {past}, {'late' if late else 'at once'}",
        # Of the others so few runs are affordable that the test could hardly fail.
        marks=() if past is None and line != "four groups" else only_in_full,
    )
    for line, past, late, runs in (
        ("half approved", None, False, quick(12, full=200)),
        ("few approved", None, False, quick(10, full=100)),
        ("half approved", 10_000, True, quick(3, full=50)),
        ("half approved", 1_000, False, quick(3, full=50)),
        ("four groups", None, quick(False, full=True), quick(3, full=30)),
    )
]


@pytest.mark.parametrize(("line", "past", "late", "runs"), ROWS)
def test_wrong_verdicts_and_intervals_are_rare_at_the_boundaries(
    line: str, past: int | None, late: bool, runs: int
) -> None:
    for boundary in boundaries(line, QUESTION):
        sim = Row(boundary, runs, past, late).simulate(seed=3, jobs=1)
        truth = sim.gap
        missed = (truth < sim.lower) | (truth > sim.upper)
        for errors in (sim.wrong, sim.wrong | missed):
            least, _ = clopper_pearson(int(errors.sum()), runs, ALARM / 4.0)
            assert least <= QUESTION.delta
        assert np.mean(sim.verdict == boundary.truth) > 0.5


if FULL:  # dear: it shows that the tests above could fail

    def test_arrival_order_would_be_noticed() -> None:
        """Good outcomes come late: counted as they arrive, they mislead the audit."""
        boundary, runs = boundaries("few approved", Question(gamma=0.1, epsilon=0.1))[0], 24
        arrival, request = (
            Row(boundary, runs, None, True, audit).simulate(seed=3, jobs=1)
            for audit in (ArrivalOrder, AdaptiveAudit)
        )
        delta = boundary.question.delta
        # that the wrong order misleads need only be likely: the seed is fixed
        assert clopper_pearson(int(arrival.wrong.sum()), runs, 0.05)[0] > delta
        assert clopper_pearson(int(request.wrong.sum()), runs, ALARM / 2.0)[0] <= delta


@pytest.mark.parametrize("past", quick([None], full=[None, 20_000]))
def test_blocks_are_the_same_audit_as_person_by_person(past: int | None) -> None:
    """Two-sample Kolmogorov-Smirnov tests of cost and labels, each failing once in 10,000."""
    world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.5), "B": (0.1, 0.1, 0.8, 0.4)})
    question, costs = Question(gamma=0.05), Costs(0.2, 1.0)

    # With eight of each, no p-value is below 1e-4: the test could not fail.
    repeats = quick(9, full=60)

    def runs(seed: int, people: int | None) -> Simulation:
        return simulate(
            "adaptive", world, question, costs, repeats=repeats, seed=seed, history_size=past,
            people=people,
        )  # fmt: skip

    blocks, persons = runs(1, None), runs(2, 10**9)
    for name in ("cost", "labels", "lower", "upper"):
        test = ks_2samp(getattr(blocks, name), getattr(persons, name))
        assert test.pvalue > 1e-4, name
