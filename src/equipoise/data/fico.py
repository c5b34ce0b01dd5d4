"""A lender whose every outcome is known: credit scores by race and a cut-off."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput, UnknownName
from equipoise.history import History
from equipoise.worlds import CellWorld

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

__all__ = ["Lender", "fico_lender"]

Array = NDArray[np.float64]


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
    >>> round(lender.world.difference("equalized_odds"), 3)
    0.206
    """
    if not 0.0 <= threshold <= 100.0:
        raise InvalidInput(f"'threshold' must be a score in [0, 100]; got {threshold!r}")
    everybody = _applicants()
    chosen = tuple(everybody) if groups is None else tuple(groups)
    for group in chosen:
        if group not in everybody:
            raise UnknownName("group", group, everybody)
    if len(set(chosen)) < 2:
        raise InvalidInput(f"'groups' must name at least two groups to compare; got {chosen!r}")
    return Lender(threshold, {group: everybody[group] for group in chosen})


@dataclass(frozen=True)
class Applicants:
    """One group: how many people have each score, and how many of them repay."""

    scores: Array
    people: Array
    repaying: Array

    @property
    def total(self) -> int:
        """Everybody."""
        return round(float(self.people.sum()))


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
    >>> from equipoise.data import fico_lender
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
        for group, those in self.applicants.items():
            approved = those.scores >= self.threshold
            failing = those.people - those.repaying
            counts[group] = {
                "approved_positive": float(those.repaying[approved].sum()),
                "approved_negative": float(failing[approved].sum()),
                "denied_positive": float(those.repaying[~approved].sum()),
                "denied_negative": float(failing[~approved].sum()),
            }
        return CellWorld.from_counts(counts)

    def past(self, seed: int = 0) -> DuckDBPyRelation:
        """Draw the table that the lender would own, a row per applicant in random order.

        Columns: ``race``, ``score``, ``approved`` (0/1), ``repaid`` (0/1, empty for the denied).
        It is a DuckDB relation: ``.df()``, ``.pl()`` and ``.to_arrow_table()`` turn it into others.
        """
        import duckdb

        rng = np.random.default_rng(seed)
        race, score, repaid = [], [], []
        for group, those in self.applicants.items():
            kinds = np.concatenate([those.repaying, those.people - those.repaying])
            drawn = rng.multinomial(those.total, kinds / kinds.sum())
            race.append(np.full(those.total, group, dtype=object))
            score.append(np.repeat(np.tile(those.scores, 2), drawn))
            repaid.append(np.repeat([1.0, 0.0], drawn.reshape(2, -1).sum(axis=1)))
        order = rng.permutation(sum(len(part) for part in race))
        scores = np.concatenate(score)[order]
        approved = scores >= self.threshold
        connection = duckdb.connect()
        connection.register(
            "applications",
            {
                "race": np.concatenate(race)[order],
                "score": scores,
                "approved": approved.astype(np.int8),
                "repaid": np.where(approved, np.concatenate(repaid)[order], np.nan),
            },
        )
        return connection.sql(
            "SELECT race, score, approved, CAST(repaid AS TINYINT) AS repaid FROM applications"
        )

    def history(self, seed: int = 0) -> History:
        """Read the table that :meth:`past` draws."""
        return History.read(self.past(seed), group="race", decision="approved", outcome="repaid")


@cache
def _applicants() -> Mapping[str, Applicants]:
    groups, cumulative = _numbers("transrisk_cdf_by_race_ssa.csv")
    _, bad = _numbers("transrisk_performance_by_race_ssa.csv")
    totals = next(csv.DictReader(_text("totals.csv").splitlines()))
    made = {}
    for at, group in enumerate(groups, start=1):
        people = np.diff(cumulative[:, at], prepend=0.0) / 100.0 * int(totals[group])
        repaying = people * (1.0 - bad[:, at] / 100.0)
        made[group] = Applicants(cumulative[:, 0], people, repaying)
    return made


def _numbers(name: str) -> tuple[list[str], Array]:
    header, *rows = csv.reader(_text(name).splitlines())
    return header[1:], np.array(rows, dtype=float)


def _text(name: str) -> str:
    return (files("equipoise.data") / "fico" / name).read_text(encoding="utf-8")
