"""The English text of every message, in one table.

A text is filled in with the fields of a message:

- ``{column}`` is a field: text in quotes, a number with commas, a list of values, or values with
  their numbers of rows. ``{column:plain}`` has no quotes.
- ``{groups:and}`` lists all values, with "and" before the last one.
- ``{rows:row}`` counts: "1 row", "3 rows". ``{rows:has|have}`` is the verb that goes with it.
- ``{fix}`` is what solves the problem, as Python, the shell or the form writes it. A fallback may
  follow, as in ``{fix:missing_values.outcome=VALUE}``, which names the role of the value.
- ``{@unknown=like_known}`` is an argument with a value, ``{@id=COLUMN}`` one with a value that the
  reader fills in, and ``{@id}`` an argument alone. ``{role:=COLUMN}`` takes its name from a field.
- ``[[ ... ]]`` is left out if a field in it is empty, or if the reader's surface has no such
  argument.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Protocol

from equipoise.messages.problem import Message, list_choices_once

TEXTS: Mapping[str, str] = {
    "plain": "{text:plain}",
    # -- which columns and values are meant --------------------------------------------------------
    "column-not-named": "Which column holds the {role:plain}? Name it: {role:=COLUMN}.[[ Columns "
    "of {table:plain}: {columns:30}.]][[ It may be {candidates}.]][[ If another table holds the "
    "{elsewhere:plain}, join that table: {@outcomes=FILE}, {@on=COLUMN}.]]",
    "argument-not-columns": "{argument:argument} must name a column; got {value:plain}.",
    "argument-needs-other": "{argument:argument} belongs to {needed:argument}, which is missing.",
    "bit-without-column": "{value:plain} may be in both columns. Say in which one it is meant, for "
    "example {fix}.",
    "unknown-value": "{argument:argument} names {value}, which is not a value"
    "[[ of column {column}]].[[ Did you mean {nearest}?]] Values found: {known:all}.",
    "missing-and-explained": "Column {column}: {value} cannot have a meaning and stand for none."
    "[[ Both {argument:argument} and {@missing_values} name it.]] Leave out one of the two.",
    "missing-code-without-column": "Column {column} would have one meaning only, because "
    "{@missing_values} names {values:and} for both columns. Say for which column a code stands for "
    "none: {fix}.",
    # -- files and databases -----------------------------------------------------------------------
    "table-or-query-needed": "A database needs either {@table=NAME} or {@query=SQL}. Its tables: "
    "{tables:plain}.",
    "sheet-needed": "{file} has several sheets. Name one: {@table=NAME}. Its sheets: "
    "{sheets:plain}.",
    "not-utf8": "cannot read {table:plain}: it is not UTF-8. Try {@encoding=latin-1} or "
    "{@encoding=utf-16}. Otherwise convert the file first, for example with iconv -f WINDOWS-1252 "
    "-t UTF-8 FILE > NEW.",
    "not-latin1": "cannot read {table:plain}: it is not latin-1. Convert the file first, for "
    "example with iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW.",
    "csv-not-understood": "cannot read {table:plain}: a CSV file must have one separator and one "
    "kind of line end. A cell that begins with a quote must end with one, and quotes inside it "
    'must be doubled: """so-called"" bank". If the file is UTF-16: {@encoding=utf-16}.',
    "httpfs-missing": "cannot read {table:plain}: DuckDB reads addresses of files with its "
    "extension httpfs, which is not installed. Install it once with duckdb.sql('INSTALL httpfs'), "
    "or copy the file here.",
    "files-hold-different-columns": "{file} lacks {columns:column|columns} {columns:and}, which "
    "other files have. Files are read one below the other, so each must have the columns that are "
    "read.",
    "files-to-join": "{file} lacks {columns:column|columns} {columns:and}. If {file} says how the "
    "people of {people} turned out, name {people} alone and join {file} by the column that "
    "identifies people: {fix}[[, {key:=COLUMN}]]. Otherwise files are read one below the other, "
    "and each must have the columns that are read.",
    # -- outcomes in another table -----------------------------------------------------------------
    "outcomes-without-key": "[[{@outcomes} belongs to {@on}, which is missing. ]]Which column "
    "identifies a person in both tables?[[ Both have {shared:and}.]] Name it: {fix:on=COLUMN}.[[ "
    "Columns of {people:plain}: {people_columns:30}.]][[ Columns of {table:plain}: {columns:30}.]]",
    "join-column-unknown": "{table:plain} has no column {column}. These two columns have the same "
    "values: {key:plain}. Join by them: {fix}.",
    "outcomes-match-nobody": "No row of {table:plain} matches a person. Column {column} has values "
    "such as {examples:3}, column {key} values such as {keys:3}. Both columns must identify people "
    "in the same way: {@on=COLUMN}, or {@on=COLUMN=COLUMN} if they have two names.",
    "outcomes-repeated": "Column {column}: people have several rows of outcomes that differ "
    "({extra_rows:row} too many). Name the column that says which row is the latest: "
    "{fix:latest=COLUMN}.[[ Columns of dates: {moments:plain}.]]",
    "outcomes-of-one-moment": "Column {column}: people have several outcomes of the same {latest} "
    "({extra_rows:row} too many). Keep the row that counts.",
    "latest-not-sortable": "Column {column} must hold dates such as '2024-01-31' or numbers of one "
    "length, so that the latest is the largest; found {examples:3}.",
    "outcomes-unmatched": "{rows:row} of {table:plain} {rows:matches|match} nobody and "
    "{rows:was|were} left out.",
    # -- rows --------------------------------------------------------------------------------------
    "no-rows": "{table:plain} has no rows.",
    "too-many-combinations": "Column {column} has at least {different} different values. It must "
    "hold groups, decisions or outcomes. Is it a score or an identifier?",
    "person-id-missing": "Column {column} names no person in {rows:row}. Fill the column in, or "
    "leave out {@id}.",
    "people-repeated": "Column {column}: people are there more than once ({extra_rows:row} too "
    "many), and each row would count. If all rows of a person are equal, count them once: {fix}.",
    "person-rows-differ": "Column {column}: rows of the same people differ in {others:plain} "
    "({extra_rows:row} too many). Keep only the row that counts.",
    "equal-rows": "{rows:row} {rows:equals|equal} another one in all columns. A person who is "
    "there more than once counts more than once. The column that identifies people: "
    "{@id=COLUMN}.",
    # -- groups ------------------------------------------------------------------------------------
    "too-many-groups": "Column {column} has {groups} different values, such as {examples:3}. Is it "
    "a score or an identifier? If these are groups: {fix}.",
    "no-groups": "Column {column} has {groups} different values, such as {examples:3}. Is it a "
    "score or an identifier? Name a column of groups. To read that many groups all the same: "
    "{@max_groups=NUMBER}.",
    "group-missing": "Column {column} names no group in {rows:row}, written {written}. Fill them "
    "in, or give these people a name: {fix}.",
    "group-names-clash": "Columns {columns}: two groups would be called {group}. Rename the value "
    "that contains {and} or {within}.",
    "one-group": "Column {columns} has only the group {groups}. A comparison needs two.",
    "spellings": "Column {column}: {readings:spellings}.",
    "missing-group-named": "Column {column}: {rows:row} without a group {rows:is|are} called "
    "{name}, a name like any other.[[ A question may count these people without comparing them: "
    "{leave_out:leave_out}.]]",
    "groups-merged": "Groups counted as one: {merged:plain}.",
    "missing-group-joined": "Column {column}: {rows:row} without a group {rows:is|are} counted as "
    "{name}.",
    # -- decisions ---------------------------------------------------------------------------------
    "random-accepts-not-bits": "Column {column} must be 1 for people whom a test programme "
    "accepted, and 0 for all others. It also holds {value}. Name the value that marks people: "
    "{fix:positive.random_accepts=VALUE}.",
    "outcome-without-decision": "Column {decision_column} has no decision in {rows:row}, but "
    "{labelled:plain} of them {labelled:has|have} an outcome in column {outcome_column} "
    "({outcomes}). Fill in the decision: people with an outcome were approved. Or are the two "
    "columns swapped? If these values mean that there is no outcome: "
    "{fix:missing_values.outcome=VALUE}.",
    "decision-missing": "Column {column} has no decision in {rows:row}. Fill them in. If these "
    "people never got a decision, for example because they withdrew, leave them out: {fix}.",
    "decision-reversed": "Column {column} seems to be the other way round: outcomes are known "
    "mostly where it is {values}, which was read as denied. If these people were approved: {fix}.",
    "decision-unexplained": "Column {column} must be 0/1 or true/false; found {written}. Say which "
    "values mean approved, which mean denied, and which mean that there is no decision, for "
    "example because a person withdrew: {fix:positive.decision=VALUE}.",
    "decision-partly-explained": "Column {column} has values without a meaning: {written}. Say "
    "which mean approved, which mean denied, and which mean that there is no decision, for example "
    "because a person withdrew: {fix:negative.decision=VALUE}.",
    "undecided-left-out": "Column {column}: left out as never decided: {written}.",
    "groups-without-decisions": "Nobody was decided about in {groups}, so the data show nothing "
    "about these groups.",
    # -- outcomes ----------------------------------------------------------------------------------
    "not-yes-no": "Column {column} must have yes/no values; found {different} different ones, such "
    "as {examples:3}. If it is a score or a probability, make a column of yes and no with the "
    "cut-off that was used, for example {column:plain} >= 0.5, and name that column.",
    "named-after-failure": "Column {column} is named after a bad outcome, so 1 may mean bad; found "
    "{written}. Say which value is the good one: {fix}.",
    "outcome-unexplained": "Column {column} must be 0/1 or true/false; found {written}. Say which "
    "values mean a good outcome, which mean a bad one, and which mean that the outcome is not "
    "known yet: {fix:positive.outcome=VALUE}.",
    "outcome-partly-explained": "Column {column} has values without a meaning: {written}. Say "
    "which mean a good outcome, which mean a bad one, and which mean that the outcome is not known "
    "yet: {fix:negative.outcome=VALUE}.",
    "outcome-unknown": "Column {column} has no outcome in {rows:row} of approved people "
    "({by_group:plain}). Leaving these rows out would bias the answer. Choose one of three. Assume "
    "nothing about them: {fix}. Assume that they are like the known ones of their group: "
    "{@unknown=like_known}. Or keep only people whose outcome should be known by now, by a date "
    "and never by their outcomes: {@date=COLUMN} and {@until=DATE}.",
    "denied-with-outcome": "{rows:denied row} {rows:has|have} an outcome in column {column} "
    "({outcomes:3}). Column {decision_column} was read as approved {approved}, denied {denied}. If "
    "a test programme accepted these people at random, mark them: {@random_accepts=COLUMN}. "
    "Otherwise leave their outcomes out: {fix}.",
    "denied-with-outcome-marked": "{rows:denied row} {rows:has|have} an outcome in column {column} "
    "({outcomes:3}), where column {mark_column} is {mark}. If {mark} marks people whom a test "
    "programme accepted by lot, say so, and their outcomes count: {fix}. If these people were "
    "chosen by judgement, leave their outcomes out: {@denied_outcomes=ignore}.",
    "denied-outcomes-left-out": "Column {column}: the outcomes of {rows:denied row} were left out.",
    "outcomes-unknown-bounds": "The outcomes of {people:plain} approved are not known "
    "({by_group:plain}). Nothing is assumed about these people.",
    "outcomes-unknown-like-known": "The outcomes of {people:plain} approved are not known "
    "({by_group:plain}). These people are assumed to be like the known ones of the same group"
    "[[ and {cohort:plain}]].",
    "mostly-bad-outcomes": "Warning: in {groups} fewer approved people had the good outcome than "
    "the bad one. If column {column} says what went wrong, turn it: {fix}.",
    # -- an audit that begins ----------------------------------------------------------------------
    "groups-keep-audit-open": "{groups:and} would keep this audit from ending. Its verdict needs "
    "outcomes of denied people from every compared group, and {groups:and} {number:has|have} "
    "{rows:past row}, {denied} of them denied.[[ If {undecidable_case:plain}, no number of "
    "overrides decides with {groups:and}.]][[ With {groups:and}, about {people_with} people must "
    "arrive, more than the {past_rows} of these historical data.]] Without, about "
    "{people_without} people must arrive and the typical cost is {cost:plain}. Leave "
    "{number:it|them} out: {fix}. {number:Its|Their} people are then counted and not compared, so "
    "the verdict says nothing about them.[[ Even then no number of overrides decides if "
    "{remaining_case:plain}.]][[ Or compare {merged:and} as one group, if they belong together: "
    "{merge:merge_groups}. About {merge_people} people must then arrive and the typical cost is "
    "{merge_cost:plain}.]] To begin all the same: {@confirm=TRUE}.",
    "audit-cannot-be-decided": "This audit would probably not reach a verdict. If {case:plain}, "
    "no number of overrides decides with these historical data.[[ {groups:and} {number:has|have} "
    "too few rows: {rows:past row}, {denied} of them denied. Leaving out does not help.]][[ If "
    "they belong together, compare {merged:and} as one group: {merge:merge_groups}. About "
    "{merge_people} people must then arrive and the typical cost is {merge_cost:plain}.]]"
    "[[ {rows_needed:plain}.]][[ A margin of {margin:plain} points would be enough with these "
    "rows.]] To begin all the same: {@confirm=TRUE}.",
    # -- deciders, dates, test programmes ----------------------------------------------------------
    "decider-missing": "Column {column} names no decider in {rows:row}. Fill them in, or leave out "
    "{@decider}.",
    "date-missing": "Column {column} has no date in {rows:row}. A period can be read only if every "
    "row has a date such as '2024-01-31'. Fill them in.",
    "period-empty": "Column {column} has no day of that period. Its days are from {first:plain} to "
    "{last:plain}.",
    "day-or-month-first": "Column {column}: {examples:2} may have the day first or the month. "
    "Write dates with the year first, such as '2024-01-31'.",
    "not-dates": "Column {column} must hold dates such as '2024-01-31', all written in one way; "
    "found {odd:3} in {rows:row}. Write all of them with the year first, or use the date type of "
    "the file or database.",
    "not-numbers": "Column {column} must hold numbers, or dates such as '2024-01-31'; found "
    "{value}. Write numbers with a point and dates with the year first.",
    "programme-not-random": "Column {mark} must mark people whom a test programme accepted at "
    "random. In group {group} their {column} differs from that of the other denied (p = "
    "{p_value:plain}). Mark only people drawn by lot, never near misses or overrides by judgement, "
    "or mark nobody.",
    "programme-untested": "Test programme {mark}: that all denied people of a group had the same "
    "chance is untested. Test it against columns such as a score or a date: "
    "{@random_accepts_against=COLUMN}.",
    "programme-tested": "Test programme {mark}: that all denied people of a group had the same "
    "chance was tested against {columns:plain}: no difference found (least p = {p_value:plain} of "
    "{tests:plain} tests).",
}
"""Code of a message -> its text."""


@dataclass(frozen=True)
class Placeholder:
    """A value that the reader of a text fills in, such as ``COLUMN``."""

    word: str


class Spelling(Protocol):
    """How a surface writes the arguments of :meth:`equipoise.History.read`.

    A method returns None if the surface has no such argument.
    """

    def argument(self, argument: str) -> str | None:
        """Return the name of an argument."""

    def setting(self, argument: str, value: Any) -> str | None:
        """Return an argument with its value, which may hold placeholders and open choices."""


def fill_in(message: Message, spelling: Spelling, texts: Mapping[str, str] = TEXTS) -> str:
    """Return the text of a message, as one surface writes arguments.

    ``texts`` has the text of each code.
    """
    formatter = _MessageFormatter(message, spelling)
    parts = re.split(r"\[\[(.*?)\]\]", texts[message.code])
    filled_parts = []
    for index, part in enumerate(parts):
        is_optional = index % 2 == 1  # re.split puts what is between brackets at odd places
        formatter.is_complete = True  # each part stands or falls by its own fields
        text = formatter.format(part)
        if formatter.is_complete or not is_optional:
            filled_parts.append(text)
    return "".join(filled_parts)


class _MessageFormatter(Formatter):
    """Fills in a text as the head of this module says."""

    def __init__(self, message: Message, spelling: Spelling) -> None:
        self.message = message
        self.spelling = spelling
        self.is_complete = True  # False after a field that is empty or that no surface has

    # The field is looked up in format_field, because only there is it known how it is written.
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        return field_name, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        text = self._text_of(str(value), format_spec)
        if not text:
            self.is_complete = False
        return text or ""

    def _text_of(self, field_name: str, spec: str) -> str | None:
        if field_name.startswith("@"):
            return self._mention(field_name[1:])
        # Where the fixes cannot be written here, the fallback behind the colon takes their place.
        if field_name == "fix":
            return self._fixes() or self._mention(spec)
        value = self.message.fields[field_name]
        if value is None or value == "":
            return None
        if spec == "argument":
            return self.spelling.argument(value)
        if spec.startswith("="):
            return self.spelling.setting(value, Placeholder(spec[1:]))
        if spec in ("leave_out", "merge_groups"):
            return self.spelling.setting(spec, value)
        if spec == "spellings":
            readings = []
            for label, row_counts in value.items():
                readings.append(f"{list_with_counts(row_counts)} are read as {label!r}")
            return "; ".join(readings)
        return format_value(value, spec)

    def _mention(self, text: str) -> str | None:
        argument, _, word = text.partition("=")
        if not word:
            return self.spelling.argument(argument)
        # A word in capital letters, such as COLUMN, stands for what the reader fills in.
        value = Placeholder(word) if word.isupper() else word
        argument, _, role = argument.partition(".")
        return self.spelling.setting(argument, {role: value} if role else value)

    def _fixes(self) -> str:
        # One set for all fixes: what an earlier one lists in full is not listed again.
        listed: set[frozenset[str]] = set()
        settings = [
            self.spelling.setting(fix.argument, list_choices_once(fix.argument_value, listed))
            for fix in self.message.fixes
        ]
        separator = getattr(self.spelling, "separator", ", ")
        return separator.join(setting for setting in settings if setting is not None)


def format_value(value: Any, spec: str) -> str:
    """Return a field as its place in a text asks for it."""
    if "|" in spec:  # the verb, or the pronoun, that goes with a count
        singular, plural = spec.split("|")
        count = len(value) if isinstance(value, list | tuple) else value
        return singular if count == 1 else plural
    if spec == "plain":
        return _format_plainly(value)
    if spec == "and":
        return _join_with_and([repr(part) for part in value])
    if spec == "all":
        return ", ".join(value) or "none"
    return _format_by_type(value, spec)


def _format_plainly(value: Any) -> str:
    """Return a value without quotes."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _join_with_and(texts: Sequence[str]) -> str:
    """Return texts as a list whose last part follows an "and"."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _format_by_type(value: Any, spec: str) -> str:
    """Return a number, values with their rows, a text or a list, each in its usual form.

    ``spec`` is the noun of a number, or how many values of a list are shown; it may be empty.
    """
    if isinstance(value, int):
        return count_text(value, spec) if spec else f"{value:,}"
    if isinstance(value, Mapping) and not spec:
        return list_with_counts(value)
    if isinstance(value, str):
        return repr(value)
    return list_values(value, int(spec or 5))


def count_text(count: int, noun: str) -> str:
    """Return a number with its noun, such as "1 row" or "1,200 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def list_values(values: Iterable[str], limit: int = 5) -> str:
    """Return the first few values in quotes."""
    texts = [repr(value) for value in values]
    return ", ".join(texts[:limit]) + (", …" if len(texts) > limit else "")


def list_with_counts(row_counts: Mapping[str, int], limit: int = 8) -> str:
    """Return values with their numbers of rows, frequent ones first: 'Y' (1,200), 'y ' (3)."""
    ranked = Counter(row_counts).most_common()
    names = ", ".join(f"{value!r} ({count:,})" for value, count in ranked[:limit])
    return names + (f" and {len(ranked) - limit:,} more" if len(ranked) > limit else "")
