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

from equipoise._arrays import Array
from equipoise.errors import BadData
from equipoise.history.dates import read_days
from equipoise.history.problems import UnreadTable
from equipoise.history.row_combinations import RowCombination
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
        samples = _denied_samples(counted, column)
        for group in counted.history.cells:
            accepted = samples.get((group, True), np.empty(0))
            not_accepted = samples.get((group, False), np.empty(0))
            p_values[column, group] = rank_test(accepted, not_accepted)
    (column, group), least_p = min(p_values.items(), key=lambda test: test[1])
    # Bonferroni: each test gets its part of the level.
    if least_p < REFUSAL_LEVEL / len(p_values):
        fields = {"mark": mark, "group": group, "column": column, "p_value": f"{least_p:.1g}"}
        raise UnreadTable(Problem("programme-not-random", fields))
    details = {
        "mark": mark,
        "columns": list(tested_columns),
        "p_value": f"{least_p:.2g}",
        "tests": len(p_values),
    }
    return Note("programme-tested", details)


def _denied_samples(counted: CountedTable, column: str) -> dict[tuple[str, bool], Array]:
    """Return a column's numbers of denied people, by group and by whether they were accepted."""
    combination_of: Mapping[tuple[str, ...], RowCombination] = {
        tuple(combination.values.values()): combination for combination in counted.rows
    }
    people = _count_with_column(counted, column)
    texts = {text for _, text, _ in people if not is_missing(text)}
    numbers = _read_numbers(column, sorted(texts))
    parts: dict[tuple[str, bool], list[Array]] = {}
    for values, text, count in people:
        # Rows that were left out, such as withdrawn applications, have no combination.
        combination = combination_of.get(values)
        number = numbers.get(text)
        if combination is None or number is None or combination.is_approved:
            continue
        sample = (combination.group, combination.is_random_accept)
        parts.setdefault(sample, []).append(np.full(count, number))
    return {sample: np.concatenate(arrays) for sample, arrays in parts.items()}


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
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    return None


def rank_test(accepted: Array, not_accepted: Array) -> float:
    """Return the p-value of Mann and Whitney's test, 1 if there is nothing to compare."""
    from scipy.stats import mannwhitneyu

    if not (accepted.size and not_accepted.size):
        return 1.0
    test = mannwhitneyu(accepted, not_accepted, use_continuity=False, method="asymptotic")
    return float(np.nan_to_num(test.pvalue, nan=1.0))  # NaN if all values are the same
