"""The form that says what the columns and values of an uploaded table mean.

The table stays in the browser, and every step that needs its rows sends it again. Between the steps
only what was counted of its columns travels with the form, so the server keeps nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.history.guided_reading import (
    MEANING_WORDS,
    ColumnProfile,
    arguments_of,
    ask_for_columns,
    ask_for_values,
)
from equipoise.history.meanings import bit_of_yes
from equipoise.history.options import EVERY_ROLE, ROLES, Role
from equipoise.history.presets import load_preset, preset_names
from equipoise.history.values import STANDARD_BITS, choose_labels, is_missing, key_of, tally
from equipoise.messages import OpenChoice, ReadingProposal
from equipoise.messages.form import BETWEEN, FIELD_TITLES, FieldContent, filled_fields
from equipoise.service.forms import Form
from equipoise.service.table_reader import MAX_COLUMNS, OUTCOMES, TABLE

MAIN_COLUMNS = ("group", "decision", "outcome")
MEANING_FIELDS = (
    ("positive", "decision"),
    ("negative", "decision"),
    ("positive", "outcome"),
    ("negative", "outcome"),
    ("positive", "random_accepts"),
    ("missing_values", "decision"),
    ("missing_values", "outcome"),
)
"""Argument of ``History.read`` and role, whose field is called ``positive_decision`` and so on."""
TEXT_FIELDS = ("decision", "outcome", "id", "random_accepts", "missing_group", "unknown",
               "undecided", "repeated", "denied_outcomes", "encoding", "date", "since", "until",
               "latest", "decider", "cohort", "within")  # fmt: skip
COLUMN_FIELDS = ("group", "group_2", "within", "decision", "outcome", "on", "on_outcomes", "id",
                 "date", "latest", "decider", "cohort", "random_accepts")  # fmt: skip
OUTCOMES_FIELDS = ("outcome", "on_outcomes", "latest")  # whose columns are in the second table
LIST_FIELDS = ("random_accepts_against",)
NUMBER_FIELDS = ("max_groups", "min_cases")
MAX_NUMBER_DIGITS = 9
NOT_STATED = "not stated"  # what people without a group are called unless somebody says otherwise
# What may be chosen for a group; after the last one stands the group that it joins.
COMPARE = "compare"
LEAVE_OUT = "leave_out"
JOIN = "join:"


@dataclass(frozen=True)
class ValueChoice:
    """A value of a column, how many rows have it, what it may mean, and what is chosen."""

    value: str
    rows: int
    choices: tuple[str, ...]
    chosen: str


@dataclass(frozen=True)
class ReadingForm:
    """What a form says about a table.

    Attributes
    ----------
    fields
        Field -> what stands in it.
    profiles
        The columns with their values; empty before the table was read.
    meanings
        Role and value -> what was chosen for the value.
    group_choices
        Value of the group column -> what was chosen for it.
    """

    fields: Mapping[str, FieldContent]
    profiles: tuple[ColumnProfile, ...] = ()
    meanings: Mapping[tuple[str, str], str] | None = None
    group_choices: Mapping[str, str] | None = None

    # -- from and to forms -------------------------------------------------------------------------

    @classmethod
    def from_form(cls, form: Form) -> ReadingForm:
        """Return what a form says; what it lacks is empty."""
        fields = {name: FieldContent(form.text(name)) for name in FIELD_TITLES}
        meanings = {}
        for role in MEANING_WORDS:
            for value, meaning in _numbered_choices(form, role):
                meanings[role, value] = meaning
        group_choices = dict(_numbered_choices(form, "group"))
        return cls(fields, _read_profiles(form.text("profile")), meanings, group_choices)

    @property
    def profile_json(self) -> str:
        """The columns as they travel with the form."""
        return json.dumps([profile.to_dict() for profile in self.profiles])

    def text(self, name: str) -> str:
        """Return what stands in a field."""
        return self.fields[name].value

    # -- proposals ---------------------------------------------------------------------------------

    def with_columns(self, profiles: Sequence[ColumnProfile]) -> ReadingForm:
        """Return the form of a table whose columns are known now, with a proposal for each role.

        A preset goes before other proposals, and what somebody typed before both.
        """
        form = replace(self, profiles=tuple(profiles))
        preset = form.preset
        proposed = {"unknown": "bounds", "missing_group": NOT_STATED}
        for question in ask_for_columns(form.profiles):
            proposed[question.role] = question.proposal
        proposed |= {name: value for name, value in preset.items() if isinstance(value, str)}
        proposed.setdefault("on_outcomes", proposed.get("on", ""))
        fields = dict(self.fields)
        for name, value in proposed.items():
            if name in fields and not fields[name].value:
                fields[name] = FieldContent(value)
        for name in COLUMN_FIELDS:
            # Of a preset, or of another table that was chosen before.
            if fields[name].value not in form.columns_for(name):
                fields[name] = FieldContent()
        return replace(form, fields=fields)

    def with_proposal(self, proposal: ReadingProposal | None) -> ReadingForm:
        """Return the form with what would make the table readable."""
        if proposal is None:
            return self
        fields = dict(self.fields)
        for name, content in filled_fields(proposal).items():
            if name in fields:
                fields[name] = content
        meanings = dict(self.meanings or {})
        for role in MEANING_WORDS:
            for value, meaning in _explained_values(proposal.arguments, role).items():
                # Spellings that are read as one value have one key, and one meaning.
                for answered_role, answered_value in list(meanings):
                    if answered_role == role and key_of(answered_value) == value:
                        meanings[role, answered_value] = meaning
                meanings.setdefault((role, value), meaning)
        return replace(self, fields=fields, meanings=meanings)

    @property
    def preset(self) -> dict[str, Any]:
        """The arguments of the chosen preset; nothing if none is chosen."""
        name = self.text("preset")
        if name and name not in preset_names():  # a path of the server is not for callers
            raise InvalidInput(f"the layout {name!r} is not known; choose one of the list")
        return load_preset(name or None)

    # -- columns and values ------------------------------------------------------------------------

    def columns(self, file: str = TABLE) -> list[str]:
        """Return the columns of a file; those of the outcomes are the table's if it is alone."""
        if file == OUTCOMES and not self.has_outcomes_file:
            file = TABLE
        return [profile.column for profile in self.profiles if profile.file == file]

    def columns_for(self, field: str) -> list[str]:
        """Return the columns that a field of the form offers."""
        return self.columns(OUTCOMES if field in OUTCOMES_FIELDS else TABLE)

    @property
    def has_outcomes_file(self) -> bool:
        """Whether there is a second table, of outcomes."""
        return any(profile.file == OUTCOMES for profile in self.profiles)

    @property
    def rows(self) -> int:
        """How many rows the table has, as far as a column with few values shows it; else 0."""
        sums = [sum(p.values.values()) for p in self.profiles if p.file == TABLE and p.values]
        return max(sums, default=0)

    def _profile_of(self, role: str) -> ColumnProfile | None:
        file = OUTCOMES if role == "outcome" and self.has_outcomes_file else TABLE
        for profile in self.profiles:
            if profile.file == file and profile.column == self.text(role):
                return profile
        return None

    def value_choices(self, role: Role) -> list[ValueChoice]:
        """Return the values of a decision or an outcome, frequent ones first, blanks last."""
        profile = self._profile_of(role)
        if profile is None:
            return []
        positive, negative, nothing = MEANING_WORDS[role]
        proposals = {
            key_of(question.value): question.proposal
            for question in ask_for_values(role, profile.column, [profile])
        }
        explained = _explained_values(self.preset, role)
        # A column called "default" may have 1 for bad: then only a person can know.
        is_about_failure = bit_of_yes(role, profile.column) == 0
        choices = []
        for value, rows in _distinct_values(profile):
            standard = ""
            if not is_about_failure:
                standard = {1: positive, 0: negative}.get(STANDARD_BITS.get(key_of(value), -1), "")
            proposal = explained.get(key_of(value)) or proposals.get(key_of(value), standard)
            chosen = self._answer(role, value) or proposal
            choices.append(ValueChoice(value, rows, MEANING_WORDS[role], chosen))
        blanks = _count_blanks(profile)
        if blanks:
            choices.append(ValueChoice("", blanks, (nothing,), nothing))
        return choices

    def _answer(self, role: str, value: str) -> str:
        meanings = self.meanings or {}
        return meanings.get((role, value)) or meanings.get((role, key_of(value)), "")

    def group_values(self) -> list[ValueChoice]:
        """Return the values of the group column, with what may become of each group."""
        profile = self._profile_of("group")
        if profile is None:
            return []
        present = _distinct_values(profile)
        chosen = self.group_choices or {}
        choices = []
        for value, rows in present:
            # A group may be counted as any group but itself.
            joins = tuple(f"{JOIN}{group}" for group, _ in present if group != value)
            answer = chosen.get(value, COMPARE)
            choices.append(ValueChoice(value, rows, (COMPARE, LEAVE_OUT, *joins), answer))
        return choices

    @property
    def rows_without_group(self) -> int:
        """How many rows have no value in the group column."""
        profile = self._profile_of("group")
        return 0 if profile is None else _count_blanks(profile)

    # -- what is read ------------------------------------------------------------------------------

    @property
    def merges(self) -> dict[str, list[str]]:
        """Group -> the groups that join it."""
        merges: dict[str, list[str]] = {}
        for value, choice in (self.group_choices or {}).items():
            if choice.startswith(JOIN):
                merges.setdefault(choice.removeprefix(JOIN), []).append(value)
        return merges

    @property
    def left_out(self) -> list[str]:
        """The groups that are counted and not compared."""
        choices = (self.group_choices or {}).items()
        return [value for value, choice in choices if choice == LEAVE_OUT]

    def read_options(self) -> dict[str, Any]:
        """Return the arguments of ``History.read`` that the form stands for."""
        options: dict[str, Any] = {name: self.text(name) for name in TEXT_FIELDS if self.text(name)}
        options.update(self._listed_options())
        if self.text("sheet"):
            options["table"] = self.text("sheet")  # the form's own field "table" is the file
        options["group"] = [name for name in (self.text("group"), self.text("group_2")) if name]
        if self.text("on"):
            options["on"] = self._join_key()
        if self.merges:
            options["merge_groups"] = self.merges
        # With columns the preset has filled in the form already, and the form has the last word.
        if self.profiles:
            self._add_answers(options)
        elif self.text("preset"):
            options["preset"] = self.text("preset")
            self.preset  # noqa: B018  # refuses a name that is none
        return options

    def _listed_options(self) -> dict[str, Any]:
        """Return the arguments that are numbers, or several values in one field."""
        options: dict[str, Any] = {name: split_values(self.text(name)) for name in LIST_FIELDS}
        for name in NUMBER_FIELDS:
            # Cut, because a browser may send any number of digits.
            digits = self.text(name)[:MAX_NUMBER_DIGITS]
            if digits.isdecimal():
                options[name] = int(digits)
        missing_in_both = split_values(self.text("missing_values"))
        if missing_in_both:
            options["missing_values"] = {EVERY_ROLE: missing_in_both}
        for argument, role in MEANING_FIELDS:
            values = split_values(self.text(f"{argument}_{role}"))
            if values:
                options.setdefault(argument, {})[role] = values
        return options

    def _join_key(self) -> str:
        """Return the column that identifies people, or both if the tables name it differently."""
        key = self.text("on")
        outcomes_key = self.text("on_outcomes")
        return key if outcomes_key in ("", key) else f"{key}={outcomes_key}"

    def _add_answers(self, options: dict[str, Any]) -> None:
        """Add what was chosen for values; fields that say nothing about this table are left out."""
        answers: dict[tuple[str, str], str] = {}
        for role in ROLES:
            choices = [choice for choice in self.value_choices(role) if choice.chosen]
            answers.update({(role, choice.value): choice.chosen for choice in choices})
        # A blank is missing by itself. Of blank decisions the form says what becomes of them, too.
        blank_decision = answers.pop(("decision", ""), "")
        answers.pop(("outcome", ""), "")
        explained = arguments_of(answers)
        if blank_decision:
            explained["undecided"] = "leave_out"
        if self.text("unknown"):
            explained["unknown"] = self.text("unknown")
        options.update(explained)
        if not self.has_outcomes_file:
            options.pop("on", None)
            options.pop("latest", None)
        if not self.rows_without_group and len(options["group"]) == 1:
            options.pop("missing_group", None)
        if not options.get("date"):
            options.pop("since", None)
            options.pop("until", None)


def split_values(text: str) -> list[str]:
    """Return the values of a field that may hold several."""
    parts = [part.strip() for part in text.split(BETWEEN)]
    return [part for part in parts if part]


def _distinct_values(profile: ColumnProfile) -> list[tuple[str, int]]:
    """Return the values of a column with their rows, frequent ones first, blanks left out.

    Spellings that are read as one value, such as ``White`` and ``white``, are one.
    """
    present = {value: rows for value, rows in profile.values.items() if not is_missing(value)}
    rows_by_key = tally((key_of(value), rows) for value, rows in present.items())
    labels = choose_labels(present)  # as groups are called once the table is read
    labelled_rows = [(labels[key], rows) for key, rows in rows_by_key.items()]
    return sorted(labelled_rows, key=lambda label_and_rows: -label_and_rows[1])


def _count_blanks(profile: ColumnProfile) -> int:
    return sum(rows for value, rows in profile.values.items() if is_missing(value))


def _numbered_choices(form: Form, role: str) -> list[tuple[str, str]]:
    """Return the values of a role that a form lists, each with what was chosen for it.

    Values of a column that is no longer the role's are left out.
    """
    if form.text(f"{role}_column") != form.text(role):
        return []
    values = [str(value) for value in form.getlist(f"{role}_value")]
    return [
        (value, form.text(f"{role}_meaning_{number}"))
        for number, value in enumerate(values)
        if form.text(f"{role}_meaning_{number}")
    ]


def _explained_values(arguments: Mapping[str, Any], role: str) -> dict[str, str]:
    """Return what a preset or a proposal says about values of a role, by their keys."""
    positive, negative, nothing = MEANING_WORDS[role]
    explained = {}
    for argument, meaning in (("positive", positive), ("negative", negative)):
        by_role = arguments.get(argument) or {}
        values = by_role.get(role, ()) if isinstance(by_role, Mapping) else ()
        for value in _listed(values):
            explained[key_of(value)] = meaning
    missing_values = arguments.get("missing_values", ())
    by_role = (
        missing_values if isinstance(missing_values, Mapping) else {EVERY_ROLE: missing_values}
    )
    # What a value means in this column goes before what was said of both.
    for value in _listed(by_role.get(EVERY_ROLE, ())):
        explained.setdefault(key_of(value), nothing)
    for value in _listed(by_role.get(role, ())):
        explained[key_of(value)] = nothing
    return explained


def _listed(values: Any) -> list[Any]:
    """Return one value or several as a list, without choices that are left to a person."""
    parts = list(values) if isinstance(values, list | tuple) else [values]
    return [part for part in parts if not isinstance(part, OpenChoice)]


def _read_profiles(text: str) -> tuple[ColumnProfile, ...]:
    """Return the columns that came back with a form; a browser may have sent anything."""
    if not text:
        return ()
    try:
        profiles = [ColumnProfile.from_dict(entry) for entry in json.loads(text)]
        for profile in profiles:
            is_text = isinstance(profile.column, str) and profile.file in (TABLE, OUTCOMES)
            counts = profile.values.items()
            is_counted = all(isinstance(v, str) and type(n) is int and n >= 0 for v, n in counts)
            if not is_text or not is_counted or len(profiles) > MAX_COLUMNS:
                raise ValueError
        return tuple(profiles)
    except (TypeError, ValueError, AttributeError, RecursionError, EquipoiseError):
        raise InvalidInput("choose a table of past decisions first") from None
