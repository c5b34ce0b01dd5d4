"""Tables as benchmarks and studies print them, and where they keep files between runs."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

__all__ = ["CACHE", "table"]

CACHE = Path(__file__).parents[2] / ".cache" / "bench"


def table(title: str, *columns: str) -> Table:
    """Return an empty table, words to the left and numbers to the right."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for at, column in enumerate(columns):
        made.add_column(column, justify="right" if at else "left")
    return made
