"""Problems, notes and proposals as values: plain data and back, and what is open in them."""

from __future__ import annotations

import json

from equipoise.messages import Fix, Note, OpenChoice, Problem, ReadingProposal

CHOICE = OpenChoice(("paid", "late"))


def test_a_problem_survives_json() -> None:
    fixes = (Fix("positive", (CHOICE,), role="outcome"), Fix("missing_values", ("Open",), "", True))
    fields = {"column": "status", "written": {"paid": 3, "late": 1}}
    problem = Problem("outcome-unexplained", fields, fixes)
    assert Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
    assert str(Note.plain("50% {of} [[it]]")) == "50% {of} [[it]]"


def test_a_proposal_survives_json_and_knows_what_is_open() -> None:
    arguments = {"group": "race", "positive": {"outcome": CHOICE}, "missing_values": ["Open"]}
    proposal = ReadingProposal(arguments, ("loans.csv",), "list", reads_table=True)
    assert proposal.has_open_choices
    assert ReadingProposal.from_dict(json.loads(json.dumps(proposal.to_dict()))) == proposal
    assert not ReadingProposal({"group": "race", "missing_values": ["Open"]}).has_open_choices


def test_a_fix_is_an_argument_of_reading() -> None:
    assert Fix("unknown", ("bounds",)).argument_value == "bounds"
    assert Fix("missing_values", ("Open",), is_list=True).argument_value == ["Open"]
    assert Fix("negative", ("a", "b"), role="decision").argument_value == {"decision": ["a", "b"]}
    assert str(CHOICE) == "paid"  # the first choice is the one that is tried
