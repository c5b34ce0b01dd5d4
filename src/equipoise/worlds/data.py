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
from equipoise.errors import InvalidInput, UnknownName
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
    everybody = _applicants()
    chosen = tuple(everybody) if groups is None else tuple(groups)
    for group in chosen:
        if group not in everybody:
            raise UnknownName("group", group, everybody)
    return Lender(threshold, {group: everybody[group] for group in chosen})


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

    @property
    def world(self) -> CellWorld:
        """The population, denied people's outcomes included."""
        counts = {}
        for group, (scores, *kinds) in self.applicants.items():
            approved = scores >= self.threshold
            cells = [float(kind[who].sum()) for who in (approved, ~approved) for kind in kinds]
            counts[group] = dict(zip(COUNT_NAMES, cells, strict=True))
        return CellWorld.from_counts(counts)

    def past(self, seed: int = 0) -> DuckDBPyRelation:
        """Draw the table that the lender would own, a row per applicant in random order.

        Columns: ``race``, ``score``, ``approved`` (0/1), ``repaid`` (0/1, empty for the denied).
        It is a DuckDB relation: ``.df()``, ``.pl()`` and ``.to_arrow_table()`` turn it into others.
        """
        import duckdb

        rng = np.random.default_rng(seed)
        race, score, repaid = list[str](), [], []
        for group, (scores, repaying, failing) in self.applicants.items():
            kinds = np.concatenate([repaying, failing])
            drawn = rng.multinomial(round(kinds.sum()), kinds / kinds.sum())
            race += [group] * int(drawn.sum())
            score.append(np.repeat(np.tile(scores, 2), drawn))
            repaid.append(np.repeat([1.0, 0.0], drawn.reshape(2, -1).sum(axis=1)))
        order = rng.permutation(len(race))
        scores = np.concatenate(score)[order]
        approved = scores >= self.threshold
        columns = {
            "race": np.array(race, dtype=object)[order],
            "score": scores,
            "approved": approved.astype(np.int8),
            "repaid": np.where(approved, np.concatenate(repaid)[order], np.nan),
        }
        applications = duckdb.connect().register("applications", columns).table("applications")
        return applications.project("race, score, approved, CAST(repaid AS TINYINT) AS repaid")

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
    values = table.project(", ".join(quoted)).fetchnumpy()
    return np.column_stack([part for c in columns for part in _features(values[c])])


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
        own = {name: int(row[name]) for name in COUNT_NAMES}
        counts.setdefault(row["column"], {})[row["group"]] = own
    if group not in counts:
        raise UnknownName("column of groups", group, sorted(counts))
    return CellWorld.from_counts(counts[group])


@cache
def _applicants() -> Mapping[str, Applicants]:
    cumulative, bad, totals = (
        np.genfromtxt(_text(f"fico/{name}.csv").splitlines(), delimiter=",", names=True)
        for name in ("transrisk_cdf_by_race_ssa", "transrisk_performance_by_race_ssa", "totals")
    )
    made = {}
    for group in (cumulative.dtype.names or ())[1:]:
        people = np.diff(cumulative[group], prepend=0.0) / 100.0 * int(totals[group])
        repaying = people * (1.0 - bad[group] / 100.0)
        made[group] = Applicants(cumulative["Score"], repaying, people - repaying)
    return made


def _text(name: str) -> str:
    return files("equipoise.worlds").joinpath(name).read_text(encoding="utf-8")


def _features(column: NDArray[np.generic]) -> list[Array]:
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        return [(numbers - numbers.mean()) / (numbers.std() or 1.0)]
    return [(column == word).astype(np.float64) for word in np.unique(column.astype(str))]
