"""Every experiment of the paper, and how to run them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from equipoise.display import Progress, silent
from equipoise.errors import UnknownName
from paper.chapter import Chapter
from paper.kept_work import Part, Result, do_parts
from paper.settings import Settings
from paper.style import to_svg

__all__ = ["EXPERIMENTS", "Edition", "run_paper", "work_of"]

EXPERIMENTS = {
    "blackbox": ("paper.blackbox", "paper.blackbox_chapter"),
    "synthetic": ("paper.synthetic", "paper.synthetic_chapter"),
    "embedded": ("paper.embedded", "paper.embedded_chapter"),
    "theorems": ("paper.bounds_chapter", "paper.bounds_chapter"),
    "families": ("paper.families", "paper.families"),
    "notes": ("paper.notes", "paper.notes"),
}
"""Name -> the modules with its ``parts`` and with its ``tell``, in the order of the page."""

LONGEST_FIRST = ("embedded", "theorems", "synthetic", "blackbox", "notes", "families")


@dataclass(frozen=True)
class Edition:
    """All chapters, the results behind them, and the processor seconds that each took."""

    chapters: Sequence[Chapter]
    results: dict[str, list[Result]]
    seconds: dict[str, float]
    wall: float
    kept: int
    parts: int
    settings: Settings

    @cached_property
    def pictures(self) -> dict[str, str]:
        """Every picture as SVG text, by the names of chapter and picture."""
        return {
            f"{chapter.name}-{picture.name}": to_svg(picture.draw)
            for chapter in self.chapters
            for picture in chapter.pictures
        }


def run_paper(
    settings: Settings,
    store: Path,
    *,
    only: Iterable[str] = (),
    n_jobs: int | None = None,
    progress: Progress = silent,
) -> Edition:
    """Run the experiments (all unless ``only`` names some) and return their chapters."""
    start = time.perf_counter()
    chosen = _chosen(only)
    work = work_of(settings, chosen)
    order = [part for name in LONGEST_FIRST for part in work.get(name, [])]
    done = do_parts(order, store, n_jobs=n_jobs, progress=progress)
    results = {
        name: [result for part in parts for result in done[part.name].results]
        for name, parts in work.items()
    }
    chapters = [import_module(EXPERIMENTS[n][1]).tell(results[n], settings) for n in chosen]
    return Edition(
        chapters=chapters,
        results=results,
        seconds={n: sum(done[p.name].seconds for p in parts) for n, parts in work.items()},
        wall=time.perf_counter() - start,
        kept=sum(d.kept for d in done.values()),
        parts=len(done),
        settings=settings,
    )


def work_of(settings: Settings, chosen: Iterable[str]) -> dict[str, list[Part]]:
    """Return the parts of every chosen experiment."""
    return {name: import_module(EXPERIMENTS[name][0]).parts(settings) for name in chosen}


def _chosen(only: Iterable[str]) -> list[str]:
    names = list(only)
    for name in names:
        if name not in EXPERIMENTS:
            raise UnknownName("experiment", name, EXPERIMENTS)
    return [name for name in EXPERIMENTS if not names or name in names]
