"""What to say of a table if nobody said what its columns are: what it has, and a proposal.

Columns are proposed by their names and values, as in guided reading. The proposal is tried, so that
one error also has every problem of the table that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from equipoise.errors import BadData, InvalidInput
from equipoise.history.counting import count_table
from equipoise.history.guided_reading import ColumnProfile, profile_table, propose_columns
from equipoise.history.joining import find_key, is_id_name, open_outcomes, propose_key
from equipoise.history.options import ReadOptions, as_tuple
from equipoise.history.problems import InvalidReading, UnreadTable, propose_reading
from equipoise.history.saved_readings import load_levels, load_reading, merge_levels
from equipoise.history.sources import files_of, open_table, share_connection
from equipoise.history.tables import LazyTable, Table
from equipoise.messages import Fix, OpenChoice, Problem, ReadingProposal

MAIN_ROLES = ("group", "decision", "outcome")
FIRST_ROWS = 10_000  # of a table that are looked at
MAX_CHOICES = 4  # columns that are proposed for a role


def propose_names(
    error: InvalidReading, source: object, arguments: Mapping[str, Any]
) -> InvalidReading:
    """Return the error of columns that nobody named, with columns to choose from.

    Another error is returned as it is.

    Parameters
    ----------
    error
        What reading the source with these arguments raised.
    source, arguments
        Those of :meth:`equipoise.History.read`.

    Raises
    ------
    InvalidInput
        If the source cannot be opened, which says more than that its columns were not named.
    """
    # What can be read only once is left for the call that follows.
    if not any(map(_is_about_names, error.problems)) or hasattr(source, "read_next_batch"):
        return error
    table_source, levels = load_levels(source, arguments)
    said = merge_levels(levels)
    with share_connection():
        tables = _open_tables(table_source, said)
        with suppress(BadData):  # a table that can be opened and not read
            return _Proposer(source, arguments, said, tables).error()
    return error


def _is_about_names(problem: Problem) -> bool:
    """Return whether a problem is that a column was not named, or what joins two tables."""
    is_about_join = problem.fields.get("argument") == "outcomes"
    return problem.code == "column-not-named" or (
        problem.code == "argument-needs-other" and is_about_join
    )


@dataclass(frozen=True)
class _Tables:
    """The first rows of the table of people, and of the table that has the outcomes.

    ``outcomes`` is the same table if there is no other, and ``is_joined`` then False.
    """

    people: Table
    outcomes: Table
    is_joined: bool


def _open_tables(source: Any, arguments: Mapping[str, Any]) -> _Tables:
    """Open a source, and the outcomes if another source has them."""
    # Opening a table does not need its roles, which are not known yet.
    names: dict[str, Any] = {"group": " group", "decision": " decision", "outcome": " outcome"}
    for argument in ("table", "query", "encoding"):
        names[argument] = arguments.get(argument)
    options = ReadOptions(**names)
    if arguments.get("outcomes") is not None:
        people = open_table(source, options)
        joined = replace(options, outcomes=arguments["outcomes"], on=" on")
        outcomes = open_outcomes(source, people, joined)
        return _Tables(people, outcomes, is_joined=True)
    files = files_of(source)
    if len(files) == 2:
        # Two files with different columns: most likely the second one has the outcomes.
        people = open_table(files[0], options)
        outcomes = open_table(files[1], options)
        if set(people.columns) != set(outcomes.columns):
            return _Tables(people, outcomes, is_joined=False)
    people = open_table(source, options)
    return _Tables(people, people, is_joined=False)


@dataclass(frozen=True)
class _Proposer:
    """Finds columns for the roles that nobody named, and reads the table with them.

    ``arguments`` are the caller's, ``said`` those of preset, kept file and caller together.
    """

    source: Any
    arguments: Mapping[str, Any]
    said: Mapping[str, Any]
    tables: _Tables

    def error(self) -> InvalidReading:
        """Return the error with all problems and, if columns were found, a proposal."""
        choices = self._choose_columns()
        problems = [self._column_problem(role, choices) for role in choices]
        named: dict[str, Any] = {role: columns[0] for role, columns in choices.items() if columns}
        if self.tables.is_joined and not self.said.get("on"):
            key = self._find_key()
            problems.append(self._key_problem(key))
            named |= {} if key is None else {"on": key}
        if not all(problem.fixes for problem in problems):
            return InvalidReading(*problems)
        more_problems, proposal = self._read(named)
        if proposal is not None:
            proposal = _with_choices(proposal, choices)
        return InvalidReading(*problems, *more_problems, proposal=proposal)

    def _choose_columns(self) -> dict[str, list[str]]:
        """Return the columns that each role without a name may have, best ones first."""
        people = _profile(self.tables.people)
        outcomes = people
        if self.tables.outcomes is not self.tables.people:
            outcomes = _profile(self.tables.outcomes)
        used_columns = {column for role in MAIN_ROLES for column in as_tuple(self.said.get(role))}
        # A column that joins two tables identifies people.
        used_columns |= set(str(self.said.get("on", "")).split("="))
        choices = {}
        for role in MAIN_ROLES:
            if any(as_tuple(self.said.get(role))):
                continue
            profiles = outcomes if role == "outcome" else people
            columns = propose_columns(role, profiles, used_columns)[:MAX_CHOICES]
            choices[role] = columns
            used_columns |= set(columns[:1])
        return choices

    def _column_problem(self, role: str, choices: Mapping[str, Sequence[str]]) -> Problem:
        table = self.tables.outcomes if role == "outcome" else self.tables.people
        fields: dict[str, Any] = {"role": role, "table": "", "columns": [], "elsewhere": ""}
        fields["candidates"] = columns = choices[role]
        # A table's columns are listed once, by its first role.
        has_own_table = table is not self.tables.people
        if role == next(iter(choices)) or has_own_table:
            fields |= {"table": table.name, "columns": list(table.columns)}
        if role == "outcome" and not columns and table is self.tables.people:
            fields["elsewhere"] = "outcomes"
        return Problem("column-not-named", fields, _fix_of(role, columns))

    def _find_key(self) -> str | None:
        """Return the columns that may join both tables, by their names or else by their values."""
        people, outcomes = self.tables.people, self.tables.outcomes
        key = propose_key(people.columns, outcomes.columns)
        if key is not None:
            return key
        people_ids = [column for column in people.columns if is_id_name(column)]
        outcome_ids = [column for column in outcomes.columns if is_id_name(column)]
        return find_key(people, outcomes, people_ids, outcome_ids)

    def _key_problem(self, key: str | None) -> Problem:
        people, outcomes = self.tables.people, self.tables.outcomes
        fields: dict[str, Any] = {
            "shared": [column for column in people.columns if column in outcomes.columns],
            "people": "",
            "people_columns": [],
            "table": "",
            "columns": [],
        }
        if key is None:
            fields |= {"people": people.name, "people_columns": list(people.columns)}
            fields |= {"table": outcomes.name, "columns": list(outcomes.columns)}
        return Problem("outcomes-without-key", fields, _fix_of("on", [] if key is None else [key]))

    def _read(self, named: Mapping[str, Any]) -> tuple[Sequence[Problem], ReadingProposal | None]:
        """Return what else is wrong with the table read so, and a call that reads it."""
        source, options = load_reading(self.source, {**self.arguments, **named})
        try:
            count_table(source, options)
        except UnreadTable as error:
            return error.problems, error.proposal
        except InvalidInput:
            return (), None
        return (), propose_reading(options, source, reads_table=True)


def _fix_of(argument: str, columns: Sequence[str]) -> tuple[Fix, ...]:
    """Return the fix that names a column; among several a person has to choose."""
    if not columns:
        return ()
    is_open = len(columns) > 1
    return (Fix(argument, (OpenChoice(tuple(columns)) if is_open else columns[0],)),)


def _with_choices(
    proposal: ReadingProposal, choices: Mapping[str, Sequence[str]]
) -> ReadingProposal:
    """Return a proposal in which a person still has to choose among several columns."""
    open_roles = {
        role: OpenChoice(tuple(columns)) for role, columns in choices.items() if len(columns) > 1
    }
    return replace(proposal, arguments={**proposal.arguments, **open_roles})


def _profile(table: Table) -> list[ColumnProfile]:
    """Return the columns of the first rows of a table: a large one would take too long."""
    if isinstance(table, LazyTable):  # each question may start a job on a cluster
        return [ColumnProfile(table.name, column, {}) for column in table.columns]
    return profile_table(table.name, table.take(table.columns, FIRST_ROWS))
