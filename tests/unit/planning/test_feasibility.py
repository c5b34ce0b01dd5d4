"""An audit that cannot end is refused before it begins, with the groups that cause it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import equipoise as eq
from equipoise.cells import Cells, GroupCells
from equipoise.history.coding import Coding, Grouping, YesNo
from equipoise.messages import form, shell
from equipoise.planning.feasibility import NotFeasible, find_obstacle
from equipoise.protocol import Want
from tests.profiles import quick
from tests.support.hmda import COMPARED, GROUPS, ROWS, applicants

NOT_STATED = "not stated"


def hmda_past() -> eq.History:
    cells = {}
    for group, (share, good, bad, _) in GROUPS.items():
        people = ROWS * share
        cells[group or NOT_STATED] = {
            "approved_positive": round(people * good),
            "approved_negative": round(people * bad),
            "denied": round(people * (1.0 - good - bad)),
        }
    return eq.History.from_cells(cells)


PAST = hmda_past()
QUESTION = eq.Question("equal_opportunity", gamma=0.05, epsilon=0.1)
ADVISED = eq.Question(
    "equal_opportunity", gamma=0.05, epsilon=0.1, compare=eq.Compare(leave_out=[NOT_STATED])
)


def test_the_group_is_named_with_the_fix_of_every_surface() -> None:
    with pytest.raises(NotFeasible, match="'not stated' would keep this audit from") as refused:
        eq.LiveAudit.create("sqlite://", "loans", PAST, QUESTION, eq.Costs(label=100))
    assert refused.value.obstacle.groups == (NOT_STATED,)
    assert refused.value.obstacle.rows == 60
    (problem,) = refused.value.problems
    assert "Compare(leave_out=('not stated',))" in str(problem)
    assert "confirm=True" in str(problem)
    assert "--leave-out 'not stated'" in shell.describe(problem)
    assert "--yes" in shell.describe(problem)
    assert "“Groups that are counted and not compared”: not stated" in form.describe(problem)


def test_a_merge_is_offered_where_groups_are_values_of_a_column() -> None:
    obstacle = find_obstacle(PAST, QUESTION, eq.Costs())
    assert obstacle is not None
    assert obstacle.merge is None  # of counts no column is known
    labels = {group.casefold(): group for group in PAST.cells}
    coding = Coding({}, Grouping((labels,)), YesNo(("1",), ("0",)), YesNo(("1",), ("0",)))
    obstacle = find_obstacle(replace(PAST, coding=coding), QUESTION, eq.Costs())
    assert obstacle is not None
    assert obstacle.merge is not None
    assert obstacle.merge.groups == ("Asian", NOT_STATED)
    text = shell.describe(obstacle.problem)
    assert "--merge-groups 'Asian or not stated=Asian'" in text
    assert "--merge-groups 'Asian or not stated=not stated'" in text
    # Without the small group the audit is as long as with the two as one.
    assert obstacle.merge.people == pytest.approx(obstacle.people_without, rel=0.05)
    cells = PAST.cells.to_dict()
    alone = cells.pop(NOT_STATED)
    cells["Asian"] = {name: count + alone[name] for name, count in cells["Asian"].items()}
    assert find_obstacle(eq.History.from_cells(cells), QUESTION, eq.Costs()) is None


def test_it_can_begin_all_the_same() -> None:
    live = eq.LiveAudit.create(
        "sqlite://", "loans", PAST, QUESTION, eq.Costs(label=100), confirm=True
    )
    assert live.finding is None


def test_the_audit_that_follows_the_advice_reaches_a_verdict() -> None:
    live = eq.LiveAudit.create("sqlite://", "loans", PAST, ADVISED, eq.Costs(label=100))
    for number, person in enumerate(applicants(random.Random(7))):
        group = person.race or NOT_STATED
        reply = live.ask(f"p-{number}", group, int(person.approved))
        if reply.want is Want.LABEL:
            assert group in COMPARED
            live.tell(f"p-{number}", int(person.good))
        if number % 50 == 49 and live.finding is not None:
            break
        assert number < 20_000
    assert live.finding is not None
    assert live.finding.verdict is eq.Verdict.UNFAIR


def counts(good: int, bad: int, denied: int) -> dict[str, int]:
    return {"approved_positive": good, "approved_negative": bad, "denied": denied}


# What an attacker began without a word: two groups of which one has 14 rows, and a small lender.
TWO = eq.History.from_cells({"A": counts(1379, 248, 859), "B": counts(6, 1, 7)})
LENDER = eq.History.from_cells({
    "Asian": counts(247, 19, 102),
    "Black": counts(200, 23, 229),
    "White": counts(1370, 121, 547),
    NOT_STATED: counts(2, 1, 0),
})  # fmt: skip


def test_of_two_groups_the_cause_is_named_though_none_can_be_left_out() -> None:
    obstacle = find_obstacle(TWO, QUESTION, eq.Costs())
    assert obstacle is not None
    assert (obstacle.groups, obstacle.rows, obstacle.denied) == (("B",), 14, 7)
    assert obstacle.leave_out == ()
    assert obstacle.cost_without is None
    text = shell.describe(obstacle.problem)
    assert "'B' has too few rows: 14 past rows, 7 of them denied." in text
    assert "If the denied succeed 40% as often as the approved, no number of overrides" in text
    assert "--yes" in text
    with pytest.raises(NotFeasible, match="too few rows"):
        eq.LiveAudit.create("sqlite://", "two", TWO, QUESTION, eq.Costs(label=100))


def test_plan_and_gate_say_the_same() -> None:
    plan = eq.plan(TWO, QUESTION)
    assert plan.obstacle == find_obstacle(TWO, QUESTION, eq.Costs())
    assert plan.obstacle is not None
    assert plan.recommended is None
    usual = next(case for case in plan.cases if case.scenario.ratio == 0.4)
    assert plan.obstacle.rows_needed in usual.missing
    assert f"warning: {plan.obstacle.problem}" in str(plan)
    assert eq.plan(PAST, ADVISED).obstacle is None


def test_the_usual_case_is_enough_to_be_refused() -> None:
    """Two of five cases were freed by leaving the group out, and more than half were asked for."""
    obstacle = find_obstacle(LENDER, QUESTION, eq.Costs())
    assert obstacle is not None
    assert obstacle.groups == obstacle.leave_out == (NOT_STATED,)
    assert obstacle.people_with is None
    assert obstacle.people_without == pytest.approx(2437, rel=0.1)
    assert find_obstacle(LENDER, ADVISED, eq.Costs()) is None


def test_the_fix_keeps_what_is_left_out_already() -> None:
    """A typed --leave-out takes the place of the kept one."""
    past = eq.History.from_cells({**LENDER.cells.to_dict(), "Joint": counts(300, 30, 100)})
    compare = eq.Compare(leave_out=["Joint"])
    obstacle = find_obstacle(past, replace(QUESTION, compare=compare), eq.Costs())
    assert obstacle is not None
    assert obstacle.groups == (NOT_STATED,)
    assert "--leave-out Joint --leave-out 'not stated'" in shell.describe(obstacle.problem)


@pytest.mark.parametrize("groups", quick([3], full=[2, 4]))
def test_of_groups_that_are_alike_none_is_named(groups: int) -> None:
    past = eq.History.from_cells(dict.fromkeys("ABCD"[:groups], counts(60, 20, 20)))
    question = eq.Question("equal_opportunity")
    obstacle = find_obstacle(past, question, eq.Costs())
    assert obstacle is not None
    assert obstacle.groups == ()
    assert obstacle.rows_needed.endswith("past rows like these would do")
    assert obstacle.margin is not None
    wider = replace(question, epsilon=obstacle.margin)
    assert find_obstacle(past, wider, eq.Costs()) is None


def test_many_groups_are_tested_and_only_small_ones_are_named() -> None:
    sizes = quick([10_000, 8_000, 70, 60], full=[40_000, 10_000, 8_000, 5_000, 70, 60, 50])
    cells = {
        f"g{size}": {
            "approved_positive": round(0.60 * size),
            "approved_negative": round(0.07 * size),
            "denied": round(0.33 * size),
        }
        for size in sizes
    }
    obstacle = find_obstacle(eq.History.from_cells(cells), QUESTION, eq.Costs())
    assert obstacle is not None
    assert set(obstacle.groups) == {f"g{size}" for size in sizes if size < 100}
    alike = eq.History.from_cells({f"g{n}": cells["g8000"] for n in range(quick(3, full=6))})
    assert find_obstacle(alike, QUESTION, eq.Costs()) is None


def test_a_reference_is_never_left_out() -> None:
    compare = eq.Compare(against=NOT_STATED)
    question = eq.Question("equal_opportunity", 0.05, 0.1, compare=compare)
    obstacle = find_obstacle(PAST, question, eq.Costs())
    assert obstacle is not None
    assert obstacle.groups == (NOT_STATED,)
    assert obstacle.leave_out == ()


@pytest.mark.parametrize(
    ("groups", "question"),
    [
        (  # a region of 49 people: the audit ends before as many people come as the past has
            {  # good, bad, denied, unknown outcomes of the approved; random accepts
                "North": (9_400, 2_653, 3_246, 1_792, (152, 306, 33)),
                "West": (6_300, 1_650, 2_343, 1_045, (100, 196, 25)),
                "South": (3_500, 905, 1_396, 605, (74, 109, 7)),
                "East": (960, 269, 697, 197, (50, 45, 12)),
                "Coast": (19, 5, 17, 8, (1, 1, 0)),
            },
            eq.Question("equal_opportunity", 0.05, 0.05),
        ),
        (  # more people must come than the past has, and without the group not far fewer
            {
                "White": (983, 110, 514, 0, (17, 9, 0)),
                "Black": (144, 25, 195, 0, (9, 7, 0)),
                "Not available": (193, 23, 101, 0, (2, 1, 0)),
            },
            eq.Question("equal_opportunity"),
        ),
    ],
)
def test_a_group_that_only_takes_longer_is_not_named(
    groups: dict[str, tuple[int, int, int, int, tuple[int, int, int]]], question: eq.Question
) -> None:
    """It may be the one that is treated unfairly, and the plan recommends the audit."""
    cells = {
        group: GroupCells(good, bad, denied, unknown, random_accepts=accepts)
        for group, (good, bad, denied, unknown, accepts) in groups.items()
    }
    past = eq.History(Cells(cells))
    assert find_obstacle(past, question, eq.Costs()) is None


def test_more_groups_than_are_searched_are_tested_all_the_same() -> None:
    few = dict.fromkeys((f"g{n}" for n in range(24)), counts(60, 20, 20))
    obstacle = find_obstacle(eq.History.from_cells(few), QUESTION, eq.Costs())
    assert obstacle is not None
    assert (obstacle.groups, obstacle.margin) == ((), None)
