"""Past decisions with outcomes for the approved only, kept where they are and counted there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from equipoise.cells import Cells
from equipoise.errors import InvalidInput, UnknownName
from equipoise.history.cell_past import CellPast
from equipoise.history.counting import Columns, Counted, count_rows
from equipoise.history.order import TableOrder
from equipoise.history.random_order import RandomOrder
from equipoise.history.source import open_source
from equipoise.history.yesno import Positive, require_positive, shown

__all__ = ["History"]

FEW = 30  # people in a group that is called small


class History:
    """Past decisions: who was approved, and how the approved turned out.

    Made by :meth:`read` from a table or by :meth:`from_cells` from counts; a
    :class:`~equipoise.history.past.Past` for every audit.

    Examples
    --------
    >>> table = {"race": ["a", "a", "b", "b"], "granted": [1, 0, 1, 1], "paid": [1, None, 0, 1]}
    >>> import numpy as np
    >>> table = {name: np.array(column, dtype=object) for name, column in table.items()}
    >>> history = History.read(table, group="race", decision="granted", outcome="paid")
    >>> history.cells["b"]
    GroupCells(approved_positive=1, approved_negative=1, denied=0)
    >>> history.rows_until(1, group="b", outcome=1)
    2
    """

    def __init__(self, cells: Cells, notes: Sequence[str], order: TableOrder | CellPast) -> None:
        self._cells = cells
        self._notes = (*_remarks(cells), *notes)
        self._order = order

    @classmethod
    def read(
        cls,
        source: object,
        *,
        group: str | Sequence[str],
        decision: str,
        outcome: str,
        positive: Positive = None,
        denied_outcomes: Literal["error", "ignore"] = "error",
    ) -> History:
        """Count a table of past decisions without loading it.

        Parameters
        ----------
        source
            A path, a glob or a list of them (CSV, Parquet); a pandas, polars or pyarrow table; a
            mapping of arrays; a DuckDB relation; an ibis table.
        group
            The column that names a person's group; several make the groups of their
            intersections, called for example ``Black & female``.
        decision, outcome
            The columns of decisions and outcomes: 0/1 or true/false, or else see ``positive``. An
            outcome must be there for every approved person and for nobody else.
        positive
            The value that means 1, where it is not 1 or true: for both columns, or for each as in
            ``{"decision": "approved", "outcome": "repaid"}``. Every other value then means 0.
        denied_outcomes
            What to do with outcomes of denied people: ``"error"`` or ``"ignore"``.

        Raises
        ------
        UnknownName
            If a column, or the value of ``positive``, does not exist.
        BadData
            If a row breaks a rule; the message says which rows.
        """
        require_positive(positive)
        if denied_outcomes not in ("error", "ignore"):
            raise UnknownName("value of 'denied_outcomes'", denied_outcomes, ("error", "ignore"))
        groups = (group,) if isinstance(group, str) else tuple(group)
        columns = Columns(groups, decision, outcome)
        opened = open_source(source, columns.all)
        counted = count_rows(
            opened, columns, positive, ignore_denied_outcomes=denied_outcomes == "ignore"
        )
        notes = _reading_notes(columns, counted)
        return cls(counted.cells, notes, TableOrder(opened, columns, counted))

    @classmethod
    def from_cells(
        cls, cells: Cells | Mapping[str, Mapping[str, int]], *, seed: int = 0
    ) -> History:
        """Make a history of counts alone.

        Rows are exchangeable, so :meth:`rows_until` may draw the order that counts do not tell.

        Examples
        --------
        >>> counts = {"approved_positive": 30, "approved_negative": 10, "denied": 60}
        >>> history = History.from_cells({"A": counts, "B": counts}, seed=1)
        >>> history.rows_until(30, group="A", outcome=1) <= 100
        True
        """
        cells = cells if isinstance(cells, Cells) else Cells.from_dict(cells)
        counts = [
            _whole(count, cell, group)
            for group, its in cells.items()
            for cell, count in its.to_dict().items()
        ]
        order = RandomOrder(np.random.default_rng(seed), counts=counts)
        notes = [f"Counts only: the order of rows is drawn at random (seed {seed})."]
        return cls(cells, notes, CellPast(cells, exact=False, order=order))

    @property
    def cells(self) -> Cells:
        """Counts per group."""
        return self._cells

    @property
    def exact(self) -> bool:
        """False: these are counts of a finite sample, not the population."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """What is remarkable about the data, one sentence each."""
        return self._notes

    def rows_until(
        self, tau: int, *, group: str, outcome: int, within_group: bool = True
    ) -> int | None:
        """Return how many past people are read until ``tau`` were approved and had the outcome.

        Rows are read in the order of the table. Only the group's rows count if ``within_group``
        (RS-Audit), all rows otherwise (Baseline). None if there are fewer than ``tau``.
        """
        if tau < 1 or tau != int(tau):
            raise InvalidInput(f"'tau' must be a whole number >= 1; got {tau!r}")
        if outcome not in (0, 1):
            raise InvalidInput(f"'outcome' must be 0 or 1; got {outcome!r}")
        return self._order.rows_until(
            int(tau), group=group, outcome=int(outcome), within_group=within_group
        )

    def __repr__(self) -> str:
        return f"<History of {self.cells.total:,g} people in {len(self.cells)} groups>"

    def __str__(self) -> str:
        return "\n".join([repr(self)[1:-1], str(self.cells), *(f"- {n}" for n in self.notes)])


def _whole(count: float, cell: str, group: str) -> int:
    if count != int(count):
        raise InvalidInput(
            f"{cell!r} of group {group!r} must be a whole number of people; got {count!r}"
        )
    return int(count)


def _remarks(cells: Cells) -> list[str]:
    """Say what is remarkable about the counts."""
    notes = []
    for group, c in cells.items():
        if c.total < FEW:
            notes.append(f"Group {group!r} has {c.total:g} people only: little can be said of it.")
        if c.approved == 0:
            notes.append(f"Nobody in group {group!r} was approved: none of its outcomes is known.")
        elif c.approved_positive == 0 or c.approved_negative == 0:
            bit = int(c.approved_positive == 0)
            notes.append(f"No approved person of group {group!r} had outcome {bit}.")
        if c.denied == 0:
            notes.append(f"Nobody in group {group!r} was denied: all of its outcomes are known.")
    return notes


def _reading_notes(columns: Columns, counted: Counted) -> list[str]:
    """Say what was decided while reading."""
    notes = []
    for column, reading in (
        (columns.decision, counted.decision),
        (columns.outcome, counted.outcome),
    ):
        if len(reading.zeros) > 1:
            notes.append(f"Column {column!r}: {shown(reading.zeros)} all count as 0.")
    if counted.ignored:
        notes.append(
            f"Column {columns.outcome!r}: the outcomes of {counted.ignored:,} denied rows "
            "were left out."
        )
    return notes
