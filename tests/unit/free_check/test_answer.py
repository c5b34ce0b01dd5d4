"""What historical data alone establish: the verdicts, and the naive answers beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.free_check import CheckInputs, check, free_verdict
from equipoise.history import History
from equipoise.levels import ErrorBudget
from equipoise.messages.opinions import Opinion
from equipoise.question import Question, Verdict
from equipoise.worlds import CellWorld


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({"A": (0.90, 0.095, 0.005, 0.3), "B": (0.85, 0.145, 0.005, 0.2)}, Verdict.FAIR),
        ({"A": (0.7, 0.3, 0.0, 0.0), "B": (0.0, 0.0, 1.0, 0.4)}, Verdict.UNFAIR),
        ({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.3, 0.1, 0.6, 0.2)}, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts_of_the_past_alone(
    shares: dict[str, tuple[float, float, float, float]], verdict: Verdict
) -> None:
    world = CellWorld.from_shares(shares)
    question = Question(gamma=0.05, epsilon=0.05)
    for past in (world.past(), world.past(200_000, 0)):
        finding = check(past, question)
        assert finding.verdict is verdict
        assert finding.lower <= world.gap(question.metric, question.compare) <= finding.upper
        assert bool(finding.missing) == (verdict is Verdict.INCONCLUSIVE)


def test_where_both_answers_are_right_the_nearer_one_is_named() -> None:
    for gap, verdict in ((0.12, Verdict.FAIR), (0.18, Verdict.UNFAIR)):
        world = CellWorld.from_shares(
            {"A": (0.5, 0.0, 0.5, 0.0), "B": (0.5 + gap, 0.0, 0.5 - gap, 0.0)}
        )
        question = Question("demographic_parity", gamma=0.1, epsilon=0.1)
        assert question.truth(gap) == {Verdict.FAIR, Verdict.UNFAIR}
        assert check(world.past(), question).verdict is verdict


def test_less_of_the_error_level_decides_no_more() -> None:
    world = CellWorld.from_shares({"A": (0.93, 0.04, 0.03, 0.3), "B": (0.90, 0.06, 0.04, 0.2)})
    question = Question("equal_opportunity", gamma=0.03, epsilon=0.03)
    past = world.past(6_000, 1)
    assert check(past, question).verdict is Verdict.FAIR
    assert check(past, replace(question, delta=5e-8)).verdict is Verdict.INCONCLUSIVE
    budget = ErrorBudget.of_audit(replace(question, delta=5e-7), 2, exact=False)
    assert free_verdict(CheckInputs(past), question, budget) is Verdict.INCONCLUSIVE


def test_naive_answers_are_shown_beside() -> None:
    history = History.from_cells(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)}))
    finding = check(history, Question("equal_opportunity"))
    assert finding.approved_only == 0.0
    assert finding.denied_as_failures == 0.0
    assert "naive" in str(finding)


def test_a_naive_answer_is_judged_by_the_range() -> None:
    history = History.from_cells(Cells({"A": GroupCells(30, 10, 60), "B": GroupCells(10, 5, 85)}))
    finding = replace(check(history, Question("equal_opportunity")), lower=0.2, upper=0.4)
    assert finding.judge_answer(None) is Opinion.NO_ANSWER
    assert finding.judge_answer(0.1) is Opinion.RULED_OUT
    assert finding.judge_answer(0.3) is Opinion.NOT_SUPPORTED
    assert replace(finding, upper=0.2).judge_answer(0.2) is Opinion.RIGHT
    assert finding.opinion(0.1) == "wrong: the data rule it out"


def test_a_table_and_the_name_of_a_metric_are_enough() -> None:
    rng = np.random.default_rng(3)
    race = rng.choice(["a", "b"], 2000)
    granted = rng.integers(0, 2, 2000)
    paid = np.where(granted == 1, (rng.random(2000) < 0.7).astype(float), np.nan)
    book = pd.DataFrame({"race": race, "granted": granted, "paid": paid})
    columns = {"group": "race", "decision": "granted", "outcome": "paid"}
    past = eq.History.read(book, **columns)
    question = eq.Question("demographic_parity")  # nothing is to be forecast, which takes long
    assert eq.check(book, "demographic_parity", **columns) == eq.check(past, question)
    planned = eq.plan(book, "demographic_parity", **columns)
    assert planned.to_dict() == eq.plan(past, question, eq.Costs()).to_dict()


def test_a_gap_that_rounding_makes_is_none() -> None:
    """B's rate may be that of A, of whom no one is denied; so UNFAIR does not follow."""
    world = CellWorld.from_shares({"A": (0.5, 0.5, 0, 0), "B": (0.562, 0.077, 0.361, 0.9)})
    assert eq.check(world.past(), eq.Question("predictive_equality", 0.0)).verdict == "INCONCLUSIVE"
