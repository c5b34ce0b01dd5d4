"""How far one reads in a table until the tau-th success."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.errors import UnknownName
from equipoise.history.random_order import RandomOrder
from equipoise.history.row_kinds import Counted
from equipoise.history.source import Source

__all__ = ["TableOrder"]


@dataclass(frozen=True)
class TableOrder:
    """The order of a table's rows, or the one that a column gives.

    People with the same value of ``order_by`` stand in a random order, drawn from ``seed``.
    """

    source: Source
    counted: Counted
    order_by: str | None = None
    seed: int = 0

    def rows_until(
        self, tau: int, *, group: str, outcome: int, within_group: bool = True
    ) -> int | None:
        """Return the place of the tau-th success, None if there are fewer."""
        cells = self.counted.cells
        if group not in cells:
            raise UnknownName("group", group, cells)
        if tau > (cells[group].approved_positive if outcome else cells[group].approved_negative):
            return None
        read = self.counted.values_of(group) if within_group else self.counted.decided
        hit = self.counted.successes(group, outcome)
        if self.order_by is None:
            return self.source.place(tau, read, hit)
        block = self.source.block(self.order_by, tau, read, hit)
        rng = np.random.default_rng([self.seed, block.people_before, outcome])
        ties = RandomOrder(rng, counts=[block.hits, block.people - block.hits])
        inside = ties.until(0, tau - block.hits_before)
        assert inside is not None
        return block.people_before + int(inside.sum())
