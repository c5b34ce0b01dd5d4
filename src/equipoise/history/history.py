"""Past decisions with outcomes for the approved only, kept where they are and counted there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date as calendar_day
from typing import Any, Literal

import numpy as np

from equipoise._json import JsonValue
from equipoise._seeds import accepts_random_state
from equipoise.cells import Cells
from equipoise.display import Displayable, Row, format_count
from equipoise.errors import InvalidInput, require_kind
from equipoise.history.coding import Coding
from equipoise.history.options import (
    DEFAULTS,
    Meaning,
    MergedGroups,
    MissingValues,
    Moment,
    ReadOptions,
)
from equipoise.history.past import Past, require_past
from equipoise.history.problems import InvalidReading
from equipoise.history.saved_readings import load_reading
from equipoise.messages import Note
from equipoise.messages.texts import list_with_counts

MIN_DAYS = 7  # of a table that shows how many people come on a day


@dataclass(frozen=True)
class ReadSummary(JsonValue):
    """What a table held and how it was understood, for a person to check."""

    source: str
    engine: str  # where it was counted
    rows: int  # that were counted
    columns: Mapping[str, str]  # role -> column
    decision: Mapping[str, Mapping[str, int]]  # 1, 0 -> values that mean it -> numbers of rows
    outcome: Mapping[str, Mapping[str, int]]  # likewise, and "none"
    period: str = ""  # the cut by date, in words
    dropped: Mapping[str, int] = field(default_factory=dict)  # why rows do not count -> how many
    without_group: int = 0  # counted rows without a group, which have a name of their own
    first_day: str = ""  # of the rows that were read, if a column of dates was named
    last_day: str = ""

    @property
    def arrivals_per_day(self) -> float | None:
        """How many counted people came on a day; None without dates of at least a week."""
        if not self.first_day:
            return None
        # The first day and the last one both count, hence one more than their difference.
        n_days = (
            calendar_day.fromisoformat(self.last_day) - calendar_day.fromisoformat(self.first_day)
        ).days + 1
        return self.rows / n_days if n_days >= MIN_DAYS else None

    @property
    def waterfall(self) -> dict[str, int]:
        """From the rows that were read to those that count: the numbers add up."""
        n_read = self.rows + sum(self.dropped.values())
        return {"read": n_read, **self.dropped, "counted": self.rows}

    def describe_waterfall(self, left_out: int = 0) -> str:
        """Return the way from the rows that were read to those that count, in a line.

        ``left_out`` of them are of groups that a question does not compare.
        """
        steps = [f"{self.waterfall['read']:,} read"]
        steps += [f"- {count:,} {reason}" for reason, count in self.dropped.items()]
        text = f"{' '.join(steps)} = {self.rows:,} counted"
        parts = []
        if self.without_group:
            parts.append(f"{self.without_group:,} without a group")
        if left_out:
            parts.append(f"{left_out:,} not compared")
        return f"{text} ({', '.join(parts)})" if parts else text

    def __str__(self) -> str:
        texts = {"source": f"{self.source}, {self.rows:,} rows counted by {self.engine}"}
        texts |= {"rows": self.describe_waterfall(), **self.columns, "period": self.period}
        for role, values_by_meaning in (("decision", self.decision), ("outcome", self.outcome)):
            meanings = []
            for bit, values in values_by_meaning.items():
                if values:
                    meanings.append(f"{bit} = {list_with_counts(values)}")
            if meanings:
                texts[role] += f": {'; '.join(meanings)}"
        width = max(9, *map(len, self.columns))
        return "\n".join(f"  {role:<{width}} {text}" for role, text in texts.items() if text)


@dataclass(frozen=True, repr=False)
class History(Past, Displayable):
    """Past decisions: who was approved, and how the approved turned out.

    Made by :meth:`read` from a table or by :meth:`from_cells` from counts.

    Attributes
    ----------
    notes
        What is remarkable about the data, as data; ``str(note)`` is a sentence.
    coding
        What columns and values of the table mean; None for counts.
    summary
        What was read and how it was understood; None for counts.
    attributes
        Where groups are intersections of several columns: the counts by each column alone.

    Examples
    --------
    >>> table = {"race": ["a", "a", "b", "b"], "granted": [1, 0, 1, 1], "paid": [1, None, 0, 1]}
    >>> history = History.read(table, group="race", decision="granted", outcome="paid")
    >>> history.cells["b"].shares
    (0.5, 0.5, 0.0)
    """

    notes: tuple[Note, ...] = ()
    coding: Coding | None = None
    summary: ReadSummary | None = None
    attributes: Mapping[str, Cells] = field(default_factory=dict, compare=False)

    # Every argument is written out, so that editors show it; ReadOptions checks them.
    @classmethod
    @accepts_random_state
    def read(
        cls,
        source: object,
        *,
        group: str | Sequence[str] = (),
        within: str | Sequence[str] = (),
        decision: str = "",
        outcome: str = "",
        positive: Meaning = None,
        negative: Meaning = None,
        missing_values: MissingValues = (),
        missing_group: str = "refuse",
        merge_groups: MergedGroups = (),
        max_groups: int = 50,
        denied_outcomes: Literal["error", "ignore"] = "error",
        undecided: Literal["refuse", "leave_out"] = "refuse",
        unknown: Literal["refuse", "bounds", "like_known"] = "refuse",
        cohort: str | None = None,
        random_accepts: str | None = None,
        random_accepts_against: str | Sequence[str] = (),
        decider: str | None = None,
        min_cases: int = 0,
        id: str | None = None,  # noqa: A002
        repeated: Literal["refuse", "count_once"] = "refuse",
        date: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        seed: int | None = None,
        table: str | None = None,
        query: str | None = None,
        encoding: str | None = None,
        outcomes: object = None,
        on: str | None = None,
        latest: str | None = None,
        preset: str | None = None,
    ) -> History:
        """Count a table of past decisions without loading it.

        Values are compared without the blanks around them and without regard to upper and lower
        case; :attr:`notes` shows where that mattered. Ambiguous values are refused.

        Parameters
        ----------
        source
            Files (CSV, Parquet, Excel), globs, folders, Delta tables, SQLite and DuckDB files, the
            address of a database, a frame, a lazy frame, a mapping of names to lists or arrays, a
            connection or an engine: ``docs/how-to/read-data.md`` lists them all. Or a file that
            ``equipoise check`` saved as ``loans.toml``: it names the table and has the arguments
            that follow. Arguments that are given beside it go first, values that mean 1 or 0 by
            role. Missing values are added to those of the file.
        group
            The column that names a person's group; several make the groups of their
            intersections, called for example ``Black & female``.
        within
            The column or columns of strata, such as the product: groups are read within each,
            called for example ``mortgage | Black``, and ``Compare(within=True)`` compares them
            inside each only.
        decision, outcome
            The columns of decisions and outcomes: 0/1 or true/false, or else see ``positive``.
            Every approved person must have an outcome (or see ``unknown``), and no other person.
        positive, negative
            The value or values that mean 1, and those that mean 0: for both columns, or for each
            by role or by the column's name, as in ``{"decision": "approved", "outcome": ["repaid",
            "settled"]}``. One of the two is enough where one other value is left.
        missing_values
            Further values that mean that a decision or an outcome is not known, beside the usual
            ``NA``, ``N/A``, ``null`` and the like: for both columns, or for each by role or by the
            column's name, as in ``{"decision": ["2", "4"]}``. Each must be in its column. A value
            that was named for both columns and means something in one of them keeps its meaning
            there.
        missing_group
            What to call people without a group; ``"refuse"`` refuses them.
        merge_groups
            Groups to be counted as one: ``{"other": ["Samoan", "Tongan"]}``. Choose them by what
            they mean and how many rows they have, never by their rates.
        max_groups
            How many different values a group column may have.
        denied_outcomes
            What to do with outcomes of denied people: ``"error"`` or ``"ignore"``.
        undecided
            What to do with rows without a decision (and without an outcome), such as applications
            that were withdrawn: ``"refuse"`` or ``"leave_out"``.
        unknown
            What to do with approved people whose outcome is not known yet: ``"refuse"`` them;
            ``"bounds"`` assumes nothing of them; ``"like_known"`` takes them to be like the known
            ones of the same group and ``cohort``.
        cohort
            The column, such as the year of the decision, within which outcomes that are not known
            are like the known ones.
        random_accepts
            The column that marks (1 or true) people whom the policy denied and a test programme
            accepted all the same. All denied people of a group must have had the same chance of
            that, so near misses and overrides by judgement must not be marked. Marked people count
            as denied, and their known outcomes cost nothing.
        random_accepts_against
            Columns, such as a score or a date, by which the accepted are compared with the other
            denied of their group, beside ``date``: a programme that was not random is refused.
        decider
            The column that names who decided, such as the judge, in every row:
            ``check(..., deciders="as_random")`` makes use of it. Where cases are dealt out within
            courts or months, name these in ``within``.
        min_cases
            Count deciders of fewer cases in a group together. Deciders may be put together by
            their numbers of cases, as here, but never by how often they approve.
        id
            The column that identifies people. A person who is there more than once would count more
            than once, and the guarantee would be lost.
        repeated
            What to do with people who are there more than once: ``"refuse"`` them, or count rows
            that say the same of a person once (``"count_once"``; rows that differ are refused).
        date, since, until
            Read only people with ``since <= date < until``, by day. Choose the period beforehand,
            by how long outcomes take, never by which outcomes are known.
        seed
            Another seed for RS-Audit and Baseline, which read past people in an order that is drawn
            from the counts. The finding names it, because another seed makes another audit.
        table, query
            What to read of a database; ``table`` also names a sheet of an Excel file.
        encoding
            Of CSV files, if it is not UTF-8: ``"utf-16"`` or ``"latin-1"``.
        outcomes
            Where outcomes are, if another file or frame has them; in a database the name of another
            table. It has the column ``outcome``.
        on
            The column that identifies a person in both, ``"uli"``, or in each, ``"uli=loan_id"``.
        latest
            The column of ``outcomes``, such as a month, whose largest value says which of a
            person's rows counts. Without it several rows that differ are refused.
        preset
            The name of a layout that many lenders share (``"hmda"``), or the path of a TOML file of
            one's own with the same entries. What is given beside it goes first.

        Raises
        ------
        InvalidInput
            If an argument is not what it must be.
        BadData
            If the table cannot be read so. The error has all problems of the table in
            ``problems``, and in ``proposal`` arguments that solve them. They were tried. Values
            that only a person can know are left open there.
        """
        arguments = {
            "group": group,
            "within": within,
            "decision": decision,
            "outcome": outcome,
            "positive": positive,
            "negative": negative,
            "missing_values": missing_values,
            "missing_group": missing_group,
            "merge_groups": merge_groups,
            "max_groups": max_groups,
            "denied_outcomes": denied_outcomes,
            "undecided": undecided,
            "unknown": unknown,
            "cohort": cohort,
            "random_accepts": random_accepts,
            "random_accepts_against": random_accepts_against,
            "decider": decider,
            "min_cases": min_cases,
            "id": id,
            "repeated": repeated,
            "date": date,
            "since": since,
            "until": until,
            "seed": seed,
            "table": table,
            "query": query,
            "encoding": encoding,
            "outcomes": outcomes,
            "on": on,
            "latest": latest,
            "preset": preset,
        }
        try:
            return _read(*load_reading(source, arguments))
        except InvalidReading as error:
            # Loads the engines, which arguments that are right do not need yet.
            from equipoise.history.unnamed_columns import propose_names

            raise propose_names(error, source, arguments) from None

    @classmethod
    def from_predictions(
        cls,
        y_true: object,
        y_pred: object,
        sensitive_features: object,
        *,
        control_features: object = None,
        **options: Any,
    ) -> History:
        """Read arrays as fairlearn and scikit-learn take them.

        Parameters
        ----------
        y_true
            Outcomes, missing (None or NaN) for the denied.
        y_pred
            Decisions.
        sensitive_features
            One column of groups, or a frame or mapping of several.
        control_features
            Strata within which groups are compared (``within`` of :meth:`read`), likewise.
        **options
            As for :meth:`read`.

        Examples
        --------
        >>> History.from_predictions([1, None, 0], [1, 0, 1], ["a", "a", "b"]).cells["a"].shares
        (0.5, 0.0, 0.5)
        """
        groups = _feature_columns(sensitive_features)
        strata = _feature_columns(control_features, "control_feature")
        arrays = {"y_true": y_true, "y_pred": y_pred, **strata, **groups}
        # Raveled: a frame of one column comes as an array of shape (n, 1).
        table = {name: np.ravel(np.asarray(array, dtype=object)) for name, array in arrays.items()}
        arguments = {"group": list(groups), "within": list(strata), **options}
        return cls.read(table, decision="y_pred", outcome="y_true", **arguments)

    @classmethod
    @accepts_random_state
    def from_cells(
        cls, cells: Cells | Mapping[str, Mapping[str, int]], *, seed: int | None = None
    ) -> History:
        """Make a history of counts alone.

        Raises
        ------
        InvalidInput
            If a count is not a whole number.

        Examples
        --------
        >>> counts = {"approved_positive": 30, "approved_negative": 10, "denied": 60}
        >>> History.from_cells({"A": counts, "B": counts}).cells.total
        200.0
        """
        require_kind("cells", cells, Mapping, "a mapping of groups to counts")
        cells = cells if isinstance(cells, Cells) else Cells.from_dict(cells)
        for group, counts in cells.to_dict().items():
            for cell, count in counts.items():
                # Some entries are lists of counts (random_accepts), so each is read as an array.
                if (np.asarray(count) % 1).any():
                    raise InvalidInput(
                        f"{cell!r} of group {group!r} must be a whole number of people; got "
                        f"{count!r}"
                    )
        return cls(cells, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """Return counts, what was read, and notes, as plain data."""
        return {
            "cells": self.cells.to_dict(),
            "read": None if self.summary is None else self.summary.to_dict(),
            "notes": [str(note) for note in self.notes],
        }

    def _lines(self) -> Sequence[str]:
        return [repr(self)[1:-1], *map(str, self.notes)]

    def _rows(self) -> Sequence[Row]:
        return [{"group": group, **c.counts} for group, c in self.cells.items()]

    def _table(self) -> Sequence[Row]:
        return past_rows(self.cells)

    def __repr__(self) -> str:
        return f"<History of {format_count(self.cells.total)} people in {len(self.cells)} groups>"

    def __str__(self) -> str:
        lines = [repr(self)[1:-1]]
        if self.summary is not None:
            lines.append(str(self.summary))
        lines.append(str(self.cells))
        lines += [f"- {note}" for note in self.notes]
        return "\n".join(lines)


def _read(source: object, options: ReadOptions) -> History:
    # The engines take long to import, and histories of counts do not need them.
    from equipoise.history.counting import count_table
    from equipoise.history.randomness import require_random

    counted = count_table(source, options)
    history = counted.history
    if options.random_accepts is None:
        return history
    return replace(history, notes=(*history.notes, require_random(counted)))


def as_past(history: object, reading: Mapping[str, object]) -> Past:
    """Return past decisions: as they are, or read from a table as :meth:`History.read` would.

    Raises
    ------
    InvalidInput
        If ``reading`` has an argument that :meth:`History.read` does not take, or any argument
        although ``history`` has been read already.
    """
    for name in reading:
        if name not in DEFAULTS:
            raise InvalidInput(
                f"{name!r} is no way to read a table: what is asked belongs to the question, as in "
                f"Question('equal_opportunity', gamma=0.1); a table takes {', '.join(DEFAULTS)}"
            )
        if isinstance(history, Past):
            raise InvalidInput(f"{name!r} says how to read a table, and 'history' has been read")
    if isinstance(history, Past):
        return history
    # A path may be a saved reading, which needs no arguments. Nothing else can be read without any.
    if not reading and not isinstance(history, str | os.PathLike):
        require_past(history)
    return History.read(history, **reading)  # type: ignore[arg-type]


def past_rows(cells: Cells, *, exact: bool = False) -> list[Row]:
    """Return a row of texts per group, as terminals, notebooks and pages show past decisions.

    ``exact`` tells that the cells are shares of the population, not counts of people.
    """
    rows: list[Row] = []
    has_random_accepts = any(c.random_accepts for c in cells.values())
    for group, c in cells.items():
        n_known = c.approved - c.approved_unknown
        good_share = f"{c.approved_positive / n_known:.1%}" if n_known else "–"
        good_share += f" ({format_count(c.approved_unknown)} unknown)" if c.approved_unknown else ""
        # The outcome of random accepts is known, so they are shown in a column of their own.
        denied = f"{c.denied / c.total:.1%}" if exact else format_count(c.denied_without_outcome)
        row = {
            "group": group,
            "people": "unlimited" if exact else format_count(c.total),
            "approved": f"{c.approved / c.total:.1%}",
            "good of these": good_share,
            "denied, outcome unknown": denied,
        }
        if has_random_accepts:
            row["random accepts"] = f"{format_count(c.denied - c.denied_without_outcome)} known"
        rows.append(row)
    return rows


def _feature_columns(features: Any, kind: str = "sensitive_feature") -> dict[str, Any]:
    """Return the columns of a frame, a mapping or an array, or a single one."""
    if features is None:
        return {}
    if isinstance(features, Mapping) or hasattr(features, "columns"):
        return {str(name): features[name] for name in getattr(features, "columns", features)}
    if getattr(features, "ndim", 1) == 2:
        return {f"{kind}_{index}": column for index, column in enumerate(features.T)}
    return {str(getattr(features, "name", None) or kind): features}
