"""From rows to cells: a table is counted where it is, and every rule is checked on the counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

from equipoise.cells import Cells, Decider, GroupCells
from equipoise.comparison import WITHIN
from equipoise.errors import BadData, InvalidInput, UnknownName, few_of
from equipoise.history.coding import AND, Coding, Grouping, YesNo
from equipoise.history.dates import cut_period
from equipoise.history.history import History, ReadSummary
from equipoise.history.meanings import NOTHING_WORDS, read_yes_no
from equipoise.history.options import MEANINGS, ROLES, ReadOptions, as_tuple, unwrap_single
from equipoise.history.problems import Problem, read_with_fixes
from equipoise.history.sources import open_table
from equipoise.history.tables import Rows, Table, require_once
from equipoise.history.values import (
    STANDARD_BITS,
    choose_labels,
    is_missing,
    key_of,
    list_values,
    list_with_counts,
    require_single_values,
    rows_text,
    spelling_notes,
    tally,
    text_of,
)

FIRST_LOOK_ROWS = 10_000  # rows looked at before the whole table is grouped
MAX_COMBINATIONS = 200_000  # combinations of values: more are no groups, decisions and outcomes
MAX_ROWS_TO_COMPARE = 500_000  # rows of a table in which equal rows are looked for


@dataclass(eq=False)
class RowCombination:
    """The rows with the same value in each column that rows are counted by."""

    values: Mapping[str, str]  # column -> what is written in it
    decision: str
    outcome: str
    count: int
    undecided: bool  # no decision is written
    labelled: bool  # an outcome is written
    group: str = ""
    random_accept: bool = False  # denied, and accepted at random by a test programme
    approved: bool = False
    good: int | None = None  # the outcome, None if it is not known


RowCombinations = Sequence[RowCombination]


@dataclass(frozen=True)
class CountedTable:
    """A table as it was read."""

    table: Table  # the rows that were counted
    options: ReadOptions
    kinds: RowCombinations
    past: History  # the counts


def count_table(
    source: Any, options: ReadOptions, *, denied_outcomes_known: bool = False
) -> CountedTable:
    """Count a table's rows per group, decision and outcome; raise if a rule is broken.

    With ``denied_outcomes_known`` the denied people's outcomes are known as well, and these people
    count as random accepts.
    """
    table = open_table(source, options)
    require_once(options.used, table.columns)
    for column in options.used:
        if column not in table.columns:
            raise UnknownName("column", column, table.columns)
    counted: dict[str, tuple[Table, Rows, list[str]]] = {}

    def step(options: ReadOptions) -> CountedTable:
        how = options.repeated  # the only remedy for which the engine has to count again
        if how not in counted:
            counted[how] = _count(table, options)
        return _interpret(*counted[how], options, denied_outcomes_known=denied_outcomes_known)

    return read_with_fixes(options, source, step)


# -- what is asked of the engine -------------------------------------------------------------------


def _count(table: Table, options: ReadOptions) -> tuple[Table, Rows, list[str]]:
    """Return the rows that count, their combinations of values, and notes on repetitions."""
    table = _each_once(cut_period(table, options), options)
    notes = []
    # A few rows first: they show a column of identifiers before the engine groups by it.
    for some, most in (
        (table.take(options.columns, FIRST_LOOK_ROWS), FIRST_LOOK_ROWS // 2),
        (table, MAX_COMBINATIONS),
    ):
        found = some.count(options.columns, MAX_COMBINATIONS)
        columns = dict(zip(options.columns, zip(*found, strict=True), strict=False))
        for column, values in columns.items():
            require_single_values(column, values)
        if len(found) >= most:
            sizes = {column: len(set(values)) for column, values in columns.items()}
            column = max(sizes, key=lambda name: sizes[name])
            raise BadData(
                f"column {column!r} must hold groups, decisions or outcomes; found at least "
                f"{sizes[column]:,} different values; is it a score or an identifier?"
            )
    if not found:
        raise BadData(f"{table.name} has no rows")
    size = sum(int(row[-1]) for row in found)
    if (
        options.id is None
        and size <= MAX_ROWS_TO_COMPARE
        and set(table.columns) - set(options.used)
    ):
        with suppress(BadData):  # a column that cannot be compared
            different = table.take(table.columns).count([options.decision])
            if equal := size - sum(int(row[-1]) for row in different):
                notes.append(
                    f"{rows_text(equal)} equal another one in all columns. Who is there more than "
                    "once counts as often; id= (--id) names the column that tells people apart."
                )
    return table, found, notes


def _each_once(table: Table, options: ReadOptions) -> Table:
    """Return one row per person: repeated people are refused, or counted once if they agree."""
    name = options.id
    if name is None:
        return table
    without, again = table.missing_and_repeated(name)
    if without:
        raise BadData(
            f"column {name!r} must name a person in every row; {rows_text(without)} have none; "
            "fill it in, or leave 'id' out"
        )
    if not again:
        return table
    if options.repeated == "refuse":
        raise Problem(
            f"column {name!r}: people are there more than once ({rows_text(again)} too many) and "
            "would count as often; rows that say the same of a person can be counted once",
            repeated="count_once",
        )
    others = [column for column in options.used if column != name]
    table = table.take([name, *others])
    _, again = table.missing_and_repeated(name)
    if again:
        raise BadData(
            f"column {name!r}: rows of the same people differ in {', '.join(others)} "
            f"({rows_text(again)} too many); leave in those that count"
        )
    return table


# -- what the values mean --------------------------------------------------------------------------


def _interpret(
    table: Table,
    found: Rows,
    notes: Sequence[str],
    options: ReadOptions,
    *,
    denied_outcomes_known: bool,
) -> CountedTable:
    """Read what the values mean, check every rule, and sum up the counts."""
    missing, notes = tuple(map(key_of, as_tuple(options.missing_values))), [*notes]
    every = []
    counts = tally((tuple(map(text_of, values)), int(n)) for *values, n in found)
    for written, n in sorted(counts.items()):
        own = dict(zip(options.columns, written, strict=True))
        main = own[options.decision], own[options.outcome]
        undecided, unlabelled = (is_missing(value, missing) for value in main)
        every.append(RowCombination(own, *main, n, undecided, not unlabelled))
    _require_words(every, options)
    grouping = _name_groups(every, options, notes)
    kinds = _require_decisions(every, options, notes)
    decision, outcome = _read_bits(
        kinds, options, notes, denied_outcomes_known=denied_outcomes_known
    )
    check_outcomes_fit_decisions(kinds, options, notes)
    groups = _split(kinds, [kind.group for kind in kinds])
    if len(groups) < 2:
        raise Problem(
            f"column {list_values(options.groups)} must hold at least two groups to compare; "
            f"found only {list_values(groups)}"
        )
    cells = Cells({name: _group_cells(own, options) for name, own in groups.items()})
    notes += _notes_on_outcomes(cells, outcome, options)
    columns = {"group": options.groups} | {role: (getattr(options, role),) for role in ROLES}
    past = History(
        cells,
        seed=options.seed,
        deciders=_deciders(kinds, groups, options),
        attributes=_by_attribute(kinds, options, grouping),
        notes=tuple(notes),
        coding=Coding(columns, grouping, decision, outcome, missing),
        summary=_summary(table, kinds, options),
    )
    return CountedTable(table, options, kinds, past)


def _require_words(kinds: RowCombinations, options: ReadOptions) -> None:
    """Raise if an option names values that neither column has; 0 and 1 are always understood."""
    texts = {role: [*_values(kinds, role)] for role in ROLES}
    every = [*texts["decision"], *texts["outcome"]]
    named: list[tuple[str, tuple[Any, ...], list[str]]] = []
    if options.date is None:  # a period may lack a word that the table has
        named += [("'missing_values'", (one,), every) for one in as_tuple(options.missing_values)]
    for argument, role in product(MEANINGS, ROLES):
        what = f"{argument!r} for column {getattr(options, role)!r}"
        named.append((what, options.said(argument, role), texts[role]))
    for what, said, likely in named:
        if said and {*map(key_of, said)}.isdisjoint({*map(key_of, every), *STANDARD_BITS}):
            known = sorted({value.strip() for value in likely if not is_missing(value)})
            name = ", ".join(map(text_of, said))
            raise Problem(str(UnknownName(f"value of {what}", name, known)))


def _name_groups(kinds: RowCombinations, options: ReadOptions, notes: list[str]) -> Grouping:
    """Name the groups: spellings that differ in blanks and cases alone are one."""
    labels, name = [], options.missing_group
    for column in options.groups:
        values = tally((kind.values[column], kind.count) for kind in kinds)
        missing = {value: n for value, n in values.items() if is_missing(value)}
        there = {value: n for value, n in values.items() if value not in missing}
        own = choose_labels(there)
        labels.append(own)
        if len(own) > options.max_groups:
            raise Problem(
                f"column {column!r} must hold groups; found {len(own):,} different values, "
                f"such as {list_values([*own.values()][:3])}; is it a score or an identifier? If "
                "these are groups indeed",
                max_groups=len(own),
            )
        notes += spelling_notes(column, there)
        count = rows_text(sum(missing.values()))
        if missing and name == "refuse":
            raise Problem(
                f"column {column!r} must name a group in every row; empty in {count}, written "
                f"{list_with_counts(missing)}; fill it in, or give these people a name of their "
                "own",
                missing_group="not stated",
            )
        if missing and key_of(name) in own:
            raise InvalidInput(
                f"'missing_group' {name!r} is a group in column {column!r}; choose another name"
            )
        if missing:
            alone = as_tuple(options.group) == (column,)  # else it is part of a group's name
            notes.append(
                f"Column {column!r}: {count} without a group are called {name!r}, a name like any "
                "other; a question may count them and not compare them "
                f"(--leave-out {repr(name) if alone else 'GROUP'})."
            )
    strata = len(as_tuple(options.within))
    grouping = Grouping(tuple(labels), None if name == "refuse" else name, strata=strata)
    behind: dict[str, tuple[str, ...]] = {}
    for kind in kinds:
        written = [kind.values[column] for column in options.groups]
        keys = tuple("" if is_missing(value) else key_of(value) for value in written)
        kind.group = grouping.group_name(written)
        alone = behind.setdefault(kind.group, keys) == keys
        if not alone or (strata and kind.group.count(WITHIN) > 1):
            raise Problem(
                f"columns {list_values(options.groups)}: two groups may be called {kind.group!r}; "
                f"rename the value that contains {AND!r} or {WITHIN!r}"
            )
    return grouping


def _require_decisions(
    kinds: list[RowCombination], options: ReadOptions, notes: list[str]
) -> list[RowCombination]:
    """Return the rows with a decision; refuse the others, or leave them out and say so.

    Whom a test programme accepted the policy had denied: these rows need no decision.
    """
    for kind in kinds if (mark := options.random_accepts or "") else ():
        value = kind.values[mark]
        if not is_missing(value) and key_of(value) not in STANDARD_BITS:
            raise Problem(
                f"column {mark!r} must be 0/1 or true/false, 1 for people whom a test programme "
                f"accepted; found {value!r}: write 1 for them, 0 for everybody else"
            )
        kind.random_accept = key_of(value) == "1"
    none = [kind for kind in kinds if kind.undecided and not kind.random_accept]
    if not none:
        return kinds
    column, size = options.decision, rows_text(_size(none))
    what = f"column {column!r} must hold a decision in every row; there is none in {size}"
    if labelled := [kind for kind in none if kind.labelled]:
        words = choose_labels(_values(labelled, "outcome"))
        clear = all(re.fullmatch(NOTHING_WORDS, key) for key in words)
        have = "has" if _size(labelled) == 1 else "have"
        raise Problem(
            f"{what}, although {_size(labelled):,} of them {have} an outcome in column "
            f"{options.outcome!r} ({list_values(words.values())}); fill it in (whoever has one was "
            "approved), or are the two columns swapped? missing_values= (--missing-value) "
            "names words that mean no outcome",
            **{"missing_values": [*words.values()]} if clear else {},
        )
    if options.undecided == "refuse":
        raise Problem(
            f"{what}. Fill it in. If nobody ever decided about these people, as when they "
            "withdrew, they are no past decisions",
            undecided="leave_out",
        )
    written = list_with_counts(_values(none, "decision"))
    notes.append(f"Column {column!r}: left out as never decided: {written}.")
    kept = [kind for kind in kinds if kind.random_accept or not kind.undecided]
    if gone := sorted({kind.group for kind in kinds} - {kind.group for kind in kept}):
        notes.append(
            f"Nobody was decided about, so that nothing can be said, in {list_values(gone)}."
        )
    return kept


def _read_bits(
    kinds: RowCombinations, options: ReadOptions, notes: list[str], *, denied_outcomes_known: bool
) -> tuple[YesNo, YesNo]:
    """Fill in which rows were approved and how they turned out; return what the values mean."""
    known = tally((key_of(kind.decision), kind.count * kind.labelled) for kind in kinds)
    decisions = _values((kind for kind in kinds if not kind.random_accept), "decision")
    decision = read_yes_no("decision", options, decisions, known)
    for kind in kinds:
        kind.approved = decision.bit_of(kind.decision) == 1 and not kind.random_accept
        kind.random_accept |= denied_outcomes_known and not kind.approved
    seen = [kind for kind in kinds if kind.labelled and (kind.approved or kind.random_accept)]
    outcomes = _values(seen, "outcome")
    outcome = read_yes_no("outcome", options, outcomes, {})
    for kind in seen:
        kind.good = outcome.bit_of(kind.outcome)
    notes += spelling_notes(options.decision, decisions) + spelling_notes(options.outcome, outcomes)
    return decision, outcome


# -- rules, notes and cells ------------------------------------------------------------------------


def check_outcomes_fit_decisions(
    kinds: RowCombinations, options: ReadOptions, notes: list[str]
) -> None:
    """Raise unless outcomes are known of the approved alone, or the options say what to do."""
    approved = [kind for kind in kinds if kind.approved]
    denied = [kind for kind in kinds if not (kind.approved or kind.random_accept)]
    unknown = [kind for kind in approved if kind.good is None]
    labelled = [kind for kind in denied if kind.labelled]
    size, none = _size(labelled), _size(unknown)
    said = any(options.said(argument, "decision") for argument in MEANINGS)
    if not said and 10 * none > 9 * _size(approved) and _size(denied) < 2 * size:
        values = _values(denied, "decision")
        raise Problem(
            f"column {options.decision!r} seems to be the other way round: outcomes are known "
            f"mostly where it is {list_values(values)}, which was read as denied",
            positive={"decision": sorted({key_of(value) for value in values})},
        )
    if unknown and options.unknown == "refuse":
        all_of, none_of = _values(approved, "group"), _values(unknown, "group")
        parts = [f"{g}: {none_of.get(g, 0):,} of {n:,} approved" for g, n in sorted(all_of.items())]
        raise Problem(
            f"column {options.outcome!r} must hold an outcome in every approved row; empty in "
            f"{rows_text(none)} ({few_of(parts)}). To leave these rows out would bias the answer. "
            "Choose one: unknown='like_known' (--unknown like_known) takes them to be like the "
            "known ones of their group; date= and until= (--date, --until) keep only people old "
            "enough for their outcome to be known, by a rule that does not look at outcomes; or "
            "nothing is assumed of them",
            unknown="bounds",
        )
    if labelled and options.denied_outcomes == "error":
        yes = list_with_counts(_values(approved, "decision"))
        no = list_with_counts(_values((kind for kind in kinds if not kind.approved), "decision"))
        raise Problem(
            f"column {options.outcome!r} must be empty in denied rows, whose outcome nobody sees; "
            f"found {list_values(_values(labelled, 'outcome'), 3)} in {rows_text(size)}. "
            f"Column {options.decision!r} was read as approved {yes}, denied {no}. If a "
            "test programme accepted them at random, random_accepts=COLUMN (--random-accepts "
            "COLUMN) names the column that marks them, and their outcomes count. Or these outcomes "
            "are left out",
            denied_outcomes="ignore",
        )
    if labelled:
        column = options.outcome
        notes.append(f"Column {column!r}: the outcomes of {size:,} denied rows were left out.")


def _notes_on_outcomes(cells: Cells, outcome: YesNo, options: ReadOptions) -> list[str]:
    """Say whose outcome is not known, and where good and bad outcomes may have been swapped."""
    notes = []
    if cells.unknown:
        parts = [f"{g} {c.approved_unknown:,g} of {c.approved:,g}" for g, c in cells.items()]
        assumed = "nothing is assumed of them"
        if options.unknown == "like_known":
            same = f" and {options.cohort}" if options.cohort else ""
            assumed = f"they are taken to be like the known ones of the same group{same}"
        none = f"The outcomes of {cells.unknown:,g} approved are not known"
        notes.append(f"{none} ({', '.join(parts)}); {assumed}.")
    worse = [g for g, c in cells.items() if c.approved_positive < c.approved_negative]
    if worse:
        turn = Problem(
            f"Warning: in {list_values(worse)} fewer approved people had the good outcome than "
            f"the bad one. If column {options.outcome!r} says what went wrong, turn it",
            positive={"outcome": unwrap_single(outcome.zeros)},
            negative={"outcome": unwrap_single(outcome.ones)},
        )
        notes.append(f"{turn}.")
    return notes


def _group_cells(kinds: RowCombinations, options: ReadOptions | None = None) -> GroupCells:
    """Return the counts of a group, by cohort where the options say that this matters."""
    approved = [kind for kind in kinds if kind.approved]
    good, bad, unknown = _by_outcome(approved)
    cohorts: dict[str, list[RowCombination]] = {}
    if unknown and options is not None and options.unknown == "like_known":
        cohort = options.cohort or ""
        cohorts = _split(approved, [key_of(kind.values.get(cohort)) for kind in approved])
    by_cohort = tuple(_by_outcome(own) for own in cohorts.values())
    accepted = _by_outcome(kind for kind in kinds if kind.random_accept)
    denied = _size(kinds) - _size(approved)
    return GroupCells(good, bad, denied, unknown, by_cohort, accepted if any(accepted) else ())


def _by_attribute(
    kinds: RowCombinations, options: ReadOptions, grouping: Grouping
) -> dict[str, Cells]:
    """Return the counts by each group column alone, where groups are intersections of several."""
    found: dict[str, Cells] = {}
    if len(options.groups) < 2 or grouping.strata:
        return found
    for column, labels in zip(options.groups, grouping.labels, strict=True):
        keys = [key_of(kind.values[column]) for kind in kinds]
        parts = _split(kinds, [labels.get(key, grouping.missing or "") for key in keys])
        if len(parts) > 1:
            found[column] = Cells({name: _group_cells(own) for name, own in parts.items()})
    return found


def _deciders(
    kinds: RowCombinations, groups: Mapping[str, RowCombinations], options: ReadOptions
) -> tuple[tuple[Decider, ...], ...]:
    """Return what every decider did in every group; those with few cases count as one."""
    if (column := options.decider) is None:
        return ()
    if none := [kind for kind in kinds if is_missing(kind.values[column])]:
        raise Problem(
            f"column {column!r} must name a decider in every row; there is none in "
            f"{rows_text(_size(none))}: fill it in, or leave 'decider' out"
        )
    names = choose_labels(tally((kind.values[column], kind.count) for kind in kinds))
    every = []
    for own in groups.values():
        keys = [key_of(kind.values[column]) for kind in own]
        cases = tally((key, kind.count) for key, kind in zip(keys, own, strict=True))
        few = [key for key, n in cases.items() if n < options.min_cases]
        together = f"{len(few)} with fewer than {options.min_cases} cases"
        parts = _split(own, [together if key in few else names[key] for key in keys])
        found = []
        for name, part in parts.items():
            good, bad, _ = _by_outcome(kind for kind in part if kind.approved)
            found.append(Decider(name, good, bad, _size(part)))
        every.append(tuple(found))
    return tuple(every)


def _summary(table: Table, kinds: RowCombinations, options: ReadOptions) -> ReadSummary:
    """Return what was read and how it was understood."""
    ends = (("since", options.since), ("before", options.until))
    period = " and ".join(f"{word} {end}" for word, end in ends if end is not None)
    roles = ("group", "within", *ROLES, "random_accepts", "cohort", "decider", "id")
    named = {role: " & ".join(as_tuple(getattr(options, role))) for role in roles}
    columns = {role: column for role, column in named.items() if column}
    decision = {
        str(int(bit)): _values((kind for kind in kinds if kind.approved == bit), "decision")
        for bit in (True, False)
    }
    outcome = {
        word: _values((kind for kind in kinds if kind.good == bit), "outcome")
        for word, bit in (("1", 1), ("0", 0), ("none", None))
    }
    period = f"{options.date} {period}" if period else ""
    return ReadSummary(table.name, table.engine, _size(kinds), columns, decision, outcome, period)


def _split(kinds: RowCombinations, names: Sequence[str]) -> dict[str, list[RowCombination]]:
    """Return the kinds of rows that have each name, in the order of names."""
    parts: dict[str, list[RowCombination]] = {name: [] for name in sorted(set(names))}
    for name, kind in zip(names, kinds, strict=True):
        parts[name].append(kind)
    return parts


def _by_outcome(kinds: Iterable[RowCombination]) -> tuple[int, int, int]:
    """Return how many rows have a good outcome, a bad one, and none that is known."""
    counts = tally((kind.good, kind.count) for kind in kinds)
    return counts.get(1, 0), counts.get(0, 0), counts.get(None, 0)


def _values(kinds: Iterable[RowCombination], role: str) -> dict[str, int]:
    """Return the decisions, outcomes or groups (``role``) of rows, with how many have each."""
    return tally((getattr(kind, role), kind.count) for kind in kinds)


def _size(kinds: Iterable[RowCombination]) -> int:
    return sum(kind.count for kind in kinds)
