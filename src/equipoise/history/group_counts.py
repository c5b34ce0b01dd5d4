"""Counts per group, per attribute and per decider, summed up from interpreted rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.cells import Cells, Decider, GroupCells
from equipoise.history.coding import Grouping
from equipoise.history.options import ReadOptions
from equipoise.history.problems import UnreadTable
from equipoise.history.row_combinations import (
    RowCombination,
    count_by_column,
    count_outcome_bits,
    n_rows,
    split_rows,
)
from equipoise.history.values import choose_labels, is_missing, key_of, tally
from equipoise.messages import Problem


def count_group(rows: Sequence[RowCombination], options: ReadOptions | None = None) -> GroupCells:
    """Return the counts of a group, by cohort where the options say that this matters."""
    approved = [row for row in rows if row.is_approved]
    good, bad, unknown = count_outcome_bits(approved)
    by_cohort: tuple[tuple[int, int, int], ...] = ()
    if unknown and options is not None and options.unknown == "like_known":
        # Without a cohort column all approved people are one cohort.
        names = [key_of(row.values.get(options.cohort or "")) for row in approved]
        cohorts = split_rows(approved, names)
        by_cohort = tuple(count_outcome_bits(cohort) for cohort in cohorts.values())
    # Random accepts were denied by the policy, so they are part of the denied.
    accepted = count_outcome_bits(row for row in rows if row.is_random_accept)
    n_denied = n_rows(rows) - n_rows(approved)
    random_accepts = accepted if any(accepted) else ()
    return GroupCells(good, bad, n_denied, unknown, by_cohort, random_accepts)


def count_by_attribute(
    rows: Sequence[RowCombination], options: ReadOptions, grouping: Grouping
) -> dict[str, Cells]:
    """Return the counts by each group column alone, where groups are intersections of several."""
    if len(options.groups) < 2 or grouping.strata:
        return {}
    cells_by_column = {}
    for column, labels in zip(options.groups, grouping.labels, strict=True):
        names = [labels.get(key_of(row.values[column]), grouping.missing or "") for row in rows]
        parts = split_rows(rows, names)
        if len(parts) > 1:  # a column of one value compares nothing
            cells_by_column[column] = Cells(
                {name: count_group(part) for name, part in parts.items()}
            )
    return cells_by_column


def count_deciders(
    groups: Mapping[str, Sequence[RowCombination]], options: ReadOptions
) -> tuple[tuple[Decider, ...], ...]:
    """Return what every decider did in every group; deciders with few cases count as one.

    Raises
    ------
    UnreadTable
        If a row does not name its decider.
    """
    column = options.decider
    if column is None:
        return ()
    rows = [row for group_rows in groups.values() for row in group_rows]
    n_missing = n_rows(row for row in rows if is_missing(row.values[column]))
    if n_missing:
        raise UnreadTable(Problem("decider-missing", {"column": column, "rows": n_missing}))
    # Labels are chosen over all groups, so that a decider has one name in the whole table.
    labels = choose_labels(count_by_column(rows, column))
    by_group = []
    for group_rows in groups.values():
        names = _decider_names(group_rows, column, labels, options.min_cases)
        by_group.append(_deciders_of_group(split_rows(group_rows, names)))
    return tuple(by_group)


def _decider_names(
    rows: Sequence[RowCombination], column: str, labels: Mapping[str, str], min_cases: int
) -> list[str]:
    """Return the decider of each row of a group, one name for all who have few cases in it."""
    keys = [key_of(row.values[column]) for row in rows]
    cases = tally((key, row.count) for key, row in zip(keys, rows, strict=True))
    # By the number of cases alone: chosen by approvals, pooled deciders would be biased.
    rare_keys = {key for key, count in cases.items() if count < min_cases}
    rare_name = f"{len(rare_keys)} with fewer than {min_cases} cases"
    return [rare_name if key in rare_keys else labels[key] for key in keys]


def _deciders_of_group(parts: Mapping[str, Sequence[RowCombination]]) -> tuple[Decider, ...]:
    deciders = []
    for name, rows in parts.items():
        good, bad, _ = count_outcome_bits(row for row in rows if row.is_approved)
        deciders.append(Decider(name, good, bad, n_rows(rows)))
    return tuple(deciders)
