"""Past decisions with outcomes for the approved only, kept where they are and counted there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from equipoise.cells import Cells, GroupCells
from equipoise.display import Row, Shown
from equipoise.errors import InvalidInput, UnknownName, few_of, require_kind
from equipoise.history.coding import MOST_VALUES_OF_A_GROUP, Coding, Columns
from equipoise.history.counting import count_rows
from equipoise.history.opening import open_source
from equipoise.history.past import Past
from equipoise.history.random_accepts import require_random
from equipoise.history.row_kinds import Said, Unknown
from equipoise.history.scores import Scores, read_scores
from equipoise.history.source import Moment, Source
from equipoise.history.summary import Summary, summary_of
from equipoise.history.values import Meaning, is_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["History"]

FEW = 30  # people in a group that is called small


@dataclass(frozen=True, repr=False)
class History(Past, Shown):
    """Past decisions: who was approved, and how the approved turned out.

    Made by :meth:`read` from a table or by :meth:`from_cells` from counts.

    Attributes
    ----------
    notes
        What is remarkable about the data, one sentence each.
    coding
        What columns and values of the table mean; None for counts.
    summary
        What was read and how it was understood; None for counts.
    scores
        Scores of past people per group, if a column of them was named.

    Examples
    --------
    >>> table = {"race": ["a", "a", "b", "b"], "granted": [1, 0, 1, 1], "paid": [1, None, 0, 1]}
    >>> import numpy as np
    >>> table = {name: np.array(column, dtype=object) for name, column in table.items()}
    >>> history = History.read(table, group="race", decision="granted", outcome="paid")
    >>> history.cells["b"]
    GroupCells(approved_positive=1, approved_negative=1, denied=0)
    """

    notes: tuple[str, ...] = ()
    coding: Coding | None = None
    summary: Summary | None = None
    scores: Mapping[str, Scores] | None = field(default=None, compare=False)

    @classmethod
    def read(
        cls,
        source: object,
        *,
        group: str | Sequence[str],
        decision: str,
        outcome: str,
        positive: Meaning = None,
        negative: Meaning = None,
        missing_values: str | Sequence[str] = (),
        missing_group: str = "refuse",
        min_group: int = 0,
        max_groups: int = MOST_VALUES_OF_A_GROUP,
        denied_outcomes: Literal["error", "ignore"] = "error",
        undecided: Literal["refuse", "leave_out"] = "refuse",
        unknown: Unknown = "refuse",
        cohort: str | None = None,
        random_accepts: str | None = None,
        random_accepts_against: str | Sequence[str] = (),
        score: str | None = None,
        date: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        seed: int | None = None,
        table: str | None = None,
        query: str | None = None,
        encoding: str | None = None,
    ) -> History:
        """Count a table of past decisions without loading it.

        Values are compared without the blanks around them and without regard to upper and lower
        case; :attr:`notes` says where that mattered. What is ambiguous is refused.

        Parameters
        ----------
        source
            Files (CSV, Parquet, Excel), globs, folders, Delta tables, SQLite and DuckDB files, the
            address of a database, a frame, a lazy frame, a connection or an engine:
            ``docs/how-to/data-as-they-are.md`` lists them all.
        group
            The column that names a person's group; several make the groups of their
            intersections, called for example ``Black & female``.
        decision, outcome
            The columns of decisions and outcomes: 0/1 or true/false, or else see ``positive``. An
            outcome must be there for every approved person (or see ``unknown``), for nobody else.
        positive, negative
            The value or values that mean 1, and those that mean 0: for both columns, or for each
            as in ``{"decision": "approved", "outcome": ["repaid", "settled"]}``. One of the two is
            enough where one other value is left.
        missing_values
            Further values that mean that a decision or an outcome is not known, beside the usual
            ``NA``, ``N/A``, ``null`` and the like.
        missing_group
            What to call people without a group; ``"refuse"`` refuses them.
        min_group
            Count groups of fewer people together, as ``other groups``; those who are left out as
            undecided are not counted.
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
            accepted all the same. Everybody denied in a group must have had the same chance of
            that: near misses and overrides by judgement are not such people. They count as denied,
            and what is known of their outcomes costs nothing.
        random_accepts_against
            Columns, such as a score or a date, by which the accepted are compared with the other
            denied of their group, beside ``date``: a programme that was not random is refused.
        score
            The column of what a model says about people, for plans of audits that look before they
            ask.
        date, since, until
            Read only people with ``since <= date < until``. The rule must be fixed beforehand, by
            how long outcomes take, never by what is known of them.
        seed
            Another seed for RS-Audit and Baseline, which read past people in an order that is drawn
            from the counts. The finding names it; it makes another audit.
        table, query
            What to read of a database; ``table`` also names a sheet of an Excel file.
        encoding
            Of CSV files, if it is not UTF-8: ``"utf-16"`` or ``"latin-1"``.

        Raises
        ------
        UnknownName
            If a column, or the value of ``positive``, does not exist.
        BadData
            If a row breaks a rule; the message says which rows.
        """
        if denied_outcomes not in ("error", "ignore"):
            raise UnknownName("value of 'denied_outcomes'", denied_outcomes, ("error", "ignore"))
        said = Said(
            positive,
            negative,
            (missing_values,) if isinstance(missing_values, str) else tuple(missing_values),
            None if missing_group == "refuse" else missing_group,
            min_group,
            max_groups,
            undecided == "leave_out",
        )
        if undecided not in ("refuse", "leave_out"):
            raise UnknownName("value of 'undecided'", undecided, ("refuse", "leave_out"))
        modes = ("refuse", "bounds", "like_known")
        if unknown not in modes:
            raise UnknownName("value of 'unknown'", unknown, modes)
        if cohort is not None and unknown != "like_known":
            raise InvalidInput("'cohort' (--cohort) belongs to unknown='like_known'")
        require_kind("group", group, (str, Sequence), "a column, or several in a list")
        require_kind("decision", decision, str, "a column's name")
        require_kind("outcome", outcome, str, "a column's name")
        groups = (group,) if isinstance(group, str) else tuple(group)
        columns = Columns(groups, decision, outcome, random_accepts=random_accepts, cohort=cohort)
        against = (
            (random_accepts_against,)
            if isinstance(random_accepts_against, str)
            else random_accepts_against
        )
        if against and random_accepts is None:
            raise InvalidInput(
                "'random_accepts_against' (--random-accepts-against) belongs to 'random_accepts'"
            )
        more = (*against, *(name for name in (score, date) if name is not None))
        opened = open_source(
            source, (*columns.all, *more), table=table, query=query, encoding=encoding
        )
        opened, period = _cut(opened, date, since, until)
        counted = count_rows(
            opened,
            columns,
            said,
            ignore_denied_outcomes=denied_outcomes == "ignore",
            unknown=unknown,
        )
        notes = (*opened.notes, *counted.notes)
        if random_accepts is not None:
            against = (*against, *(() if date is None or date in against else (date,)))
            if against and opened.once:
                raise InvalidInput(f"'random_accepts_against': {opened.name} can be read once only")
            notes = (*notes, require_random(opened, counted, tuple(against)))
        if score is not None and opened.once:
            raise InvalidInput(f"'score': {opened.name} can be read once only")
        return cls(
            counted.cells,
            seed=seed,
            notes=(*_remarks(counted.cells), *notes),
            coding=counted.coding,
            summary=summary_of(opened, counted, period),
            scores=None if score is None else read_scores(opened, counted, score),
        )

    @classmethod
    def from_predictions(
        cls, y_true: object, y_pred: object, sensitive_features: object, **options: Any
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
        **options
            As for :meth:`read`.

        Examples
        --------
        >>> History.from_predictions([1, None, 0], [1, 0, 1], ["a", "a", "b"]).cells["a"]
        GroupCells(approved_positive=1, approved_negative=0, denied=1)
        """
        columns = _feature_columns(sensitive_features)
        arrays = {"y_true": y_true, "y_pred": y_pred, **columns}
        named = {name: _array(column) for name, column in arrays.items()}
        sizes = {name: len(column) for name, column in named.items()}
        if len(set(sizes.values())) > 1:
            raise InvalidInput(
                f"'y_true', 'y_pred' and 'sensitive_features' must be equally long; "
                f"got {', '.join(f'{n} of {k}' for k, n in sizes.items())}"
            )
        return cls.read(named, group=list(columns), decision="y_pred", outcome="y_true", **options)

    @classmethod
    def from_cells(
        cls, cells: Cells | Mapping[str, Mapping[str, int]], *, seed: int | None = None
    ) -> History:
        """Make a history of counts alone.

        Examples
        --------
        >>> counts = {"approved_positive": 30, "approved_negative": 10, "denied": 60}
        >>> History.from_cells({"A": counts, "B": counts}).cells.total
        200
        """
        require_kind("cells", cells, Mapping, "a mapping of groups to counts")
        cells = cells if isinstance(cells, Cells) else Cells.from_dict(cells)
        for group, its in cells.items():
            for cell, count in its.counts.items():
                if count != int(count):
                    raise InvalidInput(
                        f"{cell!r} of group {group!r} must be a whole number of people; got "
                        f"{count!r}"
                    )
        return cls(cells, seed=seed, notes=tuple(_remarks(cells)))

    def to_dict(self) -> dict[str, Any]:
        """Return counts, what was read, and notes, as plain data."""
        return {
            "cells": self.cells.to_dict(),
            "read": None if self.summary is None else self.summary.to_dict(),
            "notes": list(self.notes),
        }

    def _lines(self) -> Sequence[str]:
        return [repr(self)[1:-1], *self.notes]

    def _rows(self) -> Sequence[Row]:
        return [{"group": group, **c.counts} for group, c in self.cells.items()]

    def _draw(self, ax: Axes) -> None:
        from equipoise.display import BLUE, FAIR, PALE, SAND, UNFAIR, draw_stacked

        own = self.cells.values()
        parts = {
            "approved, good": ([c.approved_positive for c in own], BLUE),
            "approved, bad": ([c.approved_negative for c in own], UNFAIR),
            "approved, not known": ([c.approved_unknown for c in own], PALE),
            "denied: nobody knows": ([c.unseen for c in own], SAND),
            "denied, test programme": ([c.denied - c.unseen for c in own], FAIR),
        }
        draw_stacked(ax, self.cells.groups, {w: p for w, p in parts.items() if any(p[0])})
        ax.set_xlabel("past people")

    def __repr__(self) -> str:
        return f"<History of {self.cells.total:,g} people in {len(self.cells)} groups>"

    def __str__(self) -> str:
        read = [] if self.summary is None else [str(self.summary)]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([repr(self)[1:-1], *read, str(self.cells), *notes])


def _cut(
    source: Source, date: str | None, since: Moment | None, until: Moment | None
) -> tuple[Source, str]:
    """Keep the rows of a period; return what was done in words."""
    if date is None and since is None and until is None:
        return source, ""
    if date is None or (since is None and until is None):
        raise InvalidInput("'date' (--date) needs 'since' or 'until', and these need 'date'")
    words = [f"since {since}"] if since is not None else []
    words += [f"before {until}"] if until is not None else []
    return source.between(date, since, until), f"{date} {' and '.join(words)}"


def _feature_columns(features: Any) -> dict[str, Any]:
    """Return the columns of a frame or a mapping, or a single one."""
    if isinstance(features, Mapping):
        return {str(name): column for name, column in features.items()}
    if getattr(features, "ndim", 1) == 2 or hasattr(features, "columns"):
        names = getattr(features, "columns", None)
        if names is None:
            names = range(features.shape[1])
            return {f"sensitive_feature_{at}": features[:, at] for at in names}
        return {str(name): features[name] for name in names}
    return {str(getattr(features, "name", None) or "sensitive_feature"): features}


def _array(column: Any) -> NDArray[np.object_]:
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    flat = np.asarray(column, dtype=object).ravel()
    # Text stays as it is written, so that a message can show it.
    gaps = [not isinstance(value, str) and is_missing(value) for value in flat]
    texts = [None if gap else str(value) for gap, value in zip(gaps, flat, strict=True)]
    return np.array(texts, dtype=object)


def _remarks(cells: Cells) -> list[str]:
    """Say what is remarkable about the counts, once for all groups of which it is true."""
    kinds: tuple[tuple[str, Callable[[GroupCells], bool]], ...] = (
        (
            f"Fewer than {FEW} people, of whom little can be said, are in {{}}.",
            lambda c: c.total < FEW,
        ),
        ("Nobody was approved, so that no outcome is known, in {}.", lambda c: c.approved == 0),
        (
            "No outcome of an approved person is known in {}.",
            lambda c: c.approved_unknown == c.approved > 0,
        ),
        ("No approved person had outcome 1 in {}.", lambda c: _lacks(c, c.approved_positive)),
        ("No approved person had outcome 0 in {}.", lambda c: _lacks(c, c.approved_negative)),
        ("Nobody was denied, so that all outcomes are known, in {}.", lambda c: c.denied == 0),
    )
    found = [(words, [repr(g) for g, c in cells.items() if holds(c)]) for words, holds in kinds]
    return [words.format(few_of(groups, "group ")) for words, groups in found if groups]


def _lacks(counts: GroupCells, kind: float) -> bool:
    return counts.approved > 0 and kind == 0 and not counts.approved_unknown
