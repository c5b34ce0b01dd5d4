"""From rows to cells: a table is counted where it is, and every rule is checked on the counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, UnknownName
from equipoise.history.dates import cut
from equipoise.history.opening import open_table
from equipoise.history.options import Problem, ReadOptions, listed, settle, unknown_column
from equipoise.history.tables import Rows, Table, require_once
from equipoise.history.values import (
    OTHER,
    TURNED,
    Coding,
    Columns,
    Grouping,
    YesNo,
    is_missing,
    key_of,
    labels_of,
    other_spellings,
    read_groups,
    read_yes_no,
    rows,
    shown,
    text_of,
    with_counts,
)

__all__ = ["CountedTable", "Kind", "count_table", "texts"]

PEEK = 10_000  # rows looked at before the whole table is grouped
MOST_KINDS = 200_000  # combinations of values: more are no groups, decisions and outcomes
MOST_COMPARED = 500_000  # rows of a table in which equal rows are looked for
ENOUGH_CELLS = 10  # counts that share a divisor by chance hardly ever


@dataclass(eq=False)
class Kind:
    """Rows with the same values in every column that is counted by, and how many there are."""

    values: tuple[str, ...]
    groups: tuple[str, ...]
    decision: str
    outcome: str
    mark: str
    cohort: str
    count: int
    undecided: bool  # no decision is written
    labelled: bool  # an outcome is written
    group: str = ""
    random_accept: bool = False  # denied, and accepted at random by a test programme
    approved: bool = False
    good: int | None = None  # the outcome, None if it is not known

    @property
    def cell(self) -> int:
        """0 for a good outcome, 1 for a bad one, 2 for one that is not known."""
        return 2 if self.good is None else 1 - self.good


@dataclass(frozen=True)
class CountedTable:
    """A table's kinds of rows, what its values mean, and what is remarkable.

    ``options`` are those that it was read by, ``table`` the rows that were counted.
    """

    table: Table
    options: ReadOptions
    kinds: Sequence[Kind]
    coding: Coding
    notes: tuple[str, ...]

    @property
    def cells(self) -> Cells:
        """The counts per group."""
        groups: dict[str, list[Kind]] = {}
        for kind in self.kinds:
            groups.setdefault(kind.group, []).append(kind)
        if len(groups) < 2:
            raise Problem(
                f"column {shown(self.options.groups)} must hold at least two groups to compare; "
                f"found only {shown(groups)}"
            )
        by_cohort = self.options.unknown == "like_known"
        return Cells({name: _cells(own, by_cohort) for name, own in sorted(groups.items())})


def count_table(source: Any, options: ReadOptions, *, everybody: bool = False) -> CountedTable:
    """Count a table's rows per group, decision and outcome, or say what is to be said of it.

    Parameters
    ----------
    everybody
        Read the outcomes of denied people too, in a table where everybody has one.
    """
    source = os.fspath(source) if isinstance(source, os.PathLike) else source
    tables: dict[str | None, Table] = {}
    counted: dict[Any, tuple[Table, Rows, list[str]]] = {}

    def step(options: ReadOptions) -> CountedTable:
        place = options.encoding
        if place not in tables:
            tables[place] = open_table(source, options)
        table = tables[place]
        _require_columns(table, options)
        asked = (place, options.columns, options.id, options.repeated, options.date)
        if asked not in counted:
            counted[asked] = _count(table, options)
        table, found, notes = counted[asked]
        return _interpret(table, found, options, notes, everybody=everybody)

    return settle(options, source, step)


# -- what is asked of the engine -------------------------------------------------------------------


def _require_columns(table: Table, options: ReadOptions) -> None:
    present = table.columns
    require_once(options.used, present)
    for column in options.used:
        if column not in present:
            raise unknown_column(options, column, present)


def _count(table: Table, options: ReadOptions) -> tuple[Table, Rows, list[str]]:
    """Return the rows that count, their combinations of values, and notes on repetitions."""
    table = cut(table, options)
    notes = []
    if options.id is not None:
        table = _each_once(table, options.id, options)
    _require_few(table.take(options.columns, PEEK).count(options.columns), options, PEEK // 2)
    found = table.count(options.columns, MOST_KINDS)
    if not found:
        raise BadData(f"{table.name} has no rows")
    _require_few(found, options, MOST_KINDS)
    size = sum(int(row[-1]) for row in found)
    if options.id is None and size <= MOST_COMPARED and set(table.columns) - set(options.used):
        with suppress(BadData):  # a column that cannot be compared
            different = table.take(table.columns).count([options.decision])
            if equal := size - sum(int(row[-1]) for row in different):
                notes.append(
                    f"{rows(equal)} equal another one in all columns. Who is there more than once "
                    "counts as often; id= (--id) names the column that tells people apart."
                )
    return table, found, notes


def _require_few(found: Rows, options: ReadOptions, most: int) -> None:
    """Raise if there are so many combinations of values that a column is none of these."""
    if len(found) < most:
        return
    values = {c: len({row[at] for row in found}) for at, c in enumerate(options.columns)}
    column = max(values, key=lambda name: values[name])
    raise BadData(
        f"column {column!r} must hold groups, decisions or outcomes; found {values[column]:,} "
        "different values in the first rows alone; is it a score or an identifier?"
    )


def _each_once(table: Table, name: str, options: ReadOptions) -> Table:
    """Refuse people who are there twice, or count rows once that say the same of a person."""
    again, extra, without = _repeats(table, name)
    if without:
        raise BadData(
            f"column {name!r} must name a person in every row; {rows(without)} have none; fill it "
            "in, or leave 'id' out"
        )
    if not again:
        return table
    if options.repeated == "refuse":
        raise Problem(
            f"column {name!r}: {again:,} people are there more than once ({rows(extra)} too many) "
            "and would count as often; rows that say the same of a person can be counted once",
            repeated="count_once",
        )
    table = table.take([name, *(column for column in options.used if column != name)])
    again, _, _ = _repeats(table, name)
    if again:
        raise BadData(
            f"column {name!r}: the rows of {again:,} people differ in "
            f"{', '.join(column for column in options.used if column != name)}; leave in those "
            "that count"
        )
    return table


def _repeats(table: Table, name: str) -> tuple[int, int, int]:
    """Return how many people are repeated, how many rows are too many, how many have no name."""
    sizes = [(bool(none), int(size), int(n)) for none, size, n in table.sizes(name)]
    again = [(size, n) for none, size, n in sizes if size > 1 and not none]
    without = sum(size for none, size, _ in sizes if none)
    return sum(n for _, n in again), sum((size - 1) * n for size, n in again), without


# -- what the values mean --------------------------------------------------------------------------


def _interpret(
    table: Table, found: Rows, options: ReadOptions, notes: Sequence[str], *, everybody: bool
) -> CountedTable:
    also = tuple(map(key_of, listed(options.missing_values)))
    kinds = _kinds(found, options, also)
    _require_there(options, kinds)
    grouping, own_notes = read_groups(options, [(kind.groups, kind.count) for kind in kinds])
    notes = [*notes, *own_notes]
    for kind in kinds:
        kind.group = grouping.name(kind.groups)
    names = {kind.group for kind in kinds}
    _mark_random_accepts(kinds, options)
    kinds = _decided(kinds, options, notes)
    if gone := sorted(names - {kind.group for kind in kinds}):
        notes.append(f"Nobody was decided about, so that nothing can be said, in {shown(gone)}.")
    grouping = _fold(kinds, grouping, options.min_group, names, notes)

    decision, outcome = _bits(kinds, options, notes, everybody=everybody)
    columns = Columns(options.groups, options.decision, options.outcome)
    coding = Coding(columns, grouping, decision, outcome, also)
    counted = CountedTable(table, options, kinds, coding, tuple(notes))
    if not everybody:
        denied = [kind for kind in kinds if not (kind.approved or kind.random_accept)]
        _require_right_way_round(counted, denied)
        _require_outcomes(counted)
        notes += _denied_outcomes(counted, [kind for kind in denied if kind.labelled])
        notes += _unknown_notes(counted.cells, options) + _suspicions(counted)
    return replace(counted, notes=tuple(notes))


def _kinds(found: Rows, options: ReadOptions, also: Sequence[str]) -> list[Kind]:
    kinds: dict[tuple[str, ...], Kind] = {}
    for *values, n in found:
        written = tuple(map(text_of, values))
        if written in kinds:  # no value may be None, NaN and another type's null
            kinds[written].count += int(n)
            continue
        own = dict(zip(options.columns, written, strict=True))
        marks = own.get(options.random_accepts or "", ""), own.get(options.cohort or "", "")
        groups = tuple(own[name] for name in options.groups)
        decision, outcome = own[options.decision], own[options.outcome]
        without = is_missing(decision, also), not is_missing(outcome, also)
        kinds[written] = Kind(written, groups, decision, outcome, *marks, int(n), *without)
    return sorted(kinds.values(), key=lambda kind: (kind.groups, kind.decision, kind.outcome))


def _bits(
    kinds: Sequence[Kind], options: ReadOptions, notes: list[str], *, everybody: bool
) -> tuple[YesNo, YesNo]:
    """Say of every kind of rows whether it was approved and how it turned out."""
    said = options.positive, options.negative
    known: Counter[str] = Counter()
    for kind in kinds:
        known[key_of(kind.decision)] += kind.count * kind.labelled
    decisions = texts(kinds, "decision", lambda kind: not kind.random_accept)
    decision = read_yes_no("decision", options.decision, decisions, *said, known)
    for kind in kinds:
        kind.approved = decision.bit(kind.decision) == 1 and not kind.random_accept
    seen = [
        kind
        for kind in kinds
        if kind.labelled and (kind.approved or kind.random_accept or everybody)
    ]
    outcomes = texts(seen, "outcome")
    outcome = read_yes_no("outcome", options.outcome, outcomes, *said)
    for kind in seen:
        kind.good = outcome.bit(kind.outcome)
    _require_used(options, [*decisions, *outcomes], [decision, outcome])
    notes += _spelling(options.decision, decisions) + _spelling(options.outcome, outcomes)
    return decision, outcome


def _mark_random_accepts(kinds: Sequence[Kind], options: ReadOptions) -> None:
    """Find the people whom a test programme accepted although the policy denied them."""
    if options.random_accepts is None:
        return
    found = texts(kinds, "mark", lambda kind: not is_missing(kind.mark))
    try:
        mark = read_yes_no("decision", options.random_accepts, found)
    except Problem:
        raise BadData(
            f"column {options.random_accepts!r} must be 0/1 or true/false, 1 for people whom a "
            f"test programme accepted; found {with_counts(found)}"
        ) from None
    for kind in kinds:
        kind.random_accept = mark.bit(kind.mark) == 1


def _decided(kinds: list[Kind], options: ReadOptions, notes: list[str]) -> list[Kind]:
    """Return the rows with a decision; refuse the others, or leave them out and say so."""
    none = [kind for kind in kinds if kind.undecided and not kind.random_accept]
    if not none:
        return kinds
    column = options.decision
    what = f"column {column!r} must hold a decision in every row; there is none in "
    what += rows(_size(none))
    found = [kind for kind in none if kind.labelled]
    if found:
        complete = all(kind.labelled for kind in kinds)
        why = ", or are the two columns swapped?" if complete else "; whoever has one was approved"
        raise Problem(
            f"{what}, although {_size(found):,} of them have an outcome in column "
            f"{options.outcome!r}; fill it in{why}"
        )
    if options.undecided == "refuse":
        raise Problem(
            f"{what}. Fill it in. If nobody ever decided about these people, as when they "
            "withdrew, they are no past decisions",
            undecided="leave_out",
        )
    written = with_counts(texts(none, "decision"))
    notes.append(f"Column {column!r}: left out as never decided: {written}.")
    return [kind for kind in kinds if kind.random_accept or not kind.undecided]


def _fold(
    kinds: Sequence[Kind], grouping: Grouping, least: int, names: set[str], notes: list[str]
) -> Grouping:
    """Count small groups together."""
    sizes = dict.fromkeys(names, 0)
    for kind in kinds:
        sizes[kind.group] += kind.count
    small = tuple(sorted(name for name, size in sizes.items() if size < least))
    if not small:
        return grouping
    for kind in kinds:
        kind.group = grouping.other(kind.group) if kind.group in small else kind.group
    notes.append(
        f"{len(small)} groups of fewer than {least} people are counted together as {OTHER!r}: "
        f"{shown(small)}."
    )
    return replace(grouping, folded=small)


# -- rules -----------------------------------------------------------------------------------------


def _require_there(options: ReadOptions, kinds: Sequence[Kind]) -> None:
    """Raise if a value that was said to mean none is in no column."""
    found = texts(kinds, "decision") | texts(kinds, "outcome")
    keys = {key_of(value) for value in found}
    for value in listed(options.missing_values):
        if key_of(value) not in keys:
            known = {text.strip() for text in found if not is_missing(text)}
            raise Problem(str(UnknownName("value of 'missing_values'", value, sorted(known))))


def _require_used(options: ReadOptions, found: Sequence[str], readings: list[YesNo]) -> None:
    """Raise if a ``positive`` for both columns is in neither, or turns both of them round."""
    turned = all(reading == TURNED for reading in readings)
    for argument in ("positive", "negative"):
        meaning: Any = getattr(options, argument)
        if meaning is None or isinstance(meaning, dict):
            continue
        values = listed(meaning)
        if turned:
            raise Problem(
                f"{argument!r} of {shown(map(str, values))} would turn both columns round; say "
                f"which one, for example {argument}={{'outcome': {values[0]!r}}} (--{argument} "
                f"outcome={values[0]})"
            )
        keys = {key_of(value) for value in values}
        if argument == "positive" and not any(keys & {*r.ones, *r.zeros} for r in readings):
            said = ", ".join(map(str, values))
            raise Problem(str(UnknownName("value of 'positive'", said, dict.fromkeys(found))))


def _require_right_way_round(counted: CountedTable, denied: Sequence[Kind]) -> None:
    """Raise if outcomes are known of most of the denied and few of the approved: swapped."""
    options = counted.options
    for meaning in (options.positive, options.negative):
        if meaning is not None and (not isinstance(meaning, dict) or "decision" in meaning):
            return
    approved = [kind for kind in counted.kinds if kind.approved]
    known, labelled = (_size(k for k in own if k.labelled) for own in (approved, denied))
    if 2 * known >= _size(approved) or _size(denied) >= 2 * labelled:
        return
    values = texts(denied, "decision")
    ones = sorted({key_of(value) for value in values})
    raise Problem(
        f"column {options.decision!r} seems to be the other way round: outcomes are known mostly "
        f"where it is {shown(values)}, which was read as denied",
        positive={"decision": ones[0] if len(ones) == 1 else ones},
    )


def _require_outcomes(counted: CountedTable) -> None:
    """Raise if the outcome of somebody approved is not known and nobody said what to do."""
    approved = [kind for kind in counted.kinds if kind.approved]
    unknown = [kind for kind in approved if kind.good is None]
    if not unknown or counted.options.unknown != "refuse":
        return
    all_of, none_of = texts(approved, "group"), texts(unknown, "group")
    parts = [f"{g}: {none_of.get(g, 0):,} of {n:,} approved" for g, n in sorted(all_of.items())]
    many = f" and {len(parts) - 8} more groups" if len(parts) > 8 else ""
    raise Problem(
        f"column {counted.options.outcome!r} must hold an outcome in every approved row; empty in "
        f"{rows(_size(unknown))} ({', '.join(parts[:8])}{many}). To leave these rows out would "
        "bias the answer. A choice: unknown='like_known' (--unknown like_known) takes them to be "
        "like the known ones of their group; date= and until= (--date, --until) keep only people "
        "old enough for their outcome to be known, by a rule that does not look at outcomes; or "
        "nothing is assumed of them",
        unknown="bounds",
    )


def _denied_outcomes(counted: CountedTable, labelled: Sequence[Kind]) -> list[str]:
    if not labelled:
        return []
    options, size = counted.options, _size(labelled)
    if options.denied_outcomes == "error":
        approved = with_counts(texts(counted.kinds, "decision", lambda kind: kind.approved))
        denied = with_counts(texts(counted.kinds, "decision", lambda kind: not kind.approved))
        raise Problem(
            f"column {options.outcome!r} must be empty in denied rows, whose outcome nobody sees; "
            f"found {shown(sorted({kind.outcome for kind in labelled}), 3)} in {rows(size)}. "
            f"Column {options.decision!r} was read as approved {approved}, denied {denied}. If a "
            "test programme accepted them at random, random_accepts=COLUMN (--random-accepts "
            "COLUMN) names the column that marks them, and their outcomes count. Or these outcomes "
            "are left out",
            denied_outcomes="ignore",
        )
    return [f"Column {options.outcome!r}: the outcomes of {size:,} denied rows were left out."]


# -- notes and cells -------------------------------------------------------------------------------


def _unknown_notes(cells: Cells, options: ReadOptions) -> list[str]:
    if not cells.unknown:
        return []
    missing = ", ".join(f"{g} {c.approved_unknown:,g} of {c.approved:,g}" for g, c in cells.items())
    assumed = "nothing is assumed of them"
    if options.unknown == "like_known":
        same = f" and {options.cohort}" if options.cohort else ""
        assumed = f"they are taken to be like the known ones of the same group{same}"
    return [f"The outcomes of {cells.unknown:,g} approved are not known ({missing}); {assumed}."]


def _suspicions(counted: CountedTable) -> list[str]:
    """Say what looks like people who were counted several times, or outcomes read upside down."""
    cells, outcome = counted.cells, counted.coding.outcome
    counts = [int(n) for c in cells.values() for n in c.counts.values() if n]
    notes, shared = [], gcd(*counts)
    if len(counts) >= ENOUGH_CELLS and shared > 1:
        notes.append(
            f"Warning: all {len(counts)} counts are multiples of {shared}. If everybody is there "
            f"{shared} times, the data seem {shared} times as large as they are and the guarantee "
            "is lost: id= (--id) names the column that tells people apart."
        )
    worse = [g for g, c in cells.items() if c.approved_positive < c.approved_negative]
    if worse and outcome.zeros:
        zero = outcome.zeros[0]
        turn = f"positive={{'outcome': {zero!r}}} (--positive outcome={zero})"
        notes.append(
            f"Warning: in {shown(worse)} fewer approved people had the good outcome than the bad "
            f"one. If column {counted.options.outcome!r} says what went wrong, turn it: {turn}."
        )
    return notes


def _spelling(column: str, found: dict[str, int]) -> list[str]:
    """Say which values were taken as which because of blanks and cases."""
    words = {value: n for value, n in found.items() if not key_of(value).replace(".", "").isdigit()}
    return [
        f"Column {column!r}: {rows(sum(own.values()))} written {with_counts(own)} are read as "
        f"{label!r}."
        for label, own in other_spellings(words, labels_of(words)).items()
    ]


def _cells(kinds: Sequence[Kind], by_cohort: bool) -> GroupCells:
    approved, accepted = [0, 0, 0], [0, 0, 0]
    cohorts: dict[str, list[int]] = {}
    for kind in kinds:
        if kind.approved:
            approved[kind.cell] += kind.count
            cohorts.setdefault(key_of(kind.cohort), [0, 0, 0])[kind.cell] += kind.count
        elif kind.random_accept:
            accepted[kind.cell] += kind.count
    return GroupCells(
        approved[0],
        approved[1],
        _size(kind for kind in kinds if not kind.approved),
        approved[2],
        tuple((a, b, u) for a, b, u in cohorts.values()) if by_cohort and approved[2] else (),
        tuple(accepted) if any(accepted) else (),
    )


def texts(
    kinds: Iterable[Kind], role: str, where: Callable[[Kind], bool] = lambda kind: True
) -> dict[str, int]:
    """Return the values of a column in some kinds of rows, with their numbers of rows."""
    counts: Counter[str] = Counter()
    for kind in kinds:
        if where(kind):
            counts[getattr(kind, role)] += kind.count
    return dict(counts)


def _size(kinds: Iterable[Kind]) -> int:
    return sum(kind.count for kind in kinds)
