"""Problems as questions at a terminal: plain words, and answers that stand for fixes."""

from __future__ import annotations

import re

import pytest

from equipoise.messages import Fix, Problem
from equipoise.messages.questions import PROBLEM_QUESTIONS, ask_about
from tests.unit.messages.test_texts import message_with


@pytest.mark.parametrize("code", PROBLEM_QUESTIONS)
def test_a_question_needs_no_option_and_no_argument(code: str) -> None:
    problem = message_with(code)
    assert isinstance(problem, Problem)
    question = ask_about(problem)
    assert question is not None
    assert question.remedies
    assert question.proposal in ("", *question.remedies)
    shown = " ".join([question.text, *question.remedies])
    assert not re.search(r"[{}=]|\[\[|@|None|--|_", shown)


def test_a_problem_without_a_remedy_is_no_question() -> None:
    fields = {"column": "who", "rows": 3}
    assert ask_about(Problem("person-id-missing", fields)) is None
    assert ask_about(Problem("decision-missing", fields)) is None
    fixed = Problem("decision-missing", fields, (Fix("undecided", ("leave_out",)),))
    assert ask_about(fixed) is not None


def test_how_people_were_chosen_is_not_proposed() -> None:
    fields = {"column": "y", "rows": 3, "outcomes": ["1"], "mark_column": "pilot", "mark": "Y"}
    fix = Fix("random_accepts", ("pilot",))
    question = ask_about(Problem("denied-with-outcome-marked", fields, (fix,)))
    assert question is not None
    assert question.proposal == ""
    by_lot, by_judgement = question.remedies.values()
    assert by_lot == (fix,)
    assert by_judgement == (Fix("denied_outcomes", ("ignore",)),)


def test_people_without_a_group_may_be_counted_with_others_or_apart() -> None:
    fix = Fix("missing_group", ("Race Not Available",))
    question = ask_about(Problem("group-missing", {"column": "race", "rows": 2}, (fix,)))
    assert question is not None
    assert [fixes[0].argument_value for fixes in question.remedies.values()] == [
        "Race Not Available",
        "not stated",
    ]
    assert question.proposal.startswith("Race Not Available")
