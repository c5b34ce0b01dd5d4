"""Against one group, one way, within strata: ``python -m study boundary_compare``, short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.rates import clopper_pearson
from tests.profiles import quick
from tests.support.boundaries import COMPARISONS, QUESTION, Row, boundaries

ALARM = 1e-4


@pytest.mark.parametrize("past", quick([None], full=[None, 20_000]))
@pytest.mark.parametrize("name", COMPARISONS)
def test_wrong_verdicts_and_intervals_are_rare(name: str, past: int | None) -> None:
    line, compare = COMPARISONS[name]
    runs = quick(5, full=200 if past is None else 60)
    for edge in boundaries(line, replace(QUESTION, compare=compare)):
        sim = Row(edge, runs, past).simulate(seed=5, jobs=1)
        missed = (sim.gap < sim.lower) | (sim.gap > sim.upper)
        for errors in (sim.wrong, sim.wrong | missed):
            assert clopper_pearson(int(errors.sum()), runs, ALARM / 12.0)[0] <= edge.question.delta
        assert np.mean(sim.verdict == edge.truth) > 0.5


@pytest.mark.parametrize("audit", ["rs", "baseline"])
@pytest.mark.parametrize("by", ["difference", "ratio"])
def test_the_paper_s_audits_take_them(audit: str, by: str) -> None:
    for name, (line, compare) in COMPARISONS.items():
        question = replace(QUESTION, epsilon=0.3, compare=replace(compare, by=by))
        for edge in boundaries(line, replace(question, gamma=0.15)):
            sim = eq.simulate(audit, edge.world, edge.question, eq.Costs(), repeats=40, seed=1)
            missed = (sim.gap < sim.lower) | (sim.gap > sim.upper)
            errors = int((sim.wrong | missed).sum())
            assert clopper_pearson(errors, 40, ALARM / 24.0)[0] <= edge.question.delta, name
            assert np.abs(sim.estimate - sim.gap).max() < 0.5 * edge.question.epsilon
