"""From rows to cells: one GROUP BY in the engine, every rule checked on its short answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput
from equipoise.history.coding import (
    MOST_VALUES_OF_A_GROUP,
    OTHER,
    Coding,
    Columns,
    name_of,
    read_groups,
)
from equipoise.history.source import Condition, Source
from equipoise.history.values import (
    Meaning,
    YesNo,
    is_missing,
    key_of,
    read_yes_no,
    require_meaning,
    require_used,
    shown,
    text_of,
    with_counts,
)

__all__ = ["Counted", "Row", "Said", "Unknown", "count_rows", "tally"]

MOST_GROUPS = 1_000
MOST_VALUES = 100
Unknown = Literal["refuse", "bounds", "like_known"]
"""What to do with approved people whose outcome is not known."""

Box = tuple[tuple[object, ...], ...]
"""Values per column, each of which may stand beside each."""

PEEK = 10_000  # rows looked at before the whole table is grouped


@dataclass(frozen=True)
class Said:
    """What the reader says about the values: see :meth:`equipoise.History.read`."""

    positive: Meaning = None
    negative: Meaning = None
    missing_values: tuple[str, ...] = ()
    missing_group: str | None = None
    min_group: int = 0
    max_groups: int = MOST_VALUES_OF_A_GROUP
    leave_out_undecided: bool = False

    def __post_init__(self) -> None:
        require_meaning("positive", self.positive)
        require_meaning("negative", self.negative)
        for name, value, least in (
            ("min_group", self.min_group, 0),
            ("max_groups", self.max_groups, 2),
        ):
            if not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name!r} must be a whole number >= {least}; got {value!r}")
        object.__setattr__(self, "missing_values", tuple(key_of(v) for v in self.missing_values))


@dataclass(frozen=True)
class Row:
    """Rows with the same values in every column, and how many there are."""

    groups: tuple[object, ...]
    decision: object
    outcome: object
    count: int
    explored: object = None
    cohort: object = None
    name: str = ""
    bit: int = -1  # of the decision: what the policy said
    tested: bool = False  # accepted by a test programme all the same

    def values(self, columns: Columns) -> dict[str, object]:
        """Return the values by column."""
        marks = {} if columns.explored is None else {columns.explored: self.explored}
        groups = dict(zip(columns.groups, self.groups, strict=True))
        return groups | {columns.decision: self.decision, columns.outcome: self.outcome} | marks


@dataclass(frozen=True)
class Counted:
    """The cells, what the values mean, and what was decided while reading."""

    cells: Cells
    rows: Sequence[Row]
    coding: Coding
    notes: tuple[str, ...]
    leaves_out: bool = False  # rows of the table that nobody decided about

    @property
    def decided(self) -> Condition:
        """The values by which an engine finds the rows that count."""
        return self._found(self.rows)

    def values_of(self, group: str) -> Condition:
        """Return the values by which an engine finds the rows of a group."""
        own = [row for row in self.rows if row.name == group]
        return self._found(own, *self.coding.columns.groups)

    def successes(self, group: str, outcome: int) -> Condition:
        """Return the values by which an engine finds the group's approved with an outcome."""
        columns = self.coding.columns
        own = [row for row in self.rows if row.name == group and row.bit == 1]
        hits = [row for row in own if self.outcome_of(row) == outcome]
        marks = () if columns.explored is None else (columns.explored,)
        return self._found(hits, *columns.groups, columns.decision, columns.outcome, *marks)

    def _found(self, rows: Iterable[Row], *wanted: str) -> Condition:
        columns = self.coding.columns
        if self.leaves_out:
            marks = () if columns.explored is None else (columns.explored,)
            wanted = tuple(dict.fromkeys((*wanted, columns.decision, *marks)))
        found = [row.values(columns) for row in rows]
        boxes = _boxes([tuple(values[column] for column in wanted) for values in found])
        return [dict(zip(wanted, box, strict=True)) for box in boxes]

    def outcome_of(self, row: Row) -> int | None:
        """Return what a row's outcome means, None if it is not known."""
        if is_missing(row.outcome, self.coding.missing_values):
            return None
        return self.coding.outcome.bit(row.outcome)


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
        _require_few_values(columns, _query(source, columns, first=PEEK), said)
    rows = _query(source, columns)
    if not rows:
        raise BadData(f"{source.name} has no rows")
    _require_few_values(columns, rows, said)
    found = [
        _texts((row.groups[at], row.count) for row in rows) for at in range(len(columns.groups))
    ]
    if said.missing_group is None:
        _require_groups(source, columns, rows)
    grouping, notes = read_groups(
        columns.groups, found, missing_group=said.missing_group, max_groups=said.max_groups
    )
    rows = [replace(row, name=grouping.name(row.groups)) for row in rows]
    _require_clear_names(columns, rows)
    names = {row.name for row in rows}
    rows = _mark_explored(columns, rows)
    rows, left_out = _with_decisions(source, columns, rows, said)
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
    decisions = _texts((row.decision, row.count) for row in rows if not row.tested)
    decision = read_yes_no("decision", columns.decision, decisions, said.positive, said.negative)
    rows = [
        replace(row, bit=int(decision.bit(row.decision) == 1 and not row.tested)) for row in rows
    ]
    seen = [
        (row.outcome, row.count)
        for row in rows
        if has_outcome(row) and not is_missing(row.outcome, said.missing_values)
    ]
    outcomes = _texts(seen)
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
    rows, coding, notes = tally(source, columns, said, lambda row: row.bit == 1 or row.tested)
    nothing = Cells({"": GroupCells(1, 0, 0)})
    counted = Counted(nothing, rows, coding, (), leaves_out=said.leave_out_undecided)
    approved = [row for row in rows if row.bit == 1]
    denied = [row for row in rows if row.bit == 0]
    if unknown == "refuse":
        _require_outcomes(source, counted, approved)
    labelled = [
        row for row in denied if not row.tested and not is_missing(row.outcome, said.missing_values)
    ]
    if labelled and not ignore_denied_outcomes:
        _refuse_denied_outcomes(source, counted, labelled)
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
        at = {1: 0, 0: 1, None: 2}[counted.outcome_of(row) if row.bit or row.tested else None]
        if row.bit == 0:
            own["denied"] += row.count
            own[f"explored {at}"] += row.count * row.tested
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
                _explored(c),
            )
            for group, c in sorted(counts.items())
        }
    )


def _explored(counts: Counter[str]) -> tuple[float, ...]:
    own = tuple(counts[f"explored {at}"] for at in range(3))
    return own if any(own) else ()


def _mark_explored(columns: Columns, rows: list[Row]) -> list[Row]:
    """Find the people whom a test programme accepted although the policy denied them."""
    if columns.explored is None:
        return rows
    found = _texts((r.explored, r.count) for r in rows if not is_missing(r.explored))
    try:
        mark = read_yes_no("decision", columns.explored, found)
    except BadData:
        raise BadData(
            f"column {columns.explored!r} must be 0/1 or true/false, 1 for people whom a test "
            f"programme accepted; found {with_counts(found)}"
        ) from None
    return [replace(row, tested=mark.bit(row.explored) == 1) for row in rows]


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
                explored=rest.get(columns.explored or ""),
                cohort=rest.get(columns.cohort or ""),
            )
        )
    return sorted(rows, key=lambda r: tuple(map(text_of, (*r.groups, r.decision, r.outcome))))


def _boxes(combinations: Sequence[tuple[object, ...]]) -> list[Box]:
    """Return sets of values, one per column, whose products make up exactly the combinations.

    Examples
    --------
    >>> _boxes([("A", "M"), ("B", "F"), ("A", "F")])
    [(('A',), ('M', 'F')), (('B',), ('F',))]
    """
    boxes: list[Box] = [
        tuple((value,) for value in values) for values in dict.fromkeys(combinations)
    ]
    for at in reversed(range(len(boxes[0]) if boxes else 0)):
        merged: dict[Box, list[object]] = {}
        for box in boxes:
            merged.setdefault((*box[:at], *box[at + 1 :]), []).extend(box[at])
        boxes = [(*rest[:at], tuple(own), *rest[at:]) for rest, own in merged.items()]
    return boxes


def _distinct(values: Iterable[object]) -> list[object]:
    return list(dict.fromkeys(values))


def _texts(values: Iterable[tuple[object, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for value, count in values:
        counts[text_of(value)] += count
    return dict(counts)


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


def _require_few_values(columns: Columns, rows: Sequence[Row], said: Said) -> None:
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


def _require_clear_names(columns: Columns, rows: Sequence[Row]) -> None:
    behind: dict[str, tuple[str, ...]] = {}
    for row in rows:
        keys = tuple("" if is_missing(value) else key_of(value) for value in row.groups)
        if behind.setdefault(row.name, keys) != keys:
            raise BadData(
                f"columns {shown(columns.groups)}: two groups would both be called {row.name!r}; "
                "rename a value that contains ' & '"
            )


def _require_groups(source: Source, columns: Columns, rows: Sequence[Row]) -> None:
    for at, column in enumerate(columns.groups):
        nameless = [row for row in rows if is_missing(row.groups[at])]
        if nameless:
            written = _texts((row.groups[at], row.count) for row in nameless)
            where = _where(source, nameless, {column: _distinct(r.groups[at] for r in nameless)})
            raise BadData(
                f"column {column!r} must name a group in every row; empty in {where}, written "
                f"{with_counts(written)}; fill it in, or give these people a name of their own: "
                "missing_group='not stated' (--missing-group 'not stated')"
            )


def _with_decisions(
    source: Source, columns: Columns, rows: list[Row], said: Said
) -> tuple[list[Row], list[str]]:
    """Return the rows with a decision; refuse the others, or leave them out and say so."""
    unknown = [
        row for row in rows if not row.tested and is_missing(row.decision, said.missing_values)
    ]
    if not unknown:
        return rows, []
    where = _where(source, unknown, {columns.decision: _distinct(r.decision for r in unknown)})
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
    written = with_counts(_texts((row.decision, row.count) for row in unknown))
    left = [row for row in rows if row not in unknown]
    return left, [f"Column {columns.decision!r}: left out as never decided: {written}."]


def _require_outcomes(source: Source, counted: Counted, approved: Sequence[Row]) -> None:
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


def _refuse_denied_outcomes(source: Source, counted: Counted, labelled: Sequence[Row]) -> None:
    columns, coding = counted.coding.columns, counted.coding
    where = _where(source, labelled, _of(columns, labelled))
    decisions = _texts((row.decision, row.count) for row in counted.rows)
    coded = {
        bit: {v: n for v, n in decisions.items() if coding.decision.bit(v) == bit} for bit in (1, 0)
    }
    raise BadData(
        f"column {columns.outcome!r} must be empty in denied rows, whose outcome nobody sees; "
        f"found {shown(sorted({text_of(row.outcome) for row in labelled}), 3)} in {where}. Column "
        f"{columns.decision!r} was read as approved {with_counts(coded[1])}, denied "
        f"{with_counts(coded[0])}. If that is right, denied_outcomes='ignore' "
        "(--denied-outcomes ignore) leaves these outcomes out. If a test programme accepted them "
        "at random, explored=COLUMN (--explored COLUMN) names the column that marks them, and "
        "their outcomes count"
    )


def _of(columns: Columns, rows: Sequence[Row]) -> Mapping[str, Sequence[object]]:
    return {
        columns.decision: _distinct(row.decision for row in rows),
        columns.outcome: _distinct(row.outcome for row in rows),
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
