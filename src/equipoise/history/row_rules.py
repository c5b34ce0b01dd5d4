"""What the rows of a table must be like; others are refused, with where they stand and a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.errors import BadData
from equipoise.history.coding import Columns, name_of
from equipoise.history.row_kinds import Counted, Row, Said, distinct, texts
from equipoise.history.source import Source
from equipoise.history.values import is_missing, key_of, shown, text_of, with_counts

__all__ = [
    "refuse_denied_outcomes",
    "require_clear_names",
    "require_few_values",
    "require_groups",
    "require_outcomes",
    "with_decisions",
]

MOST_GROUPS = 1_000
MOST_VALUES = 100


def require_few_values(columns: Columns, rows: Sequence[Row], said: Said) -> None:
    """Raise if a column holds more values than groups, decisions or outcomes have."""
    groups = {row.groups for row in rows}
    if len(groups) > max(MOST_GROUPS, said.max_groups):
        some = shown(sorted(name_of(map(text_of, g)) for g in groups)[:3])
        raise BadData(
            f"column {shown(columns.groups)} must hold groups, at most {MOST_GROUPS:,}; found "
            f"more, such as {some}; is it a number or an identifier? If these are groups indeed, a "
            "larger max_groups (--max-groups) reads them"
        )
    for column, values in (
        (columns.decision, {text_of(row.decision) for row in rows}),
        (columns.outcome, {text_of(row.outcome) for row in rows}),
    ):
        if len(values) > MOST_VALUES:
            some = shown(sorted(value for value in values if not is_missing(value))[:3])
            raise BadData(
                f"column {column!r} must hold yes/no values; found more than {MOST_VALUES} "
                f"different ones, such as {some}"
            )


def require_clear_names(columns: Columns, rows: Sequence[Row]) -> None:
    """Raise if two groups would have one name."""
    behind: dict[str, tuple[str, ...]] = {}
    for row in rows:
        keys = tuple("" if is_missing(value) else key_of(value) for value in row.groups)
        if behind.setdefault(row.name, keys) != keys:
            raise BadData(
                f"columns {shown(columns.groups)}: two groups would both be called {row.name!r}; "
                "rename a value that contains ' & '"
            )


def require_groups(source: Source, columns: Columns, rows: Sequence[Row]) -> None:
    """Raise if a row names no group."""
    for at, column in enumerate(columns.groups):
        nameless = [row for row in rows if is_missing(row.groups[at])]
        if nameless:
            written = texts((row.groups[at], row.count) for row in nameless)
            where = _where(source, nameless, {column: distinct(r.groups[at] for r in nameless)})
            raise BadData(
                f"column {column!r} must name a group in every row; empty in {where}, written "
                f"{with_counts(written)}; fill it in, or give these people a name of their own: "
                "missing_group='not stated' (--missing-group 'not stated')"
            )


def with_decisions(
    source: Source, columns: Columns, rows: list[Row], said: Said
) -> tuple[list[Row], list[str]]:
    """Return the rows with a decision; refuse the others, or leave them out and say so."""
    unknown = [
        row
        for row in rows
        if not row.random_accept and is_missing(row.decision, said.missing_values)
    ]
    if not unknown:
        return rows, []
    where = _where(source, unknown, {columns.decision: distinct(r.decision for r in unknown)})
    with_outcome = [row for row in unknown if not is_missing(row.outcome, said.missing_values)]
    if with_outcome:
        complete = not any(is_missing(row.outcome, said.missing_values) for row in rows)
        swapped = ", or are the two columns swapped?" if complete else ""
        raise BadData(
            f"column {columns.decision!r} must hold a decision in every row; there is none in "
            f"{where}, although {sum(r.count for r in with_outcome):,} of them have an outcome in "
            f"column {columns.outcome!r}; fill it in{swapped or '; whoever has one was approved'}"
        )
    if not said.leave_out_undecided:
        raise BadData(
            f"column {columns.decision!r} must hold a decision in every row; there is none in "
            f"{where}. Fill it in. If nobody ever decided about these people, as when they "
            "withdrew, they are no past decisions: undecided='leave_out' (--undecided leave_out)"
        )
    written = with_counts(texts((row.decision, row.count) for row in unknown))
    left = [row for row in rows if row not in unknown]
    return left, [f"Column {columns.decision!r}: left out as never decided: {written}."]


def require_outcomes(source: Source, counted: Counted, approved: Sequence[Row]) -> None:
    """Raise if the outcome of somebody approved is not known."""
    unknown = [row for row in approved if counted.outcome_of(row) is None]
    if unknown:
        columns = counted.coding.columns
        where = _where(source, unknown, _of(columns, unknown))
        raise BadData(
            f"column {columns.outcome!r} must hold an outcome in every approved row; "
            f"empty in {where} ({_per_group(approved, unknown)}). To leave these rows out would "
            "bias the answer. unknown='bounds' (--unknown bounds) assumes nothing of them; "
            "unknown='like_known' (--unknown like_known) takes them to be like the known ones of "
            "their group; date= and until= (--date, --until) keep only people old enough for "
            "their outcome to be known, by a rule that does not look at outcomes"
        )


def _per_group(approved: Sequence[Row], unknown: Sequence[Row]) -> str:
    counts = dict.fromkeys(sorted({row.name for row in approved}), 0)
    missing = dict(counts)
    for row in approved:
        counts[row.name] += row.count
    for row in unknown:
        missing[row.name] += row.count
    parts = [f"{name}: {missing[name]:,} of {n:,} approved" for name, n in counts.items()]
    return ", ".join(parts[:8]) + (f" and {len(parts) - 8} more groups" if len(parts) > 8 else "")


def refuse_denied_outcomes(source: Source, counted: Counted, labelled: Sequence[Row]) -> None:
    """Raise, because people who were denied have outcomes."""
    columns, coding = counted.coding.columns, counted.coding
    where = _where(source, labelled, _of(columns, labelled))
    decisions = texts((row.decision, row.count) for row in counted.rows)
    coded = {
        bit: {v: n for v, n in decisions.items() if coding.decision.bit(v) == bit} for bit in (1, 0)
    }
    raise BadData(
        f"column {columns.outcome!r} must be empty in denied rows, whose outcome nobody sees; "
        f"found {shown(sorted({text_of(row.outcome) for row in labelled}), 3)} in {where}. Column "
        f"{columns.decision!r} was read as approved {with_counts(coded[1])}, denied "
        f"{with_counts(coded[0])}. If that is right, denied_outcomes='ignore' "
        "(--denied-outcomes ignore) leaves these outcomes out. If a test programme accepted them "
        "at random, random_accepts=COLUMN (--random-accepts COLUMN) names the column that marks "
        "them, and their outcomes count"
    )


def _of(columns: Columns, rows: Sequence[Row]) -> Mapping[str, Sequence[object]]:
    return {
        columns.decision: distinct(row.decision for row in rows),
        columns.outcome: distinct(row.outcome for row in rows),
    }


def _where(source: Source, rows: Sequence[Row], wanted: Mapping[str, Sequence[object]]) -> str:
    """Say how many rows there are and where the first of them stand."""
    count = sum(row.count for row in rows)
    return f"{count:,} row{'s' if count > 1 else ''}{_numbered(source, wanted)}"


def _numbered(source: Source, wanted: Mapping[str, Sequence[object]]) -> str:
    if not source.ordered:
        return ""
    numbers = source.numbers([wanted], 4)
    places = ", ".join(f"{number:,}" for number in numbers[:3])
    return f" (number {places}{', …' if len(numbers) > 3 else ''})" if numbers else ""
