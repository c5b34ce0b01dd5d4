"""What a form about a table stands for, without a server."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from equipoise.errors import InvalidInput
from equipoise.history import History
from equipoise.history.guided_reading import ColumnProfile
from equipoise.service.forms import Form
from equipoise.service.reading_form import ReadingForm

TABLE = {
    "race": ["a", "A ", "b", "b", "c"] * 30,
    "approved": [1, 0, 1, 1, 1] * 30,
    "repaid": [1, None, 0, 1, 1] * 30,
}
PROFILES = (
    ColumnProfile("table", "race", {"b": 60, "a": 30, "A ": 30, "c": 30}),
    ColumnProfile("table", "approved", {"1": 120, "0": 30}),
    ColumnProfile("table", "repaid", {"1.0": 90, "0.0": 30, "": 30}),
)


def form_of(**fields: str) -> ReadingForm:
    return ReadingForm.from_form(Form(list(fields.items())))


def test_proposals_read_a_plain_table_as_python_does() -> None:
    options = form_of().with_columns(PROFILES).read_options()
    plain = History.read(TABLE, group="race", decision="approved", outcome="repaid")
    guided = History.read(TABLE, **options)
    assert guided.cells == plain.cells
    assert guided.coding == plain.coding


def test_spellings_of_a_group_are_one_and_groups_can_be_counted_as_another() -> None:
    reading = form_of().with_columns(PROFILES)
    assert [(choice.value, choice.rows) for choice in reading.group_values()] == [
        ("b", 60),
        ("A", 60),
        ("c", 30),
    ]
    fields = [("group", "race"), ("group_column", "race"), ("decision", "approved")]
    fields += [("outcome", "repaid")]
    for number, (value, choice) in enumerate(
        (("b", "compare"), ("A", "leave_out"), ("c", "join:b"))
    ):
        fields += [("group_value", value), (f"group_meaning_{number}", choice)]
    fields.append(("profile", json.dumps([profile.to_dict() for profile in PROFILES])))
    reading = ReadingForm.from_form(Form(fields))
    assert reading.left_out == ["A"]
    history = History.read(TABLE, **reading.read_options())
    assert history.cells.groups == ("A", "b")
    assert history.cells["b"].total == 90


def test_a_column_called_after_what_went_wrong_is_left_to_a_person() -> None:
    profiles = (*PROFILES[:2], ColumnProfile("table", "defaulted", {"1": 30, "0": 90, "": 30}))
    choices = form_of().with_columns(profiles).value_choices("outcome")
    assert [(choice.value, choice.chosen) for choice in choices] == [
        ("0", ""),
        ("1", ""),
        ("", "not known"),
    ]


CODED = {
    "team": ["N", "N", "S", "S", "N", "S", "S"] * 12,
    "status": ["1", "1", "1", "1", "3", "3", "2"] * 12,
    "result": ["1", "2", "1", "2", "", "", ""] * 12,
}
MEANINGS = {
    "status": {"1": "approved", "3": "denied", "2": "no decision"},
    "result": {"1": "good", "2": "bad"},
}


def test_a_code_without_a_decision_may_be_a_bad_outcome() -> None:
    profiles = tuple(
        ColumnProfile("table", column, dict(Counter(values))) for column, values in CODED.items()
    )
    fields = [("group", "team"), ("decision", "status"), ("outcome", "result")]
    for role, column in (("decision", "status"), ("outcome", "result")):
        fields.append((f"{role}_column", column))
        for number, (value, meaning) in enumerate(MEANINGS[column].items()):
            fields += [(f"{role}_value", value), (f"{role}_meaning_{number}", meaning)]
    fields.append(("profile", json.dumps([profile.to_dict() for profile in profiles])))
    options = ReadingForm.from_form(Form(fields)).read_options()
    assert options["missing_values"] == {"decision": ["2"]}
    # A program that sends fields without the steps of the page says the same in two ways.
    sent = {"positive_decision": "1", "negative_decision": "3", "undecided": "leave_out"}
    sent |= {"positive_outcome": "1", "negative_outcome": "2", "group": "team"}
    sent |= {"decision": "status", "outcome": "result"}
    for missing in ({"missing_values": "2"}, {"missing_values_decision": "2"}):
        options_of_fields = form_of(**sent, **missing).read_options()
        for said in (options, options_of_fields):
            summary = History.read(CODED, **said).summary
            assert summary is not None
            assert summary.outcome["0"] == {"2": 24}


def test_answers_about_another_column_are_forgotten() -> None:
    fields = {"decision": "approved", "decision_column": "repaid", "decision_value": "1"}
    assert form_of(**fields, decision_meaning_0="denied").meanings == {}


@pytest.mark.parametrize(
    "profile", ["{", "[1]", '[{"file": "/etc", "column": "x", "values": {}}]', "[" * 9999, "null"]
)
def test_columns_that_no_server_sent_are_refused(profile: str) -> None:
    with pytest.raises(InvalidInput, match="choose a table"):
        form_of(profile=profile)


def test_a_preset_is_one_of_the_list() -> None:
    with pytest.raises(InvalidInput, match="layout"):
        form_of(preset="/etc/passwd.toml").read_options()
