"""Messages as the form of past decisions in a browser shows them, by the titles of its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.messages.problem import Message, OpenChoice, ReadingProposal
from equipoise.messages.texts import Placeholder, fill_in

FIELD_TITLES: Mapping[str, str] = {
    "group": "Column of groups",
    "decision": "Column of decisions",
    "outcome": "Column of outcomes",
    "positive_decision": "Decision: approved is written",
    "negative_decision": "Decision: denied is written",
    "positive_outcome": "Outcome: good is written",
    "negative_outcome": "Outcome: bad is written",
    "missing_values": "No decision, or no outcome yet, is written",
    "undecided": "leave out rows without a decision, as when somebody withdrew",
    "unknown": "Approved people whose outcome is not known yet",
    "denied_outcomes": "leave out the outcomes of denied people",
    "missing_group": "People without a group are called",
    "id": "Column that tells people apart",
    "repeated": "count people once whose rows say the same",
    "date": "Column of dates",
    "since": "Only people from this day on",
    "until": "Only people before this day",
    "random_accepts": "Column that marks random accepts (a test cell below the cut-off)",
    "random_accepts_against": "Columns that show whether they were random, such as a score",
    "max_groups": "Most groups that there may be",
    "encoding": "Encoding of a CSV file, if not UTF-8",
    "on": "Column that identifies a person in both tables",
    "latest": "Column of the outcomes whose largest value says which row counts",
    "sheet": "Sheet of an Excel file, if it has several",
    "leave_out": "Groups that are counted and not compared",
    "confirm": "begin all the same",
}
"""Field of the form -> its title."""
VALUE_TITLES: Mapping[str, Mapping[str, str]] = {
    "unknown": {
        "": "refuse them",
        "bounds": "assume nothing of them",
        "like_known": "assume that they are like the known ones of their group",
    }
}
"""Field of a choice -> value -> what the form calls the value."""
TICKS = frozenset({"undecided", "denied_outcomes", "repeated", "confirm"})
"""Fields that are ticked: their title says all."""
FIELD_OF_ARGUMENT: Mapping[str, str] = {"table": "sheet"}  # "table" is the file that is sent
BETWEEN = ";"
"""What stands between several values in a field."""


class FormSpelling:
    """Writes arguments as titles of fields: “Column of dates”."""

    separator = "; "

    def argument(self, argument: str) -> str | None:
        """Return the title of an argument's field."""
        title = FIELD_TITLES.get(FIELD_OF_ARGUMENT.get(argument, argument))
        return None if title is None else f"“{title}”"

    def setting(self, argument: str, value: Any) -> str | None:
        """Return the title of an argument's field and what to write there."""
        if isinstance(value, Mapping):
            parts = (self._field(f"{argument}_{role}", part) for role, part in value.items())
            return self.separator.join(part for part in parts if part is not None)
        return self._field(FIELD_OF_ARGUMENT.get(argument, argument), value)

    def _field(self, name: str, value: Any) -> str | None:
        if name not in FIELD_TITLES:
            return None
        title = f"“{FIELD_TITLES[name]}”"
        if isinstance(value, Placeholder) or name in TICKS:
            return title
        if name in VALUE_TITLES:
            return f"“{VALUE_TITLES[name][value]}”"
        return f"{title}: {field_text(value)}"


FORM = FormSpelling()


@dataclass(frozen=True)
class FieldContent:
    """What stands in a field; ``choice`` is what is left to the person, who must fill it in."""

    value: str = ""
    choice: str = ""


def describe(message: Message) -> str:
    """Return the text of a message for the form."""
    return fill_in(message, FORM)


def describe_unread_table(problems: Sequence[Message]) -> str:
    """Return all problems of a table, one on each line. The form shows the proposal itself."""
    return "\n".join(map(describe, problems))


def field_text(value: Any) -> str:
    """Return one value or several as a field shows them; an open choice as ``x | y``."""
    parts = value if isinstance(value, list | tuple) else [value]
    texts = (
        " | ".join(part.choices) if isinstance(part, OpenChoice) else str(part) for part in parts
    )
    return f"{BETWEEN} ".join(texts)


def filled_fields(proposal: ReadingProposal) -> dict[str, FieldContent]:
    """Return what a proposal writes into the fields of the form, by field."""
    values_by_field: dict[str, Any] = {}
    for argument, value in proposal.arguments.items():
        if isinstance(value, Mapping):  # by role, as positive={"decision": ...}: a field for each
            for role, role_value in value.items():
                values_by_field[f"{argument}_{role}"] = role_value
        else:
            values_by_field[FIELD_OF_ARGUMENT.get(argument, argument)] = value
    return {name: _content_of(value) for name, value in values_by_field.items()}


def _content_of(value: Any) -> FieldContent:
    """Return what stands in a field with this value, or what its choice is among."""
    text = field_text(value)
    parts = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(part, OpenChoice) for part in parts):
        # "x | y ; z": with a blank before it, the semicolon is not read as a part of y.
        return FieldContent(choice=text.replace(BETWEEN, f" {BETWEEN}"))
    return FieldContent(text)
