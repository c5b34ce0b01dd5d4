"""Ranks of two samples from counts: how many people of each sample have each value.

A continuous score has as many values as people. So DuckDB ranks them where they are, and only four
numbers per group travel. Values that DuckDB does not read as numbers, such as dates, and tables of
other engines are counted by value, and ranked here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sql

from equipoise._arrays import Array
from equipoise.history.tables import SqlTable, duckdb_text, quoted_column
from equipoise.history.values import MISSING_KEYS

NUMBER = '"equipoise number of a combination"'  # in queries; no column is called so


class RankSums(NamedTuple):
    """What Mann and Whitney's test needs to know of two samples that are ranked together.

    Attributes
    ----------
    n_first, n_all
        People in the first sample, and in both.
    double_rank_sum
        Twice the sum of the first sample's ranks, an integer. People of equal value share the
        mean of their ranks.
    ties
        The sum of ``t^3 - t`` over the values, each of which t people have.
    """

    n_first: int
    n_all: int
    double_rank_sum: int
    ties: float

    @property
    def p_value(self) -> float:
        """The two-sided p-value by the normal law, without a correction for continuity.

        It is 1 if a sample is empty or all values are equal, since there is nothing to compare.
        """
        n_other = self.n_all - self.n_first
        if not self.n_first or not n_other:
            return 1.0
        n_pairs = self.n_first * n_other
        mean_of_ties = self.ties / (self.n_all * (self.n_all - 1))
        variance = n_pairs / 12 * (self.n_all + 1 - mean_of_ties)
        if variance <= 0.0:  # all values are equal
            return 1.0
        # Twice U less twice its mean, in integers: exact for any number of people.
        deviation = self.double_rank_sum - self.n_first * (self.n_first + 1) - n_pairs
        return math.erfc(abs(deviation) / 2 / math.sqrt(2 * variance))


def rank_counts(values: Array, n_first: Array, n_all: Array) -> RankSums:
    """Rank two samples by how many people have each value, which may be repeated."""
    # Equal values have one place, so that their people are counted together.
    _, places = np.unique(values, return_inverse=True)
    first_counts = np.bincount(places, n_first)
    all_counts = np.bincount(places, n_all)
    ranked_up_to = np.cumsum(all_counts)
    double_ranks = 2 * ranked_up_to - all_counts + 1  # the mean rank of each value, twice
    double_rank_sum = sum(map(_product, first_counts.tolist(), double_ranks.tolist()))
    ties = float(np.sum(all_counts**3 - all_counts))
    return RankSums(int(first_counts.sum()), int(all_counts.sum()), double_rank_sum, ties)


def _product(count: float, double_rank: float) -> int:
    # Python's integers do not overflow: the sum grows with the square of the number of people.
    return int(count) * int(double_rank)


# -- in DuckDB -------------------------------------------------------------------------------------


def number_combinations(table: SqlTable, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the combinations of values in a table's columns, and last the number of each."""
    return table.run(_as_query(f"FROM ({_numbered(_select(table, columns), columns)})"))


def rank_in_engine(
    table: SqlTable,
    columns: Sequence[str],
    column: str,
    samples: Mapping[int, tuple[int, bool]],
) -> dict[int, RankSums] | None:
    """Let DuckDB rank a column's numbers within groups; None if not all values are numbers.

    Parameters
    ----------
    columns
        The columns whose combinations :func:`number_combinations` numbers.
    samples
        Number of a combination -> its group's number, and whether its people are in the first
        sample. Rows of other combinations do not count.
    """
    if not samples:
        return {}
    query = _rank_query(table, columns, column, samples)
    ranks_by_group = {}
    for group, n_first, n_all, double_rank_sum, ties, are_numbers in table.run(_as_query(query)):
        if not are_numbers:
            return None
        ranks_by_group[int(group)] = RankSums(
            int(n_first), int(n_all), int(double_rank_sum), float(ties)
        )
    return ranks_by_group


def _rank_query(
    table: SqlTable,
    columns: Sequence[str],
    column: str,
    samples: Mapping[int, tuple[int, bool]],
) -> str:
    """Return the query for the :class:`RankSums` of each group, and whether all are numbers."""
    keys = _quoted(columns)
    # Not by "=": a missing value is not equal to a missing value, and its rows would be lost.
    same_combination = " AND ".join(f"rows.{key} IS NOT DISTINCT FROM kinds.{key}" for key in keys)
    sample_rows = ", ".join(
        f"({number}, {group}, {is_first})" for number, (group, is_first) in samples.items()
    )
    (value,) = _quoted([column])
    missing_words = ", ".join(f"'{key}'" for key in sorted(MISSING_KEYS))
    # Every value goes by its text, as in other engines, so that True is no number. Values of one
    # size share the mean of their ranks, as in rank_counts.
    return f"""
        WITH rows AS ({_select(table, (*columns, column))}),
        kinds AS ({_numbered("FROM rows", columns)}),
        samples(number, group_number, is_first) AS (VALUES {sample_rows}),
        people AS (
            SELECT group_number, is_first, CAST(rows.{value} AS VARCHAR) AS text
            FROM rows JOIN kinds ON {same_combination}
            JOIN samples ON samples.number = kinds.{NUMBER}
        ),
        counted AS (
            SELECT group_number, TRY_CAST(text AS DOUBLE) AS value,
                count(*) AS n_all, count(*) FILTER (is_first) AS n_first
            FROM people
            WHERE text IS NOT NULL AND lower(trim(text)) NOT IN ({missing_words})
            GROUP BY group_number, value
        ),
        ranked AS (
            SELECT *, sum(n_all) OVER (PARTITION BY group_number ORDER BY value) AS ranked_up_to
            FROM counted
        )
        SELECT group_number, sum(n_first), sum(n_all),
            sum(n_first * (2 * ranked_up_to - n_all + 1)),
            sum(CAST(n_all AS DOUBLE) ** 3 - n_all),
            bool_and(coalesce(isfinite(value), false))
        FROM ranked GROUP BY group_number
    """


def _select(table: SqlTable, columns: Sequence[str]) -> str:
    """Return the query for some columns of all rows."""
    quoted = map(quoted_column, dict.fromkeys(columns))
    return duckdb_text(sql.select(*quoted).select_from(table.rows))


def _numbered(rows: str, columns: Sequence[str]) -> str:
    """Return the query that numbers combinations of values, always in the same way."""
    keys = ", ".join(_quoted(columns))
    number = f"row_number() OVER (ORDER BY {keys}) AS {NUMBER}"
    return f"SELECT {keys}, {number} FROM ({rows}) GROUP BY {keys}"


def _quoted(columns: Sequence[str]) -> list[str]:
    return [duckdb_text(quoted_column(column)) for column in columns]


def _as_query(text: str) -> sql.TextClause:
    return sql.text(text.replace(":", "\\:"))  # no colon names a parameter
