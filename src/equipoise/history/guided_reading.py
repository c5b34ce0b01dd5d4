"""What a person must say about files before they can be read, as questions with proposals.

Nothing is read by a guess: every proposal is a question that a person answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise._json import JsonValue
from equipoise.history.interpretation import MAX_PROPOSED_GROUPS
from equipoise.history.joining import is_id_name, moment_columns, propose_key
from equipoise.history.meanings import BAD_WORDS, GOING_WORDS, GOOD_WORDS, NOTHING_WORDS
from equipoise.history.options import ReadOptions
from equipoise.history.problems import UnreadTable
from equipoise.history.sources import open_table
from equipoise.history.tables import Table
from equipoise.history.values import choose_labels, is_missing, key_of, tally, text_of
from equipoise.messages import Problem

MAX_LISTED_VALUES = MAX_PROPOSED_GROUPS  # of a column that is proposed for a role
ROLE_NAMES: Mapping[str, str] = {
    "group": r"race|ethnic|sex|gender|group|nationality|religion|age_?(group|band)",
    "decision": r"action|decision|approv|grant|accept|admit|hired|released|disposition",
    "outcome": r"outcome|status|repaid|paid|default|result|perform|good|claim",
}
"""Role -> what the name of its column often contains."""
NO_COLUMN = "none of these"
"""The answer that no column identifies people."""
MEANING_WORDS: Mapping[str, tuple[str, str, str]] = {
    "decision": ("approved", "denied", "no decision"),
    "outcome": ("good", "bad", "not known"),
}
"""Role -> what a value may mean: 1, 0, none."""


@dataclass(frozen=True)
class ColumnProfile(JsonValue):
    """A column of a file; ``values`` has the rows of each value, and is empty if there are many."""

    file: str
    column: str
    values: Mapping[str, int]

    @property
    def is_short(self) -> bool:
        """Whether the column has few enough values to be a group, a decision or an outcome."""
        return len(self.values) >= 2


@dataclass(frozen=True)
class ReadingQuestion(JsonValue):
    """Something to ask: a column for a role, or the meaning of a value.

    Attributes
    ----------
    role
        ``"group"``, ``"decision"`` or ``"outcome"``; ``"on"`` and ``"on_outcomes"`` for what
        identifies a person in the first file and the second, ``"id"`` in a single one; ``"latest"``
        for which row counts.
    column, value
        For the meaning of a value: the column and the value; empty for the column of a role.
    choices
        What may be answered.
    proposal
        The answer that is proposed; empty if only a person can know.
    """

    role: str
    choices: tuple[str, ...]
    proposal: str = ""
    column: str = ""
    value: str = ""
    rows: int = 0


def profile_columns(
    places: Sequence[str], table: str | None = None, encoding: str | None = None
) -> tuple[ColumnProfile, ...]:
    """Return the columns of files, with their values where they are few.

    ``table`` is the sheet or table of the first one.

    Raises
    ------
    UnreadTable
        If a file has no rows.
    """
    profiles: list[ColumnProfile] = []
    for index, place in enumerate(places):
        opened_table = _open(place, table if index == 0 else None, encoding)
        if not opened_table.count(opened_table.columns[:1], 1):
            raise UnreadTable(Problem("no-rows", {"table": opened_table.name}))
        profiles += profile_table(place, opened_table)
    return tuple(profiles)


def profile_table(name: str, table: Table) -> list[ColumnProfile]:
    """Return the columns of an opened table, with their values where they are few."""
    profiles = []
    for column in table.columns:
        # One more than are listed, so that a column of exactly so many values is listed.
        counted = table.count([column], MAX_LISTED_VALUES + 1)
        values: dict[str, int] = {}
        if len(counted) <= MAX_LISTED_VALUES:
            values = {text_of(value): int(count) for value, count in counted}
        profiles.append(ColumnProfile(name, column, values))
    return profiles


def ask_for_columns(profiles: Sequence[ColumnProfile]) -> tuple[ReadingQuestion, ...]:
    """Return a question for the column of each role, and for what joins two files."""
    files = list(dict.fromkeys(profile.file for profile in profiles))
    people = [profile for profile in profiles if profile.file == files[0]]
    # The second file has the outcomes, the first one all else.
    outcomes = [profile for profile in profiles if profile.file == files[-1]]
    questions: list[ReadingQuestion] = []
    for role, candidates in (("group", people), ("decision", people), ("outcome", outcomes)):
        # A column has one role, so what is proposed for one role is not proposed for the next.
        used_columns = {question.proposal for question in questions}
        questions.append(_ask_for_role(role, candidates, used_columns))
    if len(files) > 1:
        questions += _ask_for_key(people, outcomes)
    return tuple(questions)


def _ask_for_role(
    role: str, profiles: Sequence[ColumnProfile], used_columns: Collection[str]
) -> ReadingQuestion:
    """Return the question for the column of a role, with the first proposal."""
    choices = tuple(profile.column for profile in profiles if profile.is_short)
    proposals = propose_columns(role, profiles, used_columns)
    return ReadingQuestion(role, choices, next(iter(proposals), ""))


def propose_columns(
    role: str, profiles: Sequence[ColumnProfile], used_columns: Collection[str]
) -> list[str]:
    """Return the columns that may have a role: those called like it, then those with its words."""
    free_profiles = [p for p in profiles if p.is_short and p.column not in used_columns]
    proposals = [p.column for p in free_profiles if _is_called_like(role, p.column)]
    if role in MEANING_WORDS:
        proposals += [
            p.column for p in free_profiles if any(_propose_meaning(role, v) for v in p.values)
        ]
    return list(dict.fromkeys(proposals))


def _ask_for_key(
    people: Sequence[ColumnProfile], outcomes: Sequence[ColumnProfile]
) -> list[ReadingQuestion]:
    """Return the question for the column that joins two files, or for one in each."""
    people_columns = [profile.column for profile in people]
    outcome_columns = [profile.column for profile in outcomes]
    proposal = propose_key(people_columns, outcome_columns) or ""
    shared = [column for column in people_columns if column in outcome_columns]
    if shared:
        return [ReadingQuestion("on", tuple(shared), proposal)]
    person_column, _, outcome_key = proposal.partition("=")
    return [
        ReadingQuestion("on", tuple(people_columns), person_column),
        ReadingQuestion("on_outcomes", tuple(outcome_columns), outcome_key),
    ]


def ask_for_id(profiles: Sequence[ColumnProfile]) -> tuple[ReadingQuestion, ...]:
    """Return the question for the column that identifies people in a single file, if one may."""
    columns = [p.column for p in profiles if is_id_name(p.column) or _has_many_values(p)]
    # Those that are called like it first.
    ranked = sorted(columns, key=is_id_name, reverse=True)
    if not ranked:
        return ()
    named = [column for column in ranked if is_id_name(column)]
    proposal = named[0] if len(named) == 1 else ""
    return (ReadingQuestion("id", (*ranked, NO_COLUMN), proposal),)


def _has_many_values(profile: ColumnProfile) -> bool:
    """Return whether each row of a column, or nearly so, may have a value of its own."""
    return all(count == 1 for count in profile.values.values())


def ask_for_latest(
    place: str, key: str, outcome: str, encoding: str | None = None
) -> tuple[ReadingQuestion, ...]:
    """Return the question which row of a person counts, if people have several that differ."""
    opened_table = _open(place, None, encoding)
    _, n_repeated = opened_table.take([key, outcome]).missing_and_repeated(key)
    if not n_repeated:
        return ()
    moments = moment_columns(opened_table, key)
    other_columns = [column for column in opened_table.columns if column not in (key, outcome)]
    # Columns that look like dates come first. Of several none is proposed: they may be of events
    # other than the outcome.
    choices = tuple(dict.fromkeys([*moments, *other_columns]))
    return (ReadingQuestion("latest", choices, moments[0] if len(moments) == 1 else ""),)


def _open(place: str, table: str | None, encoding: str | None) -> Table:
    # Opening a table does not need its roles, which are not known yet.
    options = ReadOptions(
        group=" group", decision=" decision", outcome=" outcome", table=table, encoding=encoding
    )
    return open_table(place, options)


def ask_for_values(
    role: str, column: str, profiles: Sequence[ColumnProfile]
) -> tuple[ReadingQuestion, ...]:
    """Return a question for each value of a column of decisions or outcomes, frequent ones first.

    A column of 0 and 1 needs none.
    """
    values: Mapping[str, int] = {}
    for profile in profiles:
        if profile.column == column:
            values = profile.values
    present = {value: count for value, count in values.items() if not is_missing(value)}
    rows_by_key = tally((key_of(value), count) for value, count in present.items())
    if set(rows_by_key) <= {"0", "1"}:
        return ()
    labels = choose_labels(present)  # spellings that differ in case and blanks are one value
    proposals = {key: _propose_meaning(role, label) for key, label in labels.items()}
    # Where no word says what is good, loans that are current may be: only a person can know.
    if role == "outcome" and MEANING_WORDS[role][0] not in proposals.values():
        going = [key for key in proposals if re.fullmatch(GOING_WORDS, key)]
        proposals.update(dict.fromkeys(going, ""))
    questions = []
    for key in sorted(rows_by_key, key=lambda key: -rows_by_key[key]):
        n_rows = rows_by_key[key]
        questions.append(
            ReadingQuestion(role, MEANING_WORDS[role], proposals[key], column, labels[key], n_rows)
        )
    return tuple(questions)


def arguments_of(meanings: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the arguments of ``History.read`` that answers about values stand for.

    ``meanings`` has the answer by role and value.
    """
    arguments: dict[str, Any] = {"positive": {}, "negative": {}, "missing_values": {}}
    for (role, value), meaning in meanings.items():
        positive, negative, _ = MEANING_WORDS[role]
        if meaning == positive:
            arguments["positive"].setdefault(role, []).append(value)
        elif meaning == negative:
            arguments["negative"].setdefault(role, []).append(value)
        else:
            arguments["missing_values"].setdefault(role, []).append(value)
            # Rows without a decision or an outcome are refused unless an argument says what to do.
            if role == "decision":
                arguments["undecided"] = "leave_out"
            else:
                arguments["unknown"] = "bounds"
    return {name: value for name, value in arguments.items() if value}


def _is_called_like(role: str, column: str) -> bool:
    return re.search(ROLE_NAMES[role], column.casefold()) is not None


def _propose_meaning(role: str, value: str) -> str:
    positive, negative, nothing = MEANING_WORDS[role]
    word = value.strip().casefold()
    if re.fullmatch(GOOD_WORDS, word):
        return positive
    if re.fullmatch(BAD_WORDS, word):
        return negative
    return nothing if re.fullmatch(NOTHING_WORDS, word) else ""
