"""From rows to cells: one GROUP BY in the engine, every rule checked on its short answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData
from equipoise.history.coding import (
    OTHER,
    Coding,
    Columns,
    read_groups,
)
from equipoise.history.row_kinds import Counted, Row, Said, Unknown, texts
from equipoise.history.row_rules import (
    refuse_denied_outcomes,
    require_clear_names,
    require_few_values,
    require_groups,
    require_outcomes,
    with_decisions,
)
from equipoise.history.source import Source
from equipoise.history.values import (
    YesNo,
    is_missing,
    key_of,
    read_yes_no,
    require_used,
    shown,
    text_of,
    with_counts,
)

__all__ = ["count_rows", "tally"]

PEEK = 10_000  # rows looked at before the whole table is grouped


def tally(
    source: Source, columns: Columns, said: Said, has_outcome: Callable[[Row], bool]
) -> tuple[list[Row], Coding, list[str]]:
    """Group a table by its columns and say what every value means.

    Parameters
    ----------
    has_outcome
        Which rows' outcomes are read; those of others are not looked at.
    """
    if not source.once:
        require_few_values(columns, _query(source, columns, first=PEEK), said)
    rows = _query(source, columns)
    if not rows:
        raise BadData(f"{source.name} has no rows")
    require_few_values(columns, rows, said)
    found = [
        texts((row.groups[at], row.count) for row in rows) for at in range(len(columns.groups))
    ]
    if said.missing_group is None:
        require_groups(source, columns, rows)
    grouping, notes = read_groups(
        columns.groups, found, missing_group=said.missing_group, max_groups=said.max_groups
    )
    rows = [replace(row, name=grouping.name(row.groups)) for row in rows]
    require_clear_names(columns, rows)
    names = {row.name for row in rows}
    rows = _mark_random_accepts(columns, rows)
    rows, left_out = with_decisions(source, columns, rows, said)
    gone = sorted(names - {row.name for row in rows})
    if gone:
        left_out.append(f"Nobody was decided about, so that nothing can be said, in {shown(gone)}.")
    folded = _small(rows, names, said.min_group)
    if folded:
        grouping = replace(grouping, folded=tuple(folded))
        rows = [replace(row, name=grouping.name(row.groups)) for row in rows]
        notes.append(
            f"{len(folded)} groups of fewer than {said.min_group} people are counted together as "
            f"{OTHER!r}: {shown(folded)}."
        )
    notes += left_out
    decisions = texts((row.decision, row.count) for row in rows if not row.random_accept)
    decision = read_yes_no("decision", columns.decision, decisions, said.positive, said.negative)
    rows = [
        replace(row, bit=int(decision.bit(row.decision) == 1 and not row.random_accept))
        for row in rows
    ]
    seen = [
        (row.outcome, row.count)
        for row in rows
        if has_outcome(row) and not is_missing(row.outcome, said.missing_values)
    ]
    outcomes = texts(seen)
    outcome = read_yes_no("outcome", columns.outcome, outcomes, said.positive, said.negative)
    require_used(
        said.positive,
        said.negative,
        {"decision": decisions, "outcome": outcomes},
        {"decision": decision, "outcome": outcome},
    )
    notes += _spelling_notes(columns.decision, decisions, decision)
    notes += _spelling_notes(columns.outcome, outcomes, outcome)
    return rows, Coding(columns, grouping, decision, outcome, said.missing_values), notes


def count_rows(
    source: Source,
    columns: Columns,
    said: Said,
    *,
    ignore_denied_outcomes: bool,
    unknown: Unknown = "refuse",
) -> Counted:
    """Count a table's rows per group, decision and outcome, or say which rule it breaks."""
    rows, coding, notes = tally(
        source, columns, said, lambda row: row.bit == 1 or row.random_accept
    )
    nothing = Cells({"": GroupCells(1, 0, 0)})
    counted = Counted(nothing, rows, coding, (), leaves_out=said.leave_out_undecided)
    approved = [row for row in rows if row.bit == 1]
    denied = [row for row in rows if row.bit == 0]
    if unknown == "refuse":
        require_outcomes(source, counted, approved)
    labelled = [
        row
        for row in denied
        if not row.random_accept and not is_missing(row.outcome, said.missing_values)
    ]
    if labelled and not ignore_denied_outcomes:
        refuse_denied_outcomes(source, counted, labelled)
    if labelled:
        notes.append(
            f"Column {columns.outcome!r}: the outcomes of {sum(r.count for r in labelled):,} "
            "denied rows were left out."
        )
    cells = _cells(counted, by_cohort=unknown == "like_known")
    return replace(counted, cells=cells, notes=(*notes, *_unknown_notes(cells, columns)))


def _unknown_notes(cells: Cells, columns: Columns) -> list[str]:
    if not cells.unknown:
        return []
    missing = ", ".join(f"{g} {c.approved_unknown:,g} of {c.approved:,g}" for g, c in cells.items())
    assumed = (
        "nothing is assumed of them"
        if not any(c.cohorts for c in cells.values())
        else "they are taken to be like the known ones of the same group"
        + (f" and {columns.cohort}" if columns.cohort else "")
    )
    return [f"The outcomes of {cells.unknown:,g} approved are not known ({missing}); {assumed}."]


def _cells(counted: Counted, *, by_cohort: bool) -> Cells:
    counts: dict[str, Counter[str]] = {}
    cohorts: dict[str, dict[str, list[int]]] = {}
    for row in counted.rows:
        own = counts.setdefault(row.name, Counter())
        at = {1: 0, 0: 1, None: 2}[
            counted.outcome_of(row) if row.bit or row.random_accept else None
        ]
        if row.bit == 0:
            own["denied"] += row.count
            own[f"random_accepts {at}"] += row.count * row.random_accept
        else:
            own[("approved_positive", "approved_negative", "approved_unknown")[at]] += row.count
            mine = cohorts.setdefault(row.name, {})
            mine.setdefault(key_of(row.cohort), [0, 0, 0])[at] += row.count
    if len(counts) < 2:
        raise BadData(
            f"column {shown(counted.coding.columns.groups)} must hold at least two groups to "
            f"compare; found only {shown(counts)}"
        )
    return Cells(
        {
            group: GroupCells(
                c["approved_positive"],
                c["approved_negative"],
                c["denied"],
                c["approved_unknown"],
                tuple((a, b, u) for a, b, u in cohorts.get(group, {}).values())
                if by_cohort and c["approved_unknown"]
                else (),
                _random_accepts(c),
            )
            for group, c in sorted(counts.items())
        }
    )


def _random_accepts(counts: Counter[str]) -> tuple[float, ...]:
    own = tuple(counts[f"random_accepts {at}"] for at in range(3))
    return own if any(own) else ()


def _mark_random_accepts(columns: Columns, rows: list[Row]) -> list[Row]:
    """Find the people whom a test programme accepted although the policy denied them."""
    if columns.random_accepts is None:
        return rows
    found = texts((r.random_accepts, r.count) for r in rows if not is_missing(r.random_accepts))
    try:
        mark = read_yes_no("decision", columns.random_accepts, found)
    except BadData:
        raise BadData(
            f"column {columns.random_accepts!r} must be 0/1 or true/false, 1 for people whom a "
            f"test programme accepted; found {with_counts(found)}"
        ) from None
    return [replace(row, random_accept=mark.bit(row.random_accepts) == 1) for row in rows]


def _query(source: Source, columns: Columns, first: int | None = None) -> list[Row]:
    rows, groups = [], len(columns.groups)
    for *values, count in source.count(columns.all, first):
        rest = dict(zip(columns.all[groups:], values[groups:], strict=True))
        rows.append(
            Row(
                tuple(values[:groups]),
                rest[columns.decision],
                rest[columns.outcome],
                int(count),
                random_accepts=rest.get(columns.random_accepts or ""),
                cohort=rest.get(columns.cohort or ""),
            )
        )
    return sorted(rows, key=lambda r: tuple(map(text_of, (*r.groups, r.decision, r.outcome))))


def _small(rows: Sequence[Row], names: Iterable[str], least: int) -> list[str]:
    sizes = Counter(dict.fromkeys(names, 0))
    for row in rows:
        sizes[row.name] += row.count
    return sorted(name for name, size in sizes.items() if size < least)


def _spelling_notes(column: str, found: Mapping[str, int], reading: YesNo) -> list[str]:
    """Say which values were taken as which because of blanks and cases."""
    notes = []
    for key in (*reading.ones, *reading.zeros):
        spelled = {value: n for value, n in found.items() if key_of(value) == key}
        usual = max(spelled, key=lambda value: spelled[value]) if spelled else ""
        odd = {value: n for value, n in spelled.items() if value != usual}
        if odd and not key.replace(".", "").isdigit():
            notes.append(
                f"Column {column!r}: {sum(odd.values()):,} rows written {with_counts(odd)} are "
                f"read as {usual.strip()!r}."
            )
    return notes
