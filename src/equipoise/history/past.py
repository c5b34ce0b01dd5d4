"""What an audit asks of past data, whoever holds them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from equipoise.cells import Cells
from equipoise.errors import require_kind

__all__ = ["Past", "require_past"]


@runtime_checkable
class Past(Protocol):
    """Past decisions as an audit sees them.

    ``exact`` is True when ``cells`` are the population itself (unlimited past data), False when
    they are the counts of a finite sample.

    Examples
    --------
    >>> from equipoise.worlds import CellWorld
    >>> world = CellWorld.from_shares({"A": (0.3, 0.1, 0.6, 0.2), "B": (0.1, 0.1, 0.8, 0.1)})
    >>> isinstance(world.past(1000), Past), world.past(1000).exact, world.past().exact
    (True, False, True)
    """

    @property
    def cells(self) -> Cells:
        """Counts, or population shares, per group."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the cells are the population itself."""
        ...

    def rows_until(
        self, tau: int, *, group: str, outcome: int, within_group: bool = True
    ) -> int | None:
        """Return how many past people are read until ``tau`` were approved and had the outcome.

        Only the group's people are read if ``within_group`` (RS-Audit), everybody otherwise
        (Baseline). None if the data run dry first.
        """
        ...


def require_past(history: object) -> None:
    """Raise unless this is past decisions."""
    words = "past decisions as History.read or a world's past() return them"
    require_kind("history", history, Past, words)
