"""What a person must say about files before they can be read, as questions with proposals.

Nothing is read by a guess: every proposal is a question that a person answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise._json import JsonValue
from equipoise.history.meanings import BAD_WORDS, GOOD_WORDS, NOTHING_WORDS
from equipoise.history.options import ReadOptions
from equipoise.history.sources import open_table
from equipoise.history.values import is_missing, key_of, text_of

MAX_LISTED_VALUES = 60  # a column with more different values is never proposed as a group
ROLE_NAMES: Mapping[str, str] = {
    "group": r"race|ethnic|sex|gender|group|nationality|religion|age_?(group|band)",
    "decision": r"action|decision|approv|grant|accept|admit|hired|released|disposition",
    "outcome": r"outcome|status|repaid|paid|default|result|perform|good|claim",
    "id": r"(^|[\W_])(id|uli|key|number|no|nr)$|application$",
}
"""Role -> what the name of its column often contains."""
MEANINGS: Mapping[str, tuple[str, str, str]] = {
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
        ``"group"``, ``"decision"``, ``"outcome"`` or ``"on"``.
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


def profile_columns(places: Sequence[str], **options: Any) -> tuple[ColumnProfile, ...]:
    """Return the columns of files, with their values where they are few."""
    # Opening a table does not need its roles, which are not known yet.
    reading = ReadOptions(group=" group", decision=" decision", outcome=" outcome", **options)
    profiles = []
    for place in places:
        table = open_table(place, reading)
        for column in table.columns:
            counted = table.count([column], MAX_LISTED_VALUES + 1)
            values: dict[str, int] = {}
            if len(counted) <= MAX_LISTED_VALUES:
                values = {text_of(value): int(count) for value, count in counted}
            profiles.append(ColumnProfile(place, column, values))
    return tuple(profiles)


def ask_for_columns(profiles: Sequence[ColumnProfile]) -> tuple[ReadingQuestion, ...]:
    """Return a question for the column of each role."""
    files = list(dict.fromkeys(profile.file for profile in profiles))
    questions = []
    for role in ("group", "decision", "outcome"):
        # The second file has the outcomes, the first one all else.
        file = files[-1] if role == "outcome" else files[0]
        candidates = [p.column for p in profiles if p.file == file and p.is_short]
        proposals = [name for name in candidates if _is_called_like(role, name)]
        questions.append(
            ReadingQuestion(role, tuple(candidates), proposals[0] if proposals else "")
        )
    if len(files) > 1:
        first = [profile.column for profile in profiles if profile.file == files[0]]
        shared = [p.column for p in profiles if p.file == files[1] and p.column in first]
        ids = [name for name in shared if _is_called_like("id", name)]
        proposal = ids[0] if ids else (shared[0] if len(shared) == 1 else "")
        questions.append(ReadingQuestion("on", tuple(shared or first), proposal))
    return tuple(questions)


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
    if {key_of(value) for value in present} <= {"0", "1"}:
        return ()
    questions = []
    for value, count in sorted(present.items(), key=lambda item: -item[1]):
        proposal = _propose_meaning(role, value)
        questions.append(ReadingQuestion(role, MEANINGS[role], proposal, column, value, count))
    return tuple(questions)


def arguments_of(meanings: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the arguments of ``History.read`` that answers about values stand for.

    ``meanings`` has the answer by role and value.
    """
    arguments: dict[str, Any] = {"positive": {}, "negative": {}, "missing_values": []}
    for (role, value), meaning in meanings.items():
        one, zero, _ = MEANINGS[role]
        if meaning == one:
            arguments["positive"].setdefault(role, []).append(value)
        elif meaning == zero:
            arguments["negative"].setdefault(role, []).append(value)
        else:
            arguments["missing_values"].append(value)
            if role == "decision":
                arguments["undecided"] = "leave_out"
            else:
                arguments["unknown"] = "bounds"
    return {name: value for name, value in arguments.items() if value}


def _is_called_like(role: str, column: str) -> bool:
    return re.search(ROLE_NAMES[role], column.casefold()) is not None


def _propose_meaning(role: str, value: str) -> str:
    one, zero, nothing = MEANINGS[role]
    word = value.strip().casefold()
    if re.fullmatch(GOOD_WORDS, word):
        return one
    if re.fullmatch(BAD_WORDS, word):
        return zero
    return nothing if re.fullmatch(NOTHING_WORDS, word) else ""
