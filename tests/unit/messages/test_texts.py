"""Every text can be filled in, on every surface, and only the shell writes options."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from equipoise.errors import InvalidInput
from equipoise.history.options import ReadOptions
from equipoise.messages import Fix, Message, OpenChoice, Problem, form, python, shell
from equipoise.messages.texts import TEXTS, format_value, list_values, list_with_counts

LISTS = {"columns", "groups", "others", "sheets", "tables", "known", "examples", "outcomes", "odd"}
COUNTS = {"written", "approved", "denied"}
NUMBERS = {"rows", "extra_rows", "labelled", "different", "tests"}


def message_with(code: str) -> Message:
    """Return a message that has every field of its text, and a fix."""
    fields: dict[str, object] = {}
    for _, name, spec, _ in Formatter().parse(re.sub(r"\[\[|\]\]", "", TEXTS[code])):
        if name is None or name == "fix" or name.startswith("@"):
            continue
        fields[name] = "group" if spec in ("argument", "=COLUMN") else "x"
        if name in LISTS and not (name == "groups" and code in ("too-many-groups", "no-groups")):
            fields[name] = ["a", "b"]
        elif name in COUNTS or (name == "values"):
            fields[name] = {"a": 1}
        elif name in NUMBERS or name == "groups":
            fields[name] = 3
        elif name == "readings":
            fields[name] = {"F": {"f": 2}}
    return Problem(code, fields, (Fix("missing_group", ("not stated",)),))


@pytest.mark.parametrize("code", TEXTS)
def test_every_text_is_filled_in_on_every_surface(code: str) -> None:
    message = message_with(code)
    for describe in (python.describe, shell.describe, form.describe):
        text = describe(message)
        assert text
        assert not re.search(r"[{}]|\[\[|@|None", text)
        has_option = re.search(r"(^|\s)--\w", text) is not None
        assert not has_option or describe is shell.describe
    assert code == code.lower()
    assert "_" not in code


def test_numbers_and_lists_read_as_english() -> None:
    assert format_value(1, "row") == "1 row"
    assert format_value(1200, "denied row") == "1,200 denied rows"
    assert (format_value(1, "has|have"), format_value(2, "has|have")) == ("has", "have")
    assert list_values(["a", "b", "c"], 2) == "'a', 'b', …"
    assert list_with_counts({"a": 1, "b": 1200}) == "'b' (1,200), 'a' (1)"
    assert list_with_counts(dict.fromkeys("abcdefghij", 1)).endswith(" and 2 more")


def test_an_optional_part_is_left_out_with_its_field() -> None:
    fields = {"argument": "positive", "value": "x", "column": None, "nearest": None, "known": []}
    text = "'positive' names 'x', which is not a value. Values found: none."
    assert str(Problem("unknown-value", fields)) == text


def test_a_fix_is_spelled_by_each_surface() -> None:
    fixes = (
        Fix("positive", ("paid in full",), role="outcome"),
        Fix("negative", (OpenChoice(("lost", "late")),), role="outcome"),
        Fix("missing_values", ("Open", "?"), is_list=True),
    )
    problem = Problem("outcome-unexplained", {"column": "status", "written": {}}, fixes)
    assert (
        "positive={'outcome': 'paid in full'}, negative={'outcome': <'lost' | 'late'>}, "
        "missing_values=['Open', '?']."
    ) in python.describe(problem)
    assert (
        "--positive 'outcome=paid in full' --negative 'outcome=<lost | late>' "
        "--missing-value Open --missing-value '?'."
    ) in shell.describe(problem)
    assert (
        "“good” for paid in full; “bad” for lost | late; “no decision” or “not known” for Open; ?."
    ) in form.describe(problem)


def test_values_that_are_left_are_asked_for_once() -> None:
    first = OpenChoice(("3", "4", "5"))
    rest = (OpenChoice(("4", "3", "5")), OpenChoice(("5", "3", "4")))
    fixes = (
        Fix("negative", (first,), role="decision"),
        Fix("missing_values", (*rest, "gone"), role="decision", is_list=True),
    )
    problem = Problem("decision-unexplained", {"column": "action", "written": {}}, fixes)
    assert (
        "--negative 'decision=<3 | 4 | 5>' --missing-value 'decision=<every other one>' "
        "--missing-value decision=gone."
    ) in shell.describe(problem)
    pasted = {"group": "g", "decision": "d", "outcome": "y"}
    with pytest.raises(InvalidInput, match="replace decision=<every other one> by the values"):
        ReadOptions(**pasted, missing_values=["decision=<every other one>"])


def test_a_value_to_be_filled_in_has_its_role() -> None:
    problem = Problem("random-accepts-not-bits", {"column": "state", "value": "CA"})
    assert "--positive random_accepts=VALUE." in shell.describe(problem)
    assert "positive={'random_accepts': VALUE}." in python.describe(problem)
    assert "“Random accepts: the mark is written”." in form.describe(problem)


def test_lists_of_columns_have_their_grammar() -> None:
    fields = {"file": "b.csv", "people": "a.csv", "key": ""}
    one = Problem("files-to-join", {**fields, "columns": ["race"]})
    two = Problem("files-to-join", {**fields, "columns": ["race", "action"]})
    assert "'b.csv' lacks column 'race'." in str(one)
    assert "'b.csv' lacks columns 'race' and 'action'." in str(two)
