"""Whether a test programme accepted denied people at random, by other columns of the table.

A programme that prefers near misses shows in scores, one that ran for a season shows in dates.
Within each group the accepted and the other denied are compared by the ranks of a column's values
(Mann-Whitney, with ties).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from equipoise.display import format_p_value
from equipoise.errors import BadData
from equipoise.history.dates import read_days
from equipoise.history.problems import UnreadTable
from equipoise.history.rank_counts import (
    RankSums,
    number_combinations,
    rank_counts,
    rank_in_engine,
)
from equipoise.history.row_combinations import RowCombination
from equipoise.history.tables import SqlTable
from equipoise.history.values import is_missing, text_of
from equipoise.messages import Note, Problem

if TYPE_CHECKING:
    from equipoise.history.counting import CountedTable

REFUSAL_LEVEL = 1e-3  # a programme that is random is refused once in a thousand files


def require_random(counted: CountedTable) -> Note:
    """Return what other columns show about a test programme.

    Raises
    ------
    UnreadTable
        If a column shows that the programme was not random.
    """
    mark = counted.options.random_accepts
    tested_columns = counted.options.against
    if not tested_columns:
        return Note("programme-untested", {"mark": mark})
    p_values: dict[tuple[str, str], float] = {}
    for column in tested_columns:
        ranks = rank_denied(counted, column)
        # A group without denied people counts as a test, so that the data do not decide how many
        # tests share the level.
        for group in counted.history.cells:
            p_values[column, group] = ranks[group].p_value if group in ranks else 1.0
    column, group = min(p_values, key=lambda test: p_values[test])
    least_p = p_values[column, group]
    # Bonferroni: each test gets its part of the level.
    if least_p < REFUSAL_LEVEL / len(p_values):
        fields = {
            "mark": mark,
            "group": group,
            "column": column,
            "p_value": format_p_value(least_p),
        }
        raise UnreadTable(Problem("programme-not-random", fields))
    details = {
        "mark": mark,
        "columns": list(tested_columns),
        "p_value": format_p_value(least_p),
        "tests": len(p_values),
    }
    return Note("programme-tested", details)


def rank_denied(counted: CountedTable, column: str) -> dict[str, RankSums]:
    """Rank denied people of each group by a column; the first sample was accepted at random."""
    table = counted.table
    if isinstance(table, SqlTable) and table.engine == "DuckDB":
        ranks = _rank_in_engine(table, counted, column)
        if ranks is not None:
            return ranks
    return _rank_from_counts(counted, column)


def _rank_from_counts(counted: CountedTable, column: str) -> dict[str, RankSums]:
    """Rank denied people of each group by a column, in Python, from counts by value."""
    combination_of = _combination_of(counted)
    people = _count_with_column(counted, column)
    texts = {text for _, text, _ in people if not is_missing(text)}
    numbers = _read_numbers(column, sorted(texts))
    counts_by_group: dict[str, list[tuple[float, int, int]]] = {}
    for values, text, count in people:
        # Rows that were left out, such as withdrawn applications, have no combination.
        combination = combination_of.get(values)
        number = numbers.get(text)
        if combination is None or number is None or combination.is_approved:
            continue
        n_accepted = count if combination.is_random_accept else 0
        counts_by_group.setdefault(combination.group, []).append((number, n_accepted, count))
    return {group: _rank_triples(counts) for group, counts in counts_by_group.items()}


def _rank_triples(counts: list[tuple[float, int, int]]) -> RankSums:
    """Rank numbers, each with how many people of the first sample and of both have it."""
    numbers, n_first, n_all = np.array(counts, float).T
    return rank_counts(numbers, n_first, n_all)


def _rank_in_engine(
    table: SqlTable, counted: CountedTable, column: str
) -> dict[str, RankSums] | None:
    """Rank denied people of each group where they are; None if some values are no numbers."""
    combination_of = _combination_of(counted)
    columns = counted.options.columns
    groups = list(counted.history.cells)
    # DuckDB numbers the combinations of texts. Here each number gets a group and a sample, since
    # only here it is known what the texts mean.
    samples = {}
    for *row_values, number in number_combinations(table, columns):
        combination = combination_of.get(tuple(map(text_of, row_values)))
        if combination is None or combination.is_approved or combination.group not in groups:
            continue
        group_number = groups.index(combination.group)
        samples[int(number)] = (group_number, combination.is_random_accept)
    ranks = rank_in_engine(table, columns, column, samples)
    if ranks is None:
        return None
    return {groups[number]: rank_sums for number, rank_sums in ranks.items()}


def _combination_of(counted: CountedTable) -> Mapping[tuple[str, ...], RowCombination]:
    """Return the combination of each tuple of texts."""
    return {tuple(combination.values.values()): combination for combination in counted.rows}


def _count_with_column(
    counted: CountedTable, column: str
) -> list[tuple[tuple[str, ...], str, int]]:
    """Count rows by one column more: values as before, that column's text, number of rows."""
    counted_columns = counted.options.columns
    columns = tuple(dict.fromkeys((*counted_columns, column)))
    column_index = columns.index(column)
    people = []
    for *row_values, count in counted.table.count(columns):
        texts = tuple(map(text_of, row_values))
        people.append((texts[: len(counted_columns)], texts[column_index], int(count)))
    return people


def _read_numbers(column: str, texts: Collection[str]) -> dict[str, float]:
    """Return the number of each text, or of the date that it is: as text 10 would precede 9."""
    numbers: dict[str, float] = {}
    odd_texts = []
    for text in texts:
        number = _read_number(text)
        if number is None:
            odd_texts.append(text)
        else:
            numbers[text] = number
    if not odd_texts:
        return numbers
    with suppress(BadData):  # a column of days, all written in another way
        days = read_days(column, dict.fromkeys(texts, 1))
        return {text: float(day.toordinal()) for text, day in days.items()}
    raise UnreadTable(Problem("not-numbers", {"column": column, "value": odd_texts[0]}))


def _read_number(text: str) -> float | None:
    with suppress(ValueError):
        number = float(text)
        if isfinite(number):
            return number
    with suppress(ValueError):
        # Only the order of moments matters, so any zone will do for those that name none.
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    return None
