from __future__ import annotations

import math

import pytest

from equipoise.audits.catalogue import AUDITS
from equipoise.bounds import rs_expectation
from equipoise.cells import Cells, GroupCells
from equipoise.history import History
from equipoise.planning import Plan, plan
from equipoise.planning.guessing import guess_r, price_range
from equipoise.question import Costs, Question, Verdict
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
QUESTION = Question(epsilon=0.1)
COSTS = Costs(feature=0.1, label=1.0)


@pytest.fixture(autouse=True)
def black_box_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan with Baseline and RS-Audit, whatever other audits there are."""
    known = {name: AUDITS[name] for name in ("baseline", "rs")}
    monkeypatch.setattr("equipoise.planning.make_plan.AUDITS", known)


def test_a_row_per_audit_cheapest_first() -> None:
    made = plan(WORLD.past(), QUESTION, COSTS)
    assert [row.audit for row in made.rows] == ["rs", "baseline"]
    assert made.recommended == "rs"
    for row in made.rows:
        assert row.possible
        assert row.least.cost <= row.guess.cost <= row.most.cost
        assert row.least.labels <= row.guess.labels <= row.most.labels
        assert row.bound is not None
        assert row.bound.cost > row.guess.cost
        assert "wrong with probability at most 0.05" in row.guarantees
        assert row.assumes


def test_the_range_holds_every_world_with_these_cells() -> None:
    row = plan(WORLD.past(), QUESTION, COSTS).rows[0]
    for a in (0.0, 0.2, 0.55, 1.0):
        for b in (0.0, 0.35, 0.8, 1.0):
            world = CellWorld(WORLD.cells, {"A": a, "B": b})
            cost = rs_expectation(world, QUESTION, COSTS).cost
            assert row.least.cost * 0.999 <= cost <= row.most.cost * 1.001


def test_the_guess_is_the_approved_base_rate() -> None:
    guess = guess_r(WORLD.cells)
    assert guess == pytest.approx({"A": 0.75, "B": 2 / 3})
    expected = rs_expectation(CellWorld(WORLD.cells, guess), QUESTION, COSTS)
    assert plan(WORLD.past(), QUESTION, COSTS).rows[0].guess == expected


def test_nothing_is_recommended_where_the_past_decides() -> None:
    world = CellWorld.from_shares({"A": (0.9, 0.05, 0.05, 0.5), "B": (0.1, 0.05, 0.85, 0.5)})
    made = plan(world.past(), Question("demographic_parity"), COSTS)
    assert made.free.verdict is Verdict.UNFAIR
    assert made.recommended == "check"
    assert made.advice == "nothing to pay: the past data decide (UNFAIR)"


def test_audits_that_would_run_dry_are_not_recommended() -> None:
    history = History.from_cells(
        Cells({"A": GroupCells(300, 100, 600), "B": GroupCells(200, 100, 700)})
    )
    made = plan(history, QUESTION, COSTS)
    assert made.recommended is None
    assert "no audit can run" in made.advice
    for row in made.rows:
        assert not row.possible
        assert "more past rows" in row.missing[0]


def test_a_metric_that_no_audit_answers() -> None:
    made = plan(WORLD.past(), Question("accuracy_parity"), COSTS)
    assert made.rows == ()
    assert made.recommended is None
    assert made.advice == "no audit here answers this metric"


def test_gamma_zero_is_remarked_on() -> None:
    assert "gamma = 0" in plan(WORLD.past(), Question(gamma=0.0), COSTS).notes[0]
    assert plan(WORLD.past(), QUESTION, COSTS).notes == ()


def test_it_prints_and_goes_through_json() -> None:
    made = plan(WORLD.past(), QUESTION, COSTS)
    assert Plan.from_json(made.to_json()) == made
    text = str(made)
    assert "recommended: rs" in text
    assert f"rs: {made.rows[0].guess}" in text


def test_a_range_without_end_is_none_in_json() -> None:
    world = CellWorld.from_shares({"A": (0.3, 0.0, 0.7, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
    made = plan(world.past(), Question("predictive_equality"), COSTS)
    assert made.rows[0].most.labels == math.inf
    assert made.to_dict()["rows"][0]["most"]["labels"] is None
    assert "none were found" in made.rows[0].missing[0]


def test_ranges_of_numbers_that_are_never_spent_are_zero() -> None:
    least, most = price_range(lambda r: rs_expectation(WORLD, QUESTION, COSTS), WORLD.r)
    assert (least.features, most.features) == (0.0, 0.0)
    assert least.cost == most.cost
