"""A form that fills itself in from a proposal."""

from __future__ import annotations

from equipoise.messages import Fix, OpenChoice, Problem, ReadingProposal, form
from equipoise.messages.form import FieldContent, filled_fields


def test_a_proposal_fills_in_the_fields() -> None:
    choice = OpenChoice(("x", "y"))
    arguments = {
        "group": "race",
        "positive": {"decision": "Approved", "outcome": choice},
        "missing_values": ["Withdrawn", "Open"],
        "max_groups": 60,
        "table": "beds",
    }
    assert filled_fields(ReadingProposal(arguments)) == {
        "group": FieldContent("race"),
        "positive_decision": FieldContent("Approved"),
        "positive_outcome": FieldContent(choice="x | y"),
        "missing_values": FieldContent("Withdrawn; Open"),
        "max_groups": FieldContent("60"),
        "sheet": FieldContent("beds"),
    }
    mixed = ReadingProposal({"missing_values": [choice, "Open"]})
    assert filled_fields(mixed)["missing_values"] == FieldContent(choice="x | y ; Open")


def test_ticks_and_choices_are_called_by_their_titles() -> None:
    once = Problem(
        "people-repeated", {"column": "id", "extra_rows": 2}, (Fix("repeated", ("count_once",)),)
    )
    assert "count them once: “count people once whose rows say the same”." in form.describe(once)
    unknown = Problem(
        "outcome-unknown",
        {"column": "paid", "rows": 1, "by_group": "a: 1 of 2"},
        (Fix("unknown", ("bounds",)),),
    )
    assert "Assume nothing about them: “assume nothing of them”." in form.describe(unknown)
