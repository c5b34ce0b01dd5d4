"""Messages as the form of past decisions in a browser shows them, by the titles of its fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.messages import refusals
from equipoise.messages.problem import Message, OpenChoice, ReadingProposal
from equipoise.messages.refusals import Refusal
from equipoise.messages.texts import Placeholder, fill_in

FIELD_TITLES: Mapping[str, str] = {
    "preset": "Layout",
    "group": "Column of groups",
    "group_2": "Second column of groups, for their intersections",
    "within": "Compare only within each value of this column (strata)",
    "decision": "Column of decisions",
    "outcome": "Column of outcomes",
    "decider": "Column that names who decided",
    "min_cases": "Count deciders of fewer cases together",
    "cohort": "Column within which unknown outcomes are like known ones",
    "positive_decision": "approved",
    "negative_decision": "denied",
    "positive_outcome": "good",
    "negative_outcome": "bad",
    "missing_values": "no decision” or “not known",
    "missing_values_decision": "no decision",
    "missing_values_outcome": "not known",
    "undecided": "no decision",
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
    "positive_random_accepts": "Random accepts: the mark is written",
    "max_groups": "Most groups that there may be",
    "encoding": "Encoding of a CSV file, if not UTF-8",
    "on": "Column that identifies a person in both tables",
    "on_outcomes": "The same in the table of outcomes",
    "latest": "Column of the outcomes whose largest value says which row counts",
    "sheet": "Sheet of an Excel file, if it has several",
    "leave_out": "Groups that are counted and not compared",
    "confirm": "begin all the same",
}
"""Field of the form -> its title. The meanings of values have the title of what is clicked."""
MEANING_FIELDS = frozenset(
    {
        "positive_decision",
        "negative_decision",
        "positive_outcome",
        "negative_outcome",
        "missing_values",
        "missing_values_decision",
        "missing_values_outcome",
    }
)
"""Fields that say which values have a meaning: it is clicked beside each value."""
VALUE_TITLES: Mapping[str, Mapping[str, str]] = {
    "unknown": {
        "": "refuse them",
        "bounds": "assume nothing of them",
        "like_known": "assume that they are like the known ones of their group",
    }
}
"""Field of a choice -> value -> what the form calls the value."""
QUESTION_TITLES: Mapping[str, str] = {
    "metric": "Metric",
    "also": "And a second metric: the larger gap counts",
    "tolerance": "Tolerance",
    "margin": "Margin",
    "error": "Error probability",
    "error_fair": "Error probability of FAIR",
    "error_unfair": "Error probability of UNFAIR",
    "compare": "Compare by",
    "against": "Reference group",
    "direction": "Direction",
    "all_rates": "show every rate and every metric",
    "no_better": "denied people would do no better than the approved ones of their group",
    "limits": "Limits on the share of denied people who would do well, one per line",
    "deciders": "cases fall to deciders as if at random",
    "feature": "Each request",
    "label": "Each override that ends badly",
    "arrivals_per_day": "People who arrive in a day",
    "outcome_after": "Days until an outcome is known",
}
"""Field of the question, its assumptions and its prices -> its title."""
DIRECTION_TITLES: Mapping[str, str] = {
    "both": "below or above the reference group",
    "below": "below the reference group",
    "above": "above the reference group",
}
"""Direction -> which rates of other groups count."""
COMPARE_TITLES: Mapping[str, str] = {
    "difference": "the difference of rates, in points",
    "ratio": "the ratio of rates (a tolerance of 20% is the four-fifths rule)",
}
"""Way to compare -> what the form calls it."""
TICKS = frozenset({"undecided", "denied_outcomes", "repeated", "confirm"})
"""Fields that are ticked: their title says all."""
FIELD_OF_ARGUMENT: Mapping[str, str] = {"table": "sheet"}  # "table" is the file that is sent
BETWEEN = ";"
"""What stands between several values in a field."""


NAIVE_ANSWERS: Mapping[str, tuple[str, str]] = {
    "approved_only": (
        "Approved people only",
        "Leaves out {denied} denied people, some of whom may have turned out well.",
    ),
    "denied_as_failures": (
        "Every denial counted as a failure",
        "Assumes that no denied person would have turned out well.",
    ),
}
"""Naive answer of a check -> what it is called, and why it is no answer."""
COMMAND_TITLES: Mapping[str, str] = {
    "correct": "“Correct an outcome” under “Enter data”",
    "upgrade": "the command “upgrade”, on the command line or over HTTP",
}
"""Command that a refusal suggests -> where somebody in a browser finds it."""
GROUP_CHOICES: Mapping[str, str] = {
    "compare": "compare",
    "leave_out": "count, do not compare",
    "join:": "count as",
}
"""What may become of a group -> what the form calls it; after the last one stands a group."""


class FormSpelling:
    """Writes arguments as titles of fields: “Column of dates”."""

    separator = "; "

    def argument(self, argument: str) -> str | None:
        """Return the title of an argument's field."""
        title = FIELD_TITLES.get(FIELD_OF_ARGUMENT.get(argument, argument))
        return None if title is None else f"“{title}”"

    def setting(self, argument: str, value: Any) -> str | None:
        """Return the title of an argument's field and what to write there."""
        if argument == "merge_groups" and isinstance(value, Mapping):
            choices = []
            for name, values in value.items():
                # A group that has the new name already need not join itself.
                joined = [part for part in values if part != name]
                choices.append(f"“{GROUP_CHOICES['join:']} {name}” for {field_text(joined)}")
            return self.separator.join(choices)
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
        if name in MEANING_FIELDS:
            return f"{title} for {field_text(value)}"
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


def describe_refusal(refusal: Refusal) -> str:
    """Return why an audit refuses a command, with the form of the page that helps."""
    fix = refusal.fix
    return refusals.fill_in(refusal, "" if fix is None else COMMAND_TITLES[fix.method])


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
