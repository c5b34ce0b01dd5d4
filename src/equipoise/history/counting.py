"""From a table to counts: the engine counts rows where they are, and every rule is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from equipoise.cells import Cells
from equipoise.display import format_count
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.coding import YesNo
from equipoise.history.dates import Days, cut_period
from equipoise.history.group_counts import count_by_attribute, count_deciders, count_group
from equipoise.history.history import History, ReadSummary
from equipoise.history.interpretation import interpret
from equipoise.history.joining import (
    JoinProposal,
    find_join,
    is_id_name,
    open_people,
)
from equipoise.history.marks import propose_mark
from equipoise.history.options import ReadOptions, as_tuple, split_key
from equipoise.history.problems import UnreadTable, propose_reading, read_with_fixes
from equipoise.history.row_combinations import (
    RowCombination,
    combine_rows,
    count_by_decision,
    count_by_outcome,
    n_rows,
    split_rows,
)
from equipoise.history.tables import Rows, Table, require_once
from equipoise.history.values import is_missing, require_single_values
from equipoise.messages import Fix, Note, Problem

FIRST_LOOK_ROWS = 10_000  # rows looked at before the whole table is grouped
MAX_COMBINATIONS = 200_000  # more combinations of values are no groups, decisions and outcomes
MIN_OTHER_COLUMNS = 3  # columns that are not read, before equal rows are remarkable
MAX_ROWS_TO_COMPARE = 500_000  # rows of a table in which equal rows are looked for


@dataclass(frozen=True)
class CountedTable:
    """A table as it was read."""

    table: Table  # the rows that were counted
    options: ReadOptions
    rows: Sequence[RowCombination]
    history: History  # the counts


@dataclass(frozen=True)
class _EngineCounts:
    """What the engine answered: which rows count, and how many have each combination of values."""

    table: Table
    every_row: Table  # of the period, with rows that repeat others, and with all columns
    combinations: Rows
    notes: tuple[Note, ...]
    dropped: Mapping[str, int]  # why rows do not count -> how many
    days: Days | None = None  # the first and the last, if there is a column of dates


def count_table(
    source: Any, options: ReadOptions, *, denied_outcomes_known: bool = False
) -> CountedTable:
    """Count a table's rows per group, decision and outcome.

    With ``denied_outcomes_known`` the denied people's outcomes are known as well, and these people
    count as random accepts.

    Raises
    ------
    UnreadTable
        If a rule is broken, with all problems that there are.
    """
    join = find_join(source, options)
    if join is not None:
        raise _propose_join(join, options)
    engine = _Engine(source)

    def count_with(options: ReadOptions) -> CountedTable:
        engine_counts = engine.count(options)
        try:
            return _sum_up(engine_counts, options, denied_outcomes_known=denied_outcomes_known)
        except UnreadTable as error:
            # One step meets one problem: read_with_fixes collects them.
            problem = propose_mark(error.problems[0], engine_counts.every_row, options)
            raise UnreadTable(problem) from None

    return read_with_fixes(options, source, count_with)


def _propose_join(join: JoinProposal, options: ReadOptions) -> UnreadTable:
    """Return the error of files to be joined, with whatever else the joined table would need."""
    if join.key is None:
        return UnreadTable(join.problem)
    joined = options.with_fixes(join.problem.fixes)
    try:
        count_table(join.people, joined)
    except UnreadTable as error:
        proposal = error.proposal or propose_reading(joined, join.people)
        return UnreadTable(join.problem, *error.problems, proposal=proposal)
    except InvalidInput:  # the two files cannot be joined by that column
        return UnreadTable(join.problem)
    proposal = propose_reading(joined, join.people, reads_table=True)
    return UnreadTable(join.problem, proposal=proposal)


# -- what is asked of the engine -------------------------------------------------------------------


class _Engine:
    """Counts a source, once for each set of options that makes the engine count anew."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self._opened: dict[tuple[str | None, ...], tuple[Table, tuple[Note, ...]]] = {}
        self._counted: dict[tuple[Any, ...], _EngineCounts] = {}

    def count(self, options: ReadOptions) -> _EngineCounts:
        """Return the rows that count, and how many have each combination of values."""
        # Fixes change these options alone among those that the engine's answer depends on.
        key = (options.on, options.latest, options.id, options.repeated, options.columns)
        if key not in self._counted:
            table, join_notes = self._open(options)
            counts = _ask_engine(table, options)
            self._counted[key] = replace(counts, notes=(*join_notes, *counts.notes))
        return self._counted[key]

    def _open(self, options: ReadOptions) -> tuple[Table, tuple[Note, ...]]:
        key = (options.on, options.latest)
        if key not in self._opened:
            table, join_notes = open_people(self.source, options)
            require_once(options.used, table.columns)
            for column in options.used:
                if column not in table.columns:
                    raise _unknown_column(column, table, options)
            self._opened[key] = (table, join_notes)
        return self._opened[key]


def _unknown_column(column: str, table: Table, options: ReadOptions) -> UnknownName:
    is_joinable = column == options.outcome and options.outcomes is None
    remedy = "If another table holds it, join that table by 'outcomes' and 'on'"
    return UnknownName("column", column, table.columns, remedy=remedy if is_joinable else "")


def _ask_engine(table: Table, options: ReadOptions) -> _EngineCounts:
    """Count the rows of the period, one per person."""
    whole_table = table
    in_period, days = cut_period(table, options)
    table, n_repeated = _keep_one_row_per_person(in_period, options)
    combinations = _count_combinations(table, options.columns)
    if not combinations:
        raise UnreadTable(Problem("no-rows", {"table": table.name}))
    n_rows_counted = sum(int(row[-1]) for row in combinations)
    # In the order in which rows fell out: a person reads it as the way from all rows to those
    # that count.
    dropped = {"repeated": n_repeated}
    if options.since is not None or options.until is not None:
        n_read = sum(int(row[-1]) for row in whole_table.count([options.decision]))
        dropped = {"outside the period": n_read - n_rows_counted - n_repeated, **dropped}
    notes = _note_equal_rows(table, options, n_rows_counted)
    return _EngineCounts(table, in_period, combinations, notes, dropped, days)


def _count_combinations(table: Table, columns: Sequence[str]) -> Rows:
    """Return combinations of values with their numbers of rows."""
    # A few rows first: they show a column of identifiers before the engine groups by it.
    first_rows = table.take(columns, FIRST_LOOK_ROWS)
    first_combinations = first_rows.count(columns, MAX_COMBINATIONS)
    _require_few_combinations(columns, first_combinations, FIRST_LOOK_ROWS // 2)
    n_seen = sum(int(row[-1]) for row in first_combinations)
    if n_seen < FIRST_LOOK_ROWS and len(first_combinations) < MAX_COMBINATIONS:
        return first_combinations  # these were all rows
    combinations = table.count(columns, MAX_COMBINATIONS)
    _require_few_combinations(columns, combinations, MAX_COMBINATIONS)
    return combinations


def _require_few_combinations(columns: Sequence[str], combinations: Rows, limit: int) -> None:
    """Raise if there are too many combinations, and name the column with most values."""
    sizes = {}
    # Transposed to columns; the last one, the numbers of rows, has no name and is left out.
    for column, values in zip(columns, zip(*combinations, strict=True), strict=False):
        require_single_values(column, values)
        sizes[column] = len(set(values))
    if len(combinations) >= limit:
        column = max(sizes, key=lambda name: sizes[name])
        fields = {"column": column, "different": sizes[column]}
        raise UnreadTable(Problem("too-many-combinations", fields))


def _note_equal_rows(table: Table, options: ReadOptions, n_counted: int) -> tuple[Note, ...]:
    """Return a note if rows are equal in all columns and no column identifies people."""
    unread_columns = set(table.columns) - set(options.used)
    has_id = any(map(is_id_name, unread_columns))
    # Of a few columns many people are equal by chance, so that the note would mean nothing.
    is_meaningful = has_id or len(unread_columns) >= MIN_OTHER_COLUMNS
    if options.id is not None or n_counted > MAX_ROWS_TO_COMPARE or not is_meaningful:
        return ()
    with suppress(BadData):  # a column that cannot be compared
        different_rows = table.take(table.columns).count([options.decision])
        n_equal = n_counted - sum(int(row[-1]) for row in different_rows)
        if n_equal:
            return (Note("equal-rows", {"rows": n_equal}),)
    return ()


def _keep_one_row_per_person(table: Table, options: ReadOptions) -> tuple[Table, int]:
    """Refuse people who are there more than once, or count them once if their rows agree.

    Returns the rows that count, and how many rows are left out because they repeat others.
    """
    # A column that joins two tables identifies people as well.
    column = options.id or (None if options.on is None else split_key(options.on)[0])
    if column is None:
        return table, 0
    n_missing, n_repeated = table.missing_and_repeated(column)
    if n_missing and options.id is None:  # denied people may have no number of a loan
        return table, 0
    if n_missing:
        raise UnreadTable(Problem("person-id-missing", {"column": column, "rows": n_missing}))
    if not n_repeated:
        return table, 0
    if options.repeated == "refuse":
        fields = {"column": column, "extra_rows": n_repeated}
        fixes = [Fix("repeated", ("count_once",))]
        if options.id is None:
            fixes.insert(0, Fix("id", (column,)))
        raise UnreadTable(Problem("people-repeated", fields, tuple(fixes)))
    other_columns = [name for name in options.used if name != column]
    # Rows that are alike in what is read become one. A person who is still repeated has rows that
    # contradict each other.
    table = table.take([column, *other_columns])
    _, n_differing = table.missing_and_repeated(column)
    if n_differing:
        fields = {"column": column, "others": other_columns, "extra_rows": n_differing}
        raise UnreadTable(Problem("person-rows-differ", fields))
    return table, n_repeated


# -- what the counts say ---------------------------------------------------------------------------


def _sum_up(
    engine_counts: _EngineCounts, options: ReadOptions, *, denied_outcomes_known: bool
) -> CountedTable:
    """Interpret the values of the counted rows, and sum up the counts per group."""
    combinations = combine_rows(engine_counts.combinations, options)
    interpretation = interpret(combinations, options, denied_outcomes_known=denied_outcomes_known)
    rows = interpretation.rows
    groups = split_rows(rows, [row.group for row in rows])
    if len(groups) < 2:
        fields = {"columns": list(options.groups), "groups": list(groups)}
        raise UnreadTable(Problem("one-group", fields))
    cells = Cells({name: count_group(part, options) for name, part in groups.items()})
    coding = interpretation.coding
    history = History(
        cells,
        seed=options.seed,
        deciders=count_deciders(groups, options),
        attributes=count_by_attribute(rows, options, coding.grouping),
        notes=(
            *engine_counts.notes,
            *interpretation.notes,
            *_notes_on_outcomes(cells, coding.outcome, options),
        ),
        coding=coding,
        summary=_summarize(engine_counts, rows, options),
    )
    return CountedTable(engine_counts.table, options, rows, history)


def _notes_on_outcomes(cells: Cells, outcome: YesNo, options: ReadOptions) -> list[Note]:
    """Note whose outcome is not known, and where good and bad outcomes may have been swapped."""
    notes = []
    if cells.unknown:
        by_group = [
            f"{group} {format_count(c.approved_unknown)} of {format_count(c.approved)}"
            for group, c in cells.items()
        ]
        fields: dict[str, Any] = {"people": format_count(cells.unknown), "by_group": by_group}
        if options.unknown == "like_known":
            fields["cohort"] = options.cohort
            notes.append(Note("outcomes-unknown-like-known", fields))
        else:
            notes.append(Note("outcomes-unknown-bounds", fields))
    # Approved people mostly turn out well. Where most do not, a person may have mistaken what 1
    # means.
    mostly_bad = [group for group, c in cells.items() if c.approved_positive < c.approved_negative]
    if mostly_bad:
        turned = (
            Fix("positive", outcome.zeros, role="outcome"),
            Fix("negative", outcome.ones, role="outcome"),
        )
        fields = {"groups": mostly_bad, "column": options.outcome}
        notes.append(Note("mostly-bad-outcomes", fields, turned))
    return notes


def _summarize(
    engine_counts: _EngineCounts, rows: Sequence[RowCombination], options: ReadOptions
) -> ReadSummary:
    """Return what was read and how it was understood."""
    columns_of_role = {
        "group": options.group,
        "within": options.within,
        "decision": options.decision,
        "outcome": options.outcome,
        "random_accepts": options.random_accepts,
        "cohort": options.cohort,
        "decider": options.decider,
        "id": options.id,
    }
    columns = {}
    for role, columns_named in columns_of_role.items():
        text = " & ".join(as_tuple(columns_named))
        if text:
            columns[role] = text
    table = engine_counts.table
    # Interpretation drops rows without a decision only, so these make up the difference.
    n_asked = sum(int(row[-1]) for row in engine_counts.combinations)
    n_counted = n_rows(rows)
    dropped = {**engine_counts.dropped, "without a decision": n_asked - n_counted}
    return ReadSummary(
        source=table.name,
        engine=table.engine,
        rows=n_counted,
        columns=columns,
        decision=_decisions_by_meaning(rows),
        outcome=_outcomes_by_meaning(rows),
        period=_describe_period(options),
        dropped={reason: count for reason, count in dropped.items() if count},
        without_group=_count_without_group(rows, options),
        first_day=str(engine_counts.days[0]) if engine_counts.days else "",
        last_day=str(engine_counts.days[1]) if engine_counts.days else "",
    )


def _count_without_group(rows: Sequence[RowCombination], options: ReadOptions) -> int:
    """Return how many counted rows have no value in a group column."""
    return n_rows(
        row for row in rows if any(is_missing(row.values[column]) for column in options.groups)
    )


def _decisions_by_meaning(rows: Sequence[RowCombination]) -> Mapping[str, Mapping[str, int]]:
    return {
        "1": count_by_decision(row for row in rows if row.is_approved),
        "0": count_by_decision(row for row in rows if not row.is_approved),
    }


def _outcomes_by_meaning(rows: Sequence[RowCombination]) -> Mapping[str, Mapping[str, int]]:
    return {
        "1": count_by_outcome(row for row in rows if row.outcome_bit == 1),
        "0": count_by_outcome(row for row in rows if row.outcome_bit == 0),
        "none": count_by_outcome(row for row in rows if row.outcome_bit is None),
    }


def _describe_period(options: ReadOptions) -> str:
    """Return the cut by date, such as "day since 2024-01-01 and before 2025-01-01"."""
    ends = []
    if options.since is not None:
        ends.append(f"since {options.since}")
    if options.until is not None:
        ends.append(f"before {options.until}")
    return f"{options.date} {' and '.join(ends)}" if ends else ""
