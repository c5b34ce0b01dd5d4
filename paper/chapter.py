"""What an experiment hands to the page: words, tables and pictures."""

from __future__ import annotations

import csv
import io
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from paper.kept_work import Result, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Chapter", "Picture", "Table", "make_chapter", "number", "words_of"]


@dataclass(frozen=True)
class Table:
    """Rows for people and for programs.

    Parameters
    ----------
    name
        Names the CSV file, after the chapter.
    caption
        What it shows.
    rows
        The CSV file holds all of their entries as they are.
    columns
        Entry -> heading of the columns that the page shows; empty: it shows none.
    """

    name: str
    caption: str
    rows: Sequence[Result]
    columns: dict[str, str]

    def shown(self) -> list[list[str]]:
        """Return the shown rows as text."""
        return [[number(getattr(row, key, None)) for key in self.columns] for row in self.rows]

    def to_csv(self) -> str:
        """Return every entry of every row."""
        rows = [row.values() for row in self.rows]
        names = list(dict.fromkeys(key for row in rows for key in row))
        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return the shown columns as a Markdown table."""
        rows = [list(self.columns.values()), ["---"] + ["---:"] * (len(self.columns) - 1)]
        rows += self.shown()
        lines = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)
        return "\n".join(f"| {line} |" for line in lines)


@dataclass(frozen=True)
class Picture:
    """A picture and what to read in it."""

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Chapter:
    """One experiment as the page tells it.

    ``setting`` says what was run, ``paper`` what the paper says, ``found`` what we measure,
    ``differs`` where the two part and why.
    """

    name: str
    title: str
    where: str
    setting: Sequence[str]
    paper: Sequence[str]
    found: Sequence[str]
    differs: Sequence[str]
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    left_out: Sequence[str] = ()


@cache
def words_of(name: str) -> Mapping[str, Any]:
    """Return the words of a chapter: what does not depend on results, and the frames of what does.

    They are kept apart from the code, in ``words/NAME.toml``.
    """
    text = (files("paper") / "words" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def make_chapter(
    name: str,
    *,
    values: Mapping[str, object],
    found: Sequence[str],
    tables: Mapping[str, Sequence[Result]],
    pictures: Mapping[str, Callable[[], Figure]] | None = None,
    left_out: Sequence[str] = (),
) -> Chapter:
    """Put results into a chapter's words.

    Parameters
    ----------
    values
        What the setting and the differences name in braces.
    found
        What was measured, in full sentences.
    tables, pictures
        By the names that the words give to tables and pictures.
    """
    words = words_of(name)
    return Chapter(
        name=name,
        title=words["title"],
        where=words["where"],
        setting=[line.format(**values) for line in words["setting"]],
        paper=words["paper"],
        found=found,
        differs=[line.format(**values) for line in words["differs"]],
        tables=[
            Table(table, words["tables"][table]["caption"], rows, words["tables"][table]["columns"])
            for table, rows in tables.items()
        ],
        pictures=[
            Picture(picture, words["pictures"][picture], draw)
            for picture, draw in (pictures or {}).items()
        ],
        left_out=left_out,
    )


def number(value: Value) -> str:
    """Return a value as a person reads it.

    Examples
    --------
    >>> number(0.4351234), number(1234567.0), number(14430000000.0), number("FAIR"), number(None)
    ('0.4351', '1,234,567', '1.443e+10', 'FAIR', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if math.isnan(value):
        return "–"
    if isinstance(value, int) and abs(value) < 10_000_000:
        return f"{value:,}"
    size = abs(value)
    if size < 1e-12:
        return "0"
    if size >= 10_000_000:
        return f"{value:.4g}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size >= 0.01 else f"{value:.3g}"
