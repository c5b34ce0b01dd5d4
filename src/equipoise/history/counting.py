"""From rows to cells: one GROUP BY in the engine, every rule checked on its short answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput
from equipoise.history.source import TABLE, Source, identifier, literal
from equipoise.history.yesno import MISSING, Positive, YesNo, read_yes_no, shown

__all__ = ["Columns", "Counted", "count_rows", "is_one_of", "name_of"]

MOST_GROUPS = 1_000
MOST_VALUES = 100
PEEK = 10_000  # rows looked at before the whole table is grouped
NO_GROUP = ("", "nan", "NaN")


@dataclass(frozen=True)
class Columns:
    """Which columns to read."""

    groups: tuple[str, ...]
    decision: str
    outcome: str

    def __post_init__(self) -> None:
        if not self.groups:
            raise InvalidInput("'group' must name at least one column; got none")
        twice = [column for column, n in Counter(self.all).items() if n > 1]
        if twice:
            raise InvalidInput(
                "'group', 'decision' and 'outcome' must be different columns; "
                f"{twice[0]!r} is named twice"
            )

    @property
    def all(self) -> tuple[str, ...]:
        """Every column, groups first."""
        return (*self.groups, self.decision, self.outcome)


@dataclass(frozen=True)
class Counted:
    """The cells, and what is needed to find their rows again.

    ``values`` holds the values of the group columns behind each group's name; ``ignored`` is the
    number of denied rows whose outcome was left out.
    """

    cells: Cells
    values: dict[str, tuple[str, ...]]
    decision: YesNo
    outcome: YesNo
    ignored: int


def count_rows(
    source: Source, columns: Columns, positive: Positive, *, ignore_denied_outcomes: bool
) -> Counted:
    """Count a table's rows per group, decision and outcome, or say which rule it breaks."""
    _require_few_values(columns, _query(source, columns, first=PEEK))
    rows = _query(source, columns)
    if not rows:
        raise BadData(f"{source.name} has no rows")
    _require_few_values(columns, rows)
    _require_groups(source, columns, rows)
    _require_decisions(source, columns, rows)
    decision = read_yes_no("decision", columns.decision, (r.decision for r in rows), positive)
    approved = [row for row in rows if row.decision in decision.ones]
    denied = [row for row in rows if row.decision in decision.zeros]
    _require_outcomes(source, columns, decision, approved)
    outcome = read_yes_no("outcome", columns.outcome, (r.outcome for r in approved), positive)
    labelled = [row for row in denied if not _is_blank(row.outcome)]
    if labelled and not ignore_denied_outcomes:
        _refuse_denied_outcomes(source, columns, decision, labelled)
    return Counted(
        _cells(columns, approved, denied, outcome),
        {name_of(row.group): row.group for row in rows},
        decision,
        outcome,
        sum(row.count for row in labelled),
    )


def name_of(values: Iterable[str]) -> str:
    """Return a group's name from its values, one per group column.

    Examples
    --------
    >>> name_of(["Black", "female"])
    'Black & female'
    """
    return " & ".join(values)


def is_one_of(source: Source, column: str, values: Iterable[str]) -> str:
    """Return the SQL that picks the rows in which a column has one of the values."""
    return f"{source.comparable(column)} IN ({', '.join(literal(value) for value in values)})"


@dataclass(frozen=True)
class _Row:
    """One line of the engine's answer; a missing value is the empty text."""

    group: tuple[str, ...]
    decision: str
    outcome: str
    count: int


def _query(source: Source, columns: Columns, first: int | None = None) -> list[_Row]:
    names = [identifier(column) for column in columns.all]
    table = TABLE
    if first is not None:
        table = f"(SELECT {', '.join(names)} FROM {TABLE} LIMIT {first}) AS head"
    # Numbers become text after grouping, when there are few of them.
    texts = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
    answer = source.fetch(
        f"SELECT {texts}, n FROM (SELECT {', '.join(names)}, COUNT(*) AS n FROM {table} "
        f"GROUP BY {', '.join(names)}) AS counts"
    )
    rows = [
        _Row(tuple(_text(v) for v in group), _text(decision), _text(outcome), int(count))
        for *group, decision, outcome, count in answer
    ]
    return sorted(rows, key=lambda row: (row.group, row.decision, row.outcome))


def _text(value: str | None) -> str:
    return "" if value is None else str(value)


def _is_blank(text: str) -> bool:
    return text.strip() in MISSING


def _cells(columns: Columns, approved: list[_Row], denied: list[_Row], outcome: YesNo) -> Cells:
    counts: dict[str, Counter[str]] = {}
    behind: dict[str, tuple[str, ...]] = {}
    for row in [*approved, *denied]:
        name = name_of(row.group)
        if behind.setdefault(name, row.group) != row.group:
            raise BadData(
                f"columns {shown(columns.groups)}: two groups would both be called {name!r}; "
                "rename a value that contains ' & '"
            )
        counts.setdefault(name, Counter())
    for row in approved:
        positive = row.outcome in outcome.ones
        cell = "approved_positive" if positive else "approved_negative"
        counts[name_of(row.group)][cell] += row.count
    for row in denied:
        counts[name_of(row.group)]["denied"] += row.count
    if len(counts) < 2:
        raise BadData(
            f"column {shown(columns.groups)} must hold at least two groups to compare; "
            f"found only {shown(counts)}"
        )
    return Cells(
        {
            group: GroupCells(c["approved_positive"], c["approved_negative"], c["denied"])
            for group, c in sorted(counts.items())
        }
    )


def _require_few_values(columns: Columns, rows: list[_Row]) -> None:
    groups = {row.group for row in rows}
    if len(groups) > MOST_GROUPS:
        raise BadData(
            f"column {shown(columns.groups)} must hold groups, at most {MOST_GROUPS:,}; found "
            f"more, such as {shown(name_of(g) for g in sorted(groups)[:3])}; is it a number or "
            "an identifier?"
        )
    for column, values in (
        (columns.decision, {row.decision for row in rows}),
        (columns.outcome, {row.outcome for row in rows}),
    ):
        if len(values) > MOST_VALUES:
            raise BadData(
                f"column {column!r} must hold yes/no values; found more than {MOST_VALUES} "
                f"different ones, such as {shown(sorted(values - set(MISSING))[:3])}"
            )


def _require_groups(source: Source, columns: Columns, rows: list[_Row]) -> None:
    for at, column in enumerate(columns.groups):
        nameless = [row for row in rows if row.group[at].strip() in NO_GROUP]
        if nameless:
            where = _where(source, nameless, _is_missing(column, NO_GROUP))
            raise BadData(
                f"column {column!r} must name a group in every row; empty in {where}; "
                "fill it in, name the unknown group, or leave those rows out"
            )


def _require_decisions(source: Source, columns: Columns, rows: list[_Row]) -> None:
    unknown = [row for row in rows if _is_blank(row.decision)]
    if unknown:
        where = _where(source, unknown, _is_missing(columns.decision, MISSING))
        raise BadData(
            f"column {columns.decision!r} must hold a decision in every row; empty in {where}; "
            "fill it in or leave those rows out"
        )


def _require_outcomes(
    source: Source, columns: Columns, decision: YesNo, approved: list[_Row]
) -> None:
    unknown = [row for row in approved if _is_blank(row.outcome)]
    if unknown:
        missing = _is_missing(columns.outcome, MISSING)
        granted = is_one_of(source, columns.decision, decision.ones)
        where = _where(source, unknown, f"{granted} AND {missing}")
        raise BadData(
            f"column {columns.outcome!r} must hold an outcome in every approved row; "
            f"empty in {where}; fill it in or leave those rows out"
        )


def _refuse_denied_outcomes(
    source: Source, columns: Columns, decision: YesNo, labelled: list[_Row]
) -> None:
    missing = _is_missing(columns.outcome, MISSING)
    refused = is_one_of(source, columns.decision, decision.zeros)
    where = _where(source, labelled, f"{refused} AND NOT {missing}")
    raise BadData(
        f"column {columns.outcome!r} must be empty in denied rows, whose outcome nobody sees; "
        f"found {shown(sorted({row.outcome for row in labelled}), 3)} in {where}; "
        "denied_outcomes='ignore' (--denied-outcomes ignore) leaves these outcomes out"
    )


def _is_missing(column: str, texts: Iterable[str]) -> str:
    name = identifier(column)
    known = ", ".join(literal(text) for text in texts)
    return f"({name} IS NULL OR TRIM(CAST({name} AS VARCHAR)) IN ({known}))"


def _where(source: Source, rows: list[_Row], condition: str) -> str:
    """Say how many rows there are and where the first of them stand, counted from 1."""
    count = sum(row.count for row in rows)
    numbers = source.fetch(
        f"SELECT number FROM (SELECT *, ROW_NUMBER() OVER () AS number FROM {TABLE}) AS numbered "
        f"WHERE {condition} LIMIT 3"
    )
    places = ", ".join(f"{number:,}" for (number,) in numbers)
    more = ", …" if count > len(numbers) else ""
    return f"{count:,} row{'s' if count > 1 else ''} (number {places}{more})"
