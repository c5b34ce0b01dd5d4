"""Data to try things on: a lender whose every outcome is known, and the Adult census."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise._arrays import Array
from equipoise._seeds import accepts_random_state
from equipoise.errors import InvalidInput, UnknownName, few_of
from equipoise.history import History
from equipoise.worlds.world import COUNT_NAMES, CellWorld

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["Lender", "adult", "adult_world", "encode", "fico_lender"]


def fico_lender(threshold: float = 30.0, groups: Sequence[str] | None = None) -> Lender:
    """Return a lender who approves everybody with a credit score of at least ``threshold``.

    The applicants are the 174,047 people behind the TransRisk scores by race in the Federal Reserve
    Board's Report to the Congress on Credit Scoring (August 2007), who in truth repay or do not.

    Parameters
    ----------
    threshold
        The least score that is approved, in [0, 100].
    groups
        Some of White, Black, Hispanic, Asian; all of them if left out.

    Examples
    --------
    >>> lender = fico_lender()
    >>> round(lender.world.gap("equalized_odds"), 3)
    0.206
    """
    if not 0.0 <= threshold <= 100.0:
        raise InvalidInput(f"'threshold' must be a score in [0, 100]; got {threshold!r}")
    applicants = _applicants()
    group_names = tuple(applicants) if groups is None else tuple(groups)
    for group in group_names:
        if group not in applicants:
            raise UnknownName("group", group, applicants)
    return Lender(threshold, {group: applicants[group] for group in group_names})


class Applicants(NamedTuple):
    """One group: how many people with each score repay, and how many do not."""

    scores: Array
    repaying: Array
    failing: Array


@dataclass(frozen=True)
class Lender:
    """A decision-maker with a cut-off, and applicants whose every outcome is known.

    Attributes
    ----------
    threshold
        The least score that is approved.
    applicants
        The applicants of each group.

    Examples
    --------
    >>> from equipoise.worlds.data import fico_lender
    >>> lender = fico_lender(groups=["White", "Black"])
    >>> lender.world.groups
    ('White', 'Black')
    """

    threshold: float
    applicants: Mapping[str, Applicants]

    def __repr__(self) -> str:
        groups = few_of(tuple(self.applicants))
        return f"<Lender that approves scores from {self.threshold:g}; groups {groups}>"

    @property
    def world(self) -> CellWorld:
        """The population, denied people's outcomes included."""
        counts = {}
        for group, (scores, repaying, failing) in self.applicants.items():
            is_approved = scores >= self.threshold
            counts[group] = {
                "approved_positive": float(repaying[is_approved].sum()),
                "approved_negative": float(failing[is_approved].sum()),
                "denied_positive": float(repaying[~is_approved].sum()),
                "denied_negative": float(failing[~is_approved].sum()),
            }
        return CellWorld.from_counts(counts)

    @accepts_random_state
    def past(self, seed: int = 0) -> DuckDBPyRelation:
        """Draw the table that the lender would own, a row per applicant in random order.

        Columns: ``race``, ``score``, ``approved`` (0/1), ``repaid`` (0/1, empty for the denied).
        It is a DuckDB relation: ``.df()``, ``.pl()`` and ``.to_arrow_table()`` turn it into others.
        """
        import duckdb

        rng = np.random.default_rng(seed)
        race: list[str] = []
        score_parts = []
        repaid_parts = []
        for group, (scores, repaying, failing) in self.applicants.items():
            # One draw for the group, so that it has as many people as the report. Per score those
            # who would repay, then those who would fail.
            weights = np.concatenate([repaying, failing])
            counts = rng.multinomial(round(weights.sum()), weights / weights.sum())
            race += [group] * int(counts.sum())
            score_parts.append(np.repeat(np.tile(scores, 2), counts))
            repaid_parts.append(np.repeat([1.0, 0.0], counts.reshape(2, -1).sum(axis=1)))
        # People came group by group and score by score; a real table is in no such order.
        order = rng.permutation(len(race))
        scores = np.concatenate(score_parts)[order]
        approved = scores >= self.threshold
        columns = {
            "race": np.array(race, dtype=object)[order],
            "score": scores,
            "approved": approved.astype(np.int8),
            # The lender never sees what a denied applicant would have done.
            "repaid": np.where(approved, np.concatenate(repaid_parts)[order], np.nan),
        }
        applications = duckdb.connect().register("applications", columns).table("applications")
        return applications.project("race, score, approved, CAST(repaid AS TINYINT) AS repaid")

    @accepts_random_state
    def history(self, seed: int = 0) -> History:
        """Read the table that :meth:`past` draws."""
        return History.read(self.past(seed), group="race", decision="approved", outcome="repaid")


def adult() -> DuckDBPyRelation:
    """Return the UCI Adult census table, 48,842 rows by 16 columns.

    ``income`` is ``>50K`` or ``<=50K``, ``part`` tells the original training rows from the test
    rows, an unknown value is ``?``. It is a DuckDB relation: ``.df()``, ``.pl()`` and
    ``.to_arrow_table()`` turn it into other tables.

    Becker, B. and Kohavi, R. (1996), UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> adult().aggregate("income, count(*)", "income").order("income").fetchall()
    [('<=50K', 37155), ('>50K', 11687)]
    """
    import duckdb

    return duckdb.connect().read_parquet(str(files("equipoise.worlds") / "adult" / "adult.parquet"))


def encode(table: DuckDBPyRelation, columns: Sequence[str]) -> Array:
    """Return columns as features for a classifier, a row per person.

    Numbers are brought to mean 0 and variance 1, every word of a text column becomes an indicator.

    Examples
    --------
    >>> encode(adult(), ["age", "sex"]).shape
    (48842, 3)
    """
    for column in columns:
        if column not in table.columns:
            raise UnknownName("column", column, table.columns)
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    # One query for all columns, so that what stands in one row stays in one row.
    values = table.project(", ".join(quoted)).fetchnumpy()
    features: list[Array] = []
    for column in columns:
        features += _features(values[column])
    return np.column_stack(features)


def adult_world(group: str = "sex") -> CellWorld:
    """Return Adult with a logistic regression as the decision-maker.

    It approves whom it expects to earn more than 50K; trained on the table's training part with
    every column but sex, it decided over the whole table. The outcome is earning more than 50K.
    What it decided is shipped as counts (``tools/adult_cells.py`` makes them).

    Parameters
    ----------
    group
        The column of groups: ``sex`` or ``race``.

    Examples
    --------
    >>> adult_world().groups
    ('Female', 'Male')
    """
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for row in csv.DictReader(_text("adult/decided.csv").splitlines()):
        groups = counts.setdefault(row["column"], {})
        groups[row["group"]] = {name: int(row[name]) for name in COUNT_NAMES}
    if group not in counts:
        raise UnknownName("column of groups", group, sorted(counts))
    return CellWorld.from_counts(counts[group])


@cache
def _applicants() -> Mapping[str, Applicants]:
    cumulative = _read_columns("fico/transrisk_cdf_by_race_ssa.csv")
    percent_bad = _read_columns("fico/transrisk_performance_by_race_ssa.csv")
    totals = _read_columns("fico/totals.csv")
    applicants = {}
    for group in (cumulative.dtype.names or ())[1:]:  # the first column is the score
        # The files hold percentages: of people up to a score, and of failures at a score.
        people = np.diff(cumulative[group], prepend=0.0) / 100.0 * int(totals[group])
        repaying = people * (1.0 - percent_bad[group] / 100.0)
        applicants[group] = Applicants(cumulative["Score"], repaying, people - repaying)
    return applicants


def _read_columns(name: str) -> NDArray[np.void]:
    """Return a CSV file of numbers as an array with a field per column."""
    return np.genfromtxt(_text(name).splitlines(), delimiter=",", names=True)


def _text(name: str) -> str:
    return files("equipoise.worlds").joinpath(name).read_text(encoding="utf-8")


def _features(column: NDArray[np.generic]) -> list[Array]:
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        return [(numbers - numbers.mean()) / (numbers.std() or 1.0)]  # a constant column stays 0
    return [(column == word).astype(np.float64) for word in np.unique(column.astype(str))]
