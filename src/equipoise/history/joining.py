"""Outcomes that another file, table or frame holds, joined to people by an identifier.

The engine joins: DuckDB for files and frames in memory, the database for tables of a database, and
narwhals for lazy frames. Both sources must be of one kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import sqlalchemy as sql

from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.options import ReadOptions
from equipoise.history.problems import UnreadTable
from equipoise.history.sources import open_table, share_connection
from equipoise.history.tables import LazyTable, SqlTable, Table, quoted_column
from equipoise.messages import Note, Problem

KEY = "equipoise key of outcomes"  # no column is called so
NEWEST = "equipoise newest row"
MAX_MOMENTS = 100_000  # different values of the column that says which row is the latest
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
        outcomes = _open_outcomes(source, people, options)
    person_column, outcome_key = split_key(options.on)
    _require_column(person_column, people, "of people")
    for column in (outcome_key, options.outcome, *([options.latest] if options.latest else ())):
        _require_column(column, outcomes, "of outcomes")
    brought = [options.outcome]
    brought += [c for c in options.used if c not in people.columns and c in outcomes.columns]
    brought = list(dict.fromkeys(brought))
    kept = _keep_latest(outcomes, outcome_key, brought, options)
    joined, n_unmatched = _join(people, kept, person_column, brought)
    if not n_unmatched:
        return joined, ()
    return joined, (Note("outcomes-unmatched", {"rows": n_unmatched, "table": outcomes.name}),)


def split_key(on: str | None) -> tuple[str, str]:
    """Return the columns that identify people in both tables: ``"uli"`` or ``"uli=loan_id"``."""
    person_column, _, outcome_key = str(on).partition("=")
    return person_column, outcome_key or person_column


def _open_outcomes(source: Any, people: Table, options: ReadOptions) -> Table:
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
    # Rows that say the same count once; whoever has several that differ is refused.
    outcomes = outcomes.take([key, *[column for column in brought if column != key]])
    _, n_repeated = outcomes.missing_and_repeated(key)
    if n_repeated:
        code = "outcomes-repeated" if options.latest is None else "outcomes-of-one-moment"
        fields = {"column": key, "extra_rows": n_repeated, "latest": options.latest or ""}
        raise UnreadTable(Problem(code, fields))
    if isinstance(outcomes, LazyTable):
        rows = outcomes.rows.filter(~nw.col(key).is_null())
        names = [nw.col(column) for column in brought]
        return replace(outcomes, rows=rows.select(nw.col(key).alias(KEY), *names))
    kept = sql.select(quoted_column(key).label(KEY), *map(quoted_column, brought))
    kept = kept.select_from(outcomes.rows).where(quoted_column(key).is_not(None))
    return replace(outcomes, rows=kept.subquery())


def _require_sortable(outcomes: Table, column: str) -> None:
    """Raise if the texts of a column do not sort by time; other types do."""
    moments = [row[0] for row in outcomes.count([column], MAX_MOMENTS) if row[0] is not None]
    texts = [moment for moment in moments if isinstance(moment, str)]
    is_sortable = all(re.fullmatch(SORTABLE, text) for text in texts)
    if not is_sortable or len({len(text) for text in texts}) > 1:
        fields = {"column": column, "examples": sorted(texts)[:3]}
        raise UnreadTable(Problem("latest-not-sortable", fields))


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
    people: Table, kept: Table, person_column: str, brought: Sequence[str]
) -> tuple[Table, int]:
    """Return people with their outcomes, and how many rows of outcomes match nobody."""
    own_columns = [column for column in people.columns if column not in brought]
    columns = [*own_columns, *brought]
    if isinstance(people, LazyTable) and isinstance(kept, LazyTable):
        own = people.rows.select(*own_columns)
        joined = own.join(kept.rows, left_on=person_column, right_on=KEY, how="left")
        unmatched = kept.rows.join(own, left_on=KEY, right_on=person_column, how="anti")
        n_unmatched = len(LazyTable(kept.name, kept.engine, unmatched, [KEY]).count([KEY]))
        table = replace(people, rows=joined.select(*columns), columns=columns)
        return table, n_unmatched
    if not isinstance(people, SqlTable) or not isinstance(kept, SqlTable):
        raise BadData("people and outcomes must be tables of one kind")
    own = sql.select(*map(quoted_column, own_columns)).select_from(people.rows).subquery()
    condition = own.c[person_column] == kept.rows.c[KEY]
    joined_rows = sql.select(
        *(own.c[column] for column in own_columns), *(kept.rows.c[column] for column in brought)
    ).select_from(own.outerjoin(kept.rows, condition))
    is_matched = sql.select(sql.literal_column("1")).select_from(own).where(condition).exists()
    counted = sql.select(sql.func.count()).select_from(kept.rows).where(~is_matched)
    ((n_unmatched,),) = people.run(counted)
    return replace(people, rows=joined_rows.subquery(), columns=columns), int(n_unmatched)
