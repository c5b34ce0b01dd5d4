"""A group that would keep an audit from ending is named before the audit begins."""

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


@pytest.mark.parametrize("groups", quick([3], full=[2, 4]))
def test_groups_that_are_alike_keep_nothing_open(groups: int) -> None:
    """Small pasts are refused nowhere if no group stands out: leaving one out would not help."""
    counts = {"approved_positive": 60, "approved_negative": 20, "denied": 20}
    past = eq.History.from_cells(dict.fromkeys("ABCD"[:groups], counts))
    assert find_obstacle(past, QUESTION, eq.Costs()) is None


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
    assert obstacle is None or NOT_STATED not in obstacle.groups


def test_a_group_that_only_takes_longer_is_not_named() -> None:
    """It may be the one that is treated unfairly; a group that hardly arrives is named alone."""
    counts = {  # good, bad, unknown outcomes of the approved; denied; random accepts
        "North": (9_400, 2_653, 1_792, 3_246, (152, 306, 33)),
        "West": (6_300, 1_650, 1_045, 2_343, (100, 196, 25)),
        "South": (3_500, 905, 605, 1_396, (74, 109, 7)),
        "East": (960, 269, 197, 697, (50, 45, 12)),
        "Coast": (19, 5, 8, 17, (1, 1, 0)),
    }
    cells = {
        group: GroupCells(good, bad, denied, unknown, random_accepts=accepts)
        for group, (good, bad, unknown, denied, accepts) in counts.items()
    }
    past = eq.History(Cells(cells))
    question = eq.Question("equal_opportunity", 0.05, 0.05)
    obstacle = find_obstacle(past, question, eq.Costs())
    assert obstacle is not None
    assert obstacle.groups == ("Coast",)
    assert "the verdict says nothing about them" in str(obstacle.problem)
    compare = eq.Compare(leave_out=["Coast"])
    advised = replace(question, compare=compare)
    assert find_obstacle(past, advised, eq.Costs()) is None
