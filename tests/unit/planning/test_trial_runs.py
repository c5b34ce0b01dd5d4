"""Trial runs of an audit, which sharpen a forecast."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.planning import forecast, plan
from equipoise.planning.scenarios import scenarios
from equipoise.planning.trial_runs import _quantile_place, run_trials
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from tests.profiles import quick

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
COARSE = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
COSTS = Costs(feature=0.1, label=1.0)


def test_a_trial_run_costs_what_a_simulated_audit_costs() -> None:
    """The same law: the median of one lies within the quantiles that hold all but 1e-5 of them."""
    question, n = Question("equal_opportunity", gamma=0.2, epsilon=0.3), 25
    first = forecast(WORLD.past(), question, COSTS, scenarios(WORLD.cells, question)[2:3])
    (seen,) = run_trials(AdaptiveAudit(WORLD.past(), question, COSTS), first, n)
    world = CellWorld(WORLD.cells, first[0].scenario.r)
    sim = simulate("adaptive", world, question, COSTS, repeats=n, seed=4)
    assert seen.decides == 1.0
    assert seen.median is not None
    assert np.quantile(sim.cost, 0.02) < seen.median < np.quantile(sim.cost, 0.98)


def test_trial_runs_repeat_themselves() -> None:
    audit = AdaptiveAudit(WORLD.past(), COARSE, COSTS)
    first = forecast(WORLD.past(), COARSE, COSTS, scenarios(WORLD.cells, COARSE)[:1])
    once, again = (run_trials(audit, first, 4) for _ in range(2))
    assert once == again
    assert audit.labels == 0


def test_a_trial_run_without_a_verdict_has_not_finished() -> None:
    """Two groups that differ by less than a small past can show: no run counts as a cost."""
    history = WORLD.past(quick(100, full=400), 3)
    gamma, epsilon = quick((0.1, 0.2), full=(0.05, 0.05))
    question = Question("equal_opportunity", gamma=gamma, epsilon=epsilon)
    made = plan(history, question, COSTS, trial_runs=quick(1, full=8))
    undecided = [seen for seen in made.cases if seen.decides == 0.0]
    assert undecided
    for seen in undecided:
        assert set(seen.cost.values()) == {None}
        assert not seen.is_decidable
    assert "cannot be decided with these historical data" in str(made)


def test_progress_ends_at_one() -> None:
    told: list[float] = []
    made = plan(WORLD.past(), COARSE, COSTS, trial_runs=2, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert all(seen.trial_runs == 2 for seen in made.cases)


@pytest.mark.parametrize("n", [8, 19, 30, 40])
def test_the_tried_range_holds_the_next_audit_as_often_as_it_says(n: int) -> None:
    """Of n + 1 audits each is the last with equal chance: count those that the others enclose."""
    values, inside = np.arange(n + 1.0), 0
    for last in values:
        rest = values[values != last]
        inside += bool(rest[_quantile_place(0.1, n)] <= last <= rest[_quantile_place(0.9, n)])
    assert min(0.8, (n - 1) / (n + 1)) <= inside / (n + 1) <= 0.9
