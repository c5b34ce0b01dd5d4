"""The cases of a plan: what the denied might have done."""

from __future__ import annotations

import pytest

from equipoise.cells import Cells, GroupCells
from equipoise.errors import InvalidInput, UnknownName
from equipoise.history import History
from equipoise.planning import Scenario, ScenarioKind
from equipoise.planning.scenarios import pick_usual_case, scenarios
from equipoise.question import Costs, Question
from equipoise.worlds import CellWorld

WORLD = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.3), "B": (0.2, 0.1, 0.7, 0.3)})
QUESTION = Question(epsilon=0.1)
COARSE = Question("equal_opportunity", gamma=0.2, epsilon=0.2)
COSTS = Costs(feature=0.1, label=1.0)
SMALL = History.from_cells(Cells({"A": GroupCells(6, 3, 9), "B": GroupCells(4, 2, 9)}))


def test_cases_are_what_they_say() -> None:
    cases = scenarios(WORLD.cells, COARSE)
    for case, ratio in zip(cases, (0.1, 0.2, 0.4, 0.6, 0.8), strict=False):
        assert case.r == pytest.approx({"A": ratio * 0.75, "B": ratio * 2 / 3})
    below, above = cases[-2:]
    assert (below.expect, above.expect) == ("FAIR", "UNFAIR")
    assert COARSE.gamma - 0.01 <= below.gap <= COARSE.gamma
    assert COARSE.threshold < above.gap <= COARSE.threshold + 0.01
    for case in cases:
        world = CellWorld(WORLD.cells, case.r)
        assert case.gap == world.gap(COARSE.metric)


def test_what_is_known_of_a_group_holds_in_every_case() -> None:
    cases = scenarios(WORLD.cells, COARSE, {"B": 0.5})
    assert {case.r["B"] for case in cases} == {0.5}
    both = scenarios(WORLD.cells, COARSE, {"A": 0.4, "B": 0.5})
    assert [case.name for case in both] == ["the denied succeed as you say"]
    with pytest.raises(UnknownName, match="'C'"):
        scenarios(WORLD.cells, COARSE, {"C": 0.5})
    with pytest.raises(InvalidInput, match=r"must be in \[0, 1\]; got 1.5"):
        scenarios(WORLD.cells, COARSE, {"B": 1.5})


def test_the_usual_case_is_found_by_its_kind_and_not_by_its_name() -> None:
    cases = scenarios(WORLD.cells, COARSE)
    usual = pick_usual_case(cases)
    assert (usual.kind, usual.ratio) == (ScenarioKind.RATIO, 0.4)
    tested = Cells(
        {
            "A": GroupCells(600, 150, 750, random_accepts=(24, 56, 3)),
            "B": GroupCells(250, 100, 650, random_accepts=(24, 56, 0)),
        }
    )
    assert pick_usual_case(scenarios(tested, COARSE)).kind is ScenarioKind.RANDOM_ACCEPTS
    known = scenarios(WORLD.cells, COARSE, {"A": 0.4, "B": 0.5})
    assert pick_usual_case(known).kind is ScenarioKind.AS_GIVEN


@pytest.mark.parametrize("kind", list(ScenarioKind))
def test_a_case_is_the_same_after_json(kind: ScenarioKind) -> None:
    ratio = 0.4 if kind is ScenarioKind.RATIO else None
    case = Scenario(kind, {"A": 0.1}, 0.2, "FAIR", ratio)
    assert Scenario.from_json(case.to_json()) == case
    assert case.short in case.name.replace("the gap is", "gap")


def test_a_case_in_the_grey_zone_says_that_either_verdict_is_right() -> None:
    question = Question("equal_opportunity", gamma=0.01, epsilon=0.2)
    cases = scenarios(WORLD.cells, question)
    for case in cases:
        assert case.is_either_right == (len(question.truth(case.gap)) == 2)
    assert {case.is_either_right for case in cases} == {True, False}


def test_a_ratio_is_a_percentage_in_the_column_that_says_as_often() -> None:
    by_ratio = Scenario(ScenarioKind.RATIO, {"A": 0.1}, 0.2, "FAIR", 0.4)
    assert (by_ratio.cell, by_ratio.short) == ("40%", "40% as often")
    as_given = Scenario(ScenarioKind.AS_GIVEN, {"A": 0.1}, 0.2, "FAIR")
    assert as_given.cell == as_given.short
