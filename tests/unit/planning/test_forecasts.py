"""The forecast that needs no trial runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.cells import Cells, GroupCells
from equipoise.history import History
from equipoise.planning import Forecast, Scenario, ScenarioKind, forecast, plan
from equipoise.planning.scenarios import scenarios
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld
from tests.profiles import quick

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
COARSE = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
COSTS = Costs(feature=0.1, label=1.0)


def as_it_is(world: CellWorld, question: Question, past: object = None) -> Forecast:
    history = world.past() if past is None else past
    cases = scenarios(world.cells, question, world.r)
    return forecast(history, question, COSTS, cases)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("groups", "compare"),
    quick(
        [(3, "difference")],
        full=[(k, by) for k in (2, 4) for by in ("difference", "ratio")],
    ),
)
def test_half_of_the_audits_cost_about_what_is_forecast(groups: int, compare: str) -> None:
    """The median of audits within a factor of 3 (measured: within 2 in 90% of cases)."""
    names = "ABCD"[:groups]
    world = CellWorld.from_shares({g: (0.3, 0.1, 0.6, 0.2 + 0.1 * (g == "A")) for g in names})
    question = Question("equal_opportunity", gamma=0.3, epsilon=0.2, compare=compare)
    seen = as_it_is(world, question, world.past(40_000))
    sim = simulate(
        "adaptive", world, question, COSTS, repeats=quick(4, full=20), history_size=40_000
    )
    assert seen.median is not None
    assert 1 / 3 < np.median(sim.cost) / seen.median < 3


def test_a_shorter_past_costs_more_until_it_cannot_decide() -> None:
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    costs = [as_it_is(WORLD, question, WORLD.past(n, 1)).median for n in (10**6, 10**4, 300)]
    assert costs[0] is not None
    assert costs[1] is None or costs[1] > costs[0]
    assert costs[2] is None


def test_groups_of_whom_labels_cost_more_cost_more() -> None:
    question = Question("equal_opportunity", gamma=0.2, epsilon=0.1)
    cases = scenarios(WORLD.cells, question)[:1]
    double = Costs(feature=0.2, label=2.0)
    one, two = (forecast(WORLD.past(), question, c, cases)[0].median for c in (COSTS, double))
    assert one is not None
    assert two == pytest.approx(2.0 * one)
    dear = Costs(0.1, 1.0, {"B": Costs(0.1, 5.0)})
    (own,) = forecast(WORLD.past(), question, dear, cases)
    assert own.median is not None
    assert one < own.median < 5.0 * one


def test_unknown_outcomes_that_alone_leave_both_answers_possible() -> None:
    cells = Cells({g: GroupCells(600, 200, 12_000, 4_000) for g in "AB"})
    question = Question("equal_opportunity", epsilon=quick(0.2, full=0.05))
    made = plan(History.from_cells(cells), question, COSTS)
    assert all(seen.rows is None and not seen.is_decidable for seen in made.cases)
    assert "more past rows like these would not be enough" in made.advice


def test_where_trial_runs_alone_find_no_verdict_no_outcome_is_called_unknown() -> None:
    question = Question("equal_opportunity", gamma=0.05, epsilon=0.1)
    seen = as_it_is(WORLD, question)
    tried = replace(seen, cost=dict.fromkeys(seen.cost), trial_runs=4, verdicts={"none": 1.0})
    assert seen.rows is None
    assert seen.is_decidable
    assert "; most trial runs ended without a verdict, or were broken off" in tried.missing


def test_many_groups_are_forecast_as_well() -> None:
    rng = np.random.default_rng(1)
    cells = {
        f"g{i}": GroupCells(
            *rng.multinomial(30_000, [0.4 + 0.01 * i, 0.1, 0.5 - 0.01 * i]).tolist()
        )
        for i in range(9)
    }
    history, question = History.from_cells(Cells(cells)), Question("equal_opportunity", 0.2, 0.3)
    case = Scenario(ScenarioKind.AS_GIVEN, dict.fromkeys(cells, 0.3), 0.1, "FAIR")
    (seen,) = forecast(history, question, COSTS, [case])
    assert seen.is_decidable
    assert set(seen.labels) == set(cells)


def cells_where_fewer_are_approved(good_share: float, rows: int) -> Cells:
    """Return the counts of four groups; of B only so many are approved with a good outcome."""
    shares = dict.fromkeys("ABCD", 0.3) | {"B": good_share}
    return Cells(
        {
            group: GroupCells(round(p1 * rows), round(0.1 * rows), round((0.9 - p1) * rows))
            for group, p1 in shares.items()
        }
    )


def test_in_the_middle_of_the_grey_zone_a_finite_past_leaves_the_cost_open() -> None:
    question = Question("equal_opportunity", gamma=0.0, epsilon=0.3)
    cells = cells_where_fewer_are_approved(0.2, 40_000)
    (case,) = scenarios(cells, question, dict.fromkeys("ABCD", 0.3))
    assert 0.35 < case.gap / question.epsilon < 0.65
    (finite,) = forecast(History.from_cells(cells), question, COSTS, [case])
    assert finite.median is not None
    assert finite.cost["0.9"] is None
    short = History.from_cells(cells_where_fewer_are_approved(0.2, 300))
    assert forecast(short, question, COSTS, [case])[0].median is None


def test_where_one_answer_is_right_the_cost_has_an_upper_figure() -> None:
    question = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
    cells = cells_where_fewer_are_approved(0.28, 40_000)
    (case,) = scenarios(cells, question, dict.fromkeys("ABCD", 0.3))
    assert case.expect == "FAIR"
    (seen,) = forecast(History.from_cells(cells), question, COSTS, [case])
    assert seen.cost["0.9"] is not None
