"""Worlds from tables in which everybody's outcome is known: all rows, or counts alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array
from equipoise._seeds import accepts_random_state
from equipoise.errors import BadData, InvalidInput, UnknownName, few_of
from equipoise.history.coding import AND
from equipoise.history.meanings import read_yes_no
from equipoise.history.options import Meaning, ReadOptions, Role
from equipoise.history.past import Past
from equipoise.history.saved_readings import load_reading
from equipoise.history.values import is_missing, require_single_values
from equipoise.worlds.world import COUNT_NAMES, ByCells, CellWorld, People, Seed, past_of


@dataclass(frozen=True, eq=False)
class TableWorld(People, ByCells):
    """A population that is a table: everybody's group, decision, outcome and perhaps features.

    Made by :meth:`from_frame`.

    Examples
    --------
    >>> table = {"sex": ["f", "f", "m"], "granted": [1, 0, 1], "paid": [1, 1, 0]}
    >>> world = TableWorld.from_frame(table, group="sex", outcome="paid", decision="granted")
    >>> world.r["f"]
    1.0
    """

    def __repr__(self) -> str:
        return f"<TableWorld of {len(self):,} people in groups {few_of(self.groups)}>"

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        group: str | Sequence[str],
        outcome: str,
        decision: str,
        features: Sequence[str] = (),
        score: str | None = None,
        price: str | None = None,
        positive: Meaning = None,
    ) -> TableWorld:
        """Build a world from a table (pandas, polars, pyarrow, or a mapping of columns).

        Parameters
        ----------
        group
            The column of groups; several make the groups of their intersections.
        outcome, decision
            The columns of outcomes, known for everybody, and of decisions.
        features
            Numeric columns that an audit may ask for.
        score, price
            Columns of what a model says about people's outcomes, and of what a label of outcome 0
            costs, for audits with ``assist=``. Whoever has no score is asked without one; whoever
            has no price costs what the audit's costs say.
        positive
            The value that means 1, as in :meth:`equipoise.History.read`.

        Examples
        --------
        >>> table = {"sex": list("ffmm"), "approved": [0, 1, 1, 1], "good": [1, 0, 1, 1]}
        >>> world = TableWorld.from_frame(table, group="sex", outcome="good", decision="approved")
        >>> world.cells["m"].approved_positive, world.r
        (2, {'f': 1.0, 'm': 0.0})
        """
        options = ReadOptions(group=group, decision=decision, outcome=outcome, positive=positive)
        assist_columns = tuple(name for name in (score, price) if name is not None)
        table = _columns(frame, (*options.groups, decision, outcome, *features, *assist_columns))
        attributes = [_texts(name, table[name]) for name in options.groups]
        intersections = [AND.join(values) for values in zip(*attributes, strict=True)]
        # Named like the intersections of History.read, so that a past and its world fit together.
        groups, codes = np.unique(intersections, return_inverse=True)
        feature_columns = [_numbers(name, table[name], -np.inf) for name in features]
        return cls(
            tuple(groups.tolist()),
            codes.astype(np.intp),
            _bits("decision", decision, table[decision], options),
            _bits("outcome", outcome, table[outcome], options),
            np.column_stack(feature_columns) if feature_columns else None,
            None if score is None else _numbers(score, table[score], -np.inf),
            None if price is None else _numbers(price, table[price], 0.0),
        )

    @cached_property
    def as_cells(self) -> CellWorld:
        """The same population without its features."""
        counts = {}
        for group, row in zip(self.groups, self.cell_counts.tolist(), strict=True):
            counts[group] = dict(zip(COUNT_NAMES, row, strict=True))
        return CellWorld.from_counts(counts)

    def denied_rows(self, group: str) -> NDArray[np.intp]:
        """Return the rows of a group's denied people."""
        return np.flatnonzero((self.group == self.groups.index(group)) & (self.decision == 0))

    @accepts_random_state
    def draw(self, size: int, seed: Seed = 0) -> People:
        """Let ``size`` random rows arrive."""
        # With replacement: the table is the population, and people come without end.
        rows = np.random.default_rng(seed).integers(len(self), size=size)
        return People(
            self.groups,
            self.group[rows],
            self.decision[rows],
            self.outcome[rows],
            None if self.features is None else self.features[rows],
            None if self.score is None else self.score[rows],
            None if self.price is None else self.price[rows],
        )

    @accepts_random_state
    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return past decisions on ``size`` random rows; None: the table is the whole past."""
        if size is None:
            return self.as_cells.past(None, seed)
        return past_of(self.draw(size, seed))


class MissingOutcomes(BadData):
    """A table that should be a world lacks outcomes.

    ``column`` is that of outcomes, and ``n_people`` is how many people have none in it.
    """

    def __init__(self, column: str, n_people: int) -> None:
        self.column = column
        self.n_people = n_people
        super().__init__(
            f"column {column!r} lacks the outcome of {n_people:,} people; a world needs "
            "everybody's. Past decisions become a world if you state how many of each group's "
            "denied would have succeeded: CellWorld.from_past(history, {group: share})"
        )


def read_world(
    source: object,
    *,
    group: str | Sequence[str] = (),
    within: str | Sequence[str] = (),
    decision: str = "",
    outcome: str = "",
    positive: Meaning = None,
    negative: Meaning = None,
) -> CellWorld:
    """Return the world of a table in which the outcome of everybody, denied or not, is known.

    Parameters are those of :meth:`equipoise.History.read`; nothing but counts is read.

    Examples
    --------
    >>> table = {"sex": list("fffmm"), "hired": [1, 0, 0, 1, 0], "good": [1, 1, 0, 1, 1]}
    >>> read_world(table, group="sex", decision="hired", outcome="good").r
    {'f': 0.5, 'm': 1.0}
    """
    from equipoise.history.counting import count_table

    reading = {
        "group": group,
        "within": within,
        "decision": decision,
        "outcome": outcome,
        "positive": positive,
        "negative": negative,
        "unknown": "bounds",  # missing outcomes are counted here, and refused below with a remedy
    }
    source, options = load_reading(source, reading)
    cells = count_table(source, options, denied_outcomes_known=True).history.cells
    missing = 0.0
    for group_counts in cells.values():
        missing += group_counts.approved_unknown + group_counts.denied_without_outcome
    if missing:
        raise MissingOutcomes(options.outcome, int(missing))
    counts = {}
    for name, group_counts in cells.items():
        # denied people whose outcome is known are counted as if a programme had accepted them
        denied = group_counts.random_accepts[:2] or (0, 0)
        approved = (group_counts.approved_positive, group_counts.approved_negative)
        counts[name] = dict(zip(COUNT_NAMES, (*approved, *denied), strict=True))
    return CellWorld.from_counts(counts)


def _columns(frame: object, names: Sequence[str]) -> dict[str, NDArray[np.generic]]:
    """Return these columns of a table, a value per row each."""
    import narwhals as nw

    if not isinstance(frame, Mapping):
        try:
            table = nw.from_native(frame, eager_only=True)
        except TypeError as error:
            raise InvalidInput(
                "'frame' must be a pandas, polars or pyarrow table, or a mapping of columns; "
                f"got {type(frame).__name__}"
            ) from error
        frame = {name: table[name].to_numpy() for name in table.columns}
    columns: dict[str, NDArray[np.generic]] = {}
    for name in names:
        if name not in frame:
            raise UnknownName("column", name, frame)
        require_single_values(name, frame[name])
        values = np.asarray(frame[name])
        columns[name] = values
        n_rows = len(columns[names[0]])  # of the first column, which all others must match
        if values.shape != (n_rows,):
            raise BadData(
                f"column {name!r} must hold a value per row, {n_rows:,}; got {values.shape}"
            )
    return columns


def _numbers(name: str, values: NDArray[np.generic], least: float) -> Array:
    """Return a column of numbers, NaN where there is none."""
    if values.dtype.kind not in "OUbiuf":
        raise BadData(f"column {name!r} must hold numbers; got {values.dtype}")
    try:
        if values.dtype.kind in "OU":
            # Texts such as "NA" stand for no number, as in a table of past decisions.
            values = np.array([np.nan if is_missing(value) else value for value in values])
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadData(f"column {name!r} must hold numbers: {error}") from error
    if np.isnan(numbers).all():
        raise BadData(f"column {name!r} must hold numbers; nobody has one")
    n_wrong = int((np.isinf(numbers) | (numbers < least)).sum())
    if n_wrong:
        rule = "finite numbers" if least < 0.0 else f"finite numbers of at least {least:g}"
        raise BadData(
            f"column {name!r} must hold {rule}; {n_wrong:,} of {len(numbers):,} rows do not"
        )
    return numbers


def _texts(name: str, values: NDArray[np.generic]) -> list[str]:
    """Return everybody's value as a text."""
    texts: list[str] = values.astype(str).tolist()
    missing_texts = {text for text in set(texts) if is_missing(text)}
    n_missing = sum(text in missing_texts for text in texts)
    if n_missing:
        raise BadData(
            f"column {name!r} must hold a value for everybody; {n_missing:,} rows lack one"
        )
    return texts


def _bits(
    role: Role, column: str, values: NDArray[np.generic], options: ReadOptions
) -> NDArray[np.int8]:
    """Return everybody's yes or no."""
    texts = _texts(column, values)
    # No counts of outcomes: here they are known for everybody and tell nothing about decisions.
    reading = read_yes_no(role, options, Counter(texts), {})
    bits = {text: reading.bit_of(text) for text in set(texts)}
    return np.array([bits[text] for text in texts], dtype=np.int8)
