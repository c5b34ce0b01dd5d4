"""Outcomes that another file, table or frame holds, joined to people by an identifier.

The engine joins: DuckDB for files and frames in memory, the database for tables of a database, and
narwhals for lazy frames. Both sources must be of one kind.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import narwhals as nw
import sqlalchemy as sql

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.options import ReadOptions, split_key
from equipoise.history.problems import UnreadTable
from equipoise.history.sources import (
    common_folder_columns,
    files_of,
    open_table,
    require_folders_of_all,
    share_connection,
)
from equipoise.history.tables import LazyTable, SqlTable, Table, quoted_column
from equipoise.history.values import text_of
from equipoise.messages import Fix, Note, Problem

KEY = "equipoise key of outcomes"  # no column is called so
NEWEST = "equipoise newest row"
MAX_MOMENTS = 100_000  # different values of the column that says which row is the latest
MAX_FILES_TO_COMPARE = 20  # files whose columns are compared; more are parts of one table
ID_NAME = r"(^|[\W_])(id|uli|key|number|no|nr)$"  # how a column that identifies people is called
MAX_KEYS_TO_COMPARE = 50  # pairs of columns that may identify people
MAX_VALUES_TO_COMPARE = 200  # of such a column
MIN_VALUES_TO_COMPARE = 5
SORTABLE = r"\d{4}-\d{2}(-\d{2}([T ].*)?)?|\d+"
"""Texts whose order is their order in time, if all of them are equally long."""


def open_people(source: Any, options: ReadOptions) -> tuple[Table, tuple[Note, ...]]:
    """Open a source, with its outcomes joined if they are elsewhere; return notes on the join.

    Raises
    ------
    UnreadTable
        If somebody has several rows of outcomes and ``latest`` does not say which one counts.
    """
    if options.outcomes is None:
        return open_table(source, options), ()
    with share_connection():
        people = open_table(source, options)
        outcomes = open_outcomes(source, people, options)
    person_column, outcome_key = split_key(options.on)
    _require_key(people, outcomes, options)
    _require_column(person_column, people, "of people")
    for column in (outcome_key, options.outcome, *([options.latest] if options.latest else ())):
        _require_column(column, outcomes, "of outcomes")
    # The outcome always comes from outcomes; of other columns, people's own go first.
    brought = [options.outcome]
    brought += [c for c in options.used if c not in people.columns and c in outcomes.columns]
    brought = list(dict.fromkeys(brought))
    latest_outcomes = _keep_latest(outcomes, outcome_key, brought, options)
    joined, n_unmatched = _join(people, latest_outcomes, person_column, brought)
    if not n_unmatched:
        return joined, ()
    # A few rows of outcomes about strangers are a note, but if all are the columns do not fit.
    if n_unmatched == sum(int(row[-1]) for row in latest_outcomes.count([options.outcome])):
        raise UnreadTable(_match_nobody(people, outcomes, options))
    return joined, (Note("outcomes-unmatched", {"rows": n_unmatched, "table": outcomes.name}),)


def _require_key(people: Table, outcomes: Table, options: ReadOptions) -> None:
    """Raise if one table lacks the column of the join and another of its columns has its values."""
    person_column, outcome_key = split_key(options.on)
    is_in_people = person_column in people.columns
    if is_in_people == (outcome_key in outcomes.columns):
        return
    if is_in_people:
        table, column = outcomes, outcome_key
        key = find_key(people, outcomes, [person_column], outcomes.columns)
    else:
        table, column = people, person_column
        key = find_key(people, outcomes, people.columns, [outcome_key])
    if key is not None:
        fields = {"table": table.name, "column": column, "key": key.replace("=", " = ")}
        raise UnreadTable(Problem("join-column-unknown", fields, (Fix("on", (key,)),)))


def _match_nobody(people: Table, outcomes: Table, options: ReadOptions) -> Problem:
    """Return the problem of a join by columns that have no value in common."""
    person_column, outcome_key = split_key(options.on)
    fields = {
        "table": outcomes.name,
        "column": person_column,
        "examples": _first_values(people, person_column),
        "key": outcome_key,
        "keys": _first_values(outcomes, outcome_key),
    }
    return Problem("outcomes-match-nobody", fields)


def _first_values(table: Table, column: str) -> list[str]:
    return sorted(text_of(row[0]) for row in table.count([column], 3))


# -- files that were named one beside the other, and have to be joined -----------------------------


@dataclass(frozen=True)
class JoinProposal:
    """A file of people and a file of outcomes that were given as parts of one table.

    ``key`` is what :attr:`ReadOptions.on` would be; None if the names of the columns do not say.
    """

    people: str
    outcomes: str
    missing: tuple[str, ...]  # columns that the file of outcomes lacks
    key: str | None

    @property
    def problem(self) -> Problem:
        """The problem of files that are no parts of one table, with the join as its fix."""
        fixes = [Fix("outcomes", (self.outcomes,))]
        if self.key is not None:
            fixes.append(Fix("on", (self.key,)))
        fields = {
            "file": self.outcomes,
            "columns": list(self.missing),
            "people": self.people,
            "key": "on" if self.key is None else "",  # the argument that a person has to fill in
        }
        return Problem("files-to-join", fields, tuple(fixes))


def find_join(source: Any, options: ReadOptions) -> JoinProposal | None:
    """Return the join that two files ask for; None if files are parts of one table.

    Raises
    ------
    UnreadTable
        If one of several files lacks a column that others have, and no join would help.
    """
    files = files_of(source)
    if options.outcomes is not None or not 1 < len(files) <= MAX_FILES_TO_COMPARE:
        return None
    folder_columns = common_folder_columns(files)
    columns = {file: [*open_table(file, options).columns, *folder_columns] for file in files}
    everywhere = set[str]().union(*columns.values())
    for file in reversed(files):
        missing = [c for c in options.used if c in everywhere and c not in columns[file]]
        if not missing:
            continue
        require_folders_of_all(files, missing)
        if len(files) > 2:
            fields = {"file": file, "columns": missing}
            raise UnreadTable(Problem("files-hold-different-columns", fields))
        return _propose_join_of(files, columns, file, options)
    return None


def _propose_join_of(
    files: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    incomplete_file: str,
    options: ReadOptions,
) -> JoinProposal:
    """Return which of two files has people, which has outcomes, and what may join them."""
    # Where both have the outcome, the later name is proposed: people are named first.
    files_with_outcome = [file for file in files if options.outcome in columns[file]]
    outcomes = files_with_outcome[-1] if files_with_outcome else incomplete_file
    people = files[0] if outcomes == files[1] else files[1]
    lacking = tuple(c for c in options.used if c not in columns[outcomes])
    if not lacking:  # the file of outcomes has every column, so name what the file of people lacks
        lacking = tuple(c for c in options.used if c not in columns[people])
    key = propose_key(columns[people], columns[outcomes])
    return JoinProposal(people, outcomes, lacking, key)


def propose_key(people_columns: Sequence[str], outcome_columns: Sequence[str]) -> str | None:
    """Return the columns that may identify people in two tables, as ``on`` takes them.

    A column that both have goes first, then the only ones whose names end in a word such as ``id``.

    Examples
    --------
    >>> propose_key(["uli", "race"], ["uli", "month", "status"])
    'uli'
    >>> propose_key(["Application No", "race"], ["personnel_no", "rating"])
    'Application No=personnel_no'
    """
    shared = [column for column in people_columns if column in outcome_columns]
    shared_ids = [column for column in shared if is_id_name(column)]
    if shared_ids or len(shared) == 1:
        return (shared_ids or shared)[0]
    people_ids = [column for column in people_columns if is_id_name(column)]
    outcome_ids = [column for column in outcome_columns if is_id_name(column)]
    if not shared and len(people_ids) == len(outcome_ids) == 1:
        return f"{people_ids[0]}={outcome_ids[0]}"
    return None


def find_key(
    people: Table,
    outcomes: Table,
    people_columns: Sequence[str],
    outcome_columns: Sequence[str],
) -> str | None:
    """Return the first two columns with the same values, as ``on`` takes them; None if none have.

    Columns that are called like those that identify people go first.
    """
    pairs = product(people_columns, outcome_columns)
    ranked = sorted(pairs, key=lambda pair: -sum(map(is_id_name, pair)))
    for person_column, outcome_key in ranked[:MAX_KEYS_TO_COMPARE]:
        with suppress(BadData):  # of types that cannot be compared
            if _have_same_values(people, person_column, outcomes, outcome_key):
                return f"{person_column}={outcome_key}"
    return None


def _have_same_values(people: Table, person_column: str, outcomes: Table, outcome_key: str) -> bool:
    """Return whether a few values of one column are mostly found in the other."""
    values = [row[0] for row in outcomes.count([outcome_key], MAX_VALUES_TO_COMPARE) if row[0]]
    # Of a few different values, such as 0 and 1, any column of codes has some.
    if len(values) < MIN_VALUES_TO_COMPARE:
        return False
    found = people.where_in(person_column, values).count([person_column], MAX_VALUES_TO_COMPARE)
    return 2 * len(found) >= len(values)


def is_id_name(column: str) -> bool:
    """Return whether a column is called like one that identifies people."""
    return re.search(ID_NAME, column.casefold()) is not None


def open_outcomes(source: Any, people: Table, options: ReadOptions) -> Table:
    """Open the table of outcomes: in a database it is another table of the same database."""
    is_database = isinstance(people, SqlTable) and people.engine != "DuckDB"
    if is_database and isinstance(options.outcomes, str):
        return open_table(source, replace(options, table=options.outcomes, query=None))
    outcomes = open_table(options.outcomes, replace(options, table=None, query=None))
    if type(outcomes) is not type(people) or outcomes.engine != people.engine:
        raise InvalidInput(
            f"'outcomes' must be of the same kind as the source: {outcomes.name} is read by "
            f"{outcomes.engine}, {people.name} by {people.engine}; convert one of them"
        )
    return outcomes


def _require_column(column: str, table: Table, description: str) -> None:
    if column not in table.columns:
        raise UnknownName(f"column {description}", column, table.columns)


def _keep_latest(outcomes: Table, key: str, brought: Sequence[str], options: ReadOptions) -> Table:
    """Return one row per person, with its key under another name."""
    if options.latest is not None:
        _require_sortable(outcomes, options.latest)
        outcomes = _newest_rows(outcomes, key, options.latest)
    outcomes_of_people = outcomes
    # Rows that say the same count once; whoever has several that differ is refused.
    outcomes = outcomes.take([key, *[column for column in brought if column != key]])
    _, n_repeated = outcomes.missing_and_repeated(key)
    if n_repeated:
        code = "outcomes-repeated" if options.latest is None else "outcomes-of-one-moment"
        moments = [] if options.latest else moment_columns(outcomes_of_people, key)
        fields = {
            "column": key,
            "extra_rows": n_repeated,
            "latest": options.latest or "",
            "moments": ", ".join(moments) if len(moments) > 1 else "",
        }
        fixes = (Fix("latest", (moments[0],)),) if len(moments) == 1 else ()
        raise UnreadTable(Problem(code, fields, fixes))
    if isinstance(outcomes, LazyTable):
        rows = outcomes.rows.filter(~nw.col(key).is_null())
        names = [nw.col(column) for column in brought]
        return replace(outcomes, rows=rows.select(nw.col(key).alias(KEY), *names))
    outcome_query = sql.select(quoted_column(key).label(KEY), *map(quoted_column, brought))
    outcome_query = outcome_query.select_from(outcomes.rows).where(quoted_column(key).is_not(None))
    return replace(outcomes, rows=outcome_query.subquery())


def _require_sortable(outcomes: Table, column: str) -> None:
    """Raise if the texts of a column do not sort by time; other types do."""
    moments = [row[0] for row in outcomes.count([column], MAX_MOMENTS) if row[0] is not None]
    texts = [moment for moment in moments if isinstance(moment, str)]
    is_sortable = all(re.fullmatch(SORTABLE, text) for text in texts)
    if not is_sortable or len({len(text) for text in texts}) > 1:
        fields = {"column": column, "examples": sorted(texts)[:3]}
        raise UnreadTable(Problem("latest-not-sortable", fields))


def moment_columns(outcomes: Table, key: str) -> list[str]:
    """Return the columns whose largest value may say which row of a person is the latest."""
    columns = []
    for column in outcomes.columns:
        values = [row[0] for row in outcomes.count([column], 20) if row[0] is not None]
        if column != key and values and _are_moments(values):
            columns.append(column)
    return columns


def _are_moments(values: Sequence[object]) -> bool:
    """Say whether all values are dates, or all are texts that begin with a year and a month.

    Numbers may be amounts, so that they are no moments.
    """
    if all(isinstance(value, str) for value in values):
        return all(re.match(r"\d{4}-\d{2}", str(value)) for value in values)
    return all(isinstance(value, datetime.date) for value in values)


def _newest_rows(outcomes: Table, key: str, latest: str) -> Table:
    """Return the rows of every person that have the person's last moment."""
    if isinstance(outcomes, LazyTable):
        newest = outcomes.rows.group_by(key).agg(nw.col(latest).max().alias(NEWEST))
        rows = outcomes.rows.join(newest, on=key, how="inner")
        rows = rows.filter(nw.col(latest) == nw.col(NEWEST)).drop(NEWEST)
        return replace(outcomes, rows=rows)
    key_column = quoted_column(key)
    newest_moments = (
        sql.select(key_column.label(KEY), sql.func.max(quoted_column(latest)).label(NEWEST))
        .select_from(outcomes.rows)
        .group_by(key_column)
        .subquery()
    )
    every_row = sql.select(*map(quoted_column, outcomes.columns)).select_from(outcomes.rows)
    rows = every_row.subquery()
    newest = (
        sql.select(*(rows.c[column] for column in outcomes.columns))
        .join(newest_moments, rows.c[key] == newest_moments.c[KEY])
        .where(rows.c[latest] == newest_moments.c[NEWEST])
    )
    return replace(outcomes, rows=newest.subquery())


def _join(
    people: Table, outcomes: Table, person_column: str, brought: Sequence[str]
) -> tuple[Table, int]:
    """Return people with their outcomes, and how many rows of outcomes match nobody."""
    people_columns = [column for column in people.columns if column not in brought]
    columns = [*people_columns, *brought]
    if isinstance(people, LazyTable) and isinstance(outcomes, LazyTable):
        people_rows = people.rows.select(*people_columns)
        joined = people_rows.join(outcomes.rows, left_on=person_column, right_on=KEY, how="left")
        unmatched = outcomes.rows.join(people_rows, left_on=KEY, right_on=person_column, how="anti")
        n_unmatched = len(LazyTable(outcomes.name, outcomes.engine, unmatched, [KEY]).count([KEY]))
        table = replace(people, rows=joined.select(*columns), columns=columns)
        return table, n_unmatched
    if not isinstance(people, SqlTable) or not isinstance(outcomes, SqlTable):
        raise BadData("people and outcomes must be tables of one kind")
    people_rows = (
        sql.select(*map(quoted_column, people_columns)).select_from(people.rows).subquery()
    )
    condition = people_rows.c[person_column] == outcomes.rows.c[KEY]
    joined_rows = sql.select(
        *(people_rows.c[column] for column in people_columns),
        *(outcomes.rows.c[column] for column in brought),
    ).select_from(people_rows.outerjoin(outcomes.rows, condition))
    is_matched = (
        sql.select(sql.literal_column("1")).select_from(people_rows).where(condition).exists()
    )
    counted = sql.select(sql.func.count()).select_from(outcomes.rows).where(~is_matched)
    ((n_unmatched,),) = people.run(counted)
    return replace(people, rows=joined_rows.subquery(), columns=columns), int(n_unmatched)
