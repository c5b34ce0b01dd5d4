"""Worlds whose past decisions are not all settled: unknown outcomes, test programmes.

A world as audits see it, whose past hides outcomes of approved people by a rule of its own, or
holds people whom a test programme accepted although they were denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from equipoise.cells import Cells, GroupCells
from equipoise.history import History
from equipoise.history.past import Past
from equipoise.rates import clopper_pearson
from equipoise.worlds import CellWorld
from equipoise.worlds.world import People, Seed

PAGE = Path(__file__).parents[1] / "docs" / "data-studies.md"

Kinds = tuple[tuple[float, float, float], ...]
"""Per cohort, shares of a group's people who are approved: good, bad, outcome not known."""


@dataclass(frozen=True)
class _SameWorld:
    """A world of which only the past is shown in another way."""

    world: CellWorld

    @property
    def cells(self) -> Cells:
        return self.world.cells

    @property
    def groups(self) -> tuple[str, ...]:
        return self.world.groups

    @property
    def r(self) -> Mapping[str, float]:
        return self.world.r

    def gap(self, metric: str, compare: str = "difference") -> float:
        return self.world.gap(metric, compare)

    def draw(self, size: int, seed: Seed = 0) -> People:
        return self.world.draw(size, seed)


@dataclass(frozen=True)
class OpenBook(_SameWorld):
    """A world of which the past shows some approved people without their outcome.

    ``kinds`` has what the past shows of the approved; ``like_known`` whether a reader may take the
    unknown ones of a cohort to be like the known ones.
    """

    kinds: Mapping[str, Kinds]
    like_known: bool

    def past(self, size: int | None = None, seed: Seed = 0) -> Past:
        """Return the past of ``size`` people, as many in each group, or unlimited ones."""
        rng = np.random.default_rng(seed)
        cells = {}
        for group in self.groups:
            approved = np.array(self.kinds[group]).ravel()
            shares = np.append(approved, 1.0 - approved.sum())
            if size is not None:
                shares = rng.multinomial(size // len(self.groups), shares / shares.sum())
            *kinds, denied = shares.tolist()
            cohorts = [tuple(kinds[at : at + 3]) for at in range(0, len(kinds), 3)]
            good, bad, unknown = (sum(column) for column in zip(*cohorts, strict=True))
            own = tuple(cohorts) if self.like_known and unknown else ()
            cells[group] = GroupCells(good, bad, denied, unknown, own)  # type: ignore[arg-type]
        return Past(Cells(cells), exact=size is None)


@dataclass(frozen=True)
class RandomAccepts(_SameWorld):
    """A world whose past decisions include a test programme: a share of the denied, at random."""

    share: float

    def past(self, size: int | None = None, seed: Seed = 0) -> History:
        rng = np.random.default_rng(seed)
        cells = {}
        for group, counts in self.world.past(size, rng).cells.items():
            accepted = int(rng.binomial(counts.denied, self.share))
            good = int(rng.binomial(accepted, self.r[group]))
            random_accepts = (good, accepted - good, 0) if accepted else ()
            cells[group] = GroupCells(
                counts.approved_positive,
                counts.approved_negative,
                counts.denied,
                random_accepts=random_accepts,
            )
        return History.from_cells(Cells(cells))


def tally(wrong: int, runs: int, level: float) -> list[str]:
    """Return a row's numbers: runs, wrong ones, their share, its interval, within the level."""
    low, high = clopper_pearson(wrong, runs, 0.025)
    verdict = "yes" if low <= level else "NO"
    return [f"{runs:,}", f"{wrong:,}", f"{wrong / runs:.4f}", f"{low:.4f} to {high:.4f}", verdict]


def write_section(page: Path, name: str, title: str, words: str, tables: list[Table]) -> None:
    """Write one study's section of a page; those of others stay."""
    mark, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = "\n\n".join(
        [mark, f"## {title}", words, *(_markdown(made) for made in tables if made.row_count), end]
    )
    text = page.read_text() if page.exists() else _HEAD
    if mark in text:
        before, _, rest = text.partition(mark)
        text = before + section + rest.partition(end)[2]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    page.write_text(text)


_HEAD = "# How data as they are behave\n\n<!-- generated: do not edit -->\n"


def _markdown(made: Table) -> str:
    rows = zip(*(column.cells for column in made.columns), strict=True)
    return "\n".join(
        [
            f"{made.title}:\n",
            "| " + " | ".join(str(column.header) for column in made.columns) + " |",
            "| " + " | ".join(["---"] * len(made.columns)) + " |",
            *("| " + " | ".join(map(str, row)) + " |" for row in rows),
        ]
    )
