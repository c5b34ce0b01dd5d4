from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.audits.adaptive import AdaptiveAudit
from equipoise.cells import Cells, GroupCells
from equipoise.history import History
from equipoise.planning import Plan, plan, what_if
from equipoise.planning.rehearsal import outlook, plausible_r, rehearse
from equipoise.question import Costs, Question, Verdict
from equipoise.simulation import simulate
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
COARSE = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
COSTS = Costs(feature=0.1, label=1.0)
AUDIT = AdaptiveAudit(WORLD.past(), COARSE, COSTS)


def test_the_adaptive_audit_is_rehearsed_and_recommended() -> None:
    made = plan(WORLD.past(), COARSE, COSTS)
    assert made.recommended == "adaptive"
    (row,) = (row for row in made.rows if row.audit == "adaptive")
    seen = row.outlook
    assert seen is not None
    assert row.possible
    costs = [price.cost for price in seen.quantiles.values()]
    assert costs == sorted(costs)
    assert (row.least, row.most) == (seen.quantiles["0.1"], seen.quantiles["0.9"])
    assert set(seen.labels) == {"A", "B"}
    assert sum(seen.verdicts.values()) == pytest.approx(1.0)
    assert any("draws r at random" in line for line in row.assumes)
    assert "half of its rehearsals" in made.advice
    assert Plan.from_json(made.to_json()) == made


def test_rehearsals_repeat_themselves() -> None:
    once, again = (outlook(AUDIT, audits=4, seed=2) for _ in range(2))
    assert once == again
    assert outlook(AUDIT, audits=4, seed=3) != once
    assert AUDIT.labels == 0


def test_a_rehearsal_costs_what_a_simulated_audit_costs() -> None:
    """Means of 25 runs each agree within 4.5 standard errors (false alarm below 1e-5)."""
    question, n = Question("equal_opportunity", gamma=0.2, epsilon=0.3), 25
    r = np.tile(list(WORLD.r.values()), (n, 1))
    trials = rehearse(AdaptiveAudit(WORLD.past(), question, COSTS), r, seed=3)
    sim = simulate("adaptive", WORLD, question, COSTS, repeats=n, seed=4)
    mine = np.array([trial.cost for trial in trials])
    assert all(trial.verdict is not None for trial in trials)
    error = math.sqrt(mine.var(ddof=1) / n + sim.cost.var(ddof=1) / n)
    assert abs(mine.mean() - sim.cost.mean()) < 4.5 * error


def test_plausible_unknowns_lie_below_the_approved_and_spread() -> None:
    draws = plausible_r(WORLD.cells, np.random.default_rng(0), 4000)
    approved = np.array([0.75, 2 / 3])
    assert draws.shape == (4000, 2)
    assert np.abs(draws.mean(axis=0) - approved / 2.0).max() < 0.02
    assert (draws.std(axis=0) > 0.2).all()
    assert np.corrcoef(draws.T)[0, 1] > 0.4  # one factor for all groups


def test_nothing_is_rehearsed_where_the_past_decides() -> None:
    seen = outlook(AdaptiveAudit(WORLD.past(), Question("demographic_parity"), COSTS))
    assert seen.free == 1.0
    assert seen.median.cost == 0.0
    assert seen.verdicts == {Verdict.UNFAIR.value: 1.0}


def test_a_past_that_is_too_small_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.planning.rehearsal.CAP", 30)
    history = History.from_cells(Cells({"A": GroupCells(6, 3, 9), "B": GroupCells(4, 2, 9)}))
    made = plan(history, Question("equal_opportunity", gamma=0.02, epsilon=0.02), COSTS)
    (row,) = (row for row in made.rows if row.audit == "adaptive")
    assert not row.possible
    assert "more past rows" in row.missing[0]
    assert made.recommended is None
    assert Plan.from_json(made.to_json()) == made


def test_labels_cannot_help_a_metric_that_does_not_depend_on_them() -> None:
    history = History.from_cells(Cells({"A": GroupCells(6, 3, 9), "B": GroupCells(4, 2, 9)}))
    made = plan(history, Question("demographic_parity"), COSTS)
    (row,) = (row for row in made.rows if row.audit == "adaptive")
    assert row.missing == ("more past rows",)


def test_what_if_moves_one_number_at_a_time() -> None:
    done: list[float] = []
    found = what_if(WORLD.past(), COARSE, COSTS, audits=4, progress=done.append)
    assert [(v.name, v.value) for v in found] == [
        *(("gamma", 0.1), ("gamma", 0.2), ("gamma", 0.4)),
        *(("epsilon", 0.1), ("epsilon", 0.2), ("epsilon", 0.4)),
        *(("delta", 0.025), ("delta", 0.05), ("delta", 0.1)),
    ]
    assert done[-1] == 1.0
    by_name = {(v.name, v.value): v.outlook for v in found}
    assert by_name["gamma", 0.2] == by_name["delta", 0.05]
    strict, lax = by_name["delta", 0.025], by_name["delta", 0.1]
    assert strict.median.labels >= lax.median.labels


def test_what_if_keeps_to_questions_that_can_be_asked() -> None:
    found = what_if(WORLD.past(), Question("accuracy_parity", 0.0, 0.6), COSTS, audits=2)
    assert [(v.name, v.value) for v in found] == [
        *(("gamma", 0.0), ("epsilon", 0.3), ("epsilon", 0.6), ("delta", 0.025)),
        *(("delta", 0.05), ("delta", 0.1)),
    ]


def test_a_rehearsal_that_never_ends_costs_nothing_where_nothing_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("equipoise.planning.rehearsal.CAP", 30)
    history = History.from_cells(Cells({"A": GroupCells(6, 3, 9), "B": GroupCells(4, 2, 9)}))
    question = Question("equal_opportunity", gamma=0.02, epsilon=0.02)
    seen = outlook(AdaptiveAudit(history, question, Costs(0.0, 0.0)), audits=5)
    assert seen.extrapolated > 0.0
    assert seen.median.cost == 0.0
