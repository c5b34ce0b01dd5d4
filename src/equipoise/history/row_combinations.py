"""Rows of a table with the same values, counted together, and numbers of rows by what they say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from equipoise.history.options import ReadOptions
from equipoise.history.tables import Rows
from equipoise.history.values import tally, text_of


@dataclass(frozen=True)
class RowCombination:
    """The rows with the same value in each column that rows are counted by.

    What is below ``has_outcome`` is filled in stage by stage, while the table is interpreted.
    """

    values: Mapping[str, str]  # column -> what is written in it
    decision: str
    outcome: str
    count: int
    has_decision: bool  # a decision is written
    has_outcome: bool  # an outcome is written
    group: str = ""
    is_random_accept: bool = False  # denied, and accepted at random by a test programme
    is_approved: bool = False
    outcome_bit: int | None = None  # 1 for good, 0 for bad, None if it is not known

    @property
    def is_decided(self) -> bool:
        """Whether a decision is known: it is written, or a test programme accepted these people.

        The policy had denied everybody whom a test programme accepted.
        """
        return self.has_decision or self.is_random_accept

    @property
    def is_denied(self) -> bool:
        """Whether the policy denied these people and no test programme accepted them."""
        return not (self.is_approved or self.is_random_accept)


def combine_rows(counted_rows: Rows, options: ReadOptions) -> list[RowCombination]:
    """Return the combinations of values that an engine counted, texts alike put together.

    Each counted row has the values of ``options.columns`` and, last, the number of rows.
    """
    missing_decisions = options.missing_words("decision")
    missing_outcomes = options.missing_words("outcome")
    counts = tally((tuple(map(text_of, values)), int(count)) for *values, count in counted_rows)
    combinations = []
    for texts, count in sorted(counts.items()):
        values = dict(zip(options.columns, texts, strict=True))
        decision = values[options.decision]
        outcome = values[options.outcome]
        combinations.append(
            RowCombination(
                values=values,
                decision=decision,
                outcome=outcome,
                count=count,
                has_decision=not missing_decisions.include(decision),
                has_outcome=not missing_outcomes.include(outcome),
            )
        )
    return combinations


def n_rows(rows: Iterable[RowCombination]) -> int:
    """Return how many rows there are."""
    return sum(row.count for row in rows)


def count_by_decision(rows: Iterable[RowCombination]) -> dict[str, int]:
    """Return how many rows have each decision, as it is written."""
    return tally((row.decision, row.count) for row in rows)


def count_by_outcome(rows: Iterable[RowCombination]) -> dict[str, int]:
    """Return how many rows have each outcome, as it is written."""
    return tally((row.outcome, row.count) for row in rows)


def count_by_group(rows: Iterable[RowCombination]) -> dict[str, int]:
    """Return how many rows each group has."""
    return tally((row.group, row.count) for row in rows)


def count_by_column(rows: Iterable[RowCombination], column: str) -> dict[str, int]:
    """Return how many rows have each value of a column, as it is written."""
    return tally((row.values[column], row.count) for row in rows)


def count_outcome_bits(rows: Iterable[RowCombination]) -> tuple[int, int, int]:
    """Return how many rows have a good outcome, a bad one, and none that is known."""
    counts = tally((row.outcome_bit, row.count) for row in rows)
    return counts.get(1, 0), counts.get(0, 0), counts.get(None, 0)


def split_rows(
    rows: Sequence[RowCombination], names: Sequence[str]
) -> dict[str, list[RowCombination]]:
    """Return the rows that have each name, in the order of names; one name per row is given."""
    parts: dict[str, list[RowCombination]] = {name: [] for name in sorted(set(names))}
    for name, row in zip(names, rows, strict=True):
        parts[name].append(row)
    return parts
