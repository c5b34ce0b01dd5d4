"""In which order past people are read, and how far one reads until the tau-th success."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.cells import Cells
from equipoise.history.counting import Columns, Counted, is_one_of
from equipoise.history.source import TABLE, Source

__all__ = ["RandomOrder", "TableOrder"]


@dataclass(frozen=True)
class TableOrder:
    """The order of a table's rows."""

    source: Source
    columns: Columns
    counted: Counted

    def rows_until(self, tau: int, group: str, outcome: int, *, within_group: bool) -> int:
        """Return the place of the tau-th success, which must exist.

        Number the rows as they stream by, keep the successes, take the tau-th. Nothing is sorted
        or held, and the scan ends there; a running sum of successes takes about twice as long.
        """
        in_group = " AND ".join(
            is_one_of(column, [value])
            for column, value in zip(self.columns.groups, self.counted.values[group], strict=True)
        )
        success = " AND ".join(
            [
                is_one_of(self.columns.decision, self.counted.decision.ones),
                is_one_of(self.columns.outcome, self.counted.outcome.values(outcome)),
            ]
        )
        among, wanted = (
            (in_group, success) if within_group else ("TRUE", f"{in_group} AND {success}")
        )
        ((place,),) = self.source.fetch(
            f"SELECT number FROM (SELECT *, ROW_NUMBER() OVER () AS number FROM {TABLE} "
            f"WHERE {among}) AS numbered WHERE {wanted} LIMIT 1 OFFSET {tau - 1}"
        )
        return int(place)


@dataclass(frozen=True)
class RandomOrder:
    """A uniformly random order of people of whom only the counts are known."""

    cells: Cells
    seed: int

    def rows_until(self, tau: int, group: str, outcome: int, *, within_group: bool) -> int:
        """Draw the place of the tau-th of ``successes`` among ``total`` people.

        The others met before it are negative hypergeometric, which is a binomial whose
        probability is Beta(tau, successes - tau + 1). The same question gets the same answer.
        """
        import numpy as np

        counts = self.cells[group]
        successes = int(counts.approved_positive if outcome else counts.approved_negative)
        total = int(counts.total if within_group else self.cells.total)
        at = self.cells.groups.index(group)
        rng = np.random.default_rng([self.seed, at, outcome, int(within_group), tau])
        share = rng.beta(tau, successes - tau + 1)
        return tau + int(rng.binomial(total - successes, share))
