"""A world that is a fully labelled table: rows are drawn with replacement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.cells import Cells, GroupCells
from equipoise.errors import BadData, InvalidInput, UnknownName
from equipoise.history.options import Meaning, ReadOptions
from equipoise.history.past import Past
from equipoise.history.values import is_missing, name_of, read_yes_no
from equipoise.worlds.base import People, Seed
from equipoise.worlds.cells import CellWorld

__all__ = ["TableWorld"]

Bits = NDArray[np.int8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableWorld:
    """A population that is a table: everybody's group, decision, outcome and perhaps features.

    Made by :meth:`from_frame`.

    Examples
    --------
    >>> table = {"sex": ["f", "f", "m"], "granted": [1, 0, 1], "paid": [1, 1, 0]}
    >>> world = TableWorld.from_frame(table, group="sex", outcome="paid", decision="granted")
    >>> world.r["f"]
    1.0
    """

    groups: tuple[str, ...]
    group: NDArray[np.intp]
    decision: Bits
    outcome: Bits
    features: Floats | None = None
    score: Floats | None = None
    price: Floats | None = None

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        group: str | Sequence[str],
        outcome: str,
        decision: str | Callable[[object], ArrayLike],
        features: Sequence[str] = (),
        score: str | None = None,
        price: str | None = None,
        positive: Meaning = None,
    ) -> TableWorld:
        """Build a world from a table (pandas, polars, pyarrow, or a mapping of arrays).

        Parameters
        ----------
        group
            The column of groups; several make the groups of their intersections.
        outcome
            The column of outcomes, known for everybody.
        decision
            The column of decisions, or a classifier: a function from the whole table to one
            decision (0 or 1) per row.
        features
            Numeric columns that an audit may ask for.
        score, price
            Columns of what a model says about people's outcomes, and of what a label of outcome 0
            costs, for audits that look before they ask. Whoever has no score is asked without, and
            whoever has no price costs what the audit's costs say.
        positive
            The value that means 1, as in :meth:`equipoise.History.read`.

        Examples
        --------
        >>> table = {"sex": ["f", "f", "m", "m"], "score": [3, 8, 6, 9], "good": [1, 0, 1, 1]}
        >>> world = TableWorld.from_frame(
        ...     table, group="sex", outcome="good",
        ...     decision=lambda t: [score > 5 for score in t["score"]],
        ... )
        >>> world.cells["m"].approved_positive, world.r
        (2, {'f': 1.0, 'm': 0.0})
        """
        named = decision if isinstance(decision, str) else "classifier"
        positive = ReadOptions(group, named, outcome, positive).positive
        names = (group,) if isinstance(group, str) else tuple(group)
        columns = [_column(frame, name) for name in names]
        for name, column in zip(names, columns, strict=True):
            _require_complete(name, column)
        texts = [name_of(map(str, values)) for values in zip(*columns, strict=True)]
        groups, codes = np.unique(np.array(texts, dtype=str), return_inverse=True)
        if len(groups) < 2:
            raise BadData(f"column {names[0]!r} must hold at least two groups to compare")
        if isinstance(decision, str):
            decided = _bits("decision", decision, _column(frame, decision), positive)
        else:
            decided = _bits("decision", "classifier", np.asarray(decision(frame)), None)
        if len(decided) != len(codes):
            raise InvalidInput(
                f"'decision' must return one decision per row, {len(codes):,}; got {len(decided):,}"
            )
        table = [np.asarray(_column(frame, name), dtype=np.float64) for name in features]
        looks = [
            None if name is None else _numbers(name, _column(frame, name), len(codes), least)
            for name, least in ((score, -np.inf), (price, 0.0))
        ]
        return cls(
            tuple(str(name) for name in groups),
            codes.astype(np.intp),
            decided,
            _bits("outcome", outcome, _column(frame, outcome), positive),
            np.column_stack(table) if table else None,
            *looks,
        )

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def as_cells(self) -> CellWorld:
        """The same population without its features."""
        counts = _count(self.groups, self.group, self.decision, self.outcome)
        return CellWorld.from_counts(
            {
                group: {
                    "approved_positive": int(row[1, 1]),
                    "approved_negative": int(row[1, 0]),
                    "denied_positive": int(row[0, 1]),
                    "denied_negative": int(row[0, 0]),
                }
                for group, row in zip(self.groups, counts, strict=True)
            }
        )

    @property
    def cells(self) -> Cells:
        """What is free to see."""
        return self.as_cells.cells

    @property
    def r(self) -> Mapping[str, float]:
        """``P[Y=1 | f=0]`` of each group."""
        return self.as_cells.r

    def rates(self, metric: str) -> dict[str, dict[str, float]]:
        """Return the true rates, rate -> group -> value."""
        return self.as_cells.rates(metric)

    def gap(self, metric: str, compare: str = "difference") -> float:
        """Return the true gap."""
        return self.as_cells.gap(metric, compare)

    def denied_rows(self, group: str) -> NDArray[np.intp]:
        """Return the rows of a group's denied people."""
        return np.flatnonzero((self.group == self.groups.index(group)) & (self.decision == 0))

    def draw(self, size: int, seed: Seed = 0) -> People:
        """Let ``size`` random rows arrive."""
        return self._people(np.random.default_rng(seed).integers(len(self), size=size))

    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return past decisions on ``size`` random rows; None: the table is the whole past."""
        generator = np.random.default_rng(seed)
        if size is None:
            return replace(self.as_cells.past(None, generator), people=self._people(slice(None)))
        if size < 1:
            raise InvalidInput(f"'size' of a past must be at least 1; got {size!r}")
        rows = generator.integers(len(self), size=size)
        counts = _count(self.groups, self.group[rows], self.decision[rows], self.outcome[rows])
        cells = {}
        for group, table in zip(self.groups, counts.tolist(), strict=True):
            if not np.any(table):
                raise BadData(f"a past of {size:,} rows holds nobody of group {group!r}")
            cells[group] = GroupCells(table[1][1], table[1][0], sum(table[0]))
        return Past(Cells(cells), people=self._people(rows))

    def _people(self, rows: NDArray[np.intp] | slice) -> People:
        seen = (self.features, self.score, self.price)
        return People(
            *(self.groups, self.group[rows], self.decision[rows], self.outcome[rows]),
            *(None if column is None else column[rows] for column in seen),
        )


def _count(
    groups: tuple[str, ...], group: NDArray[np.intp], decision: Bits, outcome: Bits
) -> NDArray[np.int64]:
    kind = (group * 2 + decision) * 2 + outcome
    return np.bincount(kind, minlength=4 * len(groups)).reshape(len(groups), 2, 2)


def _column(frame: object, name: str) -> NDArray[np.generic]:
    if isinstance(frame, Mapping):
        if name not in frame:
            raise UnknownName("column", name, frame)
        return np.asarray(frame[name])
    import narwhals as nw

    try:
        table: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InvalidInput(
            "'frame' must be a pandas, polars or pyarrow table, or a mapping of arrays; "
            f"got {type(frame).__name__}"
        ) from error
    if name not in table.columns:
        raise UnknownName("column", name, table.columns)
    return np.asarray(table[name].to_numpy())


def _numbers(name: str, values: NDArray[np.generic], rows: int, least: float) -> Floats:
    """Return a column of numbers, NaN where there is none."""
    if values.shape != (rows,) or values.dtype.kind not in "OUbiuf":
        raise BadData(
            f"column {name!r} must hold a number per row, {rows:,}; got {values.dtype} of shape "
            f"{values.shape}"
        )
    try:
        if values.dtype.kind in "OU":
            values = np.array([np.nan if is_missing(value) else value for value in values])
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadData(f"column {name!r} must hold numbers: {error}") from error
    if np.isnan(numbers).all():
        raise BadData(f"column {name!r} must hold numbers; nobody has one")
    if count := int((np.isinf(numbers) | (numbers < least)).sum()):
        rule = "finite numbers" if least < 0.0 else f"finite numbers of at least {least:g}"
        raise BadData(f"column {name!r} must hold {rule}; {count:,} of {rows:,} rows do not")
    return numbers


def _require_complete(name: str, values: NDArray[np.generic]) -> None:
    missing = sum(value is None or value != value or str(value).strip() == "" for value in values)
    if missing:
        raise BadData(f"column {name!r} must name everybody's group; {missing:,} rows have none")


def _bits(role: str, column: str, values: NDArray[np.generic], positive: Meaning) -> Bits:
    texts, inverse = np.unique(values.astype(str), return_inverse=True)
    if missing := [text for text in texts.tolist() if is_missing(text)]:
        count = int(np.isin(texts[inverse], missing).sum())
        raise BadData(f"column {column!r} must hold a value for everybody; {count:,} rows lack one")
    found = dict(zip(texts.tolist(), np.bincount(inverse).tolist(), strict=True))
    reading = read_yes_no(role, column, found, positive)
    return np.array([reading.bit(text) for text in texts], dtype=np.int8)[inverse]
