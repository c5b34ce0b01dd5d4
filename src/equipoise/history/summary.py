"""What was read and how it was understood, so that a person can see whether it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from equipoise._json import JsonValue
from equipoise.history.row_kinds import Counted
from equipoise.history.source import Source
from equipoise.history.values import is_missing, text_of, with_counts

__all__ = ["Summary", "summary_of"]

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Summary(JsonValue):
    """What a table held.

    Attributes
    ----------
    source, engine
        What was read, and where it was counted.
    rows
        How many rows were counted.
    columns
        Role -> column.
    decision, outcome
        ``1``, ``0`` and ``none`` -> the values that mean it, with their numbers of rows.
    period
        The cut by date, in words; empty if there is none.
    """

    source: str
    engine: str
    rows: int
    columns: Mapping[str, str]
    decision: Mapping[str, Counts]
    outcome: Mapping[str, Counts]
    period: str = ""

    def __str__(self) -> str:
        coded = {"decision": self.decision, "outcome": self.outcome}
        lines = [f"  source    {self.source}, {self.rows:,} rows counted by {self.engine}"]
        for role, column in self.columns.items():
            values = "; ".join(
                f"{meaning} = {with_counts(values)}"
                for meaning, values in coded.get(role, {}).items()
                if values
            )
            lines.append(f"  {role:<9} {column}" + (f": {values}" if values else ""))
        if self.period:
            lines.append(f"  period    {self.period}")
        return "\n".join(lines)


def summary_of(source: Source, counted: Counted, period: str) -> Summary:
    """Return what was read of a source."""
    columns, coding = counted.coding.columns, counted.coding
    decisions: dict[str, Counter[str]] = {"1": Counter(), "0": Counter()}
    outcomes: dict[str, Counter[str]] = {"1": Counter(), "0": Counter(), "none": Counter()}
    for row in counted.rows:
        decisions[str(row.bit)][text_of(row.decision)] += row.count
        known = (row.bit == 1 or row.random_accept) and not is_missing(
            row.outcome, coding.missing_values
        )
        kind = str(coding.outcome.bit(row.outcome)) if known else "none"
        outcomes[kind][text_of(row.outcome)] += row.count
    named = {
        "group": " & ".join(columns.groups),
        "decision": columns.decision,
        "outcome": columns.outcome,
        "random_accepts": columns.random_accepts,
        "cohort": columns.cohort,
    }
    return Summary(
        source.name,
        source.engine,
        sum(row.count for row in counted.rows),
        {role: column for role, column in named.items() if column is not None},
        {meaning: dict(values) for meaning, values in decisions.items()},
        {meaning: dict(values) for meaning, values in outcomes.items()},
        period,
    )
