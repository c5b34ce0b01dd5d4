from __future__ import annotations

import numpy as np
import pytest

from equipoise.bounds import rs_expectation
from equipoise.history.past import Past
from equipoise.mixture.exp_model import ExpConstants, choose_branch
from equipoise.planning import Forecast
from equipoise.planning.exp_forecast import exp_expectation, forecast_exp
from equipoise.question import Costs, Question
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld, MixtureWorld
from tests.profiles import quick

WORLD = MixtureWorld.synthetic(14.0, approval={"1": 0.6, "0": 0.5})
CELLS = CellWorld(WORLD.cells, WORLD.r)
QUESTION = Question(gamma=0.0, epsilon=0.1)


def exp_row(history: Past, costs: Costs) -> Forecast:
    row = forecast_exp(history, QUESTION, costs)
    assert row is not None
    return row


def test_the_forecast_is_what_the_audit_costs() -> None:
    """At the true r the expectation is the mean of simulated costs, within five standard errors."""
    costs = Costs(0.5, 3.0)
    constants = ExpConstants(QUESTION.epsilon, QUESTION.delta / 2.0, 2)
    branches = {
        g: choose_branch(WORLD.model.of(g), (1.0 - m.q, m.q), constants)
        for g, m in WORLD.mixtures.items()
    }
    expected = exp_expectation(CELLS, QUESTION, costs, branches)
    sim = simulate("exp", WORLD, QUESTION, costs, repeats=quick(12, full=40))
    for name in ("cost", "labels", "features"):
        mean = float(getattr(sim, name).mean())
        error = float(getattr(sim, name).std()) / np.sqrt(len(sim))
        # the features follow the coarse shares, so their mean lies a little off those at the mean
        assert mean == pytest.approx(getattr(expected, name), abs=5.0 * error + 0.02 * mean)


@pytest.mark.parametrize(("label", "cheaper"), [(0.5, "rs"), (1.0, "rs"), (20.0, "exp")])
def test_exp_audit_is_recommended_where_labels_are_dear(label: float, cheaper: str) -> None:
    costs = Costs(0.5, label)
    exp = exp_expectation(CELLS, QUESTION, costs).cost
    rs = rs_expectation(CELLS, QUESTION, costs).cost
    assert ("exp" if exp < rs else "rs") == cheaper
    row = exp_row(WORLD.past(), costs)
    assert row.possible
    assert any("exponential family" in line for line in row.assumes)
    assert any("times RS-Audit" in line for line in row.assumes)


def test_without_features_the_row_says_what_is_missing() -> None:
    row = exp_row(CELLS.past(), Costs())
    assert "features of past approved people" in row.missing[0]


def test_an_overlap_that_the_past_cannot_resolve_is_missing_data() -> None:
    close = MixtureWorld.synthetic(2.0, feature_rows=5_000)
    row = exp_row(close.past(), Costs())
    assert "times as many past approved people" in row.missing[0]
    assert exp_row(MixtureWorld.synthetic(2.0).past(), Costs()).possible
