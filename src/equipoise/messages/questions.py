"""Problems of a table as questions to a person at a terminal, in plain words, with answers.

Every answer stands for fixes. A problem that is not listed here has no answer that a person could
choose: an earlier answer has to be changed, or the table itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.messages.form import FORM
from equipoise.messages.problem import Fix, Problem
from equipoise.messages.texts import fill_in

PROBLEM_QUESTIONS: Mapping[str, str] = {
    "people-repeated": "Column {column}: people are there more than once ({extra_rows:row} too "
    "many), and each row would count. What is to be done?",
    "too-many-groups": "Column {column} has {groups} different values, such as {examples:3}. What "
    "are they?",
    "group-missing": "Column {column} names no group in {rows:row}. What are these people called?",
    "decision-missing": "Column {column} has no decision in {rows:row}. What is to be done?",
    "decision-reversed": "Outcomes are known mostly where column {column} is {values}, which was "
    "read as denied. What does it mean?",
    "outcome-without-decision": "Column {decision_column} has no decision in {rows:row}, but "
    "{labelled:plain} of them {labelled:has|have} an outcome in column {outcome_column} "
    "({outcomes}). What do these values mean?",
    "named-after-failure": "Column {column} is named after a bad outcome; found {written}. Which "
    "value is the good one?",
    "outcome-unknown": "Column {column} has no outcome in {rows:row} of approved people "
    "({by_group:plain}). Leaving these people out would bias the answer. What is assumed about "
    "their outcomes?",
    "denied-with-outcome": "{rows:denied row} {rows:has|have} an outcome in column {column} "
    "({outcomes:3}). What is to be done?",
    "denied-with-outcome-marked": "{rows:denied row} {rows:has|have} an outcome in column {column} "
    "({outcomes:3}), where column {mark_column} is {mark}. How were these people chosen?",
}
"""Code of a problem -> the question that it is."""
IGNORED = Fix("denied_outcomes", ("ignore",))
REMEDIES: Mapping[str, Mapping[str, tuple[Fix, ...]]] = {
    "people-repeated": {"count people once whose rows say the same": ()},
    "too-many-groups": {"they are groups": ()},
    "decision-missing": {"nobody decided about these people: leave them out": ()},
    "decision-reversed": {"these people were approved": ()},
    "outcome-without-decision": {"that there is no outcome": ()},
    "outcome-unknown": {
        "nothing": (),
        "they are like the known ones of their group": (Fix("unknown", ("like_known",)),),
    },
    "denied-with-outcome": {"leave the outcomes of denied people out": ()},
    "denied-with-outcome-marked": {
        "by lot, by a test programme: their outcomes count": (),
        "by judgement: leave their outcomes out": (IGNORED,),
    },
}
"""Code of a problem -> its answers, each with fixes; no fixes are those of the problem."""
OWN_GROUP = "not stated"
BITS = ("0", "1")


@dataclass(frozen=True)
class ProblemQuestion:
    """A problem as a question.

    Attributes
    ----------
    text
        The question, as it is shown.
    remedies
        Answer -> the fixes that it stands for.
    proposal
        The answer that is proposed; empty if only a person can know.
    """

    text: str
    remedies: Mapping[str, tuple[Fix, ...]]
    proposal: str = ""


def ask_about(problem: Problem) -> ProblemQuestion | None:
    """Return the question that a problem is; None if no answer would solve it.

    Examples
    --------
    >>> fix = Fix("undecided", ("leave_out",))
    >>> problem = Problem("decision-missing", {"column": "d", "rows": 3}, (fix,))
    >>> question = ask_about(problem)
    >>> print(question.text)
    Column 'd' has no decision in 3 rows. What is to be done?
    >>> list(question.remedies)
    ['nobody decided about these people: leave them out']
    """
    if not problem.fixes or problem.code not in PROBLEM_QUESTIONS:
        return None
    text = fill_in(problem, FORM, PROBLEM_QUESTIONS)
    if problem.code == "group-missing":
        names = _names_of_missing_group(str(problem.fixes[0].argument_value))
        return ProblemQuestion(text, names, proposal=next(iter(names)))
    if problem.code == "named-after-failure":
        return ProblemQuestion(text, {f"{bit} is good": (_good_value(bit),) for bit in BITS})
    remedies = {answer: fixes or problem.fixes for answer, fixes in REMEDIES[problem.code].items()}
    # How people were chosen, and what is assumed of them, only a person can know.
    return ProblemQuestion(text, remedies, next(iter(remedies)) if len(remedies) == 1 else "")


def _names_of_missing_group(proposed: str) -> dict[str, tuple[Fix, ...]]:
    """Return what people without a group may be called: as others, or a group of their own."""
    own: dict[str, tuple[Fix, ...]] = {}
    own[f"{OWN_GROUP}, a group of their own"] = (Fix("missing_group", (OWN_GROUP,)),)
    if proposed == OWN_GROUP:
        return own
    return {f"{proposed}, like others": (Fix("missing_group", (proposed,)),), **own}


def _good_value(bit: str) -> Fix:
    return Fix("positive", (bit,), role="outcome")
