"""The two pages of results, which studies write section by section."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from equipoise.rates import clopper_pearson

ERRORS = Path(__file__).parents[1] / "docs" / "evidence" / "errors.md"
COSTS = ERRORS.with_name("costs.md")


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
    text = page.read_text() if page.exists() else "# Results\n"
    if mark in text:
        before, _, rest = text.partition(mark)
        text = before + section + rest.partition(end)[2]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    page.write_text(text)


def _markdown(made: Table) -> str:
    rows = zip(*(column.cells for column in made.columns), strict=True)
    title = [f"{made.title}:\n"] if made.title else []
    return "\n".join(
        [
            *title,
            "| " + " | ".join(str(column.header) for column in made.columns) + " |",
            "| " + " | ".join(["---"] * len(made.columns)) + " |",
            *("| " + " | ".join(map(str, row)) + " |" for row in rows),
        ]
    )
