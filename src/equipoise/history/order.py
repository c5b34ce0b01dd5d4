"""How far one reads in a table until the tau-th success."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.history.counting import Columns, Counted, is_one_of
from equipoise.history.source import TABLE, Source

__all__ = ["TableOrder"]


@dataclass(frozen=True)
class TableOrder:
    """The order of a table's rows."""

    source: Source
    columns: Columns
    counted: Counted

    def rows_until(
        self, tau: int, *, group: str, outcome: int, within_group: bool = True
    ) -> int | None:
        """Return the place of the tau-th success, None if there are fewer.

        Number the rows as they stream by, keep the successes, take the tau-th. Nothing is sorted
        or held, and the scan ends there; ``python -m bench history`` compares other ways.
        """
        cells = self.counted.cells[group]
        if tau > (cells.approved_positive if outcome else cells.approved_negative):
            return None
        values = self.counted.values[group]
        in_group = " AND ".join(
            is_one_of(self.source, column, [value])
            for column, value in zip(self.columns.groups, values, strict=True)
        )
        approved = is_one_of(self.source, self.columns.decision, self.counted.decision.ones)
        turned_out = is_one_of(
            self.source, self.columns.outcome, self.counted.outcome.values(outcome)
        )
        ((place,),) = self.source.fetch(
            f"SELECT number FROM (SELECT *, ROW_NUMBER() OVER () AS number FROM {TABLE} "
            f"WHERE {in_group if within_group else 'TRUE'}) AS numbered "
            f"WHERE {in_group} AND {approved} AND {turned_out} LIMIT 1 OFFSET {tau - 1}"
        )
        return int(place)
