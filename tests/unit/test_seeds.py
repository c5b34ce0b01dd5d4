"""``random_state`` is another name of ``seed``; results have short reprs and pictures."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InvalidInput

WORLD = eq.worlds.CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
QUESTION = eq.Question("equal_opportunity", gamma=0.2, epsilon=0.3)


def test_random_state_is_seed() -> None:
    assert WORLD.past(50, random_state=3) == WORLD.past(50, 3)  # type: ignore[call-arg]
    drawn = WORLD.draw(50, random_state=3)  # type: ignore[call-arg]
    assert (drawn.outcome == WORLD.draw(50, seed=3).outcome).all()
    runs = [
        eq.simulate("adaptive", WORLD, QUESTION, eq.Costs(), repeats=3, n_jobs=1, **seed)
        for seed in ({"seed": 5}, {"random_state": 5}, {"seed": 5, "random_state": 5})
    ]
    assert all(np.array_equal(run.cost, runs[0].cost) for run in runs)


def test_two_different_seeds_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'random_state' is another name of 'seed'.*seed=0"):
        WORLD.past(50, 0, random_state=3)  # type: ignore[call-arg]


def test_worlds_and_histories_have_short_reprs() -> None:
    assert repr(WORLD) == "<CellWorld of 2 groups: A, B>"
    lender = eq.data.fico_lender()
    for value in (lender, lender.world, WORLD.past(9), WORLD.past(), WORLD.draw(3)):
        assert len(repr(value)) < 100


def test_a_simulation_and_a_plan_are_drawn_within_their_picture() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    runs = eq.simulate("adaptive", WORLD, QUESTION, eq.Costs(), repeats=5, n_jobs=1)
    plan = eq.plan(WORLD.past(3000, 0), QUESTION, eq.Costs(label=400))
    for result in (runs, plan):
        figure = result.plot().figure
        figure.canvas.draw()
        title = figure.axes[0]._left_title.get_window_extent()
        assert title.x1 <= figure.bbox.x1
        pyplot.close(figure)
