"""Past decisions known by their counts alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.cells import Cells
from equipoise.errors import UnknownName
from equipoise.history.random_order import RandomOrder

__all__ = ["CellPast"]


@dataclass(frozen=True)
class CellPast:
    """Past decisions known by their counts; the order of the rows is drawn when asked for."""

    cells: Cells
    exact: bool
    order: RandomOrder = field(repr=False, compare=False)

    def rows_until(
        self, tau: int, *, group: str, outcome: int, within_group: bool = True
    ) -> int | None:
        """Return how many people are read until ``tau`` were approved and had the outcome."""
        if group not in self.cells:
            raise UnknownName("group", group, self.cells.groups)
        place = self.cells.groups.index(group)
        kinds = 4 if self.cells.unknown else 3
        counts = self.order.until(kinds * place + (1 - outcome), tau)
        if counts is None:
            return None
        own = counts[kinds * place : kinds * (place + 1)]
        return int(own.sum() if within_group else counts.sum())
