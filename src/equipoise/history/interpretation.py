"""What the values of counted rows mean, in stages; each checks its rule and fills in the rows.

A stage returns rows with more filled in, and notes on what a person should know. It raises
:class:`UnreadTable` with a problem, and with fixes where they are clear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from equipoise.comparison import WITHIN
from equipoise.errors import few_of
from equipoise.history.coding import AND, Coding, Grouping, YesNo
from equipoise.history.meanings import NOTHING_WORDS, YES_WORDS, read_yes_no
from equipoise.history.options import (
    EVERY_ROLE,
    MEANINGS,
    ROLES,
    ReadOptions,
    Role,
    as_tuple,
    split_key,
)
from equipoise.history.presets import load_preset
from equipoise.history.problems import UnreadTable
from equipoise.history.row_combinations import (
    RowCombination,
    count_by_column,
    count_by_decision,
    count_by_group,
    count_by_outcome,
    n_rows,
)
from equipoise.history.values import (
    STANDARD_BITS,
    choose_labels,
    is_missing,
    key_of,
    spelling_notes,
    tally,
    text_of,
)
from equipoise.messages import Fix, Note, Problem

RowCombinations = Sequence[RowCombination]
MAX_PROPOSED_GROUPS = 60  # a column with more different values is never proposed as groups
NAME_OF_MISSING_GROUP = "not stated"  # as it is proposed, if no value of the table says so
NOT_STATED_WORDS = (
    r"(.* )?not (stated|available|provided|specified|given|known|disclosed)|unknown|undisclosed|"
    r"unspecified|(i )?prefers? not to .*|(declined|refused) to .*"
)


@dataclass(frozen=True)
class Interpretation:
    """Rows with all that is known about them, what their values mean, and notes."""

    rows: RowCombinations
    coding: Coding
    notes: tuple[Note, ...]


def interpret(
    rows: RowCombinations, options: ReadOptions, *, denied_outcomes_known: bool
) -> Interpretation:
    """Take all stages: name groups, leave out the undecided, read decisions and outcomes.

    With ``denied_outcomes_known`` every denied row counts as a random accept.

    Raises
    ------
    UnreadTable
        At the first problem.
    """
    # A mistyped value goes first: it would lead to problems later that only follow from it.
    check_named_values(rows, options)
    refuse_lost_meanings(rows, options)
    rows, grouping, group_notes = name_groups(rows, options)
    # Random accepts are known before decisions are read, because they need none.
    rows = mark_random_accepts(rows, options)
    rows, undecided_notes = leave_out_undecided(rows, options)
    # Only now, so that the notes count the rows that the waterfall of rows counts.
    missing_group_notes = note_missing_groups(rows, grouping, options)
    rows, decision, decision_notes = read_decisions(rows, options)
    if denied_outcomes_known:
        rows = [replace(row, is_random_accept=not row.is_approved) for row in rows]
    # Outcomes come after decisions: those of denied people are not read, whatever they say.
    rows, outcome, outcome_notes = read_outcomes(rows, options)
    left_out_notes = check_outcomes_fit_decisions(rows, options)
    columns = {
        "group": options.groups,
        "decision": (options.decision,),
        "outcome": (options.outcome,),
    }
    # Files of people who come during an audit are read by these columns too, so they are kept.
    join_columns = () if options.on is None else split_key(options.on)
    person_column = options.id or next(iter(join_columns), None)
    if person_column is not None:
        columns["person"] = (person_column,)
    if join_columns and join_columns[1] != join_columns[0]:
        columns["person_of_outcomes"] = (join_columns[1],)
    missing_by_role = {role: options.missing_words(role).of_column for role in ROLES}
    coding = Coding(
        columns,
        grouping,
        decision,
        outcome,
        missing_values=tuple(map(key_of, options.missing_values_for(EVERY_ROLE))),
        missing_by_role={role: tuple(keys) for role, keys in missing_by_role.items() if keys},
    )
    notes = (
        *group_notes,
        *missing_group_notes,
        *undecided_notes,
        *decision_notes,
        *outcome_notes,
        *left_out_notes,
    )
    return Interpretation(rows, coding, notes)


# -- values that options name ----------------------------------------------------------------------


def check_named_values(rows: RowCombinations, options: ReadOptions) -> None:
    """Raise if an option names values that neither column has; 0 and 1 are always understood."""
    values_by_role: dict[Role, list[str]] = {
        "decision": [*count_by_decision(rows)],
        "outcome": [*count_by_outcome(rows)],
    }
    all_values = [*values_by_role["decision"], *values_by_role["outcome"]]
    known_keys = {*map(key_of, all_values), *STANDARD_BITS}
    # With a date only the rows of a period were counted, and they may lack a word of the table.
    if options.date is None:
        # A preset explains codes that a table need not have.
        preset_values = _missing_values_of_preset(options.preset)
        for value in options.missing_values_for(EVERY_ROLE):
            if key_of(value) not in known_keys and value not in preset_values:
                raise _unknown_value("missing_values", [value], None, all_values)
        for role in ROLES:
            keys_of_role = {*map(key_of, values_by_role[role]), *STANDARD_BITS}
            for value in options.missing_values_for(role):
                if key_of(value) not in keys_of_role and value not in preset_values:
                    column = options.column_of(role)
                    raise _unknown_value("missing_values", [value], column, values_by_role[role])
    for argument in MEANINGS:
        for role in ROLES:
            named_values = options.explained_values(argument, role)
            if named_values and known_keys.isdisjoint(map(key_of, named_values)):
                column = options.column_of(role)
                raise _unknown_value(argument, named_values, column, values_by_role[role])


def _missing_values_of_preset(preset: str | None) -> set[str]:
    """Return the values that a preset reads as none, whatever the column."""
    missing_values = load_preset(preset).get("missing_values")
    if isinstance(missing_values, Mapping):
        return {value for values in missing_values.values() for value in as_tuple(values)}
    return set(as_tuple(missing_values))


def refuse_lost_meanings(rows: RowCombinations, options: ReadOptions) -> None:
    """Raise if a code that stands for none in every column was one column's only good or bad one.

    A code such as 2 may be a decision that was never taken, and a bad outcome beside it. Read as
    none in both columns it would take all bad outcomes away without a word.
    """
    counts_by_role: dict[Role, dict[str, int]] = {
        "decision": count_by_decision(rows),
        "outcome": count_by_outcome(rows),
    }
    for role in ROLES:
        lost = _lost_codes(role, counts_by_role[role], options)
        if not lost:
            continue
        # Most likely the codes were meant for the other column, if it has them.
        other_role: Role = "outcome" if role == "decision" else "decision"
        known_values = {*counts_by_role[other_role], *_missing_values_of_preset(options.preset)}
        is_of_other = set(lost) <= set(map(key_of, known_values))
        values = tuple(sorted(lost.values()))
        fix = Fix("missing_values", values, other_role if is_of_other else role, is_list=True)
        fields = {"column": options.column_of(role), "values": list(values)}
        raise UnreadTable(Problem("missing-code-without-column", fields, (fix,)))


def _lost_codes(role: Role, row_counts: Mapping[str, int], options: ReadOptions) -> dict[str, str]:
    """Return the codes, by their keys, without which a column has one meaning only."""
    words = options.missing_words(role)
    labels = choose_labels(row_counts)
    codes = [key for key in labels if key in words.of_table and _is_code(key)]
    lost = {key: labels[key] for key in codes if key not in (*words.explained, *words.of_column)}
    n_meanings = sum(key not in words.explained and not words.include(key) for key in labels)
    other_role: Role = "outcome" if role == "decision" else "decision"
    for argument in MEANINGS:
        values = options.explained_values(argument, role)
        # What was said of both columns may be about the other one alone.
        is_about_column = values != options.explained_values(argument, other_role)
        if is_about_column or not labels.keys().isdisjoint(map(key_of, values)):
            n_meanings += bool(values)
    return lost if n_meanings < 2 else {}


def _is_code(key: str) -> bool:
    """Return whether a key is a number, which may mean different things in two columns."""
    return re.fullmatch(r"-?\d+(\.\d+)?", key) is not None


def _unknown_value(
    argument: str, named_values: Sequence[Any], column: str | None, present: Iterable[str]
) -> UnreadTable:
    value = ", ".join(map(text_of, named_values))
    present_values = sorted({text.strip() for text in present if not is_missing(text)})
    # Most unknown values are typing errors; below this likeness a suggestion would be a guess.
    nearest_values = get_close_matches(value, present_values, n=1, cutoff=0.6)
    fields = {
        "argument": argument,
        "value": value,
        "column": column,
        "nearest": nearest_values[0] if nearest_values else None,
        "known": present_values,
    }
    return UnreadTable(Problem("unknown-value", fields))


# -- groups ----------------------------------------------------------------------------------------


def name_groups(
    rows: RowCombinations, options: ReadOptions
) -> tuple[list[RowCombination], Grouping, list[Note]]:
    """Name the groups; spellings that differ in blanks and cases alone are one group."""
    labels_by_column = []
    notes: list[Note] = []
    for column in options.groups:
        labels, column_notes = _label_group_column(rows, column, options)
        labels_by_column.append(labels)
        notes += column_notes
    missing_name = None if options.missing_group == "refuse" else options.missing_group
    if missing_name is not None:  # blank groups may join an existing one, by its own spelling
        key = key_of(missing_name)
        missing_name = next(
            (labels[key] for labels in labels_by_column if key in labels), missing_name
        )
    if options.new_group_of_value:
        labels_by_column, missing_name = _merge_labels(labels_by_column, missing_name, options)
        notes.append(Note("groups-merged", {"merged": _list_merges(options)}))
    n_strata = len(as_tuple(options.within))
    grouping = Grouping(tuple(labels_by_column), missing_name, strata=n_strata)
    return _fill_in_groups(rows, options.groups, grouping), grouping, notes


def _merge_labels(
    labels_by_column: Sequence[Mapping[str, str]], missing_name: str | None, options: ReadOptions
) -> tuple[list[dict[str, str]], str | None]:
    """Return what values and people without a group are called once groups are merged."""
    new_group_of_key = {key_of(v): name for v, name in options.new_group_of_value.items()}
    known_labels = [label for labels in labels_by_column for label in labels.values()]
    known_labels += [] if missing_name is None else [missing_name]
    known_keys = set(map(key_of, known_labels))
    for value in options.new_group_of_value:
        if key_of(value) not in known_keys:
            raise _unknown_value("merge_groups", [value], None, known_labels)
    # The columns of strata come first; only names of groups are merged.
    n_strata = len(as_tuple(options.within))
    merged = []
    for index, labels in enumerate(labels_by_column):
        if index < n_strata:
            merged.append(dict(labels))
        else:
            merged.append({k: new_group_of_key.get(k, label) for k, label in labels.items()})
    if missing_name is not None:
        missing_name = new_group_of_key.get(key_of(missing_name), missing_name)
    return merged, missing_name


def _list_merges(options: ReadOptions) -> list[str]:
    assert isinstance(options.merge_groups, Mapping)
    return [
        f"{name} = {', '.join(map(str, as_tuple(values)))}"
        for name, values in options.merge_groups.items()
    ]


def _fill_in_groups(
    rows: RowCombinations, columns: Sequence[str], grouping: Grouping
) -> list[RowCombination]:
    """Fill in the group of each row; raise if two groups would have one name."""
    keys_of_group: dict[str, tuple[str, ...]] = {}
    named_rows = []
    for row in rows:
        texts = [row.values[column] for column in columns]
        parts = grouping.part_names(texts)
        keys = tuple(map(key_of, parts))
        group = grouping.group_name(texts)
        # "a & b" with "c" and "a" with "b & c" are both called "a & b & c".
        is_ambiguous = keys_of_group.setdefault(group, keys) != keys
        # A comparison within strata finds the stratum by the name, in front of the only WITHIN.
        if is_ambiguous or (grouping.strata and group.count(WITHIN) > 1):
            fields = {"columns": list(columns), "group": group, "and": AND, "within": WITHIN}
            raise UnreadTable(Problem("group-names-clash", fields))
        named_rows.append(replace(row, group=group))
    return named_rows


def _label_group_column(
    rows: RowCombinations, column: str, options: ReadOptions
) -> tuple[dict[str, str], list[Note]]:
    """Return how each value of a group column is called, by its key."""
    missing: dict[str, int] = {}
    present: dict[str, int] = {}
    for text, count in count_by_column(rows, column).items():
        row_counts = missing if is_missing(text) else present
        row_counts[text] = count
    labels = choose_labels(present)
    _require_few_groups(column, labels, options)
    if missing and options.missing_group == "refuse":
        raise UnreadTable(_group_missing(column, missing, labels))
    return labels, spelling_notes(column, present)


def _require_few_groups(column: str, labels: Mapping[str, str], options: ReadOptions) -> None:
    """Raise if a group column has too many values: it may be a column of names or of amounts."""
    if len(labels) <= options.max_groups:
        return
    fields = {"column": column, "groups": len(labels), "examples": [*labels.values()][:3]}
    # No fix for hundreds of values: each would be a group, and no answer about them be possible.
    if len(labels) > MAX_PROPOSED_GROUPS:
        raise UnreadTable(Problem("no-groups", fields))
    fix = Fix("max_groups", (len(labels),))
    raise UnreadTable(Problem("too-many-groups", fields, (fix,)))


def _group_missing(column: str, missing: Mapping[str, int], labels: Mapping[str, str]) -> Problem:
    """Return the problem of rows without a group.

    ``missing`` has the texts that stand for no value, with their numbers of rows. ``labels`` are
    the names of the other groups by key.
    """
    fields = {"column": column, "rows": sum(missing.values()), "written": missing}
    # A blank and "not stated" most likely mean the same, so they become one group.
    same_meaning = [labels[key] for key in labels if re.fullmatch(NOT_STATED_WORDS, key)]
    fix = Fix("missing_group", ((*same_meaning, NAME_OF_MISSING_GROUP)[0],))
    return Problem("group-missing", fields, (fix,))


def note_missing_groups(
    rows: RowCombinations, grouping: Grouping, options: ReadOptions
) -> list[Note]:
    """Return a note for each group column in which rows have no value."""
    name = options.missing_group
    notes = []
    for column, labels in zip(options.groups, grouping.labels, strict=True):
        n_missing = n_rows(row for row in rows if is_missing(row.values[column]))
        if not n_missing:
            continue
        # With several group columns the name is only a part of a group's name.
        is_group = as_tuple(options.group) == (column,)
        leave_out = name if is_group else "GROUP"
        fields = {"column": column, "rows": n_missing, "name": name, "leave_out": leave_out}
        is_joined = key_of(name) in labels
        notes.append(Note("missing-group-joined" if is_joined else "missing-group-named", fields))
    return notes


# -- decisions -------------------------------------------------------------------------------------


def mark_random_accepts(rows: RowCombinations, options: ReadOptions) -> RowCombinations:
    """Fill in whom a test programme accepted at random, if a column marks these people."""
    column = options.random_accepts
    if column is None:
        return rows
    accepted_marks = [
        key_of(value) for value in options.explained_values("positive", "random_accepts")
    ]
    other_marks = [
        key_of(value) for value in options.explained_values("negative", "random_accepts")
    ]
    marked_rows = []
    for row in rows:
        mark = row.values[column]
        is_explained = key_of(mark) in (*accepted_marks, *other_marks)
        # Where one side alone is explained, every other mark stands for the other side.
        is_other_side = bool(accepted_marks) != bool(other_marks) and not is_explained
        if is_missing(mark):
            is_marked = False
        elif accepted_marks or other_marks:
            if not is_explained and not is_other_side:
                raise UnreadTable(_unexplained_mark(column, mark))
            is_marked = key_of(mark) in accepted_marks or (is_other_side and not accepted_marks)
        elif key_of(mark) in STANDARD_BITS:
            is_marked = key_of(mark) == "1"
        else:
            raise UnreadTable(_unexplained_mark(column, mark, count_by_column(rows, column)))
        marked_rows.append(replace(row, is_random_accept=is_marked))
    return marked_rows


def _unexplained_mark(column: str, mark: str, written: Mapping[str, int] | None = None) -> Problem:
    """Return the problem of a mark that is no 0 or 1, with a fix if its column says yes and no."""
    keys = {key_of(value): value for value in written or () if not is_missing(value)}
    yes = [keys[key] for key in keys if key in YES_WORDS]
    fixes: tuple[Fix, ...] = ()
    if len(keys) <= 2 and len(yes) == 1:
        fixes = (Fix("positive", (yes[0].strip(),), role="random_accepts"),)
    return Problem("random-accepts-not-bits", {"column": column, "value": mark}, fixes)


def leave_out_undecided(
    rows: RowCombinations, options: ReadOptions
) -> tuple[RowCombinations, list[Note]]:
    """Return the rows with a decision; refuse the others, or leave them out with a note."""
    column = options.decision
    undecided = [row for row in rows if not row.is_decided]
    if not undecided:
        return rows, []
    # People with an outcome were approved, so these rows must not be left out.
    with_outcome = [row for row in undecided if row.has_outcome]
    if with_outcome:
        raise UnreadTable(_outcome_without_decision(undecided, with_outcome, options))
    if options.undecided == "refuse":
        fields = {"column": column, "rows": n_rows(undecided)}
        fix = Fix("undecided", ("leave_out",))
        raise UnreadTable(Problem("decision-missing", fields, (fix,)))
    written = count_by_decision(undecided)
    notes = [Note("undecided-left-out", {"column": column, "written": written})]
    decided = [row for row in rows if row.is_decided]
    emptied_groups = {row.group for row in rows} - {row.group for row in decided}
    if emptied_groups:
        notes.append(Note("groups-without-decisions", {"groups": sorted(emptied_groups)}))
    return decided, notes


def _outcome_without_decision(
    undecided: RowCombinations, with_outcome: RowCombinations, options: ReadOptions
) -> Problem:
    labels = choose_labels(count_by_outcome(with_outcome))
    fields = {
        "decision_column": options.decision,
        "outcome_column": options.outcome,
        "rows": n_rows(undecided),
        "labelled": n_rows(with_outcome),
        "outcomes": [*labels.values()],
    }
    # Words such as "pending" are no outcomes. If there are no others, reading them so is the fix.
    explained = options.missing_words("outcome").explained
    if not all(re.fullmatch(NOTHING_WORDS, key) and key not in explained for key in labels):
        return Problem("outcome-without-decision", fields)
    fix = Fix("missing_values", tuple(labels.values()), role="outcome", is_list=True)
    return Problem("outcome-without-decision", fields, (fix,))


def read_decisions(
    rows: RowCombinations, options: ReadOptions
) -> tuple[RowCombinations, YesNo, list[Note]]:
    """Fill in which rows were approved; return what the decisions mean."""
    # The decision after which outcomes are known is proposed as the approval.
    labelled_counts = tally((key_of(row.decision), row.count * row.has_outcome) for row in rows)
    decision_counts = count_by_decision(row for row in rows if not row.is_random_accept)
    decision = read_yes_no("decision", options, decision_counts, labelled_counts)
    decided_rows = []
    for row in rows:
        is_approved = decision.bit_of(row.decision) == 1 and not row.is_random_accept
        decided_rows.append(replace(row, is_approved=is_approved))
    return decided_rows, decision, spelling_notes(options.decision, decision_counts)


# -- outcomes --------------------------------------------------------------------------------------


def read_outcomes(
    rows: RowCombinations, options: ReadOptions
) -> tuple[RowCombinations, YesNo, list[Note]]:
    """Fill in how approved people and random accepts turned out; return what outcomes mean."""
    outcome_counts = count_by_outcome(row for row in rows if row.has_outcome and not row.is_denied)
    outcome = read_yes_no("outcome", options, outcome_counts, {})
    labelled_rows = []
    for row in rows:
        is_counted = row.has_outcome and not row.is_denied
        bit = outcome.bit_of(row.outcome) if is_counted else None
        labelled_rows.append(replace(row, outcome_bit=bit))
    return labelled_rows, outcome, spelling_notes(options.outcome, outcome_counts)


def check_outcomes_fit_decisions(rows: RowCombinations, options: ReadOptions) -> list[Note]:
    """Raise unless outcomes are known for approved people alone, or options say what to do.

    Returns a note if outcomes of denied people are left out.
    """
    people = _PeopleByDecision.from_rows(rows)
    # If decisions are reversed, both other problems only follow from that, so it goes first.
    for problem in (
        _decision_reversed(people, options),
        _outcome_unknown(people, options),
        _denied_with_outcome(people, options),
    ):
        if problem is not None:
            raise UnreadTable(problem)
    n_labelled = n_rows(people.denied_with_outcome)
    if not n_labelled:
        return []
    fields = {"column": options.outcome, "rows": n_labelled}
    return [Note("denied-outcomes-left-out", fields)]


@dataclass(frozen=True)
class _PeopleByDecision:
    """Rows by their decision, and those among them whose outcome is not as it should be.

    ``not_approved`` are all whom the policy denied; ``denied`` leaves out random accepts.
    """

    approved: RowCombinations
    approved_without_outcome: RowCombinations
    not_approved: RowCombinations
    denied: RowCombinations
    denied_with_outcome: RowCombinations

    @classmethod
    def from_rows(cls, rows: RowCombinations) -> _PeopleByDecision:
        approved = [row for row in rows if row.is_approved]
        denied = [row for row in rows if row.is_denied]
        return cls(
            approved=approved,
            approved_without_outcome=[row for row in approved if row.outcome_bit is None],
            not_approved=[row for row in rows if not row.is_approved],
            denied=denied,
            denied_with_outcome=[row for row in denied if row.has_outcome],
        )


def _decision_reversed(people: _PeopleByDecision, options: ReadOptions) -> Problem | None:
    """Return a problem if outcomes are known mostly for people who were read as denied."""
    # What a person said about the decisions is not doubted.
    if any(options.explained_values(argument, "decision") for argument in MEANINGS):
        return None
    n_unknown = n_rows(people.approved_without_outcome)
    n_denied_labelled = n_rows(people.denied_with_outcome)
    lack_most_approved = 10 * n_unknown > 9 * n_rows(people.approved)  # more than 90%
    have_most_denied = 2 * n_denied_labelled > n_rows(people.denied)  # more than half
    if not (lack_most_approved and have_most_denied):
        return None
    values = count_by_decision(people.denied)
    keys = sorted({key_of(value) for value in values})
    fix = Fix("positive", tuple(keys), role="decision")
    fields = {"column": options.decision, "values": [*values]}
    return Problem("decision-reversed", fields, (fix,))


def _outcome_unknown(people: _PeopleByDecision, options: ReadOptions) -> Problem | None:
    """Return a problem if approved people lack an outcome and options do not say what to do."""
    unknown = people.approved_without_outcome
    if not unknown or options.unknown != "refuse":
        return None
    unknown_by_group = count_by_group(unknown)
    by_group = []
    for group, n_approved in sorted(count_by_group(people.approved).items()):
        n_unknown = unknown_by_group.get(group, 0)
        by_group.append(f"{group}: {n_unknown:,} of {n_approved:,} approved")
    fields = {"column": options.outcome, "rows": n_rows(unknown), "by_group": few_of(by_group)}
    return Problem("outcome-unknown", fields, (Fix("unknown", ("bounds",)),))


def _denied_with_outcome(people: _PeopleByDecision, options: ReadOptions) -> Problem | None:
    """Return a problem if denied people have an outcome and options do not say what to do."""
    labelled = people.denied_with_outcome
    if not labelled or options.denied_outcomes != "error":
        return None
    fields = {
        "column": options.outcome,
        "rows": n_rows(labelled),
        "outcomes": [*count_by_outcome(labelled)],
        "decision_column": options.decision,
        "approved": count_by_decision(people.approved),
        "denied": count_by_decision(people.not_approved),
    }
    return Problem("denied-with-outcome", fields, (Fix("denied_outcomes", ("ignore",)),))
